//! The streams of the event protocol: one subscription as server-sent events, several over a WebSocket.
//!
//! Invariant: a stream stays open when its runs have ended, and a slow reader is waited for by nobody but itself.

use std::time::Duration;

use axum::body::{Body as HttpBody, Bytes};
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{HeaderMap, Response};
use axum::response::IntoResponse;
use futures_util::future::{pending, select_all};
use hart_runtime::Envelope;
use hart_runtime::port::StoreError;
use hart_types::ThreadId;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, interval_at};

use super::commands::{self, Command, Refusal};
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::events::{EventLines, EventReader, Filter, encode};
use crate::parse::{Path, Raw, thread_id};
use crate::sse::{self, CutOff, broke_off};

pub(crate) async fn stream(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    headers: HeaderMap,
    Raw(body): Raw,
) -> ApiResult<Response<HttpBody>> {
    let thread = thread_id(&thread)?;
    let body: Value =
        serde_json::from_slice(&body).map_err(|_| ApiError::bad_request("Invalid JSON body"))?;
    let body = body.as_object().ok_or_else(|| ApiError::bad_request("the filter must be an object"))?;
    let mut filter = Filter::parse(body).map_err(ApiError::bad_request)?;
    // What an `EventSource` sends when it comes back.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    filter.since = filter.since.max(last.unwrap_or(0));
    let reader = EventReader::new(gateway.runtime.clone(), thread, filter);
    Ok(sse::respond(&gateway, EventLines::new(reader)))
}

