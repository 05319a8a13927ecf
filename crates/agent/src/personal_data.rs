//! Personal data in messages, and in an answer while it is being written.
//!
//! An answer is streamed as it arrives, at most a word behind: what may still become personal data waits for the next
//! word (see [`PiiStream`]). Holding all of it back until it is complete would be simpler, and would take the stream from
//! everybody who has a rule.
//!
//! Invariant: what a listener heard of an answer has nothing in it that the finished message would not have.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use hart_guard::{PiiDetector, PiiError, PiiKind, PiiStrategy, PiiStream, treat};
use hart_kernel::{
    ChatChunk, ChatModel, ChatRequest, ChatStream, HookError, ModelError, ModelProfile, async_trait,
};
use hart_types::{Block, Content, Message};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::middleware::PiiRule;

/// What is looked for in one direction, and what becomes of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Treatment {
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

impl Treatment {
    pub(crate) fn new<'a>(rules: impl Iterator<Item = &'a PiiRule>) -> Result<Self, PiiError> {
        let (mut kinds, mut strategies) = (Vec::new(), Vec::new());
        for rule in rules {
            kinds.push(kind(rule)?);
            strategies.push(rule.strategy);
        }
        Ok(Self { detector: PiiDetector::new(kinds)?, strategies })
    }

    /// What stands in a value's place; `block` is called where nothing may.
    fn replace(&self, at: usize, value: &str, block: &mut dyn FnMut(&PiiKind)) -> String {
        let (kind, strategy) = (self.detector.kinds().get(at), self.strategies.get(at));
        let (Some(kind), Some(strategy)) = (kind, strategy) else { return value.to_owned() };
        if *strategy == PiiStrategy::Block {
            block(kind);
        }
        treat(kind, *strategy, value)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.detector.is_empty()
    }

    /// The message without what must not be in it; `None` if nothing is.
    pub(crate) fn rewritten(
        &self,
        message: &Message,
        place: &'static str,
        plural: bool,
    ) -> Result<Option<Message>, HookError> {
        let mut blocked = None;
        let mut changed = false;
        let mut treated = |text: &str| {
            let mut block = |kind: &PiiKind| {
                blocked.get_or_insert_with(|| kind.name().to_owned());
            };
            let replaced = self.detector.replace(text, |at, value| self.replace(at, value, &mut block));
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

/// A model whose words are treated before anybody hears them. Its finished message is left to whoever asked.
pub(crate) struct Treated {
    model: Arc<dyn ChatModel>,
    treatment: Arc<Treatment>,
}

impl Treated {
    pub(crate) fn new(model: Arc<dyn ChatModel>, treatment: Arc<Treatment>) -> Self {
        Self { model, treatment }
    }
}

#[async_trait]
impl ChatModel for Treated {
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
        let answer = self.model.stream(request, cancel).await?;
        let mut words = Words { treatment: Arc::clone(&self.treatment), ..Words::default() };
        Ok(Box::pin(answer.flat_map(move |item| stream::iter(words.hear(item)))))
    }
}

/// What has been said so far and not been passed on.
#[derive(Default)]
struct Words {
    treatment: Arc<Treatment>,
    stream: PiiStream,
    /// Something was found that must not be there; there is nothing more to hear.
    blocked: bool,
}

type Item = Result<ChatChunk, ModelError>;

impl Words {
    fn hear(&mut self, item: Item) -> Vec<Item> {
        match item {
            Ok(ChatChunk::Text(fragment)) => self.treated(Some(&fragment)).into_iter().map(Ok).collect(),
            Ok(ChatChunk::Restart(restart)) => {
                (self.stream, self.blocked) = (PiiStream::default(), false);
                vec![Ok(ChatChunk::Restart(restart))]
            }
            Ok(ChatChunk::Done(message)) => {
                let rest = self.treated(None);
                rest.into_iter().chain([ChatChunk::Done(message)]).map(Ok).collect()
            }
            other => vec![other],
        }
    }

    fn treated(&mut self, fragment: Option<&str>) -> Option<ChatChunk> {
        let Self { treatment, stream, blocked } = self;
        let replace = |at: usize, value: &str| treatment.replace(at, value, &mut |_| *blocked = true);
        let text = match fragment {
            Some(fragment) => stream.push(&treatment.detector, fragment, replace),
            None => stream.finish(&treatment.detector, replace),
        };
        (!*blocked && !text.is_empty()).then_some(ChatChunk::Text(text))
    }
}
