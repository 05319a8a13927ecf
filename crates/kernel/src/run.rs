//! The loop: `BeforeAgent → (BeforeModel → Model → AfterModel → Tools)* → AfterAgent`.
//!
//! Invariant: whatever happens (an error, a panic in a hook, a cancellation), every middleware whose `before_agent`
//! returned gets its `after_agent`, and every write that was applied reaches the log.

mod pausing;
mod recovery;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use futures_util::future::join_all;
use hart_types::{Ai, Body, CheckpointId, Message};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::agent::Opened;
use crate::guarded::guarded;
use crate::interrupt::{Pause, Paused};
use crate::model_call::ModelCall;
use crate::tool_call::{Pending, ToolCallRunner};
use crate::{
    Agent, AgentEvent, Begun, Command, EffectKey, Ended, Goto, HookError, LoggedWrite, MessageWrites,
    Middleware, ModelNext, ModelRequest, ModelResponse, Next, Node, Reached, RunContext, RunError, RunInput,
    RunReport, State, Step, StepSource, Update, route,
};

pub(crate) use self::recovery::Left;

/// An answer with hundreds of calls must not start hundreds of processes at once.
const MAX_CONCURRENT_CALLS: usize = 32;

pub(crate) struct Execution<'a> {
    agent: &'a Agent,
    cx: &'a RunContext,
    state: State,
    /// The newest step of the log.
    head: Option<CheckpointId>,
    /// The step before the one that the run came to.
    parent: Option<CheckpointId>,
    /// What the thread had ahead when the run came to it.
    ahead: Option<String>,
    /// Where the loop is.
    at: Node,
    /// How many middlewares, from the outermost, have entered.
    entered: usize,
    /// Model calls and tool batches so far.
    steps: u32,
    /// Applied, but not in the log yet.
    unlogged: Vec<LoggedWrite>,
    /// Said beside an answer, or written while calls wait, until these have their results.
    held: Update,
    /// Steps that wait for the next one to be logged with it.
    begun: Vec<Step>,
    /// What an earlier attempt left, until it is taken up.
    left: Option<Left>,
    /// Whether calls may have been begun before.
    recalls: bool,
    /// What the run goes on with, until it has: no breakpoint stops it in front of that.
    goes_on_with: Option<String>,
    /// Whether the newest step that was logged here says that something is left to do.
    open: bool,
}

/// Why the loop was left before its end.
enum Stop {
    Failed(RunError),
    Paused(Pause),
    /// An earlier attempt had come to its end.
    Over(Ended),
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

/// The four hooks that look at the state and answer with a command.
#[derive(Clone, Copy, Debug)]
enum Hook {
    BeforeAgent,
    BeforeModel,
    AfterModel,
    AfterAgent,
}

impl Hook {
    /// Where a run that paused in it comes back to.
    fn node(self) -> Option<Node> {
        match self {
            Self::BeforeAgent => Some(Node::BeforeAgent),
            Self::BeforeModel => Some(Node::BeforeModel),
            Self::AfterModel => Some(Node::AfterModel),
            Self::AfterAgent => None,
        }
    }
}

impl<'a> Execution<'a> {
    pub(crate) fn new(agent: &'a Agent, cx: &'a RunContext, opened: Opened, left: Option<Left>) -> Self {
        let Opened { state, head, parent, next: ahead } = opened;
        let steps = left.as_ref().map_or(0, |left| left.steps);
        let recalls = cx.attempt > 1;
        Self {
            agent,
            cx,
            state,
            head,
            parent,
            ahead,
            at: Node::BeforeAgent,
            entered: 0,
            steps,
            unlogged: Vec::new(),
            held: Update::none(),
            begun: Vec::new(),
            left,
            recalls,
            goes_on_with: None,
            open: false,
        }
    }

