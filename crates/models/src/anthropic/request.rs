//! Spells a conversation as a Messages request.
//!
//! Invariant: a message is encoded once per client, and the same conversation always gives the same bytes.

use std::borrow::Cow;

use bytes::Bytes;
use hart_kernel::{ChatRequest, Effort, ModelSettings, OutputFormat, Reasoning, ToolChoice, ToolSpec};
use hart_types::{
    Ai, Block, BlockView, Body, Content, ImageSource, Message, ToolCallId, ToolResult, ToolStatus,
};
use serde_json::{Map, Value, json};

use crate::config::ModelConfig;
use crate::continued::{Conversation, Conversations};
use crate::encoded::{Encodings, Size, write_joined, write_json};
use crate::openai::decimal;
use crate::responses::is_answer;
use crate::structured::{self, StructuredOutput};
use crate::thinking::{self, Thinking};
use crate::{files, merge};

use super::caching::{self, Marks};
use super::claude::{by_model, is_adaptive};

/// The API demands a limit.
const DEFAULT_MAX_TOKENS: u32 = 8192;
/// The API refuses a smaller budget.
const MIN_THINKING: u32 = 1024;

/// What of the configuration shapes a request.
#[derive(Debug)]
pub(super) struct Settings {
    model: String,
    max_tokens: u32,
    temperature: Option<f64>,
    thinking: Thinking,
    adaptive: bool,
    caching: bool,
    structured: StructuredOutput,
    extra_body: Map<String, Value>,
}

impl Settings {
    pub(super) fn new(config: &ModelConfig) -> Self {
        Self {
            model: config.model.clone(),
            max_tokens: config.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
            temperature: config.temperature,
            thinking: Thinking::new(config),
            adaptive: match (config.capabilities.budget.value, config.supports_reasoning_effort) {
                (Some(false), efforts) => efforts,
                _ => is_adaptive(&config.model),
            },
            caching: config.prompt_caching && !config.extra_body.contains_key("cache_control"),
            structured: config.structured_output.unwrap_or_else(|| by_model(&config.model)),
            extra_body: config.extra_body.clone(),
        }
    }

    /// How JSON is asked for. A schema that the API would refuse is given to a tool, which takes any.
    pub(super) fn structured(&self, format: &OutputFormat) -> StructuredOutput {
        match (self.structured, format) {
            (StructuredOutput::Schema, OutputFormat::Json { schema, .. })
                if structured::closed(schema).is_none() =>
            {
                StructuredOutput::Tool
            }
            (StructuredOutput::Object, _) => StructuredOutput::Prompt,
            (mode, _) => mode,
        }
    }

    /// Everything but the conversation and the tools.
    fn parameters(&self, asked: &ModelSettings) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("stream".to_owned(), true.into());
        let max_tokens = asked.max_tokens.unwrap_or(self.max_tokens);
        body.insert("max_tokens".to_owned(), max_tokens.into());
        if let Some(temperature) = asked.temperature.and_then(decimal).or(self.temperature) {
            body.insert("temperature".to_owned(), temperature.into());
        }
        merge::options(&mut body, &self.extra_body);
        if let Some(stop) = body.shift_remove("stop") {
            body.entry("stop_sequences").or_insert(stop);
        }
        // The API refuses white space alone.
        let stop: Vec<&str> =
            asked.stop.iter().map(String::as_str).filter(|stop| !stop.trim().is_empty()).collect();
        if !stop.is_empty() {
            body.insert("stop_sequences".to_owned(), stop.into());
        }
        self.thinking.apply(asked.reasoning, &mut body);
        // OpenAI's word; the effort is said by the budget here.
        body.shift_remove("reasoning_effort");
        if self.thinking.supported && !body.contains_key("thinking") {
            self.think(asked.reasoning, max_tokens, &mut body);
        }
        if let OutputFormat::Json { schema, .. } = &asked.output
            && let Some(schema) = structured::closed(schema)
            && let Some(config) = body.entry("output_config").or_insert_with(|| json!({})).as_object_mut()
        {
            config.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
        }
        // The API refuses these together; the caller's choice of a tool is the stronger wish.
        if matches!(asked.tool_choice, ToolChoice::Required | ToolChoice::Named(_)) {
            body.shift_remove("thinking");
        }
        let thinks = body.get("thinking").and_then(|thinking| thinking.get("type"));
        if thinks.is_some_and(|kind| kind != "disabled") {
            body.shift_remove("temperature");
        }
        body.retain(|_, value| !value.is_null());
        body
    }

    fn think(&self, reasoning: Reasoning, max_tokens: u32, body: &mut Map<String, Value>) {
        let Some(effort) = thinking::effort(reasoning) else { return };
        if self.adaptive {
            // Left to itself, the model would think in silence.
            body.insert("thinking".to_owned(), json!({"type": "adaptive", "display": "summarized"}));
            let config = body.entry("output_config").or_insert_with(|| json!({}));
            if let Some(config) = config.as_object_mut() {
                let word = self.thinking.nearest(effort).unwrap_or(thinking::word(effort));
                config.entry("effort").or_insert_with(|| word.into());
            }
        } else if let Some(budget) = budget(reasoning, effort, max_tokens) {
            body.insert("thinking".to_owned(), json!({"type": "enabled", "budget_tokens": budget}));
        }
    }
}

