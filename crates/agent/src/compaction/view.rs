//! The conversation as the model is shown it.
//!
//! Invariant: the same record over a conversation that only grew gives a view that only grew.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hart_kernel::MessageList;
use hart_types::{Ai, Block, Body, Content, Message};
use serde_json::Value;

use super::record::{Compaction, Trimming};
use crate::projection::Projection;
use crate::reminder::is_standing;

/// What stays of an argument that is cut short: enough to recognise it.
const ARG_SHOWN: usize = 20;
const ARG_CUT: &str = "...(argument truncated)";
/// A shorter result is not worth a note in its place.
const RESULT_NOTED: usize = 200;

/// The views of one run.
#[derive(Default)]
pub(crate) struct Views(
    /// Never held across an await.
    Mutex<Latest>,
);

#[derive(Default)]
struct Latest {
    record: Option<Compaction>,
    of: u64,
    view: Projection,
}

impl Views {
    /// The newest record: the state learns of one with the answer of the model, which may take several attempts.
    pub(crate) fn record(&self, stored: Option<&Compaction>) -> Compaction {
        let latest = self.lock();
        let stored = stored.cloned().unwrap_or_default();
        latest.record.clone().filter(|record| record.generation > stored.generation).unwrap_or(stored)
    }

    pub(crate) fn remember(&self, record: &Compaction) {
        self.lock().record = Some(record.clone());
    }

