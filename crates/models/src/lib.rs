//! Turns a `ChatRequest` into a provider's stream of chunks.
//!
//! Invariant: a provider's JSON is named here and nowhere else; nothing here retries, and nothing reads the
//! environment or a file that it was not given.

mod anthropic;
pub mod config;
mod continued;
pub mod discover;
mod encoded;
mod factory;
mod files;
pub mod http;
mod merge;
mod openai;
mod playback;
pub mod reachability;
pub mod replay;
mod scripted;
pub mod sse;
mod structured;
mod thinking;
pub mod tokens;
mod tool_args;
mod wire;

pub use anthropic::Anthropic;
pub use config::{
    Dialect, ENTRY_KEYS, KeyDoc, ModelConfig, ModelConfigError, ModelEntry, PRESETS, Preset, Pricing,
};
pub use factory::build;
pub use openai::OpenAi;
pub use reachability::Reachability;
pub use replay::{Cassette, CassetteError, Recorder, Replay};
pub use scripted::{ScriptedModel, ScriptedTurn};
pub use sse::{SseDecoder, SseEvent};
pub use tokens::TokenCounter;
pub use tool_args::parse_tool_arguments;
