//! Spells a conversation as a chat completion request.
//!
//! Invariant: a message is encoded once per client, and the same conversation always gives the same bytes.

use std::borrow::Cow;

use bytes::Bytes;
use hart_kernel::{ChatRequest, ModelSettings, OutputFormat, ToolChoice, ToolSpec};
use hart_types::{Ai, Block, BlockView, Body, Content, ImageSource, Message};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::config::{MaxTokensKey, ModelConfig};
use crate::continued::{Conversations, append_items};
use crate::encoded::{Encodings, Size, write_joined, write_json};
use crate::structured::{self, StructuredOutput};
use crate::thinking::Thinking;
use crate::{files, merge};

/// What of the configuration shapes a request.
#[derive(Debug)]
pub(super) struct Settings {
    provider: &'static str,
    model: String,
    max_tokens: Option<u32>,
    max_tokens_key: &'static str,
    temperature: Option<f64>,
    include_usage: bool,
    no_reasoning_with_tools: bool,
    send_reasoning: bool,
    strict_schemas: bool,
    pub(super) structured: StructuredOutput,
    thinking: Thinking,
    extra_body: Map<String, Value>,
}

impl Settings {
    pub(super) fn new(config: &ModelConfig) -> Self {
        Self {
            provider: config.provider,
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
            send_reasoning: config.send_reasoning,
            strict_schemas: !config.capabilities.strict_schemas.no(),
            structured: config.structured_output.unwrap_or_else(|| by_provider(config.provider)),
            thinking: Thinking::new(config),
            extra_body: config.extra_body.clone(),
        }
    }

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
}

/// From 5.4 on, OpenAI's own models refuse tools in this API unless told not to reason, even when nobody asked for it.
fn is_newer_gpt(model: &str) -> bool {
    let Some(version) = model.strip_prefix("gpt-") else { return false };
    let mut numbers = version.split(['.', '-']).map(|part| part.parse::<u32>().ok());
    let version = (numbers.next().flatten().unwrap_or(0), numbers.next().flatten().unwrap_or(0));
    // 4o and 4.1 are older; a date such as 2025 in second place is no version.
    version.0 >= 6 || (version.0 == 5 && (4..100).contains(&version.1))
}

impl Settings {
    fn response_format(&self, name: &str, schema: &Value) -> Value {
        if self.structured == StructuredOutput::Object {
            return json!({"type": "json_object"});
        }
        let strict = self.strict_schemas && structured::is_strict(schema);
        let format = json!({"name": structured::identifier(name), "schema": schema, "strict": strict});
        json!({"type": "json_schema", "json_schema": format})
    }
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

/// What has been encoded before.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    conversations: Conversations,
    messages: Encodings<Message, Encoded>,
    tools: Encodings<ToolSpec, Bytes>,
    system: Encodings<str, Bytes>,
    /// The next body is likely a little longer than this.
    last_length: usize,
}

/// One message of ours in the provider's words.
#[derive(Clone, Debug, Default)]
struct Encoded {
    /// Empty when there is nothing to send.
    json: Bytes,
    is_tool_result: bool,
    /// The images of a tool result: they must follow, in a user message, after the last result of the batch.
    images: Bytes,
}

impl Size for Encoded {
    fn size(&self) -> usize {
        self.json.len() + self.images.len()
    }
}

