//! One run's frames, rendered in this process as a server renders them.
//!
//! Invariant: an event that was read is rendered, also when its reader gave up waiting in between.

use std::collections::VecDeque;

use hart_client::{ClientError, Following, RunInfo, StreamFrame, ThreadState, async_trait};
use hart_runtime::{After, Frame, Run, RunFrames, Runtime, UnsaidEnd};
use hart_types::{CancelAction, StreamMode, ThreadId};

use super::error::of_store;
use super::threads;

pub(crate) struct EmbeddedFollowing {
    runtime: Runtime,
    frames: RunFrames,
    /// What its user calls the thread.
    name: ThreadId,
    ahead: VecDeque<StreamFrame>,
}

impl EmbeddedFollowing {
    /// From the run's first event on.
    pub(crate) fn new(runtime: Runtime, run: Run, name: ThreadId, modes: Vec<StreamMode>) -> Self {
        let frames = runtime.frames(run, modes, false, After::Start);
        Self { runtime, frames, name, ahead: VecDeque::new() }
    }
}

#[async_trait]
impl Following for EmbeddedFollowing {
    async fn next(&mut self) -> Option<Result<StreamFrame, ClientError>> {
        loop {
            if let Some(frame) = self.ahead.pop_front() {
                return Some(Ok(frame));
            }
            let told = match self.frames.next().await {
                Ok(Some(frames)) => {
                    self.ahead.extend(frames.into_iter().map(streamed));
                    continue;
                }
                Ok(None) => self.frames.unsaid_end().await,
                Err(error) => Err(error),
            };
            match told {
                Ok(None) => return None,
                Ok(Some(UnsaidEnd::Forgotten)) => {
                    return Some(Err(ClientError::Forgotten(self.frames.run().id.clone())));
                }
                Ok(Some(UnsaidEnd::Ended(failure))) => {
                    let failure = failure.and_then(|failure| serde_json::to_vec(&failure).ok());
                    self.ahead.extend(failure.map(|data| unplaced("error", data)));
                    self.ahead.push_back(unplaced("end", b"null".to_vec()));
                }
                Err(error) => return Some(Err(of_store(error))),
            }
        }
    }

    async fn record(&mut self) -> Result<Option<RunInfo>, ClientError> {
        let run = self.runtime.store().run(&self.frames.run().id).await.map_err(of_store)?;
        Ok(run.as_ref().map(threads::run_info))
    }

    async fn state(&mut self) -> Result<ThreadState, ClientError> {
        threads::state(&self.runtime, &self.frames.run().thread, &self.name).await
    }

    fn stop(&self) {
        self.runtime.cancel_later(self.frames.run().id.clone(), CancelAction::Interrupt);
    }
}

fn streamed(Frame { event, data, id }: Frame) -> StreamFrame {
    StreamFrame { event: event.into_owned(), data, id: Some(id) }
}

/// A frame that is no place in the stream.
fn unplaced(event: &str, data: Vec<u8>) -> StreamFrame {
    StreamFrame { event: event.to_owned(), data: data.into(), id: None }
}
