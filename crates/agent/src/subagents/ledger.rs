//! What was delegated in a thread and what became of it, so that nothing is done twice.
//!
//! Invariant: the ledger is state, not conversation: whatever is summed up, the model can still be told of it.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{MessageList, ReduceError, Scope, State, StateKey};
use hart_types::{Message, MessageId, RunId, ToolCallId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Status;
use super::outcome::Outcome;
use crate::escape;
use crate::reminder::background;
use crate::view::{Shown, View};

/// The state key `delegations`.
#[derive(Debug)]
pub struct Delegations;

/// One entry. The names are DeerFlow's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegated {
    /// The call.
    pub id: ToolCallId,
    /// The run that the task was begun with; one that was resumed counts as the one that paused.
    pub run_id: RunId,
    pub description: String,
    pub subagent_type: String,
    pub status: Status,
    /// The beginning of the report, or of the error.
    pub result_brief: String,
    pub result_sha256: String,
}

/// Older ones than these are forgotten.
const KEPT: usize = 50;
const DESCRIPTION_CHARS: usize = 200;
const BRIEF_CHARS: usize = 2000;
/// What the model is reminded of.
const SHOWN_CHARS: usize = 300;

impl StateKey for Delegations {
    type Value = Vec<Delegated>;
    type Update = Delegated;
    const NAME: &'static str = "delegations";
    const SCOPE: Scope = Scope::Thread;

    fn reduce(current: Option<Vec<Delegated>>, new: Delegated) -> Result<Vec<Delegated>, ReduceError> {
        let mut all = current.unwrap_or_default();
        all.push(new);
        let old = all.len().saturating_sub(KEPT);
        all.drain(..old);
        Ok(all)
    }
}

impl Delegated {
    pub(crate) fn of(id: &ToolCallId, run: RunId, outcome: &Outcome) -> Self {
        let result = match outcome.status {
            Status::Completed => &outcome.said,
            _ => outcome.error.as_ref().unwrap_or(&outcome.said),
        };
        Self {
            id: id.clone(),
            run_id: run,
            description: cut(&outcome.description, DESCRIPTION_CHARS),
            subagent_type: outcome.kind.clone(),
            status: outcome.status,
            result_brief: brief(result),
            result_sha256: sha256(&outcome.said),
        }
    }
}

pub(super) fn brief(text: &str) -> String {
    cut(text, BRIEF_CHARS)
}

pub(super) fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn rendered<'a>(entries: impl Iterator<Item = &'a Delegated>) -> String {
    let mut text =
        "What was delegated earlier in this conversation, and what came of it. Do not send anyone for it \
                    again; build on it:\n"
            .to_owned();
    for Delegated { description, subagent_type, status, result_brief, .. } in entries {
        let brief = result_brief.split_whitespace().collect::<Vec<_>>().join(" ");
        let (description, brief) = (escape(description), escape(&cut(&brief, SHOWN_CHARS)));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- [{}] {description} ({subagent_type}): {brief}", status.name());
    }
    text
}

/// The run that the current task was begun with, and how many it has sent. The ledger forgets; this does not.
pub(crate) struct Turn;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) run: RunId,
    /// Before the answer that was counted last.
    before: u32,
    answer: Option<MessageId>,
    of_answer: u32,
    /// What those have used, counted in the same way.
    #[serde(default)]
    tokens_before: u64,
    #[serde(default)]
    tokens_of_answer: u64,
}

/// A task begins, or somebody was sent by an answer. What is written down is told apart by its fields, so one that has
/// more of them stands first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum TurnWrite {
    Begun(RunId),
    /// Those that wait for a person have used so much.
    Waiting {
        answer: Option<MessageId>,
        waiting: u64,
    },
    Sent {
        answer: Option<MessageId>,
        #[serde(default)]
        tokens: u64,
    },
}

impl Sent {
    fn begun(run: RunId) -> Self {
        Self { run, before: 0, answer: None, of_answer: 0, tokens_before: 0, tokens_of_answer: 0 }
    }

    /// What was used by those that were sent before this answer, and by those that were sent by it.
    pub(super) fn tokens(&self, answer: Option<&MessageId>) -> (u64, u64) {
        match self.answer.as_ref() == answer {
            true => (self.tokens_before, self.tokens_of_answer),
            false => (self.tokens_before + self.tokens_of_answer, 0),
        }
    }

    fn and(self, answer: Option<MessageId>, sent: u32, used: u64) -> Self {
        let (before, of_answer) = self.counted(answer.as_ref());
        let (tokens_before, tokens_of_answer) = self.tokens(answer.as_ref());
        Self {
            run: self.run,
            before,
            of_answer: of_answer + sent,
            tokens_before,
            tokens_of_answer: tokens_of_answer + used,
            answer,
        }
    }