    pub(crate) fn of(&self, record: &Compaction, messages: &MessageList, args_over: usize) -> MessageList {
        let mut latest = self.lock();
        if latest.of != record.generation {
            latest.of = record.generation;
            latest.view.forget();
        }
        latest.view.of(messages, |messages| view(record, messages, args_over), Arc::clone)
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Applies a record. One that does not fit the thread changes nothing.
pub(super) fn view(record: &Compaction, messages: &MessageList, args_over: usize) -> MessageList {
    let Some(start) = record.start(messages) else { return messages.clone() };
    let trim = record.trim.as_ref().and_then(|trim| Some((trim.before.find(messages)?, trim.how)));
    let clip = record.clip.zip(record.newest.as_ref().and_then(|newest| newest.find(messages)));
    if start == 0 && record.cut.is_none() && trim.is_none() && clip.is_none() {
        return messages.clone();
    }
    let history = record.history.as_deref();
    let shown = |at: usize, message: &Arc<Message>| {
        let trimming = trim.filter(|(before, _)| at < *before).map(|(_, how)| how);
        let limit = clip.filter(|(_, newest)| at <= *newest).map(|(limit, _)| limit);
        let message = match trimming {
            Some(how) => trimmed(message, how, history, args_over)?,
            None => Arc::clone(message),
        };
        Some(limit.map_or_else(|| Arc::clone(&message), |limit| clipped(&message, limit)))
    };
    let mut view = MessageList::default();
    if let Some(cut) = &record.cut {
        // What the conversation was opened with, and what is still true, is no part of what was said.
        let opening = messages.iter().take(start).take_while(|message| message.body == Body::System).count();
        view.extend(messages.iter().take(opening).cloned());
        view.push(Arc::clone(&cut.summary));
        // Behind the summary: before it, the instructions that a provider has cached would change with every cut.
        let newest = record.newest.as_ref().and_then(|newest| newest.find(messages));
        view.extend(standing(messages, opening..start, newest.map_or(start, |newest| newest + 1)));
        let pinned = cut.pinned.as_ref().and_then(|pinned| pinned.find(messages)).filter(|at| *at < start);
        view.extend(pinned.and_then(|at| shown(at, messages.get(at)?)));
    }
    view.extend(messages.iter_from(start).enumerate().filter_map(|(at, message)| shown(start + at, message)));
    view
}

/// The newest standing messages of the old part, one for each who wrote any, unless a newer one came before `end`.
fn standing(messages: &MessageList, old: Range<usize>, end: usize) -> Vec<Arc<Message>> {
    let mut found: Vec<(usize, Arc<Message>)> = Vec::new();
    let behind = messages.iter().enumerate().take(end).skip(old.start);
    for (at, message) in behind.filter(|(_, message)| is_standing(message)) {
        found.retain(|(_, older)| older.name != message.name);
        found.push((at, Arc::clone(message)));
    }
    found.into_iter().filter(|(at, _)| *at < old.end).map(|(_, message)| message).collect()
}

fn trimmed(
    message: &Arc<Message>,
    how: Trimming,
    history: Option<&str>,
    args_over: usize,
) -> Option<Arc<Message>> {
    match &message.body {
        Body::Ai(ai) if how == Trimming::Exchanges && has_calls(ai) => {
            let text = message.text();
            // Signed reasoning belongs to the calls it led to.
            let said = changed(message, |said| {
                said.content = Content::Text(text);
                said.body = Body::Ai(Ai::default());
            });
            (!said.content.is_empty()).then_some(said)
        }
        Body::Tool(_) if how == Trimming::Exchanges => None,
        Body::Tool(_) if how == Trimming::Results => Some(without_result(message, history)),
        Body::Ai(ai)
            if ai.tool_calls.iter().any(|call| call.args.values().any(|arg| is_long(arg, args_over))) =>
        {
            let mut ai = ai.clone();
            for arg in ai.tool_calls.iter_mut().flat_map(|call| call.args.values_mut()) {
                shorten(arg, args_over);
            }
            Some(changed(message, |message| message.body = Body::Ai(ai)))
        }
        _ => Some(Arc::clone(message)),
    }
}

fn changed(message: &Message, change: impl FnOnce(&mut Message)) -> Arc<Message> {
    let mut message = message.clone();
    change(&mut message);
    Arc::new(message)
}

fn has_calls(ai: &Ai) -> bool {
    !ai.tool_calls.is_empty() || !ai.invalid_tool_calls.is_empty()
}

fn without_result(message: &Arc<Message>, history: Option<&str>) -> Arc<Message> {
    let chars = message.text().chars().count();
    if chars <= RESULT_NOTED && matches!(message.content, Content::Text(_)) {
        return Arc::clone(message);
    }
    let place = history.map_or_else(String::new, |path| format!("; it is in {path}"));
    let note = format!("[{chars} characters of old tool output left out{place}]");
    changed(message, |message| message.content = note.into())
}

fn is_long(arg: &Value, limit: usize) -> bool {
    match arg {
        Value::String(text) => text.len() > limit && text.chars().count() > limit,
        Value::Array(items) => items.iter().any(|item| is_long(item, limit)),
        Value::Object(map) => map.values().any(|item| is_long(item, limit)),
        _ => false,
    }
}

fn shorten(arg: &mut Value, limit: usize) {
    match arg {
        Value::String(text) if text.chars().count() > limit => {
            *text = text.chars().take(ARG_SHOWN).chain(ARG_CUT.chars()).collect();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, limit)),
        Value::Object(map) => map.values_mut().for_each(|item| shorten(item, limit)),
        _ => {}
    }
}

/// Keeps the ends of everything in it.
fn clipped(message: &Arc<Message>, limit: usize) -> Arc<Message> {
    let mut clipped = Message::clone(message);
    let mut changed = false;
    let text = message.text();
    if let Some(short) = ends(&text, limit) {
        clipped.content = match (&message.body, &message.content) {
            // A provider wants its own blocks back unchanged or not at all.
            (Body::Human | Body::Tool(_), Content::Blocks(blocks)) => {
                let others = blocks.iter().filter(|block| block.as_text().is_none()).cloned();
                Content::Blocks(std::iter::once(Block::text(short)).chain(others).collect())
            }
            _ => Content::Text(short),
        };
        changed = true;
    }
    if let Body::Ai(ai) = &mut clipped.body {
        for arg in ai.tool_calls.iter_mut().flat_map(|call| call.args.values_mut()) {
            changed |= is_long(arg, limit);
            shorten(arg, limit);
        }
    }
    if changed { Arc::new(clipped) } else { Arc::clone(message) }
}

pub(super) fn ends(text: &str, limit: usize) -> Option<String> {
    let chars = text.chars().count();
    if chars <= limit {
        return None;
    }
    let half = limit / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(chars - half).collect();
    Some(format!("{head}\n... [{} of {chars} characters left out to fit] ...\n{tail}", chars - 2 * half))
}
