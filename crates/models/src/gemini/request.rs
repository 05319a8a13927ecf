//! Spells a conversation as a request for content.
//!
//! Invariant: words of other providers never reach this API: it refuses what it does not know.

use bytes::Bytes;
use hart_kernel::{ChatRequest, MessageList, ModelSettings, OutputFormat, Reasoning, ToolChoice, ToolSpec};
use hart_types::ToolCallId;
use serde_json::{Map, Value, json};

use super::parts::{Dress, Role, encode};
use super::schema;
use super::thinking::Family;
use crate::body::Encoder;
use crate::config::ModelConfig;
use crate::continued::append_items;
use crate::encoded::{write_joined, write_json};
use crate::grouped::{self, Part};
use crate::merge;
use crate::openai::decimal;
use crate::thinking::Thinking;

/// Parameters in LangChain's and OpenAI's spelling, and where the API has them.
const GENERATION: [(&str, &str); 13] = [
    ("max_tokens", "maxOutputTokens"),
    ("max_output_tokens", "maxOutputTokens"),
    ("temperature", "temperature"),
    ("top_p", "topP"),
    ("top_k", "topK"),
    ("seed", "seed"),
    ("stop", "stopSequences"),
    ("stop_sequences", "stopSequences"),
    ("frequency_penalty", "frequencyPenalty"),
    ("presence_penalty", "presencePenalty"),
    ("response_mime_type", "responseMimeType"),
    ("response_modalities", "responseModalities"),
    ("media_resolution", "mediaResolution"),
];
const THINKING: [(&str, &str); 3] = [
    ("thinking_budget", "thinkingBudget"),
    ("thinking_level", "thinkingLevel"),
    ("include_thoughts", "includeThoughts"),
];
/// Words of other providers that the API would refuse.
const FOREIGN: [&str; 10] = [
    "model",
    "messages",
    "stream",
    "reasoning",
    "reasoning_effort",
    "thinking",
    "service_tier",
    "logit_bias",
    "parallel_tool_calls",
    "chat_template_kwargs",
];

/// What of the configuration shapes a request.
#[derive(Debug)]
pub(crate) struct Settings {
    max_tokens: Option<u32>,
    temperature: Option<f64>,
    family: Family,
    thinking: Thinking,
    dress: Dress,
    extra_body: Map<String, Value>,
}

impl From<&ModelConfig> for Settings {
    fn from(config: &ModelConfig) -> Self {
        let ignored: Vec<&str> =
            FOREIGN.iter().copied().filter(|key| config.extra_body.contains_key(*key)).collect();
        if !ignored.is_empty() {
            tracing::warn!(model = %config.name, ?ignored, "Gemini does not take these parameters");
        }
        let family = Family::of(&config.model);
        Self {
            max_tokens: config.max_tokens,
            temperature: config.temperature,
            family,
            thinking: Thinking::new(config),
            dress: Dress { provider: config.provider, signs_calls: family.signs_calls() },
            extra_body: config.extra_body.clone(),
        }
    }
}

impl Settings {
    /// Everything but the conversation and the tools.
    fn parameters(&self, asked: &ModelSettings, format: Option<&Value>) -> Map<String, Value> {
        let mut body = Map::new();
        merge::options(&mut body, &self.extra_body);
        self.thinking.apply(asked.reasoning, &mut body);
        let mut generation = taken(&mut body, "generationConfig");
        let mut thinking = taken(&mut generation, "thinkingConfig");
        renamed(&mut body, &mut generation, &GENERATION);
        renamed(&mut body, &mut thinking, &THINKING);
        body.retain(|key, _| !FOREIGN.contains(&key.as_str()));

        let max_tokens = asked.max_tokens.or(self.max_tokens).map(Value::from);
        let temperature = asked.temperature.and_then(decimal).or(self.temperature).map(Value::from);
        for (key, value) in [("maxOutputTokens", max_tokens), ("temperature", temperature)] {
            if let Some(value) = value {
                generation.insert(key.to_owned(), value);
            }
        }
        if !asked.stop.is_empty() {
            generation.insert("stopSequences".to_owned(), asked.stop.clone().into());
        }
        if let Some(Value::String(one)) = generation.get("stopSequences") {
            let list = json!([one]);
            generation.insert("stopSequences".to_owned(), list);
        }
        if let Some(schema) = format {
            generation.insert("responseMimeType".to_owned(), "application/json".into());
            generation.insert("responseJsonSchema".to_owned(), schema.clone());
        }
        let reasoning = if self.thinking.supported { asked.reasoning } else { Reasoning::Default };
        self.family.apply(reasoning, &mut thinking);
        if !thinking.is_empty() {
            generation.insert("thinkingConfig".to_owned(), Value::Object(thinking));
        }
        generation.retain(|_, value| !value.is_null());
        if !generation.is_empty() {
            body.insert("generationConfig".to_owned(), Value::Object(generation));
        }
        if let Some(settings) = body.shift_remove("safety_settings") {
            body.insert("safetySettings".to_owned(), safety_settings(settings));
        }
        body.retain(|_, value| !value.is_null());
        body
    }

