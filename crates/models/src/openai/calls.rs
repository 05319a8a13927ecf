//! Puts tool calls together from their fragments.
//!
//! Invariant: every call has an id and a place in the order of its first fragment, whatever the server left out.

use hart_types::{InvalidToolCall, ToolCall, ToolCallChunk, ToolCallId};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::repair::{Closing, Repaired, repair_with};
use crate::tool_args::{parse_tool_arguments, read_tool_arguments};
use crate::wire::Text;

/// A fragment as a server sends it.
#[derive(Debug, Deserialize)]
pub(super) struct CallDelta<'a> {
    index: Option<i64>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    function: Option<FunctionDelta<'a>>,
    /// Gemini's signature.
    extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct FunctionDelta<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    /// A piece of JSON inside a string; some servers send the object itself.
    arguments: Option<&'a RawValue>,
}

/// The calls of one answer so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    index: Option<i64>,
    id: ToolCallId,
    /// The id is ours: the server gave none.
    made_up: bool,
    name: String,
    args: String,
    extra_content: Option<Value>,
}

impl Calls {
    /// Adds a fragment to its call, and tells it onward.
    pub(super) fn take(&mut self, delta: &CallDelta<'_>) -> ToolCallChunk {
        let id = delta.id.as_deref().filter(|id| !id.is_empty());
        let function = delta.function.as_ref();
        let name = function.and_then(|f| f.name.as_deref()).filter(|name| !name.is_empty());
        let args = function.and_then(|f| f.arguments).map(arguments).unwrap_or_default();
        let known = self.position(delta.index, id, name);
        let position = known.unwrap_or(self.slots.len());
        if known.is_none() {
            let (made_up, id) = match id {
                Some(id) => (false, id.into()),
                None => (true, format!("call_{}", ToolCallId::generate()).into()),
            };
            self.slots.push(Slot {
                index: delta.index,
                id,
                made_up,
                name: String::new(),
                args: String::new(),
                extra_content: None,
            });
        }
        let mut chunk = ToolCallChunk::new(position, None, None, args);
        if let Some(slot) = self.slots.get_mut(position) {
            if known.is_none() {
                chunk.id = Some(slot.id.clone());
            }
            // Some servers repeat the name with each fragment.
            if slot.name.is_empty()
                && let Some(name) = name
            {
                slot.name.push_str(name);
                chunk.name = Some(name.to_owned());
            }
            slot.args.push_str(chunk.args.as_deref().unwrap_or_default());
            if let Some(extra) = delta.extra_content {
                slot.extra_content = serde_json::from_str(extra.get()).ok();
            }
        }
        chunk
    }

    /// The call a fragment belongs to; `None`: a new one.
    fn position(&self, index: Option<i64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        let last = |matches: &dyn Fn(&Slot) -> bool| self.slots.iter().rposition(matches);
        let position = match (index, id) {
            (Some(index), _) => last(&|slot| slot.index == Some(index))?,
            (None, Some(id)) => return last(&|slot| slot.id.as_str() == id),
            (None, None) if name.is_some() => return None,
            (None, None) => return self.slots.len().checked_sub(1),
        };
        let slot = self.slots.get(position)?;
        // Servers that number every call 0: another id, or another name after a complete call, starts a new one.
        let other_id = id.is_some_and(|id| !slot.made_up && slot.id.as_str() != id);
        let begins_again = id.is_none()
            && name.is_some()
            && slot.args.ends_with('}')
            && parse_tool_arguments(&slot.args).is_ok();
        (!other_id && !begins_again).then_some(position)
    }

    /// The calls; `cut`: the answer broke off, so that what is missing must not be made up.
    pub(super) fn finish(self, cut: bool) -> (Vec<ToolCall>, Vec<InvalidToolCall>) {
        let (mut valid, mut invalid) = (Vec::new(), Vec::new());
        for slot in self.slots {
            if slot.name.is_empty() {
                let error = "the call names no tool".to_owned();
                invalid.push(InvalidToolCall::new(slot.id, "", &slot.args, error));
                continue;
            }
            match read_tool_arguments(&slot.args, cut) {
                Ok((args, repaired)) => {
                    let mut call = ToolCall::new(slot.id, slot.name, args);
                    if repaired {
                        call.extra.insert("repaired".to_owned(), true.into());
                    }
                    if let Some(extra) = slot.extra_content {
                        call.extra.insert("extra_content".to_owned(), extra);
                    }
                    valid.push(call);
                }
                Err(error) => invalid.push(InvalidToolCall::new(slot.id, &slot.name, &slot.args, error)),
            }
        }
        (valid, invalid)
    }
}

/// The text of the arguments: what the string holds, or the object as it stands.
fn arguments(raw: &RawValue) -> String {
    let text = raw.get();
    if !text.starts_with('"') {
        return if text == "null" { String::new() } else { text.to_owned() };
    }
    // Half a character in it is marked: a call that lost its arguments would run without them.
    serde_json::from_str(text).unwrap_or_else(|_| match repair_with(text, Closing::Never) {
        Ok(Repaired { value: Value::String(text), .. }) => text,
        Ok(Repaired { value, .. }) => value.to_string(),
        Err(_) => text.to_owned(),
    })
}
