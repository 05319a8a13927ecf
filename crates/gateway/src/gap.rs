//! What a reader is told that asks for more than is kept: that it has to look at the state instead.
//!
//! Invariant: a reader is never given a part of what it asked for as if it were all.

use bytes::{Bytes, BytesMut};
use hart_runtime::port::RunQuery;
use hart_runtime::{After, Run};
use hart_types::{EventId, RunStatus, ThreadId};
use serde_json::json;

use crate::Gateway;
use crate::error::ApiResult;
use crate::sse::{CutOff, Source, write_lines};

/// One frame that says so, as DeerFlow's clients know it. It has no id: it is no place in the stream.
#[derive(Debug)]
pub(crate) struct Gap(Option<Bytes>);

impl Source for Gap {
    async fn next(&mut self) -> Result<Option<Bytes>, CutOff> {
        Ok(self.0.take())
    }
}

/// Whether a run's stream cannot be read on from there: it was forgotten, or the place is none of its own.
pub(crate) async fn in_run(gateway: &Gateway, run: &Run, after: After) -> ApiResult<Option<Gap>> {
    let asked = match after {
        After::Now => return Ok(None),
        After::Start => None,
        After::Frame(id) => Some(id),
    };
    let kept = gateway.runtime.kept(&run.id).await?;
    let missing = match (kept, asked) {
        (None, _) => !run.status.is_active(),
        (Some((_, last)), Some(asked)) => !hart_runtime::reaches(last, asked),
        (Some(_), None) => false,
    };
    Ok(missing.then(|| gap(run, asked, kept)))
}

/// Whether a thread's stream has lost something behind that place.
pub(crate) async fn in_thread(
    gateway: &Gateway,
    thread: &ThreadId,
    asked: EventId,
) -> ApiResult<Option<Gap>> {
    let newest = RunQuery { thread: Some(thread.clone()), limit: RECENT, ..RunQuery::default() };
    for run in gateway.runtime.store().runs(&newest).await? {
        let ended_before = u64::try_from(run.updated_at.as_millisecond()).is_ok_and(|ms| ms < asked.ms);
        // One that was stopped before it began has never said anything.
        let silent = run.status == RunStatus::Interrupted && run.totals.model_calls == 0;
        if ended_before || silent || run.status.is_active() {
            continue;
        }
        if gateway.runtime.kept(&run.id).await?.is_none() {
            return Ok(Some(gap(&run, Some(asked), None)));
        }
    }
    Ok(None)
}

/// How many runs of a thread may have ended while a reader was away, to be looked at one by one.
const RECENT: u64 = 100;

fn gap(run: &Run, asked: Option<EventId>, kept: Option<(EventId, EventId)>) -> Gap {
    let id = |id: EventId| id.to_string();
    let data = json!({
        "code": "stream_replay_gap",
        "run_id": run.id,
        "requested_event_id": asked.map_or_else(|| "-1".to_owned(), id),
        "earliest_available_event_id": kept.map(|(first, _)| id(first)),
        "latest_available_event_id": kept.map(|(_, last)| id(last)),
        "recovery": "reload_durable_state",
    });
    let mut out = BytesMut::new();
    write_lines(&mut out, "gap", data.to_string().as_bytes());
    Gap(Some(out.freeze()))
}
