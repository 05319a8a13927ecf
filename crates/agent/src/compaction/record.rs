//! What was done to the view of a conversation: the record that survives a restart.
//!
//! Invariant: places in the conversation are messages' ids. An index beside one is only where to look first.

use std::sync::Arc;

use hart_kernel::{MessageList, ReduceError, Scope, StateKey};
use hart_types::{Message, MessageId};
use serde::{Deserialize, Serialize};

/// The key of the latest [`Compaction`].
#[derive(Debug)]
pub struct Compacted;

impl StateKey for Compacted {
    type Value = Compaction;
    type Update = Compaction;
    const NAME: &'static str = "compaction";
    const SCOPE: Scope = Scope::Private;

    fn reduce(_: Option<Self::Value>, update: Self::Update) -> Result<Self::Value, ReduceError> {
        Ok(update)
    }
}

/// How the model is shown a conversation that was too long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// Counts up with every change.
    pub generation: u64,
    pub(crate) cut: Option<Cut>,
    pub(crate) trim: Option<Trim>,
    /// The newest message when this was made; what came later is shown as it is.
    pub(crate) newest: Option<Anchor>,
    /// Messages up to the newest are shown with at most this many characters.
    pub(crate) clip: Option<usize>,
    /// Where what left the view can be read.
    pub(crate) history: Option<String>,
    /// The last message that is there.
    pub(crate) written: Option<Anchor>,
    pub(crate) ceiling: Option<Ceiling>,
    /// What was left when no more could be done, though it was still too much.
    pub(crate) stuck: Option<u64>,
}

/// The old part and what stands for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cut {
    /// The first message that stays.
    pub(crate) from: Anchor,
    /// The newest thing the user had said, if it is in the old part.
    pub(crate) pinned: Option<Anchor>,
    pub(crate) summary: Arc<Message>,
}

/// What is shown of the messages before a place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trim {
    pub(crate) before: Anchor,
    pub(crate) how: Trimming,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trimming {
    /// Long arguments of calls are cut short.
    Args,
    /// And results are left out.
    Results,
    /// And calls too: what was said stays.
    Exchanges,
}

/// What a model was found not to take, in our count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ceiling {
    pub(crate) model: String,
    pub(crate) tokens: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Anchor {
    pub(crate) id: MessageId,
    pub(crate) at: usize,
}

impl Anchor {
    pub(crate) fn of(messages: &MessageList, at: usize) -> Option<Self> {
        let id = messages.get(at)?.id.clone()?;
        Some(Self { id, at })
    }

    pub(crate) fn find(&self, messages: &MessageList) -> Option<usize> {
        let is_it = |message: &Arc<Message>| message.id.as_ref() == Some(&self.id);
        if messages.get(self.at).is_some_and(is_it) {
            return Some(self.at);
        }
        let from_end = messages.iter().rev().position(is_it)?;
        Some(messages.len() - 1 - from_end)
    }
}

impl Compaction {
    /// Where what stays begins. `None` if the thread no longer has that place, because it was taken back to before it.
    pub(crate) fn start(&self, messages: &MessageList) -> Option<usize> {
        self.cut.as_ref().map_or(Some(0), |cut| cut.from.find(messages))
    }

    /// The same without what no longer fits the thread.
    pub(crate) fn for_thread(&self, messages: &MessageList) -> Self {
        if self.start(messages).is_some() {
            return self.clone();
        }
        let (history, ceiling) = (self.history.clone(), self.ceiling.clone());
        Self { generation: self.generation, history, ceiling, ..Self::default() }
    }

    pub(crate) fn ceiling_for(&self, model: &str) -> Option<u64> {
        self.ceiling.as_ref().filter(|ceiling| ceiling.model == model).map(|ceiling| ceiling.tokens)
    }
}
