//! Which tools fit what is being talked about: a ranking by words, without a model.
//!
//! Invariant: the same words and tools give the same choice, in the order the tools had.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use hart_kernel::{MessageList, ReduceError, Scope, StateKey, ToolSpec};
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
    let ranking = Ranking::new(tools);
    let asked: BTreeSet<String> = words(topic).into_iter().collect();
    let free = tools.iter().enumerate().filter(|(_, tool)| !kept.contains(&tool.name));
    let mut scored: Vec<(f64, &str)> =
        free.map(|(at, tool)| (ranking.score(at, &asked), tool.name.as_str())).collect();
    // A stable sort: of equals, the one that came first.
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    scored.into_iter().take(most).map(|(_, name)| name.to_owned()).collect()
}

/// BM25 over the tools' names, descriptions and arguments.
struct Ranking {
    tools: Vec<HashMap<String, f64>>,
    lengths: Vec<f64>,
    average: f64,
    /// In how many tools a word occurs.
    spread: HashMap<String, f64>,
}

impl Ranking {
    fn new(tools: &[Arc<ToolSpec>]) -> Self {
        let mut counted = Vec::new();
        let mut lengths = Vec::new();
        let mut spread: HashMap<String, f64> = HashMap::new();
        for tool in tools {
            let words = tool_words(tool);
            lengths.push(words.len() as f64);
            let mut counts: HashMap<String, f64> = HashMap::new();
            for word in words {
                *counts.entry(word).or_default() += 1.0;
            }
            for word in counts.keys() {
                *spread.entry(word.clone()).or_default() += 1.0;
            }
            counted.push(counts);
        }
        let average = lengths.iter().sum::<f64>() / (lengths.len().max(1) as f64);
        Self { tools: counted, lengths, average: average.max(1.0), spread }
    }

    fn score(&self, at: usize, asked: &BTreeSet<String>) -> f64 {
        const K: f64 = 1.2;
        const B: f64 = 0.75;
        let Some((tool, length)) = self.tools.get(at).zip(self.lengths.get(at)) else { return 0.0 };
        let all = self.tools.len() as f64;
        let of = |word: &String| {
            let times = tool.get(word)?;
            let spread = self.spread.get(word)?;
            let rare = ((all - spread + 0.5) / (spread + 0.5) + 1.0).ln();
            Some(rare * times * (K + 1.0) / (times + K * (1.0 - B + B * length / self.average)))
        };
        asked.iter().filter_map(of).sum()
    }
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

/// Lower case, parted at everything that is no letter or digit and at capitals inside; scripts without spaces in pairs
/// of characters; endings of English taken off roughly, the same on both sides.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut lower_before = false;
    for c in text.chars().chain([' ']) {
        let parts = !c.is_alphanumeric() || (c.is_uppercase() && lower_before);
        if parts && !word.is_empty() {
            push(&mut found, std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        lower_before = c.is_lowercase();
    }
    found
}

fn push(found: &mut Vec<String>, word: String) {
    if word
        .chars()
        .any(|c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'))
    {
        let chars: Vec<char> = word.chars().collect();
        found.extend(chars.windows(2).map(|pair| pair.iter().collect()));
        return;
    }
    let stem = ["ing", "ies", "es", "ed", "s", "e"].iter().find_map(|end| word.strip_suffix(end));
    match stem.filter(|stem| stem.chars().count() >= 3) {
        Some(stem) => found.push(stem.to_owned()),
        None => found.push(word),
    }
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
    fn words_are_found_in_names_of_any_habit() {
        assert_eq!(words("list_openIssues: HTTPServer's"), ["list", "open", "issu", "httpserver", "s"]);
        assert_eq!(words("searching searches search"), ["search", "search", "search"]);
        assert_eq!(words("查询天气"), ["查询", "询天", "天气"]);
        assert_eq!(words("  … "), Vec::<String>::new());
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
