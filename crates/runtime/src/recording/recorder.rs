//! Writes down what a run asks of the world.
//!
//! Invariant: the run does not wait for it and does not fail with it. What is recorded reaches the store no later than
//! the step it led to.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt as _;
use hart_kernel::{
    Asker, ChatChunk, ChatModel, ChatRequest, ChatStream, Clock, Deck, ModelError, NotPlayed, Timestamp,
    async_trait,
};
use hart_types::{CheckpointId, Message, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::lines::{Hash, Hashed, Lines, masked};
use super::record::{Answer, Asked, Begun, Failed, Piece, Record, RecordedProfile, VERSION};
use super::{Mask, Recordable};
use crate::port::{Lease, Store, StoredRecord};

/// How much is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingLimits {
    /// What the recording of a run takes at most, all its attempts together; what comes later is not recorded.
    pub max_bytes: u64,
}

impl Default for RecordingLimits {
    fn default() -> Self {
        Self { max_bytes: 32 << 20 }
    }
}

/// Records a run. Made over another deck, what that plays is recorded as if it had happened.
pub struct RecordingDeck {
    shared: Arc<Shared>,
    over: Option<Arc<dyn Deck>>,
}

struct Shared {
    store: Arc<dyn Store>,
    lease: Lease,
    clock: Arc<dyn Clock>,
    limits: RecordingLimits,
    mask: Mask,
    /// Never held across an await.
    reel: Mutex<Reel>,
}

#[derive(Default)]
struct Reel {
    lines: HashMap<String, Lines>,
    /// What the texts of are written by this attempt, or stand in the thread.
    known: HashSet<Hash>,
    waiting: Vec<Bytes>,
    bytes: u64,
    cut: bool,
}

impl RecordingDeck {
    pub fn new(run: &Recordable<'_>, limits: RecordingLimits, mask: Mask) -> Self {
        let shared = Shared {
            store: Arc::clone(run.store),
            lease: run.lease.clone(),
            clock: Arc::clone(run.clock),
            limits,
            mask,
            reel: Mutex::new(Reel { bytes: run.recorded, ..Reel::default() }),
        };
        let begun = Begun {
            version: VERSION,
            hart: env!("CARGO_PKG_VERSION").to_owned(),
            attempt: run.attempt,
            at: run.clock.now(),
            start: shared.masked_copy(run.request).unwrap_or_default(),
        };
        shared.begin(&Record::Begun(Box::new(begun)));
        Self { shared: Arc::new(shared), over: None }
    }

    #[must_use]
    pub fn over(mut self, deck: Arc<dyn Deck>) -> Self {
        self.over = Some(deck);
        self
    }
}

#[async_trait]
impl Deck for RecordingDeck {
    async fn ask(
        &self,
        asker: Asker,
        model: &dyn ChatModel,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        let shared = Arc::clone(&self.shared);
        if shared.is_cut() {
            return self.pass_on(asker, model, request, cancel).await;
        }
        let asked = Pending {
            at: self.now(),
            side: asker == Asker::Side,
            model: model.profile().into(),
            // Looked at when the answer is there: the model need not wait for it.
            request: request.clone(),
            pieces: Vec::new(),
        };
        let stream = match self.pass_on(asker, model, request, cancel).await {
            Ok(stream) => stream,
            Err(error) => {
                let answer = shared.failed(&error);
                shared.answered(asked, answer);
                return Err(error);
            }
        };
        let mut asked = Some(asked);
        Ok(Box::pin(stream.inspect(move |item| shared.hear(&mut asked, item))))
    }

    async fn result(&self, call: &ToolCall) -> Result<Option<Value>, NotPlayed> {
        match &self.over {
            Some(deck) => deck.result(call).await,
            None => Ok(None),
        }
    }

    async fn came_to(&self, call: &ToolCall, outcome: Value) {
        let came_to = masked(outcome, &self.shared.mask);
        let id = call.id.as_ref().map_or("", |id| id.as_str()).to_owned();
        self.shared.add(|_| Record::Called { call: id, tool: call.name.clone(), came_to });
    }

    fn clock(&self) -> Option<Arc<dyn Clock>> {
        self.over.as_ref()?.clock()
    }

    async fn reached(&self, step: Option<&CheckpointId>) {
        let waiting = std::mem::take(&mut self.shared.lock().waiting);
        if !waiting.is_empty() {
            let stored = |payload| StoredRecord { step: step.cloned(), payload };
            self.shared.store.append_records(waiting.into_iter().map(stored).collect(), &self.shared.lease);
        }
        if let Some(deck) = &self.over {
            deck.reached(step).await;
        }
    }
}

impl RecordingDeck {
    fn now(&self) -> Timestamp {
        self.clock().map_or_else(|| self.shared.clock.now(), |clock| clock.now())
    }

