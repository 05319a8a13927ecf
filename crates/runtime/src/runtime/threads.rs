//! What a thread has come to, and changing it without running an agent.
//!
//! Invariant: a state is the fold of its steps, whoever asks for it.

use std::sync::Arc;

use bytes::Bytes;
use hart_kernel::{Agent, CheckpointError, Interrupt, RunContext, RunError, Snapshot, Step};
use hart_types::{CheckpointId, RunId, ThreadId};
use serde_json::{Map, Value};

use super::Runtime;
use super::history::{self, ShownStep, new_messages};
use crate::Thread;
use crate::checkpoints::StepLog;
use crate::port::{StepInfo, StoreError};
use crate::recall::Recall;
use crate::request::FactoryError;
use crate::tasks::{NextTask, next_tasks};
use crate::values::{Spelling, ValuesEncoder};
use crate::workspaces::Workspace;

/// A thread at one of its steps.
#[derive(Clone, Debug)]
pub struct ThreadState {
    /// As JSON.
    pub values: Bytes,
    pub interrupts: Vec<Interrupt>,
    /// None for a thread nobody wrote to. Its parent is the one that clients see before it.
    pub step: Option<StepInfo>,
    /// The step that it has come to: another one, where a run only paused behind it.
    pub at: Option<CheckpointId>,
    /// What is done there.
    pub tasks: Vec<NextTask>,
    /// The messages that these have written.
    pub results: Vec<Value>,
}

