//! The states a thread went through.
//!
//! Invariant: a step in which a run only paused is no state of its own: clients see the one before it, under its own name,
//! as it has become by then and with what is asked there.

use std::collections::{HashMap, HashSet};

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
        for step in steps.into_iter().rev() {
            if let Some(views) = views(&mut recall, &step, row.head.as_ref()).await? {
                states.push(self.shown_state(thread, &views, step));
            }
        }
        states.reverse();
        Ok(states)
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
        let chart = self.inner.chart(thread).await?;
        let mut states = chart.states().into_iter();
        if let Some(before) = &query.before {
            let Some(name) = chart.name(before) else { return Ok(Vec::new()) };
            // It is taken along with the newer ones.
            let _ = states.find(|state| state.info.id == *name);
        }
        let is_wanted = |state: &ShownStep| {
            let is_of_run = query.run.as_ref().is_none_or(|run| state.info.run == *run);
            !state.deleted && is_of_run && wanted(&state.info)
        };
        let most = usize::try_from(query.limit).unwrap_or(usize::MAX);
        Ok(states.filter(is_wanted).take(most).collect())
    }
}

/// None where the state is gone. What came of the one that the thread is at is yet to come.
pub(super) async fn views(
    recall: &mut Recall,
    step: &ShownStep,
    head: Option<&CheckpointId>,
) -> Result<Option<Views>, StateError> {
    let Some(own) = recall.view(&step.info.id).await? else { return Ok(None) };
    let now = if step.at == step.info.id { Some(own.clone()) } else { recall.view(&step.at).await? };
    let after = match step.first.as_ref().filter(|_| head != Some(&step.at)) {
        Some(first) => recall.view(first).await?,
        None => None,
    };
    Ok(now.map(|now| Views { own, now, after }))
}

impl Inner {
    /// The state that goes by this name, as it is by now. A run that pauses there anew goes on with it.
    pub(super) async fn state_at(
        &self,
        thread: &ThreadId,
        name: &CheckpointId,
    ) -> Result<Option<ShownStep>, StoreError> {
        let chart = self.chart(thread).await?;
        let Some(name) = chart.name(name) else { return Ok(None) };
        Ok(chart.states().into_iter().find(|state| state.info.id == *name))
    }

    /// The state that a step is of, as it is at that step.
    pub(super) async fn shown_step(
        &self,
        thread: &ThreadId,
        at: &CheckpointId,
    ) -> Result<Option<ShownStep>, StoreError> {
        let Some(newest) = self.step_info(thread, at).await? else { return Ok(None) };
        let mut line = vec![newest];
        // Up to the one that clients see before it.
        while let Some(parent) = line.last().and_then(|last| last.parent.as_ref())
            && let Some(before) = self.step_info(thread, parent).await?
        {
            line.push(before);
            if line.iter().filter(|step| comes_further(step) && !step.deleted).count() > 1 {
                break;
            }
        }
        let chart = Chart::of(line);
        let name = chart.name(at).cloned();
        Ok(chart.states().into_iter().find(|state| Some(&state.info.id) == name.as_ref()))
    }

    async fn chart(&self, thread: &ThreadId) -> Result<Chart, StoreError> {
        let query = HistoryQuery { limit: u64::MAX, ..HistoryQuery::default() };
        Ok(Chart::of(self.store.history(thread, &query).await?))
    }

    async fn step_info(
        &self,
        thread: &ThreadId,
        step: &CheckpointId,
    ) -> Result<Option<StepInfo>, StoreError> {
        let query = HistoryQuery { only: Some(step.clone()), limit: 1, ..HistoryQuery::default() };
        Ok(self.store.history(thread, &query).await?.into_iter().next())
    }
}

/// A state as clients see it.
#[derive(Clone, Debug)]
pub(crate) struct ShownStep {
    /// What is said about it. Its parent is the state that clients see before it.
    pub(crate) info: StepInfo,
    /// The step that it has come to.
    pub(crate) at: CheckpointId,
    /// The first step that came of it.
    pub(super) first: Option<CheckpointId>,
    /// Whether all of it is of runs that were deleted.
    deleted: bool,
}

/// The steps of a thread, newest first, and which of them are a state together.
struct Chart {
    steps: Vec<StepInfo>,
    places: HashMap<CheckpointId, usize>,
}

impl Chart {
    fn of(steps: Vec<StepInfo>) -> Self {
        let places = steps.iter().enumerate().map(|(place, step)| (step.id.clone(), place)).collect();
        Self { steps, places }
    }

    /// The name of the state that a step is of.
    fn name(&self, step: &CheckpointId) -> Option<&CheckpointId> {
        self.steps.get(self.origin(*self.places.get(step)?)).map(|origin| &origin.id)
    }

    /// Newest first, by the newest step of each.
    fn states(&self) -> Vec<ShownStep> {
        let (mut newest, mut first) = (HashMap::new(), HashMap::new());
        for (place, step) in self.steps.iter().enumerate() {
            newest.entry(self.origin(place)).or_insert(step);
            // Where a thread went on twice, what came of it first is what came of it. What is written by hand is nobody's
            // work.
            if comes_further(step)
                && step.source != StepSource::Update
                && let Some(parent) = self.parent(place)
            {
                first.insert(self.origin(parent), step.id.clone());
            }
        }
        let is_deleted = |origin: usize| {
            let step = self.steps.get(origin);
            step.is_some_and(|step| step.deleted) && newest.get(&origin).is_some_and(|step| step.deleted)
        };
        let mut listed = HashSet::new();
        let origins = (0..self.steps.len()).map(|place| self.origin(place));
        let state = |origin: usize| {
            let (step, newest) = (self.steps.get(origin)?, newest.get(&origin)?);
            let mut before = self.parent(origin).map(|parent| self.origin(parent));
            while let Some(hidden) = before.filter(|before| is_deleted(*before)) {
                before = self.parent(hidden).map(|parent| self.origin(parent));
            }
            let parent = before.and_then(|before| self.steps.get(before)).map(|before| before.id.clone());
            let info = StepInfo { parent, next: newest.next.clone(), ..step.clone() };
            let (at, first) = (newest.id.clone(), first.get(&origin).cloned());
            Some(ShownStep { info, at, first, deleted: is_deleted(origin) })
        };
        origins.filter(|origin| listed.insert(*origin)).filter_map(state).collect()
    }

    /// The step that a pause is at.
    fn origin(&self, mut place: usize) -> usize {
        while let Some(parent) = self.parent(place)
            && self.steps.get(place).is_some_and(|step| !comes_further(step))
        {
            place = parent;
        }
        place
    }

    /// An older one; whoever says otherwise stands on nothing, so that every walk ends.
    fn parent(&self, place: usize) -> Option<usize> {
        let id = self.steps.get(place)?.parent.as_ref()?;
        self.places.get(id).copied().filter(|parent| *parent > place)
    }
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
