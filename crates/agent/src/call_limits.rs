//! How many calls are too many, and what becomes of an answer that has more.
//!
//! Invariant: no two calls of an answer have one id, and what is dropped is told with the call that stands for it.

use std::collections::{BTreeMap, HashSet};

use hart_kernel::{ReduceError, Scope, StateKey};
use hart_types::{Body, Message, ToolCall, ToolCallId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::take_calls;

/// Limits on numbers of calls. The names of a limit's parts are LangChain's.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallLimitsConfig {
    /// 0 is no limit.
    pub max_calls_per_answer: usize,
    pub model: Option<CallLimit>,
    pub tools: BTreeMap<String, CallLimit>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallLimit {
    pub thread_limit: Option<u64>,
    pub run_limit: Option<u64>,
    pub exit_behavior: ExitBehavior,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExitBehavior {
    /// Refuse further calls of the tool; a model's limit is an end.
    #[default]
    Continue,
    End,
    Error,
}

impl Default for CallLimitsConfig {
    fn default() -> Self {
        Self { max_calls_per_answer: 128, model: None, tools: BTreeMap::new() }
    }
}

impl CallLimit {
    /// Why there may be no further call after that many.
    pub(crate) fn broken_by(&self, run: u64, thread: u64) -> Option<String> {
        let over = |limit: Option<u64>, count: u64| limit.filter(|limit| count >= *limit);
        let run = over(self.run_limit, run).map(|limit| format!("{limit} calls are the limit of a run"));
        run.or_else(|| {
            over(self.thread_limit, thread).map(|limit| format!("{limit} calls are the limit of this thread"))
        })
    }
}

/// How often a thread has called what is limited per thread.
pub(crate) struct ThreadCalls;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CallCounts {
    pub(crate) model: u64,
    pub(crate) tools: BTreeMap<String, u64>,
}

impl CallCounts {
    pub(crate) fn tool(&self, name: &str) -> u64 {
        self.tools.get(name).copied().unwrap_or_default()
    }
}

impl StateKey for ThreadCalls {
    type Value = CallCounts;
    type Update = CallCounts;
    const NAME: &'static str = "__calls__";
    const SCOPE: Scope = Scope::Private;

    fn reduce(current: Option<CallCounts>, more: CallCounts) -> Result<CallCounts, ReduceError> {
        let mut all = current.unwrap_or_default();
        all.model += more.model;
        for (tool, count) in more.tools {
            *all.tools.entry(tool).or_default() += count;
        }
        Ok(all)
    }
}

/// On the call that speaks for those behind it: how many they are.
const DROPPED: &str = "dropped_calls";

/// Some servers use one id for all calls of an answer; a result could then belong to any of them.
pub(crate) fn own_ids(message: &mut Message) {
    let Body::Ai(ai) = &mut message.body else { return };
    let mut seen: HashSet<ToolCallId> = HashSet::new();
    let ids = ai.tool_calls.iter_mut().map(|call| &mut call.id);
    let ids = ids.chain(ai.invalid_tool_calls.iter_mut().map(|call| &mut call.id));
    for id in ids.flatten() {
        if seen.insert(id.clone()) {
            continue;
        }
        let mut number = 2;
        let mut own = format!("{id}_{number}").into();
        while !seen.insert(ToolCallId::clone(&own)) {
            number += 1;
            own = format!("{id}_{number}").into();
        }
        *id = own;
    }
}

/// Drops the calls beyond `most`, but for one that stands for them all: so the model hears of it where it looks.
pub(crate) fn bound(message: &mut Message, most: usize) {
    let Body::Ai(ai) = &message.body else { return };
    let all = ai.tool_calls.len() + ai.invalid_tool_calls.len();
    if most == 0 || all <= most {
        return;
    }
    let ids =
        ai.tool_calls.iter().map(|call| &call.id).chain(ai.invalid_tool_calls.iter().map(|call| &call.id));
    let kept: HashSet<ToolCallId> = ids.flatten().take(most + 1).cloned().collect();
    take_calls(message, |id| id.is_some_and(|id| kept.contains(id)));
    let Body::Ai(ai) = &mut message.body else { return };
    let dropped = all - most - 1;
    match (ai.tool_calls.get_mut(most), ai.invalid_tool_calls.last_mut()) {
        (Some(call), _) => {
            call.extra.insert(DROPPED.to_owned(), dropped.into());
        }
        // It is answered with what is wrong with it.
        (None, Some(call)) => call.error = Some(too_many(most, dropped)),
        (None, None) => {}
    }
}

pub(crate) fn too_many(most: usize, dropped: usize) -> String {
    format!(
        "only the first {most} calls of an answer are run; this one and {dropped} more behind it were dropped. Do the work \
         in batches: fewer calls, each of which does more"
    )
}

/// How many calls were dropped behind this one, if it stands for any.
pub(crate) fn dropped_behind(call: &ToolCall) -> Option<usize> {
    let dropped = call.extra.get(DROPPED).and_then(Value::as_u64)?;
    Some(usize::try_from(dropped).unwrap_or(usize::MAX))
}
