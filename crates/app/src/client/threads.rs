//! What is remembered, as a client is told of it.
//!
//! Invariant: a list reads the threads it shows and no others, however many there are.

use std::collections::{BTreeSet, HashMap};

use hart_client::{ClientError, RunInfo, ThreadState, ThreadSummary, Timestamp, Values, name_of};
use hart_runtime::port::{Order, StoreError, ThreadQuery, ThreadSort};
use hart_runtime::{Run, Runtime, StateError, Thread};
use hart_types::{ThreadId, UserId};

use super::error::{of_state, of_store};

/// The newest threads of a user, the one that was used last first.
pub(super) async fn newest(
    runtime: &Runtime,
    user: &UserId,
    limit: usize,
) -> Result<Vec<ThreadSummary>, ClientError> {
    let query = ThreadQuery {
        user: Some(user.clone()),
        sort: ThreadSort::Updated,
        order: Order::Descending,
        limit: limit as u64,
        ..ThreadQuery::default()
    };
    let mut threads = Vec::new();
    for row in runtime.store().search_threads(&query).await.map_err(of_store)? {
        threads.push(summary(runtime, user, &row).await?);
    }
    Ok(threads)
}

async fn summary(runtime: &Runtime, user: &UserId, row: &Thread) -> Result<ThreadSummary, ClientError> {
    let id = name_of(user, &row.id, &row.metadata);
    let title = match runtime.state(&row.id, None).await {
        Ok(state) => Values::from_json(state.values).title().map(str::to_owned),
        // It says so when it is asked for itself; the others are listed, too.
        Err(StateError::Store(error @ StoreError::Damaged(_))) => {
            tracing::warn!(thread = %id, %error, "a thread is listed without its title");
            None
        }
        Err(error) => return Err(of_state(error, &id)),
    };
    let mut summary =
        ThreadSummary::new(id, row.status, to_micros(row.created_at), to_micros(row.updated_at));
    summary.title = title;
    Ok(summary)
}

/// `name` is what the caller calls the thread.
pub(super) async fn state(
    runtime: &Runtime,
    id: &ThreadId,
    name: &ThreadId,
) -> Result<ThreadState, ClientError> {
    let state = runtime.state(id, None).await.map_err(|error| of_state(error, name))?;
    Ok(ThreadState::new(name.clone(), Values::from_json(state.values), state.interrupts))
}

/// With what the user calls their threads.
pub(super) async fn run_infos(
    runtime: &Runtime,
    user: &UserId,
    runs: &[Run],
) -> Result<Vec<RunInfo>, ClientError> {
    let ids: BTreeSet<ThreadId> = runs.iter().map(|run| run.thread.clone()).collect();
    let query = ThreadQuery {
        limit: ids.len() as u64,
        ids: Some(ids.into_iter().collect()),
        ..ThreadQuery::default()
    };
    let rows = runtime.store().search_threads(&query).await.map_err(of_store)?;
    let names: HashMap<&ThreadId, ThreadId> =
        rows.iter().map(|row| (&row.id, name_of(user, &row.id, &row.metadata))).collect();
    let told = |run: &Run| {
        let mut info = run_info(run);
        info.thread_name = names.get(&run.thread).filter(|name| **name != run.thread).cloned();
        info
    };
    Ok(runs.iter().map(told).collect())
}

pub(super) fn run_info(run: &Run) -> RunInfo {
    let began = run.start_at.max(run.created_at);
    let at = (to_micros(began), to_micros(run.updated_at));
    let mut info = RunInfo::new(run.id.clone(), run.thread.clone(), run.status, at);
    info.error = run.error.as_ref().map(|failure| failure.message.clone());
    info.usage = run.totals.usage.clone();
    info.model_calls = run.totals.model_calls;
    info.cost = run.totals.cost;
    info
}

/// As exact as the wire is.
fn to_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}
