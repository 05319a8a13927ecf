//! Keeps a conversation within its model's window.
//!
//! Invariant: the thread's messages stay as they are; what changes is what the model is shown of them.

use std::fmt;
use std::sync::Arc;

use hart_kernel::{
    AgentEvent, ChatModel, ChatRequest, Command, Goto, HookError, HookResult, Middleware, ModelError,
    ModelErrorKind, ModelNext, ModelRequest, ModelResponse, ModelSettings, RunContext, Schema, State,
    StateError, Update, async_trait,
};
use hart_sandbox::SandboxProvider;
use hart_types::Body;
use serde_json::json;

use crate::compaction::{
    Compact, CompactAsk, Compacted, Compaction, Job, Reason, Shrunk, Step, SummarizationConfig, Views,
    reported,
};

/// How often a request that the provider finds too long is made shorter.
const ATTEMPTS: usize = 5;

/// Replaces the older part of a long conversation by a summary, before it is too long for the model.
///
/// Looked at before every model call, by the larger of what the provider last counted (plus what came after) and hart's
/// own count, with room for the answer taken off. Without a `trigger` it acts at 80 % of the model's window (at 170 000
/// tokens where the window is not known), and keeps the last tenth of the window (the last six messages). In order, and
/// only as far as needed:
///
/// 1. long arguments of old tool calls are cut to their first 20 characters;
/// 2. the older messages are appended to `/conversation_history/session_….md`, which the agent can read and search, and
///    replaced by a summary that names that file. A call and its results stay together, the newest user message stays
///    whole, and what the model is told by [`DynamicContext`](super::DynamicContext) stays in view.
///
/// If the summariser fails, refuses or says nothing, or the provider says that the conversation is too long, the steps
/// that need no model follow: old tool output is left out, then old calls, then an extract stands for the old part, then
/// only the newest exchange stays, shortened. A request is made shorter five times at most; then the run ends with the
/// provider's error.
///
/// The view stays the same from one compaction to the next, so that a provider's prompt cache holds. It survives a
/// restart. Clients see `context_compacting` and `context_compacted` as custom events. With the input `compact: true` a
/// run compacts the thread and ends ([`Compact`]).
///
/// Settings: `summarization`, [`SummarizationConfig`].
#[derive(Clone)]
pub struct Summarization {
    config: SummarizationConfig,
    summariser: Option<Arc<dyn ChatModel>>,
    agent: Option<Arc<dyn ChatModel>>,
    sandboxes: Option<Arc<dyn SandboxProvider>>,
}

impl Summarization {
    pub fn new(config: SummarizationConfig) -> Self {
        Self { config, summariser: None, agent: None, sandboxes: None }
    }

    /// Who writes summaries, if not the model that answers.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.summariser = Some(model);
        self
    }

    /// The agent's own model: by its window a thread is compacted that nobody asks anything.
    #[must_use]
    pub fn agent_model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.agent = Some(model);
        self
    }

    /// Where the history file goes; without one, what is compacted can only be read in the thread itself.
    #[must_use]
    pub fn sandboxes(mut self, sandboxes: Option<Arc<dyn SandboxProvider>>) -> Self {
        self.sandboxes = sandboxes;
        self
    }

    /// Compacts a thread now, whatever its size, by the window of `model`. The update is for the thread's state. Nothing
    /// is in danger yet, so without a summary nothing changes.
    pub async fn compact_now(
        &self,
        cx: &RunContext,
        state: &State,
        ask: CompactAsk,
        model: &Arc<dyn ChatModel>,
    ) -> Result<Update, NotCompacted> {
        let messages = state.messages();
        let chat = ChatRequest {
            caller: "summarization".into(),
            system: None,
            messages: messages.clone(),
            tools: Arc::new([]),
            settings: ModelSettings::default(),
        };
        let mut record = state.get::<Compacted>().cloned().unwrap_or_default();
        let job = Job { keep: ask.keep, ..self.job(cx, model.as_ref(), &chat, messages) };
        if !job.has_old(&record) {
            return Err(NotCompacted::NothingOld);
        }
        let tokens = model.count_request(&chat);
        let shrunk = job.shrink(&mut record, tokens, &[Step::Summary], Reason::Asked).await;
        shrunk.ok_or(NotCompacted::NoSummary)?;
        cx.scratch.get_or_default::<Views>().remember(&record);
        Ok(Update::none().set::<Compacted>(record))
    }

    fn job<'a>(
        &'a self,
        cx: &'a RunContext,
        model: &'a dyn ChatModel,
        chat: &'a ChatRequest,
        log: &'a hart_kernel::MessageList,
    ) -> Job<'a> {
        Job {
            cx,
            config: &self.config,
            model,
            summariser: self.summariser.as_deref().unwrap_or(model),
            sandboxes: self.sandboxes.as_deref(),
            chat,
            messages: &chat.messages,
            log,
            keep: None,
        }
    }
}

