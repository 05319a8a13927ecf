//! The agent of a run: made while the run is being let in, where it is likely to begin at once.
//!
//! Invariant: an agent that was made before its turn is not used by a run that had to wait: it is as things are when the
//! run begins.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};
use std::task::Poll;

use futures_util::future::{BoxFuture, ready};
use futures_util::{FutureExt as _, poll};
use hart_kernel::{Agent, panic_text};
use tracing::Instrument as _;

use super::{Inner, Live};
use crate::Run;
use crate::checkpoints::StepLog;
use crate::request::{AgentRequest, FactoryError};

type Built = Result<Agent, FactoryError>;

/// An agent, nearly always made already, and where it will keep its steps.
pub(super) struct Making {
    agent: BoxFuture<'static, Built>,
    steps: Arc<StepLog>,
}

impl Inner {
    /// Makes the agent of a run that is asked for while the store lets it in, which is another thread's work. What the
    /// agent has to wait for itself keeps nobody: whoever begins the run waits on.
    pub(super) async fn make_during<T>(
        self: &Arc<Self>,
        admitting: impl Future<Output = T>,
        run: &Run,
        live: &Live,
    ) -> (T, Option<Making>) {
        if run.start_at > run.created_at {
            return (admitting.await, None);
        }
        let mut admitting = std::pin::pin!(admitting);
        if let Poll::Ready(admitted) = poll!(admitting.as_mut()) {
            return (admitted, None);
        }
        let mut making = self.make(run, live);
        if let Poll::Ready(built) = poll!(making.agent.as_mut()) {
            making.agent = ready(built).boxed();
        }
        (admitting.await, Some(making))
    }

    /// The agent of a run that begins, and its steps.
    pub(super) fn agent_of(
        self: &Arc<Self>,
        run: &Run,
        live: &Live,
    ) -> (BoxFuture<'static, Built>, Arc<StepLog>) {
        let made = live.making().take();
        let Making { agent, steps } = made.unwrap_or_else(|| self.make(run, live));
        (agent, steps)
    }

    fn make(self: &Arc<Self>, run: &Run, live: &Live) -> Making {
        let (inner, steps) = (Arc::clone(self), self.steps_of(live));
        let request = request(run, live, &steps);
        let span = tracing::info_span!("run", id = %run.id, thread = %run.thread);
        let building = async move { inner.agents.build(&request).await };
        let building = AssertUnwindSafe(building.instrument(span)).catch_unwind();
        let agent = building.map(|built| built.unwrap_or_else(|panic| Err(panicked(panic.as_ref()))));
        Making { agent: agent.boxed(), steps }
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
    /// It begins at once, with the agent that was made for it.
    pub(super) fn has_agent(&self, making: Option<Making>) {
        *self.making() = making;
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

fn panicked(panic: &(dyn std::any::Any + Send)) -> FactoryError {
    let message = format!("the agent could not be made: {}", panic_text(panic));
    FactoryError { error: "BuildError".to_owned(), message }
}
