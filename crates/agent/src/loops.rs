//! Tells a loop from work: the same calls with the same results, or one tool over and over.
//!
//! Two calls are the same when tool, salient arguments *and result* are: whoever polls something that changes is at
//! work. DeerFlow compares the calls alone and stops such polling; DeepAgents' users ask for this rule. The frequency
//! of a tool is counted over the recent answers, not over the whole run, and the tools an agent works with all day
//! (`bash`, files) have no such limit unless they are given one: a long task calls them hundreds of times.
//!
//! Invariant: what is remembered is bounded by the configured windows.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use hart_types::{Message, MessageId, ToolCall, ToolCallId};
use serde::Deserialize;
use serde_json::{Map, Value};

/// When repetition is corrected and when it is ended. Names and numbers are DeerFlow's.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoopDetectionConfig {
    pub enabled: bool,
    /// At that many identical answers within the window the model is corrected.
    pub warn_threshold: usize,
    /// At that many it has to answer without tools.
    pub hard_limit: usize,
    /// How many of the latest answers are compared.
    pub window_size: usize,
    /// At that many of the latest `tool_freq_window` answers that call one tool the model is warned; 0 is never.
    pub tool_freq_warn: usize,
    pub tool_freq_hard_limit: usize,
    pub tool_freq_window: usize,
    /// Other numbers for single tools, beside the built-in ones.
    pub tool_freq_overrides: BTreeMap<String, ToolFrequency>,
    /// Read for DeerFlow's sake; what is remembered here lives and ends with its run.
    pub max_tracked_threads: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolFrequency {
    /// 0 is never.
    pub warn: usize,
    pub hard_limit: usize,
}

impl Default for LoopDetectionConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            warn_threshold: 3,
            hard_limit: 5,
            window_size: 20,
            tool_freq_warn: 30,
            tool_freq_hard_limit: 50,
            tool_freq_window: 100,
            tool_freq_overrides: BTreeMap::new(),
            max_tracked_threads: 100,
        }
    }
}

impl LoopDetectionConfig {
    fn frequency(&self, tool: &str) -> ToolFrequency {
        match self.tool_freq_overrides.get(tool) {
            Some(own) => *own,
            None if DAILY_TOOLS.contains(&tool) => ToolFrequency::default(),
            None => ToolFrequency { warn: self.tool_freq_warn, hard_limit: self.tool_freq_hard_limit },
        }
    }
}

/// What an agent's hands are: no number of calls says that it does not get on.
const DAILY_TOOLS: [&str; 9] =
    ["bash", "background", "ls", "glob", "grep", "read_file", "write_file", "str_replace", "delete"];
/// What of a call's arguments says what it is about, where there are any of these.
const SALIENT: [&str; 7] = ["path", "url", "query", "command", "pattern", "glob", "cmd"];
/// Tools of whose arguments all matter.
const WRITERS: [&str; 2] = ["write_file", "str_replace"];
/// Reading a little further is the same read.
const LINES: u64 = 200;
/// A model that does not listen is not talked to for ever.
const MAX_CORRECTIONS: usize = 4;

/// What to do about an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine,
    /// With what to tell the model.
    Correct(String),
    /// With what happened.
    Stop(String),
}

/// What one run has done lately.
#[derive(Debug, Default)]
pub(crate) struct Detector {
    answers: VecDeque<u64>,
    /// The tools of each.
    tools: VecDeque<Vec<String>>,
    /// Tools that were warned about and have not calmed down since.
    warned: Vec<String>,
    corrections: usize,
    /// The answer that was looked at last.
    latest: Option<MessageId>,
    /// What the tools returned, before anyone shortened it.
    results: HashMap<ToolCallId, u64>,
}

impl Detector {
    /// Remembers a result as the tool gave it: a shortened one names a file that is different every time.
    pub(crate) fn returned(&mut self, call: &ToolCallId, result: &str) {
        self.results.insert(call.clone(), hash_result(result));
    }

    pub(crate) fn has_seen(&self, answer: &Message) -> bool {
        answer.id.is_some() && self.latest == answer.id
    }

    /// Looks at an answer and what its calls returned. `own_name` tells a tool's name from an alias of it.
    pub(crate) fn observe(
        &mut self,
        config: &LoopDetectionConfig,
        answer: &Message,
        results: &[&Message],
        own_name: &dyn Fn(&str) -> String,
    ) -> Verdict {
        self.latest.clone_from(&answer.id);
        let called = answer.tool_calls().iter();
        let calls: Vec<ToolCall> =
            called.map(|call| ToolCall { name: own_name(&call.name), ..call.clone() }).collect();
        let calls = calls.as_slice();
        if calls.is_empty() {
            return Verdict::Fine;
        }
        let repeated = self.repeated(config, calls, results);
        let frequent = self.frequent(config, calls);
        for call in calls {
            call.id.as_ref().map(|id| self.results.remove(id));
        }
        let (verdict, other) =
            if matches!(frequent, Verdict::Stop(_)) { (frequent, repeated) } else { (repeated, frequent) };
        let verdict = if verdict == Verdict::Fine { other } else { verdict };
        if matches!(verdict, Verdict::Correct(_)) {
            if self.corrections >= MAX_CORRECTIONS {
                return Verdict::Fine;
            }
            self.corrections += 1;
        }
        verdict
    }

