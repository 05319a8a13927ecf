//! Everything a run is given, and its private scratch space.
//!
//! Invariant: nothing here is global; two runs share nothing but what their contexts share.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, Shared};
use hart_types::{CheckpointId, MessageId, RunId, ThreadId, ToolCallId, UserId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::Aliases;
use crate::interrupt::Answers;
use crate::{
    AgentEvent, Breakpoints, Budget, Checkpointer, Clock, Deck, EventSink, HookError, Interrupt, Journal,
    NoEvents, SystemClock,
};

pub struct RunContext {
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub user_id: UserId,
    /// From 1. A later one goes on behind the last step that an earlier one left in the log.
    pub attempt: u32,
    /// Cancels the model's stream, running tools and hooks that look at it.
    pub cancel: CancellationToken,
    pub events: Arc<dyn EventSink>,
    pub clock: Arc<dyn Clock>,
    /// Where effects are written down; without it a call that was cut off is simply made again.
    pub journal: Option<Arc<dyn Journal>>,
    /// What the run asks of the world is recorded here, or played from here.
    pub deck: Option<Arc<dyn Deck>>,
    /// What must be done before a tool may act. The model is asked meanwhile; whoever gives it sees that it goes on.
    pub preparation: Option<Preparation>,
    pub scratch: Scratch,
    /// The step to start from; `None` is the thread's newest.
    pub from: Option<CheckpointId>,
    /// What the steps that take the input in are called, where that is written down.
    pub input_ids: Option<InputIds>,
    pub breakpoints: Breakpoints,
    /// An answer where nothing is asked, any more perhaps, is no error: what is left to do is done.
    pub late_answers: bool,
    /// At most this many model calls and tool batches, within what the agent allows.
    pub recursion_limit: Option<u32>,
    /// What the run may use. Its time is kept by the loop; the rest by whoever uses it. A resumed run is given a new
    /// one, with the limits of the one that paused.
    pub budget: Budget,
    /// What a person answered, by the question's id; set once, when a paused run is resumed.
    answers: OnceLock<Answers>,
    /// Unadvertised names of tools, each with the name of its tool; set once, when the run starts.
    aliases: OnceLock<Aliases>,
    paused: AtomicBool,
    place: Mutex<Place>,
    /// Nobody hears what tools say while they run.
    tools_muted: AtomicBool,
    /// The call that the agent works inside of: its questions are not those of the same words elsewhere.
    inside: Option<String>,
    /// Where the agent that runs keeps its steps; set once, when the run starts.
    log: OnceLock<Arc<dyn Checkpointer>>,
    deadlines: Deadlines,
}

/// Such as to keep files as they were before a run; done once, however many wait for it.
pub type Preparation = Shared<BoxFuture<'static, ()>>;

/// Names for the steps that take a run's input in. Where they are as durable as the input itself, an attempt that takes it
/// in again gives them again: what others have seen of it still holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputIds {
    /// The state before it.
    pub start: CheckpointId,
    pub input: CheckpointId,
}

impl InputIds {
    pub fn generate() -> Self {
        Self { start: CheckpointId::generate(), input: CheckpointId::generate() }
    }

    /// Whether they sort behind `head`, as ids of later steps do.
    pub(crate) fn follow(&self, head: Option<&CheckpointId>) -> bool {
        head.is_none_or(|head| self.start > *head)
    }
}

/// Where the run is: behind which step, and how many things there were to name since.
#[derive(Debug, Default)]
struct Place {
    head: Option<CheckpointId>,
    named: u32,
}

/// When whatever has not listened to a cancellation is dropped: the work first, the unwinding a little later, all of
/// it within two seconds.
#[derive(Debug, Default)]
struct Deadlines {
    cancelled_at: OnceLock<Instant>,
    unwinding: AtomicBool,
    /// The time the run was given, once that is over.
    over: OnceLock<Duration>,
    /// How long work and unwinding may take.
    grace: Grace,
}

#[derive(Clone, Copy, Debug)]
struct Grace {
    work: Duration,
    unwind: Duration,
}

impl Default for Grace {
    fn default() -> Self {
        Self { work: Duration::from_millis(1000), unwind: Duration::from_millis(1800) }
    }
}

impl Grace {
    /// Whoever works inside a call is done before the call is dropped.
    fn inside(self) -> Self {
        Self { work: self.work / 2, unwind: self.work * 9 / 10 }
    }
}

