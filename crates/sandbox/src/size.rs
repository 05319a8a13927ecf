//! An amount of bytes in words.
//!
//! Invariant: the same number is always the same text.

use std::fmt;

pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= 10 << 30 => write!(f, "{} GiB", bytes >> 30),
            bytes => write!(f, "{} MiB", bytes >> 20),
        }
    }
}
