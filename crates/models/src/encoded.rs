//! Keeps the JSON of what is sent again and again: the messages, tools and system prompt of a growing conversation.
//!
//! Invariant: an entry is found only through the allocation it was made from. The held `Weak` keeps that address from
//! being reused, and an `Arc` with a `Weak` is never changed in place, so a hit is never stale.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Weak};

/// A turn with a few images fits; a conversation of text never comes near.
const MAX_BYTES: usize = 64 * 1024 * 1024;
const FIRST_SWEEP: usize = 1024;

/// Encodings by the address of their source.
#[derive(Debug)]
pub(crate) struct Encodings<T: ?Sized, E> {
    entries: HashMap<usize, Entry<T, E>, BuildHasherDefault<AddressHasher>>,
    bytes: usize,
    /// Dead entries are dropped when this many have gathered, so that a sweep costs nothing per turn.
    sweep_at: usize,
}

#[derive(Debug)]
struct Entry<T: ?Sized, E> {
    source: Weak<T>,
    encoded: E,
    size: usize,
}

/// Nobody outside chooses addresses, so a long conversation need not pay for a hash that resists attack.
#[derive(Debug, Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte)));
    }

    fn write_usize(&mut self, address: usize) {
        let mixed = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<T: ?Sized, E> Default for Encodings<T, E> {
    fn default() -> Self {
        Self { entries: HashMap::default(), bytes: 0, sweep_at: FIRST_SWEEP }
    }
}

impl<T: ?Sized, E: Clone + Size> Encodings<T, E> {
    /// The encoding of `source`, made by `encode` the first time.
    pub(crate) fn of(&mut self, source: &Arc<T>, encode: impl FnOnce(&T) -> E) -> E {
        let address = Arc::as_ptr(source).cast::<()>().addr();
        if let Some(entry) = self.entries.get(&address) {
            return entry.encoded.clone();
        }
        let encoded = encode(source);
        let size = encoded.size();
        if size > MAX_BYTES / 4 {
            return encoded;
        }
        if self.entries.len() >= self.sweep_at || self.bytes + size > MAX_BYTES {
            self.sweep(size);
        }
        self.bytes += size;
        let entry = Entry { source: Arc::downgrade(source), encoded: encoded.clone(), size };
        self.entries.insert(address, entry);
        encoded
    }

    fn sweep(&mut self, wanted: usize) {
        self.entries.retain(|_, entry| entry.source.strong_count() > 0);
        self.bytes = self.entries.values().map(|entry| entry.size).sum();
        if self.bytes + wanted > MAX_BYTES {
            self.entries.clear();
            self.bytes = 0;
        }
        self.sweep_at = FIRST_SWEEP.max(self.entries.len() * 2);
    }
}

/// How much memory an encoding holds.
pub(crate) trait Size {
    fn size(&self) -> usize;
}

impl Size for bytes::Bytes {
    fn size(&self) -> usize {
        self.len()
    }
}

/// Appends `value` as JSON. Nothing encoded here can fail: keys are strings and the sink is memory.
pub(crate) fn write_json(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    let before = out.len();
    if let Err(error) = serde_json::to_writer(&mut *out, value) {
        tracing::error!(%error, "a value could not be written as JSON");
        out.truncate(before);
        out.extend_from_slice(b"null");
    }
}

/// Appends the items between commas.
pub(crate) fn write_joined<B: AsRef<[u8]>>(out: &mut Vec<u8>, items: impl IntoIterator<Item = B>) {
    for (position, item) in items.into_iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        out.extend_from_slice(item.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_source_is_encoded_once_and_another_at_its_place_never_sees_it() {
        let mut encodings = Encodings::<String, Bytes>::default();
        let source = Arc::new("a".to_owned());
        let mut made = 0;
        for _ in 0..3 {
            let got = encodings.of(&source, |text| {
                made += 1;
                Bytes::from(text.clone())
            });
            assert_eq!(got, "a");
        }
        assert_eq!(made, 1);
        drop(source);
        for n in 0..100 {
            let source = Arc::new(n.to_string());
            assert_eq!(encodings.of(&source, |text| Bytes::from(text.clone())), n.to_string());
        }
    }

    #[test]
    fn a_message_changed_through_make_mut_is_encoded_anew() {
        let mut encodings = Encodings::<String, Bytes>::default();
        let mut source = Arc::new("before".to_owned());
        encodings.of(&source, |text| Bytes::from(text.clone()));
        Arc::make_mut(&mut source).replace_range(.., "after");
        assert_eq!(encodings.of(&source, |text| Bytes::from(text.clone())), "after");
    }

    #[test]
    fn dead_entries_go() {
        let mut encodings = Encodings::<usize, Bytes>::default();
        for n in 0..10 * FIRST_SWEEP {
            encodings.of(&Arc::new(n), |n| Bytes::from(n.to_string()));
        }
        assert!(encodings.entries.len() <= FIRST_SWEEP);
        assert_eq!(encodings.bytes, encodings.entries.values().map(|entry| entry.size).sum::<usize>());
    }

    #[test]
    fn what_is_huge_is_not_kept() {
        let mut encodings = Encodings::<usize, Bytes>::default();
        encodings.of(&Arc::new(0), |_| Bytes::from(vec![0; MAX_BYTES / 4 + 1]));
        assert!(encodings.entries.is_empty());
    }
}
