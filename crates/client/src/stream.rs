//! A run in progress, followed from outside.
//!
//! Invariant: the run does not need its reader to end well. Whoever drops the stream of a run it began stops the run,
//! which then unwinds by itself; whoever only joined one leaves it alone.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::{Stream, StreamExt, stream};
use hart_types::{RunId, RunStatus, ThreadId, UsageMetadata};
use tokio_util::sync::CancellationToken;

use crate::decoder::Decoder;
use crate::error::{ClientError, Failure};
use crate::event::{End, Event};
use crate::frame::StreamFrame;
use crate::record::{RunInfo, ThreadState};

/// How an implementation follows one run. Giving up a `next` and asking again loses nothing.
#[async_trait]
pub trait Following: Send {
    /// The next frame; none when nothing follows.
    async fn next(&mut self) -> Option<Result<StreamFrame, ClientError>>;

    /// The run's record; none where it was undone.
    async fn record(&mut self) -> Result<Option<RunInfo>, ClientError>;

    /// The thread as it is.
    async fn state(&mut self) -> Result<ThreadState, ClientError>;

    /// Begins to stop the run, and returns at once.
    fn stop(&self);
}

/// A run's frames, in order. The last one is `end`.
#[must_use = "a stream that is dropped stops its run"]
pub struct RunStream {
    thread: ThreadId,
    run: RunId,
    source: Box<dyn Following>,
    /// Of a run that was begun here.
    cancel: Option<CancellationToken>,
    stopped: bool,
    over: bool,
}

impl RunStream {
    /// Of a run that was begun for this reader; `thread` is what the reader calls it.
    pub fn begun(
        thread: ThreadId,
        run: RunId,
        source: Box<dyn Following>,
        cancel: Option<CancellationToken>,
    ) -> Self {
        let cancel = Some(cancel.unwrap_or_default());
        Self { thread, run, source, cancel, stopped: false, over: false }
    }

    /// Of a run that is somebody else's.
    pub fn joined(thread: ThreadId, run: RunId, source: Box<dyn Following>) -> Self {
        Self { thread, run, source, cancel: None, stopped: false, over: false }
    }

    /// The thread it runs on: a new one, where none was named.
    pub fn thread(&self) -> &ThreadId {
        &self.thread
    }

    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Stops the run when its token says so, and goes on to its end.
    pub async fn next_frame(&mut self) -> Option<Result<StreamFrame, ClientError>> {
        if self.over {
            return None;
        }
        loop {
            let cancel = self.cancel.clone().filter(|_| !self.stopped);
            let cancelled = async {
                match &cancel {
                    Some(token) => token.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = cancelled => {
                    self.stopped = true;
                    self.source.stop();
                }
                frame = self.source.next() => {
                    // A run that cannot be followed any more goes on all the same.
                    self.over = frame.as_ref().is_none_or(|frame| {
                        frame.as_ref().map_or(true, |frame| frame.event == "end")
                    });
                    return frame;
                }
            }
        }
    }

    /// How the run ended, once its last frame was read.
    pub async fn record(&mut self) -> Result<Option<RunInfo>, ClientError> {
        self.source.record().await
    }

    /// What its thread has come to.
    pub async fn state(&mut self) -> Result<ThreadState, ClientError> {
        self.source.state().await
    }

    /// What the frames tell of.
    pub fn into_events(self) -> EventStream {
        let (thread, run) = (self.thread.clone(), self.run.clone());
        let reader =
            Reader { stream: self, decoder: Decoder::default(), ahead: VecDeque::new(), done: false };
        let events = stream::unfold(reader, |mut reader| async move {
            let event = reader.next().await?;
            Some((event, reader))
        });
        EventStream { thread, run, events: Box::pin(events.fuse()) }
    }
}

impl Drop for RunStream {
    fn drop(&mut self) {
        if self.cancel.is_some() && !self.over && !self.stopped {
            self.source.stop();
        }
    }
}

impl fmt::Debug for RunStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream").field("run", &self.run).finish_non_exhaustive()
    }
}

/// Events in order: any number, then [`Event::End`] or an error.
#[must_use = "a stream that is dropped stops its run"]
pub struct EventStream {
    thread: ThreadId,
    run: RunId,
    events: Pin<Box<dyn Stream<Item = Result<Event, ClientError>> + Send>>,
}

impl EventStream {
    /// The thread it runs on: a new one, where none was named.
    pub fn thread(&self) -> &ThreadId {
        &self.thread
    }

    pub fn run(&self) -> &RunId {
        &self.run
    }
}

impl Stream for EventStream {
    type Item = Result<Event, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("run", &self.run).finish_non_exhaustive()
    }
}

struct Reader {
    stream: RunStream,
    decoder: Decoder,
    ahead: VecDeque<Event>,
    done: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<Event, ClientError>> {
        loop {
            if let Some(event) = self.ahead.pop_front() {
                return Some(Ok(event));
            }
            if self.done {
                return None;
            }
            match self.stream.next_frame().await {
                Some(Ok(frame)) => self.ahead.extend(self.decoder.read(&frame)),
                Some(Err(error)) => {
                    self.done = true;
                    return Some(Err(error));
                }
                None => {
                    self.done = true;
                    return Some(self.end().await);
                }
            }
        }
    }

    /// The stream says that it is over, the record how.
    async fn end(&mut self) -> Result<Event, ClientError> {
        if !self.decoder.has_ended() {
            return Err(ClientError::Dropped);
        }
        if let Some(failure) = self.decoder.failure() {
            return Err(failure.into());
        }
        let (values, interrupts) = self.decoder.state();
        let record = match (self.stream.record().await, &values) {
            // It had told all of it before it stopped.
            (Err(ClientError::Unreachable { .. }), Some(values)) => {
                return Ok(Event::End(End::new(UsageMetadata::default(), values.clone(), interrupts)));
            }
            (record, _) => record?,
        };
        let Some(record) = record else { return Err(ClientError::Cancelled) };
        match record.status {
            RunStatus::Interrupted => return Err(ClientError::Cancelled),
            RunStatus::Error | RunStatus::Timeout => {
                let message = record.error.unwrap_or_else(|| "the run failed".to_owned());
                return Err(Failure { error: record.status.to_string(), message }.into());
            }
            RunStatus::Success | RunStatus::Pending | RunStatus::Running => {}
        }
        let values = match values {
            Some(values) => values,
            None => self.stream.source.state().await?.values,
        };
        Ok(Event::End(End::new(record.usage, values, interrupts)))
    }
}