/// Thinking counts towards the limit of the answer: a quarter stays for what is said.
fn budget(reasoning: Reasoning, effort: Effort, max_tokens: u32) -> Option<u32> {
    let wanted = match (reasoning, effort) {
        (Reasoning::Budget(tokens), _) => tokens,
        (_, Effort::Low) => 4096,
        (_, Effort::Medium) => 10_240,
        (_, Effort::High) => 24_576,
    };
    let budget = wanted.min(max_tokens - max_tokens / 4);
    (budget >= MIN_THINKING).then_some(budget)
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

/// The content blocks of one message, between commas; empty when there is nothing to send.
#[derive(Clone, Debug)]
struct Encoded {
    role: Role,
    blocks: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

impl Size for Encoded {
    fn size(&self) -> usize {
        self.blocks.len()
    }
}

pub(super) fn body(settings: &Settings, encoder: &mut Encoder, request: &ChatRequest) -> Vec<u8> {
    let mut parameters = settings.parameters(&request.settings);
    parameters.shift_remove("messages");
    let more_tools = parameters.shift_remove("tools");
    let mut marks = Marks::new(settings.caching);
    let model = parameters.shift_remove("model").unwrap_or_else(|| Value::from(settings.model.as_str()));

    let mut out = Vec::with_capacity(encoder.last_length + 4096);
    out.extend_from_slice(b"{\"model\":");
    write_json(&mut out, &model);
    let leading = request.messages.iter().take_while(|message| matches!(message.body, Body::System)).count();
    let system = request.system.iter().map(|text| encoder.system.of(text, text_block));
    let system: Vec<Bytes> = system
        .chain(request.messages.iter().take(leading).map(|message| text_block(&message.text())))
        .collect();
    let system: Vec<Bytes> = system.into_iter().filter(|block| !block.is_empty()).collect();
    if !system.is_empty() {
        out.extend_from_slice(b",\"system\":[");
        write_joined(&mut out, &system);
        marks.set(&mut out);
        out.push(b']');
    }
    let mut tools: Vec<Bytes> =
        request.tools.iter().map(|tool| encoder.tools.of(tool, encode_tool)).collect();
    if let Some(Value::Array(more)) = &more_tools {
        tools.extend(more.iter().map(|tool| Bytes::from(tool.to_string())));
    }
    if !tools.is_empty() {
        out.extend_from_slice(b",\"tools\":[");
        write_joined(&mut out, &tools);
        marks.set_after_tools(&mut out, more_tools.as_ref());
        out.push(b']');
        if let Some(choice) = tool_choice(&request.settings.tool_choice) {
            parameters.entry("tool_choice").or_insert(choice);
        }
    }
    out.extend_from_slice(b",\"messages\":[");
    let (said, open) = conversation(settings.caching, encoder, request, leading);
    write_conversation(&mut out, &mut marks, &said, &open);
    encoder.conversations.keep(said);
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

/// The messages but for the last group, taking over what the last request of this conversation already said; and that
/// group, without its end.
///
/// Neighbours of one role become one message: all results of a batch of tool calls must stand together, right after
/// the calls.
fn conversation(
    caching: bool,
    encoder: &mut Encoder,
    request: &ChatRequest,
    leading: usize,
) -> (Conversation, Vec<u8>) {
    let mut said = encoder.conversations.take(&request.messages);
    let next = said.next().max(leading);
    let mut open: Option<Role> = None;
    let mut group: Vec<u8> = Vec::new();
    for (index, message) in (next..).zip(request.messages.iter_from(next)) {
        let Encoded { role, blocks } = encoder.messages.of(message, |message| encode(caching, message));
        if blocks.is_empty() {
            continue;
        }
        if open == Some(Role::User) && role == Role::User {
            group.push(b',');
        } else {
            if open.is_some() {
                group.extend_from_slice(b"]}");
                said.push(&group);
                group.clear();
            }
            said.mark(index);
            group.extend_from_slice(match role {
                Role::User => USER,
                Role::Assistant => b"{\"role\":\"assistant\",\"content\":[",
            });
        }
        group.extend_from_slice(&blocks);
        open = Some(role);
    }
    (said, group)
}

const USER: &[u8] = b"{\"role\":\"user\",\"content\":[";

fn write_conversation(out: &mut Vec<u8>, marks: &mut Marks, said: &Conversation, open: &[u8]) {
    let is_user = |item: &[u8]| item.strip_prefix(b",").unwrap_or(item).starts_with(USER);
    let (marked, rest) = said.split_after_last(is_user);
    marks.set_within(
        out,
        marked.strip_prefix(b",").unwrap_or(marked),
        match marked {
            [] => rest.strip_prefix(b",").unwrap_or(rest),
            _ => rest,
        },
    );
    if open.is_empty() {
        return;
    }
    if !said.bytes().is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(open);
    // What the model itself said last may be a thought, and thoughts take no mark.
    if is_user(open) {
        marks.set(out);
    }
    out.extend_from_slice(b"]}");
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({"type": "none"})),
        ToolChoice::Required => Some(json!({"type": "any"})),
        ToolChoice::Named(name) => Some(json!({"type": "tool", "name": name})),
    }
}

fn encode_tool(tool: &ToolSpec) -> Bytes {
    let tool = json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema});
    Bytes::from(tool.to_string())
}

