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

use bytes::Bytes;
use hart_kernel::ChatRequest;

use crate::body::Encoder;
use crate::client::{Client, Protocol};
use crate::config::ModelConfig;
use crate::http::{BEARER, Endpoint};
pub(crate) use items::is_answer;
use request::{Settings, body};
use stream::ResponseDecoder;

/// A model behind `/responses`.
pub(crate) type Responses = Client<Settings>;

impl Protocol for Settings {
    type Encoded = Bytes;
    type Decoder = ResponseDecoder;

    fn endpoint(config: &ModelConfig) -> Endpoint {
        Endpoint::new(config, "/responses", BEARER)
    }

    fn body(&self, encoder: &mut Encoder<Bytes>, request: &ChatRequest) -> Vec<u8> {
        body(self, encoder, request)
    }
}
