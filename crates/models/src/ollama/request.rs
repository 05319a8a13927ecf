//! Spells a conversation as a chat request.
//!
//! Invariant: a message is encoded once per client, and the same conversation always gives the same bytes.

use std::borrow::Cow;

use bytes::Bytes;
use hart_kernel::{ChatRequest, ModelSettings, OutputFormat, Reasoning, ToolChoice, ToolSpec};
use hart_types::{Ai, Block, BlockView, Body, Content, ImageSource, Message, ToolCallId};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::DEFAULT_CONTEXT;
use crate::config::ModelConfig;
use crate::continued::{Conversations, append_items};
use crate::encoded::{Encodings, write_joined, write_json};
use crate::merge;
use crate::openai::decimal;
use crate::thinking::{self, Thinking};

/// Parameters that the server wants inside `options`.
const OPTIONS: [&str; 13] = [
    "num_ctx",
    "num_predict",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "stop",
    "repeat_penalty",
    "frequency_penalty",
    "presence_penalty",
    "num_gpu",
    "num_thread",
];
/// Words of other providers; the server would pass over them in silence.
const FOREIGN: [&str; 8] = [
    "max_tokens",
    "reasoning_effort",
    "thinking",
    "service_tier",
    "logit_bias",
    "parallel_tool_calls",
    "chat_template_kwargs",
    "tool_choice",
];

/// What of the configuration shapes a request.
#[derive(Debug)]
pub(super) struct Settings {
    model: String,
    context: u32,
    max_tokens: Option<u32>,
    temperature: Option<f64>,
    send_reasoning: bool,
    /// The model takes `low`, `medium` and `high` where others take yes and no.
    levels: bool,
    thinking: Thinking,
    extra_body: Map<String, Value>,
}

impl Settings {
    pub(super) fn new(config: &ModelConfig) -> Self {
        let ignored: Vec<&str> =
            FOREIGN.iter().copied().filter(|key| config.extra_body.contains_key(*key)).collect();
        if !ignored.is_empty() {
            tracing::warn!(model = %config.name, ?ignored, "Ollama does not take these parameters");
        }
        Self {
            model: config.model.clone(),
            context: config.context_window.unwrap_or(DEFAULT_CONTEXT),
            max_tokens: config.max_tokens,
            temperature: config.temperature,
            send_reasoning: config.send_reasoning,
            levels: config.supports_reasoning_effort || config.model.contains("gpt-oss"),
            thinking: Thinking::new(config),
            extra_body: config.extra_body.clone(),
        }
    }

    /// Everything but the conversation and the tools.
    fn parameters(&self, asked: &ModelSettings) -> Map<String, Value> {
        let mut body = Map::from_iter([
            ("stream".to_owned(), Value::from(true)),
            ("truncate".to_owned(), false.into()),
            ("shift".to_owned(), false.into()),
        ]);
        merge::options(&mut body, &self.extra_body);
        self.thinking.apply(asked.reasoning, &mut body);
        body.retain(|key, _| !FOREIGN.contains(&key.as_str()));
        // LangChain's word for the same switch.
        if let Some(given) = body.shift_remove("reasoning") {
            body.entry("think").or_insert(given);
        }
        if let (true, Some(think)) = (self.thinking.supported, self.think(asked.reasoning)) {
            body.insert("think".to_owned(), think);
        }
        let mut options = match body.shift_remove("options") {
            Some(Value::Object(options)) => options,
            _ => Map::new(),
        };
        for key in OPTIONS {
            if let Some(value) = body.shift_remove(key) {
                options.entry(key).or_insert(value);
            }
        }
        options.entry("num_ctx").or_insert(self.context.into());
        if let Some(max_tokens) = asked.max_tokens.or(self.max_tokens) {
            options.insert("num_predict".to_owned(), max_tokens.into());
        }
        if let Some(temperature) = asked.temperature.and_then(decimal).or(self.temperature) {
            options.insert("temperature".to_owned(), temperature.into());
        }
        if let Some(stop) = body.shift_remove("stop_sequences") {
            options.entry("stop").or_insert(stop);
        }
        if !asked.stop.is_empty() {
            options.insert("stop".to_owned(), asked.stop.clone().into());
        }
        if let Some(Value::String(one)) = options.get("stop") {
            let list = json!([one]);
            options.insert("stop".to_owned(), list);
        }
        options.retain(|_, value| !value.is_null());
        body.insert("options".to_owned(), Value::Object(options));
        if let OutputFormat::Json { schema, .. } = &asked.output {
            body.insert("format".to_owned(), schema.clone());
        }
        body.retain(|_, value| !value.is_null());
        body
    }

