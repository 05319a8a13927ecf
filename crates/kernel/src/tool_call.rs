//! Tool calls waiting for a result, and the running of one.
//!
//! Invariant: every pending call gets exactly one result: the tool's, or an error the model can act on.

mod effects;
mod played;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::FutureExt;
use hart_types::{Body, InvalidToolCall, Message, MessageId, ToolCall, ToolCallId, ToolStatus};

use crate::guarded::{guarded, panic_text};
use crate::{
    Agent, AgentEvent, Begun, Command, EffectKey, HookError, MessageList, ModelErrorKind, RunContext, State,
    ToolContext, ToolCore, ToolError, ToolOutcome, ToolOutput, ToolRequest, Update,
};

/// Where a result says that its call may succeed a little later.
pub const TRANSIENT: &str = "transient";

/// A call of the last AI message that has no result yet.
#[derive(Debug)]
pub(crate) enum Pending {
    Valid {
        id: ToolCallId,
        call: Arc<ToolCall>,
    },
    /// Its arguments did not parse: the model must be told, nothing can run.
    Invalid {
        id: ToolCallId,
        call: InvalidToolCall,
    },
}

impl Pending {
    /// In call order. A call without an id cannot be answered and is left to the repair of the history.
    pub(crate) fn collect(messages: &MessageList) -> Vec<Self> {
        let Some((ai, answered)) = last_answer(messages) else { return Vec::new() };
        let open = |id: &Option<ToolCallId>| id.clone().filter(|id| !answered.contains(&id));
        let valid = ai
            .tool_calls
            .iter()
            .filter_map(|call| open(&call.id).map(|id| Self::Valid { id, call: Arc::new(call.clone()) }));
        let invalid = ai
            .invalid_tool_calls
            .iter()
            .filter_map(|call| open(&call.id).map(|id| Self::Invalid { id, call: call.clone() }));
        valid.chain(invalid).collect()
    }

    pub(crate) fn exist(messages: &MessageList) -> bool {
        let Some((ai, answered)) = last_answer(messages) else { return false };
        let open = |id: &Option<ToolCallId>| id.as_ref().is_some_and(|id| !answered.contains(&id));
        ai.tool_calls.iter().any(|call| open(&call.id))
            || ai.invalid_tool_calls.iter().any(|call| open(&call.id))
    }

    /// Whether hooks have answered all the calls there were, so that nobody has heard the results yet.
    pub(crate) fn all_answered(messages: &MessageList) -> bool {
        last_answer(messages).is_some_and(|(_, answered)| !answered.is_empty()) && !Self::exist(messages)
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Valid { call, .. } => &call.name,
            Self::Invalid { call, .. } => call.name.as_deref().unwrap_or("unknown"),
        }
    }

    fn id(&self) -> &ToolCallId {
        match self {
            Self::Valid { id, .. } | Self::Invalid { id, .. } => id,
        }
    }

    fn error(&self, text: impl Into<String>) -> Message {
        Message::tool(self.id(), self.name(), ToolStatus::Error, text.into())
    }

    /// The result of a call whose failure ends the run.
    pub(crate) fn failed(&self, cx: &RunContext, nth: usize, error: &HookError) -> Message {
        let message = match error {
            HookError::Model(error) if error.kind == ModelErrorKind::Cancelled => {
                self.error("Error: cancelled before it finished; what it had done until then is not known.")
            }
            other => self.error(format!("Error: the run ended here: {other}")),
        };
        self.named(cx, nth, message)
    }

    /// Whoever hears of a result now must find it in the thread later.
    fn named(&self, cx: &RunContext, nth: usize, mut message: Message) -> Message {
        message.id.get_or_insert_with(|| cx.result_id(nth, self.id()));
        message
    }
}

/// The id of the message that the open calls are in.
pub(crate) fn answer_id(messages: &MessageList) -> Option<&MessageId> {
    messages.iter().rev().find(|message| message.as_ai().is_some())?.id.as_ref()
}

type LastAnswer<'a> = (&'a hart_types::Ai, Vec<&'a ToolCallId>);

/// The last AI message and the ids of the calls answered after it.
fn last_answer(messages: &MessageList) -> Option<LastAnswer<'_>> {
    let mut answered = Vec::new();
    for message in messages.iter().rev() {
        match &message.body {
            Body::Ai(ai) => return Some((ai, answered)),
            Body::Tool(result) => answered.push(&result.tool_call_id),
            // A new question closes the old answer; its open calls are for the repair of the history.
            Body::Human => return None,
            _ => {}
        }
    }
    None
}

/// Runs the calls of one batch.
pub(crate) struct ToolCallRunner<'a> {
    pub(crate) agent: &'a Agent,
    /// What earlier attempts of the run have begun.
    pub(crate) begun: HashMap<EffectKey, Begun>,
}