    pub(crate) async fn run(mut self, input: RunInput) -> RunReport {
        let cx = self.cx;
        cx.budget.start();
        let driven = tokio::select! {
            biased;
            driven = self.drive(input) => driven,
            never = watch_time(cx) => match never {},
        };
        let ran = match driven {
            Ok(()) => Ok(Ended::Finished),
            Err(Stop::Failed(RunError::Cancelled)) => {
                Err(cx.expired().map_or(RunError::Cancelled, |limit| RunError::OutOfTime { limit }))
            }
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Paused(pause)) => self.pause(pause).await,
            Err(Stop::Over(ended)) => Ok(ended),
        };
        let ran = self.leave_what_was_held(ran.is_err()).await.and(ran);
        self.cx.begin_unwinding();
        let unwound = self.unwind().await;
        let logged = match &ran {
            // Nothing is left to do, also where a hook has jumped here without a word.
            Ok(Ended::Finished) if self.open => self.log(StepSource::End, self.waits_at()).await,
            // It comes no further by what is noted of a pause.
            Ok(Ended::Paused) => self.commit(StepSource::Pause, self.waits_at()).await,
            Ok(_) => self.commit(StepSource::End, self.waits_at()).await,
            // What did not come to its end is still to be done.
            Err(_) => self.commit(StepSource::End, self.waits_at().or(self.stopped_at())).await,
        };
        let outcome = ran.and_then(|ended| unwound.and(logged).map(|()| ended));
        RunReport { outcome, values: self.agent.snapshot(self.state) }
    }

    async fn drive(&mut self, input: RunInput) -> Result<(), Stop> {
        let left = self.left.take();
        let recovers = left.is_some();
        let mut resumed = match left {
            Some(left) => self.recover(left, input).await?,
            None => self.accept(input).await?,
        };
        let mut node = Node::BeforeAgent;
        loop {
            self.at = node;
            if self.cx.cancel.is_cancelled() {
                return Err(RunError::Cancelled.into());
            }
            let from = resumed.take_if(|pause| pause.node == node);
            // Whoever comes back after a crash has not been stopped here yet.
            let first =
                from.is_none() || (recovers && self.state.get::<Paused>().is_none_or(Option::is_none));
            let is_ahead = matches!(node, Node::Model | Node::Tools)
                && self.goes_on_with.take().is_some_and(|ahead| Some(ahead.as_str()) == node.name());
            if first && !is_ahead && self.cx.breakpoints.before.contain(node) {
                return Err(Stop::Paused(self.pause_at(node, None, Vec::new())));
            }
            let asker = from.as_ref().and_then(|pause| pause.middleware.as_deref());
            let goto = match node {
                Node::BeforeAgent => self.before_agent().await?,
                Node::BeforeModel => self.forward(Hook::BeforeModel, asker).await?,
                Node::Model => self.model().await?,
                Node::AfterModel => self.backward(Hook::AfterModel, asker).await?,
                Node::Tools => self.tools().await?,
                // `after_agent` belongs to the unwinding, which runs on every path.
                Node::AfterAgent | Node::End => return Ok(()),
            };
            if from.is_some() {
                self.forget_pause()?;
            }
            let goto = match goto {
                // As in LangGraph: results that a hook wrote are news to the model.
                None if node == Node::AfterModel && Pending::all_answered(self.state.messages()) => {
                    Some(Goto::Model)
                }
                goto => goto,
            };
            let next = match (&resumed, goto) {
                // All have entered; on from where the question was asked.
                (Some(pause), None) => pause.node,
                _ => route(node, goto, Pending::exist(self.state.messages())),
            };
            match Pending::exist(self.state.messages()) {
                true => self.note_what_is_held()?,
                false => self.say_what_was_held().await?,
            }
            match node {
                Node::AfterModel => self.commit(StepSource::Model, next.name()).await?,
                Node::Tools => self.commit(StepSource::Tools, next.name()).await?,
                _ => {}
            }
            // What clients call the model has answered when the hooks behind it have had their say.
            let done = match node {
                Node::Model => None,
                Node::AfterModel => Some(Node::Model),
                node => Some(node),
            };
            if done.is_some_and(|done| self.cx.breakpoints.after.contain(done)) && next.name().is_some() {
                return Err(Stop::Paused(self.pause_at(next, None, Vec::new())));
            }
            if goto == Some(Goto::Model) {
                // A hook that always jumps back must meet the limit too, and let others run.
                self.take_step()?;
                tokio::task::yield_now().await;
            }
            node = next;
        }
    }

    async fn before_agent(&mut self) -> Result<Option<Goto>, Stop> {
        for middleware in self.agent.chain.iter() {
            let command = self.call(Hook::BeforeAgent, middleware.as_ref()).await?;
            self.entered += 1;
            if let Some(goto) = self.obey(middleware.name(), command).await? {
                return Ok(Some(goto));
            }
        }
        Ok(None)
    }

