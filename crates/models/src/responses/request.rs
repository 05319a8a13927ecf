//! Spells a conversation as a Responses request.
//!
//! Invariant: a message is encoded once per client, and the same conversation always gives the same bytes.

use bytes::Bytes;
use hart_kernel::{ChatRequest, ModelSettings, OutputFormat, ToolChoice, ToolSpec};
use hart_types::{Body, Message};
use serde_json::{Map, Value, json};

use super::files::input_content;
use super::items;
use super::reasoning::Reasons;
use crate::config::ModelConfig;
use crate::continued::{Conversations, append_items};
use crate::encoded::{Encodings, write_joined, write_json};
use crate::merge;
use crate::openai::decimal;
use crate::strict_schema::is_strict;

/// Asks for reasoning in a form that can be given back: without stored responses, the only copy is ours.
const ENCRYPTED: &str = "reasoning.encrypted_content";
const MAX_NAME: usize = 64;

/// Parameters of chat completions that have no counterpart here, and that OpenAI refuses.
const CHAT_ONLY: [&str; 8] =
    ["stop", "stop_sequences", "seed", "frequency_penalty", "presence_penalty", "logit_bias", "top_k", "n"];

/// What of the configuration shapes a request.
#[derive(Debug)]
pub(super) struct Settings {
    provider: &'static str,
    model: String,
    max_tokens: Option<u32>,
    temperature: Option<f64>,
    reasons: Reasons,
    /// The provider keeps what it said, because the user wants it to.
    stored: bool,
    extra_body: Map<String, Value>,
}

impl Settings {
    pub(super) fn new(config: &ModelConfig) -> Self {
        let mut extra_body = Map::new();
        merge::options(&mut extra_body, &config.extra_body);
        if config.provider == "openai" {
            let refused: Vec<_> =
                CHAT_ONLY.iter().filter(|key| extra_body.shift_remove(**key).is_some()).collect();
            if !refused.is_empty() {
                let model = &config.name;
                tracing::warn!(model, ?refused, "left out: the Responses API does not take these");
            }
        }
        Self {
            provider: config.provider,
            model: config.model.clone(),
            max_tokens: config.max_tokens,
            temperature: config.temperature,
            reasons: Reasons::new(config),
            stored: extra_body.get("store").is_some_and(|store| store == true),
            extra_body,
        }
    }

    /// Everything but the conversation and the tools.
    fn parameters(&self, asked: &ModelSettings) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("stream".to_owned(), true.into());
        body.insert("store".to_owned(), false.into());
        if let Some(max_tokens) = asked.max_tokens.or(self.max_tokens) {
            body.insert("max_output_tokens".to_owned(), max_tokens.into());
        }
        if let Some(temperature) = asked.temperature.and_then(decimal).or(self.temperature) {
            body.insert("temperature".to_owned(), temperature.into());
        }
        merge::deep(&mut body, self.extra_body.clone());
        self.reasons.apply(asked.reasoning, &mut body);
        for word in ["max_tokens", "max_completion_tokens"] {
            if let Some(limit) = body.shift_remove(word) {
                body.entry("max_output_tokens").or_insert(limit);
            }
        }
        if self.reasons.possible {
            include(&mut body);
        }
        let verbosity = body.shift_remove("verbosity");
        if let Some(verbosity) = verbosity.filter(|value| !value.is_null()) {
            in_text(&mut body, "verbosity", verbosity);
        }
        if let OutputFormat::Json { name, schema } = &asked.output {
            in_text(&mut body, "format", format(name, schema));
        }
        // The way to leave out a parameter that a server does not know: set it to null.
        body.retain(|_, value| !value.is_null());
        body
    }
}

fn include(body: &mut Map<String, Value>) {
    match body.entry("include").or_insert_with(|| json!([])) {
        Value::Array(all) if !all.iter().any(|what| what == ENCRYPTED) => all.push(ENCRYPTED.into()),
        _ => {}
    }
}

fn in_text(body: &mut Map<String, Value>, key: &str, value: Value) {
    if let Value::Object(text) = body.entry("text").or_insert_with(|| json!({})) {
        text.entry(key).or_insert(value);
    }
}

fn format(name: &str, schema: &Value) -> Value {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = name.chars().take(MAX_NAME).map(|c| if fits(c) { c } else { '_' }).collect();
    let name = if name.is_empty() { "answer".to_owned() } else { name };
    json!({"type": "json_schema", "name": name, "schema": schema, "strict": is_strict(schema)})
}

/// What has been encoded before.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    conversations: Conversations,
    /// The items of a message, between commas; empty when there is nothing to send.
    messages: Encodings<Message, Bytes>,
    tools: Encodings<ToolSpec, Bytes>,
    system: Encodings<str, Bytes>,
    /// The next body is likely a little longer than this.
    last_length: usize,
}

