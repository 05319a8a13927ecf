//! Asks a model only for what it takes.
//!
//! Invariant: what is left out is told once per model and parameter, and nothing is left out on a guess: only what is
//! known not to be taken.

mod content;
mod turns;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use hart_kernel::{
    ChatModel, ChatRequest, ChatStream, Effort, MessageList, ModelError, ModelProfile, ModelSettings,
    Reasoning, ToolChoice,
};
use hart_types::Message;
use tokio_util::sync::CancellationToken;

use crate::catalogue::{Capabilities, Choice, ThinkingMode};
use crate::config::{Dialect, ModelConfig};
use crate::encoded::{Encodings, Size};
use crate::structured::{self, After, StructuredOutput};
use content::Unseen;
use turns::Turns;

/// A model behind what is known of it.
pub(crate) struct Fitted {
    model: Arc<dyn ChatModel>,
    capabilities: Capabilities,
    /// Parameters of the configuration that were taken out when it was built.
    left_out: Vec<Parameter>,
    /// The operator said how JSON is asked for.
    chosen_format: bool,
    /// The dialect has no word of its own for the least thought.
    least_by_effort: bool,
    /// The configured one, of a model that takes it only while it does not think.
    temperature: Option<f32>,
    /// One bit per parameter that has been spoken of.
    told: AtomicU32,
    /// Messages whose images were replaced, so that a growing conversation keeps its identity.
    replaced: Mutex<Encodings<Message, Replaced>>,
    /// Whether the sides must take turns.
    in_turns: bool,
    turns: Mutex<Turns>,
}

/// The message as this model gets it; `None` when it is sent as it is.
#[derive(Clone)]
struct Replaced(Option<Arc<Message>>);

impl Size for Replaced {
    fn size(&self) -> usize {
        self.0.as_ref().map_or(0, |message| message.text().len())
    }
}

/// What a model may not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    Temperature,
    Stop,
    ToolChoice,
    ReasoningEffort,
    Thinking,
    ThinkingOff,
    OutputSchema,
    MaxTokens,
    ParallelToolCalls,
    Images,
    Files,
}

impl Parameter {
    fn name(self) -> &'static str {
        match self {
            Self::Temperature => "temperature",
            Self::Stop => "stop",
            Self::ToolChoice => "tool_choice",
            Self::ReasoningEffort => "reasoning_effort",
            Self::Thinking | Self::ThinkingOff => "thinking",
            Self::OutputSchema => "response schema",
            Self::MaxTokens => "max_tokens",
            Self::ParallelToolCalls => "parallel_tool_calls",
            Self::Images => "images",
            Self::Files => "files",
        }
    }

    /// What happens instead.
    fn instead(self) -> &'static str {
        match self {
            Self::Thinking => "the model does not think; it answers at once",
            Self::ThinkingOff => "the model cannot be kept from thinking; it is asked to think little",
            Self::OutputSchema => "the model cannot be held to a schema; it is asked for one in words",
            Self::MaxTokens => "the model cannot answer at such length; its own limit is used",
            Self::Images => "the model cannot see images; a note stands in their place",
            Self::Files => "the model cannot read files; a note stands in their place",
            _ => "the model does not take it; it is left out",
        }
    }
}

/// The configuration without the parameters that the model is known to refuse, and their names. What `extra_body` says
/// is sent whatever is known: it is the way to insist.
pub(crate) fn without_refused(config: &ModelConfig) -> (ModelConfig, Vec<Parameter>) {
    let mut config = config.clone();
    let known = &config.capabilities;
    let mut left_out = Vec::new();
    if known.temperature.no() {
        config.temperature = None;
    }
    for key in &config.parameters {
        let parameter = match key.as_str() {
            "top_p" | "top_k" | "frequency_penalty" | "presence_penalty" | "logit_bias"
                if known.temperature.no() =>
            {
                Parameter::Temperature
            }
            "stop" | "stop_sequences" if known.stop.no() => Parameter::Stop,
            "reasoning_effort" if known.effort.value.as_ref().is_some_and(Vec::is_empty) => {
                Parameter::ReasoningEffort
            }
            "parallel_tool_calls" if known.parallel_calls.no() => Parameter::ParallelToolCalls,
            _ => continue,
        };
        config.extra_body.shift_remove(key);
        if !left_out.contains(&parameter) {
            left_out.push(parameter);
        }
    }
    (config, left_out)
}

impl Fitted {
    /// `config` as it was before [`without_refused`].
    pub(crate) fn new(model: Arc<dyn ChatModel>, config: &ModelConfig, left_out: Vec<Parameter>) -> Self {
        let refused = config.capabilities.temperature.no();
        Self {
            model,
            capabilities: config.capabilities.clone(),
            left_out,
            chosen_format: config.structured_output.is_some(),
            least_by_effort: matches!(config.dialect, Dialect::OpenAi | Dialect::Anthropic),
            temperature: config.temperature.filter(|_| refused).map(|degree| degree as f32),
            told: AtomicU32::new(0),
            replaced: Mutex::default(),
            in_turns: in_turns(config),
            turns: Mutex::default(),
        }
    }

