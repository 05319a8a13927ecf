//! Repairs a history that no provider would accept: calls without results, results without calls.
//!
//! A run that was killed leaves a call unanswered, and every provider then refuses the whole thread. The repair is
//! made in the request only; the thread keeps what really happened.
//!
//! Invariant: in the repaired history every call is followed by its result before anything else is said.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hart_kernel::{HookError, Middleware, ModelNext, ModelRequest, ModelResponse, RunContext, async_trait};
use hart_types::{Body, Message, ToolCallId, ToolStatus};

#[derive(Clone, Copy, Debug)]
pub struct DanglingToolCall;

#[async_trait]
impl Middleware for DanglingToolCall {
    async fn wrap_model_call(
        &self,
        _cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        if let Some(repaired) = repair(&request.chat.messages) {
            request.chat.messages = repaired;
        }
        next.run(request).await
    }
}

/// `None` when there is nothing to repair, which is nearly always.
fn repair(messages: &[Arc<Message>]) -> Option<Vec<Arc<Message>>> {
    if is_sound(messages) {
        return None;
    }
    let mut results: HashMap<&ToolCallId, &Arc<Message>> = HashMap::new();
    for message in messages {
        if let Body::Tool(result) = &message.body {
            results.entry(&result.tool_call_id).or_insert(message);
        }
    }
    let mut repaired = Vec::with_capacity(messages.len());
    for message in messages {
        match &message.body {
            // Results follow their calls; here they are either in place already or orphans.
            Body::Tool(_) => {}
            Body::Ai(_) => {
                repaired.push(Arc::clone(message));
                for (id, name) in call_ids(message) {
                    let result = results.remove(id).cloned();
                    repaired.push(result.unwrap_or_else(|| Arc::new(unanswered(id, name))));
                }
            }
            _ => repaired.push(Arc::clone(message)),
        }
    }
    Some(repaired)
}

/// Whether each AI message's calls are answered by exactly the tool messages right behind it.
fn is_sound(messages: &[Arc<Message>]) -> bool {
    let mut open: HashSet<&ToolCallId> = HashSet::new();
    for message in messages {
        if let Body::Tool(result) = &message.body {
            if !open.remove(&result.tool_call_id) {
                return false;
            }
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
