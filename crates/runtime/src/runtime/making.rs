//! The agent of a run: made while the run is being let in, where it is likely to begin at once.
//!
//! Invariant: an agent that was made before its turn is not used by a run that had to wait: it is as things are when the
//! run begins.

use std::sync::{Arc, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hart_kernel::Agent;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::{Inner, Live};
use crate::Run;
use crate::checkpoints::StepLog;
use crate::request::{AgentRequest, FactoryError};

type Built = Result<Agent, FactoryError>;

/// An agent on its way, and where it will keep its steps.
pub(super) struct Making {
    agent: AbortOnDropHandle<Built>,
    steps: Arc<StepLog>,
}

impl Inner {
    /// Begins to make the agent of a run that is asked for.
    pub(super) fn make_early(self: &Arc<Self>, run: &Run, live: &Live) {
        if run.start_at > run.created_at {
            return;
        }
        let (inner, steps) = (Arc::clone(self), self.steps_of(live));
        let request = request(run, live, &steps);
        let span = tracing::info_span!("run", id = %run.id, thread = %run.thread);
        let building = async move { inner.agents.build(&request).await };
        let agent = AbortOnDropHandle::new(self.tasks.spawn(building.instrument(span)));
        *live.making() = Some(Making { agent, steps });
    }

    /// The agent of a run that begins, and its steps.
    pub(super) fn agent_of<'a>(&'a self, run: &Run, live: &Live) -> (BoxFuture<'a, Built>, Arc<StepLog>) {
        if let Some(Making { agent, steps }) = live.making().take() {
            let built = async { agent.await.unwrap_or_else(|error| Err(panicked(&error))) };
            return (built.boxed(), steps);
        }
        let steps = self.steps_of(live);
        let request = request(run, live, &steps);
        (async move { self.agents.build(&request).await }.boxed(), steps)
    }

    fn steps_of(&self, live: &Live) -> Arc<StepLog> {
        let (store, lease, tape) = (Arc::clone(&self.store), Arc::clone(&live.lease), Arc::clone(&live.tape));
        let named = live.request.input_ids.as_ref().map(|ids| ids.input.clone());
        let durability = live.request.durability;
        let steps = StepLog::new(store, lease, tape, live.lost.clone(), durability, self.tasks.clone());
        Arc::new(steps.named(named))
    }
}

impl Live {
    /// It does not begin at once.
    pub(super) fn forget_agent(&self) {
        self.making().take();
    }

    fn making(&self) -> std::sync::MutexGuard<'_, Option<Making>> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn request(run: &Run, live: &Live, steps: &Arc<StepLog>) -> AgentRequest {
    AgentRequest {
        agent: live.request.agent.clone(),
        thread: run.thread.clone(),
        user: run.user.clone(),
        options: live.request.options.clone(),
        secrets: live.request.secrets.clone(),
        checkpointer: steps.clone(),
    }
}

fn panicked(error: &tokio::task::JoinError) -> FactoryError {
    FactoryError { error: "BuildError".to_owned(), message: format!("the agent could not be made: {error}") }
}
