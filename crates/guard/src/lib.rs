//! What comes from outside: foreign text as a type, the sanitiser, sealed blocks, personal data.
//!
//! Invariant: nothing here does IO or asks a model. What it says about a text depends on the text alone, and takes
//! time in proportion to its length.

mod invisible;
mod neutral;
mod pii;
mod pii_stream;
mod sealed;
mod tags;
mod untrusted;

pub use neutral::Neutral;
pub use pii::{Finding, PiiDetector, PiiError, PiiKind, PiiStrategy, treat};
pub use pii_stream::PiiStream;
pub use sealed::{Seal, user_input};
pub use tags::TAGS;
pub use untrusted::{Foreign, Untrusted};
