//! Time, as a parameter.
//!
//! Invariant: this file is the only one that asks the operating system what time it is.

pub use jiff::Timestamp;

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the replacement")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