    /// How many were sent before this answer, and how many by it: some may have come back before a pause.
    pub(crate) fn counted(&self, answer: Option<&MessageId>) -> (u32, u32) {
        match self.answer.as_ref() == answer {
            true => (self.before, self.of_answer),
            false => (self.before + self.of_answer, 0),
        }
    }
}

impl StateKey for Turn {
    type Value = Sent;
    type Update = TurnWrite;
    const NAME: &'static str = "__delegating__";
    const SCOPE: Scope = Scope::Private;

    fn reduce(current: Option<Sent>, write: TurnWrite) -> Result<Sent, ReduceError> {
        let current = || current.unwrap_or_else(|| Sent::begun("".into()));
        Ok(match write {
            TurnWrite::Begun(run) => Sent::begun(run),
            TurnWrite::Waiting { answer, waiting } => current().and(answer, 0, waiting),
            TurnWrite::Sent { answer, tokens } => current().and(answer, 1, tokens),
        })
    }
}

/// The answer that the calls of a state stand in.
pub(crate) fn answer_in(state: &State) -> Option<MessageId> {
    state.messages().iter().rev().find(|message| message.as_ai().is_some())?.id.clone()
}

/// Where in the conversation the ledger is repeated: the same place in every request, so that the start of the
/// conversation stays the same.
#[derive(Debug)]
pub(crate) struct Reminded;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Place {
    after: MessageId,
    /// Whose results it stands for.
    of: Vec<ToolCallId>,
    text: String,
}

impl StateKey for Reminded {
    type Value = Place;
    type Update = Place;
    const NAME: &'static str = "delegations_reminder";
    const SCOPE: Scope = Scope::Private;

    fn reduce(_: Option<Place>, update: Place) -> Result<Place, ReduceError> {
        Ok(update)
    }
}

/// One run's view of the conversation, with the ledger where results are no longer in it.
#[derive(Default)]
pub(crate) struct Recall(
    /// Never held across an await.
    Mutex<Kept>,
);

#[derive(Default)]
struct Kept {
    seen: MessageList,
    /// The results that are in what was seen.
    present: HashSet<ToolCallId>,
    place: Option<(Place, Arc<Message>)>,
    has_place: bool,
    view: View,
}

impl Recall {
    /// The messages with the ledger, if it is needed, and where it stands, if that is new.
    pub(crate) fn shown(&self, messages: &MessageList, state: &State) -> (MessageList, Option<Place>) {
        let entries = state.get::<Delegations>().map_or(&[][..], Vec::as_slice);
        if entries.is_empty() {
            return (messages.clone(), None);
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.place.is_none()
            && let Some(place) = state.get::<Reminded>()
        {
            kept.set(place.clone());
        }
        kept.look(messages);
        let new = kept.lacks(entries).then(|| Place::behind(messages, entries, &kept.present)).flatten();
        if let Some(place) = &new {
            kept.set(place.clone());
            kept.has_place = true;
        }
        let Kept { place, view, .. } = &mut *kept;
        let shown = match place {
            Some((place, reminder)) => view.of(messages, |message| {
                if message.id.as_ref() == Some(&place.after) {
                    Shown::FollowedBy(Arc::clone(reminder))
                } else {
                    Shown::AsItIs
                }
            }),
            None => messages.clone(),
        };
        (shown, new)
    }
}

impl Kept {
    /// Takes note of what is new in the conversation.
    fn look(&mut self, messages: &MessageList) {
        if self.seen.common_prefix(messages) < self.seen.len() {
            self.seen = MessageList::default();
            self.present.clear();
            self.has_place = false;
        }
        let after = self.place.as_ref().map(|(place, _)| &place.after);
        for message in messages.iter_from(self.seen.len()) {
            self.present.extend(message.as_tool_result().map(|result| result.tool_call_id.clone()));
            self.has_place |= after.is_some() && message.id.as_ref() == after;
        }
        self.seen = messages.clone();
    }

    /// Whether a result is neither in the conversation nor told of in it.
    fn lacks(&self, entries: &[Delegated]) -> bool {
        let told = self.place.as_ref().filter(|_| self.has_place);
        entries.iter().any(|entry| {
            let is_told = told.is_some_and(|(place, _)| place.of.contains(&entry.id));
            !is_told && !self.present.contains(&entry.id)
        })
    }

    fn set(&mut self, place: Place) {
        let reminder = Arc::new(background("delegations", place.text.clone()));
        self.place = Some((place, reminder));
        self.view.forget();
    }
}

impl Place {
    fn behind(messages: &MessageList, entries: &[Delegated], present: &HashSet<ToolCallId>) -> Option<Self> {
        let after = messages.last()?.id.clone()?;
        let gone = || entries.iter().filter(|entry| !present.contains(&entry.id));
        Some(Self { after, of: gone().map(|entry| entry.id.clone()).collect(), text: rendered(gone()) })
    }
}
