//! Spells a conversation as a chat request.
//!
//! Invariant: nothing is lost in silence: what the server has no place for is told in words, or warned of.

use std::borrow::Cow;

use bytes::Bytes;
use hart_kernel::{ChatRequest, ModelSettings, OutputFormat, Reasoning, ToolChoice};
use hart_types::{Ai, BlockView, Body, Content, ImageSource, Message};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::DEFAULT_CONTEXT;
use crate::body::{Encoder, write_list};
use crate::calls::{self, Arguments, Spelling, encode_function};
use crate::config::ModelConfig;
use crate::encoded::write_json;
use crate::merge;
use crate::openai::decimal;
use crate::thinking::{self, Thinking};

/// The server takes anything; the templates of its models do not.
const SPELLING: Spelling = Spelling::IMITATED;
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
pub(crate) struct Settings {
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

impl From<&ModelConfig> for Settings {
    fn from(config: &ModelConfig) -> Self {
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
}

impl Settings {
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

/// The whole request.
pub(super) fn body(settings: &Settings, encoder: &mut Encoder<Bytes>, request: &ChatRequest) -> Vec<u8> {
    let mut parameters = settings.parameters(&request.settings);
    parameters.shift_remove("messages");
    parameters.shift_remove("tools");
    let mut out = encoder.open_for(&settings.model, &mut parameters);
    out.extend_from_slice(b",\"messages\":[");
    let system = encoder.one_system(request, encode_system);
    out.extend_from_slice(&system);
    encoder.write_each(&mut out, system.is_empty(), &request.messages, |message| encode(settings, message));
    out.push(b']');
    // The server knows no choice of tools: what must not be called is not offered.
    let choice = &request.settings.tool_choice;
    let offered = request.tools.iter().filter(|tool| match choice {
        ToolChoice::Auto | ToolChoice::Required => true,
        ToolChoice::None => false,
        ToolChoice::Named(name) => tool.name == *name,
    });
    let tools = encoder.tools(offered, None, encode_function);
    write_list(&mut out, "tools", &tools);
    encoder.close(out, &parameters)
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
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
}

impl Wire<'_> {
    fn bytes(&self) -> Bytes {
        let text = self.content.len();
        let mut out = Vec::with_capacity(text + text / 16 + 128);
        write_json(&mut out, self);
        out.into()
    }
}

fn encode_system(text: &str) -> Bytes {
    Wire { role: "system", content: text.into(), ..Wire::default() }.bytes()
}

/// Empty when there is nothing to send.
fn encode(settings: &Settings, message: &Message) -> Bytes {
    match &message.body {
        Body::Human => said("user", &message.content).bytes(),
        Body::System => said("system", &message.content).bytes(),
        Body::Ai(ai) => assistant(settings, message, ai),
        Body::AiChunk(chunk) => assistant(settings, message, &chunk.ai),
        Body::Tool(result) => Wire {
            tool_name: message.name.as_deref().map(|name| SPELLING.name(name)),
            tool_call_id: Some(SPELLING.id(result.tool_call_id.as_str())),
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
    if settings.send_reasoning {
        wire.thinking = Some(message.reasoning()).filter(|text| !text.is_empty());
    }
    wire.tool_calls = tool_calls(ai);
    if wire.content.is_empty() && wire.thinking.is_none() && wire.tool_calls.is_empty() {
        return Bytes::new();
    }
    wire.bytes()
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    index: usize,
    name: Cow<'a, str>,
    arguments: Arguments<'a>,
}

fn tool_calls(ai: &Ai) -> Vec<WireCall<'_>> {
    let calls = calls::of(ai).enumerate().map(|(index, call)| WireCall {
        id: call.id(SPELLING),
        r#type: "function",
        function: Function { index, name: call.name(SPELLING), arguments: call.object() },
    });
    calls.collect()
}
