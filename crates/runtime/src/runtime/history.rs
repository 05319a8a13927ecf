//! The states a thread went through.
//!
//! Invariant: a step in which a run only paused is no state of its own: clients see the one before it, under its own name,
//! as it has become by then and with what is asked there.

use std::collections::HashMap;

use hart_kernel::{MessageList, StepSource};
use hart_types::{CheckpointId, ThreadId};
use serde_json::Value;

use super::threads::{StateError, ThreadState, Views};
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
        let mut alone: HashMap<CheckpointId, (usize, MessageList)> = HashMap::new();
        for step in steps.into_iter().rev() {
            let info = &step.info;
            let Some(own) = recall.view(&info.id).await? else { continue };
            let now = if step.at == info.id { Some(own.clone()) } else { recall.view(&step.at).await? };
            let Some(now) = now else { continue };
            // Where a thread went on twice, what came of it first is what came of it.
            if let Some(parent) = info.parent.as_ref().filter(|_| is_of_tasks(info))
                && let Some((place, before)) = alone.remove(parent)
                && let Some(state) = states.get_mut(place)
            {
                state.results = Some(new_messages(&before, own.messages()));
            }
            alone.insert(info.id.clone(), (states.len(), own.messages().clone()));
            states.push(self.shown_state(thread, &Views { own, now }, step));
        }
        states.reverse();
        Ok(states)
    }

    /// The messages that the first step behind this state wrote.
    pub(super) async fn written_behind(
        &self,
        thread: &ThreadId,
        state: &CheckpointId,
    ) -> Result<Option<Vec<Value>>, StateError> {
        let (mut at, mut first) = (Some(state.clone()), None::<StepInfo>);
        while let Some(step) = at.take() {
            for behind in self.inner.steps_behind(thread, &step).await? {
                let is_first = first.as_ref().is_none_or(|first| behind.created_at <= first.created_at);
                match comes_further(&behind) {
                    true if is_of_tasks(&behind) && is_first => first = Some(behind),
                    true => {}
                    false => at = at.or(Some(behind.id)),
                }
            }
        }
        let Some(first) = first else { return Ok(None) };
        let mut recall = Recall::new(self.clone(), thread.clone(), Spelling::State);
        let (before, after) = (recall.view(state).await?, recall.view(&first.id).await?);
        Ok(before.zip(after).map(|(before, after)| new_messages(before.messages(), after.messages())))
    }

    async fn wanted_steps(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
        wanted: impl Fn(&StepInfo) -> bool,
    ) -> Result<Vec<ShownStep>, StoreError> {
        if let Some(only) = &query.only {
            let step = self.inner.state_at(thread, only).await?;
            return Ok(step.filter(|step| wanted(&step.info)).into_iter().collect());
        }
        let before = match &query.before {
            Some(named) => Some(self.inner.shown_step(thread, named).await?.map(|step| step.info.id)),
            None => None,
        };
        let most = usize::try_from(query.limit).unwrap_or(usize::MAX);
        // What a state has come to is found among all the steps, however new they are and of whichever run.
        let size = if before.is_some() { LARGE_PAGE } else { query.limit.max(PAGE) };
        let mut page = HistoryQuery { limit: size, ..HistoryQuery::default() };
        let (mut steps, mut is_older, mut pauses) = (Vec::new(), before.is_none(), Pauses::default());
        while steps.len() < most {
            let read = self.inner.store.history(thread, &page).await?;
            let is_last = (read.len() as u64) < page.limit;
            page.before = read.last().map(|step| step.id.clone());
            for step in read {
                let is_of_run = query.run.as_ref().is_none_or(|run| step.run == *run);
                let is_before = before.as_ref().is_some_and(|before| before.as_ref() == Some(&step.id));
                let state = pauses.pass(step);
                steps.extend(state.filter(|state| is_older && is_of_run && wanted(&state.info)));
                is_older |= is_before;
            }
            if is_last {
                break;
            }
        }
        steps.truncate(most);
        for step in &mut steps {
            step.info.parent = self.inner.shown_parent(thread, step.info.parent.take()).await?;
        }
        Ok(steps)
    }
}

