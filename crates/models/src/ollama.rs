//! Ollama's own chat API.
//!
//! Invariant: every request says how long a conversation may be, and that a longer one is to be refused: left to
//! itself, the server forgets the beginning without a word.

mod request;
mod stream;

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use hart_kernel::{ChatModel, ChatRequest, ChatStream, ModelError, ModelProfile};
use tokio_util::sync::CancellationToken;

use crate::config::ModelConfig;
use crate::http::Endpoint;
use request::{Encoder, Settings};
use stream::OllamaDecoder;

/// What fits into a conversation where nobody says otherwise. The server's own default, 4096, is less than the prompt
/// and the tools of an agent; memory for the whole window of a modern model is more than most machines have.
pub(crate) const DEFAULT_CONTEXT: u32 = 32_768;

/// A model behind `/api/chat`.
#[derive(Debug)]
pub struct Ollama {
    profile: ModelProfile,
    endpoint: Endpoint,
    http: reqwest::Client,
    settings: Settings,
    encoder: Mutex<Encoder>,
}

impl Ollama {
    pub fn new(config: &ModelConfig, http: &reqwest::Client) -> Self {
        // A server of one's own needs no key; a proxy before it, or Ollama's cloud, takes it so.
        let endpoint = Endpoint::new(config, "/api/chat", ("authorization", "Bearer "));
        Self {
            profile: config.profile(),
            endpoint: endpoint.accepting("application/x-ndjson"),
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
impl ChatModel for Ollama {
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
        let decoder = OllamaDecoder::new(self.endpoint.provider);
        self.endpoint.post(&self.http, body, cancel, decoder).await
    }
}