impl RunContext {
    pub fn new(thread_id: ThreadId) -> Self {
        Self {
            thread_id,
            run_id: RunId::generate(),
            user_id: "default".into(),
            attempt: 1,
            cancel: CancellationToken::new(),
            events: Arc::new(NoEvents),
            clock: Arc::new(SystemClock),
            journal: None,
            deck: None,
            preparation: None,
            scratch: Scratch::default(),
            from: None,
            input_ids: None,
            breakpoints: Breakpoints::default(),
            late_answers: false,
            recursion_limit: None,
            budget: Budget::default(),
            answers: OnceLock::new(),
            aliases: OnceLock::new(),
            paused: AtomicBool::new(false),
            place: Mutex::default(),
            tools_muted: AtomicBool::new(false),
            inside: None,
            log: OnceLock::new(),
            deadlines: Deadlines::default(),
        }
    }

    /// For an agent inside the call of this run that `key` names: the same thread, user and clock, a scratch space and an
    /// id of its own. It is cancelled with this one.
    pub(crate) fn inside(&self, key: &str, budget: Budget, events: Arc<dyn EventSink>) -> Self {
        let name = format!("{}/{key}", self.run_id);
        let deadlines = Deadlines { grace: self.deadlines.grace.inside(), ..Deadlines::default() };
        Self {
            run_id: RunId::from(Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string()),
            user_id: self.user_id.clone(),
            attempt: self.attempt,
            cancel: self.cancel.child_token(),
            events,
            clock: Arc::clone(&self.clock),
            journal: self.journal.clone(),
            budget,
            inside: Some(key.to_owned()),
            deadlines,
            ..Self::new(self.thread_id.clone())
        }
    }

    #[must_use]
    pub fn with_events(mut self, events: Arc<dyn EventSink>) -> Self {
        self.events = events;
        self
    }

