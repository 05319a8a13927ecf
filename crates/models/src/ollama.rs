//! Ollama's own chat API.
//!
//! Invariant: every request says how long a conversation may be, and that a longer one is to be refused: left to
//! itself, the server forgets the beginning without a word.

mod request;
mod stream;

use bytes::Bytes;
use hart_kernel::ChatRequest;

use crate::body::Encoder;
use crate::client::{Client, Protocol};
use crate::config::ModelConfig;
use crate::http::{BEARER, Endpoint};
use request::{Settings, body};
use stream::OllamaDecoder;

/// What fits into a conversation where nobody says otherwise. The server's own default, 4096, is less than the prompt
/// and the tools of an agent; memory for the whole window of a modern model is more than most machines have.
pub(crate) const DEFAULT_CONTEXT: u32 = 32_768;

/// A model behind `/api/chat`.
pub(crate) type Ollama = Client<Settings>;

impl Protocol for Settings {
    type Encoded = Bytes;
    type Decoder = OllamaDecoder;

    fn endpoint(config: &ModelConfig) -> Endpoint {
        // A server of one's own needs no key; a proxy before it, or Ollama's cloud, takes it so.
        Endpoint::new(config, "/api/chat", BEARER).accepting("application/x-ndjson")
    }

    fn body(&self, encoder: &mut Encoder<Bytes>, request: &ChatRequest) -> Vec<u8> {
        body(self, encoder, request)
    }
}
