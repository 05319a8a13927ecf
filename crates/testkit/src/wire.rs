//! Spells a turn in a dialect: its stream of events, its single message, its error body.
//!
//! Invariant: the bytes are those the provider documents; a turn's oddities are asked for, never accidental.

mod anthropic;
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

/// The answer as server-sent events, one element per event.
pub(crate) fn events(dialect: Dialect, turn: &Turn, asked: &Asked) -> Vec<Bytes> {
    match dialect {
        Dialect::OpenAi => openai::events(turn, asked),
        Dialect::Anthropic => anthropic::events(turn, asked),
        Dialect::Responses => responses::events(turn, asked),
    }
}

/// The answer as one JSON message.
pub(crate) fn message(dialect: Dialect, turn: &Turn, asked: &Asked) -> Value {
    match dialect {
        Dialect::OpenAi => openai::message(turn, asked),
        Dialect::Anthropic => anthropic::message(turn, asked),
        Dialect::Responses => responses::message(turn, asked),
    }
}

pub(crate) fn error(dialect: Dialect, status: u16, message: &str) -> Value {
    match dialect {
        Dialect::OpenAi | Dialect::Responses => openai::error(status, message),
        Dialect::Anthropic => anthropic::error(status, message),
    }
}

pub(crate) fn models(dialect: Dialect) -> Value {
    match dialect {
        Dialect::OpenAi | Dialect::Responses => openai::models(),
        Dialect::Anthropic => anthropic::models(),
    }
}

/// The same reason in both dialects' words, OpenAI's first.
const STOP_WORDS: [(&str, &str); 4] = [
    ("stop", "end_turn"),
    ("tool_calls", "tool_use"),
    ("length", "max_tokens"),
    ("content_filter", "refusal"),
];

fn stop_word(dialect: Dialect, turn: &Turn) -> &str {
    let said = match &turn.stop {
        Some(word) => word.as_str(),
        None if turn.has_tool_calls() => "tool_calls",
        None => "stop",
    };
    match (dialect, STOP_WORDS.iter().find(|(openai, anthropic)| [*openai, *anthropic].contains(&said))) {
        (Dialect::OpenAi | Dialect::Responses, Some((openai, _))) => openai,
        (Dialect::Anthropic, Some((_, anthropic))) => anthropic,
        (_, None) => said,
    }
}
