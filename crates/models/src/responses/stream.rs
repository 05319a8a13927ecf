//! Reads the stream of a response.
//!
//! Invariant: an item counts as its last event tells it; what was streamed stands in only for an item that broke off.

use std::collections::VecDeque;

use hart_kernel::ChatChunk;
use hart_types::{
    Body, InputTokenDetails, Message, OutputTokenDetails, ToolCallChunk, ToolCallId, UsageMetadata,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::items::{Answer, OBJECT};
use super::open::{Kind, Open};
use crate::http::{Decoder, Failure, Fault, Progress};
use crate::sse::SseEvent;
use crate::tool_args::is_cut;
use crate::wire::Text;

/// Builds one answer.
#[derive(Debug, Default)]
pub(crate) struct ResponseDecoder {
    provider: &'static str,
    items: Vec<Open>,
    calls: usize,
    /// Whether reasoning has been told: the next summary then begins a new paragraph.
    reasoned: bool,
    id: String,
    model: String,
    service_tier: String,
    usage: Option<Usage>,
    end: Option<End>,
}

/// How the provider says it ended.
#[derive(Debug)]
struct End {
    status: &'static str,
    incomplete: Option<Value>,
}

impl ResponseDecoder {
    /// The item at `index`; one that was never announced begins here.
    fn item(&mut self, index: u64, kind: &str) -> Option<&mut Open> {
        if !self.items.iter().any(|open| open.index == index) {
            let map = Map::from_iter([("type".to_owned(), kind.into())]);
            self.items.push(Open::new(index, map));
        }
        self.items.iter_mut().rfind(|open| open.index == index)
    }

    fn added(&mut self, index: u64, item: Map<String, Value>, out: &mut VecDeque<ChatChunk>) {
        let mut open = Open::new(index, item);
        if open.is("function_call") {
            self.announce(&mut open, out);
        }
        self.items.push(open);
    }

    /// Tells of a new call, and makes sure that it has an id.
    fn announce(&mut self, open: &mut Open, out: &mut VecDeque<ChatChunk>) {
        let text = |key: &str| open.map.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let id: ToolCallId = match text("call_id").or_else(|| text("id")) {
            Some(id) => id.into(),
            None => format!("call_{}", ToolCallId::generate()).into(),
        };
        let name = text("name").unwrap_or_default().to_owned();
        open.map.insert("call_id".to_owned(), id.as_str().into());
        open.call = Some(self.calls);
        out.push_back(ChatChunk::ToolCall(ToolCallChunk::new(
            self.calls,
            Some(id),
            Some(name),
            String::new(),
        )));
        self.calls += 1;
    }

    fn delta(&mut self, at: u64, kind: Kind, part: u64, text: &str, out: &mut VecDeque<ChatChunk>) {
        let thought = matches!(kind, Kind::Summary | Kind::Thought);
        let after = self.reasoned;
        let Some(open) = self.item(at, if thought { "reasoning" } else { "message" }) else { return };
        let begins = open.grow(kind, part, text);
        if text.is_empty() {
            return;
        }
        match kind {
            Kind::Text => out.push_back(ChatChunk::Text(text.to_owned())),
            Kind::Refusal => {}
            Kind::Summary | Kind::Thought => {
                if begins && after {
                    out.push_back(ChatChunk::Reasoning("\n\n".to_owned()));
                }
                out.push_back(ChatChunk::Reasoning(text.to_owned()));
                self.reasoned = true;
            }
        }
    }

    fn arguments(&mut self, at: u64, piece: &str, out: &mut VecDeque<ChatChunk>) {
        let Some(open) = self.item(at, "function_call") else { return };
        open.arguments.push_str(piece);
        if let (Some(call), false) = (open.call, piece.is_empty()) {
            out.push_back(ChatChunk::ToolCall(ToolCallChunk::new(call, None, None, piece.to_owned())));
        }
    }

    /// Takes the item as it ended, and tells what of it was not streamed.
    fn done(&mut self, index: u64, item: Map<String, Value>, out: &mut VecDeque<ChatChunk>) {
        if !self.items.iter().any(|open| open.index == index && !open.done) {
            let mut opening = item.clone();
            opening.shift_remove("arguments");
            self.added(index, opening, out);
        }
        let untold = match self.items.iter().rfind(|open| open.index == index) {
            Some(open) => open.untold(&item),
            None => Vec::new(),
        };
        for (kind, part, text) in untold {
            match kind {
                Some(kind) => self.delta(index, kind, part, &text, out),
                None => self.arguments(index, &text, out),
            }
        }
        if let Some(open) = self.items.iter_mut().rfind(|open| open.index == index) {
            open.close(item);
        }
    }

    fn begin(&mut self, response: &Response<'_>) {
        let told = |field: &Option<Text<'_>>| field.as_deref().unwrap_or_default().to_owned();
        for (field, value) in [
            (&mut self.id, told(&response.id)),
            (&mut self.model, told(&response.model)),
            (&mut self.service_tier, told(&response.service_tier)),
        ] {
            if !value.is_empty() {
                *field = value;
            }
        }
    }

    fn finish(&mut self, status: &'static str, response: Response<'_>, out: &mut VecDeque<ChatChunk>) {
        self.begin(&response);
        // Some servers tell the items only here.
        for (index, raw) in (0..).zip(response.output.into_iter().flatten()) {
            if self.items.iter().any(|open| open.index == index && open.done) {
                continue;
            }
            let item: Option<Map<String, Value>> = serde_json::from_str(raw.get()).ok();
            let Some(item) = item else { continue };
            let id = item.get("id").filter(|id| !id.is_null());
            if id.is_none() || !self.items.iter().any(|open| open.done && open.map.get("id") == id) {
                self.done(index, item, out);
            }
        }
        self.usage = response.usage;
        let incomplete = response.incomplete_details.and_then(|raw| serde_json::from_str(raw.get()).ok());
        self.end = Some(End { status, incomplete: incomplete.filter(|why: &Value| !why.is_null()) });
    }

    /// The reason in the words of chat completions, which is what LangChain's readers know.
    fn finish_reason(&self, called: bool) -> Option<String> {
        let end = self.end.as_ref()?;
        let why = end.incomplete.as_ref().and_then(|why| why.get("reason")).and_then(Value::as_str);
        let word = match (end.status, why) {
            ("incomplete", Some("max_output_tokens") | None) => "length",
            ("incomplete", Some(other)) => other,
            _ if called => "tool_calls",
            _ => "stop",
        };
        Some(word.to_owned())
    }

    fn metadata(&mut self, called: bool) -> Map<String, Value> {
        let mut metadata = Map::new();
        let reason = self.finish_reason(called).unwrap_or_default();
        let end = self.end.take();
        let fields = [
            ("finish_reason", reason),
            ("model_name", std::mem::take(&mut self.model)),
            ("model_provider", self.provider.to_owned()),
            ("service_tier", std::mem::take(&mut self.service_tier)),
            ("object", OBJECT.to_owned()),
            ("status", end.as_ref().map(|end| end.status).unwrap_or_default().to_owned()),
            ("id", std::mem::take(&mut self.id)),
        ];
        for (key, value) in fields {
            if !value.is_empty() {
                metadata.insert(key.to_owned(), value.into());
            }
        }
        if let Some(why) = end.and_then(|end| end.incomplete) {
            metadata.insert("incomplete_details".to_owned(), why);
        }
        metadata
    }
}

impl Decoder for ResponseDecoder {
    fn new(provider: &'static str) -> Self {
        Self { provider, ..Self::default() }
    }

    fn event(&mut self, event: SseEvent<'_>, out: &mut VecDeque<ChatChunk>) -> Result<Progress, Fault> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            // No word of this API; only proxies end a stream so.
            return Ok(Progress::More);
        }
        let broken = |error: serde_json::Error| Fault::Protocol(error.to_string());
        let parsed: Event<'_> = serde_json::from_str(data).map_err(broken)?;
        let kind = parsed.kind.as_deref().unwrap_or(event.event);
        let index = parsed.output_index.unwrap_or_else(|| self.items.last().map_or(0, |open| open.index));
        let part = parsed.content_index.or(parsed.summary_index).unwrap_or_default();
        let delta = || parsed.delta.and_then(text).unwrap_or_default();
        match kind {
            "response.output_text.delta" => self.delta(index, Kind::Text, part, &delta(), out),
            "response.function_call_arguments.delta" => self.arguments(index, &delta(), out),
            "response.reasoning_summary_text.delta" => self.delta(index, Kind::Summary, part, &delta(), out),
            "response.reasoning_text.delta" => self.delta(index, Kind::Thought, part, &delta(), out),
            "response.refusal.delta" => self.delta(index, Kind::Refusal, part, &delta(), out),
            "response.output_item.added" | "response.output_item.done" => {
                let Some(item) = parsed.item else { return Ok(Progress::More) };
                let item = serde_json::from_str(item.get()).map_err(broken)?;
                let index = parsed.output_index.unwrap_or(self.items.len() as u64);
                if kind.ends_with("added") {
                    self.added(index, item, out);
                } else {
                    self.done(parsed.output_index.unwrap_or_else(|| self.last_open()), item, out);
                }
            }
            "response.output_text.annotation.added" => {
                let note = parsed.annotation.and_then(|raw| serde_json::from_str(raw.get()).ok());
                if let (Some(open), Some(note)) = (self.item(index, "message"), note) {
                    open.annotate(part, note);
                }
            }
            "response.created" | "response.in_progress" => {
                if let Some(response) = parsed.response {
                    self.begin(&serde_json::from_str(response.get()).map_err(broken)?);
                }
            }
            "response.completed" | "response.incomplete" => {
                let status = if kind.ends_with("incomplete") { "incomplete" } else { "completed" };
                let response = parsed.response.map(|raw| serde_json::from_str(raw.get()));
                self.finish(status, response.transpose().map_err(broken)?.unwrap_or_default(), out);
                return Ok(Progress::Complete);
            }
            "response.failed" => {
                let response: Option<Value> =
                    parsed.response.and_then(|raw| serde_json::from_str(raw.get()).ok());
                return Err(failure(response.as_ref().and_then(|response| response.get("error"))));
            }
            "error" => {
                let event: Option<Value> = serde_json::from_str(data).ok();
                let nested = event.as_ref().and_then(|event| event.get("error")).filter(|e| !e.is_null());
                return Err(failure(nested.or(event.as_ref())));
            }
            // Some proxies send an error without saying that it is one.
            _ if parsed.error.is_some_and(|error| error.get() != "null") => {
                let error: Option<Value> = parsed.error.and_then(|raw| serde_json::from_str(raw.get()).ok());
                return Err(failure(error.as_ref()));
            }
            _ => {} // what `output_item.done` says again, and kinds yet to be invented
        }
        Ok(Progress::More)
    }

    fn is_complete(&self) -> bool {
        self.end.is_some()
    }

    fn take(&mut self) -> Message {
        let cut = self.finish_reason(false).as_deref().is_some_and(is_cut);
        let mut answer = Answer::new(cut);
        std::mem::take(&mut self.items).into_iter().for_each(|open| answer.add(open.into_item()));
        answer.ai.usage = self.usage.take().map(Usage::normalised);
        let called = !answer.ai.tool_calls.is_empty() || !answer.ai.invalid_tool_calls.is_empty();
        let content = answer.content();
        let mut message = Message::new(Body::Ai(answer.ai), content);
        message.response_metadata = self.metadata(called);
        if !answer.refusal.is_empty() {
            message.additional_kwargs.insert("refusal".to_owned(), answer.refusal.into());
        }
        message
    }
}