#[async_trait]
impl Middleware for Summarization {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<Compacted>()?.declare::<Compact>()?;
        Ok(())
    }

    async fn before_agent(&self, cx: &RunContext, state: &State) -> HookResult {
        let Some(ask) = state.get::<Compact>().copied().flatten() else { return Ok(Command::none()) };
        let model = self.agent.as_ref().or(self.summariser.as_ref()).ok_or_else(no_model)?;
        let mut update = Update::none().set::<Compact>(None);
        match self.compact_now(cx, state, ask, model).await {
            Ok(compacted) => update.extend(compacted),
            Err(why) => {
                let event = json!({"type": "context_not_compacted", "reason": why.code(), "message": why.to_string()});
                cx.emit(AgentEvent::Custom(event)).await;
            }
        }
        let waits = state.messages().last().is_some_and(|last| last.body == Body::Human);
        let command = Command::from(update);
        Ok(if waits { command } else { command.goto(Goto::End) })
    }

    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let views = cx.scratch.get_or_default::<Views>();
        let stored = request.state.get::<Compacted>();
        let mut record = views.record(stored);
        let known = stored.map_or(0, |record| record.generation);
        let job = self.job(cx, request.model.as_ref(), &request.chat, request.state.messages());
        let mut turn = Turn { job, views: &views, shown: request.chat.clone(), tokens: 0 };
        turn.show(&record);
        let mut steps = &Step::ALL[..];
        if turn.job.is_due(&record, turn.tokens, turn.shown.messages.len()) {
            let shrunk = turn.shrink(&mut record, steps, Reason::Budget).await?;
            steps = after(steps, shrunk);
        }
        let mut attempts = 0;
        loop {
            let asked = ModelRequest { chat: turn.shown.clone(), ..request.clone() };
            let error = match next.run(asked).await {
                Ok(mut response) => {
                    if record.generation > known {
                        response.update.extend(Update::none().set::<Compacted>(record));
                    }
                    return Ok(response);
                }
                Err(HookError::Model(error)) if is_overflow(&error) => error,
                Err(other) => return Err(other),
            };
            attempts += 1;
            turn.job.learn(&mut record, turn.tokens, error.kind);
            let before = turn.tokens;
            let shrunk = turn.shrink(&mut record, steps, Reason::Overflow).await?;
            if attempts > ATTEMPTS || shrunk.is_none() || turn.tokens >= before {
                return Err(exhausted(error).into());
            }
            steps = after(steps, shrunk);
        }
    }
}

/// Why a compaction that was asked for changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCompacted {
    #[error("there is nothing to compact yet: all of the conversation is its newest part")]
    NothingOld,
    #[error(
        "the model gave no summary, so nothing was changed; try again, or configure another summarization model"
    )]
    NoSummary,
}

impl NotCompacted {
    /// One word for it, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::NothingOld => "nothing_to_compact",
            Self::NoSummary => "summary_failed",
        }
    }
}

/// One call of the model: what is shown, and how much that is.
struct Turn<'a> {
    job: Job<'a>,
    views: &'a Views,
    shown: ChatRequest,
    tokens: u64,
}

impl Turn<'_> {
    fn show(&mut self, record: &Compaction) {
        let Job { messages, model, config, .. } = self.job;
        self.shown.messages = self.views.of(record, messages, config.truncate_args_over);
        let since = record.newest.as_ref().map(|newest| newest.at);
        let reported = reported(model, messages, since).unwrap_or_default();
        self.tokens = model.count_request(&self.shown).max(reported);
    }

    async fn shrink(
        &mut self,
        record: &mut Compaction,
        steps: &[Step],
        reason: Reason,
    ) -> Result<Option<Shrunk>, HookError> {
        let shrunk = self.job.shrink(record, self.tokens, steps, reason).await;
        if self.job.cx.cancel.is_cancelled() {
            return Err(ModelError::cancelled().into());
        }
        self.views.remember(record);
        self.show(record);
        Ok(shrunk)
    }
}

/// The steps that are left, if the one that was taken was not enough. The last one can be taken again, shorter.
fn after(steps: &'static [Step], shrunk: Option<Shrunk>) -> &'static [Step] {
    let taken = shrunk.map(|shrunk| shrunk.step);
    let left = steps.iter().position(|step| Some(*step) > taken).and_then(|at| steps.get(at..));
    left.unwrap_or(&[Step::Hard])
}

fn is_overflow(error: &ModelError) -> bool {
    matches!(error.kind, ModelErrorKind::ContextOverflow { .. })
}

fn exhausted(error: ModelError) -> ModelError {
    error.note(
        "the conversation was made as short as it can be, and the newest messages alone are still too long",
    )
}

fn no_model() -> HookError {
    HookError::Other(
        "`compact` was asked for, but this agent's `Summarization` was given no model; give it one with \
         `Summarization::agent_model`"
            .into(),
    )
}

impl fmt::Debug for Summarization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Summarization")
            .field("config", &self.config)
            .field("summariser", &self.summariser.as_ref().map(|model| &model.profile().name))
            .finish_non_exhaustive()
    }
}
