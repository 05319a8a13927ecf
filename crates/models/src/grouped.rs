//! Conversations whose neighbouring messages of one role are sent as one.
//!
//! Invariant: only the last group may still grow, so only that is left out of what the next request takes over.

use bytes::Bytes;
use hart_kernel::MessageList;
use hart_types::Message;

use crate::body::{Encoder, leading};
use crate::continued::Conversation;
use crate::encoded::Size;

/// Who speaks.
pub(crate) trait Speaker: Copy + Eq {
    /// Whether neighbours become one: all results of a batch of tool calls must stand together.
    fn gathers(self) -> bool;

    /// What stands before the parts of a group. After them comes [`END`].
    fn opening(self) -> &'static [u8];
}

pub(crate) const END: &[u8] = b"]}";

/// The parts of one message, between commas; empty when there is nothing to send.
#[derive(Clone, Debug)]
pub(crate) struct Part<S> {
    pub(crate) speaker: S,
    pub(crate) bytes: Bytes,
}

impl<S> Size for Part<S> {
    fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// The messages but for the last group, taking over what the last request of this conversation already said; and that
/// group, without its end. `encode` gets the position of a message as well.
pub(crate) fn conversation<S: Speaker>(
    encoder: &mut Encoder<Part<S>>,
    messages: &MessageList,
    encode: impl Fn(usize, &Message) -> Part<S>,
) -> (Conversation, Vec<u8>) {
    let mut said = encoder.conversations.take(messages);
    let next = said.next().max(leading(messages));
    let mut open: Option<S> = None;
    let mut group: Vec<u8> = Vec::new();
    for (index, message) in (next..).zip(messages.iter_from(next)) {
        let Part { speaker, bytes } = encoder.messages.of(message, |message| encode(index, message));
        if bytes.is_empty() {
            continue;
        }
        if open == Some(speaker) && speaker.gathers() {
            group.push(b',');
        } else {
            if open.is_some() {
                group.extend_from_slice(END);
                said.push(&group);
                group.clear();
            }
            said.mark(index);
            group.extend_from_slice(speaker.opening());
        }
        group.extend_from_slice(&bytes);
        open = Some(speaker);
    }
    (said, group)
}