    fn think(&self, reasoning: Reasoning) -> Option<Value> {
        match (reasoning, thinking::effort(reasoning)) {
            (Reasoning::Default, _) => None,
            (_, Some(effort)) if self.levels => Some(thinking::word(effort).into()),
            (_, effort) => Some(effort.is_some().into()),
        }
    }
}

/// What has been encoded before.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    conversations: Conversations,
    messages: Encodings<Message, Bytes>,
    tools: Encodings<ToolSpec, Bytes>,
    system: Encodings<str, Bytes>,
    /// The next body is likely a little longer than this.
    last_length: usize,
}

pub(super) fn body(settings: &Settings, encoder: &mut Encoder, request: &ChatRequest) -> Vec<u8> {
    let mut parameters = settings.parameters(&request.settings);
    parameters.shift_remove("messages");
    parameters.shift_remove("tools");
    let model = parameters.shift_remove("model").unwrap_or_else(|| Value::from(settings.model.as_str()));

    let mut out = Vec::with_capacity(encoder.last_length + 4096);
    out.extend_from_slice(b"{\"model\":");
    write_json(&mut out, &model);
    out.extend_from_slice(b",\"messages\":[");
    write_conversation(&mut out, settings, encoder, request);
    out.push(b']');
    // The server knows no choice of tools: what must not be called is not offered.
    let choice = &request.settings.tool_choice;
    let offered = request.tools.iter().filter(|tool| match choice {
        ToolChoice::Auto | ToolChoice::Required => true,
        ToolChoice::None => false,
        ToolChoice::Named(name) => tool.name == *name,
    });
    let tools: Vec<Bytes> = offered.map(|tool| encoder.tools.of(tool, encode_tool)).collect();
    if !tools.is_empty() {
        out.extend_from_slice(b",\"tools\":[");
        write_joined(&mut out, &tools);
        out.push(b']');
    }
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

/// Writes the messages, taking over what the last request of this conversation already said.
fn write_conversation(out: &mut Vec<u8>, settings: &Settings, encoder: &mut Encoder, request: &ChatRequest) {
    let start = out.len();
    // Templates of many models take one system message, at the start.
    let leading = request.messages.iter().take_while(|message| matches!(message.body, Body::System)).count();
    if leading > 0 {
        let instructions = request.messages.iter().take(leading).map(|message| message.text());
        let texts = request.system.iter().map(|text| text.to_string()).chain(instructions);
        out.extend_from_slice(&encode_system(&texts.collect::<Vec<_>>().join("\n\n")));
    } else if let Some(system) = &request.system {
        out.extend_from_slice(&encoder.system.of(system, encode_system));
    }
    let mut said = encoder.conversations.take(&request.messages);
    let next = said.next().max(leading);
    for (index, message) in (next..).zip(request.messages.iter_from(next)) {
        let encoded = encoder.messages.of(message, |message| encode(settings, message));
        said.mark(index);
        if !encoded.is_empty() {
            said.push(&encoded);
        }
    }
    append_items(out, out.len() == start, said.bytes());
    encoder.conversations.keep(said);
}

#[derive(Default, Serialize)]
struct Wire<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl Wire<'_> {
    fn bytes(&self) -> Bytes {
        let mut out = Vec::new();
        write_json(&mut out, self);
        out.into()
    }
}

fn encode_system(text: &str) -> Bytes {
    Wire { role: "system", content: text.into(), ..Wire::default() }.bytes()
}

