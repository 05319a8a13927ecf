//! The steps by which a conversation is made shorter, from the one that loses least to the one that always works.
//!
//! Invariant: only one step needs a model; the others always can be taken. A step that gains nothing is passed over, and
//! what a step takes out of view is in the history file first, where there is one.

use std::sync::Arc;

use hart_kernel::{ChatModel, ChatRequest, MessageList, ModelErrorKind, RunContext};
use hart_sandbox::{SandboxProvider, VPath, WriteMode};
use hart_types::Message;
use serde_json::{Value, json};

use super::budget::{Budget, count};
use super::config::{Size, SummarizationConfig};
use super::cut::{Cuts, newest_user_message};
use super::extract::extract;
use super::history;
use super::record::{Anchor, Ceiling, Compaction, Cut, Trim, Trimming};
use super::summary::{self, summarize};
use super::view::view;

/// In the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// Long arguments of old calls are cut short.
    Args,
    /// The old part is summarised by a model.
    Summary,
    /// Old tool output is left out.
    Results,
    /// Old calls are left out too.
    Exchanges,
    /// The old part is replaced by an extract.
    Extract,
    /// Only the newest exchange stays, and of that only as much as fits.
    Hard,
}

impl Step {
    pub(crate) const ALL: [Self; 6] =
        [Self::Args, Self::Summary, Self::Results, Self::Exchanges, Self::Extract, Self::Hard];

    fn name(self) -> &'static str {
        match self {
            Self::Args => "arguments",
            Self::Summary => "summary",
            Self::Results => "results",
            Self::Exchanges => "exchanges",
            Self::Extract => "extract",
            Self::Hard => "hard_cut",
        }
    }
}

/// Why it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It was about to become too long.
    Budget,
    /// The provider said that it is too long.
    Overflow,
    /// Somebody asked for it.
    Asked,
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Overflow => "overflow",
            Self::Asked => "manual",
        }
    }
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shrunk {
    pub(crate) step: Step,
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// One conversation that is too long, and what there is to make it shorter with.
pub(crate) struct Job<'a> {
    pub(crate) cx: &'a RunContext,
    pub(crate) config: &'a SummarizationConfig,
    /// Who answers, and by whose count it is too long.
    pub(crate) model: &'a dyn ChatModel,
    pub(crate) summariser: &'a dyn ChatModel,
    pub(crate) sandboxes: Option<&'a dyn SandboxProvider>,
    /// What goes out beside the messages.
    pub(crate) chat: &'a ChatRequest,
    pub(crate) messages: &'a MessageList,
    /// The same as the thread has them: what the history file gets.
    pub(crate) log: &'a MessageList,
    /// Instead of the configured size.
    pub(crate) keep: Option<Size>,
}

