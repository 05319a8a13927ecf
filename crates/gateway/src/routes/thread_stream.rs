//! Joining a thread: the frames of all its runs, those to come as well.
//!
//! Invariant: the stream does not end with a run, and says where each begins and ends.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use bytes::{Bytes, BytesMut};
use hart_kernel::{StepSource, Timestamp};
use hart_runtime::port::{HistoryQuery, StoreError};
use hart_runtime::{
    After, Entry, LogEvent, Recall, Renderer, Run, Runtime, Spelling, ThreadEvent, ThreadFollower, frames_of,
};
use hart_types::{EventId, RunId, ThreadId};
use serde_json::{Value, json};

use super::runs::{asked_children, asked_modes, last_seen};
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::gap;
use crate::parse::{Path, Query, thread_id};
use crate::sse::{self, CutOff, Source, broke_off, write_event};
use crate::wire::state;

pub(crate) async fn join(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    query: Query,
    headers: HeaderMap,
) -> ApiResult<Response<Body>> {
    let thread = thread_id(&thread)?;
    let mut modes = query.list("stream_modes");
    modes.extend(query.list("stream_mode"));
    let wanted = Wanted::parse(&modes)?;
    let after = last_seen(&headers)?;
    let seen = match after {
        After::Frame(id) => {
            if let Some(gap) = gap::in_thread(&gateway, &thread, id).await? {
                return Ok(sse::respond(&gateway, gap));
            }
            id.seq
        }
        After::Start | After::Now => 0,
    };
    let follower = gateway.runtime.follow_thread(&thread, after).await?;
    let missed = match after {
        After::Frame(id) if wanted.states => was_changed_after(&gateway.runtime, &thread, id).await,
        _ => false,
    };
    let reader = Reader {
        recall: Recall::new(gateway.runtime.clone(), thread.clone(), Spelling::State),
        runtime: gateway.runtime.clone(),
        thread,
        follower,
        wanted,
        seen,
        renderer: None,
        event: missed.then_some(ThreadEvent::StateChanged),
    };
    Ok(sse::respond(&gateway, reader))
}

/// A change of state is in no run's log. Whoever was away when the last one was made is told of it when coming back.
async fn was_changed_after(runtime: &Runtime, thread: &ThreadId, seen: EventId) -> bool {
    let newest = HistoryQuery { limit: 1, ..HistoryQuery::default() };
    let step = runtime.store().history(thread, &newest).await.ok().and_then(|mut steps| steps.pop());
    step.is_some_and(|step| step.source == StepSource::Update && millisecond(step.created_at) >= seen.ms)
}

fn millisecond(at: Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or(0)
}

/// The modes of a thread's stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wanted {
    /// Whatever each run was asked to tell.
    runs: bool,
    /// Where runs begin and end.
    lifecycle: bool,
    /// States that were changed without a run.
    states: bool,
}

impl Wanted {
    fn parse(modes: &[String]) -> ApiResult<Self> {
        let mut wanted = Self::default();
        for mode in modes {
            match mode.as_str() {
                "run_modes" => wanted.runs = true,
                "lifecycle" => wanted.lifecycle = true,
                "state_update" => wanted.states = true,
                other => return Err(ApiError::unprocessable(format!("Invalid stream mode: {other}"))),
            }
        }
        Ok(if modes.is_empty() { Self { runs: true, ..wanted } } else { wanted })
    }
}

struct Reader {
    runtime: Runtime,
    recall: Recall,
    thread: ThreadId,
    follower: ThreadFollower,
    wanted: Wanted,
    /// Frames up to this number were seen before.
    seen: u64,
    renderer: Option<(RunId, Renderer)>,
    /// What is being told.
    event: Option<ThreadEvent>,
}

impl Source for Reader {
    async fn next(&mut self) -> Result<Option<Bytes>, CutOff> {
        loop {
            let out = self.tell().await.map_err(|error| broke_off(&self.thread, error))?;
            if !out.is_empty() {
                return Ok(Some(out.freeze()));
            }
        }
    }
}

impl Reader {
    /// One event. It is kept until all of it could be told, so that nothing is lost when it is given up in between.
    async fn tell(&mut self) -> Result<BytesMut, StoreError> {
        let event = match self.event.clone() {
            Some(event) => event,
            None => self.event.insert(self.follower.next().await?).clone(),
        };
        let out = match event {
            ThreadEvent::Logged { run, entry } => self.logged(&run, &entry).await?,
            ThreadEvent::StateChanged => self.state().await,
        };
        self.event = None;
        Ok(out)
    }

    async fn logged(&mut self, run: &Arc<Run>, entry: &Entry) -> Result<BytesMut, StoreError> {
        let mut out = BytesMut::new();
        let marks = matches!(entry.logged.event, LogEvent::Started { .. } | LogEvent::Ended { .. });
        if !(self.wanted.runs || (self.wanted.lifecycle && marks && entry.logged.namespace.is_empty())) {
            return Ok(out);
        }
        if self.renderer.as_ref().is_none_or(|(id, _)| *id != run.id) {
            self.renderer = Some((run.id.clone(), self.renderer_for(run, entry).await?));
        }
        let Some((_, renderer)) = &mut self.renderer else { return Ok(out) };
        for frame in frames_of(entry, renderer, &mut self.recall).await? {
            match frame.event.as_ref() {
                _ if frame.id.seq <= self.seen => {}
                "end" => {
                    let data = json!({"status": "run_done", "run_id": run.id}).to_string();
                    write_event(&mut out, "metadata", data.as_bytes(), frame.id);
                }
                _ => sse::write(&mut out, &frame),
            }
        }
        Ok(out)
    }

    async fn renderer_for(&mut self, run: &Arc<Run>, entry: &Entry) -> Result<Renderer, StoreError> {
        let modes = if self.wanted.runs { asked_modes(run) } else { Vec::new() };
        let mut renderer = Renderer::new(run.as_ref().clone(), modes, asked_children(run));
        if renderer.remembers() {
            // Whoever comes back in the middle of a run gets what follows from its beginning.
            let mut before = self.runtime.follow(&run.id, After::Start);
            while let Some(earlier) = before.next().await? {
                if earlier.id.seq >= entry.id.seq {
                    break;
                }
                frames_of(&earlier, &mut renderer, &mut self.recall).await?;
            }
        }
        Ok(renderer)
    }

    async fn state(&self) -> BytesMut {
        let mut out = BytesMut::new();
        if self.wanted.states
            && let Ok(Some(thread)) = self.runtime.store().thread(&self.thread).await
            && let Ok(reached) = self.runtime.state(&self.thread, None).await
        {
            let data = json!({"state": state::json(&thread, &reached), "thread_id": self.thread});
            // Later than the change itself, so that whoever has seen it is not told again.
            let changed = reached.step.as_ref().map_or(0, |step| millisecond(step.created_at) + 1);
            let ms = millisecond(self.runtime.now()).max(changed);
            let id = EventId { ms, seq: self.follower.cursor() };
            write_event(&mut out, "state_update", Value::to_string(&data).as_bytes(), id);
        }
        out
    }
}
