//! A view of a conversation that is extended, not made again, while the conversation only grows.
//!
//! Invariant: a view that continues an earlier one shares its messages and chunks with it, so that whoever caches by
//! them further in (encodings, counts, a provider's prompt cache) finds them again.

use std::sync::Arc;

use hart_kernel::MessageList;
use hart_types::Message;

/// The last view and what it was made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Projection {
    source: MessageList,
    view: MessageList,
}

impl Projection {
    /// `begin` makes the view of everything; `next` of a message that came later.
    pub(crate) fn of(
        &mut self,
        messages: &MessageList,
        begin: impl FnOnce(&MessageList) -> MessageList,
        next: impl Fn(&Arc<Message>) -> Arc<Message>,
    ) -> MessageList {
        let known = self.source.len();
        if known > 0 && self.source.common_prefix(messages) == known {
            self.view.extend(messages.iter_from(known).map(next));
        } else {
            self.view = begin(messages);
        }
        self.source = messages.clone();
        self.view.clone()
    }

    /// The next view is made anew.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// How many messages of this conversation were already looked at.
    pub(crate) fn known(&self, messages: &MessageList) -> usize {
        let known = self.source.len();
        if self.source.common_prefix(messages) == known { known } else { 0 }
    }
}