fn text_block(text: &str) -> Bytes {
    let mut out = Vec::new();
    write_text(&mut out, text);
    out.into()
}

fn encode(caching: bool, message: &Message) -> Encoded {
    if let Content::Text(text) = &message.content
        && let Some(encoded) = encode_plain(message, text)
    {
        return encoded;
    }
    let (role, mut blocks) = match &message.body {
        Body::Human => (Role::User, user_blocks(&message.content)),
        // Only the start of a conversation has a place for instructions; later ones are spoken by the user.
        Body::System => (Role::User, user_blocks(&message.content)),
        // Items of the Responses API mean nothing here; what was said in them does.
        Body::Ai(ai) if is_answer(message) => {
            (Role::Assistant, assistant_blocks(&message.content.text().into(), ai))
        }
        Body::Ai(ai) => (Role::Assistant, assistant_blocks(&message.content, ai)),
        Body::AiChunk(chunk) => (Role::Assistant, assistant_blocks(&message.content, &chunk.ai)),
        Body::Tool(result) => (Role::User, vec![tool_result(&message.content, result)]),
        Body::Remove | Body::Other(_) => (Role::User, Vec::new()),
    };
    if caching {
        blocks.iter_mut().for_each(caching::unmarked);
    }
    let mut out = Vec::new();
    write_joined(&mut out, blocks.iter().map(ToString::to_string));
    Encoded { role, blocks: out.into() }
}

/// Most messages are one text: written without a detour through a tree of JSON.
fn encode_plain(message: &Message, text: &str) -> Option<Encoded> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 16 + 128);
    let role = match &message.body {
        Body::Human | Body::System => {
            write_text(&mut out, text);
            Role::User
        }
        Body::Ai(ai) => {
            write_text(&mut out, text);
            for (_, call) in calls(ai) {
                if !out.is_empty() {
                    out.push(b',');
                }
                write_json(&mut out, &call);
            }
            Role::Assistant
        }
        Body::Tool(result) => {
            out.extend_from_slice(b"{\"type\":\"tool_result\",\"tool_use_id\":");
            write_json(&mut out, &own_id(result.tool_call_id.as_str()));
            if !text.is_empty() {
                out.extend_from_slice(b",\"content\":");
                write_json(&mut out, text);
            }
            if result.status == ToolStatus::Error {
                out.extend_from_slice(b",\"is_error\":true");
            }
            out.push(b'}');
            Role::User
        }
        Body::AiChunk(_) | Body::Remove | Body::Other(_) => return None,
    };
    Some(Encoded { role, blocks: out.into() })
}

/// The API refuses text that is only white space, so that becomes nothing.
fn write_text(out: &mut Vec<u8>, text: &str) {
    if !text.trim().is_empty() {
        out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
        write_json(out, text);
        out.push(b'}');
    }
}

