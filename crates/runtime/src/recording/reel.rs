//! A recording, read back.
//!
//! Invariant: it holds what led to the run as it is: what a crash undid, and was then done again, is left out.

use std::collections::{HashMap, HashSet};
use std::fmt;

use hart_kernel::Timestamp;
use hart_types::{CheckpointId, RunId};
use serde_json::Value;

use super::lines::Hash;
use super::record::{Answer, Asked, Begun, History, Piece, Record, RecordedProfile, VERSION};
use crate::port::{HistoryQuery, Store, StoreError};
use crate::{Run, StartRun};

/// Why a run cannot be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReelError {
    #[error("there is no run `{0}`")]
    NoRun(RunId),
    #[error("run `{0}` has not ended yet")]
    Active(RunId),
    #[error("run `{0}` has no recording")]
    NotRecorded(RunId),
    #[error(
        "run `{run}` was recorded by another version of hart (its recording has version {found}, this hart plays {VERSION})"
    )]
    Version { run: RunId, found: u32 },
    #[error("the recording of run `{run}` cannot be read: {reason}")]
    Damaged { run: RunId, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a run asked and was told, in order.
pub struct Reel {
    pub run: Run,
    /// What it was started with.
    pub start: StartRun,
    /// When it began.
    pub began: Timestamp,
    /// The version of hart that recorded it.
    pub hart: String,
    /// The recording stops here, at its limit.
    pub cut: Option<u64>,
    pub(super) entries: Vec<Entry>,
    pub(super) texts: HashMap<Hash, Value>,
}

#[derive(Clone)]
pub(super) enum Entry {
    Asked(Box<Call>),
    Called { call: String, tool: String, came_to: Value },
}

/// A model call with all of its request.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) at: Timestamp,
    pub(super) side: bool,
    pub(super) caller: String,
    pub(super) model: RecordedProfile,
    pub(super) system: Hash,
    pub(super) tools: Hash,
    pub(super) settings: Hash,
    pub(super) history: Option<History>,
    /// Of the messages; none for those of the history.
    pub(super) messages: Vec<Option<Hash>>,
    pub(super) pieces: Option<Vec<Piece>>,
    pub(super) answer: Answer,
}

impl Reel {
    /// The recording of a run that has ended.
    pub async fn load(store: &dyn Store, id: &RunId) -> Result<Self, ReelError> {
        let run = store.run(id).await?.ok_or_else(|| ReelError::NoRun(id.clone()))?;
        if run.status.is_active() {
            return Err(ReelError::Active(id.clone()));
        }
        let records = store.records(id).await?;
        let query =
            HistoryQuery { run: Some(id.clone()), limit: u64::from(u32::MAX), ..HistoryQuery::default() };
        let durable: HashSet<CheckpointId> =
            store.history(&run.thread, &query).await?.into_iter().map(|step| step.id).collect();
        let damaged = |reason: String| ReelError::Damaged { run: id.clone(), reason };
        let mut reel: Option<Self> = None;
        let mut previous: HashMap<String, Vec<Option<Hash>>> = HashMap::new();
        let mut undone = Vec::new();
        // Where what the newest attempt did begins.
        let mut begins = 0;
        for stored in records {
            if version(&stored.payload).is_some_and(|found| found != VERSION) {
                let found = version(&stored.payload).unwrap_or_default();
                return Err(ReelError::Version { run: id.clone(), found });
            }
            let record: Record =
                serde_json::from_slice(&stored.payload).map_err(|error| damaged(error.to_string()))?;
            if let Record::Begun(begun) = record {
                // What the attempt before it had done behind its last step is done again.
                let Begun { start, at, hart, .. } = *begun;
                let fresh = || Self {
                    run: run.clone(),
                    start,
                    began: at,
                    hart,
                    cut: None,
                    entries: Vec::new(),
                    texts: HashMap::new(),
                };
                let reel = reel.get_or_insert_with(fresh);
                drop_undone(reel, &mut undone);
                begins = reel.entries.len();
                previous.clear();
                continue;
            }
            let Some(reel) = &mut reel else {
                return Err(damaged("it does not begin with its beginning".to_owned()));
            };
            let holds = stored.step.as_ref().is_some_and(|step| durable.contains(step));
            match record {
                // A later attempt may have gone on recording, once; without what lies between nobody can play it.
                _ if reel.cut.is_some() => continue,
                Record::Asked(asked) => {
                    reel.texts.extend(asked.texts.iter().cloned());
                    let call = whole(*asked, &mut previous);
                    reel.entries.push(Entry::Asked(Box::new(call)));
                }
                Record::Called { call, tool, came_to } => {
                    if drop_question(reel, begins, &call) {
                        begins -= 1;
                        undone.iter_mut().for_each(|at| *at -= 1);
                    }
                    reel.entries.push(Entry::Called { call, tool, came_to });
                }
                Record::Cut { limit } => {
                    reel.cut = Some(limit);
                    continue;
                }
                Record::Begun(_) => continue,
            }
            if !holds {
                undone.push(reel.entries.len() - 1);
            }
        }
        reel.ok_or_else(|| ReelError::NotRecorded(id.clone()))
    }

