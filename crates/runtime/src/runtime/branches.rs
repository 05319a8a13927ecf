//! Threads as conversations: what was said on them, and going on from there elsewhere.
//!
//! Invariant: a branch has what its original had at that point, and neither changes with the other.

use hart_kernel::Step;
use hart_types::{CheckpointId, RunId, ThreadId};
use serde_json::{Map, Value};

use super::Runtime;
use super::threads::StateError;
use crate::forks::{self, Fork};
use crate::port::{HistoryQuery, StepInfo, StoreError};
use crate::transcript::{self, Said};
use crate::workspaces::Workspace;
use crate::{Run, Thread};

impl Runtime {
    /// Work that goes on when nobody waits for it any more, and that closing waits for.
    pub fn look_after<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.inner.tasks.spawn(work)
    }

    /// What was said on a thread up to where it stands.
    pub async fn transcript(&self, thread: &ThreadId) -> Result<Vec<Said>, StateError> {
        Ok(transcript::read(&self.inner.store.steps(thread, None).await?))
    }

    /// What was said in a run, also where the thread has gone another way since.
    pub async fn said_in(&self, run: &Run) -> Result<Vec<Said>, StateError> {
        let query = HistoryQuery { run: Some(run.id.clone()), limit: 1, ..HistoryQuery::default() };
        let Some(last) = self.inner.store.history(&run.thread, &query).await?.into_iter().next() else {
            return Ok(Vec::new());
        };
        let steps = self.inner.store.steps(&run.thread, Some(&last.id)).await?;
        let said = transcript::read(&steps).into_iter().filter(|said| said.run == run.id);
        Ok(said.collect())
    }

    /// Where the thread went more than one way, on the way to where it stands.
    pub async fn forks(&self, thread: &ThreadId) -> Result<Vec<Fork>, StateError> {
        let query = HistoryQuery { limit: u64::MAX, ..HistoryQuery::default() };
        let mut steps = self.inner.store.history(thread, &query).await?;
        steps.reverse();
        // Each step standing on the one before it is the rule.
        let one_way = |pair: &[StepInfo]| matches!(pair, [a, b] if b.parent.as_ref() == Some(&a.id));
        if steps.windows(2).all(one_way) {
            return Ok(Vec::new());
        }
        Ok(forks::read(&steps, &self.transcript(thread).await?))
    }

    /// The writes of one state key on the way to where a thread stands, each with its run.
    pub async fn writes_of(&self, thread: &ThreadId, key: &str) -> Result<Vec<(RunId, Value)>, StateError> {
        let steps = self.inner.store.steps(thread, None).await?;
        let of_step = |step: Step| {
            let run = step.run_id;
            let writes = step.writes.into_iter().filter(|write| write.key == key);
            writes.map(|write| (run.clone(), write.value)).collect::<Vec<_>>()
        };
        Ok(steps.into_iter().flat_map(of_step).collect())
    }

    /// A new thread that stands where another one stood when this message had been said, with a copy of its files as
    /// they are now. `None` when there is no such message on it.
    pub async fn branch_thread(
        &self,
        from: &ThreadId,
        message: &str,
        metadata: Map<String, Value>,
    ) -> Result<Option<(Thread, CheckpointId)>, StateError> {
        let original = self.inner.store.thread(from).await?;
        let original = original.ok_or_else(|| StateError::NoThread(from.clone()))?;
        let steps = self.inner.store.steps(from, None).await?;
        let Some(at) = end_of(&steps, message) else { return Ok(None) };
        let mut branch = Thread::new(ThreadId::generate(), original.user.clone(), self.now());
        branch.metadata.clone_from(&original.metadata);
        branch.metadata.extend(metadata);
        branch.head = Some(at.clone());
        let place = |thread: &Thread| Workspace { thread: thread.id.clone(), user: thread.user.clone() };
        // Files first: a thread that is there has them.
        let copied = self.inner.workspaces.copy(&place(&original), &place(&branch)).await;
        copied.map_err(|error| StoreError::failed("the files of the thread cannot be copied", error))?;
        let name = self.inner.shown_step(from, &at).await?.map_or(at, |state| state.info.id);
        Ok(Some((self.inner.store.copy_thread(from, branch).await?, name)))
    }
}

/// The last step of its run before anything else was said.
fn end_of(steps: &[Step], message: &str) -> Option<CheckpointId> {
    let said = transcript::read(steps);
    let place = said.iter().position(|said| said.id() == message)?;
    let behind = |step: &CheckpointId| steps.iter().position(|known| known.id == *step);
    let first = behind(&said.get(place)?.step)?;
    let next = said.iter().skip(place + 1).filter_map(|said| behind(&said.step)).find(|at| *at > first);
    let run = &steps.get(first)?.run_id;
    let own = steps.get(first..next.unwrap_or(steps.len()))?.iter().take_while(|step| step.run_id == *run);
    own.last().map(|step| step.id.clone())
}