impl ToolCallRunner<'_> {
    pub(crate) async fn run(
        &self,
        cx: &RunContext,
        state: &State,
        (nth, pending): (usize, &Pending),
    ) -> Result<ToolOutcome, HookError> {
        let call = match pending {
            Pending::Valid { call, .. } => Arc::clone(call),
            Pending::Invalid { call, .. } => {
                let message = pending.named(cx, nth, pending.error(invalid_text(call)));
                cx.emit(AgentEvent::tool_finished(message.clone(), &Update::none())).await;
                return Ok(ToolOutcome { message, command: Command::none() });
            }
        };
        cx.emit(AgentEvent::ToolStarted(Arc::clone(&call))).await;
        let request = ToolRequest { call: self.by_its_own_name(&call), state: state.clone() };
        let finish = |outcome: &mut ToolOutcome| {
            if outcome.message.name.is_some() {
                // The answer goes to the name that was called: providers compare them.
                outcome.message.name = Some(call.name.clone());
            }
            // Whoever hears of the result now must find it in the thread later.
            outcome.message.id.get_or_insert_with(|| cx.result_id(nth, pending.id()));
        };
        let mut outcome = guarded(cx, None, self.played(cx, request, &call, finish)).await;
        let finished = match &mut outcome {
            Ok(outcome) => AgentEvent::tool_finished(outcome.message.clone(), &outcome.command.update),
            // Not finished: it runs again when its question is answered.
            Err(HookError::Interrupt(_) | HookError::Interrupts(_)) => return outcome,
            Err(error) => AgentEvent::tool_finished(pending.failed(cx, nth, error), &Update::none()),
        };
        cx.emit(finished).await;
        outcome
    }
}

/// The innermost part of one call.
pub(super) struct OneCall<'a> {
    agent: &'a Agent,
    key: Option<&'a EffectKey>,
    /// What it gave when it was made before; then it is not made again.
    given: Mutex<Option<ToolOutput>>,
}

#[async_trait]
impl ToolCore for OneCall<'_> {
    async fn call(&self, cx: &RunContext, request: ToolRequest) -> Result<ToolOutcome, HookError> {
        let ToolRequest { call, state } = request;
        let id = call.id.clone().unwrap_or_else(|| "".into());
        let Some(tool) = self.agent.tools.get(&call.name) else {
            return Ok(error_outcome(&id, &call.name, unknown_tool(self.agent, &call.name)));
        };
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner).take();
        let context = ToolContext { run: cx, state: &state, call_id: &id, effect: self.key };
        let work = AssertUnwindSafe(async {
            match given {
                Some(output) => Ok(output),
                None => tool.call(&context, call.args.clone()).await,
            }
        });
        let error = match work.catch_unwind().await {
            Ok(Ok(output)) => {
                let mut message = Message::tool(&id, &call.name, ToolStatus::Success, output.content);
                if let Body::Tool(result) = &mut message.body {
                    result.artifact = output.artifact;
                }
                return Ok(ToolOutcome { message, command: output.command });
            }
            Ok(Err(ToolError::Interrupt(question))) => return Err(HookError::Interrupt(question)),
            Ok(Err(ToolError::Interrupts(questions))) => return Err(HookError::Interrupts(questions)),
            Ok(Err(ToolError::Fatal(source))) => return Err(HookError::Other(source)),
            Ok(Err(error @ ToolError::Transient(_))) => {
                let mut outcome = error_outcome(&id, &call.name, format!("Error: {error}"));
                outcome.message.additional_kwargs.insert(TRANSIENT.to_owned(), true.into());
                return Ok(outcome);
            }
            Ok(Err(error)) => format!("Error: {error}"),
            Err(panic) => {
                let text = panic_text(panic.as_ref());
                tracing::error!(tool = %call.name, panic = %text, "a tool panicked");
                format!("Error: the tool `{}` crashed ({text}); try another way", call.name)
            }
        };
        Ok(error_outcome(&id, &call.name, error))
    }
}

impl ToolCallRunner<'_> {
    /// Middleware and tools see the tool's name, whatever alias the model used.
    fn by_its_own_name(&self, call: &Arc<ToolCall>) -> Arc<ToolCall> {
        match self.agent.aliases.get(call.name.as_str()) {
            Some(name) => Arc::new(ToolCall { name: name.clone(), ..ToolCall::clone(call) }),
            None => Arc::clone(call),
        }
    }
}

fn unknown_tool(agent: &Agent, name: &str) -> String {
    let known: Vec<&str> = agent.tools.keys().map(String::as_str).collect();
    format!("Error: there is no tool `{name}`; the tools are: {}", known.join(", "))
}

fn error_outcome(id: &ToolCallId, name: &str, text: String) -> ToolOutcome {
    ToolOutcome { message: Message::tool(id, name, ToolStatus::Error, text), command: Command::none() }
}

/// The raw arguments are quoted back, shortened: the model sees what it wrote and where it went wrong.
fn invalid_text(call: &InvalidToolCall) -> String {
    let error = call.error.as_deref().unwrap_or("the arguments are not a JSON object");
    let raw: String = call.args.as_deref().unwrap_or_default().chars().take(500).collect();
    format!("Error: nothing was run: {error}. Call the tool again with valid JSON arguments. You sent: {raw}")
}
