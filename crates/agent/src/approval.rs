//! Asking a person about tool calls: what is asked, what may be answered, what an answer means.
//!
//! Invariant: the JSON is LangChain's (`action_requests`, `review_configs`, `decisions`, `tool_approval`), so that its
//! clients can ask and answer; an answer that does not fit is an error that says what would.

mod decision;
mod interrupt_on;

use hart_kernel::Interrupt;
use hart_types::ToolCall;
use serde_json::{Value, json};

pub use decision::{ApprovalError, Decision, DecisionKind, EditedAction};
pub use interrupt_on::{InterruptOn, InterruptOnError, ToolReview};

/// One call a person must decide about.
#[derive(Clone, Debug)]
pub struct ActionRequest {
    pub call: ToolCall,
    pub description: String,
    pub allowed: Vec<DecisionKind>,
}

/// All of a turn's calls as one question.
pub(crate) fn batched(subject: &str, requests: &[ActionRequest]) -> Interrupt {
    let actions: Vec<Value> = requests
        .iter()
        .map(|r| json!({"name": r.call.name, "args": r.call.args, "description": r.description}))
        .collect();
    let configs: Vec<Value> = requests
        .iter()
        .map(|r| json!({"action_name": r.call.name, "allowed_decisions": r.allowed}))
        .collect();
    Interrupt::new(subject, json!({"action_requests": actions, "review_configs": configs}))
}

/// One call as a question of its own.
pub(crate) fn single(subject: &str, request: &ActionRequest) -> Interrupt {
    let ActionRequest { call, description, allowed } = request;
    let value = json!({
        "type": "tool_approval",
        "tool_call_id": call.id,
        "name": call.name,
        "args": call.args,
        "description": description,
    });
    let mut question = Interrupt::new(subject, value);
    question.response_schema = Some(response_schema(allowed));
    question
}

/// The answers to [`batched`], by position.
pub(crate) fn positional(answer: &Value, requests: &[ActionRequest]) -> Result<Vec<Decision>, ApprovalError> {
    let given = answer.get("decisions").and_then(Value::as_array).ok_or(ApprovalError::Shape)?;
    if given.len() != requests.len() {
        let asked = requests.iter().map(|request| request.call.name.clone()).collect();
        return Err(ApprovalError::Count { given: given.len(), asked });
    }
    given.iter().zip(requests).map(|(answer, request)| decide(answer, request)).collect()
}

/// The answer about one call.
pub(crate) fn decide(answer: &Value, request: &ActionRequest) -> Result<Decision, ApprovalError> {
    let tool = || request.call.name.clone();
    let decision = Decision::parse(answer).map_err(|why| ApprovalError::Malformed { tool: tool(), why })?;
    if !request.allowed.contains(&decision.kind()) {
        let allowed = request.allowed.clone();
        return Err(ApprovalError::NotAllowed { tool: tool(), decision: decision.kind(), allowed });
    }
    Ok(decision)
}

fn response_schema(allowed: &[DecisionKind]) -> Value {
    let variants: Vec<Value> = allowed.iter().map(|kind| kind.schema()).collect();
    json!({"oneOf": variants})
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
