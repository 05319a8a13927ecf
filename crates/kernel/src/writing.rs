//! What a client writes to a thread past its agent.
//!
//! Invariant: a question stays open as long as the calls that asked it wait as they were; words that are written meanwhile
//! have their place behind the results.

use std::sync::Arc;

use hart_types::{Body, CheckpointId, ToolCall, ToolCallId};
use serde_json::{Map, Value};

use crate::agent::Opened;
use crate::interrupt::{Pause, Paused};
use crate::tool_call::Pending;
use crate::{
    Agent, Interrupt, LoggedWrite, MessageList, Node, Reached, RunContext, RunError, State, Step, StepSource,
    Update, route,
};

impl Agent {
    /// Writes a client's values to a thread as if `as_node` had, after its newest step or after `cx.from`.
    pub async fn update(
        &self,
        values: Map<String, Value>,
        as_node: Option<&str>,
        cx: &RunContext,
    ) -> Result<Reached, RunError> {
        let Opened { state, head: parent, next: ahead, .. } =
            self.open(&cx.thread_id, cx.from.as_ref()).await?;
        let mut update = self.input(values).map_err(RunError::Input)?;
        update.replace_results(state.messages());
        let changes = !update.is_empty();
        let mut open = state.get::<Paused>().cloned().flatten();
        if let Some(pause) = open.as_mut().filter(|_| update.removes_all()) {
            pause.held.clear();
        }
        let calls = waiting_calls(state.messages());
        let mut written = Written { state, writes: Vec::new() };
        // Who writes as the model leaves its calls to be made.
        let leaves_calls = !calls.is_empty()
            && matches!(as_node, None | Some("model" | "after_model"))
            && matches!(ahead.as_deref(), Some("tools" | "after_model"));
        let words = match leaves_calls || open.is_some() {
            true => update.split_off_words(written.state.messages(), |body| matches!(body, Body::Human)),
            false => Update::none(),
        };
        written.apply(update)?;
        let left = waiting_calls(written.state.messages());
        let waits = match (&open, leaves_calls && !left.is_empty()) {
            (_, true) => open.is_some() || !words.is_empty(),
            (open, false) => open.is_some() && as_node.is_none() && calls.is_empty(),
        };
        if waits {
            let mut pause = open.unwrap_or_else(|| Pause::before_calls(ahead.as_deref()));
            if as_node.is_some() || !unchanged(&calls, &left) {
                (pause.interrupts, pause.answers) = Default::default();
            }
            pause.interrupts.retain(|asked| calls.len() == left.len() || is_of_one(asked, &left));
            pause.held.extend(words.to_writes());
            written.hold(self, pause)?;
        } else {
            if let Some(pause) = open {
                written.apply(self.schema.restore(pause.held).set::<Paused>(None))?;
            }
            written.apply(words)?;
        }
        let Written { state, writes } = written;
        let next = match as_node {
            // Calls that have no result are made, whoever says that they were.
            Some("tools") if Pending::exist(state.messages()) => Some("tools"),
            Some("__start__" | "__input__" | "tools") => Some("model"),
            Some("__end__") => None,
            None if waits || !changes => ahead.as_deref(),
            // Somebody has spoken before whoever was to act next: it is the model's turn.
            None if (parent.is_none() || ahead.is_some()) && is_unanswered(state.messages()) => Some("model"),
            _ => route(Node::AfterModel, None, Pending::exist(state.messages())).name(),
        };
        let step = Step {
            id: CheckpointId::generate(),
            parent: parent.clone(),
            run_id: cx.run_id.clone(),
            source: StepSource::Update,
            created_at: cx.clock.now(),
            writes,
            next: next.map(str::to_owned),
        };
        let (checkpoint, source) = (step.id.clone(), step.source);
        if let Some(checkpointer) = &self.checkpointer {
            checkpointer.append(&cx.thread_id, [step].into()).await.map_err(RunError::Checkpoint)?;
        }
        Ok(Reached { checkpoint, parent, source, next: next.map(Arc::from), values: self.snapshot(state) })
    }
}

/// A state, and what has been written to it.
struct Written {
    state: State,
    writes: Vec<LoggedWrite>,
}

impl Written {
    fn apply(&mut self, update: Update) -> Result<(), RunError> {
        self.writes.extend(update.to_writes());
        self.state.apply(update).map_err(RunError::Input)
    }

    fn hold(&mut self, agent: &Agent, pause: Pause) -> Result<(), RunError> {
        // What cannot be said later is refused now.
        self.state.clone().apply(agent.schema.restore(pause.held.clone())).map_err(RunError::Input)?;
        if self.state.get::<Paused>().and_then(Option::as_ref) == Some(&pause) {
            return Ok(());
        }
        self.apply(Update::none().set::<Paused>(Some(pause)))
    }
}

type Call = (ToolCallId, Arc<ToolCall>);

fn waiting_calls(messages: &MessageList) -> Vec<Call> {
    let valid = |pending| match pending {
        Pending::Valid { id, call } => Some((id, call)),
        Pending::Invalid { .. } => None,
    };
    Pending::collect(messages).into_iter().filter_map(valid).collect()
}

/// Whether the calls that are left are of those there were, each as it was.
fn unchanged(before: &[Call], left: &[Call]) -> bool {
    left.iter().all(|call| before.contains(call))
}

/// Whether one of these calls asked it itself, and no hook for several.
fn is_of_one(asked: &Interrupt, calls: &[Call]) -> bool {
    calls.iter().any(|(id, _)| Interrupt::new(id.as_str(), ()).id == asked.id)
}

/// Whether the newest message is not the agent's.
fn is_unanswered(messages: &MessageList) -> bool {
    !Pending::exist(messages) && messages.last().is_some_and(|last| !matches!(last.body, Body::Ai(_)))
}
