//! A conversation that is cheap to copy: long threads are cloned at every step, and must not be walked each time.
//!
//! Invariant: two lists made from one another share the chunks they have in common, so comparing and cloning them
//! costs chunks, not messages.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter::FlatMap;
use std::slice;
use std::sync::Arc;

use hart_types::{Message, MessageId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const CHUNK: usize = 64;

/// Messages in order. Every chunk but the last is full.
#[derive(Clone, Default)]
pub struct MessageList {
    chunks: Vec<Arc<Chunk>>,
}

impl MessageList {
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.messages.len())
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub fn iter(&self) -> Iter<'_> {
        self.chunks.iter().flat_map(|chunk| &chunk.messages)
    }

    /// From the message at `start` on, without walking what comes before.
    pub fn iter_from(&self, start: usize) -> impl Iterator<Item = &Arc<Message>> {
        self.chunks.iter().skip(start / CHUNK).flat_map(|chunk| &chunk.messages).skip(start % CHUNK)
    }

    pub fn get(&self, at: usize) -> Option<&Arc<Message>> {
        self.chunks.get(at / CHUNK)?.messages.get(at % CHUNK)
    }

    pub fn last(&self) -> Option<&Arc<Message>> {
        self.chunks.last()?.messages.last()
    }

    /// Where the newest message with this id is. Of those with another id only their marks are looked at.
    pub fn position(&self, id: &MessageId) -> Option<usize> {
        let mark = mark(Some(id));
        let (n, at) = self.chunks.iter().enumerate().rev().find_map(|(n, chunk)| {
            let mut messages = chunk.marks.iter().zip(&chunk.messages);
            let at = messages.rposition(|(known, message)| *known == mark && message.id.as_ref() == Some(id));
            Some((n, at?))
        })?;
        Some(n * CHUNK + at)
    }

    pub fn push(&mut self, message: Arc<Message>) {
        match self.chunks.last_mut() {
            Some(last) if last.messages.len() < CHUNK => Arc::make_mut(last).push(message),
            _ => {
                let mut chunk = Chunk::default();
                chunk.push(message);
                self.chunks.push(Arc::new(chunk));
            }
        }
    }

    /// How many messages from the start are the very same ones, not merely equal.
    pub fn common_prefix(&self, other: &Self) -> usize {
        let mut chunks = self.chunks.iter().zip(&other.chunks);
        let same = chunks.by_ref().take_while(|(ours, theirs)| Arc::ptr_eq(ours, theirs)).count();
        let (ours, theirs) = (self.chunks.get(same), other.chunks.get(same));
        let within = ours.zip(theirs).map_or(0, |(ours, theirs)| {
            let both = ours.messages.iter().zip(&theirs.messages);
            both.take_while(|(ours, theirs)| Arc::ptr_eq(ours, theirs)).count()
        });
        // Every shared chunk is full, except perhaps the last one of both lists.
        (same * CHUNK + within).min(self.len()).min(other.len())
    }

    pub(super) fn replace(&mut self, at: usize, message: Arc<Message>) {
        if let Some(chunk) = self.chunks.get_mut(at / CHUNK) {
            Arc::make_mut(chunk).replace(at % CHUNK, message);
        }
    }

    /// Rare: everything behind it moves.
    pub(super) fn remove(&mut self, at: usize) {
        let tail: Vec<Arc<Message>> = self.iter_from(at + 1).cloned().collect();
        self.chunks.truncate(at / CHUNK + 1);
        if let Some(chunk) = self.chunks.last_mut() {
            Arc::make_mut(chunk).truncate(at % CHUNK);
        }
        if self.chunks.last().is_some_and(|chunk| chunk.messages.is_empty()) {
            self.chunks.pop();
        }
        self.extend(tail);
    }

    pub(super) fn clear(&mut self) {
        self.chunks.clear();
    }
}

/// Named by an iterator's type, and not to be had outside.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    messages: Vec<Arc<Message>>,
    /// Of each message's id: a thread that is read again is searched for every message it has.
    marks: Vec<u32>,
}

