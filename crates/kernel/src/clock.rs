//! Time, as a parameter.
//!
//! Invariant: this file is the only one that asks the operating system what time it is, and where.

pub use jiff::Timestamp;
pub use jiff::tz::TimeZone;

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Where the user's day begins and ends.
    fn time_zone(&self) -> TimeZone {
        TimeZone::UTC
    }
}

#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the replacement")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn time_zone(&self) -> TimeZone {
        TimeZone::system()
    }
}