    /// `from` is the middleware to begin with: the ones before it had their turn before the pause.
    async fn forward(&mut self, hook: Hook, from: Option<&str>) -> Result<Option<Goto>, Stop> {
        let chain = &self.agent.chain;
        let place = |from| chain.iter().position(|middleware| middleware.name() == from);
        let start = from.and_then(place).unwrap_or(0);
        for middleware in chain.iter().skip(start) {
            let command = self.call(hook, middleware.as_ref()).await?;
            if let Some(goto) = self.obey(middleware.name(), command).await? {
                return Ok(Some(goto));
            }
        }
        Ok(None)
    }

    async fn backward(&mut self, hook: Hook, from: Option<&str>) -> Result<Option<Goto>, Stop> {
        let chain = &self.agent.chain;
        let place = |from| chain.iter().rev().position(|middleware| middleware.name() == from);
        let start = from.and_then(place).unwrap_or(0);
        for middleware in chain.iter().rev().skip(start) {
            let command = self.call(hook, middleware.as_ref()).await?;
            if let Some(goto) = self.obey(middleware.name(), command).await? {
                return Ok(Some(goto));
            }
        }
        Ok(None)
    }

    /// Gives every entered middleware its `after_agent`, innermost first; the first failure is reported.
    async fn unwind(&mut self) -> Result<(), RunError> {
        let mut outcome = Ok(());
        for middleware in self.agent.chain.iter().take(self.entered).rev() {
            let left = match self.call(Hook::AfterAgent, middleware.as_ref()).await {
                Ok(command) => self.obey(middleware.name(), command).await.map(|_| ()),
                Err(Stop::Failed(error)) => Err(error),
                // `AfterAgent` has no node to come back to, so `call` never pauses there.
                Err(Stop::Paused(_) | Stop::Over(_)) => Ok(()),
            };
            outcome = outcome.and(left);
        }
        outcome
    }

    async fn call(&self, hook: Hook, middleware: &dyn Middleware) -> Result<Command, Stop> {
        let (cx, state, limit) = (self.cx, &self.state, self.agent.hook_timeout);
        let work = match hook {
            Hook::BeforeAgent => middleware.before_agent(cx, state),
            Hook::BeforeModel => middleware.before_model(cx, state),
            Hook::AfterModel => middleware.after_model(cx, state),
            Hook::AfterAgent => middleware.after_agent(cx, state),
        };
        guarded(cx, Some(limit), work).await.map_err(|source| match (source, hook.node()) {
            (HookError::Interrupt(question), Some(node)) => {
                Stop::Paused(self.pause_at(node, Some(middleware.name()), vec![*question]))
            }
            (HookError::Interrupts(questions), Some(node)) => {
                Stop::Paused(self.pause_at(node, Some(middleware.name()), questions))
            }
            (source, _) => RunError::hook(format!("`{}` in {hook:?}", middleware.name()), source).into(),
        })
    }

    async fn obey(&mut self, node: &str, command: Command) -> Result<Option<Goto>, RunError> {
        self.apply(node, command.update)
            .await
            .map_err(|source| RunError::hook(format!("a write of `{node}`"), source))?;
        Ok(command.goto)
    }

    async fn model(&mut self) -> Result<Option<Goto>, Stop> {
        self.take_step()?;
        self.cx.set_place(self.head.as_ref());
        let profile = self.agent.model.profile();
        let started = AgentEvent::ModelStarted {
            model: profile.name.as_str().into(),
            provider: profile.provider.as_str().into(),
            served_as: profile.served_as.as_str().into(),
        };
        self.cx.emit(started).await;
        let core = ModelCall { agent: self.agent };
        let request = ModelRequest {
            model: Arc::clone(&self.agent.model),
            chat: core.request(&self.state),
            state: self.state.clone(),
        };
        let next: ModelNext<'_> = Next { rest: &self.agent.chain, cx: self.cx, core: &core };
        let ModelResponse { message, update } = match guarded(self.cx, None, next.run(request)).await {
            Ok(response) => response,
            Err(HookError::Interrupt(question)) => {
                return Err(Stop::Paused(self.pause_at(Node::Model, None, vec![*question])));
            }
            Err(HookError::Interrupts(questions)) => {
                return Err(Stop::Paused(self.pause_at(Node::Model, None, questions)));
            }
            Err(source) => return Err(self.keep_partial(source).await.into()),
        };
        let mut all = Update::none().messages(MessageWrites::append([self.signed(message)]));
        all.extend(update);
        Ok(self.obey("model", all.into()).await?)
    }

