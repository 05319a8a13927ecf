//! Sends a request to a provider and reads its event stream.
//!
//! Invariant: every wait can be cancelled and is bounded, and no API key reaches an error or a log line.

mod answer;
mod failure;
mod frames;
mod network;
mod page;

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hart_kernel::{ChatStream, ModelError, ModelErrorKind, TimeoutPhase};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use crate::address::shown;
use crate::config::ModelConfig;
use answer::Answer;
pub(crate) use answer::{Decoder, Fault, Progress};
pub(crate) use failure::{Failure, chain};
pub(crate) use frames::Framing;
pub use network::{HttpError, HttpSettings, Proxy, client, client_with};

/// Enough for any provider's error; an HTML page from a proxy is cut.
const MAX_ERROR_BODY: usize = 64 * 1024;

/// The usual header of a key, and what stands before the key in it.
pub(crate) const BEARER: (&str, &str) = ("authorization", "Bearer ");

/// Where one model answers, and how long it may be silent.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) model: String,
    pub(crate) provider: &'static str,
    url: String,
    headers: HeaderMap,
    /// The key, and the values of the user's headers: they may be keys as well.
    secrets: Vec<SecretString>,
    first_byte_within: Duration,
    silence: Duration,
}

impl Endpoint {
    /// `auth` names the header of the key and what stands before it.
    pub(crate) fn new(config: &ModelConfig, path: &str, auth: (&'static str, &str)) -> Self {
        let mut headers = authorized(config, auth);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        // A compressing proxy would hold tokens back until its block is full.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Self {
            model: config.name.clone(),
            provider: config.provider,
            url: config.base_url.at(path),
            headers,
            secrets: config
                .api_key
                .iter()
                .chain(config.headers.iter().map(|(_, value)| value))
                .cloned()
                .collect(),
            first_byte_within: config.timeout.unwrap_or(config.stream_chunk_timeout),
            silence: config.stream_chunk_timeout,
        }
    }

    /// Adds a header of the dialect, unless the user has set it.
    pub(crate) fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        let name = HeaderName::from_static(name);
        self.headers.entry(name).or_insert(HeaderValue::from_static(value));
        self
    }

    /// Asks for another kind of stream than server-sent events.
    pub(crate) fn accepting(mut self, kind: &'static str) -> Self {
        self.headers.insert(ACCEPT, HeaderValue::from_static(kind));
        self
    }

    /// Posts `body` and decodes the answer.
    pub(crate) async fn post<D: Decoder>(
        &self,
        http: &reqwest::Client,
        body: Vec<u8>,
        cancel: &CancellationToken,
        decoder: D,
    ) -> Result<ChatStream, ModelError> {
        let sent = http.post(&self.url).headers(self.headers.clone()).body(body).send();
        let response = self.bounded(cancel, self.first_byte_within, sent).await?;
        let response = response.map_err(|error| self.transport(error))?;
        if !response.status().is_success() {
            return Err(self.refused(response, cancel).await);
        }
        if is_of_kind(response.headers(), "text/html") {
            let request_id = failure::request_id(response.headers());
            let body = self.body(response, cancel).await?;
            return Err(self.protocol(page::told(&body)).request_id(request_id));
        }
        if is_of_kind(response.headers(), "application/json") {
            // Asked for a stream and got one object: an error told with status 200, or a server that cannot stream.
            let request_id = failure::request_id(response.headers());
            let body = self.body(response, cancel).await?;
            let error = match Failure::of_body(&body) {
                Some(failure) => self.failure(failure, None),
                None => self.protocol("it answered with JSON instead of an event stream"),
            };
            return Err(error.request_id(request_id));
        }
        Ok(Box::pin(Answer::new(self.clone(), response, cancel, decoder)))
    }

    /// Waits for `future`, no longer than `limit` and not beyond cancellation.
    async fn bounded<F: Future>(
        &self,
        cancel: &CancellationToken,
        limit: Duration,
        future: F,
    ) -> Result<F::Output, ModelError> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ModelError::cancelled()),
            waited = tokio::time::timeout(limit, future) => waited.map_err(|_| self.silent(TimeoutPhase::FirstByte, limit)),
        }
    }

    async fn refused(&self, response: reqwest::Response, cancel: &CancellationToken) -> ModelError {
        let status = response.status().as_u16();
        let retry_after = failure::retry_after(response.headers());
        let request_id = failure::request_id(response.headers());
        let error = match self.body(response, cancel).await {
            Ok(body) => self.failure(Failure::of_response(status, &body), retry_after),
            Err(error) if error.kind == ModelErrorKind::Cancelled => error,
            // The status alone is still worth more than the trouble with its body.
            Err(_) => self.failure(Failure::of_response(status, b""), retry_after),
        };
        error.request_id(request_id)
    }

    async fn body(
        &self,
        mut response: reqwest::Response,
        cancel: &CancellationToken,
    ) -> Result<Bytes, ModelError> {
        let mut body = BytesMut::new();
        while body.len() < MAX_ERROR_BODY {
            let chunk = self.bounded(cancel, self.silence, response.chunk()).await?;
            match chunk.map_err(|error| self.transport(error))? {
                Some(chunk) => body.extend_from_slice(&chunk),
                None => break,
            }
        }
        body.truncate(MAX_ERROR_BODY);
        Ok(body.freeze())
    }

    fn failure(&self, mut failure: Failure, retry_after: Option<Duration>) -> ModelError {
        for secret in &self.secrets {
            failure.redact(secret.expose_secret());
        }
        failure.into_error(&self.model, retry_after).provider(self.provider)
    }

    fn transport(&self, error: reqwest::Error) -> ModelError {
        let (connect, timeout) = (error.is_connect(), error.is_timeout());
        let source = error.without_url();
        if !connect {
            return self.error(ModelErrorKind::Interrupted, chain(&source));
        }
        let kind =
            if timeout { ModelErrorKind::Timeout(TimeoutPhase::Connect) } else { ModelErrorKind::Network };
        self.error(kind, shown(&self.url)).source(source)
    }

    fn silent(&self, phase: TimeoutPhase, after: Duration) -> ModelError {
        self.error(ModelErrorKind::Timeout(phase), format!("nothing for {} s", after.as_secs_f64()))
    }

    fn interrupted(&self, message: impl Into<String>) -> ModelError {
        self.error(ModelErrorKind::Interrupted, message)
    }

    fn protocol(&self, message: impl Into<String>) -> ModelError {
        self.error(ModelErrorKind::Malformed, message)
    }

    fn error(&self, kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        ModelError::new(kind, &self.model, message).provider(self.provider)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("model", &self.model)
            .field("url", &shown(&self.url))
            .finish_non_exhaustive()
    }
}

/// The user's headers and the key.
pub(crate) fn authorized(config: &ModelConfig, (name, before): (&'static str, &str)) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(key) = &config.api_key
        && let Ok(mut value) = HeaderValue::try_from(format!("{before}{}", key.expose_secret()))
    {
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    for (name, value) in &config.headers {
        if let (Ok(name), Ok(mut value)) =
            (HeaderName::try_from(name), HeaderValue::try_from(value.expose_secret()))
        {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
    headers
}

fn is_of_kind(headers: &HeaderMap, kind: &str) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.trim_start().to_ascii_lowercase().starts_with(kind)
}
