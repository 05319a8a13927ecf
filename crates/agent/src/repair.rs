//! Makes of a history one that every provider accepts: each call has a name, an id of its own, and its result right
//! behind it.
//!
//! A run that was killed leaves calls unanswered; models leave out names and ids, or use an id again; threads move from
//! one provider to another. Any of these makes a provider refuse the whole thread, for ever.
//!
//! Invariant: a sound history is left as it is, the same history is always repaired in the same way, and what was
//! repaired once is not looked at again.

use std::collections::HashMap;
use std::sync::Arc;

use hart_kernel::MessageList;
use hart_types::{Ai, Block, Body, Content, Message, ToolCallId, ToolStatus};
use serde_json::Value;

/// What a call without a name is called.
const NAMELESS: &str = "unknown_tool";
/// The longest that all providers take.
const MAX_ID: usize = 64;
/// How much of a parser's complaint is repeated.
const MAX_DETAIL: usize = 500;

/// The repaired start of a conversation.
#[derive(Default)]
pub(crate) struct History {
    source: MessageList,
    /// How many of its messages nothing can change any more: those before the last answer, whose results may yet come.
    settled: usize,
    /// What these became, once that is something else.
    repaired: Option<MessageList>,
    /// How often each id has been used in them.
    used: Used,
}

type Used = HashMap<String, u32>;

impl History {
    /// The conversation as it can be sent; `None` if it can be sent as it is.
    pub(crate) fn repair(&mut self, messages: &MessageList) -> Option<MessageList> {
        if self.source.common_prefix(messages) < self.settled {
            *self = Self::default();
        }
        let fresh: Vec<&Arc<Message>> = messages.iter_from(self.settled).collect();
        let is_answer = |message: &&Arc<Message>| message.as_ai().is_some();
        let mut groups: Vec<&[&Arc<Message>]> = Vec::new();
        let mut rest = fresh.as_slice();
        while !rest.is_empty() {
            let end = rest.iter().skip(1).position(is_answer).map_or(rest.len(), |at| at + 1);
            let (group, others) = rest.split_at_checked(end).unwrap_or((rest, &[]));
            groups.push(group);
            rest = others;
        }
        let last = groups.pop_if(|group| group.first().is_some_and(is_answer));
        for group in groups {
            let repaired = Group::read(group, &self.used).repaired(&mut self.used);
            self.settle(messages, group, repaired);
        }
        self.source = messages.clone();
        let tail = last.and_then(|group| Group::read(group, &self.used).repaired(&mut HashMap::new()));
        match (&self.repaired, tail) {
            (None, None) => None,
            (settled, tail) => {
                let mut all = match settled {
                    Some(settled) => settled.clone(),
                    None => messages.iter().take(self.settled).cloned().collect(),
                };
                match tail {
                    Some(tail) => all.extend(tail),
                    None => all.extend(messages.iter_from(self.settled).cloned()),
                }
                Some(all)
            }
        }
    }

    fn settle(
        &mut self,
        messages: &MessageList,
        group: &[&Arc<Message>],
        repaired: Option<Vec<Arc<Message>>>,
    ) {
        let before = self.settled;
        self.settled += group.len();
        match (&mut self.repaired, repaired) {
            (None, None) => {}
            (Some(all), None) => all.extend(group.iter().map(|message| Arc::clone(message))),
            (Some(all), Some(repaired)) => all.extend(repaired),
            (None, Some(repaired)) => {
                let mut all: MessageList = messages.iter().take(before).cloned().collect();
                all.extend(repaired);
                self.repaired = Some(all);
            }
        }
    }
}

/// An answer and what followed it, up to the next; or what stands before the first.
struct Group<'a> {
    messages: &'a [&'a Arc<Message>],
    calls: Vec<Call<'a>>,
}

/// A call and what it is sent as.
struct Call<'a> {
    had: Option<&'a ToolCallId>,
    id: ToolCallId,
    /// The id it would have if nobody had used it before.
    wanted: String,
    had_name: &'a str,
    name: &'a str,
    /// Why it could not be run.
    broken: Option<&'a str>,
}

