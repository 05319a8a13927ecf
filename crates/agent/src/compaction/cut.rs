//! Where a conversation can be cut in two.
//!
//! Invariant: no cut separates a call from its result, and none leaves a result at the beginning of what stays.

use std::collections::HashMap;
use std::sync::Arc;

use hart_kernel::MessageList;
use hart_types::{Body, Message, ToolCallId};

use super::config::Size;

/// The messages from `start` on, and where they can be cut.
#[derive(Debug)]
pub(super) struct Cuts<'a> {
    start: usize,
    messages: Vec<&'a Arc<Message>>,
    /// Whether the message at this offset can be the first of what stays.
    whole: Vec<bool>,
}

impl<'a> Cuts<'a> {
    pub(super) fn new(messages: &'a MessageList, start: usize) -> Self {
        let messages: Vec<_> = messages.iter_from(start).collect();
        let whole = boundaries(&messages);
        Self { start, messages, whole }
    }

    /// The first message that stays if about `keep` does: earlier rather than later where a pair would be parted.
    /// `None` if there is nothing before it.
    pub(super) fn keeping(&self, keep: Size, count: impl Fn(&Message) -> u64) -> Option<usize> {
        let len = self.messages.len();
        let wanted = match keep {
            Size::Messages(kept) => len.saturating_sub(kept),
            // A fraction was turned into tokens, if the window is known; otherwise nothing can be said.
            Size::Fraction(_) => return None,
            Size::Tokens(room) => {
                let mut used = 0u64;
                let fits = self.messages.iter().rev().take_while(|message| {
                    used = used.saturating_add(count(message));
                    used <= room
                });
                len - fits.count()
            }
        };
        if wanted == 0 {
            return None;
        }
        let newest = self.offset_of_newest()?;
        let at = self.back(wanted.min(newest)).or_else(|| self.forward(wanted));
        at.map(|offset| self.start + offset)
    }

    /// The latest place to cut: what stays is the last exchange alone.
    pub(super) fn newest(&self) -> Option<usize> {
        self.offset_of_newest().filter(|offset| *offset > 0).map(|offset| self.start + offset)
    }

    fn offset_of_newest(&self) -> Option<usize> {
        self.whole.iter().rposition(|whole| *whole)
    }

    fn back(&self, from: usize) -> Option<usize> {
        (1..=from).rev().find(|offset| self.is_whole(*offset))
    }

    fn forward(&self, from: usize) -> Option<usize> {
        (from.max(1)..self.messages.len()).find(|offset| self.is_whole(*offset))
    }

    fn is_whole(&self, offset: usize) -> bool {
        self.whole.get(offset).copied().unwrap_or(false)
    }
}

/// The newest thing the user said, among the messages before `end`.
pub(super) fn newest_user_message(messages: &MessageList, end: usize) -> Option<usize> {
    let back = messages.len() - end.min(messages.len());
    let from_end = messages.iter().rev().skip(back).position(|message| is_of_the_user(message))?;
    Some(messages.len() - 1 - back - from_end)
}

/// Other middlewares speak in the user's place too; such messages are marked as not to be shown.
fn is_of_the_user(message: &Message) -> bool {
    let told = |key: &str| message.additional_kwargs.get(key);
    let hidden = told("hide_from_ui").is_some_and(|hidden| hidden == true);
    message.body == Body::Human && (!hidden || told("human_input_response").is_some())
}

fn boundaries(messages: &[&Arc<Message>]) -> Vec<bool> {
    // Ids may come again in a later answer: a result belongs to the latest call of its id before it.
    let mut issuers: HashMap<&ToolCallId, usize> = HashMap::new();
    let mut issued_at: Vec<Option<usize>> = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        issued_at
            .push(message.as_tool_result().and_then(|result| issuers.get(&result.tool_call_id)).copied());
        if let Some(ai) = message.as_ai() {
            let ids = ai.tool_calls.iter().map(|call| &call.id);
            let ids = ids.chain(ai.invalid_tool_calls.iter().map(|call| &call.id)).flatten();
            issuers.extend(ids.map(|id| (id, at)));
        }
    }
    // From the end: the earliest call that something from here on answers.
    let mut earliest = usize::MAX;
    let mut whole = vec![false; messages.len()];
    for (at, message) in messages.iter().enumerate().rev() {
        earliest = earliest.min(issued_at.get(at).copied().flatten().unwrap_or(usize::MAX));
        let can_begin = !matches!(message.body, Body::Tool(_)) && message.id.is_some();
        if let Some(slot) = whole.get_mut(at) {
            *slot = can_begin && earliest >= at;
        }
    }
    whole
}