    fn repeated(
        &mut self,
        config: &LoopDetectionConfig,
        calls: &[ToolCall],
        results: &[&Message],
    ) -> Verdict {
        // The order of the calls of one answer means nothing.
        let mut all: Vec<u64> = calls.iter().map(|call| self.hash_call(call, results)).collect();
        all.sort_unstable();
        let hash = hash_of(&all);
        push_bounded(&mut self.answers, hash, config.window_size);
        let times = self.answers.iter().filter(|other| **other == hash).count();
        let what = || format!("{} {times} times with the same arguments and the same result", names(calls));
        if config.hard_limit > 0 && times >= config.hard_limit {
            Verdict::Stop(what())
        } else if config.warn_threshold > 0 && times >= config.warn_threshold {
            Verdict::Correct(format!(
                "[LOOP DETECTED] You are repeating yourself: you have called {}. It will not come out differently. \
                 Change your approach: other arguments, another tool, or answer with what you have.",
                what()
            ))
        } else {
            Verdict::Fine
        }
    }

    /// By answers, not by calls: doing much with one answer is what a model is told to do. All tools of the answer
    /// count before anything is said, so that a warning hides no stop.
    fn frequent(&mut self, config: &LoopDetectionConfig, calls: &[ToolCall]) -> Verdict {
        let mut tools: Vec<String> = calls.iter().map(|call| call.name.clone()).collect();
        tools.sort_unstable();
        tools.dedup();
        push_bounded(&mut self.tools, tools.clone(), config.tool_freq_window);
        let count = |tool: &String| self.tools.iter().filter(|tools| tools.contains(tool)).count();
        let mut warned = std::mem::take(&mut self.warned);
        warned.retain(|tool| count(tool) >= config.frequency(tool).warn);
        let mut verdict = Verdict::Fine;
        for tool in &tools {
            let (times, limit) = (count(tool), config.frequency(tool));
            let what = format!("`{tool}` in {times} of the last {} answers", self.tools.len());
            if limit.hard_limit > 0 && times >= limit.hard_limit {
                verdict = Verdict::Stop(what);
                break;
            }
            if limit.warn > 0 && times >= limit.warn && !warned.contains(tool) {
                warned.push(tool.clone());
                verdict = Verdict::Correct(format!(
                    "[LOOP DETECTED] You have called {what}. Do you still get on? Do several things with one call, use \
                     another tool, or answer with what you have."
                ));
            }
        }
        self.warned = warned;
        verdict
    }

    fn hash_call(&self, call: &ToolCall, results: &[&Message]) -> u64 {
        let mut hasher = DefaultHasher::new();
        call.name.hash(&mut hasher);
        hash_arguments(&call.name, &call.args, &mut hasher);
        let raw = call.id.as_ref().and_then(|id| self.results.get(id)).copied();
        let shown = || {
            let result = results.iter().find(|result| {
                result.as_tool_result().is_some_and(|result| Some(&result.tool_call_id) == call.id.as_ref())
            });
            result.map(|result| hash_result(&result.text()))
        };
        raw.or_else(shown).hash(&mut hasher);
        hasher.finish()
    }
}

fn hash_arguments(tool: &str, args: &Map<String, Value>, hasher: &mut DefaultHasher) {
    if WRITERS.contains(&tool) {
        // What it says about itself changes nothing.
        let told = args.iter().filter(|(key, _)| *key != "description");
        return hash_entries(told, hasher);
    }
    if tool == "read_file" {
        hash_entries(args.iter().filter(|(key, _)| spelled(key) == "path"), hasher);
        let number = |key| args.get(key).and_then(Value::as_u64);
        let first =
            number("start_line").or_else(|| number("offset").map(|skipped| skipped.saturating_add(1)));
        let last = number("end_line").or_else(|| {
            number("limit").map(|lines| first.unwrap_or(1).saturating_add(lines).saturating_sub(1))
        });
        for line in [first, last] {
            line.map(|line| line / LINES).hash(hasher);
        }
        return;
    }
    let salient = |key: &str| SALIENT.contains(&spelled(key));
    if args.keys().any(|key| salient(key)) {
        return hash_entries(args.iter().filter(|(key, _)| salient(key)), hasher);
    }
    hash_entries(args.iter(), hasher);
}

/// Another word for the same argument.
fn spelled(key: &str) -> &str {
    if key == "file_path" { "path" } else { key }
}

/// In the order of the keys, whatever order the model wrote them in.
fn hash_entries<'a>(entries: impl Iterator<Item = (&'a String, &'a Value)>, hasher: &mut DefaultHasher) {
    let sorted: BTreeMap<&str, &Value> = entries.map(|(key, value)| (spelled(key), value)).collect();
    for (key, value) in sorted {
        key.hash(hasher);
        hash_value(value, hasher);
    }
}

fn hash_value(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(map) => hash_entries(map.iter(), hasher),
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| hash_value(item, hasher));
        }
        Value::String(text) => text.trim().hash(hasher),
        other => other.to_string().hash(hasher),
    }
}

/// Long output is kept in a file that goes by the call's id: the same output in another file is the same.
fn hash_result(text: &str) -> u64 {
    let in_name = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let mut hasher = DefaultHasher::new();
    for (at, part) in text.split("/.tool-results/").enumerate() {
        let part = if at == 0 { part } else { part.trim_start_matches(in_name) };
        part.hash(&mut hasher);
    }
    hasher.finish()
}

fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn names(calls: &[ToolCall]) -> String {
    const SHOWN: usize = 5;
    let mut names: Vec<String> = Vec::new();
    for call in calls {
        let name = format!("`{}`", call.name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    let list = names.join(", ");
    if more > 0 { format!("{list} and {more} more") } else { list }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, limit: usize) {
    queue.push_back(item);
    while queue.len() > limit.max(1) {
        queue.pop_front();
    }
}

#[cfg(test)]
#[path = "loops_tests.rs"]
mod tests;
