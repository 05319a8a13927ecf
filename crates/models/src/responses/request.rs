//! Spells a conversation as a Responses request.
//!
//! Invariant: a request leaves nothing with the provider unless the user wants it to.

use bytes::Bytes;
use hart_kernel::{ChatRequest, ModelSettings, OutputFormat, ToolChoice, ToolSpec};
use hart_types::{Body, Message};
use serde_json::{Map, Value, json};

use super::files::input_content;
use super::items;
use super::reasoning::Reasons;
use crate::body::{Encoder, write_list};
use crate::config::ModelConfig;
use crate::encoded::write_json;
use crate::merge;
use crate::openai::decimal;
use crate::strict_schema::is_strict;
use crate::structured;

/// Asks for reasoning in a form that can be given back: without stored responses, the only copy is ours.
const ENCRYPTED: &str = "reasoning.encrypted_content";

/// Parameters of chat completions that have no counterpart here, and that OpenAI refuses.
const CHAT_ONLY: [&str; 8] =
    ["stop", "stop_sequences", "seed", "frequency_penalty", "presence_penalty", "logit_bias", "top_k", "n"];

/// What of the configuration shapes a request.
#[derive(Debug)]
pub(crate) struct Settings {
    provider: &'static str,
    model: String,
    max_tokens: Option<u32>,
    temperature: Option<f64>,
    reasons: Reasons,
    /// The provider keeps what it said, because the user wants it to.
    stored: bool,
    extra_body: Map<String, Value>,
}

impl From<&ModelConfig> for Settings {
    fn from(config: &ModelConfig) -> Self {
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
}

impl Settings {
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
    let (name, strict) = (structured::identifier(name), is_strict(schema));
    json!({"type": "json_schema", "name": name, "schema": schema, "strict": strict})
}

/// The whole request.
pub(super) fn body(settings: &Settings, encoder: &mut Encoder<Bytes>, request: &ChatRequest) -> Vec<u8> {
    let mut parameters = settings.parameters(&request.settings);
    parameters.shift_remove("input");
    let configured = parameters.shift_remove("tools");
    let mut out = encoder.open_for(&settings.model, &mut parameters);
    let instructions = encoder.one_system(request, json_string);
    if !instructions.is_empty() {
        out.extend_from_slice(b",\"instructions\":");
        out.extend_from_slice(&instructions);
    }
    let tools = encoder.tools(request.tools.iter(), configured.as_ref(), encode_tool);
    write_list(&mut out, "tools", &tools);
    if let (false, Some(choice)) = (tools.is_empty(), tool_choice(&request.settings.tool_choice)) {
        parameters.entry("tool_choice").or_insert(choice);
    }
    out.extend_from_slice(b",\"input\":[");
    encoder.write_each(&mut out, true, &request.messages, |message| encode(settings, message));
    out.push(b']');
    encoder.close(out, &parameters)
}

/// Empty when there is nothing to say.
fn json_string(text: &str) -> Bytes {
    if text.is_empty() {
        return Bytes::new();
    }
    let mut out = Vec::with_capacity(text.len() + 2);
    write_json(&mut out, text);
    out.into()
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

/// The items of a message, between commas; empty when there is nothing to send.
fn encode(settings: &Settings, message: &Message) -> Bytes {
    // What a provider encrypted can be read by that provider alone.
    let provider = message.response_metadata.get("model_provider");
    let own = items::is_answer(message) && provider.is_some_and(|name| name == settings.provider);
    match &message.body {
        Body::Human => items::spoken("user", input_content(&message.content)),
        Body::System => items::spoken("system", input_content(&message.content)),
        Body::Ai(ai) => items::encode(&message.content, ai, own, settings.stored),
        Body::AiChunk(chunk) => items::encode(&message.content, &chunk.ai, own, settings.stored),
        Body::Tool(result) => items::output(result.tool_call_id.as_str(), input_content(&message.content)),
        Body::Remove | Body::Other(_) => Bytes::new(),
    }
}
