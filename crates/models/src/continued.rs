//! Lets a request begin where the last one of the same conversation ended.
//!
//! Invariant: what is taken over encodes exactly the messages it stands for. They are compared by identity, and a
//! place to resume at is used only if the message there is still the same one.

use std::collections::VecDeque;

use hart_kernel::MessageList;

/// Conversations that one client keeps ready; more at once are encoded from their parts again.
const KEPT: usize = 8;
/// A longer one is not worth its memory.
const MAX_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Conversations {
    /// The most recent last.
    recent: VecDeque<Conversation>,
}

/// A conversation's encoding, up to its last whole group of messages.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: MessageList,
    bytes: Vec<u8>,
    /// Where encoding may be taken up: the index of a message, and the bytes that stand for all before it.
    marks: Vec<(usize, usize)>,
}

impl Conversations {
    /// The kept encoding that `messages` continues the furthest, cut to what they share; or an empty one.
    pub(crate) fn take(&mut self, messages: &MessageList) -> Conversation {
        let shared = |kept: &Conversation| kept.messages.common_prefix(messages);
        let best = self.recent.iter().enumerate().max_by_key(|(_, kept)| shared(kept));
        let mut conversation = match best.map(|(at, kept)| (at, shared(kept))) {
            Some((at, common)) if common > 0 => {
                let mut conversation = self.recent.remove(at).unwrap_or_default();
                conversation.cut(common);
                conversation
            }
            _ => Conversation::default(),
        };
        conversation.messages = messages.clone();
        conversation
    }

    pub(crate) fn keep(&mut self, conversation: Conversation) {
        if conversation.bytes.len() > MAX_BYTES {
            return;
        }
        if self.recent.len() >= KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(conversation);
    }
}

impl Conversation {
    /// The first message that is not encoded yet.
    pub(crate) fn next(&self) -> usize {
        self.marks.last().map_or(0, |(index, _)| *index)
    }

    /// All before the message at `index` is encoded, and what follows depends on nothing before it.
    pub(crate) fn mark(&mut self, index: usize) {
        if self.marks.last().is_none_or(|(last, _)| *last < index) {
            self.marks.push((index, self.bytes.len()));
        }
    }

    /// Appends one item of the list, behind a comma.
    pub(crate) fn push(&mut self, item: &[u8]) {
        self.bytes.push(b',');
        self.bytes.extend_from_slice(item);
    }

    /// The items so far, each behind a comma.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All up to the last item that `wanted` takes, and the rest. Only the newest few are looked at.
    pub(crate) fn split_after_last(&self, wanted: impl Fn(&[u8]) -> bool) -> (&[u8], &[u8]) {
        let ends = self.marks.iter().rev().take(4).map(|(_, end)| *end);
        let starts = ends.clone().skip(1).chain([0]);
        let item = |(start, end): &(usize, usize)| self.bytes.get(*start..*end).is_some_and(&wanted);
        let end = starts.zip(ends).find(item).map_or(0, |(_, end)| end);
        self.bytes.split_at_checked(end).unwrap_or((&[], &self.bytes))
    }

    fn cut(&mut self, common: usize) {
        while self.marks.last().is_some_and(|(index, _)| *index >= common) {
            self.marks.pop();
        }
        self.bytes.truncate(self.marks.last().map_or(0, |(_, length)| *length));
    }
}

/// Appends items that each stand behind a comma to a list that may still be empty.
pub(crate) fn append_items(list: &mut Vec<u8>, is_first: bool, items: &[u8]) {
    let items = if is_first { items.strip_prefix(b",").unwrap_or(items) } else { items };
    list.extend_from_slice(items);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hart_types::Message;

    use super::*;

    fn encode(conversations: &mut Conversations, messages: &MessageList) -> (String, usize) {
        let mut kept = conversations.take(messages);
        let start = kept.next();
        for (index, message) in (start..).zip(messages.iter_from(start)) {
            kept.mark(index);
            kept.push(message.text().as_bytes());
        }
        let text = String::from_utf8(kept.bytes().to_vec()).unwrap();
        conversations.keep(kept);
        (text, messages.len() - start)
    }

    fn list(words: &[&str]) -> MessageList {
        words.iter().map(|word| Arc::new(Message::human(*word))).collect()
    }

    #[test]
    fn a_longer_conversation_costs_only_its_end() {
        let mut conversations = Conversations::default();
        let mut messages = list(&["a", "b", "c"]);
        assert_eq!(encode(&mut conversations, &messages), (",a,b,c".into(), 3));
        messages.push(Arc::new(Message::human("d")));
        assert_eq!(encode(&mut conversations, &messages), (",a,b,c,d".into(), 2));
        assert_eq!(encode(&mut conversations, &list(&["a", "x"])), (",a,x".into(), 2));
        assert_eq!(encode(&mut conversations, &messages), (",a,b,c,d".into(), 1));
    }

    #[test]
    fn a_message_that_was_replaced_is_encoded_anew() {
        let mut conversations = Conversations::default();
        let messages = list(&["a", "b", "c"]);
        encode(&mut conversations, &messages);
        let changed: MessageList =
            messages.iter().take(1).cloned().chain(list(&["B", "c"]).iter().cloned()).collect();
        assert_eq!(encode(&mut conversations, &changed), (",a,B,c".into(), 3));
        assert_eq!(encode(&mut conversations, &list(&[])), (String::new(), 0));
    }

    #[test]
    fn only_a_few_are_kept() {
        let mut conversations = Conversations::default();
        for _ in 0..3 * KEPT {
            encode(&mut conversations, &list(&["a"]));
        }
        assert_eq!(conversations.recent.len(), KEPT);
    }
}