/// A state when it was come to, and as it is by now: where one call asks, others may have their results.
pub(super) struct Views {
    pub(super) own: Snapshot,
    pub(super) now: Snapshot,
    /// What came of it.
    pub(super) after: Option<Snapshot>,
}

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("Thread with ID {0} not found")]
    NoThread(ThreadId),
    #[error("Thread {0} has in-flight runs; wait for them or cancel them")]
    Busy(ThreadId),
    #[error(transparent)]
    Agent(#[from] FactoryError),
    #[error(transparent)]
    Values(RunError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl StateError {
    /// What the store refused is not a fault of the values.
    fn of_update(error: RunError) -> Self {
        match error {
            RunError::Checkpoint(CheckpointError { message, source: Some(source) }) => {
                match source.downcast::<StoreError>() {
                    Ok(refused) => Self::Store(*refused),
                    Err(source) => {
                        Self::Values(RunError::Checkpoint(CheckpointError { message, source: Some(source) }))
                    }
                }
            }
            error => Self::Values(error),
        }
    }
}

/// What agent reads a thread that no run has touched.
const DEFAULT_AGENT: &str = "lead_agent";

impl Runtime {
    /// The thread at a step, or as it is.
    pub async fn state(
        &self,
        thread: &ThreadId,
        at: Option<&CheckpointId>,
    ) -> Result<ThreadState, StateError> {
        let row = self.known(thread).await?;
        let Some(name) = at else {
            let steps = self.inner.store.steps(thread, None).await?;
            let Some(head) = steps.last() else { return Ok(fresh()) };
            let Some(step) = self.inner.shown_step(thread, &head.id).await? else { return Ok(fresh()) };
            let views = self.views(&row, steps, &step)?;
            return Ok(self.shown_state(thread, &views, step));
        };
        let Some(step) = self.inner.state_at(thread, name).await? else { return Ok(fresh()) };
        let mut recall = Recall::new(self.clone(), thread.clone(), Spelling::State);
        let views = history::views(&mut recall, &step, row.head.as_ref()).await?;
        Ok(views.map_or_else(fresh, |views| self.shown_state(thread, &views, step)))
    }
    /// Writes values as `as_node` would have, behind `at` or behind the newest step.
    pub async fn update_state(
        &self,
        thread: &ThreadId,
        values: Map<String, Value>,
        as_node: Option<&str>,
        at: Option<CheckpointId>,
    ) -> Result<CheckpointId, StateError> {
        let row = self.known(thread).await?;
        let active = crate::port::RunQuery {
            thread: Some(thread.clone()),
            status: vec![hart_types::RunStatus::Pending, hart_types::RunStatus::Running],
            limit: 1,
            ..Default::default()
        };
        if !self.inner.store.runs(&active).await?.is_empty() {
            return Err(StateError::Busy(thread.clone()));
        }
        let mut cx = RunContext::new(thread.clone());
        cx.run_id = RunId::generate();
        cx.clock = Arc::clone(&self.inner.clock);
        if let Some(name) = at {
            let step = self.inner.state_at(thread, &name).await?;
            cx.from = Some(step.map_or(name, |step| step.at));
        }
        let reached = self.reader(&row)?.update(values, as_node, &cx).await.map_err(StateError::of_update)?;
        self.inner.doorbells.state_changed(thread);
        Ok(reached.checkpoint)
    }

    /// Stops what runs on a thread and forgets it with its files; whether there was one.
    pub async fn delete_thread(&self, thread: &ThreadId) -> Result<bool, StoreError> {
        let Some(row) = self.inner.store.thread(thread).await? else { return Ok(false) };
        let here: Vec<_> = self
            .inner
            .lock_live()
            .iter()
            .filter(|(_, live)| live.tape.is_of(thread))
            .map(|(id, _)| id.clone())
            .collect();
        for run in here {
            // Its steps go with the thread; nothing has to be undone.
            let _ = self.cancel(&run, hart_types::CancelAction::Interrupt).await;
            // It may still be writing.
            self.wait(&run).await;
        }
        let there_was = self.inner.store.delete_thread(thread).await?;
        if let Err(error) = self.inner.workspaces.delete(&workspace(&row)).await {
            tracing::warn!(%thread, %error, "the files of a thread that is gone are still there");
        }
        Ok(there_was)
    }

    /// A new thread with the history and the files of another.
    pub async fn copy_thread(&self, from: &ThreadId) -> Result<Thread, StateError> {
        let original = self.known(from).await?;
        let mut copy = Thread::new(ThreadId::generate(), original.user.clone(), self.now());
        copy.metadata.clone_from(&original.metadata);
        copy.lifetime = original.lifetime;
        // Files first: a thread that is there has them.
        let copied = self.inner.workspaces.copy(&workspace(&original), &workspace(&copy)).await;
        copied.map_err(|error| StoreError::failed("the files of the thread cannot be copied", error))?;
        Ok(self.inner.store.copy_thread(from, copy).await?)
    }

    /// Whether the thread's agent has a middleware of that name.
    pub fn knows_node(&self, thread: &Thread, node: &str) -> bool {
        let name = node.split('.').next().unwrap_or(node);
        self.reader(thread).is_ok_and(|agent| agent.chain().any(|middleware| middleware == name))
    }

    /// The agent that knows how the state of a thread folds.
    pub(crate) async fn reader_of(&self, thread: &ThreadId) -> Result<Agent, StateError> {
        self.reader(&self.known(thread).await?)
    }

    /// The agent that knows how the thread's state folds.
    fn reader(&self, thread: &Thread) -> Result<Agent, StateError> {
        let named = thread.metadata.get("graph_id").and_then(Value::as_str);
        let steps = Arc::new(StepLog::by_hand(Arc::clone(&self.inner.store), self.inner.tasks.clone()));
        let agents = &self.inner.agents;
        let agent = named.map(|name| agents.reader(name, steps.clone()));
        match agent {
            Some(Ok(agent)) => Ok(agent),
            // An agent that is gone leaves threads that can still be read.
            _ => Ok(agents.reader(DEFAULT_AGENT, steps)?),
        }
    }

    pub(super) fn shown_state(&self, thread: &ThreadId, views: &Views, step: ShownStep) -> ThreadState {
        let ShownStep { info, at, .. } = step;
        let (encoder, interrupts) = (self.encoder(thread, Spelling::State), views.now.interrupts().to_vec());
        let own = encoder.encode(&views.own, None);
        // Calls may be done while others ask. What else was written there is of no task that is.
        let mut done = new_messages(views.own.messages(), views.now.messages());
        done.retain(|message| called_by(message).is_some());
        let is_done = |call: &str| done.iter().any(|message| called_by(message) == Some(call));
        let tasks = next_tasks(info.id.as_str(), info.next.as_deref(), &own, &interrupts, is_done);
        let values = if at == info.id { own } else { encoder.encode(&views.now, None) };
        let results = match &views.after {
            Some(after) => new_messages(views.own.messages(), after.messages()),
            None => done,
        };
        ThreadState { values, interrupts, step: Some(info), at: Some(at), tasks, results }
    }

    /// What the steps come to, and came to at the one that has the state's name.
    fn views(&self, row: &Thread, mut steps: Vec<Step>, step: &ShownStep) -> Result<Views, StateError> {
        let agent = self.reader(row)?;
        let named = steps.iter().position(|known| known.id == step.info.id);
        let later = steps.split_off(named.map_or(steps.len(), |place| place + 1));
        let own = agent.fold(steps);
        let now = agent.fold_onto(own.clone(), later);
        Ok(Views { own: agent.snapshot(own), now: agent.snapshot(now), after: None })
    }

    pub(super) async fn known(&self, thread: &ThreadId) -> Result<Thread, StateError> {
        let row = self.inner.store.thread(thread).await?;
        row.ok_or_else(|| StateError::NoThread(thread.clone()))
    }

    /// One per thread and spelling, as long as it is read now and then.
    pub(crate) fn encoder(&self, thread: &ThreadId, spelling: Spelling) -> Arc<ValuesEncoder> {
        let mut encoders = self.inner.encoders.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let key = (thread.clone(), spelling);
        if encoders.len() > ENCODERS && !encoders.contains_key(&key) {
            encoders.clear();
        }
        Arc::clone(encoders.entry(key).or_insert_with(|| Arc::new(ValuesEncoder::new(spelling))))
    }
}

/// The call whose result it is.
fn called_by(message: &Value) -> Option<&str> {
    message.get("tool_call_id")?.as_str()
}

/// Nobody wrote to it.
fn fresh() -> ThreadState {
    let (step, at, values) = (None, None, Bytes::from_static(b"{}"));
    let (interrupts, tasks, results) = Default::default();
    ThreadState { values, interrupts, step, at, tasks, results }
}

/// How many threads' encodings are remembered.
const ENCODERS: usize = 256;

fn workspace(thread: &Thread) -> Workspace {
    Workspace { thread: thread.id.clone(), user: thread.user.clone() }
}
