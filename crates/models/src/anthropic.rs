//! Anthropic's Messages API.
//!
//! Invariant: the blocks of an answer go back as they came, in their order: thinking is signed, and a changed block is
//! refused.

mod blocks;
mod caching;
mod claude;
mod request;
mod stream;

use hart_kernel::{ChatRequest, OutputFormat};

use crate::body::Encoder;
use crate::client::{Client, Protocol};
use crate::config::ModelConfig;
use crate::grouped::Part;
use crate::http::Endpoint;
use crate::structured::StructuredOutput;
use blocks::Role;
use request::{Settings, body};
use stream::MessagesDecoder;

/// The header of the key.
pub(crate) const KEY: (&str, &str) = ("x-api-key", "");
pub(crate) const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// A model behind `/v1/messages`.
pub(crate) type Anthropic = Client<Settings>;

impl Protocol for Settings {
    type Encoded = Part<Role>;
    type Decoder = MessagesDecoder;

    fn endpoint(config: &ModelConfig) -> Endpoint {
        let (name, value) = VERSION;
        Endpoint::new(config, "/v1/messages", KEY).with_header(name, value)
    }

    fn structured(&self, format: &OutputFormat) -> StructuredOutput {
        self.structured(format)
    }

    fn body(&self, encoder: &mut Encoder<Part<Role>>, request: &ChatRequest) -> Vec<u8> {
        body(self, encoder, request)
    }
}
