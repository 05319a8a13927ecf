//! Anthropic's Messages API.
//!
//! Invariant: the blocks of an answer go back as they came, in their order: thinking is signed, and a changed block is
//! refused.

mod caching;
mod claude;
mod request;
mod stream;

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use hart_kernel::{ChatModel, ChatRequest, ChatStream, ModelError, ModelProfile};
use tokio_util::sync::CancellationToken;

use crate::config::ModelConfig;
use crate::http::Endpoint;
use crate::structured;
use request::{Encoder, Settings};
use stream::MessagesDecoder;

pub(crate) const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// A model behind `/v1/messages`.
#[derive(Debug)]
pub struct Anthropic {
    profile: ModelProfile,
    endpoint: Endpoint,
    http: reqwest::Client,
    settings: Settings,
    encoder: Mutex<Encoder>,
}

impl Anthropic {
    pub fn new(config: &ModelConfig, http: &reqwest::Client) -> Self {
        let (name, value) = VERSION;
        Self {
            profile: config.profile(),
            endpoint: Endpoint::new(config, "/v1/messages", ("x-api-key", "")).with_header(name, value),
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
impl ChatModel for Anthropic {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn stream(
        &self,
        mut request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        let format = request.settings.output.clone();
        let after = structured::prepare(self.settings.structured(&format), &mut request);
        let body = self.body(&request);
        drop(request);
        let decoder = MessagesDecoder::new(self.endpoint.provider);
        let answer = self.endpoint.post(&self.http, body, cancel, decoder).await?;
        Ok(structured::finish(answer, after, &format))
    }
}