    /// The model that the agent itself asked first.
    pub fn model(&self) -> Option<&RecordedProfile> {
        self.calls().find(|call| !call.side).map(|call| &call.model)
    }

    /// How many steps it had: answers of the model, and batches of results.
    pub fn steps(&self) -> u32 {
        let mut steps = 0;
        let mut in_batch = false;
        for entry in &self.entries {
            let begins = match entry {
                Entry::Asked(call) if call.side => false,
                Entry::Asked(_) => {
                    in_batch = false;
                    true
                }
                Entry::Called { .. } => !std::mem::replace(&mut in_batch, true),
            };
            steps += u32::from(begins);
        }
        steps
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Asked(call) => Some(&**call),
            Entry::Called { .. } => None,
        })
    }
}

/// Forgets what was done behind the last step of an attempt that did not come to its end.
fn drop_undone(reel: &mut Reel, undone: &mut Vec<usize>) {
    let gone: HashSet<usize> = undone.drain(..).collect();
    let mut at = 0;
    reel.entries.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
}

/// Forgets that a call has asked, if an attempt before this one did and this one makes the call again: a crash came
/// between the results of its batch and the pause. Whether there was one.
fn drop_question(reel: &mut Reel, begins: usize, made: &str) -> bool {
    let asks = |entry: &Entry| matches!(entry, Entry::Called { call, came_to, .. } if call == made && came_to.get("asked").is_some());
    let found = reel.entries.iter().take(begins).rposition(asks);
    found.map(|at| reel.entries.remove(at)).is_some()
}

/// The version of a record that begins a recording.
fn version(payload: &[u8]) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct Head {
        begun: Numbered,
    }
    #[derive(serde::Deserialize)]
    struct Numbered {
        version: u32,
    }
    serde_json::from_slice::<Head>(payload).ok().map(|head| head.begun.version)
}

fn whole(asked: Asked, previous: &mut HashMap<String, Vec<Option<Hash>>>) -> Call {
    let Asked { at, side, caller, model, question, pieces, answer, texts: _ } = asked;
    let messages = previous.entry(caller.clone()).or_default();
    let before = question.history.as_ref().map_or(0, |history| history.count);
    messages.truncate(question.keep);
    if messages.len() < before {
        messages.resize(before, None);
    }
    messages.extend(question.new.into_iter().map(Some));
    Call {
        at,
        side,
        caller,
        model,
        system: question.system,
        tools: question.tools,
        settings: question.settings,
        history: question.history,
        messages: messages.clone(),
        pieces,
        answer,
    }
}

impl fmt::Debug for Reel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reel")
            .field("run", &self.run.id)
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}
