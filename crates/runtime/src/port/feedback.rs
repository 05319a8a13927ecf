//! Feedback: what people thought of runs.
//!
//! Invariant: feedback goes with its run. Somebody has one opinion of a run as a whole, and one of each message.

use async_trait::async_trait;
use hart_kernel::Timestamp;
use hart_types::{RunId, ThreadId, UserId};

use super::StoreError;

#[async_trait]
pub trait Feedbacks {
    /// In place of what the same person said of the same before. `None` when there is no such run on the thread.
    async fn put_feedback(&self, feedback: Feedback) -> Result<Option<Feedback>, StoreError>;

    /// Oldest first.
    async fn feedback(&self, of: &FeedbackScope) -> Result<Vec<Feedback>, StoreError>;

    /// How many there were.
    async fn delete_feedback(&self, of: &FeedbackScope) -> Result<u64, StoreError>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct Feedback {
    pub id: String,
    pub thread: ThreadId,
    pub run: RunId,
    pub user: UserId,
    /// `None` is about the whole run.
    pub message: Option<String>,
    /// 1 or -1.
    pub rating: i8,
    pub comment: Option<String>,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedbackScope {
    Thread(ThreadId),
    Run(RunId),
    /// This one, of this run.
    One(RunId, String),
}
