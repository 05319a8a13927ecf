//! Spells a turn in a dialect: its stream of events, its single message, its error body.
//!
//! Invariant: the bytes are those the provider documents; a turn's oddities are asked for, never accidental.

mod anthropic;
mod gemini;
mod ollama;
mod openai;
mod responses;

use bytes::Bytes;
use serde_json::Value;

use crate::request::Dialect;
use crate::turn::Turn;

/// What of the request shapes the answer.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Makes the ids of this answer unlike those of any other.
    pub(crate) seq: u64,
    pub(crate) model: String,
    /// OpenAI's `stream_options.include_usage`.
    pub(crate) include_usage: bool,
    /// `reasoning.encrypted_content` among what Responses is asked to include.
    pub(crate) include_encrypted: bool,
}

/// The answer as a stream, one element per event or line.
pub(crate) fn events(dialect: Dialect, turn: &Turn, asked: &Asked) -> Vec<Bytes> {
    match dialect {
        Dialect::OpenAi => openai::events(turn, asked),
        Dialect::Anthropic => anthropic::events(turn, asked),
        Dialect::Responses => responses::events(turn, asked),
        Dialect::Gemini => gemini::events(turn, asked),
        Dialect::Ollama => ollama::lines(turn, asked),
    }
}

/// The answer as one JSON message.
pub(crate) fn message(dialect: Dialect, turn: &Turn, asked: &Asked) -> Value {
    match dialect {
        Dialect::OpenAi => openai::message(turn, asked),
        Dialect::Anthropic => anthropic::message(turn, asked),
        Dialect::Responses => responses::message(turn, asked),
        Dialect::Gemini => gemini::message(turn, asked),
        Dialect::Ollama => ollama::message(turn, asked),
    }
}

pub(crate) fn error(dialect: Dialect, status: u16, message: &str) -> Value {
    match dialect {
        Dialect::OpenAi | Dialect::Responses => openai::error(status, message),
        Dialect::Anthropic => anthropic::error(status, message),
        Dialect::Gemini => gemini::error(status, message),
        Dialect::Ollama => ollama::error(message),
    }
}

pub(crate) fn models(dialect: Dialect) -> Value {
    match dialect {
        Dialect::OpenAi | Dialect::Responses => openai::models(),
        Dialect::Anthropic => anthropic::models(),
        Dialect::Gemini => gemini::models(),
        Dialect::Ollama => ollama::models(),
    }
}

/// The same reason in the dialects' words: OpenAI's, Anthropic's, Gemini's, Ollama's.
const STOP_WORDS: [[&str; 4]; 4] = [
    ["stop", "end_turn", "STOP", "stop"],
    ["tool_calls", "tool_use", "STOP", "stop"],
    ["length", "max_tokens", "MAX_TOKENS", "length"],
    ["content_filter", "refusal", "SAFETY", "stop"],
];

fn stop_word(dialect: Dialect, turn: &Turn) -> &str {
    let said = match &turn.stop {
        Some(word) => word.as_str(),
        None if turn.has_tool_calls() => "tool_calls",
        None => "stop",
    };
    let Some([openai, anthropic, gemini, ollama]) = STOP_WORDS.iter().find(|words| words.contains(&said))
    else {
        return said;
    };
    match dialect {
        Dialect::OpenAi | Dialect::Responses => openai,
        Dialect::Anthropic => anthropic,
        Dialect::Gemini => gemini,
        Dialect::Ollama => ollama,
    }
}
