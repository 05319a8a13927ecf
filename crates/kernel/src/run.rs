//! The loop: `BeforeAgent → (BeforeModel → Model → AfterModel → Tools)* → AfterAgent`.
//!
//! Invariant: whatever happens (an error, a panic in a hook, a cancellation), every middleware whose `before_agent`
//! returned gets its `after_agent`, and every write that was applied reaches the log.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::join_all;
use hart_types::{Ai, Body, CheckpointId, Message};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::model_call::ModelCall;
use crate::tool_call::{Pending, ToolCallRunner};
use crate::{
    Agent, AgentEvent, Command, Goto, HookError, LoggedWrite, MessageWrites, Middleware, ModelError,
    ModelNext, ModelRequest, ModelResponse, Next, Node, RunContext, RunError, Snapshot, State, Step,
    StepSource, Update, route,
};

/// How a run ended, and the state it reached.
#[derive(Debug)]
pub struct RunReport {
    pub outcome: Result<(), RunError>,
    pub values: Snapshot,
}

impl RunReport {
    pub fn state(&self) -> &State {
        &self.values.state
    }

    /// The last message's text, if the agent had the last word.
    pub fn answer(&self) -> Option<String> {
        let last = self.state().messages().last()?;
        last.as_ai().map(|_| last.text())
    }
}

/// An answer with hundreds of calls must not start hundreds of processes at once.
const MAX_CONCURRENT_CALLS: usize = 32;

pub(crate) struct Execution<'a> {
    agent: &'a Agent,
    cx: &'a RunContext,
    state: State,
    /// How many middlewares, from the outermost, have entered.
    entered: usize,
    /// Model calls and tool batches so far.
    steps: u32,
    /// Applied, but not in the log yet.
    unlogged: Vec<LoggedWrite>,
}

/// The four hooks that look at the state and answer with a command.
#[derive(Clone, Copy, Debug)]
enum Hook {
    BeforeAgent,
    BeforeModel,
    AfterModel,
    AfterAgent,
}

impl<'a> Execution<'a> {
    pub(crate) fn new(agent: &'a Agent, cx: &'a RunContext, state: State) -> Self {
        Self { agent, cx, state, entered: 0, steps: 0, unlogged: Vec::new() }
    }

    pub(crate) async fn run(mut self, input: Update) -> RunReport {
        let ran = self.drive(input).await;
        self.cx.begin_unwinding();
        let unwound = self.unwind().await;
        let logged = self.commit(StepSource::End).await;
        RunReport { outcome: ran.and(unwound).and(logged), values: self.agent.snapshot(self.state) }
    }

    async fn drive(&mut self, input: Update) -> Result<(), RunError> {
        self.apply("input", input).await.map_err(|error| match error {
            HookError::State(error) => RunError::Input(error),
            other => RunError::hook("the input", other),
        })?;
        // The user's words are safe before anything acts on them.
        self.commit(StepSource::Input).await?;
        let mut node = Node::BeforeAgent;
        loop {
            if self.cx.cancel.is_cancelled() {
                return Err(RunError::Cancelled);
            }
            let goto = match node {
                Node::BeforeAgent => self.before_agent().await?,
                Node::BeforeModel => self.forward(Hook::BeforeModel).await?,
                Node::Model => self.model().await?,
                Node::AfterModel => self.backward(Hook::AfterModel).await?,
                Node::Tools => self.tools().await?,
                // `after_agent` belongs to the unwinding, which runs on every path.
                Node::AfterAgent | Node::End => return Ok(()),
            };
            match node {
                Node::AfterModel => self.commit(StepSource::Model).await?,
                Node::Tools => self.commit(StepSource::Tools).await?,
                _ => {}
            }
            if goto == Some(Goto::Model) {
                // A hook that always jumps back must meet the limit too, and let others run.
                self.take_step()?;
                tokio::task::yield_now().await;
            }
            node = route(node, goto, Pending::exist(self.state.messages()));
        }
    }

    async fn before_agent(&mut self) -> Result<Option<Goto>, RunError> {
        for middleware in &self.agent.chain {
            let command = self.call(Hook::BeforeAgent, middleware.as_ref()).await?;
            self.entered += 1;
            if let Some(goto) = self.obey(middleware.name(), command).await? {
                return Ok(Some(goto));
            }
        }
        Ok(None)
    }

    async fn forward(&mut self, hook: Hook) -> Result<Option<Goto>, RunError> {
        for middleware in &self.agent.chain {
            let command = self.call(hook, middleware.as_ref()).await?;
            if let Some(goto) = self.obey(middleware.name(), command).await? {
                return Ok(Some(goto));
            }
        }
        Ok(None)
    }