    /// The run ends when `cancel` is cancelled; a run that ends by itself leaves it alone.
    #[must_use]
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel.child_token();
        self
    }

    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Asks a person. The first time this pauses the run: pass the error on. When the run is resumed the hook, or the
    /// tool, runs again from its start and gets the answer here, so nothing before this line may have an effect that
    /// must not happen twice.
    ///
    /// ```
    /// # use hart_kernel::{Command, HookError, Interrupt, Middleware, RunContext, State, async_trait};
    /// # struct AskFirst;
    /// # #[async_trait]
    /// # impl Middleware for AskFirst {
    /// async fn after_model(&self, cx: &RunContext, _state: &State) -> Result<Command, HookError> {
    ///     let answer = cx.interrupt(Interrupt::new("may-i", "May I go on?"))?;
    ///     if answer == "yes" { Ok(Command::none()) } else { Err(HookError::Other("not allowed".into())) }
    /// }
    /// # }
    /// ```
    pub fn interrupt(&self, question: Interrupt) -> Result<Value, HookError> {
        let question = self.asked_here(question);
        let answer = self.answers.get().and_then(|answers| answers.get(&question.id));
        answer.cloned().ok_or_else(|| HookError::Interrupt(Box::new(question)))
    }

    /// Asks several questions at once, each to be answered by its id, in any order and number of times. The answers
    /// come back in the order of the questions, when all of them are there; see [`RunContext::interrupt`].
    pub fn interrupt_all(&self, questions: Vec<Interrupt>) -> Result<Vec<Value>, HookError> {
        let answers = self.answers.get();
        let answer = |question: &Interrupt| answers.and_then(|answers| answers.get(&question.id)).cloned();
        let (answered, open): (Vec<_>, Vec<_>) = questions
            .into_iter()
            .map(|question| self.asked_here(question))
            .map(|question| (answer(&question), question))
            .partition(|(answer, _)| answer.is_some());
        if open.is_empty() {
            return Ok(answered.into_iter().filter_map(|(answer, _)| answer).collect());
        }
        Err(HookError::Interrupts(open.into_iter().map(|(_, question)| question).collect()))
    }

    /// Two agents that work side by side may ask about calls of one id.
    fn asked_here(&self, question: Interrupt) -> Interrupt {
        match &self.inside {
            Some(call) => {
                let Interrupt { id, .. } = Interrupt::new(&format!("{call}/{}", question.id), Value::Null);
                Interrupt { id, ..question }
            }
            None => question,
        }
    }

    /// A tool's own name, whatever alias the model called it by.
    pub fn tool_name<'a>(&'a self, called: &'a str) -> &'a str {
        self.aliases.get().and_then(|aliases| aliases.get(called)).map_or(called, String::as_str)
    }

    /// Whether somebody has answered what is asked where this run goes on. One that goes on after a crash alone was not
    /// told anything.
    pub fn has_answers(&self) -> bool {
        self.answers.get().is_some_and(|answers| !answers.is_empty())
    }

    /// Whether this run goes on where an earlier one paused, or where an attempt of its own was cut off.
    pub fn is_resuming(&self) -> bool {
        self.answers.get().is_some()
    }

    /// Whether the run is being left to wait for an answer.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// From now on nobody hears what tools say while they run: for whoever has a word on their results.
    pub fn mute_tools(&self) {
        self.tools_muted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn tools_are_muted(&self) -> bool {
        self.tools_muted.load(Ordering::Relaxed)
    }

    pub(crate) fn set_answers(&self, answers: Answers) {
        // A context serves one run; a second resume on it would be a bug of the caller's, and changes nothing.
        let _ = self.answers.set(answers);
    }

    pub(crate) fn set_aliases(&self, aliases: &Aliases) {
        self.aliases.get_or_init(|| Arc::clone(aliases));
    }

    pub(crate) fn set_log(&self, log: Option<&Arc<dyn Checkpointer>>) {
        if let Some(log) = log {
            self.log.get_or_init(|| Arc::clone(log));
        }
    }

    pub(crate) fn log(&self) -> Option<&Arc<dyn Checkpointer>> {
        self.log.get()
    }

    pub(crate) fn answers(&self) -> Answers {
        self.answers.get().cloned().unwrap_or_default()
    }

    pub(crate) fn set_paused(&self) {
        self.paused.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_place(&self, head: Option<&CheckpointId>) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Place { head: head.cloned(), named: 0 };
    }

    /// An id for the next message of the model. One that is made again after a crash gets the one that it had, so that
    /// whoever saw its beginning knows what takes its place.
    pub(crate) fn next_message_id(&self) -> MessageId {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.named += 1;
        let named = place.named;
        let uuid = self.id_here(place.head.as_ref(), &format!("model/{named}"));
        MessageId::from(format!("lc_run--{uuid}"))
    }

    /// The id of a call's result; see [`RunContext::next_message_id`]. Two calls of one batch may have the same id.
    pub(crate) fn result_id(&self, nth: usize, call: &ToolCallId) -> MessageId {
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        MessageId::from(self.id_here(place.head.as_ref(), &format!("tools/{nth}/{call}")).to_string())
    }

    /// The id of a message of the input that came without one.
    pub(crate) fn input_message_id(&self, input: &CheckpointId, nth: usize) -> MessageId {
        MessageId::from(self.id_here(Some(input), &format!("input/{nth}")).to_string())
    }

    fn id_here(&self, head: Option<&CheckpointId>, name: &str) -> Uuid {
        match head {
            Some(head) => {
                let name = format!("{}/{head}/{name}", self.run_id);
                Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes())
            }
            // Without a log there is no place to come back to.
            None => Uuid::now_v7(),
        }
    }

    /// Until when foreign code may run on after the cancellation, which is now or was before.
    pub(crate) fn deadline(&self) -> Instant {
        let cancelled_at = *self.deadlines.cancelled_at.get_or_init(Instant::now);
        let unwinding = self.deadlines.unwinding.load(Ordering::Relaxed);
        let Grace { work, unwind } = self.deadlines.grace;
        cancelled_at + if unwinding { unwind } else { work }
    }

    /// Ends what runs, because the time is over.
    pub(crate) fn expire(&self, limit: Duration) {
        let _ = self.deadlines.over.set(limit);
        self.cancel.cancel();
    }

    /// The time the run was given, if that is why it was ended.
    pub(crate) fn expired(&self) -> Option<Duration> {
        self.deadlines.over.get().copied()
    }

    pub(crate) fn begin_unwinding(&self) {
        self.deadlines.unwinding.store(true, Ordering::Relaxed);
    }

    pub async fn emit(&self, event: AgentEvent) {
        self.events.emit(event).await;
    }
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext")
            .field("thread_id", &self.thread_id)
            .field("run_id", &self.run_id)
            .field("user_id", &self.user_id)
            .finish_non_exhaustive()
    }
}

/// Typed, unserialised storage that lives as long as the run: one value per type.
#[derive(Default)]
pub struct Scratch(
    /// Held only for the look-up itself, never across an await.
    Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
);

impl Scratch {
    /// The run's value of this type, made on first use.
    pub fn get_or_default<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = map.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        // The entry under a type's id always holds that type.
        Arc::clone(slot).downcast().unwrap_or_default()
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scratch")
    }
}
