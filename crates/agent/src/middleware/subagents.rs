//! Lets the agent hand work to others, and holds it to how much of it it may hand over.
//!
//! Invariant: a delegation that is not made is answered with why; one that is made enters the ledger.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hart_kernel::{
    Command, HookError, HookResult, Middleware, ModelNext, ModelRequest, ModelResponse, RunContext, Schema,
    State, StateError, Tool, ToolNext, ToolOutcome, ToolRequest, Update, async_trait,
};
use hart_types::{Message, MessageId, RunId, ToolCall, ToolStatus};
use tokio::sync::Semaphore;

use super::{RunUsage, UsageTotals};
use crate::subagents::{
    Delegated, Delegations, Kind, OnExcess, Outcomes, Recall, Reminded, SubagentsConfig, TASK, Task, Turn,
    TurnWrite, answer_in,
};
use crate::{Delegation, Listed};

/// Gives the model the tool `task`, with which it sends subagents ([`crate::Subagent`]).
///
/// - Of one answer `max_concurrent` work at a time; the others wait for their turn or are refused (`on_excess`). In a run
///   there are `max_total_per_run`.
/// - A subagent gets a share of what the run has left (tokens, money, calls, time), and never more than its own limits.
///   All of a run together have `max_tokens_per_run`. At a limit it makes its last call without tools and reports what it has. One that takes too long or says nothing for
///   `progress_timeout_seconds` is ended, and the last it said is its result.
/// - What it asks a person is asked by the run; the answer goes back to it.
/// - What was delegated is kept in the state key `delegations`. Where results are no longer in the conversation (it was
///   summed up), a reminder of them is put into the request, always at the same place.
///
/// Clients see `task_started`, `task_running`, `task_completed`, `task_failed`, `task_cancelled` and `task_timed_out` as
/// custom events, and all that a subagent says in its own namespace.
///
/// It is on in the mode `ultra`, and where [`crate::SuperAgentBuilder::delegates`] says so.
#[derive(Clone, Debug, Default)]
pub struct Subagents {
    kinds: Arc<[Kind]>,
    config: SubagentsConfig,
}

impl Subagents {
    pub(crate) fn new(kinds: Vec<Kind>, config: SubagentsConfig) -> Self {
        Self { kinds: kinds.into(), config }
    }

    /// What the prompt says of them.
    pub(crate) fn delegation(&self) -> Delegation {
        let listed = |kind: &Kind| Listed {
            name: kind.name.clone(),
            description: kind.description.clone(),
            path: None,
        };
        Delegation {
            kinds: self.kinds.iter().map(listed).collect(),
            per_answer: self.config.max_concurrent,
            per_run: self.config.max_total_per_run,
        }
    }

    /// Why a delegation is not made, or how it is. One that is made counts from here on.
    fn admit(&self, cx: &RunContext, request: &ToolRequest) -> Admission {
        let answer = answer_in(&request.state);
        let turn = request.state.get::<Turn>();
        let (before, of_answer) = turn.map_or((0, 0), |turn| turn.counted(answer.as_ref()));
        let on_their_way = cx.scratch.get_or_default::<OnTheirWay>();
        let mut on_their_way = on_their_way.0.lock().unwrap_or_else(PoisonError::into_inner);
        if on_their_way.0 != answer {
            *on_their_way = (answer, 0);
        }
        let nth = of_answer + on_their_way.1;
        let (most, in_all) = (self.config.max_concurrent, self.config.max_total_per_run);
        if before + nth >= in_all {
            return Admission::Refused(format!(
                "{in_all} delegations are the limit of a run. Do the rest yourself, or answer with what you have"
            ));
        }
        let admission = match self.config.on_excess {
            OnExcess::Refuse if nth >= most => {
                return Admission::Refused(format!(
                    "{most} delegations are the limit of an answer. Wait for the reports, then send this one again"
                ));
            }
            OnExcess::Queue => Admission::InTurn,
            OnExcess::Refuse => Admission::AtOnce,
        };
        on_their_way.1 += 1;
        admission
    }
}

enum Admission {
    Refused(String),
    /// When it is its turn.
    InTurn,
    AtOnce,
}