    fn tell(&self, parameter: Parameter) {
        let bit = 1 << parameter as u32;
        if self.told.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            let model = &self.model.profile().name;
            let (parameter, instead) = (parameter.name(), parameter.instead());
            tracing::warn!(%model, parameter, "`{parameter}`: {instead} (`hart models show {model}` says why)");
        }
    }

    /// The request as the model takes it, and what is to be done with the answer.
    fn fit(&self, mut request: ChatRequest) -> (ChatRequest, After) {
        self.left_out.iter().for_each(|parameter| self.tell(*parameter));
        self.fit_settings(&mut request.settings);
        if !request.tools.is_empty() {
            self.fit_tool_choice(&mut request.settings.tool_choice);
        }
        let after = self.fit_output(&mut request);
        self.fit_content(&mut request.messages);
        if self.in_turns {
            self.turns.lock().unwrap_or_else(PoisonError::into_inner).take(&mut request);
        }
        (request, after)
    }

    fn fit_settings(&self, settings: &mut ModelSettings) {
        let known = &self.capabilities;
        if known.temperature.no()
            && let Some(degree) = settings.temperature.take().or(self.temperature)
        {
            // OpenAI's models take it again once they are kept from thinking.
            let efforts = known.effort.value.iter().flatten();
            if settings.reasoning == Reasoning::Off && efforts.into_iter().any(|word| word == "none") {
                settings.temperature = Some(degree);
            } else {
                self.tell(Parameter::Temperature);
            }
        }
        if known.stop.no() && !settings.stop.is_empty() {
            settings.stop.clear();
            self.tell(Parameter::Stop);
        }
        if let (Some(limit), Some(asked)) = (known.max_output.value, settings.max_tokens)
            && asked > limit
        {
            settings.max_tokens = Some(limit);
            self.tell(Parameter::MaxTokens);
        }
        match (known.thinking.value, settings.reasoning) {
            (Some(ThinkingMode::None), Reasoning::On(_) | Reasoning::Budget(_)) => {
                settings.reasoning = Reasoning::Default;
                self.tell(Parameter::Thinking);
            }
            (Some(ThinkingMode::Always), Reasoning::Off) => {
                // Where there is no word for the least it can do, the lowest effort comes nearest.
                let switch = known.thinking_switch.value.as_ref();
                if self.least_by_effort && switch.is_none_or(|switch| switch.off.is_empty()) {
                    settings.reasoning = Reasoning::On(Effort::Low);
                }
                self.tell(Parameter::ThinkingOff);
            }
            _ => {}
        }
    }

    fn fit_tool_choice(&self, choice: &mut ToolChoice) {
        let kind = match choice {
            ToolChoice::Auto => return,
            ToolChoice::None => Choice::None,
            ToolChoice::Required => Choice::Required,
            ToolChoice::Named(_) => Choice::Named,
        };
        if !self.capabilities.takes(kind) {
            // To demand any tool comes nearer to demanding one of them than to demand nothing.
            let next = kind == Choice::Named && self.capabilities.takes(Choice::Required);
            *choice = if next { ToolChoice::Required } else { ToolChoice::Auto };
            self.tell(Parameter::ToolChoice);
        }
    }

    /// Asks for JSON in words where a schema is not taken, unless the operator said how to ask.
    fn fit_output(&self, request: &mut ChatRequest) -> After {
        if self.chosen_format || !self.capabilities.structured_output.no() {
            return After::Nothing;
        }
        let after = structured::prepare(StructuredOutput::Prompt, request);
        if after != After::Nothing {
            self.tell(Parameter::OutputSchema);
        }
        after
    }

    fn fit_content(&self, messages: &mut MessageList) {
        let unseen = Unseen { images: self.capabilities.vision.no(), files: self.capabilities.files.no() };
        if !unseen.images && !unseen.files {
            return;
        }
        // Another caller's panic cannot leave half an entry behind.
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = false;
        let fitted: Vec<Arc<Message>> = messages
            .iter()
            .map(|message| {
                let Replaced(without) = replaced.of(message, |message| {
                    Replaced(unseen.replace(message, |parameter| self.tell(parameter)).map(Arc::new))
                });
                changed |= without.is_some();
                without.unwrap_or_else(|| Arc::clone(message))
            })
            .collect();
        if changed {
            *messages = fitted.into();
        }
    }
}

/// Also where nothing is known of a model behind chat completions or Ollama: no server refuses turns, and the templates of
/// many models refuse anything else. The other APIs have one way to say it.
fn in_turns(config: &ModelConfig) -> bool {
    let single = &config.capabilities.single_system_message;
    single.yes() || (!single.no() && matches!(config.dialect, Dialect::OpenAi | Dialect::Ollama))
}

#[async_trait]
impl ChatModel for Fitted {
    fn profile(&self) -> &ModelProfile {
        self.model.profile()
    }

    fn count_text(&self, text: &str) -> u64 {
        self.model.count_text(text)
    }

    fn count_request(&self, request: &ChatRequest) -> u64 {
        self.model.count_request(request)
    }

    async fn stream(
        &self,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        let wanted = request.settings.output.clone();
        let (request, after) = self.fit(request);
        let answer = self.model.stream(request, cancel).await?;
        Ok(structured::finish(answer, after, &wanted))
    }
}
