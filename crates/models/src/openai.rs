//! Chat completions, as OpenAI defined them and most servers imitate them.
//!
//! Invariant: how a server departs from the definition is handled here; a finished message looks the same for all.

mod calls;
mod messages;
mod request;
mod stream;

use hart_kernel::{ChatRequest, OutputFormat};

use crate::body::Encoder;
use crate::client::{Client, Protocol};
use crate::config::ModelConfig;
use crate::http::{BEARER, Endpoint};
use crate::structured::StructuredOutput;
use messages::Encoded;
pub(crate) use request::decimal;
use request::{Settings, body};
use stream::ChatDecoder;

/// A model behind `/chat/completions`.
pub(crate) type OpenAi = Client<Settings>;

impl Protocol for Settings {
    type Encoded = Encoded;
    type Decoder = ChatDecoder;

    fn endpoint(config: &ModelConfig) -> Endpoint {
        Endpoint::new(config, "/chat/completions", BEARER)
    }

    fn structured(&self, _format: &OutputFormat) -> StructuredOutput {
        self.structured
    }

    fn body(&self, encoder: &mut Encoder<Encoded>, request: &ChatRequest) -> Vec<u8> {
        body(self, encoder, request)
    }
}
