//! The storage ports: what the runtime must be able to remember, whatever remembers it.
//!
//! Invariant: each method is one transaction. What it returns has happened and survives a crash, or it returns an error
//! and nothing has happened.

mod assistants;
mod containment;
mod crons;
mod effects;
mod events;
mod feedback;
mod items;
mod leases;
mod outbox;
mod recordings;
mod runs;
mod steps;
mod threads;
mod vitals;

use std::fmt;

pub use assistants::{
    Assistant, AssistantCreated, AssistantPatch, AssistantQuery, AssistantSort, Assistants, VersionQuery,
};
pub use containment::contains;
pub use crons::{Cron, CronQuery, CronSort, Crons};
pub use effects::Effects;
pub use events::{EventScope, Events, StoredEvent};
pub use feedback::{Feedback, FeedbackScope, Feedbacks};
pub use items::{Condition, Item, ItemQuery, Items};
pub use leases::{Claimed, Held, Holding, Lease, Leases, NUMBERS, Sign};
pub use outbox::{Letter, Outbox};
pub use recordings::{Recordings, StoredRecord};
pub use runs::{Admission, AtOnce, Deleted, RunEnd, RunQuery, Runs, Used};
pub use steps::{HistoryQuery, Lineage, Progress, StepInfo, Steps};
pub use threads::{Created, Order, ThreadPatch, ThreadQuery, ThreadSort, Threads};
pub use vitals::{ActiveRuns, Vitals};

/// All of them, over one place.
pub trait Store:
    Threads
    + Runs
    + Leases
    + Effects
    + Steps
    + Events
    + Recordings
    + Items
    + Assistants
    + Crons
    + Outbox
    + Feedbacks
    + Vitals
    + fmt::Debug
    + Send
    + Sync
    + 'static
{
}

impl<S> Store for S where
    S: Threads
        + Runs
        + Leases
        + Effects
        + Steps
        + Events
        + Recordings
        + Items
        + Assistants
        + Crons
        + Outbox
        + Feedbacks
        + Vitals
        + fmt::Debug
        + Send
        + Sync
        + 'static
{
}

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error(
        "the disk is full; free some space: runs that wait go on by themselves, what was refused has to be asked for \
         again"
    )]
    Full,
    #[error(
        "the database is damaged: {0}. What else is in it can be used; restore a backup to have this back (`hart \
         backup` makes them)"
    )]
    Damaged(String),
    #[error("there is no thread `{0}`")]
    NoThread(hart_types::ThreadId),
    /// Whoever hears this stops: what it does is no longer wanted.
    #[error(
        "run `{0}` is no longer this process's to execute; another one has taken it over, or it has ended"
    )]
    Lost(hart_types::RunId),
    #[error("{message}")]
    Failed {
        message: String,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl StoreError {
    pub fn failed(
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Failed { message: message.into(), source: Some(source.into()) }
    }
}