impl Call<'_> {
    fn is_changed(&self) -> bool {
        self.had != Some(&self.id) || self.had_name != self.name
    }

    /// The wanted id counts too: it says how many have asked for it.
    fn note(&self, used: &mut Used) {
        *used.entry(self.wanted.clone()).or_default() += 1;
        if self.wanted != self.id.as_str() {
            used.entry(self.id.as_str().to_owned()).or_insert(1);
        }
    }

    fn is_answered_by(&self, result: &Message) -> bool {
        let id = result.as_tool_result().map(|result| result.tool_call_id.as_str());
        id == Some(self.had.map_or("", ToolCallId::as_str))
    }
}

impl<'a> Group<'a> {
    fn read(messages: &'a [&'a Arc<Message>], used: &Used) -> Self {
        let answer = messages.first();
        let ai = answer.and_then(|message| message.as_ai());
        let valid = ai.into_iter().flat_map(|ai| &ai.tool_calls);
        let valid = valid.map(|call| (call.id.as_ref(), call.name.as_str(), None));
        let invalid = ai.into_iter().flat_map(|ai| &ai.invalid_tool_calls).map(|call| {
            let broken = call.error.as_deref().unwrap_or("the arguments were not a JSON object");
            (call.id.as_ref(), call.name.as_deref().unwrap_or_default(), Some(broken))
        });
        let mut here = Used::new();
        let mut calls = Vec::new();
        for (at, (had, had_name, broken)) in valid.chain(invalid).enumerate() {
            let wanted = match had.map(ToolCallId::as_str).map(acceptable) {
                Some(id) if !id.is_empty() => id,
                _ => {
                    // The message's own id makes it the same each time, and another in each message.
                    let message = answer.and_then(|message| message.id.as_ref());
                    acceptable(&format!("call_{at}_{}", message.map_or("", |id| id.as_str())))
                }
            };
            let id = ToolCallId::from(unique(&wanted, used, &here));
            let name = if had_name.trim().is_empty() { NAMELESS } else { had_name };
            let call = Call { had, id, wanted, had_name, name, broken };
            call.note(&mut here);
            calls.push(call);
        }
        Self { messages, calls }
    }

    /// The messages to send instead; `None` if these will do. Remembers the ids in `used`.
    fn repaired(&self, used: &mut Used) -> Option<Vec<Arc<Message>>> {
        self.calls.iter().for_each(|call| call.note(used));
        if self.is_sound() {
            return None;
        }
        let is_answer = self.messages.first().is_some_and(|message| message.as_ai().is_some());
        let (answer, rest) = self.messages.split_at_checked(usize::from(is_answer)).unwrap_or_default();
        let mut repaired: Vec<Arc<Message>> = answer.iter().map(|answer| self.answer(answer)).collect();
        let mut results: Vec<Option<&Arc<Message>>> =
            rest.iter().map(|message| message.as_tool_result().map(|_| *message)).collect();
        for call in &self.calls {
            let found =
                results.iter_mut().find_map(|slot| slot.take_if(|result| call.is_answered_by(result)));
            repaired.push(match found {
                Some(result) if call.is_changed() => Arc::new(renamed(result, call)),
                Some(result) => Arc::clone(result),
                None => Arc::new(unanswered(call)),
            });
        }
        // Results that are left over answer nothing.
        let others = rest.iter().filter(|message| message.as_tool_result().is_none());
        repaired.extend(others.map(|message| Arc::clone(message)));
        Some(repaired)
    }

    /// Whether the calls are as they should be and answered by exactly the messages right behind.
    fn is_sound(&self) -> bool {
        let mut open: Vec<&Call<'_>> = self.calls.iter().collect();
        let after = self.messages.iter().skip(usize::from(!self.calls.is_empty()));
        for message in after {
            match (message.as_tool_result(), open.is_empty()) {
                (Some(_), _) => match open.iter().position(|call| call.is_answered_by(message)) {
                    Some(at) => {
                        open.swap_remove(at);
                    }
                    None => return false,
                },
                (None, false) => return false,
                (None, true) => {}
            }
        }
        open.is_empty() && !self.calls.iter().any(Call::is_changed)
    }

    fn answer(&self, message: &Arc<Message>) -> Arc<Message> {
        if !self.calls.iter().any(Call::is_changed) {
            return Arc::clone(message);
        }
        let mut message = Message::clone(message);
        if let Content::Blocks(blocks) = &mut message.content {
            rename_blocks(blocks, &self.calls);
        }
        if let Some(ai) = ai_mut(&mut message.body) {
            let valid = ai.tool_calls.iter_mut().map(|call| (&mut call.id, Name::Known(&mut call.name)));
            let invalid = ai.invalid_tool_calls.iter_mut();
            let invalid = invalid.map(|call| (&mut call.id, Name::Maybe(&mut call.name)));
            for ((id, name), call) in valid.chain(invalid).zip(&self.calls) {
                *id = Some(call.id.clone());
                name.set(call.name);
            }
        }
        Arc::new(message)
    }
}