    async fn pass_on(
        &self,
        asker: Asker,
        model: &dyn ChatModel,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        match &self.over {
            Some(deck) => deck.ask(asker, model, request, cancel).await,
            None => model.stream(request, cancel).await,
        }
    }
}

/// A call whose answer is still coming.
struct Pending {
    at: Timestamp,
    side: bool,
    model: RecordedProfile,
    request: ChatRequest,
    pieces: Vec<Piece>,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Reel> {
        self.reel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_cut(&self) -> bool {
        self.lock().cut
    }

    fn hear(&self, asked: &mut Option<Pending>, item: &Result<ChatChunk, ModelError>) {
        let answer = match item {
            Ok(ChatChunk::Done(message)) => Answer::Message(Box::new(
                self.masked_copy(message.as_ref()).unwrap_or_else(|| Message::ai("")),
            )),
            Err(error) => self.failed(error),
            // What was said so far is void.
            Ok(ChatChunk::Restart(_)) => {
                asked.iter_mut().for_each(|asked| asked.pieces.clear());
                return;
            }
            Ok(chunk) => {
                asked.iter_mut().for_each(|asked| asked.pieces.extend(Piece::of(chunk)));
                return;
            }
        };
        if let Some(asked) = asked.take() {
            self.answered(asked, answer);
        }
    }

    fn answered(&self, asked: Pending, answer: Answer) {
        let Pending { at, side, model, request, pieces } = asked;
        let pieces = (!self.would_show(&pieces)).then_some(pieces);
        self.add(move |reel| {
            let caller = request.caller.to_string();
            let lines = reel.lines.entry(caller.clone()).or_default();
            let Hashed { question, contents, of_history } = lines.next(&request, !side, &self.mask);
            let mut texts = Vec::new();
            for (nth, (hash, content)) in contents.into_iter().enumerate() {
                // What stands in the thread is not written a second time.
                if reel.known.insert(hash.clone()) && nth >= of_history {
                    texts.push((hash, content));
                }
            }
            Record::Asked(Box::new(Asked { at, side, caller, model, question, texts, pieces, answer }))
        });
    }

    /// Whether the fragments put together hold what is masked.
    fn would_show(&self, pieces: &[Piece]) -> bool {
        let mut whole: BTreeMap<(u8, String), String> = BTreeMap::new();
        for piece in pieces {
            let (of, text) = match piece {
                Piece::Text(text) => ((0, String::new()), text.as_str()),
                Piece::Reasoning(text) => ((1, String::new()), text.as_str()),
                Piece::Call(call) => {
                    let index = call.index.as_ref().map(Value::to_string).unwrap_or_default();
                    ((2, index), call.args.as_deref().unwrap_or_default())
                }
            };
            whole.entry(of).or_default().push_str(text);
        }
        whole.values().any(|text| (self.mask)(text).is_some())
    }

    fn failed(&self, error: &ModelError) -> Answer {
        Answer::Failed(Box::new(self.masked_copy(&Failed::of(error)).unwrap_or_default()))
    }

    fn masked_copy<T: Serialize + for<'a> Deserialize<'a>>(&self, value: &T) -> Option<T> {
        let json = serde_json::to_value(value).map(|json| masked(json, &self.mask));
        json.and_then(serde_json::from_value).ok()
    }

    /// An attempt always says that it begins: what the one before it had left undone is known by that.
    fn begin(&self, begun: &Record) {
        let mut reel = self.lock();
        let payload = serde_json::to_vec(begun).unwrap_or_default();
        reel.bytes += payload.len() as u64;
        reel.waiting.push(payload.into());
        if reel.bytes > self.limits.max_bytes {
            self.cut(&mut reel);
        }
    }

    fn add(&self, record: impl FnOnce(&mut Reel) -> Record) {
        let mut reel = self.lock();
        if reel.cut {
            return;
        }
        let record = record(&mut reel);
        let payload = serde_json::to_vec(&record).unwrap_or_default();
        reel.bytes += payload.len() as u64;
        if reel.bytes > self.limits.max_bytes {
            self.cut(&mut reel);
            return;
        }
        reel.waiting.push(payload.into());
    }

    fn cut(&self, reel: &mut Reel) {
        let limit = self.limits.max_bytes;
        reel.cut = true;
        reel.waiting.push(serde_json::to_vec(&Record::Cut { limit }).unwrap_or_default().into());
        tracing::warn!(run = %self.lease.run, limit, "a run is recorded no further; see `recording.max_mb_per_run`");
    }
}

impl fmt::Debug for RecordingDeck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingDeck").field("run", &self.shared.lease.run).finish_non_exhaustive()
    }
}
