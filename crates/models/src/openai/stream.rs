//! Reads the stream of a chat completion.
//!
//! Invariant: each event is parsed once, and fields nobody here knows cost nothing and break nothing.

use std::collections::VecDeque;
use std::fmt;

use hart_kernel::ChatChunk;
use hart_types::{Ai, Block, Body, Content, InputTokenDetails, Message, OutputTokenDetails, UsageMetadata};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::calls::{CallDelta, Calls};
use crate::http::{Decoder, Failure, Fault, Progress};
use crate::sse::SseEvent;
use crate::tool_args::is_cut;
use crate::wire::Text;

/// Builds one answer.
#[derive(Debug, Default)]
pub(crate) struct ChatDecoder {
    provider: &'static str,
    text: String,
    reasoning: String,
    reasoning_details: Vec<Value>,
    refusal: String,
    calls: Calls,
    usage: Option<Usage>,
    id: String,
    model: String,
    fingerprint: String,
    finish_reason: Option<String>,
    done: bool,
}

impl ChatDecoder {
    fn delta(&mut self, delta: Delta<'_>, out: &mut VecDeque<ChatChunk>) {
        if let Some(text) = delta.reasoning_content.or(delta.reasoning) {
            self.reasoning(&text, out);
        }
        if let Some(details) = delta.reasoning_details {
            self.reasoning_details
                .extend(serde_json::from_str::<Vec<Value>>(details.get()).unwrap_or_default());
        }
        match delta.content {
            Some(DeltaContent::Text(text)) => self.text(&text, out),
            Some(DeltaContent::Parts(parts)) => {
                for part in parts {
                    part.thinking
                        .iter()
                        .flatten()
                        .for_each(|t| self.reasoning(t.text.as_deref().unwrap_or(""), out));
                    self.text(part.text.as_deref().unwrap_or_default(), out);
                }
            }
            None => {}
        }
        if let Some(refusal) = delta.refusal {
            self.refusal.push_str(&refusal);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            out.push_back(ChatChunk::ToolCall(self.calls.take(&call)));
        }
    }

    fn text(&mut self, text: &str, out: &mut VecDeque<ChatChunk>) {
        if !text.is_empty() {
            self.text.push_str(text);
            out.push_back(ChatChunk::Text(text.to_owned()));
        }
    }

    fn reasoning(&mut self, text: &str, out: &mut VecDeque<ChatChunk>) {
        if !text.is_empty() {
            self.reasoning.push_str(text);
            out.push_back(ChatChunk::Reasoning(text.to_owned()));
        }
    }

    fn count(&mut self, usage: Option<Usage>) {
        // Some servers send an empty object with every chunk.
        let told = usage.filter(|usage| usage.prompt_tokens.is_some() || usage.completion_tokens.is_some());
        self.usage = told.or(self.usage.take());
    }

    fn metadata(&mut self) -> Map<String, Value> {
        let mut metadata = Map::new();
        let fields = [
            ("finish_reason", self.finish_reason.take().unwrap_or_default()),
            ("model_name", std::mem::take(&mut self.model)),
            ("model_provider", self.provider.to_owned()),
            ("system_fingerprint", std::mem::take(&mut self.fingerprint)),
            ("id", std::mem::take(&mut self.id)),
        ];
        for (key, value) in fields {
            if !value.is_empty() {
                metadata.insert(key.to_owned(), value.into());
            }
        }
        metadata
    }
}

impl Decoder for ChatDecoder {
    fn new(provider: &'static str) -> Self {
        Self { provider, ..Self::default() }
    }