/// Calls that were read have a name, broken ones perhaps.
enum Name<'a> {
    Known(&'a mut String),
    Maybe(&'a mut Option<String>),
}

impl Name<'_> {
    fn set(self, name: &str) {
        match self {
            Self::Known(slot) => name.clone_into(slot),
            Self::Maybe(slot) => *slot = Some(name.to_owned()),
        }
    }
}

fn ai_mut(body: &mut Body) -> Option<&mut Ai> {
    match body {
        Body::Ai(ai) => Some(ai),
        Body::AiChunk(chunk) => Some(&mut chunk.ai),
        _ => None,
    }
}

/// The call that a block stands for, in the spelling of the provider that wrote it.
fn called(block: &Block) -> Option<&str> {
    let map = block.as_object()?;
    match map.get("type").and_then(Value::as_str)? {
        "tool_use" => map.get("id")?.as_str(),
        "function_call" => map.get("call_id")?.as_str(),
        _ => None,
    }
}

/// Each block that tells where a call stood is for one call, in order.
fn rename_blocks(blocks: &mut [Block], calls: &[Call<'_>]) {
    let mut open: Vec<&mut Block> = blocks.iter_mut().filter(|block| called(block).is_some()).collect();
    for call in calls {
        let had = call.had.map(ToolCallId::as_str);
        let Some(at) = open.iter().position(|block| called(block) == had) else { continue };
        if let Block::Object(map) = open.remove(at) {
            let key = if map.contains_key("call_id") { "call_id" } else { "id" };
            map.insert(key.to_owned(), call.id.as_str().into());
        }
    }
}

/// An id in letters that no provider refuses outright; what one of them alone refuses, its dialect respells.
fn acceptable(id: &str) -> String {
    let letters = id.trim().chars().map(|c| if c.is_ascii_graphic() && c != '"' { c } else { '_' });
    letters.take(MAX_ID).collect()
}

/// Some servers count their calls anew in every answer; others refuse an id that they have seen.
fn unique(wanted: &str, used: &Used, here: &Used) -> String {
    let times = |id: &str| used.get(id).copied().unwrap_or(0) + here.get(id).copied().unwrap_or(0);
    let mut nth = times(wanted);
    if nth == 0 {
        return wanted.to_owned();
    }
    loop {
        nth += 1;
        let ending = format!("-{nth}");
        let stem: String = wanted.chars().take(MAX_ID - ending.len()).collect();
        let id = format!("{stem}{ending}");
        if times(&id) == 0 {
            return id;
        }
    }
}

fn renamed(result: &Message, call: &Call<'_>) -> Message {
    let mut result = result.clone();
    if let Body::Tool(tool) = &mut result.body {
        tool.tool_call_id = call.id.clone();
    }
    result.name = Some(call.name.to_owned());
    result
}

fn unanswered(call: &Call<'_>) -> Message {
    let text = match call.broken {
        Some(why) => {
            let why: String = why.chars().take(MAX_DETAIL).collect();
            format!("Error: nothing was run: {why}. Call the tool again with valid JSON arguments.")
        }
        None if call.name != call.had_name => {
            "Error: nothing was run: the call names no tool. Call one of your tools by its name.".to_owned()
        }
        None => "Error: this call was interrupted; whether it took effect is not known. Check before repeating it."
            .to_owned(),
    };
    Message::tool(&call.id, call.name, ToolStatus::Error, text).with_id(format!("repair--{}", call.id))
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