    /// What a broken answer had said so far stays in the thread, marked; the calls it was about to make do not.
    async fn keep_partial(&mut self, mut source: HookError) -> RunError {
        let partial = match &mut source {
            HookError::Model(error) => error.take_partial(),
            _ => None,
        };
        if let Some(mut message) = partial.filter(|message| !message.content.is_empty()) {
            message.body = Body::Ai(Ai::default());
            message.response_metadata.insert("incomplete".to_owned(), Value::Bool(true));
            let kept = Update::none().messages(self.signed(message));
            if let Err(error) = self.apply("model", kept).await {
                tracing::warn!(%error, "the beginning of a broken answer could not be kept");
            }
        }
        RunError::hook("a wrapper of the model call", source)
    }

    /// Says whose answer it is; its fragments do not.
    fn signed(&self, mut message: Message) -> Message {
        message.name.get_or_insert_with(|| self.agent.signature.as_ref().to_owned());
        message
    }

    /// Runs the pending calls concurrently; their results enter the thread in call order.
    async fn tools(&mut self) -> Result<Option<Goto>, Stop> {
        self.take_step()?;
        if let Some(preparation) = self.cx.preparation.clone() {
            preparation.await;
        }
        self.cx.set_place(self.head.as_ref());
        let core = ToolCallRunner { agent: self.agent, begun: self.begun_before().await? };
        let pending = Pending::collect(self.state.messages());
        let state = core.with_noted(self.cx, &pending, self.state.clone());
        let slots = Semaphore::new(MAX_CONCURRENT_CALLS);
        let results = join_all(pending.iter().enumerate().map(async |call| {
            let _slot = slots.acquire().await;
            core.run(self.cx, &state, call).await
        }))
        .await;

        let mut messages: Vec<Message> = Vec::with_capacity(results.len());
        let mut update = Update::none();
        let mut goto = None;
        let mut failure = None;
        let mut questions = Vec::new();
        for (nth, (call, result)) in pending.iter().zip(results).enumerate() {
            match result {
                Ok(outcome) => {
                    messages.push(outcome.message);
                    update.extend(outcome.command.update);
                    goto = later(goto, outcome.command.goto);
                }
                Err(HookError::Interrupt(question)) => questions.push(*question),
                Err(HookError::Interrupts(several)) => questions.extend(several),
                // The call still gets an answer, so that the thread can go on after the failed run.
                Err(source) => {
                    messages.push(call.failed(self.cx, nth, &source));
                    failure = failure.or(Some(RunError::hook(format!("tool `{}`", call.name()), source)));
                }
            }
        }
        let mut all = Update::none().messages(MessageWrites::append(messages));
        all.extend(update);
        self.obey("tools", all.into()).await?;
        match failure {
            Some(failure) => Err(failure.into()),
            None if questions.is_empty() => Ok(goto),
            // The calls that ask have no result yet, so coming back to the tools runs just them.
            None => {
                self.commit(StepSource::Tools, Node::Tools.name()).await?;
                Err(Stop::Paused(self.pause_at(Node::Tools, None, questions)))
            }
        }
    }

    /// What earlier attempts have begun: only the first batch of a later one can meet any of it.
    async fn begun_before(&mut self) -> Result<HashMap<EffectKey, Begun>, RunError> {
        match &self.cx.journal {
            Some(journal) if std::mem::take(&mut self.recalls) => {
                let begun = journal.recall().await.map_err(RunError::Checkpoint)?;
                Ok(begun.into_iter().map(|begun| (begun.key.clone(), begun)).collect())
            }
            _ => Ok(HashMap::new()),
        }
    }

    fn take_step(&mut self) -> Result<(), RunError> {
        let most = self.agent.recursion_limit;
        let limit = self.cx.recursion_limit.map_or(most, |limit| limit.min(most));
        if self.steps >= limit {
            return Err(RunError::RecursionLimit { limit });
        }
        self.steps += 1;
        Ok(())
    }

    /// The one place where the state changes.
    async fn apply(&mut self, node: &str, update: Update) -> Result<(), HookError> {
        if update.is_empty() {
            return Ok(());
        }
        let writes = update.to_writes();
        let messages = update.message_writes();
        self.state.apply(update)?;
        self.cx.emit(AgentEvent::updates(node, &writes)).await;
        for message in messages {
            self.cx.emit(AgentEvent::Message(message)).await;
        }
        self.unlogged.extend(writes);
        Ok(())
    }

