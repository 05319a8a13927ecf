//! Turns a `ChatRequest` into a provider's stream of chunks.
//!
//! Invariant: a provider's JSON is named here and nowhere else; a dialect asks once and [`Resilient`] alone asks again;
//! nothing reads the environment or a file that it was not given.

pub mod address;
mod anthropic;
mod body;
mod calls;
pub mod catalogue;
mod client;
pub mod config;
mod continued;
pub mod discover;
mod encoded;
mod factory;
mod files;
mod fitted;
mod gemini;
mod grouped;
pub mod http;
mod lines;
mod merge;
mod ollama;
mod openai;
mod playback;
pub mod probe;
pub mod reachability;
mod repair;
pub mod replay;
mod resilient;
mod responses;
mod scripted;
pub mod sse;
mod strict_schema;
mod structured;
mod text_calls;
mod thinking;
pub mod tokens;
mod tool_args;
mod wire;

pub use address::Address;
pub use catalogue::{Capabilities, Catalogue, Facts, Known, Origin};
pub use config::{
    Dialect, ENTRY_KEYS, KeyDoc, KeySource, ModelConfig, ModelConfigError, ModelEntry, PRESETS, Preset,
    Pricing, Switch,
};
#[doc(hidden)]
pub use factory::request_writer;
pub use factory::{Context, build};
pub use http::{HttpError, HttpSettings, Proxy};
pub use probe::Profile;
pub use reachability::Reachability;
pub use repair::{Closing, RepairError, Repaired, repair, repair_with};
pub use replay::{Cassette, CassetteError, Recorder, Replay};
pub use resilient::{LimitSettings, Limits, Resilient, RetryPolicy, Route};
pub use scripted::{ScriptedModel, ScriptedTurn};
pub use sse::{SseDecoder, SseEvent};
#[doc(hidden)]
pub use text_calls::scan as scan_text;
pub use text_calls::{CallsInText, TextCalls, TextOptions};
pub use tokens::TokenCounter;
pub use tool_args::parse_tool_arguments;
