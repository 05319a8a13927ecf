//! Plays a recorded run: the loop is real, what is outside of it is recorded.
//!
//! Invariant: an answer is played only to the very request it was given to; at the first difference the run is stopped.
//! Before the step from which a run goes on by itself no model is asked and no tool is called.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream;
use hart_kernel::{
    Asker, ChatChunk, ChatModel, ChatRequest, ChatStream, Clock, Deck, ModelError, NotPlayed, TimeZone,
    Timestamp, async_trait,
};
use hart_types::{CheckpointId, Message, ToolCall, ToolCallChunk, UsageMetadata};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Mask;
use super::difference::{Difference, Place};
use super::lines::{Hash, Hashed, Lines};
use super::record::{Answer, Piece};
use super::reel::{Call, Entry, Reel};

/// Plays a [`Reel`].
pub struct PlayingDeck {
    mask: Mask,
    clock: Arc<PlayedClock>,
    /// The step from which on the run is live.
    from: Option<u32>,
    cut: Option<u64>,
    texts: HashMap<Hash, Value>,
    /// Never held across an await.
    playing: Mutex<Playing>,
}

#[derive(Default)]
struct Playing {
    calls: HashMap<String, VecDeque<Call>>,
    results: HashMap<String, VecDeque<Value>>,
    lines: HashMap<String, Lines>,
    made: HashMap<String, usize>,
    /// The step that is being made.
    step: u32,
    in_batch: bool,
    played: Played,
    difference: Option<Difference>,
}

/// How far a run was played.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Played {
    /// Model calls that were answered from the recording.
    pub calls: u64,
    /// Results of tools that were.
    pub results: u64,
    /// What those calls had taken when they were recorded.
    pub usage: UsageMetadata,
    /// Model calls that were really made.
    pub live_calls: u64,
}

/// The time of what is being played.
#[derive(Debug)]
struct PlayedClock {
    now: Mutex<Option<Timestamp>>,
    then: Arc<dyn ClockDebug>,
}

/// A clock that can be looked at.
trait ClockDebug: Clock + fmt::Debug {}
impl<C: Clock + fmt::Debug> ClockDebug for C {}

impl PlayedClock {
    /// Shows `first` until something is played; what is live goes by `then`.
    fn new(first: Timestamp, then: impl Clock + fmt::Debug + 'static) -> Arc<Self> {
        Arc::new(Self { now: Mutex::new(Some(first)), then: Arc::new(then) })
    }

    fn set(&self, now: Option<Timestamp>) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

impl Clock for PlayedClock {
    fn now(&self) -> Timestamp {
        let played = *self.now.lock().unwrap_or_else(PoisonError::into_inner);
        played.unwrap_or_else(|| self.then.now())
    }

    fn time_zone(&self) -> TimeZone {
        self.then.time_zone()
    }
}

impl PlayingDeck {
    /// `from` is the first step, from 1, that is not played; without it, all are. A run that goes on by itself may
    /// differ from the recording before that, in the model it asks: the first difference is noted and passed over.
    pub fn new(reel: Reel, from: Option<u32>, now: impl Clock + fmt::Debug + 'static, mask: Mask) -> Self {
        let first = reel.calls().find(|call| !call.side).map_or(reel.began, |call| call.at);
        let clock = PlayedClock::new(first, now);
        let mut playing = Playing::default();
        for entry in reel.entries {
            match entry {
                Entry::Asked(call) => playing.calls.entry(call.caller.clone()).or_default().push_back(*call),
                Entry::Called { call, came_to, .. } => {
                    playing.results.entry(call).or_default().push_back(came_to);
                }
            }
        }
        Self { mask, clock, from, cut: reel.cut, texts: reel.texts, playing: Mutex::new(playing) }
    }

