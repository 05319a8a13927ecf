//! Asks the endpoint once and says what came back, whatever it was.
//!
//! Invariant: nothing is left out of a request on account of what is believed of the model.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use hart_kernel::{ChatChunk, ChatModel, ChatRequest, ModelError, ModelErrorKind, ModelSettings, ToolSpec};
use hart_types::{Block, BlockView, Content, Message};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{MAX_ANSWER, Outcome};
use crate::catalogue::{Origin, ThinkingMode};
use crate::config::{Dialect, ModelConfig, StructuredOutput};
use crate::factory;

/// For one answer, however slow.
const PATIENCE: Duration = Duration::from_secs(120);
/// For one token of a prompt: a small machine reads that slowly.
const READING: Duration = Duration::from_millis(20);
/// Evidence is for a table.
const MAX_QUOTE: usize = 80;

pub(super) struct Asker {
    model: Arc<dyn ChatModel>,
    /// The same, told that it thinks.
    thinker: Arc<dyn ChatModel>,
    /// The protocol has a place for texts that end an answer.
    pub(super) has_stop: bool,
    /// … and for a choice of tools.
    pub(super) has_tool_choice: bool,
}

/// An answer, and how it came.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) message: Message,
    /// Pieces of text and of reasoning.
    pub(super) text_pieces: usize,
    pub(super) reasoned: bool,
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The endpoint does not take the request.
    Refused(ModelError),
    /// It failed in a way that says nothing about the request.
    Failed(ModelError),
    Slow,
}

impl NoAnswer {
    /// A refusal says no; anything else says nothing.
    pub(super) fn verdict(&self) -> (Outcome, String) {
        match self {
            Self::Refused(error) => (Outcome::No, format!("refused: {}", quoted(&error.message))),
            Self::Failed(error) => (Outcome::Unclear, format!("failed: {error}")),
            Self::Slow => (Outcome::Unclear, format!("no answer within {} s", PATIENCE.as_secs())),
        }
    }
}

impl Asker {
    pub(super) fn new(config: &ModelConfig, http: &reqwest::Client) -> Self {
        // A setting that the model refuses would refuse every question.
        let mut config = config.clone();
        config.temperature = None;
        config.structured_output = Some(StructuredOutput::Schema);
        config.extra_body.retain(|key, _| !config.parameters.contains(key));
        let has_stop = !matches!(config.capabilities.stop.origin, Origin::Dialect(_));
        let has_tool_choice = config.dialect != Dialect::Ollama;
        let model = factory::dialect(&config, http, factory::alone(&config));
        let mut thinker = config;
        thinker.send_reasoning = true;
        let known = &mut thinker.capabilities;
        if !known.thinks() {
            known.thinking.value = Some(ThinkingMode::Optional);
        }
        if known.effort.value.as_ref().is_none_or(Vec::is_empty) {
            known.effort.value = Some(vec!["low".to_owned(), "medium".to_owned(), "high".to_owned()]);
        }
        thinker.supports_thinking = true;
        thinker.supports_reasoning_effort = true;
        Self {
            model,
            thinker: factory::dialect(&thinker, http, factory::alone(&thinker)),
            has_stop,
            has_tool_choice,
        }
    }

    /// Asks the model as it is configured.
    pub(super) async fn ask(&self, request: ChatRequest) -> Result<Answer, NoAnswer> {
        ask(&*self.model, request).await
    }

    /// Asks with a prompt of that many tokens, which takes its time to read.
    pub(super) async fn ask_long(&self, request: ChatRequest, tokens: u32) -> Result<Answer, NoAnswer> {
        once(&*self.model, request, PATIENCE + READING * tokens).await
    }

    /// Asks it as a model that can be made to think.
    pub(super) async fn ask_thinking(&self, request: ChatRequest) -> Result<Answer, NoAnswer> {
        ask(&*self.thinker, request).await
    }

