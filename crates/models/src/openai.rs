//! Chat completions, as OpenAI defined them and most servers imitate them.
//!
//! Invariant: how a server departs from the definition is handled here; a finished message looks the same for all.

mod calls;
mod request;
mod stream;

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use hart_kernel::{ChatModel, ChatRequest, ChatStream, ModelError, ModelProfile};
use tokio_util::sync::CancellationToken;

use crate::config::ModelConfig;
use crate::http::Endpoint;
use crate::structured;
pub(crate) use request::decimal;
use request::{Encoder, Settings};
use stream::ChatDecoder;

/// A model behind `/chat/completions`.
#[derive(Debug)]
pub struct OpenAi {
    profile: ModelProfile,
    endpoint: Endpoint,
    http: reqwest::Client,
    settings: Settings,
    encoder: Mutex<Encoder>,
}

impl OpenAi {
    pub fn new(config: &ModelConfig, http: &reqwest::Client) -> Self {
        Self {
            profile: config.profile(),
            endpoint: Endpoint::new(config, "/chat/completions", ("authorization", "Bearer ")),
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
impl ChatModel for OpenAi {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn stream(
        &self,
        mut request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        let format = request.settings.output.clone();
        let after = structured::prepare(self.settings.structured, &mut request);
        let body = self.body(&request);
        drop(request);
        let decoder = ChatDecoder::new(self.endpoint.provider);
        let answer = self.endpoint.post(&self.http, body, cancel, decoder).await?;
        Ok(structured::finish(answer, after, &format))
    }
}
