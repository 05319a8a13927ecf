//! The threads of a user, as a client lists them.
//!
//! Invariant: a list reads the threads it shows and no others, however many there are.

use std::cmp::Reverse;
use std::fs;
use std::io;

use hart_kernel::{Interrupt, Snapshot, Step, Timestamp};
use hart_types::ThreadId;

use crate::thread_log::{ThreadLog, read};

/// One line of a list of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadSummary {
    pub id: ThreadId,
    /// Where a middleware gave it one.
    pub title: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A thread, looked at without running it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadState {
    pub id: ThreadId,
    /// What it has come to; [`Snapshot::to_json`] is the `values` object.
    pub values: Snapshot,
}

impl ThreadState {
    /// What it waits to be told; empty unless it paused.
    pub fn interrupts(&self) -> &[Interrupt] {
        self.values.interrupts()
    }
}

/// The state key of a thread's title, whichever middleware owns it.
const TITLE: &str = "title";

/// The newest `limit` threads, the one that was used last first.
pub(super) fn newest(log: &ThreadLog, limit: usize) -> io::Result<Vec<ThreadSummary>> {
    let mut found = Vec::new();
    for (id, file) in log.all()? {
        found.push((fs::metadata(&file)?.modified()?, id, file));
    }
    found.sort_by_key(|(used, ..)| Reverse(*used));
    let mut threads = Vec::new();
    for (_, id, file) in found.into_iter().take(limit) {
        // One without a step was claimed, but nobody has said anything in it.
        threads.extend(summary(id, &read(&file)?));
    }
    threads.sort_by_key(|thread: &ThreadSummary| Reverse(thread.updated_at));
    Ok(threads)
}

fn summary(id: ThreadId, steps: &[Step]) -> Option<ThreadSummary> {
    let writes = steps.iter().rev().flat_map(|step| step.writes.iter().rev());
    let title = writes.filter(|write| write.key == TITLE).find_map(|write| write.value.as_str());
    Some(ThreadSummary {
        id,
        title: title.map(str::to_owned),
        created_at: steps.first()?.created_at,
        updated_at: steps.last()?.created_at,
    })
}
