//! Which tools fit what is being talked about: a ranking by words, without a model.
//!
//! Invariant: the same words and tools give the same choice, in the order the tools had.

use std::collections::BTreeSet;
use std::sync::Arc;

use hart_kernel::{MessageList, ReduceError, Scope, StateKey, ToolSpec};
use hart_knowledge::ranking::{Ranking, words};
use hart_types::Body;
use serde::Deserialize;
use serde_json::Value;

/// LangChain's `LLMToolSelector` has the same settings.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolSelectionConfig {
    pub enabled: bool,
    /// How many are chosen; those that stay in any case are not counted.
    pub max_tools: usize,
    pub always_include: Vec<String>,
}

impl Default for ToolSelectionConfig {
    fn default() -> Self {
        Self { enabled: false, max_tools: 20, always_include: Vec::new() }
    }
}

/// The key of the tools that this thread has called.
#[derive(Debug)]
pub struct ToolsUsed;

impl StateKey for ToolsUsed {
    type Value = BTreeSet<String>;
    type Update = BTreeSet<String>;
    const NAME: &'static str = "tools_used";
    const SCOPE: Scope = Scope::Private;

    fn reduce(current: Option<Self::Value>, update: Self::Update) -> Result<Self::Value, ReduceError> {
        let mut all = current.unwrap_or_default();
        all.extend(update);
        Ok(all)
    }
}

/// How many of the latest messages say what is going on.
const RECENT: usize = 12;

/// What is being talked about: the user's newest message, and the latest calls.
pub(crate) fn topic(messages: &MessageList) -> String {
    let mut words = String::new();
    if let Some(asked) = messages.iter().rev().find(|message| message.body == Body::Human) {
        words.push_str(&asked.text());
    }
    for call in messages.iter().rev().take(RECENT).flat_map(|message| message.tool_calls()) {
        words.push(' ');
        words.push_str(&call.name);
    }
    words
}

/// The best `most` of the tools that are not in `kept`, by name.
pub(crate) fn best(
    tools: &[Arc<ToolSpec>],
    kept: &BTreeSet<String>,
    topic: &str,
    most: usize,
) -> BTreeSet<String> {
    let ranking = Ranking::new(tools.iter().map(|tool| tool_words(tool)));
    let order = ranking.order(topic).into_iter().filter_map(|at| tools.get(at));
    order.filter(|tool| !kept.contains(&tool.name)).take(most).map(|tool| tool.name.clone()).collect()
}

fn tool_words(tool: &ToolSpec) -> Vec<String> {
    // What it is called says more than how it is described.
    let name = words(&tool.name);
    let mut all = [name.clone(), name.clone(), name].concat();
    all.extend(words(&tool.description));
    if let Some(Value::Object(arguments)) = tool.input_schema.get("properties") {
        all.extend(arguments.keys().flat_map(|name| words(name)));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str) -> Arc<ToolSpec> {
        let input_schema = json!({"type": "object", "properties": {"description": {}}});
        Arc::new(ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema,
            effect: hart_kernel::Effect::Pure,
        })
    }

    #[test]
    fn what_is_talked_about_comes_first() {
        let tools = [
            tool("send_email", "Sends a message to somebody by electronic mail."),
            tool("get_weather", "The weather forecast of a city. 查询天气"),
            tool("list_issues", "Lists the open issues of a repository."),
            tool("create_issue", "Opens an issue in a repository."),
            tool("resize_image", "Makes a picture smaller."),
        ];
        for (topic, expected) in [
            ("Will it rain? What is the weather in Rome?", "get_weather"),
            ("今天天气怎么样", "get_weather"),
            ("mail this to Anna", "send_email"),
            ("please create a new issue about the crash", "create_issue"),
            ("make these images smaller", "resize_image"),
            ("hm", "send_email"),
        ] {
            let best = best(&tools, &BTreeSet::new(), topic, 1);
            assert_eq!(best, BTreeSet::from([expected.to_owned()]), "{topic}");
        }
        let kept = BTreeSet::from(["get_weather".to_owned()]);
        assert!(!best(&tools, &kept, "weather", 4).contains("get_weather"), "it is there anyway");
    }
}