    /// Before the third generation, a format and tools in one request are refused.
    fn takes_format_with_tools(&self) -> bool {
        self.family.signs_calls()
    }
}

fn taken(map: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    match map.shift_remove(key) {
        Some(Value::Object(inner)) => inner,
        _ => Map::new(),
    }
}

/// Moves parameters to their place; what stands there already was written in the API's own words.
fn renamed(from: &mut Map<String, Value>, to: &mut Map<String, Value>, names: &[(&str, &str)]) {
    for (theirs, ours) in names {
        if let Some(value) = from.shift_remove(*theirs) {
            to.entry(*ours).or_insert(value);
        }
    }
}

/// LangChain writes an object from category to threshold.
fn safety_settings(given: Value) -> Value {
    match given {
        Value::Object(map) => map
            .into_iter()
            .map(|(category, threshold)| json!({"category": category, "threshold": threshold}))
            .collect(),
        list => list,
    }
}

/// The whole request.
pub(super) fn body(settings: &Settings, encoder: &mut Encoder<Part<Role>>, request: &ChatRequest) -> Vec<u8> {
    let format = match &request.settings.output {
        OutputFormat::Text => None,
        OutputFormat::Json { schema, .. } => Some(schema::cleaned(schema).unwrap_or_else(|| json!({}))),
    };
    let tools = encoder.tools(request.tools.iter(), None, encode_tool);
    let in_words = !tools.is_empty() && !settings.takes_format_with_tools();
    let mut parameters = settings.parameters(&request.settings, format.as_ref().filter(|_| !in_words));
    for key in ["contents", "systemInstruction", "tool_choice"] {
        parameters.shift_remove(key);
    }
    let configured = parameters.shift_remove("tools");

    let mut out = encoder.open();
    let mut system = encoder.each_system(request, text_part);
    if let (true, Some(schema)) = (in_words, &format) {
        let asked =
            format!("Give your final answer as JSON that fits this schema, and nothing else: {schema}");
        system.push(text_part(&asked));
    }
    if !system.is_empty() {
        out.extend_from_slice(b"\"systemInstruction\":{\"parts\":[");
        write_joined(&mut out, &system);
        out.extend_from_slice(b"]},");
    }
    write_tools(&mut out, &tools, configured);
    if !tools.is_empty()
        && let Some(config) = tool_config(&request.settings.tool_choice)
    {
        parameters.entry("toolConfig").or_insert(config);
    }
    out.extend_from_slice(b"\"contents\":[");
    write_conversation(&mut out, settings, encoder, &request.messages);
    out.push(b']');
    encoder.close(out, &parameters)
}

fn write_tools(out: &mut Vec<u8>, declared: &[Bytes], more: Option<Value>) {
    // Tools that run at the provider (`google_search`, `code_execution`, …), as the user configured them.
    let more = match more {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    if declared.is_empty() && more.is_empty() {
        return;
    }
    out.extend_from_slice(b"\"tools\":[");
    if !declared.is_empty() {
        out.extend_from_slice(b"{\"functionDeclarations\":[");
        write_joined(out, declared);
        out.extend_from_slice(b"]}");
    }
    for (position, tool) in more.iter().enumerate() {
        if position > 0 || !declared.is_empty() {
            out.push(b',');
        }
        write_json(out, tool);
    }
    out.extend_from_slice(b"],");
}

fn write_conversation(
    out: &mut Vec<u8>,
    settings: &Settings,
    encoder: &mut Encoder<Part<Role>>,
    messages: &MessageList,
) {
    let (said, open) = grouped::conversation(encoder, messages, |index, message| {
        encode(&settings.dress, message, |id| called_name(messages, index, id))
    });
    append_items(out, true, said.bytes());
    if !open.is_empty() {
        if !said.bytes().is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(&open);
        out.extend_from_slice(grouped::END);
    }
    encoder.conversations.keep(said);
}

/// The tool that the call with this id named: a response must repeat the name.
fn called_name(messages: &MessageList, before: usize, id: &ToolCallId) -> Option<String> {
    (0..before).rev().filter_map(|at| messages.get(at)?.as_ai()).find_map(|ai| {
        let valid = ai.tool_calls.iter().map(|call| (&call.id, Some(&call.name)));
        let invalid = ai.invalid_tool_calls.iter().map(|call| (&call.id, call.name.as_ref()));
        let (_, name) = valid.chain(invalid).find(|(called, _)| called.as_ref() == Some(id))?;
        name.cloned().filter(|name| !name.is_empty())
    })
}

fn tool_config(choice: &ToolChoice) -> Option<Value> {
    let config = match choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Named(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    };
    Some(json!({"functionCallingConfig": config}))
}

fn encode_tool(tool: &ToolSpec) -> Bytes {
    let mut declared = json!({"name": tool.name, "description": tool.description});
    if let (Some(map), Some(schema)) = (declared.as_object_mut(), schema::cleaned(&tool.input_schema)) {
        map.insert("parametersJsonSchema".to_owned(), schema);
    }
    Bytes::from(declared.to_string())
}

fn text_part(text: &str) -> Bytes {
    if text.is_empty() {
        return Bytes::new();
    }
    Bytes::from(json!({"text": text}).to_string())
}