pub(super) fn body(settings: &Settings, encoder: &mut Encoder, request: &ChatRequest) -> Vec<u8> {
    let mut parameters = settings.parameters(&request.settings);
    parameters.shift_remove("input");
    let more_tools = parameters.shift_remove("tools");
    let model = parameters.shift_remove("model").unwrap_or_else(|| Value::from(settings.model.as_str()));

    let mut out = Vec::with_capacity(encoder.last_length + 4096);
    out.extend_from_slice(b"{\"model\":");
    write_json(&mut out, &model);
    let leading = request.messages.iter().take_while(|message| matches!(message.body, Body::System)).count();
    let instructions = instructions(encoder, request, leading);
    if !instructions.is_empty() {
        out.extend_from_slice(b",\"instructions\":");
        out.extend_from_slice(&instructions);
    }
    let mut tools: Vec<Bytes> =
        request.tools.iter().map(|tool| encoder.tools.of(tool, encode_tool)).collect();
    if let Some(Value::Array(more)) = &more_tools {
        tools.extend(more.iter().map(|tool| Bytes::from(tool.to_string())));
    }
    if !tools.is_empty() {
        out.extend_from_slice(b",\"tools\":[");
        write_joined(&mut out, &tools);
        out.push(b']');
        if let Some(choice) = tool_choice(&request.settings.tool_choice) {
            parameters.entry("tool_choice").or_insert(choice);
        }
    }
    out.extend_from_slice(b",\"input\":[");
    write_conversation(&mut out, settings, encoder, request, leading);
    out.push(b']');
    for (key, value) in &parameters {
        out.push(b',');
        write_json(&mut out, key);
        out.push(b':');
        write_json(&mut out, value);
    }
    out.push(b'}');
    encoder.last_length = out.len();
    out
}

/// The system prompt and the system messages at the start, as one JSON string; empty when there are none.
fn instructions(encoder: &mut Encoder, request: &ChatRequest, leading: usize) -> Bytes {
    if leading == 0 {
        return request
            .system
            .as_ref()
            .map(|system| encoder.system.of(system, json_string))
            .unwrap_or_default();
    }
    let more = request.messages.iter().take(leading).map(|message| message.text());
    let texts = request.system.iter().map(|text| text.to_string()).chain(more);
    json_string(&texts.collect::<Vec<_>>().join("\n\n"))
}

fn json_string(text: &str) -> Bytes {
    if text.is_empty() {
        return Bytes::new();
    }
    let mut out = Vec::with_capacity(text.len() + 2);
    write_json(&mut out, text);
    out.into()
}

/// Writes the messages, taking over what the last request of this conversation already said.
fn write_conversation(
    out: &mut Vec<u8>,
    settings: &Settings,
    encoder: &mut Encoder,
    request: &ChatRequest,
    leading: usize,
) {
    let mut said = encoder.conversations.take(&request.messages);
    let next = said.next().max(leading);
    for (index, message) in (next..).zip(request.messages.iter_from(next)) {
        said.mark(index);
        let items = encoder.messages.of(message, |message| encode(settings, message));
        if !items.is_empty() {
            said.push(&items);
        }
    }
    append_items(out, true, said.bytes());
    encoder.conversations.keep(said);
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Named(name) => Some(json!({"type": "function", "name": name})),
    }
}

/// Left unsaid, `strict` would be true here, and most schemas of tools would be refused.
fn encode_tool(tool: &ToolSpec) -> Bytes {
    let tool = json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
        "strict": false,
    });
    Bytes::from(tool.to_string())
}

fn encode(settings: &Settings, message: &Message) -> Bytes {
    let spoken = |role: &str| {
        let content = input_content(&message.content);
        Bytes::from(json!({"type": "message", "role": role, "content": content}).to_string())
    };
    // What a provider encrypted can be read by that provider alone.
    let provider = message.response_metadata.get("model_provider");
    let own = items::is_answer(message) && provider.is_some_and(|name| name == settings.provider);
    match &message.body {
        Body::Human => spoken("user"),
        Body::System => spoken("system"),
        Body::Ai(ai) => items::encode(&message.content, ai, own, settings.stored),
        Body::AiChunk(chunk) => items::encode(&message.content, &chunk.ai, own, settings.stored),
        Body::Tool(result) => {
            let id = result.tool_call_id.as_str();
            let output = input_content(&message.content);
            Bytes::from(json!({"type": "function_call_output", "call_id": id, "output": output}).to_string())
        }
        Body::Remove | Body::Other(_) => Bytes::new(),
    }
}
