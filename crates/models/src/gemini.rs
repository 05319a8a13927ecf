//! Google's Gemini API, in its own words.
//!
//! Invariant: what the model signed goes back on the same part, byte for byte; two parts never become one when either
//! is signed.

mod parts;
mod request;
mod schema;
mod stream;
mod thinking;
mod wire;

use hart_kernel::ChatRequest;

use crate::body::Encoder;
use crate::client::{Client, Protocol};
use crate::config::ModelConfig;
use crate::grouped::Part;
use crate::http::Endpoint;
use parts::Role;
use request::{Settings, body};
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
pub(crate) type Gemini = Client<Settings>;

impl Protocol for Settings {
    type Encoded = Part<Role>;
    type Decoder = GeminiDecoder;

    fn endpoint(config: &ModelConfig) -> Endpoint {
        Endpoint::new(config, &path(&config.model), KEY)
    }

    fn body(&self, encoder: &mut Encoder<Part<Role>>, request: &ChatRequest) -> Vec<u8> {
        body(self, encoder, request)
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
