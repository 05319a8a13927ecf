//! The states a thread went through.
//!
//! Invariant: a step in which a run only paused stands for the one before it: clients see the state once, with what is
//! asked there.

use std::collections::{HashMap, HashSet};

use hart_kernel::MessageList;
use hart_types::{CheckpointId, ThreadId};
use serde_json::Value;

use super::threads::{StateError, ThreadState};
use super::{Inner, Runtime};
use crate::port::{HistoryQuery, StepInfo, StoreError};
use crate::reasoning;
use crate::recall::Recall;
use crate::values::Spelling;

impl Runtime {
    /// The states that are wanted, newest first.
    pub async fn history(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
        wanted: impl Fn(&StepInfo) -> bool,
    ) -> Result<Vec<ThreadState>, StateError> {
        let row = self.known(thread).await?;
        let steps = self.wanted_steps(thread, query, wanted).await?;
        let mut states: Vec<ThreadState> = Vec::new();
        let mut recall = Recall::new(self.clone(), row.id, Spelling::State);
        // Oldest first, so that each state is the one before it and a little more.
        let mut seen: HashMap<CheckpointId, (usize, MessageList)> = HashMap::new();
        for step in steps.into_iter().rev() {
            let info = &step.info;
            let view = recall.view(&info.id).await?;
            let messages = view.as_ref().map(|view| view.messages().clone()).unwrap_or_default();
            if let Some((place, before)) = info.parent.as_ref().and_then(|parent| seen.get(parent))
                && let Some(state) = states.get_mut(*place)
            {
                // Where a thread went on twice, what came of it first is what came of it.
                state.followed_by.get_or_insert_with(|| new_messages(before, &messages));
            }
            seen.insert(info.id.clone(), (states.len(), messages));
            states.push(self.shown_state(thread, view, Some(step)));
        }
        states.reverse();
        Ok(states)
    }

    /// The messages that the first step behind this one wrote.
    pub(super) async fn written_behind(
        &self,
        thread: &ThreadId,
        at: &CheckpointId,
    ) -> Result<Option<Vec<Value>>, StateError> {
        let query = HistoryQuery { limit: u64::MAX, ..HistoryQuery::default() };
        let steps = self.wanted_steps(thread, &query, |_| true).await?;
        let Some(next) =
            steps.into_iter().map(|step| step.info).rfind(|step| step.parent.as_ref() == Some(at))
        else {
            return Ok(None);
        };
        let mut recall = Recall::new(self.clone(), thread.clone(), Spelling::State);
        let (before, after) = (recall.view(at).await?, recall.view(&next.id).await?);
        Ok(before.zip(after).map(|(before, after)| new_messages(before.messages(), after.messages())))
    }

    async fn wanted_steps(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
        wanted: impl Fn(&StepInfo) -> bool,
    ) -> Result<Vec<ShownStep>, StoreError> {
        let most = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let (mut steps, mut query) = (Vec::new(), query.clone());
        let mut folding = Folding::default();
        if let Some(before) = &query.before {
            let newer = self.inner.step_info(thread, before).await?;
            newer.iter().for_each(|newer| folding.pass(newer));
        }
        loop {
            let page = self.inner.store.history(thread, &query).await?;
            let last = (page.len() as u64) < query.limit;
            query.before = page.last().map(|step| step.id.clone());
            for step in page {
                let is_shown = query.only.is_some() || !(step.deleted || folding.hides(&step.id));
                folding.pass(&step);
                if is_shown && wanted(&step) {
                    steps.push(step);
                }
            }
            if last || steps.len() >= most {
                steps.truncate(most);
                break;
            }
        }
        let mut shown = Vec::with_capacity(steps.len());
        for step in steps {
            shown.push(self.inner.shown_step(thread, step).await?);
        }
        Ok(shown)
    }
}

impl Inner {
    /// The step as clients see it, behind the nearest one that they see.
    pub(super) async fn shown_step(
        &self,
        thread: &ThreadId,
        mut step: StepInfo,
    ) -> Result<ShownStep, StoreError> {
        let (mut at, mut stands_for) = (step.clone(), None);
        while !at.source.goes_further(at.next.as_deref())
            && let Some(parent) = at.parent.take()
            && let Some(before) = self.step_info(thread, &parent).await?
        {
            step.parent.clone_from(&before.parent);
            (at, stands_for) = (before, Some(parent));
        }
        while let Some(parent) = &step.parent
            && let Some(before) = self.step_info(thread, parent).await?
            && before.deleted
        {
            step.parent = before.parent;
        }
        Ok(ShownStep { info: step, stands_for })
    }

    pub(super) async fn step_info(
        &self,
        thread: &ThreadId,
        step: &CheckpointId,
    ) -> Result<Option<StepInfo>, StoreError> {
        let query = HistoryQuery { only: Some(step.clone()), limit: 1, ..HistoryQuery::default() };
        Ok(self.store.history(thread, &query).await?.into_iter().next())
    }
}

/// A step with the one that clients see before it.
pub(crate) struct ShownStep {
    pub(crate) info: StepInfo,
    pub(crate) stands_for: Option<CheckpointId>,
}

/// Which steps others stand for, on the way from the newest to the oldest.
#[derive(Default)]
struct Folding {
    stood_for: HashSet<CheckpointId>,
    /// Those from which something went on all the same.
    left: HashSet<CheckpointId>,
}

impl Folding {
    fn pass(&mut self, step: &StepInfo) {
        let Some(parent) = &step.parent else { return };
        let further = step.source.goes_further(step.next.as_deref());
        if further { &mut self.left } else { &mut self.stood_for }.insert(parent.clone());
    }

    fn hides(&self, step: &CheckpointId) -> bool {
        self.stood_for.contains(step) && !self.left.contains(step)
    }
}

fn new_messages(before: &MessageList, after: &MessageList) -> Vec<Value> {
    let shared = before.common_prefix(after);
    // States that were read apart have their messages twice.
    let known: HashMap<_, _> = before.iter_from(shared).map(|message| (&message.id, message)).collect();
    let new = after.iter_from(shared).filter(|message| known.get(&message.id) != Some(message));
    new.map(|message| reasoning::told(message)).collect()
}
