//! Threads: made, found, changed, copied, forgotten.
//!
//! Invariant: forgetting a thread forgets its runs, its steps and its events with it.

use async_trait::async_trait;
use hart_kernel::Timestamp;
use hart_types::{ThreadId, ThreadStatus, UserId};
use serde_json::{Map, Value};

use super::StoreError;
use crate::{Lifetime, Thread};

#[async_trait]
pub trait Threads {
    /// Makes it, unless there is one of that id.
    async fn create_thread(&self, thread: Thread) -> Result<Created, StoreError>;

    async fn thread(&self, id: &ThreadId) -> Result<Option<Thread>, StoreError>;

    /// `None` when there is no such thread.
    async fn patch_thread(&self, id: &ThreadId, patch: ThreadPatch) -> Result<Option<Thread>, StoreError>;

    /// Whether there was one.
    async fn delete_thread(&self, id: &ThreadId) -> Result<bool, StoreError>;

    /// Threads that were to go with their run, and whose run ended before `before`.
    async fn left_behind(&self, before: Timestamp) -> Result<Vec<Thread>, StoreError>;

    /// Does to threads whose time is over, and on which nothing runs, what is to be done then: some at a time. Those that
    /// are gone now.
    async fn expire_threads(&self, now: Timestamp) -> Result<Vec<Thread>, StoreError>;

    async fn search_threads(&self, query: &ThreadQuery) -> Result<Vec<Thread>, StoreError>;

    async fn count_threads(&self, query: &ThreadQuery) -> Result<u64, StoreError>;

    /// The whole history of `from` under a new thread's name; only what leads to the new thread's head, if it has one.
    async fn copy_thread(&self, from: &ThreadId, to: Thread) -> Result<Thread, StoreError>;
}

#[derive(Clone, Debug, PartialEq)]
pub enum Created {
    New(Thread),
    Existing(Thread),
}

/// What to change. Metadata is merged key by key, the rest replaced.
#[derive(Clone, Debug, Default)]
pub struct ThreadPatch {
    pub metadata: Option<Map<String, Value>>,
    pub config: Option<Map<String, Value>>,
    pub status: Option<ThreadStatus>,
    /// `Some(None)` clears it.
    pub error: Option<Option<crate::Failure>>,
    pub updated_at: Option<Timestamp>,
    pub lifetime: Option<Lifetime>,
}

#[derive(Clone, Debug, Default)]
pub struct ThreadQuery {
    pub user: Option<UserId>,
    pub ids: Option<Vec<ThreadId>>,
    /// What the metadata must contain.
    pub metadata: Map<String, Value>,
    pub status: Option<ThreadStatus>,
    pub sort: ThreadSort,
    pub order: Order,
    pub limit: u64,
    pub offset: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadSort {
    Id,
    Status,
    Created,
    #[default]
    Updated,
    StateUpdated,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    Ascending,
    #[default]
    Descending,
}
