//! Crons: runs that come again and again.
//!
//! Invariant: a due time is passed on once, whoever asks and however often.

use async_trait::async_trait;
use hart_kernel::Timestamp;
use hart_types::{AssistantId, CronId, ThreadId, UserId};
use serde_json::{Map, Value};

use super::{Order, StoreError};

#[async_trait]
pub trait Crons {
    async fn create_cron(&self, cron: Cron) -> Result<(), StoreError>;

    async fn cron(&self, id: &CronId) -> Result<Option<Cron>, StoreError>;

    /// Replaces it, unless it was changed since `seen`; whether it did.
    async fn replace_cron(&self, cron: Cron, seen: Timestamp) -> Result<bool, StoreError>;

    /// Whether there was one.
    async fn delete_cron(&self, id: &CronId) -> Result<bool, StoreError>;

    async fn search_crons(&self, query: &CronQuery) -> Result<Vec<Cron>, StoreError>;

    async fn count_crons(&self, query: &CronQuery) -> Result<u64, StoreError>;

    /// Those that are enabled and due, the longest overdue first.
    async fn due_crons(&self, now: Timestamp, limit: u64) -> Result<Vec<Cron>, StoreError>;

    /// When the next one is due.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;
}

/// What is started, how, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Cron {
    pub id: CronId,
    pub assistant: AssistantId,
    /// `None` runs on a new thread each time.
    pub thread: Option<ThreadId>,
    pub user: UserId,
    /// As [`crate::Schedule`] reads it.
    pub schedule: String,
    /// By its name in the time zone database.
    pub timezone: String,
    pub end_time: Option<Timestamp>,
    /// What a run is asked with.
    pub payload: Map<String, Value>,
    pub metadata: Map<String, Value>,
    /// Keeps the threads of its own.
    pub keep_threads: bool,
    pub enabled: bool,
    /// None when it has come to its end.
    pub next_run: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Clone, Debug, Default)]
pub struct CronQuery {
    pub assistant: Option<AssistantId>,
    pub thread: Option<ThreadId>,
    pub enabled: Option<bool>,
    /// What the metadata must contain.
    pub metadata: Map<String, Value>,
    pub sort: CronSort,
    pub order: Order,
    pub limit: u64,
    pub offset: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CronSort {
    Id,
    Assistant,
    Thread,
    NextRun,
    EndTime,
    #[default]
    Created,
    Updated,
}