impl Chunk {
    fn push(&mut self, message: Arc<Message>) {
        self.marks.push(mark(message.id.as_ref()));
        self.messages.push(message);
    }

    fn replace(&mut self, at: usize, message: Arc<Message>) {
        if let (Some(known), Some(slot)) = (self.marks.get_mut(at), self.messages.get_mut(at)) {
            (*known, *slot) = (mark(message.id.as_ref()), message);
        }
    }

    fn truncate(&mut self, len: usize) {
        self.marks.truncate(len);
        self.messages.truncate(len);
    }
}

/// Equal ids have equal ones.
fn mark(id: Option<&MessageId>) -> u32 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    // Half of it tells messages apart as well.
    (hasher.finish() >> 32) as u32
}

type Iter<'a> =
    FlatMap<slice::Iter<'a, Arc<Chunk>>, &'a Vec<Arc<Message>>, fn(&'a Arc<Chunk>) -> &'a Vec<Arc<Message>>>;

impl<'a> IntoIterator for &'a MessageList {
    type Item = &'a Arc<Message>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Extend<Arc<Message>> for MessageList {
    fn extend<I: IntoIterator<Item = Arc<Message>>>(&mut self, messages: I) {
        for message in messages {
            self.push(message);
        }
    }
}

impl FromIterator<Arc<Message>> for MessageList {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        let mut list = Self::default();
        list.extend(messages);
        list
    }
}

impl From<Vec<Arc<Message>>> for MessageList {
    fn from(messages: Vec<Arc<Message>>) -> Self {
        messages.into_iter().collect()
    }
}

impl PartialEq for MessageList {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for MessageList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for MessageList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for MessageList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Arc<Message>>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(n: usize) -> Arc<Message> {
        Arc::new(Message::human(n.to_string()))
    }

    /// Held against a plain vector, over sizes around the chunk border.
    #[test]
    fn it_behaves_like_a_vector() {
        for size in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let plain: Vec<_> = (0..size).map(message).collect();
            let list = MessageList::from(plain.clone());
            assert_eq!(list.len(), size);
            assert!(list.iter().eq(&plain));
            assert!(list.iter().rev().eq(plain.iter().rev()));
            assert_eq!(list.last(), plain.last());
            for at in 0..size {
                assert_eq!(list.get(at), plain.get(at));
                assert!(list.iter_from(at).eq(&plain[at..]));
                let (mut shorter, mut expected) = (list.clone(), plain.clone());
                shorter.remove(at);
                expected.remove(at);
                assert!(shorter.iter().eq(&expected), "without {at} of {size}");
                assert_eq!(shorter.len(), expected.len());
                assert_eq!(shorter.common_prefix(&list), at);
                let mut changed = list.clone();
                changed.replace(at, message(9999));
                assert_eq!(changed.common_prefix(&list), at);
            }
        }
    }

    #[test]
    fn the_newest_message_with_an_id_is_found_wherever_it_is() {
        let named = |id: usize| Arc::new(Message::human("").with_id(id.to_string()));
        let mut list: MessageList = (0..2 * CHUNK + 2).map(named).collect();
        list.push(named(3));
        list.replace(CHUNK, named(7777));
        list.remove(1);
        let at = |id: usize| list.position(&id.to_string().into());
        assert_eq!((at(0), at(1), at(2), at(3)), (Some(0), None, Some(1), Some(2 * CHUNK + 1)));
        assert_eq!((at(CHUNK), at(7777), at(CHUNK + 1)), (None, Some(CHUNK - 1), Some(CHUNK)));
    }

    #[test]
    fn a_longer_copy_shares_what_it_came_from() {
        for size in [0, 1, CHUNK, CHUNK + 5] {
            let list: MessageList = (0..size).map(message).collect();
            let mut longer = list.clone();
            longer.extend((0..CHUNK).map(message));
            assert_eq!(list.common_prefix(&longer), size);
            assert_eq!(list.common_prefix(&list.clone()), size);
        }
    }
}
