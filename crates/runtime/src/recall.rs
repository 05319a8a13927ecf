//! States of a thread that are read one after the other, each from where the last one was.
//!
//! Invariant: a state is the fold of its steps, however much of it was known before.

use std::fmt;

use bytes::Bytes;
use hart_kernel::{Agent, Snapshot, State};
use hart_types::{CheckpointId, ThreadId};

use crate::port::Lineage;
use crate::runtime::{Runtime, StateError};
use crate::values::Spelling;
use crate::{Entry, LogEvent};

/// For one reader: what it reads next costs what happened since, not what happened so far.
pub struct Recall {
    runtime: Runtime,
    thread: ThreadId,
    spelling: Spelling,
    last: Option<Known>,
}

struct Known {
    agent: Agent,
    at: CheckpointId,
    state: State,
}

impl Recall {
    pub fn new(runtime: Runtime, thread: ThreadId, spelling: Spelling) -> Self {
        Self { runtime, thread, spelling, last: None }
    }

    /// The state that a logged event is of, as JSON; none where its step is not there, or not yet.
    pub async fn values_of(&mut self, entry: &Entry) -> Result<Option<Bytes>, StateError> {
        let encoder = self.runtime.encoder(&self.thread, self.spelling);
        if let Some(reached) = &entry.reached {
            return Ok(Some(encoder.encode(&reached.values, None)));
        }
        let (LogEvent::Values { step, .. } | LogEvent::Began { step }) = &entry.logged.event else {
            return Ok(None);
        };
        let view = self.view(&step.checkpoint).await?;
        Ok(view.map(|view| encoder.encode(&view, None)))
    }

    /// The state at a step; nothing if there is no such step. Giving it up loses nothing.
    pub(crate) async fn view(&mut self, at: &CheckpointId) -> Result<Option<Snapshot>, StateError> {
        let known = self.last.as_ref().map(|known| &known.at);
        let lineage = self.runtime.store().steps_since(&self.thread, at, known).await?;
        let (before, steps) = match lineage {
            Lineage::Whole(steps) if steps.is_empty() => return Ok(None),
            Lineage::Whole(steps) => (State::default(), steps),
            Lineage::Since(steps) => {
                (self.last.as_ref().map(|known| known.state.clone()).unwrap_or_default(), steps)
            }
        };
        let agent = match self.last.take() {
            Some(known) => known.agent,
            None => self.runtime.reader_of(&self.thread).await?,
        };
        let state = agent.fold_onto(before, steps);
        let view = agent.snapshot(state.clone());
        self.last = Some(Known { agent, at: at.clone(), state });
        Ok(Some(view))
    }
}

impl fmt::Debug for Recall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recall").field("thread", &self.thread).finish_non_exhaustive()
    }
}
