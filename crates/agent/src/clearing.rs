//! Which old tool results are cleared, and what stays of them.
//!
//! Invariant: what is cleared stays cleared, and the border between the two moves in steps that are worth it, so that
//! requests between two moves share their beginning.

use std::collections::HashSet;
use std::sync::Arc;

use hart_kernel::{MessageList, ReduceError, Scope, StateKey};
use hart_types::{Body, Message, MessageId, ToolCallId};
use serde::{Deserialize, Serialize};
use serde_json::Map;

/// LangChain's settings of the same names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContextEditingConfig {
    pub enabled: bool,
    /// From how many tokens on old results are cleared.
    pub trigger: u64,
    /// How many of the newest results stay.
    pub keep: usize,
    /// The border moves only where this many tokens are gained; a twentieth of `trigger`, if that is more.
    pub clear_at_least: u64,
    /// Whether the arguments of the calls are cleared too.
    pub clear_tool_inputs: bool,
    /// Tools whose results stay.
    pub exclude_tools: Vec<String>,
    /// What stands for a result.
    pub placeholder: String,
}

impl Default for ContextEditingConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            trigger: 100_000,
            keep: 3,
            clear_at_least: 0,
            clear_tool_inputs: false,
            exclude_tools: Vec::new(),
            placeholder: "[cleared]".to_owned(),
        }
    }
}

impl ContextEditingConfig {
    /// What a move of the border must gain.
    pub(crate) fn step(&self) -> u64 {
        self.clear_at_least.max(self.trigger / 20)
    }
}

/// The key of the border: the newest message whose results are cleared.
#[derive(Debug)]
pub struct ClearedThrough;

impl StateKey for ClearedThrough {
    type Value = Border;
    type Update = Border;
    const NAME: &'static str = "cleared_through";
    const SCOPE: Scope = Scope::Private;

    fn reduce(_: Option<Self::Value>, update: Self::Update) -> Result<Self::Value, ReduceError> {
        Ok(update)
    }
}

/// Where the cleared part ends, and how often that has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Border {
    pub(crate) moves: u64,
    pub(crate) through: Option<MessageId>,
}

impl Border {
    /// How many messages are before it. None, if its message is no longer there: then so is all before it.
    fn len(&self, messages: &MessageList) -> usize {
        let Some(through) = &self.through else { return 0 };
        let from_end = messages.iter().rev().position(|message| message.id.as_ref() == Some(through));
        from_end.map_or(0, |from_end| messages.len() - from_end)
    }

    /// The border that leaves `keep` results; `None` if that is no further than this one.
    pub(crate) fn moved(&self, messages: &MessageList, keep: usize) -> Option<Self> {
        let results =
            messages.iter().rev().enumerate().map(|(back, message)| (messages.len() - 1 - back, message));
        let mut results = results.filter(|(_, message)| message.as_tool_result().is_some()).skip(keep);
        // A repaired result has no id of its own; the one before it has.
        let (at, through) = results.find_map(|(at, message)| Some((at, message.id.clone()?)))?;
        (at >= self.len(messages)).then_some(Self { moves: self.moves + 1, through: Some(through) })
    }
}

/// The conversation with everything before the border cleared.
pub(crate) fn cleared(messages: &MessageList, border: &Border, config: &ContextEditingConfig) -> MessageList {
    let len = border.len(messages);
    if len == 0 {
        return messages.clone();
    }
    let goes = |message: &Message| {
        let name = message.name.as_deref().unwrap_or_default();
        !config.exclude_tools.iter().any(|tool| tool == name)
    };
    let calls = if config.clear_tool_inputs { cleared_calls(messages, len, goes) } else { HashSet::new() };
    let shown = |(at, message): (usize, &Arc<Message>)| match &message.body {
        Body::Tool(_) if at < len && goes(message) => {
            changed(message, |message| message.content = config.placeholder.as_str().into())
        }
        Body::Ai(ai) if ai.tool_calls.iter().any(|call| is_cleared(&calls, at, call.id.as_ref())) => {
            let mut ai = ai.clone();
            for call in &mut ai.tool_calls {
                if is_cleared(&calls, at, call.id.as_ref()) {
                    call.args = Map::new();
                }
            }
            changed(message, |message| message.body = Body::Ai(ai))
        }
        _ => Arc::clone(message),
    };
    messages.iter().enumerate().map(shown).collect()
}

/// The calls whose results are cleared, each with the place of its answer: ids may come again.
fn cleared_calls(
    messages: &MessageList,
    len: usize,
    goes: impl Fn(&Message) -> bool,
) -> HashSet<(usize, &ToolCallId)> {
    let mut answer = 0;
    let mut calls = HashSet::new();
    for (at, message) in messages.iter().enumerate().take(len) {
        match &message.body {
            Body::Ai(_) => answer = at,
            Body::Tool(result) if goes(message) => {
                calls.insert((answer, &result.tool_call_id));
            }
            _ => {}
        }
    }
    calls
}

fn is_cleared(calls: &HashSet<(usize, &ToolCallId)>, at: usize, id: Option<&ToolCallId>) -> bool {
    id.is_some_and(|id| calls.contains(&(at, id)))
}

fn changed(message: &Message, change: impl FnOnce(&mut Message)) -> Arc<Message> {
    let mut message = message.clone();
    change(&mut message);
    Arc::new(message)
}
