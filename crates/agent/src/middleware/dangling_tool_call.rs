//! Repairs a history that no provider would accept: calls without results, results without calls.
//!
//! A run that was killed leaves a call unanswered, and every provider then refuses the whole thread. The repair is
//! made in the request only; the thread keeps what really happened.
//!
//! Invariant: in the repaired history every call is followed by its result before anything else is said.

use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{
    HookError, MessageList, Middleware, ModelNext, ModelRequest, ModelResponse, RunContext, async_trait,
};
use hart_types::{Body, Message, ToolCallId, ToolStatus};

#[derive(Clone, Copy, Debug)]
pub struct DanglingToolCall;

#[async_trait]
impl Middleware for DanglingToolCall {
    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let checked = cx.scratch.get_or_default::<Checked>();
        if checked.is_sound(&request.chat.messages) {
            return next.run(request).await;
        }
        request.chat.messages = repair(&request.chat.messages);
        next.run(request).await
    }
}

/// The history that was found sound last: of the next one, only what follows it needs a look.
#[derive(Default)]
struct Checked(
    /// Never held across an await.
    Mutex<MessageList>,
);

impl Checked {
    fn is_sound(&self, messages: &MessageList) -> bool {
        let mut checked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let common = checked.common_prefix(messages);
        let start = if common == checked.len() { common } else { 0 };
        let sound = is_sound(messages.iter_from(start));
        if sound {
            *checked = messages.clone();
        }
        sound
    }
}

/// Puts a result right behind every call. Some servers use an id again in every answer, so a result belongs to the
/// answer it follows; only one that stands after a later question may be taken from there, once.
fn repair(messages: &MessageList) -> MessageList {
    let mut unused: Vec<Option<&Arc<Message>>> =
        messages.iter().map(|message| message.as_tool_result().map(|_| message)).collect();
    let ends: Vec<usize> = answer_ends(messages);
    let mut repaired = MessageList::default();
    for (at, message) in messages.iter().enumerate() {
        match &message.body {
            // Results follow their calls; the others are orphans.
            Body::Tool(_) => {}
            Body::Ai(_) => {
                repaired.push(Arc::clone(message));
                let end = ends.iter().copied().find(|end| *end > at).unwrap_or(messages.len());
                for (id, name) in call_ids(message) {
                    let candidates = unused.iter_mut().take(end).skip(at + 1);
                    let found = candidates.flat_map(|slot| slot.take_if(|result| answers(result, id))).next();
                    repaired.push(found.map_or_else(|| Arc::new(unanswered(id, name)), Arc::clone));
                }
            }
            _ => repaired.push(Arc::clone(message)),
        }
    }
    repaired
}

/// Where the results of an answer end at the latest: at the next answer.
fn answer_ends(messages: &MessageList) -> Vec<usize> {
    messages.iter().enumerate().filter(|(_, message)| message.as_ai().is_some()).map(|(at, _)| at).collect()
}

fn answers(result: &Message, id: &ToolCallId) -> bool {
    result.as_tool_result().is_some_and(|result| result.tool_call_id == *id)
}

/// Whether each AI message's calls are answered by exactly the tool messages right behind it.
fn is_sound<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> bool {
    let mut open: Vec<&ToolCallId> = Vec::new();
    for message in messages {
        if let Body::Tool(result) = &message.body {
            match open.iter().position(|id| **id == result.tool_call_id) {
                Some(at) => open.swap_remove(at),
                None => return false,
            };
        } else if !open.is_empty() {
            return false;
        } else {
            open.extend(call_ids(message).map(|(id, _)| id));
        }
    }
    open.is_empty()
}

fn call_ids(message: &Message) -> impl Iterator<Item = (&ToolCallId, &str)> {
    let ai = message.as_ai();
    let valid = ai.into_iter().flat_map(|ai| &ai.tool_calls);
    let valid = valid.filter_map(|call| Some((call.id.as_ref()?, call.name.as_str())));
    let invalid = ai.into_iter().flat_map(|ai| &ai.invalid_tool_calls);
    let invalid =
        invalid.filter_map(|call| Some((call.id.as_ref()?, call.name.as_deref().unwrap_or("unknown"))));
    valid.chain(invalid)
}

fn unanswered(id: &ToolCallId, name: &str) -> Message {
    let text =
        "Error: this call was interrupted; whether it took effect is not known. Check before repeating it.";
    Message::tool(id, name, ToolStatus::Error, text).with_id(format!("repair--{id}"))
}

#[cfg(test)]
#[path = "dangling_tool_call_tests.rs"]
mod tests;
