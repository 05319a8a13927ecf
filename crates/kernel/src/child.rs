//! An agent that works inside a call of another agent.
//!
//! Invariant: the two share the thread's place, the run's time, money and cancellation, and nothing else. What the child
//! has done is in a log of its own, so it goes on where it was, after a question as after a crash.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use hart_types::{Resume, ToolCallId};
use sha2::{Digest, Sha256};

use crate::interrupt::Paused;
use crate::tool_call::answer_id;
use crate::{
    Agent, AgentEvent, Budget, Ended, EventSink, Exhausted, Interrupt, Limits, RunContext, RunError,
    RunInput, RunReport, Timestamp, ToolContext, Update,
};

/// What a tool needs to let an agent work inside its call.
///
/// ```
/// use std::sync::Arc;
/// use hart_kernel::{Agent, Child, Limits, ToolContext, ToolError, ToolOutput, Update};
/// use hart_kernel::types::Message;
///
/// async fn ask_another(cx: &ToolContext<'_>, agent: &Agent, question: &str) -> Result<ToolOutput, ToolError> {
///     let child = Child::enter(cx, agent, &Limits::default()).await.map_err(|error| ToolError::Fatal(error.into()))?;
///     let report = child.run(Update::none().messages(Message::human(question))).await;
///     match report.values.interrupts() {
///         [] => Ok(report.answer().unwrap_or_default().into()),
///         questions => Err(ToolError::Interrupts(questions.to_vec())),
///     }
/// }
/// ```
pub struct Child {
    agent: Agent,
    /// Its own; cancelling it ends the child alone.
    pub cx: RunContext,
    /// What it had asked when it was left, and what of it has been answered since.
    asked: Option<(Vec<Interrupt>, Resume)>,
    began: Option<Timestamp>,
}

/// Why an agent cannot begin its work.
#[derive(Debug, thiserror::Error)]
pub enum NotEntered {
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    #[error(transparent)]
    Log(RunError),
}

impl Child {
    /// `limits` is what the child may use at most, of what the run has left.
    pub async fn enter(cx: &ToolContext<'_>, agent: &Agent, limits: &Limits) -> Result<Self, NotEntered> {
        Self::enter_within(cx, agent, &cx.run.budget, limits, &Limits::default()).await
    }

    /// As [`Child::enter`], of what is left of `part`: the run's budget, or a part of it that several children share.
    /// `from_now` is what it may use of that, whatever it used before the run paused with it.
    pub async fn enter_within(
        cx: &ToolContext<'_>,
        agent: &Agent,
        part: &Budget,
        limits: &Limits,
        from_now: &Limits,
    ) -> Result<Self, NotEntered> {
        let key = key(cx);
        let agent = agent.keeping_steps_in(cx.run.log().and_then(|log| log.inside(&key)));
        // Only whoever comes back can have left something.
        let comes_back = cx.run.attempt > 1 || cx.run.is_resuming();
        let left =
            if comes_back { left(&agent, cx.run).await.map_err(NotEntered::Log)? } else { Left::default() };
        let asked = left.asked.map(|asked| {
            let mut answers = cx.run.answers();
            answers.retain(|id, _| asked.iter().any(|question| question.id == *id));
            (asked, Resume::ById(answers))
        });
        // Whoever paused with it has counted it.
        let budget = part.slice(limits, from_now, asked.is_some())?;
        let events = Arc::new(Inside {
            outer: Arc::clone(&cx.run.events),
            call: cx.call_id.clone(),
            agent: Arc::clone(&agent.name),
        });
        let cx = cx.run.inside(&key, budget, events);
        Ok(Self { agent, cx, asked, began: left.began })
    }

    /// Lets another hear what the child says, around whoever hears it now.
    #[must_use]
    pub fn heard_by(mut self, wrap: impl FnOnce(Arc<dyn EventSink>) -> Arc<dyn EventSink>) -> Self {
        self.cx.events = wrap(self.cx.events);
        self
    }

    /// Whether the child goes on with what it had begun before.
    pub fn goes_on(&self) -> bool {
        self.began.is_some()
    }

    /// Since when there are steps of its work; none where it begins now.
    pub fn began(&self) -> Option<Timestamp> {
        self.began
    }

    pub fn budget(&self) -> &Budget {
        &self.cx.budget
    }

    /// Works on `task`, or goes on with it. A child that still waits for an answer says so at once.
    pub async fn run(&self, task: Update) -> RunReport {
        let input = match &self.asked {
            Some((_, Resume::ById(answers))) if answers.is_empty() => return self.still_asks().await,
            Some((_, resume)) => RunInput::from(resume.clone()),
            None => RunInput::Words(task),
        };
        self.agent.run(input, &self.cx).await
    }

    async fn still_asks(&self) -> RunReport {
        match self.agent.load(&self.cx.thread_id).await {
            Ok(state) => RunReport { outcome: Ok(Ended::Paused), values: self.agent.snapshot(state) },
            Err(error) => {
                RunReport { outcome: Err(error), values: self.agent.snapshot(crate::State::default()) }
            }
        }
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("agent", &self.agent).field("cx", &self.cx).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Left {
    began: Option<Timestamp>,
    asked: Option<Vec<Interrupt>>,
}

async fn left(agent: &Agent, cx: &RunContext) -> Result<Left, RunError> {
    let Some(log) = &agent.checkpointer else { return Ok(Left::default()) };
    let steps = log.load(&cx.thread_id, None).await.map_err(RunError::Checkpoint)?;
    let began = steps.first().map(|step| step.created_at);
    let pause = agent.fold(steps).get::<Paused>().cloned().flatten();
    Ok(Left { began, asked: pause.map(|pause| pause.interrupts) })
}

/// Names the call, whichever run makes it: by the answer it stands in, and its id.
fn key(cx: &ToolContext<'_>) -> String {
    let answer = answer_id(cx.state.messages()).map_or("", |id| id.as_str());
    let mut hash = Sha256::new();
    for part in [answer, cx.call_id.as_str()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Passes on what a child says as what was said inside its call.
struct Inside {
    outer: Arc<dyn EventSink>,
    call: ToolCallId,
    agent: Arc<str>,
}

#[async_trait]
impl EventSink for Inside {
    async fn emit(&self, event: AgentEvent) {
        let (call_id, agent) = (self.call.clone(), Arc::clone(&self.agent));
        self.outer.emit(AgentEvent::Child { call_id, agent, event: Box::new(event) }).await;
    }
}
