//! Two recordings side by side: where they part first, and what each came to.
//!
//! Invariant: what is compared is what was said and done; ids, times and the pieces an answer came in are not.

use hart_kernel::ModelProfile;
use hart_types::{Message, RunId, RunStatus, UsageMetadata};
use serde::Serialize;
use serde_json::Value;

use super::difference::{excerpt, first_difference};
use super::lines::Hash;
use super::record::Answer;
use super::reel::{Call, Entry, Reel};
use crate::Totals;

/// Where two runs part first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// The step, from 1: an answer of the model, or a batch of results.
    pub step: u32,
    pub part: Part,
    /// What it is of: who asked, or which tool was called.
    pub of: String,
    pub first: Option<String>,
    pub second: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What the model was asked: its prompt, its tools or its settings.
    Prompt,
    /// What it was told.
    Messages,
    /// What it answered.
    Answer,
    ToolResult,
    /// One goes on where the other ends.
    End,
    /// All they said is the same; how they ended is not.
    Status,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sums {
    pub run: RunId,
    pub status: RunStatus,
    pub model: Option<String>,
    pub steps: u32,
    pub model_calls: u64,
    pub tool_calls: u64,
    pub usage: UsageMetadata,
    /// In the currency of the models' prices, where all have one.
    pub cost: Option<f64>,
    /// All that the run has used: with what its subagents did, and what was cut off, neither of which is recorded.
    pub in_all: Totals,
}

impl Reel {
    pub fn sums(&self) -> Sums {
        let (mut usage, mut costs) = (UsageMetadata::default(), Vec::new());
        for call in self.calls() {
            let Answer::Message(message) = &call.answer else { continue };
            let Some(used) = message.as_ai().and_then(|ai| ai.usage.as_ref()) else { continue };
            usage.add(used);
            let cached = used.input_token_details.as_ref().and_then(|details| details.cache_read);
            let price = ModelProfile::from(call.model.clone()).price;
            costs.push(price.map(|price| {
                price.of(used.input_tokens, cached.unwrap_or_default(), used.output_tokens) as f64 / 1e6
            }));
        }
        let cost = if costs.is_empty() { None } else { costs.into_iter().sum() };
        let tool_calls = self.entries.iter().filter(|entry| matches!(entry, Entry::Called { .. })).count();
        Sums {
            run: self.run.id.clone(),
            status: self.run.status,
            model: self.model().map(|model| model.name.clone()),
            steps: self.steps(),
            model_calls: self.calls().count() as u64,
            tool_calls: tool_calls as u64,
            usage,
            cost,
            in_all: self.run.totals.clone(),
        }
    }
}

/// The first thing that is not the same in both; `None` for two that are.
pub fn divergence(a: &Reel, b: &Reel) -> Option<Divergence> {
    let (mut step, mut in_batch) = (0, false);
    let (first, second) = (told(a), told(b));
    for at in 0..first.len().max(second.len()) {
        let (ours, theirs) = (first.get(at).copied(), second.get(at).copied());
        match ours.or(theirs) {
            Some(Entry::Asked(call)) if !call.side => {
                in_batch = false;
                step += 1;
            }
            Some(Entry::Called { .. }) if !std::mem::replace(&mut in_batch, true) => step += 1,
            _ => {}
        }
        let found = match (ours, theirs) {
            (Some(Entry::Asked(ours)), Some(Entry::Asked(theirs))) if ours.caller == theirs.caller => {
                of_calls((a, ours), (b, theirs))
            }
            (
                Some(Entry::Called { tool, came_to: ours, .. }),
                Some(Entry::Called { tool: other, came_to: theirs, .. }),
            ) if tool == other => differ(Part::ToolResult, tool, &said(ours), &said(theirs)),
            (ours, theirs) => {
                let (first, second) = (ours.map(name), theirs.map(name));
                let of = first.clone().or_else(|| second.clone()).unwrap_or_default();
                Some((Part::End, of, first, second))
            }
        };
        if let Some((part, of, first, second)) = found {
            return Some(Divergence { step, part, of, first, second });
        }
    }
    let status = |reel: &Reel| reel.run.status.to_string();
    differ(Part::Status, "the run", &status(a), &status(b)).map(|(part, of, first, second)| Divergence {
        step,
        part,
        of,
        first,
        second,
    })
}

