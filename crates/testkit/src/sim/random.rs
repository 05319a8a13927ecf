//! Numbers from a seed.
//!
//! Invariant: the same seed gives the same numbers, on every machine and in every version.

use std::ops::RangeInclusive;

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another generator, for what must not shift the numbers of the rest.
    pub fn fork(&mut self) -> Self {
        Self(self.draw())
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.draw() % (range.end() - range.start() + 1)
    }

    /// In so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.draw() % 100 < percent
    }

    /// One of them; there must be one.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.within(0..=of.len() as u64 - 1) as usize].clone()
    }
}
