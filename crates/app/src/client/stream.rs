//! A run in progress, followed from outside.
//!
//! Invariant: the run does not need its reader to end well. Whoever drops the stream cancels the run, which then
//! unwinds by itself.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use hart_types::{RunId, ThreadId};
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::DropGuard;

use super::{ClientError, Event};

/// Events in order: any number, then [`Event::End`] or an error.
#[derive(Debug)]
#[must_use = "a stream that is dropped cancels its run"]
pub struct EventStream {
    pub(super) thread: ThreadId,
    pub(super) run: RunId,
    pub(super) model: String,
    pub(super) events: Receiver<Result<Event, ClientError>>,
    pub(super) over: bool,
    pub(super) _cancels: DropGuard,
}

impl EventStream {
    /// The thread it runs on: a new one, where none was named.
    pub fn thread(&self) -> &ThreadId {
        &self.thread
    }

    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The name of the model that works.
    pub fn model(&self) -> &str {
        &self.model
    }
}

impl Stream for EventStream {
    type Item = Result<Event, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        let event = ready!(self.events.poll_recv(cx)).unwrap_or(Err(ClientError::Dropped));
        self.over = matches!(event, Ok(Event::End(_)) | Err(_));
        Poll::Ready(Some(event))
    }
}
