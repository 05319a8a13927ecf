//! The outbox: what is still to be told of runs that have ended.
//!
//! Invariant: a letter is put in with the end of its run, in one transaction, and stays until it was delivered or given
//! up.

use async_trait::async_trait;
use bytes::Bytes;
use hart_kernel::Timestamp;

use super::StoreError;
use crate::Run;

#[async_trait]
pub trait Outbox {
    /// Those that are due, the oldest first.
    async fn due_letters(&self, now: Timestamp, limit: u64) -> Result<Vec<Letter>, StoreError>;

    /// When the next one is due.
    async fn next_letter(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Notes how often it was tried and puts it off. False when somebody else did since it was read, or it is gone.
    async fn put_off(&self, letter: &Letter, attempts: u32, until: Timestamp) -> Result<bool, StoreError>;

    async fn drop_letter(&self, id: u64) -> Result<(), StoreError>;
}

/// The end of one run, for one address.
#[derive(Clone, Debug, PartialEq)]
pub struct Letter {
    pub id: u64,
    pub url: String,
    pub run: Run,
    /// What the run came to, as JSON, where it came to anything.
    pub values: Option<Bytes>,
    /// How often it was tried.
    pub attempts: u32,
    pub due: Timestamp,
}