    /// Whether an answer ends when nobody wants it any more; `None` when it was over before.
    pub(super) async fn cancels(&self, request: ChatRequest) -> Result<Option<bool>, NoAnswer> {
        let cancel = CancellationToken::new();
        let listening = async {
            let mut stream = self.model.stream(request, &cancel).await.map_err(classified)?;
            let mut cancelled = false;
            while let Some(chunk) = stream.next().await {
                match chunk {
                    Ok(ChatChunk::Done(_)) => return Ok(None),
                    Ok(_) if !cancelled => {
                        cancel.cancel();
                        cancelled = true;
                    }
                    Ok(_) => {}
                    Err(error) if error.kind == ModelErrorKind::Cancelled => return Ok(Some(true)),
                    Err(error) => return Err(classified(error)),
                }
            }
            Ok(Some(false))
        };
        tokio::time::timeout(PATIENCE, listening).await.unwrap_or(Err(NoAnswer::Slow))
    }
}

async fn ask(model: &dyn ChatModel, request: ChatRequest) -> Result<Answer, NoAnswer> {
    let first = once(model, request.clone(), PATIENCE).await;
    match first {
        // Some servers answer with an internal error to what they cannot do, every time; others were unlucky once.
        Err(NoAnswer::Failed(error)) if error.status == Some(500) => {
            match once(model, request, PATIENCE).await {
                Err(NoAnswer::Failed(error)) if error.status == Some(500) => Err(NoAnswer::Refused(error)),
                second => second,
            }
        }
        first => first,
    }
}

async fn once(model: &dyn ChatModel, request: ChatRequest, patience: Duration) -> Result<Answer, NoAnswer> {
    let listening = async {
        let mut stream = model.stream(request, &CancellationToken::new()).await?;
        let (mut text_pieces, mut reasoned) = (0, false);
        while let Some(chunk) = stream.next().await {
            match chunk? {
                ChatChunk::Text(text) => text_pieces += usize::from(!text.is_empty()),
                ChatChunk::Reasoning(text) => reasoned |= !text.is_empty(),
                ChatChunk::Done(message) => {
                    reasoned |= has_reasoning(&message);
                    return Ok(Answer { message: *message, text_pieces, reasoned });
                }
                _ => {}
            }
        }
        let why = "the stream ended before the answer was complete";
        Err(ModelError::new(ModelErrorKind::Interrupted, &model.profile().name, why))
    };
    match tokio::time::timeout(patience, listening).await {
        Ok(answer) => answer.map_err(classified),
        Err(_) => Err(NoAnswer::Slow),
    }
}

fn classified(error: ModelError) -> NoAnswer {
    match error.kind {
        ModelErrorKind::BadRequest | ModelErrorKind::ContextOverflow { .. } => NoAnswer::Refused(error),
        _ => NoAnswer::Failed(error),
    }
}

fn has_reasoning(message: &Message) -> bool {
    let Content::Blocks(blocks) = &message.content else { return false };
    blocks.iter().any(|block| match block {
        Block::Object(map) => {
            matches!(block.view(), BlockView::Reasoning { .. })
                || map.get("type").is_some_and(|kind| kind == "redacted_thinking")
        }
        Block::Bare(_) => false,
    })
}

pub(super) fn request(messages: impl IntoIterator<Item = Message>) -> ChatRequest {
    ChatRequest {
        caller: "probe".into(),
        system: None,
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::from([]),
        settings: ModelSettings { max_tokens: Some(MAX_ANSWER), ..ModelSettings::default() },
    }
}

pub(super) fn with_tool(mut request: ChatRequest) -> ChatRequest {
    request.tools = [Arc::new(ToolSpec {
        effect: hart_kernel::Effect::Pure,
        name: "get_code".to_owned(),
        description: "Tells the secret code of a city.".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {"city": {"type": "string", "description": "The city's name."}},
            "required": ["city"],
        }),
    })]
    .into();
    request
}

/// The start of a text, on one line.
pub(super) fn quoted(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_QUOTE) {
        Some((cut, _)) => format!("\u{201c}{}…\u{201d}", line.get(..cut).unwrap_or_default()),
        None => format!("\u{201c}{line}\u{201d}"),
    }
}
