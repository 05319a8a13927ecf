//! One run's stream over connections that may break.
//!
//! Invariant: a frame is handed on once and in order, over however many connections it takes; a run whose line is dead
//! goes on at the server.

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use hart_types::{EventId, RunId, StreamMode, ThreadId};
use reqwest::Response;
use serde_json::json;

use super::HttpClient;
use super::sse::Parser;
use crate::error::ClientError;
use crate::frame::StreamFrame;
use crate::record::{RunInfo, ThreadState};
use crate::stream::Following;

pub(super) struct HttpFollowing {
    client: HttpClient,
    thread: ThreadId,
    /// What its user calls it.
    name: ThreadId,
    run: RunId,
    modes: Vec<StreamMode>,
    connection: Option<Connection>,
    parser: Parser,
    last: Option<EventId>,
    /// Connections in a row that brought nothing.
    in_vain: u32,
}

type Connection = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>;

/// After so many the server is taken for gone; with the pauses, half a minute.
const ATTEMPTS: u32 = 10;
/// Within so many it may come back unnoticed; with the pauses, one and a half seconds.
const SOON: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

impl HttpFollowing {
    pub(super) fn new(
        client: HttpClient,
        (thread, name): (ThreadId, ThreadId),
        run: RunId,
        modes: Vec<StreamMode>,
        response: Option<Response>,
    ) -> Self {
        let connection = response.map(connection);
        Self {
            client,
            thread,
            name,
            run,
            modes,
            connection,
            parser: Parser::default(),
            last: None,
            in_vain: 0,
        }
    }

    async fn connect(&mut self) -> Result<(), ClientError> {
        let attempt = self.in_vain;
        self.in_vain += 1;
        if attempt > 0 {
            tokio::time::sleep(PAUSE.saturating_mul(1 << attempt.min(10)).min(LONGEST)).await;
        }
        let after = self.last.map(|id| id.to_string());
        let request = self.client.stream_request(&self.thread, &self.run, &self.modes, after);
        match self.client.send(request).await {
            Ok(response) => {
                self.connection = Some(connection(response));
                Ok(())
            }
            // It was undone, or its thread is gone.
            Err(ClientError::Refused { status: 404, .. }) => Err(ClientError::Dropped),
            Err(ClientError::Unreachable { .. } | ClientError::Server { .. }) if attempt < ATTEMPTS => {
                // A server that is started again is back before anybody would wonder.
                if attempt == SOON {
                    let url = self.client.shared.base.as_str();
                    tracing::warn!("{url} does not answer; trying again for half a minute");
                }
                Ok(())
            }
            Err(ClientError::Unreachable { .. }) => Err(self.lost()),
            Err(error) => Err(error),
        }
    }

    fn lost(&self) -> ClientError {
        let url = self.client.shared.base.to_string();
        ClientError::Lost { url, thread: self.name.clone(), run: self.run.clone() }
    }
}

/// Asks again where the line broke: whoever has followed a run so far wants its end.
async fn again<T, F: Future<Output = Result<T, ClientError>>>(ask: impl Fn() -> F) -> Result<T, ClientError> {
    let mut pause = PAUSE;
    loop {
        match ask().await {
            Err(ClientError::Unreachable { .. } | ClientError::Server { .. }) if pause < LONGEST => {
                tokio::time::sleep(pause).await;
                pause = pause.saturating_mul(2);
            }
            answer => return answer,
        }
    }
}

fn connection(response: Response) -> Connection {
    Box::pin(response.bytes_stream())
}

#[async_trait]
impl Following for HttpFollowing {
    async fn next(&mut self) -> Option<Result<StreamFrame, ClientError>> {
        loop {
            if let Some(frame) = self.parser.pop() {
                self.in_vain = 0;
                // Asking again would bring the same answer.
                if frame.event == "gap" {
                    return Some(Err(ClientError::Forgotten(self.run.clone())));
                }
                self.last = frame.id.or(self.last);
                return Some(Ok(frame));
            }
            let Some(connection) = &mut self.connection else {
                if self.in_vain > ATTEMPTS {
                    return Some(Err(self.lost()));
                }
                if let Err(error) = self.connect().await {
                    return Some(Err(error));
                }
                continue;
            };
            match connection.next().await {
                Some(Ok(bytes)) => self.parser.push(&bytes),
                end => {
                    if let Some(Err(error)) = end {
                        tracing::debug!(run = %self.run, %error, "the line broke; it is taken up again");
                    }
                    self.connection = None;
                    self.parser.forget_partial();
                }
            }
        }
    }

    async fn record(&mut self) -> Result<Option<RunInfo>, ClientError> {
        let place = ["threads", self.thread.as_str(), "runs", self.run.as_str()];
        match again(|| self.client.get(place)).await {
            Ok(record) => Ok(Some(record)),
            Err(ClientError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn state(&mut self) -> Result<ThreadState, ClientError> {
        again(|| self.client.state_of(&self.thread, &self.name)).await
    }

    fn stop(&self) {
        let Ok(handle) = tokio::runtime::Handle::try_current() else { return };
        let client = self.client.clone();
        let url = client.url(["threads", self.thread.as_str(), "runs", self.run.as_str(), "cancel"]);
        let (request, tasks) = (client.post(url, &json!({})), client.shared.tasks.clone());
        let stopping = async move {
            if let Err(error) = client.send(request).await {
                tracing::debug!(%error, "a run could not be stopped; it may have ended");
            }
        };
        tasks.spawn_on(stopping, &handle);
    }
}
