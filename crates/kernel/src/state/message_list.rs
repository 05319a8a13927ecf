//! A conversation that is cheap to copy: long threads are cloned at every step, and must not be walked each time.
//!
//! Invariant: two lists made from one another share the chunks they have in common, so comparing and cloning them
//! costs chunks, not messages.

use std::fmt;
use std::iter::FlatMap;
use std::slice;
use std::sync::Arc;

use hart_types::Message;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const CHUNK: usize = 64;

/// Messages in order. Every chunk but the last is full.
#[derive(Clone, Default)]
pub struct MessageList {
    chunks: Vec<Chunk>,
}

impl MessageList {
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub fn iter(&self) -> Iter<'_> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// From the message at `start` on, without walking what comes before.
    pub fn iter_from(&self, start: usize) -> impl Iterator<Item = &Arc<Message>> {
        self.chunks.iter().skip(start / CHUNK).flat_map(|chunk| chunk.iter()).skip(start % CHUNK)
    }

    pub fn get(&self, at: usize) -> Option<&Arc<Message>> {
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)
    }

    pub fn last(&self) -> Option<&Arc<Message>> {
        self.chunks.last()?.last()
    }

    pub fn push(&mut self, message: Arc<Message>) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => Arc::make_mut(last).push(message),
            _ => self.chunks.push(Arc::new(vec![message])),
        }
    }

    /// How many messages from the start are the very same ones, not merely equal.
    pub fn common_prefix(&self, other: &Self) -> usize {
        let mut chunks = self.chunks.iter().zip(&other.chunks);
        let same = chunks.by_ref().take_while(|(ours, theirs)| Arc::ptr_eq(ours, theirs)).count();
        let (ours, theirs) = (self.chunks.get(same), other.chunks.get(same));
        let within = ours.zip(theirs).map_or(0, |(ours, theirs)| {
            ours.iter().zip(theirs.iter()).take_while(|(ours, theirs)| Arc::ptr_eq(ours, theirs)).count()
        });
        // Every shared chunk is full, except perhaps the last one of both lists.
        (same * CHUNK + within).min(self.len()).min(other.len())
    }

    pub(super) fn replace(&mut self, at: usize, message: Arc<Message>) {
        if let Some(chunk) = self.chunks.get_mut(at / CHUNK)
            && let Some(slot) = Arc::make_mut(chunk).get_mut(at % CHUNK)
        {
            *slot = message;
        }
    }

    /// Rare: everything behind it moves.
    pub(super) fn remove(&mut self, at: usize) {
        let tail: Vec<Arc<Message>> = self.iter_from(at + 1).cloned().collect();
        self.chunks.truncate(at / CHUNK + 1);
        if let Some(chunk) = self.chunks.last_mut() {
            Arc::make_mut(chunk).truncate(at % CHUNK);
        }
        if self.chunks.last().is_some_and(|chunk| chunk.is_empty()) {
            self.chunks.pop();
        }
        self.extend(tail);
    }

    pub(super) fn clear(&mut self) {
        self.chunks.clear();
    }
}

type Chunk = Arc<Vec<Arc<Message>>>;
type ChunkIter<'a> = slice::Iter<'a, Arc<Message>>;
type Iter<'a> = FlatMap<slice::Iter<'a, Chunk>, ChunkIter<'a>, fn(&'a Chunk) -> ChunkIter<'a>>;

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