    /// How far it came, and where it parted from the recording, once the run has ended.
    pub fn played(&self) -> (Played, Option<Difference>) {
        let playing = self.lock();
        let ended_early = || {
            let left = playing.calls.iter().find(|(_, calls)| calls.iter().any(|call| !call.side))?;
            let call = playing.made.get(left.0).copied().unwrap_or_default() + 1;
            Some(Difference::at_call(left.0, call, Place::NotMade))
        };
        let difference = playing.difference.clone();
        let difference = difference.or_else(|| if self.from.is_none() { ended_early() } else { None });
        (playing.played.clone(), difference)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Playing> {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_live(&self, playing: &Playing) -> bool {
        self.from.is_some_and(|from| playing.step >= from)
    }

    /// The recorded call that this request is; `None` where it is to be made.
    fn next(&self, asker: Asker, request: &ChatRequest) -> Result<Option<Box<Call>>, Box<Difference>> {
        let mut playing = self.lock();
        if asker == Asker::Agent {
            playing.step += 1;
            playing.in_batch = false;
        }
        if self.is_live(&playing) {
            playing.played.live_calls += 1;
            self.clock.set(None);
            return Ok(None);
        }
        let caller = request.caller.to_string();
        let made = playing.made.entry(caller.clone()).or_default();
        *made += 1;
        let nth = *made;
        let at = |place| Difference::at_call(&caller, nth, place);
        let Some(call) = playing.calls.get_mut(&caller).and_then(VecDeque::pop_front) else {
            return Err(Box::new(at(self.cut.map_or(Place::NotRecorded, |limit| Place::Cut { limit }))));
        };
        let lines = playing.lines.entry(caller.clone()).or_default();
        let hashed = lines.next(request, asker == Asker::Agent, &self.mask);
        match self.compare(&call, lines, &hashed, request, &at) {
            Some(difference) if self.from.is_none() => return Err(Box::new(difference)),
            difference => playing.difference = playing.difference.take().or(difference),
        }
        playing.played.calls += 1;
        if let Answer::Message(message) = &call.answer
            && let Some(usage) = message.as_ai().and_then(|ai| ai.usage.as_ref())
        {
            playing.played.usage.add(usage);
        }
        if asker == Asker::Agent {
            // What comes next is made ready at the time of the next call.
            let next = playing.calls.get(&caller).and_then(VecDeque::front);
            self.clock.set(Some(next.map_or(call.at, |next| next.at)));
        }
        Ok(Some(Box::new(call)))
    }

    fn compare(
        &self,
        call: &Call,
        lines: &Lines,
        hashed: &Hashed,
        request: &ChatRequest,
        at: &dyn Fn(Place) -> Difference,
    ) -> Option<Difference> {
        let found =
            |hash: &Hash| hashed.contents.iter().find(|(known, _)| known == hash).map(|(_, text)| text);
        let question = &hashed.question;
        let parts = [
            (Place::System, &call.system, &question.system),
            (Place::Tools, &call.tools, &question.tools),
            (Place::Settings, &call.settings, &question.settings),
        ];
        for (place, recorded, now) in parts {
            if recorded != now {
                return Some(at(place).between(self.texts.get(recorded), found(now)));
            }
        }
        let before = call.history.as_ref().map_or(0, |history| history.count);
        if call.history != lines.chained(before) {
            return Some(at(Place::History { messages: before }));
        }
        let (recorded, now) = (&call.messages, lines.hashes());
        let (longest, mut position) = (recorded.len().max(now.len()), before);
        while position < longest {
            let (recorded, found_hash) = (recorded.get(position).and_then(Option::as_ref), now.get(position));
            if recorded != found_hash {
                let text = recorded.and_then(|hash| self.texts.get(hash));
                let message = request.messages.get(position).map(|message| message.kind().to_owned());
                let role =
                    message.or_else(|| Some(text?.get("type")?.as_str()?.to_owned())).unwrap_or_default();
                let live = found_hash.and_then(&found).or_else(|| self.texts.get(found_hash?));
                return Some(at(Place::Message { position, role }).between(text, live));
            }
            position += 1;
        }
        None
    }

    fn part(&self, difference: Difference) -> String {
        let text = difference.to_string();
        self.lock().difference.get_or_insert(difference);
        text
    }
}

#[async_trait]
impl Deck for PlayingDeck {
    async fn ask(
        &self,
        asker: Asker,
        model: &dyn ChatModel,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        match self.next(asker, &request) {
            Ok(None) => model.stream(request, cancel).await,
            Ok(Some(call)) => match call.answer {
                Answer::Message(message) => Ok(spoken(*message, call.pieces)),
                Answer::Failed(failed) => Err(failed.into_error()),
            },
            Err(difference) => {
                self.part(*difference);
                Err(ModelError::cancelled())
            }
        }
    }

    async fn result(&self, call: &ToolCall) -> Result<Option<Value>, NotPlayed> {
        let difference = {
            let mut playing = self.lock();
            if !std::mem::replace(&mut playing.in_batch, true) {
                playing.step += 1;
            }
            if self.is_live(&playing) {
                self.clock.set(None);
                return Ok(None);
            }
            let id = call.id.as_ref().map_or("", |id| id.as_str());
            if let Some(result) = playing.results.get_mut(id).and_then(VecDeque::pop_front) {
                playing.played.results += 1;
                return Ok(Some(result));
            }
            let (caller, made) = playing.made.iter().max_by_key(|(_, made)| **made).unzip();
            let (caller, made) = (caller.cloned().unwrap_or_default(), made.copied().unwrap_or_default());
            let place = match self.cut {
                Some(limit) => Place::Cut { limit },
                None => Place::ToolResult { tool: call.name.clone(), call: id.to_owned() },
            };
            Difference::at_call(&caller, made, place)
        };
        Err(NotPlayed(self.part(difference)))
    }

    async fn came_to(&self, _call: &ToolCall, _outcome: Value) {}

    fn clock(&self) -> Option<Arc<dyn Clock>> {
        Some(Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    async fn reached(&self, _step: Option<&CheckpointId>) {}
}

/// The answer as it came, or, where its pieces were not kept, in a few.
fn spoken(message: Message, pieces: Option<Vec<Piece>>) -> ChatStream {
    let mut chunks: Vec<ChatChunk> = match pieces {
        Some(pieces) => pieces.into_iter().map(Piece::into_chunk).collect(),
        None => whole(&message),
    };
    chunks.push(ChatChunk::Done(Box::new(message)));
    Box::pin(stream::iter(chunks.into_iter().map(Ok)))
}

fn whole(message: &Message) -> Vec<ChatChunk> {
    let text = Some(message.text()).filter(|text| !text.is_empty()).map(ChatChunk::Text);
    let calls = message.as_ai().into_iter().flat_map(|ai| &ai.tool_calls).enumerate().map(|(index, call)| {
        let args = Value::Object(call.args.clone()).to_string();
        ChatChunk::ToolCall(ToolCallChunk::new(index, call.id.clone(), Some(call.name.clone()), args))
    });
    text.into_iter().chain(calls).collect()
}

impl fmt::Debug for PlayingDeck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlayingDeck").field("from", &self.from).finish_non_exhaustive()
    }
}