    async fn backward(&mut self, hook: Hook) -> Result<Option<Goto>, RunError> {
        for middleware in self.agent.chain.iter().rev() {
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
                Err(error) => Err(error),
            };
            outcome = outcome.and(left);
        }
        outcome
    }

    async fn call(&self, hook: Hook, middleware: &dyn Middleware) -> Result<Command, RunError> {
        let (cx, state) = (self.cx, &self.state);
        let command = match hook {
            Hook::BeforeAgent => guarded(cx, middleware.before_agent(cx, state)).await,
            Hook::BeforeModel => guarded(cx, middleware.before_model(cx, state)).await,
            Hook::AfterModel => guarded(cx, middleware.after_model(cx, state)).await,
            Hook::AfterAgent => guarded(cx, middleware.after_agent(cx, state)).await,
        };
        command.map_err(|source| RunError::hook(format!("`{}` in {hook:?}", middleware.name()), source))
    }

    async fn obey(&mut self, node: &str, command: Command) -> Result<Option<Goto>, RunError> {
        self.apply(node, command.update)
            .await
            .map_err(|source| RunError::hook(format!("a write of `{node}`"), source))?;
        Ok(command.goto)
    }

    async fn model(&mut self) -> Result<Option<Goto>, RunError> {
        self.take_step()?;
        let core = ModelCall { agent: self.agent };
        let request = ModelRequest { chat: core.request(&self.state), state: self.state.clone() };
        let next: ModelNext<'_> = Next { rest: &self.agent.chain, cx: self.cx, core: &core };
        let ModelResponse { message, update } = match guarded(self.cx, next.run(request)).await {
            Ok(response) => response,
            Err(source) => return Err(self.keep_partial(source).await),
        };
        let mut all = Update::none().messages(MessageWrites::append([message]));
        all.extend(update);
        self.obey("model", all.into()).await
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
            if let Err(error) = self.apply("model", Update::none().messages(message)).await {
                tracing::warn!(%error, "the beginning of a broken answer could not be kept");
            }
        }
        RunError::hook("a wrapper of the model call", source)
    }

    /// Runs the pending calls concurrently; their results enter the thread in call order.
    async fn tools(&mut self) -> Result<Option<Goto>, RunError> {
        self.take_step()?;
        let core = ToolCallRunner { agent: self.agent };
        let pending = Pending::collect(self.state.messages());
        let slots = Semaphore::new(MAX_CONCURRENT_CALLS);
        let results = join_all(pending.iter().map(async |call| {
            let _slot = slots.acquire().await;
            core.run(self.cx, &self.state, call).await
        }))
        .await;

        let mut messages: Vec<Message> = Vec::with_capacity(results.len());
        let mut update = Update::none();
        let mut goto = None;
        let mut failure = None;
        for (call, result) in pending.iter().zip(results) {
            match result {
                Ok(outcome) => {
                    messages.push(outcome.message);
                    update.extend(outcome.command.update);
                    goto = later(goto, outcome.command.goto);
                }
                // The call still gets an answer, so that the thread can go on after the failed run.
                Err(source) => {
                    messages.push(call.failed(&source));
                    failure = failure.or(Some(RunError::hook(format!("tool `{}`", call.name()), source)));
                }
            }
        }
        let mut all = Update::none().messages(MessageWrites::append(messages));
        all.extend(update);
        self.obey("tools", all.into()).await?;
        failure.map_or(Ok(goto), Err)
    }

    fn take_step(&mut self) -> Result<(), RunError> {
        let limit = self.agent.recursion_limit;
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

    async fn commit(&mut self, source: StepSource) -> Result<(), RunError> {
        if self.unlogged.is_empty() {
            return Ok(());
        }
        if let Some(checkpointer) = &self.agent.checkpointer {
            let step = Step {
                id: CheckpointId::generate(),
                run_id: self.cx.run_id.clone(),
                source,
                created_at: self.cx.clock.now(),
                writes: self.unlogged.clone(),
            };
            checkpointer.append(&self.cx.thread_id, step).await.map_err(RunError::Checkpoint)?;
        }
        self.unlogged.clear();
        self.cx.emit(AgentEvent::Values(self.agent.snapshot(self.state.clone()))).await;
        Ok(())
    }
}

/// Of two jumps asked for by tools of one batch, the one that ends the run wins; otherwise the first.
fn later(first: Option<Goto>, second: Option<Goto>) -> Option<Goto> {
    match (first, second) {
        (_, Some(Goto::End)) => Some(Goto::End),
        (Some(first), _) => Some(first),
        (None, second) => second,
    }
}

/// Runs foreign code so that neither a panic nor a deaf ear to cancellation gets past it.
pub(crate) async fn guarded<T>(
    cx: &RunContext,
    work: impl Future<Output = Result<T, HookError>>,
) -> Result<T, HookError> {
    let mut work = Box::pin(AssertUnwindSafe(work).catch_unwind());
    let finished = tokio::select! {
        biased;
        finished = &mut work => finished,
        () = cx.cancel.cancelled() => match tokio::time::timeout_at(cx.deadline(), &mut work).await {
            Ok(finished) => finished,
            Err(_) => return Err(ModelError::cancelled().into()),
        },
    };
    finished.unwrap_or_else(|panic| Err(HookError::Panic(panic_text(panic.as_ref()))))
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