type Found = (Part, String, Option<String>, Option<String>);

fn of_calls((a, ours): (&Reel, &Call), (b, theirs): (&Reel, &Call)) -> Option<Found> {
    let parts = [
        ("system prompt", &ours.system, &theirs.system),
        ("tools", &ours.tools, &theirs.tools),
        ("settings", &ours.settings, &theirs.settings),
    ];
    for (what, ours, theirs) in parts {
        if ours != theirs {
            return differ(Part::Prompt, what, &text(a, ours), &text(b, theirs));
        }
    }
    let before = |call: &Call| call.history.as_ref().map_or(0, |history| history.count);
    if ours.history != theirs.history {
        let words = |call| format!("{} messages before the run", before(call));
        return Some((Part::Messages, ours.caller.clone(), Some(words(ours)), Some(words(theirs))));
    }
    for at in before(ours)..ours.messages.len().max(theirs.messages.len()) {
        let hash = |call: &Call| call.messages.get(at).cloned().flatten();
        let (hash_a, hash_b) = (hash(ours), hash(theirs));
        if hash_a != hash_b {
            let text = |reel, hash: Option<Hash>| hash.map(|hash| text(reel, &hash)).unwrap_or_default();
            return differ(Part::Messages, &ours.caller, &text(a, hash_a), &text(b, hash_b));
        }
    }
    differ(Part::Answer, &ours.caller, &answer(&ours.answer), &answer(&theirs.answer))
}

fn text(reel: &Reel, hash: &Hash) -> String {
    reel.texts.get(hash).map(ToString::to_string).unwrap_or_default()
}

fn differ(part: Part, of: &str, a: &str, b: &str) -> Option<Found> {
    if a == b {
        return None;
    }
    let at = first_difference(a, b);
    Some((part, of.to_owned(), Some(excerpt(a, at)), Some(excerpt(b, at))))
}

/// In the order of the steps; what was asked on the side, and what tools that ran at once gave, in an order that does
/// not depend on who was first.
fn told(reel: &Reel) -> Vec<&Entry> {
    let mut all: Vec<&Entry> = Vec::with_capacity(reel.entries.len());
    let mut batch: Vec<&Entry> = Vec::new();
    let id = |entry: &&Entry| match entry {
        Entry::Called { call, .. } => call.clone(),
        Entry::Asked(_) => String::new(),
    };
    let mut side = Vec::new();
    for entry in &reel.entries {
        match entry {
            Entry::Asked(call) if call.side => side.push(entry),
            Entry::Called { .. } => batch.push(entry),
            Entry::Asked(_) => {
                batch.sort_by_key(id);
                all.append(&mut batch);
                all.push(entry);
            }
        }
    }
    batch.sort_by_key(id);
    all.append(&mut batch);
    all.append(&mut side);
    all
}

fn name(entry: &Entry) -> String {
    match entry {
        Entry::Asked(call) => format!("a model call of `{}`", call.caller),
        Entry::Called { tool, .. } => format!("a call of `{tool}`"),
    }
}

/// What an answer says and does.
fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Message(message) => spoken(message),
        Answer::Failed(failed) => failed.text(),
    }
}

fn spoken(message: &Message) -> String {
    let calls = message.as_ai().into_iter().flat_map(|ai| &ai.tool_calls);
    let calls = calls.map(|call| format!("{}({})", call.name, Value::Object(call.args.clone())));
    let text = Some(message.text()).filter(|text| !text.is_empty());
    text.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
}

/// A result without the id of its message.
fn said(came_to: &Value) -> String {
    let content = came_to.pointer("/gave/message/content");
    content.map_or_else(
        || came_to.to_string(),
        |content| content.as_str().map_or_else(|| content.to_string(), str::to_owned),
    )
}
