//! OpenAI's Responses API, and the servers that imitate it.
//!
//! Invariant: the items of an answer go back as they came, in their order: reasoning is encrypted, belongs to what
//! follows it, and the provider keeps no copy.

mod files;
mod items;
mod open;
mod reasoning;
mod request;
mod stream;

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use hart_kernel::{ChatModel, ChatRequest, ChatStream, ModelError, ModelProfile};
use tokio_util::sync::CancellationToken;

use crate::config::ModelConfig;
use crate::http::Endpoint;
pub(crate) use items::is_answer;
use request::{Encoder, Settings};
use stream::ResponseDecoder;

/// A model behind `/responses`.
#[derive(Debug)]
pub struct Responses {
    profile: ModelProfile,
    endpoint: Endpoint,
    http: reqwest::Client,
    settings: Settings,
    encoder: Mutex<Encoder>,
}

impl Responses {
    pub fn new(config: &ModelConfig, http: &reqwest::Client) -> Self {
        Self {
            profile: config.profile(),
            endpoint: Endpoint::new(config, "/responses", ("authorization", "Bearer ")),
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
impl ChatModel for Responses {
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
        let decoder = ResponseDecoder::new(self.endpoint.provider);
        self.endpoint.post(&self.http, body, cancel, decoder).await
    }
}