impl Job<'_> {
    pub(crate) fn budget(&self, record: &Compaction) -> Budget<'_> {
        let profile = self.model.profile();
        Budget::new(self.config, profile, &self.chat.settings, record.ceiling_for(&profile.name))
    }

    /// Whether this size is too much, and more than was left when nothing more could be done.
    pub(crate) fn is_due(&self, record: &Compaction, tokens: u64, messages: usize) -> bool {
        let grown = record.stuck.is_none_or(|stuck| tokens >= stuck.saturating_add(stuck / 10));
        grown && self.budget(record).is_due(tokens, messages)
    }

    /// Whether there is an older part at all.
    pub(crate) fn has_old(&self, record: &Compaction) -> bool {
        let record = record.for_thread(self.messages);
        let keep = self.budget(&record).keep(self.keep);
        let cuts = record.start(self.messages).map(|start| Cuts::new(self.messages, start));
        cuts.is_some_and(|cuts| cuts.keeping(keep, |message| count(self.model, message)).is_some())
    }

    /// Remembers what the provider does not take: `tokens` is our count of it.
    pub(crate) fn learn(&self, record: &mut Compaction, tokens: u64, kind: ModelErrorKind) {
        let taken = match kind {
            ModelErrorKind::ContextOverflow { limit: Some(limit), used: Some(used) } if used > limit => {
                tokens.saturating_mul(limit) / used
            }
            ModelErrorKind::ContextOverflow { limit: Some(limit), .. } if limit < tokens => limit,
            _ => tokens,
        };
        let model = self.model.profile().name.clone();
        record.ceiling = Some(Ceiling { model, tokens: (taken / 10 * 9).max(1) });
    }

    /// Takes steps, beginning with `steps`' first, until the conversation fits. `tokens` is its size now. `None` if no
    /// step makes it any shorter; what was remembered of the attempts is in the record all the same.
    pub(crate) async fn shrink(
        &self,
        record: &mut Compaction,
        tokens: u64,
        steps: &[Step],
        reason: Reason,
    ) -> Option<Shrunk> {
        *record = record.for_thread(self.messages);
        let own = self.count(record).0;
        self.tell(json!({"type": "context_compacting", "reason": reason.name(), "tokens": tokens})).await;
        let mut done: Option<Shrunk> = None;
        let mut left = own;
        for step in steps.iter().copied() {
            if self.cx.cancel.is_cancelled() {
                break;
            }
            let Some(taken) = self.take(record, step).await else { continue };
            let (counted, messages) = self.count(&taken);
            if counted >= left {
                continue;
            }
            left = counted;
            *record = taken;
            // The provider counts more than we do by what it counted more before.
            let after = tokens.saturating_sub(own - left);
            done = Some(Shrunk { step, before: tokens, after });
            let budget = self.budget(record);
            let fits = !budget.is_due(after, messages);
            let enough = match step {
                Step::Args | Step::Summary | Step::Extract | Step::Hard => fits,
                Step::Results | Step::Exchanges => fits && after <= budget.goal(),
            };
            if enough || reason == Reason::Asked {
                record.stuck = None;
                break;
            }
            record.stuck = Some(after);
        }
        match done {
            Some(done) => self.finish(record, done, reason).await,
            // Remembered, so that it is not tried again with every call.
            None => {
                record.generation += 1;
                record.stuck = Some(tokens);
            }
        }
        done
    }

    async fn finish(&self, record: &mut Compaction, done: Shrunk, reason: Reason) {
        record.generation += 1;
        record.newest = Anchor::of(self.messages, self.messages.len().saturating_sub(1));
        let start = record.start(self.messages).unwrap_or_default();
        tracing::info!(
            step = done.step.name(),
            reason = reason.name(),
            before = done.before,
            after = done.after,
            "the conversation was compacted"
        );
        self.tell(json!({
            "type": "context_compacted",
            "reason": reason.name(),
            "step": done.step.name(),
            "tokens_before": done.before,
            "tokens_after": done.after,
            "removed_message_count": start,
            "preserved_message_count": self.messages.len() - start,
            "summary_updated": matches!(done.step, Step::Summary | Step::Extract | Step::Hard),
            "history_file": record.history,
        }))
        .await;
    }

    /// The size of the conversation as this record shows it, in tokens and messages.
    fn count(&self, record: &Compaction) -> (u64, usize) {
        // What is clipped goes to the newest message there is now.
        let newest = Anchor::of(self.messages, self.messages.len().saturating_sub(1));
        let record = Compaction { newest, ..record.clone() };
        let messages = view(&record, self.messages, self.config.truncate_args_over);
        let shown = messages.len();
        (self.model.count_request(&ChatRequest { messages, ..self.chat.clone() }), shown)
    }

    async fn take(&self, record: &mut Compaction, step: Step) -> Option<Compaction> {
        let start = record.start(self.messages)?;
        let cuts = Cuts::new(self.messages, start);
        let keep = self.budget(record).keep(self.keep);
        let kept = cuts.keeping(keep, |message| count(self.model, message));
        match step {
            Step::Args => self.trim(record, kept?, Trimming::Args).await,
            Step::Summary => self.summary(record, start, kept?).await,
            Step::Results => self.trim(record, kept.or_else(|| cuts.newest())?, Trimming::Results).await,
            Step::Exchanges => self.trim(record, kept.or_else(|| cuts.newest())?, Trimming::Exchanges).await,
            Step::Extract => self.extract(record, start, kept.or_else(|| cuts.newest())?).await,
            Step::Hard => {
                let mut taken = match cuts.newest() {
                    Some(newest) => self.extract(record, start, newest).await?,
                    None => record.clone(),
                };
                self.write(&mut taken, self.messages.len()).await;
                record.written.clone_from(&taken.written);
                taken.clip = Some(self.clip(&taken));
                Some(taken)
            }
        }
    }

    async fn trim(&self, record: &mut Compaction, before: usize, how: Trimming) -> Option<Compaction> {
        self.write(record, before).await;
        let trim = Trim { before: Anchor::of(self.messages, before)?, how };
        Some(Compaction { trim: Some(trim), ..record.clone() })
    }

    async fn summary(&self, record: &mut Compaction, start: usize, from: usize) -> Option<Compaction> {
        let earlier = record.cut.as_ref().map(|cut| summary::text_of(&cut.summary));
        let old = self.old(record, start, from);
        let asked = summarize(self.cx, self.summariser, self.config, earlier.as_deref(), &old);
        let (summary, ()) = tokio::join!(asked, self.write(record, from));
        match summary {
            Ok(summary) => self.cut(record, from, &summary),
            Err(error) => {
                tracing::warn!(%error, "no summary; the conversation is shortened without one");
                None
            }
        }
    }

    async fn extract(&self, record: &mut Compaction, start: usize, from: usize) -> Option<Compaction> {
        self.write(record, from).await;
        let earlier = record.cut.as_ref().map(|cut| summary::text_of(&cut.summary));
        // A third of what there is room for, in characters.
        let limit = usize::try_from(self.budget(record).goal()).unwrap_or(usize::MAX).clamp(200, 6_000);
        let text = extract(earlier.as_deref(), &self.old(record, start, from), limit);
        self.cut(record, from, &text)
    }

    fn cut(&self, record: &Compaction, from: usize, summary: &str) -> Option<Compaction> {
        let pinned = newest_user_message(self.messages, self.messages.len()).filter(|at| *at < from);
        let cut = Cut {
            from: Anchor::of(self.messages, from)?,
            pinned: pinned.and_then(|at| Anchor::of(self.messages, at)),
            summary: summary::message(summary, record.history.as_deref()),
        };
        Some(Compaction { cut: Some(cut), trim: None, clip: None, ..record.clone() })
    }

    /// What the next summary is of: all that is shown now before `from`, but for the last summary.
    fn old(&self, record: &Compaction, start: usize, from: usize) -> Vec<Arc<Message>> {
        let pinned = record.cut.as_ref().and_then(|cut| cut.pinned.as_ref()?.find(self.messages));
        let pinned = pinned.filter(|at| *at < start).and_then(|at| self.messages.get(at));
        pinned.into_iter().chain(self.messages.iter_from(start).take(from - start)).cloned().collect()
    }

    /// How long a message may be if all that are left shall fit.
    fn clip(&self, record: &Compaction) -> usize {
        const LEAST: u64 = 200;
        let (_, shown) = self.count(record);
        let fixed =
            self.model.count_request(&ChatRequest { messages: MessageList::default(), ..self.chat.clone() });
        let room = self.budget(record).goal().saturating_sub(fixed);
        // Three characters a token is little for most text, and the note in the middle takes some.
        let each = (room.saturating_mul(3) / (shown.max(1) as u64)).max(LEAST);
        usize::try_from(each).unwrap_or(usize::MAX)
    }

    /// Appends what is not there yet, up to but without the message at `end`. Where that fails, the rest goes on.
    async fn write(&self, record: &mut Compaction, end: usize) {
        let Some(sandboxes) = self.sandboxes else { return };
        let Some(last) = end.checked_sub(1).and_then(|last| self.in_log(last)) else { return };
        let first = record.written.as_ref().and_then(|anchor| anchor.find(self.log)).map_or(0, |at| at + 1);
        if first > last {
            return;
        }
        let path = match &record.history {
            Some(path) => VPath::parse(path),
            None => history::path(self.cx.run_id.as_str()),
        };
        let text = history::render(
            &self.cx.clock.now().to_string(),
            self.log.iter_from(first).take(last + 1 - first),
        );
        let written = match path {
            Ok(path) => append(sandboxes, self.cx, &path, &text).await.map(|()| path),
            Err(error) => Err(error.to_string()),
        };
        match written {
            Ok(path) => {
                record.history = Some(path.as_str().to_owned());
                record.written = Anchor::of(self.log, last);
            }
            Err(error) => tracing::warn!(%error, "the history file could not be written"),
        }
    }

    /// The place in the log of a message that is shown, or of the nearest one before it: repairs are not in the log.
    fn in_log(&self, at: usize) -> Option<usize> {
        (0..=at).rev().find_map(|at| Anchor::of(self.messages, at)?.find(self.log))
    }

    async fn tell(&self, event: Value) {
        self.cx.emit(hart_kernel::AgentEvent::Custom(event)).await;
    }
}

async fn append(
    sandboxes: &dyn SandboxProvider,
    cx: &RunContext,
    path: &VPath,
    text: &str,
) -> Result<(), String> {
    let sandbox = sandboxes.acquire(&cx.thread_id, &cx.user_id).await.map_err(|error| error.to_string())?;
    sandbox.archive(path, text.as_bytes(), WriteMode::Append).await.map_err(|error| error.to_string())
}
