//! Keeps personal data out of what the model reads or says.
//!
//! Invariant: one pass over a text finds all kinds; what is to be blocked stops the call before anything leaves.

use hart_guard::{PiiDetector, PiiError, PiiKind, PiiStrategy, treat};
use hart_kernel::{
    HookError, Middleware, ModelNext, ModelRequest, ModelResponse, RunContext, ToolNext, ToolOutcome,
    ToolRequest, async_trait,
};
use hart_types::{Block, Body, Content, Message};
use serde::Deserialize;
use serde_json::Value;

use crate::view::SharedView;

/// What is looked for, where, and what becomes of it. Off without rules.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PiiConfig {
    pub rules: Vec<PiiRule>,
}

/// One kind of personal data.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PiiRule {
    /// `email`, `credit_card`, `ip`, `mac_address`, `url`, or a name of your own together with `detector`.
    #[serde(rename = "type")]
    pub kind: String,
    /// A regular expression, for a kind of your own or instead of the built-in way to find one.
    pub detector: Option<String>,
    #[serde(default)]
    pub strategy: PiiStrategy,
    /// In users' messages, as the model gets them.
    #[serde(default = "yes")]
    pub apply_to_input: bool,
    /// In the model's answers, as the thread keeps them.
    #[serde(default)]
    pub apply_to_output: bool,
    /// In what tools return.
    #[serde(default)]
    pub apply_to_tool_results: bool,
}

fn yes() -> bool {
    true
}

/// Finds personal data and blocks, redacts, masks or hashes it, kind by kind.
///
/// - **Input**: users' messages are changed in the request only; the thread keeps what was said.
/// - **Output**: an answer is changed before it enters the thread. What was streamed until then has been seen as the
///   model wrote it: the fragments are not held back. Where that matters, do not show the stream.
/// - **Tool results** are changed before they enter the thread.
///
/// With the strategy `block` the run fails with the kind that was found, and never with the value.
#[derive(Clone, Debug)]
pub struct Pii {
    input: Places,
    output: Places,
    tool_results: Places,
}

/// The rules of one direction.
#[derive(Clone, Debug)]
struct Places {
    detector: PiiDetector,
    strategies: Vec<PiiStrategy>,
}

/// Why a run was stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} contain{} personal data ({kind}), which is blocked here; remove it and try again", if *.plural { "" } else { "s" })]
pub struct PiiBlocked {
    pub kind: String,
    place: &'static str,
    plural: bool,
}

impl Pii {
    pub fn new(config: PiiConfig) -> Result<Self, PiiError> {
        let places =
            |applies: fn(&PiiRule) -> bool| Places::new(config.rules.iter().filter(|rule| applies(rule)));
        Ok(Self {
            input: places(|rule| rule.apply_to_input)?,
            output: places(|rule| rule.apply_to_output)?,
            tool_results: places(|rule| rule.apply_to_tool_results)?,
        })
    }
}

/// Without rules: nothing is looked for.
impl Default for Pii {
    fn default() -> Self {
        let nothing = Places { detector: PiiDetector::default(), strategies: Vec::new() };
        Self { input: nothing.clone(), output: nothing.clone(), tool_results: nothing }
    }
}

#[async_trait]
impl Middleware for Pii {
    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let view = cx.scratch.get_or_default::<RedactedView>();
        request.chat.messages = view.0.show(&request.chat.messages, |message| match message.body {
            Body::Human => self.input.rewritten(message, "the messages", true),
            _ => Ok(None),
        })?;
        let mut response = next.run(request).await?;
        if let Some(message) = self.output.rewritten(&response.message, "the model's answer", false)? {
            response.message = message;
        }
        Ok(response)
    }

    async fn wrap_tool_call(
        &self,
        _cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let mut outcome = next.run(request).await?;
        if let Some(message) = self.tool_results.rewritten(&outcome.message, "a tool's result", false)? {
            outcome.message = message;
        }
        Ok(outcome)
    }
}

#[derive(Default)]
struct RedactedView(SharedView);

impl Places {
    fn new<'a>(rules: impl Iterator<Item = &'a PiiRule>) -> Result<Self, PiiError> {
        let (mut kinds, mut strategies) = (Vec::new(), Vec::new());
        for rule in rules {
            kinds.push(kind(rule)?);
            strategies.push(rule.strategy);
        }
        Ok(Self { detector: PiiDetector::new(kinds)?, strategies })
    }

    /// The message without what must not be in it; `None` if nothing is.
    fn rewritten(
        &self,
        message: &Message,
        place: &'static str,
        plural: bool,
    ) -> Result<Option<Message>, HookError> {
        let mut blocked = None;
        let mut changed = false;
        let mut treated = |text: &str| {
            let replaced = self.detector.replace(text, |at, value| {
                let (kind, strategy) = (self.detector.kinds().get(at), self.strategies.get(at));
                let (Some(kind), Some(strategy)) = (kind, strategy) else { return value.to_owned() };
                if *strategy == PiiStrategy::Block {
                    blocked.get_or_insert_with(|| kind.name().to_owned());
                }
                treat(kind, *strategy, value)
            });
            changed |= replaced.is_some();
            replaced
        };
        let content = match &message.content {
            Content::Text(text) => Content::Text(treated(text).unwrap_or_else(|| text.clone())),
            Content::Blocks(blocks) => {
                let blocks = blocks.iter().map(|block| match block.as_text().and_then(&mut treated) {
                    Some(text) => with_text(block, text),
                    None => block.clone(),
                });
                Content::Blocks(blocks.collect())
            }
        };
        let original = message.additional_kwargs.get("original_user_content").and_then(Value::as_str);
        let original = original.map(|original| treated(original).unwrap_or_else(|| original.to_owned()));
        if let Some(kind) = blocked {
            return Err(HookError::Other(PiiBlocked { kind, place, plural }.into()));
        }
        Ok(changed.then(|| {
            let mut message = message.clone();
            message.content = content;
            if let Some(original) = original {
                message.additional_kwargs.insert("original_user_content".to_owned(), Value::from(original));
            }
            message
        }))
    }
}

fn with_text(block: &Block, text: String) -> Block {
    match block {
        Block::Bare(_) => Block::Bare(text),
        Block::Object(map) => {
            let mut map = map.clone();
            map.insert("text".to_owned(), Value::from(text));
            Block::Object(map)
        }
    }
}

fn kind(rule: &PiiRule) -> Result<PiiKind, PiiError> {
    let name = rule.kind.clone();
    match &rule.detector {
        Some(pattern) => Ok(PiiKind::Custom { name, pattern: pattern.clone() }),
        None => PiiKind::BUILT_IN.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let known: Vec<_> = PiiKind::BUILT_IN.iter().map(|kind| kind.name().to_owned()).collect();
            PiiError { name, reason: format!("it has no detector; built in are {}", known.join(", ")) }
        }),
    }
}
