//! A run as a program follows it: one JSON object a line, the frames of LangGraph's stream.
//!
//! Invariant: the first line is `metadata`, the last is `end`, and the state (`values`) comes once, before the end.

use std::io;

use hart_app::CancellationToken;
use hart_client::{ClientError, RunInfo, RunStream, StreamFrame};
use hart_types::{RunStatus, ThreadId};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::terminal::Terminal;

pub(crate) struct Frames {
    terminal: Terminal,
    /// Cancelled when nobody reads the lines any more.
    stop: CancellationToken,
    /// The first write that failed; nothing is written after it.
    failure: Option<io::Error>,
}

/// How the run ended.
pub(crate) enum Ended {
    Finished { nothing_done: bool },
    Paused,
    Cancelled,
    Failed(String),
}

impl Frames {
    pub(crate) fn new(terminal: Terminal, stop: CancellationToken) -> Self {
        Self { terminal, stop, failure: None }
    }

    /// Prints the run to its end. Fails when a line could not be written.
    pub(crate) async fn print(mut self, mut stream: RunStream) -> io::Result<Result<Ended, ClientError>> {
        let (mut error, mut paused) = (None, false);
        while let Some(frame) = stream.next_frame().await {
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => return Ok(Err(error)),
            };
            match frame.event.as_str() {
                "metadata" => self.metadata(&frame, stream.thread()),
                "end" => {}
                event => {
                    if event == "error" {
                        error = frame.json().get("message").and_then(Value::as_str).map(str::to_owned);
                    }
                    paused |= event == "updates" && frame.json().get("__interrupt__").is_some();
                    self.raw(event, &frame);
                }
            }
        }
        let ended = self.end(&mut stream, error, paused).await;
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(ended),
        }
    }

    async fn end(
        &mut self,
        stream: &mut RunStream,
        error: Option<String>,
        paused: bool,
    ) -> Result<Ended, ClientError> {
        let record = stream.record().await?;
        let values = match stream.state().await {
            Ok(state) => state.values,
            // A run that never got to work leaves no state.
            Err(ClientError::NoThread(_)) => Default::default(),
            Err(error) => return Err(error),
        };
        self.line(json!({"event": "values", "data": values.to_json()}));
        let nothing_done =
            values.last_message().is_some_and(|last| last.response_metadata.contains_key("incomplete"));
        let (status, ended) = match (error, &record) {
            (Some(error), _) => ("error", Ended::Failed(error)),
            (None, None | Some(RunInfo { status: RunStatus::Interrupted, .. })) => {
                ("interrupted", Ended::Cancelled)
            }
            (None, Some(_)) if paused => ("paused", Ended::Paused),
            (None, Some(_)) => ("success", Ended::Finished { nothing_done }),
        };
        let mut data = json!({ "status": status });
        if let Some(map) = data.as_object_mut() {
            if let Some(record) = &record {
                map.insert("usage".to_owned(), json!(record.usage));
            }
            if let Ended::Failed(error) = &ended {
                map.insert("error".to_owned(), error.as_str().into());
            }
        }
        self.line(json!({"event": "end", "data": data}));
        Ok(ended)
    }

    /// The thread goes by the name that its user gave it.
    fn metadata(&mut self, frame: &StreamFrame, thread: &ThreadId) {
        let mut data = frame.json();
        if let Some(map) = data.as_object_mut() {
            map.insert("thread_id".to_owned(), json!(thread));
        }
        self.line(json!({"event": "metadata", "data": data}));
    }

    fn raw(&mut self, event: &str, frame: &StreamFrame) {
        let data: Option<&RawValue> = serde_json::from_slice(&frame.data).ok();
        self.line(json!({"event": event, "data": data}));
    }

    fn line(&mut self, line: Value) {
        if self.failure.is_some() {
            return;
        }
        if let Err(error) = self.terminal.line(&line.to_string()) {
            self.failure = Some(error);
            self.stop.cancel();
        }
    }
}
