//! A run as a program follows it: one JSON object a line.
//!
//! Invariant: the first line is `metadata`, the last is `end`, and the state (`values`) comes once, before the end.

use std::io;
use std::sync::{Mutex, PoisonError};

use hart_app::{AgentEvent, CancellationToken, EventSink, Frame, RunReport, Task, async_trait};

use crate::terminal::Terminal;

pub(crate) struct Frames {
    terminal: Terminal,
    /// Cancelled when nobody reads the lines any more.
    stop: CancellationToken,
    /// The first write that failed; nothing is written after it.
    failure: Mutex<Option<io::Error>>,
}

impl Frames {
    pub(crate) fn new(terminal: Terminal, stop: CancellationToken, task: &Task) -> Self {
        let frames = Self { terminal, stop, failure: Mutex::default() };
        frames.print(&Frame::metadata(&task.run, &task.thread, &task.model.name));
        frames
    }

    /// Prints what closes a run. Fails when a line could not be written.
    pub(crate) fn finish(&self, report: &RunReport) -> io::Result<()> {
        self.print(&Frame::values(&report.values));
        self.print(&Frame::end(&report.outcome));
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    fn print(&self, frame: &Frame) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_some() {
            return;
        }
        let line = serde_json::to_string(frame).map_err(io::Error::from);
        if let Err(error) = line.and_then(|line| self.terminal.line(&line)) {
            *failure = Some(error);
            self.stop.cancel();
        }
    }
}

#[async_trait]
impl EventSink for Frames {
    async fn emit(&self, event: AgentEvent) {
        if !matches!(event, AgentEvent::Values(_)) {
            self.print(&Frame::of(&event));
        }
    }
}
