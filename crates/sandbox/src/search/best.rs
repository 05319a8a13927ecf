//! The first results of a search in path order, found by several threads in any order.
//!
//! Invariant: what is returned, and whether there was more, is the same as if one thread had gone in path order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::files::path_order;

/// What one thread found, as far as it can still count.
pub(super) struct Best<'a, T> {
    found: Vec<Found<T>>,
    /// The sum of their weights.
    weight: usize,
    limit: usize,
    more: bool,
    cutoff: &'a Cutoff,
}

pub(super) struct Found<T> {
    pub(super) key: Vec<u8>,
    /// For how many results it stands.
    weight: usize,
    pub(super) item: T,
}

impl<'a, T> Best<'a, T> {
    pub(super) fn new(limit: usize, cutoff: &'a Cutoff) -> Self {
        Self { found: Vec::new(), weight: 0, limit, more: false, cutoff }
    }

    pub(super) fn push(&mut self, key: &[u8], weight: usize, item: T) {
        self.found.push(Found { key: key.to_vec(), weight, item });
        self.weight += weight;
        // Sorting now and then costs less than keeping everything in order.
        if self.weight >= self.limit.saturating_mul(2).max(64) {
            self.trim();
            if let Some(last) = self.found.last().filter(|_| self.weight >= self.limit) {
                self.cutoff.lower(&last.key);
            }
        }
    }

    /// Whether a path lies behind enough results: neither it nor what is below it counts.
    pub(super) fn excludes(&self, key: &[u8]) -> bool {
        self.cutoff.excludes(key)
    }

    fn trim(&mut self) {
        self.found.sort_by(|a, b| path_order(&a.key, &b.key));
        self.more |= self.weight > self.limit;
        let (mut weight, limit) = (0, self.limit);
        self.found.retain(|found| {
            let counts = weight < limit;
            weight += if counts { found.weight } else { 0 };
            counts
        });
        self.weight = weight;
    }

    /// The first ones (the last of them may stand for more than there is room for), and whether there are more.
    pub(super) fn merge(parts: impl IntoIterator<Item = Self>, limit: usize) -> (Vec<Found<T>>, bool) {
        let (mut found, mut weight, mut more) = (Vec::new(), 0, false);
        for part in parts {
            more |= part.more;
            weight += part.weight;
            found.extend(part.found);
        }
        let nobody = Cutoff::default();
        let mut all = Best { found, weight, limit, more, cutoff: &nobody };
        all.trim();
        (all.found, all.more)
    }
}

/// The path after which no result counts any more, known to all threads of a search.
#[derive(Default)]
pub(super) struct Cutoff {
    /// Spares most searches the lock.
    is_set: AtomicBool,
    last: Mutex<Vec<u8>>,
}

impl Cutoff {
    fn excludes(&self, key: &[u8]) -> bool {
        self.is_set.load(Ordering::Acquire) && path_order(key, &self.lock()).is_gt()
    }

    fn lower(&self, last: &[u8]) {
        let mut now = self.lock();
        if !self.is_set.load(Ordering::Acquire) || path_order(last, &now).is_lt() {
            now.clear();
            now.extend_from_slice(last);
            self.is_set.store(true, Ordering::Release);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn threads_find_what_one_would(
            paths in proptest::collection::btree_set("[ab./]{1,6}", 0..200),
            limit in 0_usize..40,
            order in any::<u64>(),
        ) {
            let weight = |path: &str| 1 + path.len() % 3;
            let mut sorted: Vec<&String> = paths.iter().collect();
            sorted.sort_by(|a, b| path_order(a.as_bytes(), b.as_bytes()));
            let total: usize = sorted.iter().map(|path| weight(path)).sum();
            let mut sum = 0;
            let expected: Vec<&[u8]> = sorted.iter().take_while(|path| {
                let counts = sum < limit;
                sum += weight(path);
                counts
            }).map(|path| path.as_bytes()).collect();
            // Any order, any share of the work.
            let mut mixed = sorted.clone();
            mixed.sort_by_key(|path| path.bytes().fold(order, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()).rotate_left(7)));
            let cutoff = Cutoff::default();
            let mut parts = [Best::new(limit, &cutoff), Best::new(limit, &cutoff)];
            for (index, path) in mixed.into_iter().enumerate() {
                let part = &mut parts[(order >> (index % 64)) as usize & 1];
                if !part.excludes(path.as_bytes()) {
                    part.push(path.as_bytes(), weight(path), ());
                }
            }
            let (found, more) = Best::merge(parts, limit);
            prop_assert_eq!(found.iter().map(|found| found.key.as_slice()).collect::<Vec<_>>(), expected);
            prop_assert_eq!(more, total > limit);
        }
    }
}
