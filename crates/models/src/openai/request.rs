//! Spells a conversation as a chat completion request.
//!
//! Invariant: the images of a tool's result follow the whole batch of results: nothing may stand between those.

use bytes::Bytes;
use hart_kernel::{ChatRequest, ModelSettings, OutputFormat, ToolChoice};
use serde_json::{Map, Value, json};

use super::messages::{Dress, Encoded, encode, encode_system};
use crate::body::{Encoder, leading, write_list};
use crate::calls::{Spelling, encode_function};
use crate::config::{MaxTokensKey, ModelConfig};
use crate::continued::append_items;
use crate::merge;
use crate::structured::{self, StructuredOutput};
use crate::thinking::Thinking;

/// What of the configuration shapes a request.
#[derive(Debug)]
pub(crate) struct Settings {
    model: String,
    max_tokens: Option<u32>,
    max_tokens_key: &'static str,
    temperature: Option<f64>,
    include_usage: bool,
    no_reasoning_with_tools: bool,
    dress: Dress,
    strict_schemas: bool,
    pub(super) structured: StructuredOutput,
    thinking: Thinking,
    extra_body: Map<String, Value>,
}

impl From<&ModelConfig> for Settings {
    fn from(config: &ModelConfig) -> Self {
        Self {
            model: config.model.clone(),
            max_tokens: config.max_tokens,
            max_tokens_key: match config.max_tokens_key {
                MaxTokensKey::MaxTokens => "max_tokens",
                MaxTokensKey::MaxCompletionTokens => "max_completion_tokens",
            },
            temperature: config.temperature,
            // Mistral counts without being asked, and refuses to be asked.
            include_usage: config.provider != "mistral",
            no_reasoning_with_tools: config.provider == "openai" && is_newer_gpt(&config.model),
            dress: Dress {
                provider: config.provider,
                send_reasoning: config.send_reasoning,
                spelling: Spelling::of_provider(config.provider),
            },
            strict_schemas: !config.capabilities.strict_schemas.no(),
            structured: config.structured_output.unwrap_or_else(|| by_provider(config.provider)),
            thinking: Thinking::new(config),
            extra_body: config.extra_body.clone(),
        }
    }
}

impl Settings {
    /// Everything but the conversation and the tools.
    fn parameters(&self, asked: &ModelSettings) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("stream".to_owned(), true.into());
        if self.include_usage {
            body.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
        if let Some(max_tokens) = asked.max_tokens.or(self.max_tokens) {
            body.insert(self.max_tokens_key.to_owned(), max_tokens.into());
        }
        if let Some(temperature) = asked.temperature.and_then(decimal).or(self.temperature) {
            body.insert("temperature".to_owned(), temperature.into());
        }
        merge::options(&mut body, &self.extra_body);
        if let Some(stop) = body.shift_remove("stop_sequences") {
            body.entry("stop").or_insert(stop);
        }
        if !asked.stop.is_empty() {
            body.insert("stop".to_owned(), asked.stop.clone().into());
        }
        if let OutputFormat::Json { name, schema } = &asked.output {
            body.insert("response_format".to_owned(), self.response_format(name, schema));
        }
        self.thinking.apply(asked.reasoning, &mut body);
        // The way to leave out a parameter that a server does not know: set it to null.
        body.retain(|_, value| !value.is_null());
        body
    }

    fn response_format(&self, name: &str, schema: &Value) -> Value {
        if self.structured == StructuredOutput::Object {
            return json!({"type": "json_object"});
        }
        let strict = self.strict_schemas && structured::is_strict(schema);
        let format = json!({"name": structured::identifier(name), "schema": schema, "strict": strict});
        json!({"type": "json_schema", "json_schema": format})
    }
}

/// From 5.4 on, OpenAI's own models refuse tools in this API unless told not to reason, even when nobody asked for it.
fn is_newer_gpt(model: &str) -> bool {
    let Some(version) = model.strip_prefix("gpt-") else { return false };
    let mut numbers = version.split(['.', '-']).map(|part| part.parse::<u32>().ok());
    let version = (numbers.next().flatten().unwrap_or(0), numbers.next().flatten().unwrap_or(0));
    // 4o and 4.1 are older; a date such as 2025 in second place is no version.
    version.0 >= 6 || (version.0 == 5 && (4..100).contains(&version.1))
}

/// These know JSON but no schema, or not even that.
fn by_provider(provider: &str) -> StructuredOutput {
    match provider {
        "deepseek" | "moonshot" | "stepfun" | "mimo" => StructuredOutput::Object,
        "minimax" => StructuredOutput::Prompt,
        _ => StructuredOutput::Schema,
    }
}

/// 0.7, not the 0.699999988 that widening the number gives.
pub(crate) fn decimal(number: f32) -> Option<f64> {
    number.to_string().parse().ok()
}

/// The whole request.
pub(super) fn body(settings: &Settings, encoder: &mut Encoder<Encoded>, request: &ChatRequest) -> Vec<u8> {
    let mut parameters = settings.parameters(&request.settings);
    parameters.shift_remove("messages");
    let configured = parameters.shift_remove("tools");
    let mut out = encoder.open_for(&settings.model, &mut parameters);
    out.extend_from_slice(b",\"messages\":[");
    write_conversation(&mut out, settings, encoder, request);
    out.push(b']');
    let tools = encoder.tools(request.tools.iter(), configured.as_ref(), encode_function);
    write_list(&mut out, "tools", &tools);
    if !tools.is_empty() {
        if settings.no_reasoning_with_tools {
            parameters.insert("reasoning_effort".to_owned(), "none".into());
        }
        if let Some(choice) = tool_choice(&request.settings.tool_choice) {
            parameters.entry("tool_choice").or_insert(choice);
        }
    }
    encoder.close(out, &parameters)
}

/// Writes the messages, taking over what the last request of this conversation already said.
fn write_conversation(
    out: &mut Vec<u8>,
    settings: &Settings,
    encoder: &mut Encoder<Encoded>,
    request: &ChatRequest,
) {
    let system = encoder.one_system(request, encode_system);
    out.extend_from_slice(&system);
    let mut said = encoder.conversations.take(&request.messages);
    let next = said.next().max(leading(&request.messages));
    let mut images: Vec<Bytes> = Vec::new();
    for (index, message) in (next..).zip(request.messages.iter_from(next)) {
        let encoded = encoder.messages.of(message, |message| encode(&settings.dress, message));
        if !encoded.is_tool_result {
            images.drain(..).for_each(|image| said.push(&image));
            said.mark(index);
        }
        if !encoded.json.is_empty() {
            said.push(&encoded.json);
        }
        if !encoded.images.is_empty() {
            images.push(encoded.images);
        }
    }
    append_items(out, system.is_empty(), said.bytes());
    for image in images {
        out.push(b',');
        out.extend_from_slice(&image);
    }
    encoder.conversations.keep(said);
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Named(name) => Some(json!({"type": "function", "function": {"name": name}})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_that_must_not_reason_with_tools() {
        for model in ["gpt-5.4", "gpt-5.6-terra", "gpt-5.5-pro", "gpt-6", "gpt-6.1-sol"] {
            assert!(is_newer_gpt(model), "{model}");
        }
        for model in
            ["gpt-5", "gpt-5-mini", "gpt-5-2025-08-07", "gpt-5.1", "gpt-4.1", "gpt-4o", "gpt-oss-120b", "o3"]
        {
            assert!(!is_newer_gpt(model), "{model}");
        }
    }

    #[test]
    fn decimals_stay_as_written() {
        assert_eq!(decimal(0.7), Some(0.7));
    }
}