    fn event(&mut self, event: SseEvent<'_>, out: &mut VecDeque<ChatChunk>) -> Result<Progress, Fault> {
        let data = event.data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(Progress::Complete);
        }
        if data.is_empty() {
            return Ok(Progress::More);
        }
        let chunk: Chunk<'_> =
            serde_json::from_str(data).map_err(|error| Fault::Protocol(error.to_string()))?;
        if let Some(error) = chunk.error {
            let error = serde_json::from_str(error.get()).unwrap_or_else(|_| Value::from(error.get()));
            return Err(Fault::Provider(Failure::of_error(&error)));
        }
        set_once(&mut self.id, chunk.id);
        set_once(&mut self.model, chunk.model);
        set_once(&mut self.fingerprint, chunk.system_fingerprint);
        self.count(chunk.usage);
        for choice in chunk.choices.into_iter().flatten() {
            self.count(choice.usage);
            if let Some(delta) = choice.delta {
                self.delta(delta, out);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish_reason = Some(reason.0.into_owned());
            }
        }
        Ok(Progress::More)
    }

    fn is_complete(&self) -> bool {
        self.done || self.finish_reason.is_some()
    }

    fn take(&mut self) -> Message {
        let cut = self.finish_reason.as_deref().map_or(!self.done, is_cut);
        let (tool_calls, invalid_tool_calls) = std::mem::take(&mut self.calls).finish(cut);
        let usage = self.usage.take().map(Usage::normalised);
        let text = std::mem::take(&mut self.text);
        let content = if self.reasoning.is_empty() && self.reasoning_details.is_empty() {
            Content::Text(text)
        } else {
            let mut reasoning = Block::reasoning(std::mem::take(&mut self.reasoning));
            if let (false, Block::Object(map)) = (self.reasoning_details.is_empty(), &mut reasoning) {
                map.insert(
                    "reasoning_details".to_owned(),
                    std::mem::take(&mut self.reasoning_details).into(),
                );
            }
            let mut blocks = vec![reasoning];
            if !text.is_empty() {
                blocks.push(Block::text(text));
            }
            Content::Blocks(blocks)
        };
        let mut message = Message::new(Body::Ai(Ai { tool_calls, invalid_tool_calls, usage }), content);
        message.response_metadata = self.metadata();
        if !self.refusal.is_empty() {
            let refusal = std::mem::take(&mut self.refusal);
            message.additional_kwargs.insert("refusal".to_owned(), refusal.into());
        }
        message
    }
}

fn set_once(field: &mut String, value: Option<Text<'_>>) {
    if let (true, Some(value)) = (field.is_empty(), value) {
        field.push_str(&value);
    }
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    model: Option<Text<'a>>,
    system_fingerprint: Option<Text<'a>>,
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Usage>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    finish_reason: Option<Text<'a>>,
    /// Moonshot counts here.
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<DeltaContent<'a>>,
    reasoning_content: Option<Text<'a>>,
    reasoning: Option<Text<'a>>,
    reasoning_details: Option<&'a RawValue>,
    refusal: Option<Text<'a>>,
    tool_calls: Option<Vec<CallDelta<'a>>>,
}

/// Nearly always a string; Mistral's thinking models send parts.
enum DeltaContent<'a> {
    Text(Text<'a>),
    Parts(Vec<Part<'a>>),
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    thinking: Option<Vec<ThinkingPart<'a>>>,
}

#[derive(Deserialize)]
struct ThinkingPart<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for DeltaContent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = DeltaContent<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of parts")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(DeltaContent::Text(Text(text.into())))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(DeltaContent::Text(Text(text.to_owned().into())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(part) = parts.next_element()? {
                    all.push(part);
                }
                Ok(DeltaContent::Parts(all))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Token counts in every spelling in use.
#[derive(Debug, Deserialize)]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's.
    prompt_cache_hit_tokens: Option<u64>,
    /// Moonshot's.
    cached_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    /// OpenRouter's.
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl Usage {
    fn normalised(self) -> UsageMetadata {
        let mut usage = UsageMetadata::new(
            self.prompt_tokens.unwrap_or_default(),
            self.completion_tokens.unwrap_or_default(),
        );
        usage.total_tokens = self.total_tokens.unwrap_or(usage.total_tokens);
        let details = self.prompt_tokens_details;
        let cache_creation = details.as_ref().and_then(|details| details.cache_write_tokens);
        let cache_read = details
            .and_then(|details| details.cached_tokens)
            .or(self.prompt_cache_hit_tokens)
            .or(self.cached_tokens);
        let reasoning = self.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        // LangChain tells of both kinds, also where nothing is known.
        usage.input_token_details = Some(InputTokenDetails { cache_read, cache_creation, extra: Map::new() });
        usage.output_token_details = Some(OutputTokenDetails { reasoning, extra: Map::new() });
        usage
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