/// How many steps are read at once, if not more are wanted: some are not shown.
const PAGE: u64 = 20;
/// On the way to an older one.
const LARGE_PAGE: u64 = 500;

impl Inner {
    /// The state that goes by this name, as it is by now. A run that pauses there anew goes on with it.
    pub(super) async fn state_at(
        &self,
        thread: &ThreadId,
        name: &CheckpointId,
    ) -> Result<Option<ShownStep>, StoreError> {
        let mut at = name.clone();
        while let Some(pause) =
            self.steps_behind(thread, &at).await?.into_iter().find(|step| !comes_further(step))
        {
            at = pause.id;
        }
        self.shown_step(thread, &at).await
    }

    /// Newest first.
    async fn steps_behind(
        &self,
        thread: &ThreadId,
        step: &CheckpointId,
    ) -> Result<Vec<StepInfo>, StoreError> {
        let query = HistoryQuery { behind: Some(step.clone()), limit: u64::MAX, ..HistoryQuery::default() };
        self.store.history(thread, &query).await
    }

    /// The step as clients see it, behind the nearest one that they see.
    pub(super) async fn shown_step(
        &self,
        thread: &ThreadId,
        at: &CheckpointId,
    ) -> Result<Option<ShownStep>, StoreError> {
        let Some(newest) = self.step_info(thread, at).await? else { return Ok(None) };
        let (at, next) = (newest.id.clone(), newest.next.clone());
        let mut info = newest;
        while !comes_further(&info)
            && let Some(parent) = &info.parent
            && let Some(before) = self.step_info(thread, parent).await?
        {
            info = before;
        }
        let parent = self.shown_parent(thread, info.parent.take()).await?;
        Ok(Some(ShownStep { info: StepInfo { parent, next, ..info }, at }))
    }

    /// The nearest one that clients see.
    async fn shown_parent(
        &self,
        thread: &ThreadId,
        mut parent: Option<CheckpointId>,
    ) -> Result<Option<CheckpointId>, StoreError> {
        // One that was deleted is seen all the same where somebody paused there who was not.
        let mut is_kept = false;
        while let Some(id) = &parent
            && let Some(before) = self.step_info(thread, id).await?
        {
            is_kept |= !before.deleted;
            if comes_further(&before) {
                if is_kept {
                    break;
                }
                is_kept = false;
            }
            parent = before.parent;
        }
        Ok(parent)
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

/// A state as clients see it: what is said about it, and the step that it has come to.
#[derive(Clone, Debug)]
pub(crate) struct ShownStep {
    /// Its parent is the state that clients see before it.
    pub(crate) info: StepInfo,
    pub(crate) at: CheckpointId,
}

/// What states have come to, on the way from the newest step to the oldest: the newest pause, by the step it is behind.
#[derive(Default)]
struct Pauses(HashMap<CheckpointId, StepInfo>);

impl Pauses {
    /// The step as a state of its own, if it is one that is shown.
    fn pass(&mut self, step: StepInfo) -> Option<ShownStep> {
        let newest = self.0.remove(&step.id).unwrap_or_else(|| step.clone());
        // One that nothing is before is all that is kept of a thread.
        if let Some(parent) = step.parent.as_ref().filter(|_| !comes_further(&step)) {
            // Of several that began anew there the newest one counts.
            self.0.entry(parent.clone()).or_insert(newest);
            return None;
        }
        let is_shown = !(step.deleted && newest.deleted);
        is_shown.then(|| ShownStep { info: StepInfo { next: newest.next, ..step }, at: newest.id })
    }
}

/// Whether what is done at a state has led to the step, and nobody's own hand.
fn is_of_tasks(step: &StepInfo) -> bool {
    step.source != StepSource::Update
}

fn comes_further(step: &StepInfo) -> bool {
    step.source.goes_further(step.next.as_deref())
}

pub(super) fn new_messages(before: &MessageList, after: &MessageList) -> Vec<Value> {
    let shared = before.common_prefix(after);
    // States that were read apart have their messages twice.
    let known: HashMap<_, _> = before.iter_from(shared).map(|message| (&message.id, message)).collect();
    let new = after.iter_from(shared).filter(|message| known.get(&message.id) != Some(message));
    new.map(|message| reasoning::told(message)).collect()
}