pub(super) fn body(settings: &Settings, encoder: &mut Encoder, request: &ChatRequest) -> Vec<u8> {
    let mut parameters = settings.parameters(&request.settings);
    parameters.remove("messages");
    let more_tools = parameters.shift_remove("tools");
    let model = parameters.shift_remove("model").unwrap_or_else(|| Value::from(settings.model.as_str()));

    let mut out = Vec::with_capacity(encoder.last_length + 4096);
    out.extend_from_slice(b"{\"model\":");
    write_json(&mut out, &model);
    out.extend_from_slice(b",\"messages\":[");
    write_conversation(&mut out, settings, encoder, request);
    out.push(b']');
    let mut tools: Vec<Bytes> =
        request.tools.iter().map(|tool| encoder.tools.of(tool, encode_tool)).collect();
    if let Some(Value::Array(more)) = &more_tools {
        tools.extend(more.iter().map(|tool| Bytes::from(tool.to_string())));
    }
    if !tools.is_empty() {
        out.extend_from_slice(b",\"tools\":[");
        write_joined(&mut out, &tools);
        out.push(b']');
        if settings.no_reasoning_with_tools {
            parameters.insert("reasoning_effort".to_owned(), "none".into());
        }
        if let Some(choice) = tool_choice(&request.settings.tool_choice) {
            parameters.entry("tool_choice").or_insert(choice);
        }
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
    // Several system messages at the start become one: some servers accept no second.
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
    let mut images: Vec<Bytes> = Vec::new();
    for (index, message) in (next..).zip(request.messages.iter_from(next)) {
        let encoded = encoder.messages.of(message, |message| encode(settings, message));
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
    append_items(out, out.len() == start, said.bytes());
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

#[derive(Serialize)]
struct Wire<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    content: Option<WireContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

impl<'a> Wire<'a> {
    fn new(role: &'static str, content: WireContent<'a>) -> Self {
        Self {
            role,
            content: Some(content),
            tool_call_id: None,
            reasoning_content: None,
            reasoning_details: None,
            tool_calls: Vec::new(),
        }
    }

    fn bytes(&self) -> Bytes {
        let text = match &self.content {
            Some(WireContent::Text(text)) => text.len(),
            Some(WireContent::Parts(_)) | None => 0,
        };
        let mut out = Vec::with_capacity(text + text / 16 + 128);
        write_json(&mut out, self);
        out.into()
    }
}

fn encode_system(text: &str) -> Bytes {
    Wire::new("system", WireContent::Text(text.into())).bytes()
}

fn encode_tool(tool: &ToolSpec) -> Bytes {
    let function = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
    });
    Bytes::from(json!({"type": "function", "function": function}).to_string())
}

fn encode(settings: &Settings, message: &Message) -> Encoded {
    let plain = |json: Bytes| Encoded { json, ..Encoded::default() };
    match &message.body {
        Body::Human => plain(Wire::new("user", user_content(settings, &message.content)).bytes()),
        Body::System => plain(Wire::new("system", WireContent::Text(joined(&message.content))).bytes()),
        Body::Ai(ai) => plain(assistant(settings, message, ai).bytes()),
        Body::AiChunk(chunk) => plain(assistant(settings, message, &chunk.ai).bytes()),
        Body::Tool(result) => {
            let mut wire = Wire::new("tool", WireContent::Text(joined(&message.content)));
            wire.tool_call_id = Some(result.tool_call_id.as_str());
            let images = match &message.content {
                Content::Text(_) => Vec::new(),
                Content::Blocks(blocks) => blocks.iter().filter_map(|b| attachment(settings, b)).collect(),
            };
            let images = if images.is_empty() {
                Bytes::new()
            } else {
                let label = format!("Attachments of the result of {}:", result.tool_call_id);
                let parts = std::iter::once(json!({"type": "text", "text": label})).chain(images).collect();
                Wire::new("user", WireContent::Parts(parts)).bytes()
            };
            Encoded { json: wire.bytes(), is_tool_result: true, images }
        }
        Body::Remove | Body::Other(_) => Encoded::default(),
    }
}

fn assistant<'a>(settings: &Settings, message: &'a Message, ai: &Ai) -> Wire<'a> {
    let text: Cow<'a, str> = match &message.content {
        Content::Text(text) => text.into(),
        Content::Blocks(_) => message.content.text().into(),
    };
    let is_silent = text.is_empty();
    let mut wire = Wire::new("assistant", WireContent::Text(text));
    let blocks: &[Block] = match &message.content {
        Content::Blocks(blocks) => blocks,
        Content::Text(_) => &[],
    };
    if settings.send_reasoning {
        let reasoning = blocks.iter().filter_map(|block| match block.view() {
            BlockView::Reasoning { text, .. } => Some(text),
            _ => None,
        });
        wire.reasoning_content = Some(reasoning.collect::<String>()).filter(|text| !text.is_empty());
    }
    // What a provider signed goes back to that provider; another one would refuse the field.
    let own = message.response_metadata.get("model_provider").is_some_and(|name| name == settings.provider);
    if own {
        wire.reasoning_details = blocks.iter().find_map(|block| match block {
            Block::Object(map) => map.get("reasoning_details"),
            Block::Bare(_) => None,
        });
    }
    wire.tool_calls = tool_calls(ai, own);
    if !wire.tool_calls.is_empty() && is_silent {
        wire.content = None;
    }
    wire
}