impl ResponseDecoder {
    fn last_open(&self) -> u64 {
        let open = self.items.iter().rfind(|open| !open.done);
        open.map_or(self.items.len() as u64, |open| open.index)
    }
}

/// Borrowed where it can be: this is what comes most.
fn text(raw: &RawValue) -> Option<Text<'_>> {
    serde_json::from_str(raw.get()).ok()
}

/// Here the code is what tells errors apart; elsewhere it is the type.
fn failure(error: Option<&Value>) -> Fault {
    let mut error = error.cloned().unwrap_or_else(|| json!({"message": "the provider gave no reason"}));
    if let Some(map) = error.as_object_mut() {
        let word = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, code) = (word("type"), word("code"));
        let limited =
            |word: &str| ["rate_limit", "too_many_requests", "quota"].iter().any(|w| word.contains(w));
        if limited(&kind) || limited(&code) {
            map.insert("type".to_owned(), "rate_limit_error".into());
        } else if kind.is_empty() || kind == "error" {
            map.insert("type".to_owned(), code.into());
        }
    }
    Fault::Provider(Failure::of_error(&error))
}

/// An event. Kinds yet to be invented may put anything into a field, so that most are read only when they are needed.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    output_index: Option<u64>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    delta: Option<&'a RawValue>,
    item: Option<&'a RawValue>,
    annotation: Option<&'a RawValue>,
    response: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    model: Option<Text<'a>>,
    service_tier: Option<Text<'a>>,
    output: Option<Vec<&'a RawValue>>,
    usage: Option<Usage>,
    incomplete_details: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    total_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl Usage {
    fn normalised(self) -> UsageMetadata {
        let mut usage =
            UsageMetadata::new(self.input_tokens.unwrap_or_default(), self.output_tokens.unwrap_or_default());
        usage.total_tokens = self.total_tokens.unwrap_or(usage.total_tokens);
        if let Some(InputDetails { cached_tokens, cache_write_tokens }) = self.input_tokens_details
            && (cached_tokens.is_some() || cache_write_tokens.is_some())
        {
            usage.input_token_details = Some(InputTokenDetails {
                cache_read: cached_tokens,
                cache_creation: cache_write_tokens,
                extra: Map::new(),
            });
        }
        if let Some(OutputDetails { reasoning_tokens: Some(reasoning) }) = self.output_tokens_details {
            usage.output_token_details =
                Some(OutputTokenDetails { reasoning: Some(reasoning), extra: Map::new() });
        }
        usage
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
