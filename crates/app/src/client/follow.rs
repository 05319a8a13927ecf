//! One run's frames, rendered in this process as a server renders them.
//!
//! Invariant: an event that was read is rendered, also when its reader gave up waiting in between.

use std::collections::VecDeque;
use std::sync::Arc;

use hart_client::{ClientError, Following, RunInfo, StreamFrame, ThreadState, async_trait};
use hart_runtime::{After, Entry, Follower, Frame, Renderer, Run, Runtime, Spelling};
use hart_types::{CancelAction, StreamMode, ThreadId};

use super::error::of_store;
use super::threads;

pub(crate) struct EmbeddedFollowing {
    runtime: Runtime,
    follower: Follower,
    renderer: Renderer,
    run: Run,
    /// What its user calls the thread.
    name: ThreadId,
    /// Read, but not rendered yet.
    entry: Option<Arc<Entry>>,
    ahead: VecDeque<Frame>,
}

impl EmbeddedFollowing {
    /// From the run's first event on.
    pub(crate) fn new(runtime: Runtime, run: Run, name: ThreadId, modes: Vec<StreamMode>) -> Self {
        Self {
            follower: runtime.follow(&run.id, After::Start),
            renderer: Renderer::new(run.clone(), modes, false),
            runtime,
            run,
            name,
            entry: None,
            ahead: VecDeque::new(),
        }
    }
}

#[async_trait]
impl Following for EmbeddedFollowing {
    async fn next(&mut self) -> Option<Result<StreamFrame, ClientError>> {
        loop {
            if let Some(Frame { event, data, id }) = self.ahead.pop_front() {
                return Some(Ok(StreamFrame { event: event.into_owned(), data, id: Some(id) }));
            }
            if self.entry.is_none() {
                match self.follower.next().await {
                    Ok(Some(entry)) => self.entry = Some(entry),
                    Ok(None) => return None,
                    Err(error) => return Some(Err(of_store(error))),
                }
            }
            let Some(entry) = self.entry.clone() else { continue };
            let values = match self.renderer.wants_values(&entry) {
                true => self.runtime.values_of(&self.run.thread, &entry, Spelling::State).await.ok(),
                false => None,
            };
            self.ahead.extend(self.renderer.render(&entry, values.as_ref()));
            self.entry = None;
        }
    }

    async fn record(&mut self) -> Result<Option<RunInfo>, ClientError> {
        let run = self.runtime.store().run(&self.run.id).await.map_err(of_store)?;
        Ok(run.as_ref().map(threads::run_info))
    }

    async fn state(&mut self) -> Result<ThreadState, ClientError> {
        threads::state(&self.runtime, &self.run.thread, &self.name).await
    }

    fn stop(&self) {
        self.runtime.cancel_later(self.run.id.clone(), CancelAction::Interrupt);
    }
}