fn encode_tool(tool: &ToolSpec) -> Bytes {
    let function = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
    });
    Bytes::from(json!({"type": "function", "function": function}).to_string())
}

/// Empty when there is nothing to send.
fn encode(settings: &Settings, message: &Message) -> Bytes {
    match &message.body {
        Body::Human => said("user", &message.content).bytes(),
        Body::System => said("system", &message.content).bytes(),
        Body::Ai(ai) => assistant(settings, message, ai),
        Body::AiChunk(chunk) => assistant(settings, message, &chunk.ai),
        Body::Tool(result) => Wire {
            tool_name: message.name.as_deref(),
            tool_call_id: Some(result.tool_call_id.as_str()),
            ..said("tool", &message.content)
        }
        .bytes(),
        Body::Remove | Body::Other(_) => Bytes::new(),
    }
}

/// Text and images; the server takes images as bare base64 beside the text.
fn said<'a>(role: &'static str, content: &'a Content) -> Wire<'a> {
    let blocks = match content {
        Content::Text(text) => return Wire { role, content: text.into(), ..Wire::default() },
        Content::Blocks(blocks) => blocks,
    };
    let mut images = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    for block in blocks {
        match block.view() {
            BlockView::Text(text) => texts.push(text.to_owned()),
            BlockView::Image(ImageSource::Base64 { data, .. }) => images.push(data),
            BlockView::Image(ImageSource::Url(url)) => match url.split_once(";base64,") {
                Some((kind, data)) if kind.starts_with("data:") => images.push(data),
                // It fetches nothing; the address is all the model can be told.
                _ => texts.push(format!("[image: {url}]")),
            },
            BlockView::Reasoning { .. } => {}
            // It reads no documents; the model is told that there was one.
            BlockView::File { mime_type, name, .. } => {
                texts.push(format!("[file: {} ({mime_type})]", name.unwrap_or("without a name")));
            }
            BlockView::Other(map) => texts.push(Value::Object(map.clone()).to_string()),
        }
    }
    Wire { role, content: texts.join("\n").into(), images, ..Wire::default() }
}

fn assistant(settings: &Settings, message: &Message, ai: &Ai) -> Bytes {
    let content = match &message.content {
        Content::Text(text) => Cow::Borrowed(text.as_str()),
        Content::Blocks(_) => Cow::Owned(message.content.text()),
    };
    let mut wire = Wire { role: "assistant", content, ..Wire::default() };
    if let (true, Content::Blocks(blocks)) = (settings.send_reasoning, &message.content) {
        let reasoning = blocks.iter().filter_map(|block: &Block| match block.view() {
            BlockView::Reasoning { text, .. } => Some(text),
            _ => None,
        });
        wire.thinking = Some(reasoning.collect::<String>()).filter(|text| !text.is_empty());
    }
    wire.tool_calls = tool_calls(ai);
    if wire.content.is_empty() && wire.thinking.is_none() && wire.tool_calls.is_empty() {
        return Bytes::new();
    }
    wire.bytes()
}

fn tool_calls(ai: &Ai) -> Vec<Value> {
    let valid = ai.tool_calls.iter().map(|c| (c.id.as_ref(), c.name.as_str(), c.args.clone()));
    // What was wrong with these stands in the tool message that answers them.
    let invalid = ai.invalid_tool_calls.iter();
    let invalid = invalid.map(|c| (c.id.as_ref(), c.name.as_deref().unwrap_or_default(), Map::new()));
    type Said<'a> = (Option<&'a ToolCallId>, &'a str, Map<String, Value>);
    let call = |(position, (id, name, arguments)): (usize, Said<'_>)| {
        let id = id.map_or_else(|| format!("call_{position}"), ToString::to_string);
        let name = if name.is_empty() { "unknown" } else { name };
        json!({"id": id, "type": "function", "function": {"index": position, "name": name, "arguments": arguments}})
    };
    valid.chain(invalid).enumerate().map(call).collect()
}
