//! Spells a conversation as a Messages request.
//!
//! Invariant: what does not change from one request to the next keeps its bytes, so that the provider's cache knows it.

use bytes::Bytes;
use hart_kernel::{ChatRequest, Effort, ModelSettings, OutputFormat, Reasoning, ToolChoice, ToolSpec};
use serde_json::{Map, Value, json};

use super::blocks::{Role, encode, text_block};
use super::caching::Marks;
use super::claude::{by_model, is_adaptive};
use crate::body::Encoder;
use crate::config::ModelConfig;
use crate::continued::Conversation;
use crate::encoded::write_joined;
use crate::grouped::{self, Part, Speaker};
use crate::merge;
use crate::openai::decimal;
use crate::structured::{self, StructuredOutput};
use crate::thinking::{self, Thinking};

/// The API demands a limit.
const DEFAULT_MAX_TOKENS: u32 = 8192;
/// The API refuses a smaller budget.
const MIN_THINKING: u32 = 1024;

/// What of the configuration shapes a request.
#[derive(Debug)]
pub(crate) struct Settings {
    model: String,
    max_tokens: u32,
    temperature: Option<f64>,
    thinking: Thinking,
    adaptive: bool,
    caching: bool,
    structured: StructuredOutput,
    extra_body: Map<String, Value>,
}

impl From<&ModelConfig> for Settings {
    fn from(config: &ModelConfig) -> Self {
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
}

impl Settings {
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

/// The whole request.
pub(super) fn body(settings: &Settings, encoder: &mut Encoder<Part<Role>>, request: &ChatRequest) -> Vec<u8> {
    let mut parameters = settings.parameters(&request.settings);
    parameters.shift_remove("messages");
    let configured = parameters.shift_remove("tools");
    let mut marks = Marks::new(settings.caching);
    let mut out = encoder.open_for(&settings.model, &mut parameters);
    let system = encoder.each_system(request, text_block);
    if !system.is_empty() {
        out.extend_from_slice(b",\"system\":[");
        write_joined(&mut out, &system);
        marks.set(&mut out);
        out.push(b']');
    }
    let tools = encoder.tools(request.tools.iter(), configured.as_ref(), encode_tool);
    if !tools.is_empty() {
        out.extend_from_slice(b",\"tools\":[");
        write_joined(&mut out, &tools);
        marks.set_after_tools(&mut out, configured.as_ref());
        out.push(b']');
        if let Some(choice) = tool_choice(&request.settings.tool_choice) {
            parameters.entry("tool_choice").or_insert(choice);
        }
    }
    out.extend_from_slice(b",\"messages\":[");
    let (said, open) =
        grouped::conversation(encoder, &request.messages, |_, message| encode(settings.caching, message));
    write_conversation(&mut out, &mut marks, &said, &open);
    encoder.conversations.keep(said);
    out.push(b']');
    encoder.close(out, &parameters)
}

fn write_conversation(out: &mut Vec<u8>, marks: &mut Marks, said: &Conversation, open: &[u8]) {
    let is_user = |item: &[u8]| item.strip_prefix(b",").unwrap_or(item).starts_with(Role::User.opening());
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
    out.extend_from_slice(grouped::END);
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