fn tool_calls(ai: &Ai, own: bool) -> Vec<Value> {
    let call = |position: usize, id: Option<&str>, name: &str, arguments: String| {
        let id = id.map_or_else(|| format!("call_{position}"), str::to_owned);
        // A nameless call would be refused each time the conversation is sent.
        let name = if name.is_empty() { "unknown" } else { name };
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    };
    let id = |id: &'_ Option<hart_types::ToolCallId>| id.as_ref().map(|id| id.as_str().to_owned());
    let mut calls = Vec::with_capacity(ai.tool_calls.len() + ai.invalid_tool_calls.len());
    for valid in &ai.tool_calls {
        let arguments = Value::Object(valid.args.clone()).to_string();
        let mut value = call(calls.len(), id(&valid.id).as_deref(), &valid.name, arguments);
        // Gemini signs its calls and wants the signature back.
        if let (true, Some(signed), Some(map)) =
            (own, valid.extra.get("extra_content"), value.as_object_mut())
        {
            map.insert("extra_content".to_owned(), signed.clone());
        }
        calls.push(value);
    }
    for invalid in &ai.invalid_tool_calls {
        let name = invalid.name.as_deref().unwrap_or_default();
        // Servers parse these; what was wrong stands in the tool message that answers the call.
        calls.push(call(calls.len(), id(&invalid.id).as_deref(), name, "{}".to_owned()));
    }
    calls
}

fn user_content<'a>(settings: &Settings, content: &'a Content) -> WireContent<'a> {
    let blocks = match content {
        Content::Text(text) => return WireContent::Text(text.into()),
        Content::Blocks(blocks) => blocks,
    };
    if blocks.iter().all(|block| block.as_text().is_some()) {
        return WireContent::Text(joined(content));
    }
    let part = |block: &Block| match block.view() {
        BlockView::Text(text) => Some(json!({"type": "text", "text": text})),
        BlockView::Image(_) | BlockView::File { .. } => attachment(settings, block),
        BlockView::Reasoning { .. } => None,
        BlockView::Other(map) => match map.get("type").and_then(Value::as_str) {
            Some("input_audio") => Some(Value::Object(map.clone())),
            _ => Some(json!({"type": "text", "text": Value::Object(map.clone()).to_string()})),
        },
    };
    WireContent::Parts(blocks.iter().filter_map(part).collect())
}

/// The texts, one below the other: not every server takes a list of parts.
fn joined(content: &Content) -> Cow<'_, str> {
    match content {
        Content::Text(text) => text.into(),
        Content::Blocks(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
            match texts.as_slice() {
                [one] => Cow::Borrowed(one),
                _ => texts.join("\n").into(),
            }
        }
    }
}

fn attachment(settings: &Settings, block: &Block) -> Option<Value> {
    image_part(block).or_else(|| files::chat_part(block, settings.provider == "openrouter"))
}

fn image_part(block: &Block) -> Option<Value> {
    let BlockView::Image(source) = block.view() else { return None };
    let url = match source {
        ImageSource::Url(url) => url.to_owned(),
        ImageSource::Base64 { mime_type, data } => format!("data:{mime_type};base64,{data}"),
    };
    let mut image = json!({"url": url});
    // `detail` decides what an image costs; the rest of the block is LangChain's.
    if let Block::Object(map) = block
        && let Some(detail) = map.get("image_url").and_then(|image| image.get("detail"))
        && let Some(image) = image.as_object_mut()
    {
        image.insert("detail".to_owned(), detail.clone());
    }
    Some(json!({"type": "image_url", "image_url": image}))
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
