//! Google's Gemini API, in its own words.
//!
//! Invariant: what the model signed goes back on the same part, byte for byte; two parts never become one when either
//! is signed.

mod parts;
mod request;
mod schema;
mod stream;
mod thinking;

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use hart_kernel::{ChatModel, ChatRequest, ChatStream, ModelError, ModelProfile};
use tokio_util::sync::CancellationToken;

use crate::config::ModelConfig;
use crate::http::Endpoint;
use request::{Encoder, Settings};
use stream::GeminiDecoder;

/// The header of the key.
pub(crate) const KEY: (&str, &str) = ("x-goog-api-key", "");
/// Ids that the model did not give begin with this; it never gets to see them.
const MADE_UP_ID: &str = "hart_call_";
/// Where a block or a call keeps the model's signature, spelled as on the wire.
const SIGNATURE: &str = "thoughtSignature";
/// The type of a block that is a part of the API as it came.
const PART: &str = "gemini_part";

/// A model behind `:streamGenerateContent`.
#[derive(Debug)]
pub struct Gemini {
    profile: ModelProfile,
    endpoint: Endpoint,
    http: reqwest::Client,
    settings: Settings,
    encoder: Mutex<Encoder>,
}

impl Gemini {
    pub fn new(config: &ModelConfig, http: &reqwest::Client) -> Self {
        Self {
            profile: config.profile(),
            endpoint: Endpoint::new(config, &path(&config.model), KEY),
            http: http.clone(),
            settings: Settings::new(config),
            encoder: Mutex::default(),
        }
    }

    /// The body of the request, for benchmarks and tests.
    #[doc(hidden)]
    pub fn body(&self, request: &ChatRequest) -> Vec<u8> {
        // Another caller's panic cannot leave half an entry behind.
        let mut encoder = self.encoder.lock().unwrap_or_else(PoisonError::into_inner);
        request::body(&self.settings, &mut encoder, request)
    }
}

#[async_trait]
impl ChatModel for Gemini {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn stream(
        &self,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        let body = self.body(&request);
        drop(request);
        let decoder = GeminiDecoder::new(self.endpoint.provider);
        self.endpoint.post(&self.http, body, cancel, decoder).await
    }
}

/// `gemini-2.5-pro`, `models/gemini-2.5-pro` and `tunedModels/mine` are all names of models.
fn path(model: &str) -> String {
    let folder = if model.contains('/') { "" } else { "models/" };
    let mut name = String::with_capacity(model.len());
    for byte in model.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                name.push(char::from(byte));
            }
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("/v1beta/{folder}{name}:streamGenerateContent?alt=sse")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_model_has_its_address() {
        assert_eq!(path("gemini-2.5-pro"), "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse");
        assert_eq!(path("models/m"), "/v1beta/models/m:streamGenerateContent?alt=sse");
        assert_eq!(path("tunedModels/m"), "/v1beta/tunedModels/m:streamGenerateContent?alt=sse");
        assert_eq!(path("a?b#ü"), "/v1beta/models/a%3Fb%23%C3%BC:streamGenerateContent?alt=sse");
    }
}
