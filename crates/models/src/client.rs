//! One client for every dialect: it asks once, over HTTP, and reads the stream that comes back.
//!
//! Invariant: what a dialect does in its own way stands in its [`Protocol`]; everything else is the same for all.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use hart_kernel::{ChatChunk, ChatModel, ChatRequest, ChatStream, ModelError, ModelProfile, OutputFormat};
use tokio_util::sync::CancellationToken;

use crate::body::{Encoder, Standing};
use crate::config::ModelConfig;
use crate::encoded::Size;
use crate::http::{Decoder, Endpoint};
use crate::structured::{self, StructuredOutput};
use crate::tokens::TokenCounter;

/// What one dialect does in its own way.
pub(crate) trait Protocol: for<'a> From<&'a ModelConfig> + fmt::Debug + Send + Sync + 'static {
    /// One message in the dialect's words, as it is kept for the next request.
    type Encoded: Clone + fmt::Debug + Send + Size;
    type Decoder: Decoder;

    /// Where it is asked, and with which headers.
    fn endpoint(config: &ModelConfig) -> Endpoint;

    /// How JSON is asked for.
    fn structured(&self, _format: &OutputFormat) -> StructuredOutput {
        StructuredOutput::Schema
    }

    fn body(&self, encoder: &mut Encoder<Self::Encoded>, request: &ChatRequest) -> Vec<u8>;
}

/// A model that is spoken to by `P`.
#[derive(Debug)]
pub(crate) struct Client<P: Protocol> {
    profile: ModelProfile,
    endpoint: Endpoint,
    http: reqwest::Client,
    protocol: P,
    encoder: Mutex<Encoder<P::Encoded>>,
    counter: Arc<TokenCounter>,
}

impl<P: Protocol> Client<P> {
    pub(crate) fn new(config: &ModelConfig, http: &reqwest::Client, shared: Shared) -> Self {
        let Shared { counter, standing } = shared;
        Self {
            profile: config.profile(),
            endpoint: P::endpoint(config),
            http: http.clone(),
            protocol: P::from(config),
            encoder: Mutex::new(Encoder::new(standing)),
            counter,
        }
    }
}

/// What a client has from those before it.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) counter: Arc<TokenCounter>,
    pub(crate) standing: Arc<Standing>,
}

/// A client of any dialect.
pub(crate) trait Asking: ChatModel {
    /// The request as it is sent.
    fn body(&self, request: &ChatRequest) -> Vec<u8>;
}

impl<P: Protocol> Asking for Client<P> {
    fn body(&self, request: &ChatRequest) -> Vec<u8> {
        // Another caller's panic cannot leave half an entry behind.
        let mut encoder = self.encoder.lock().unwrap_or_else(PoisonError::into_inner);
        self.protocol.body(&mut encoder, request)
    }
}

#[async_trait]
impl<P: Protocol> ChatModel for Client<P> {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn count_text(&self, text: &str) -> u64 {
        self.counter.count_text(text)
    }

    fn count_request(&self, request: &ChatRequest) -> u64 {
        self.counter.count_request(request)
    }

    async fn stream(
        &self,
        mut request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        let format = request.settings.output.clone();
        let after = structured::prepare(self.protocol.structured(&format), &mut request);
        let counted = self.counter.count_request(&request);
        let body = self.body(&request);
        // The answer may take minutes; the conversation need not be held for it.
        drop(request);
        let decoder = P::Decoder::new(self.endpoint.provider);
        let answer = self.endpoint.post(&self.http, body, cancel, decoder).await?;
        let counter = Arc::clone(&self.counter);
        let answer = answer.inspect(move |item| {
            if let Ok(ChatChunk::Done(message)) = item
                && let Some(usage) = message.as_ai().and_then(|ai| ai.usage.as_ref())
            {
                counter.observe(counted, usage.input_tokens);
            }
        });
        Ok(structured::finish(Box::pin(answer), after, &format))
    }
}