fn user_blocks(content: &Content) -> Vec<Value> {
    let block = |block: &Block| match block.view() {
        BlockView::Text(text) if text.trim().is_empty() => None,
        BlockView::Text(text) => Some(json!({"type": "text", "text": text})),
        BlockView::Image(source) => Some(image(source)),
        BlockView::File { .. } => files::document(block),
        BlockView::Reasoning { .. } => None,
        BlockView::Other(map) => match map.get("type").and_then(Value::as_str) {
            Some("document" | "search_result" | "container_upload") => Some(Value::Object(map.clone())),
            _ => Some(json!({"type": "text", "text": Value::Object(map.clone()).to_string()})),
        },
    };
    content.to_blocks().iter().filter_map(block).collect()
}

fn image(source: ImageSource<'_>) -> Value {
    let base64 =
        |mime_type: &str, data: &str| json!({"type": "base64", "media_type": mime_type, "data": data});
    let source = match source {
        ImageSource::Base64 { mime_type, data } => base64(mime_type, data),
        ImageSource::Url(url) => match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"))
        {
            Some((mime_type, data)) => base64(mime_type, data),
            None => json!({"type": "url", "url": url}),
        },
    };
    json!({"type": "image", "source": source})
}

fn tool_result(content: &Content, result: &ToolResult) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": own_id(result.tool_call_id.as_str())});
    if let Some(map) = block.as_object_mut() {
        map.insert("content".to_owned(), user_blocks(content).into());
        if result.status == ToolStatus::Error {
            map.insert("is_error".to_owned(), true.into());
        }
    }
    block
}

fn assistant_blocks(content: &Content, ai: &Ai) -> Vec<Value> {
    let mut calls = calls(ai);
    let mut out = Vec::new();
    for block in content.to_blocks() {
        let map = match block {
            Block::Object(map) => map,
            Block::Bare(text) => {
                Map::from_iter([("type".to_owned(), "text".into()), ("text".to_owned(), text.into())])
            }
        };
        match map.get("type").and_then(Value::as_str) {
            Some("text") => out.extend(own_text(map)),
            // The call itself may have been repaired since; the block only says where it stood.
            Some("tool_use") => {
                let id = map.get("id").and_then(Value::as_str);
                if let Some(position) = calls.iter().position(|(call, _)| Some(call.as_str()) == id) {
                    out.push(calls.remove(position).1);
                }
            }
            // Another provider's reasoning carries no signature of this one, and an image is nothing it could say.
            Some("reasoning" | "image" | "image_url" | "gemini_part") | None => {}
            Some(_) => out.push(Value::Object(map)),
        }
    }
    out.extend(calls.into_iter().map(|(_, block)| block));
    out
}

/// The fields the API takes, in the order they came in; other providers and clients add theirs.
fn own_text(mut map: Map<String, Value>) -> Option<Value> {
    map.get("text").and_then(Value::as_str).filter(|text| !text.trim().is_empty())?;
    map.retain(|key, value| {
        matches!(key.as_str(), "type" | "text" | "cache_control" | "citations") && !value.is_null()
    });
    Some(Value::Object(map))
}

fn calls(ai: &Ai) -> Vec<(String, Value)> {
    let call = |position: usize, id: Option<&ToolCallId>, name: &str, input: Map<String, Value>| {
        let id = id.map_or_else(|| format!("call_{position}"), ToString::to_string);
        // A nameless call would be refused each time the conversation is sent.
        let name = if name.is_empty() { "unknown" } else { name };
        let block = json!({"type": "tool_use", "id": own_id(&id), "name": name, "input": input});
        (id, block)
    };
    let valid = ai.tool_calls.iter().map(|c| (c.id.as_ref(), c.name.as_str(), c.args.clone()));
    // What was wrong with these stands in the tool message that answers them.
    let invalid = ai.invalid_tool_calls.iter();
    let invalid = invalid.map(|c| (c.id.as_ref(), c.name.as_deref().unwrap_or_default(), Map::new()));
    valid.chain(invalid).enumerate().map(|(n, (id, name, input))| call(n, id, name, input)).collect()
}

/// The id in the letters that the API takes; other providers use more.
fn own_id(id: &str) -> Cow<'_, str> {
    let taken = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if id.chars().all(taken) {
        return id.into();
    }
    id.chars().map(|c| if taken(c) { c } else { '_' }).collect()
}
