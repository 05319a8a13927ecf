//! A call and the journal: written down before it has an effect, and its outcome before anything is made of it.
//!
//! Invariant: a call that an earlier attempt has begun is never made again unless that changes nothing. What is not
//! known is said.

use std::sync::{Arc, Mutex};

use hart_types::{Message, ToolCall, ToolCallId, ToolStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{OneCall, Pending, ToolCallRunner};
use crate::{
    AgentEvent, Begun, Command, Effect, EffectKey, Goto, HookError, Journal, LoggedWrite, Next, Reconciled,
    RunContext, State, Tool, ToolContext, ToolNext, ToolOutcome, ToolOutput, ToolRequest, Update,
};

/// Where a result says that nobody knows whether its call had an effect.
const UNKNOWN: &str = "effect_unknown";

/// What a call gave, as the journal keeps it.
#[derive(Serialize, Deserialize)]
pub(super) struct Noted {
    pub(super) message: Message,
    writes: Vec<LoggedWrite>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    goto: Option<Goto>,
}

impl ToolCallRunner<'_> {
    /// Makes a call, or takes what an earlier attempt of the run knows of it. `finish` is done to what comes out before
    /// it is written down.
    pub(super) async fn journaled(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        finish: impl Fn(&mut ToolOutcome),
    ) -> Result<ToolOutcome, HookError> {
        let call = Arc::clone(&request.call);
        let tool = self.agent.tools.get(&call.name).filter(|tool| tool.spec().effect != Effect::Pure);
        let (Some(journal), Some(tool)) = (&cx.journal, tool) else {
            let mut outcome = self.chain(cx, request, None, None).await?;
            finish(&mut outcome);
            return Ok(outcome);
        };
        let id = call.id.clone().unwrap_or_else(|| "".into());
        let key = EffectKey::new(&cx.run_id, &id, &call.name, &call.args);
        let state = request.state.clone();
        let context = ToolContext { run: cx, state: &state, call_id: &id, effect: Some(&key) };
        let mut made = match self.begun.get(&key) {
            Some(Begun { outcome: Some(noted), .. }) => return self.noted(noted),
            Some(begun) => match again(tool.as_ref(), &context, &call, begun).await {
                Reconciled::Done(output) => {
                    // What the effect made of the state is known to whoever looks at the call from outside.
                    let mut known = request.clone();
                    self.fold(&mut known.state, &output);
                    self.chain(cx, known, Some(&key), Some(output)).await?
                }
                Reconciled::NotDone => self.effect(cx, journal.as_ref(), request, &key).await?,
                Reconciled::Unknown => unknown(cx, &id, &call).await,
            },
            None => {
                let foreseen = match tool.spec().effect {
                    Effect::Once => tool.foresee(&context, &call.args).await,
                    Effect::Pure | Effect::Idempotent => None,
                };
                let (tool, call) = (call.name.clone(), id.clone());
                let begun = Begun { key: key.clone(), tool, call, foreseen, outcome: None };
                journal.begin(begun).await.map_err(not_written)?;
                self.effect(cx, journal.as_ref(), request, &key).await?
            }
        };
        finish(&mut made);
        journal.finish(&key, noted(&made)).await.map_err(not_written)?;
        tool.settled(&context).await;
        Ok(made)
    }

    /// The state that outcomes of the journal lead to: what the other calls of the batch must see. What earlier batches
    /// came to is in the state already.
    pub(crate) fn with_noted(&self, cx: &RunContext, batch: &[Pending], mut state: State) -> State {
        if self.begun.is_empty() {
            return state;
        }
        for pending in batch {
            let Pending::Valid { id, call } = pending else { continue };
            let call = self.by_its_own_name(call);
            let begun = self.begun.get(&EffectKey::new(&cx.run_id, id, &call.name, &call.args));
            let Some(noted) = begun.and_then(|begun| begun.outcome.as_ref()) else { continue };
            if let Ok(outcome) = self.noted(noted)
                && let Err(error) = state.apply(outcome.command.update)
            {
                tracing::warn!(%error, "what a call has written no longer fits");
            }
        }
        state
    }

    async fn effect(
        &self,
        cx: &RunContext,
        journal: &dyn Journal,
        request: ToolRequest,
        key: &EffectKey,
    ) -> Result<ToolOutcome, HookError> {
        let outcome = self.chain(cx, request, Some(key), None).await;
        if let Err(HookError::Interrupt(_) | HookError::Interrupts(_)) = &outcome {
            // Nothing may happen before a question is asked.
            journal.withdraw(key).await.map_err(not_written)?;
        }
        outcome
    }

    async fn chain(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        key: Option<&EffectKey>,
        given: Option<ToolOutput>,
    ) -> Result<ToolOutcome, HookError> {
        let core = OneCall { agent: self.agent, key, given: Mutex::new(given) };
        let next: ToolNext<'_> = Next { rest: &self.agent.chain, cx, core: &core };
        next.run(request).await
    }

    fn fold(&self, state: &mut State, output: &ToolOutput) {
        let update = self.agent.schema.restore(output.command.update.to_writes());
        if let Err(error) = state.apply(update) {
            tracing::warn!(%error, "what a call has written no longer fits");
        }
    }

    fn noted(&self, noted: &Value) -> Result<ToolOutcome, HookError> {
        let noted =
            serde_json::from_value(noted.clone()).map_err(|error| HookError::Other(Box::new(error)))?;
        Ok(self.restored(noted))
    }

    pub(super) fn restored(&self, Noted { message, writes, goto }: Noted) -> ToolOutcome {
        let update: Update = self.agent.schema.restore(writes);
        ToolOutcome { message, command: Command { update, goto } }
    }
}

impl Noted {
    pub(super) fn of(ToolOutcome { message, command }: &ToolOutcome) -> Self {
        Self { message: message.clone(), writes: command.update.to_writes(), goto: command.goto }
    }
}

fn noted(outcome: &ToolOutcome) -> Value {
    serde_json::to_value(Noted::of(outcome)).unwrap_or_default()
}

/// What to do about a call whose outcome nobody wrote down.
async fn again(tool: &dyn Tool, cx: &ToolContext<'_>, call: &ToolCall, begun: &Begun) -> Reconciled {
    match tool.spec().effect {
        Effect::Pure | Effect::Idempotent => Reconciled::NotDone,
        // Nobody had answered when it was begun, so it waits, or was about to.
        Effect::Once if tool.asks_first() && !cx.run.has_answers() => Reconciled::NotDone,
        Effect::Once => tool.reconcile(cx, &call.args, begun.foreseen.as_ref()).await,
    }
}

/// The model and the user are told, and may decide.
async fn unknown(cx: &RunContext, id: &ToolCallId, call: &ToolCall) -> ToolOutcome {
    tracing::warn!(run = %cx.run_id, tool = %call.name, call = %id, "whether a call had an effect is not known");
    let data = json!({"type": UNKNOWN, "tool_call_id": id, "tool": call.name, "args": call.args});
    cx.emit(AgentEvent::Custom(data)).await;
    let text = "Error: hart was stopped while this call was being made, so it is not known whether it took effect, in \
                whole or in part. It was not made again. Find out what it has done before you repeat it; if you \
                cannot, tell the user.";
    let mut message = Message::tool(id, &call.name, ToolStatus::Error, text.to_owned());
    message.additional_kwargs.insert(UNKNOWN.to_owned(), true.into());
    ToolOutcome { message, command: Command::none() }
}

fn not_written(error: crate::CheckpointError) -> HookError {
    HookError::Other(Box::new(error))
}