#[async_trait]
impl Middleware for Subagents {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<Delegations>()?.declare::<Turn>()?.declare::<Reminded>()?;
        Ok(())
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        if self.kinds.is_empty() {
            return Vec::new();
        }
        vec![Arc::new(Task::new(Arc::clone(&self.kinds), &self.config))]
    }

    async fn before_agent(&self, cx: &RunContext, state: &State) -> HookResult {
        // After a question or a crash it is the same task, and what it has sent counts.
        let begun = state.get::<Turn>().filter(|turn| cx.is_resuming() || turn.run == cx.run_id);
        let root = begun.map_or(&cx.run_id, |turn| &turn.run).clone();
        let _ = cx.scratch.get_or_default::<Root>().0.set(root.clone());
        Ok(match begun {
            Some(_) => Command::none(),
            None => Update::none().set::<Turn>(TurnWrite::Begun(root)).into(),
        })
    }

    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let recall = cx.scratch.get_or_default::<Recall>();
        let (messages, new) = recall.shown(&request.chat.messages, &request.state);
        request.chat.messages = messages;
        let mut response = next.run(request).await?;
        if let Some(place) = new {
            response.update.extend(Update::none().set::<Reminded>(place));
        }
        Ok(response)
    }

    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        if request.call.name != TASK {
            return next.run(request).await;
        }
        let turns = cx.scratch.get_or_default::<Turns>();
        let _turn = match self.admit(cx, &request) {
            Admission::Refused(why) => return Ok(refused(&request.call, &why)),
            Admission::InTurn => turns.of(self.config.max_concurrent).acquire().await.ok(),
            Admission::AtOnce => None,
        };
        let id = request.call.id.clone().unwrap_or_else(|| "".into());
        let answer = answer_in(&request.state);
        let counts_usage = request.state.get::<RunUsage>().is_some();
        let mut made = next.run(request).await?;
        let Some(outcome) = cx.scratch.get_or_default::<Outcomes>().take(&id) else { return Ok(made) };
        outcome.mark(&mut made.message);
        let mut update = Update::none()
            .set::<Delegations>(Delegated::of(&id, root(cx), &outcome))
            .set::<Turn>(TurnWrite::Sent { answer, tokens: outcome.tokens });
        if counts_usage {
            update.extend(booked(cx, outcome.usage));
        }
        made.command.update.extend(update);
        Ok(made)
    }

    async fn after_agent(&self, cx: &RunContext, state: &State) -> HookResult {
        let mut update = Update::none();
        if cx.is_paused() {
            // What they have used so far is this run's; the one that resumes them counts anew.
            let counts_usage = state.get::<RunUsage>().is_some();
            for (usage, waiting) in cx.scratch.get_or_default::<Outcomes>().take_waiting() {
                let answer = answer_in(state);
                update.extend(Update::none().set::<Turn>(TurnWrite::Waiting { answer, waiting }));
                if counts_usage {
                    update.extend(booked(cx, usage));
                }
            }
        }
        Ok(update.into())
    }
}

/// A subagent's use, as its run's.
fn booked(cx: &RunContext, usage: UsageTotals) -> Update {
    if usage.total.model_calls == 0 {
        return Update::none();
    }
    Update::none().set::<RunUsage>(UsageTotals { run_id: Some(cx.run_id.clone()), ..usage })
}

/// The run that the task was begun with, for as long as this one runs.
#[derive(Default)]
struct Root(OnceLock<RunId>);

fn root(cx: &RunContext) -> RunId {
    cx.scratch.get_or_default::<Root>().0.get().unwrap_or(&cx.run_id).clone()
}

/// Whose turn it is.
#[derive(Default)]
struct Turns(OnceLock<Semaphore>);

impl Turns {
    fn of(&self, most: u32) -> &Semaphore {
        self.0.get_or_init(|| Semaphore::new(most.max(1) as usize))
    }
}

/// Those of an answer that were let through and are not in the state yet. Never held across an await.
#[derive(Default)]
struct OnTheirWay(Mutex<(Option<MessageId>, u32)>);

fn refused(call: &Arc<ToolCall>, why: &str) -> ToolOutcome {
    let id = call.id.clone().unwrap_or_else(|| "".into());
    let text = format!("Error: nobody was sent: {why}.");
    ToolOutcome { message: Message::tool(&id, &call.name, ToolStatus::Error, text), command: Command::none() }
}