    /// What was applied since the last step becomes one.
    async fn commit(&mut self, source: StepSource, next: Option<&str>) -> Result<(), RunError> {
        if self.unlogged.is_empty() { Ok(()) } else { self.log(source, next).await }
    }

    async fn log(&mut self, source: StepSource, next: Option<&str>) -> Result<(), RunError> {
        self.log_as(CheckpointId::generate(), source, next).await
    }

    async fn log_as(
        &mut self,
        id: CheckpointId,
        source: StepSource,
        next: Option<&str>,
    ) -> Result<(), RunError> {
        let parent = self.head.clone();
        if let Some(deck) = &self.cx.deck {
            deck.reached(Some(&id)).await;
        }
        if let Some(checkpointer) = &self.agent.checkpointer {
            let writes = std::mem::take(&mut self.unlogged);
            let step = self.step(&id, source, writes, next);
            let steps: Arc<[Step]> = self.begun.iter().cloned().chain([step]).collect();
            if let Err(error) = checkpointer.append(&self.cx.thread_id, Arc::clone(&steps)).await {
                // Still to be logged: with whatever comes next.
                self.unlogged = steps.last().map(|step| step.writes.clone()).unwrap_or_default();
                return Err(RunError::Checkpoint(error));
            }
            self.begun.clear();
        }
        self.unlogged.clear();
        self.open = next.is_some();
        self.head = Some(id.clone());
        let values = self.agent.snapshot(self.state.clone());
        let next = next.map(Arc::from);
        self.cx.emit(AgentEvent::Values(Reached { checkpoint: id, parent, source, next, values })).await;
        Ok(())
    }
}

impl Execution<'_> {
    fn step(
        &self,
        id: &CheckpointId,
        source: StepSource,
        writes: Vec<LoggedWrite>,
        next: Option<&str>,
    ) -> Step {
        Step {
            id: id.clone(),
            parent: self.head.clone(),
            run_id: self.cx.run_id.clone(),
            source,
            created_at: self.cx.clock.now(),
            writes,
            next: next.map(str::to_owned),
        }
    }

    /// The state before the input, to come back to: a client that asks anew starts from there.
    async fn begin(&mut self, id: CheckpointId) {
        if self.agent.checkpointer.is_none() {
            return;
        }
        let (source, next) = (StepSource::Start, "__start__");
        // A question that was left open is not asked there any more.
        let left = std::mem::take(&mut self.unlogged);
        let begun = self.step(&id, source, left, Some(next));
        let values = self.agent.snapshot(self.state.clone());
        let parent = begun.parent.clone();
        self.begun.push(begun);
        self.head = Some(id.clone());
        let reached = Reached { checkpoint: id, parent, source, next: Some(next.into()), values };
        self.cx.emit(AgentEvent::Values(reached)).await;
    }

    /// What was applied so far becomes a step with the next one: whoever finds the one finds the other.
    async fn stage(&mut self, source: StepSource, next: Option<&str>) {
        // What nobody is shown makes no state.
        if self.agent.checkpointer.is_none() || self.unlogged.iter().all(|write| write.private) {
            return;
        }
        let id = CheckpointId::generate();
        let writes = std::mem::take(&mut self.unlogged);
        let step = self.step(&id, source, writes, next);
        let values = self.agent.snapshot(self.state.clone());
        let (checkpoint, parent, next) = (id.clone(), step.parent.clone(), next.map(Arc::from));
        self.begun.push(step);
        self.head = Some(id);
        self.cx.emit(AgentEvent::Values(Reached { checkpoint, parent, source, next, values })).await;
    }
}

/// Ends what runs when the time is over, whoever is deaf to it; the loop then ends by itself.
async fn watch_time(cx: &RunContext) -> Infallible {
    let limit = cx.budget.out_of_time().await;
    cx.expire(limit);
    std::future::pending().await
}

/// Of two jumps asked for by tools of one batch, the one that ends the run wins; otherwise the first.
fn later(first: Option<Goto>, second: Option<Goto>) -> Option<Goto> {
    match (first, second) {
        (_, Some(Goto::End)) => Some(Goto::End),
        (Some(first), _) => Some(first),
        (None, second) => second,
    }
}