pub(crate) async fn socket(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> ApiResult<Response<HttpBody>> {
    let thread = thread_id(&thread)?;
    let upgrade = upgrade.map_err(|refused| ApiError::bad_request(refused.body_text()))?;
    let limit = gateway.settings.body_limit;
    // Each message is sent before the next one is made: there is nothing to gather.
    let upgrade = upgrade.max_message_size(limit).max_frame_size(limit);
    let upgrade = upgrade.read_buffer_size(READ_AT_ONCE).write_buffer_size(0);
    Ok(upgrade
        .on_upgrade(move |socket| {
            let connection = Connection { gateway, thread, headers, subscriptions: Vec::new(), seq: 0 };
            connection.serve(socket)
        })
        .into_response())
}

/// One WebSocket.
struct Connection {
    gateway: Gateway,
    thread: ThreadId,
    headers: HeaderMap,
    subscriptions: Vec<Subscription>,
    /// The number of the last event on this connection.
    seq: u64,
}

struct Subscription {
    id: String,
    reader: EventReader,
    /// How many of its events the client has already.
    known: u64,
}

/// How many subscriptions a connection may have.
const SUBSCRIPTIONS: usize = 64;
/// How much of what a client says is read at once; each connection has so much memory for it.
const READ_AT_ONCE: usize = 8 << 10;
/// How long a client that is told goodbye may take to hear it.
const GOODBYE: Duration = Duration::from_secs(1);

impl Connection {
    async fn serve(mut self, mut socket: WebSocket) {
        let _reading = self.gateway.readers.reading();
        let every = self.gateway.settings.heartbeat;
        let mut beat = interval_at(Instant::now() + every, every);
        let closing = self.gateway.closing.clone();
        let why = loop {
            let said = tokio::select! {
                event = next(&mut self.subscriptions) => match event {
                    Ok((at, envelope)) => self.told(at, &envelope),
                    Err(error) => break broke_off(&self.thread, error),
                },
                asked = socket.recv() => match asked {
                    Some(Ok(Message::Text(text))) => Some(self.hear(&text).await),
                    Some(Ok(Message::Binary(bytes))) => Some(self.hear(&String::from_utf8_lossy(&bytes)).await),
                    // The library answers pings.
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => None,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                },
                _ = beat.tick() => {
                    if socket.send(Message::Ping(Bytes::new())).await.is_err() {
                        return;
                    }
                    None
                }
                () = closing.cancelled() => break CutOff::Stopping,
            };
            if let Some(said) = said
                && socket.send(Message::Text(said.into())).await.is_err()
            {
                return;
            }
        };
        let _ = tokio::time::timeout(GOODBYE, socket.send(goodbye(&why))).await;
    }

    fn told(&mut self, at: usize, envelope: &Envelope) -> Option<String> {
        self.seq += 1;
        let subscription = self.subscriptions.get_mut(at)?;
        if let Some(known) = subscription.known.checked_sub(1) {
            subscription.known = known;
            return None;
        }
        Some(encode(envelope, self.seq))
    }

    async fn hear(&mut self, text: &str) -> String {
        let Ok(body) = serde_json::from_str::<Value>(text) else {
            return commands::no_command("Protocol commands must be valid JSON.").to_string();
        };
        let command = match Command::parse(body) {
            Ok(command) => command,
            Err(answer) => return answer.to_string(),
        };
        let done = match command.method.as_str() {
            "subscription.subscribe" | "subscription.reconnect" => self.subscribe(&command.params).await,
            "subscription.unsubscribe" => self.unsubscribe(&command.params),
            "agent.getTree" => self.tree(),
            _ => commands::obey(&self.gateway, &self.thread, &self.headers, &command).await,
        };
        commands::answer(&command, done, self.seq).to_string()
    }

    async fn subscribe(&mut self, params: &Map<String, Value>) -> Result<Value, Refusal> {
        if self.subscriptions.len() >= SUBSCRIPTIONS {
            let message = format!("a connection has at most {SUBSCRIPTIONS} subscriptions; end one first");
            return Err(Refusal::invalid(message));
        }
        let filter = Filter::parse(params).map_err(Refusal::invalid)?;
        let (runtime, thread) = (self.gateway.runtime.clone(), self.thread.clone());
        let kept = EventReader::count(runtime.clone(), thread.clone(), filter.clone()).await;
        let kept = kept.map_err(ApiError::from)?;
        let known = filter.since;
        let Some(replayed) = kept.checked_sub(known) else {
            let message = format!("{known} events were seen, but only {kept} are kept; subscribe anew");
            return Err(Refusal::new("resume_gap", message));
        };
        let id = uuid::Uuid::new_v4().to_string();
        let reader = EventReader::new(runtime, thread, filter);
        self.subscriptions.push(Subscription { id: id.clone(), reader, known });
        Ok(json!({"subscription_id": id, "replayed_events": replayed}))
    }

    fn unsubscribe(&mut self, params: &Map<String, Value>) -> Result<Value, Refusal> {
        let id = params.get("subscription_id").and_then(Value::as_str).unwrap_or_default();
        let at = self.subscriptions.iter().position(|subscription| subscription.id == id);
        let at =
            at.ok_or_else(|| Refusal::new("no_such_subscription", format!("Unknown subscription: {id}")))?;
        self.subscriptions.remove(at);
        Ok(json!({}))
    }

    fn tree(&self) -> Result<Value, Refusal> {
        let tree = self.subscriptions.iter().find_map(|subscription| subscription.reader.tree());
        let tree =
            tree.ok_or_else(|| Refusal::new("no_such_run", "no run was heard of on this connection"))?;
        Ok(json!({ "tree": tree }))
    }
}

/// What a client makes of a connection that ends goes by the number.
fn goodbye(why: &CutOff) -> Message {
    let (code, reason) = match why {
        CutOff::Stopping => (close_code::RESTART, "the server is being stopped"),
        CutOff::Unreadable(_) => (close_code::ERROR, "what comes next cannot be read"),
    };
    Message::Close(Some(CloseFrame { code, reason: reason.into() }))
}

/// The next envelope of any subscription, and of which.
async fn next(subscriptions: &mut [Subscription]) -> Result<(usize, Envelope), StoreError> {
    if subscriptions.is_empty() {
        return pending().await;
    }
    let each = subscriptions.iter_mut().map(|subscription| Box::pin(subscription.reader.next()));
    let (envelope, at, _) = select_all(each).await;
    Ok((at, envelope?))
}
