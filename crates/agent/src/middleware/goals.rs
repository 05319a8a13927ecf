//! Holds an agent to the goal of its thread.
//!
//! Invariant: an agent is sent on a bounded number of times, and only where a judge says that it can go on by itself.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hart_kernel::{
    AgentEvent, ChatModel, ChatRequest, Command, Goto, HookResult, MessageWrites, Middleware, ModelSettings,
    Reasoning, RunContext, Schema, State, StateError, Update, async_trait, side_call,
};
use hart_types::{Message, MessageId};
use serde_json::json;

use super::skills::newest_question;
use crate::answer::stop_reason;
use crate::goal::{Blocker, Evaluation, Goal, GoalConfig, GoalWrite, OBJECTIVE_CHARS, ThreadGoal, question};
use crate::reminder::background;

/// Judges an agent that ends by the goal of its thread, and sends it on.
///
/// A goal is the state key `goal`, set by a client with a run's input: `{"goal": "the tests pass"}`; `null` clears it. A
/// user sets it with the message `/goal the tests pass`, clears it with `/goal clear` and asks for it with `/goal`.
/// When the agent ends its turn, a model judges from the end of the conversation. A goal that is reached is cleared. Where
/// the agent could go on by itself (`goal_not_met_yet`) it is told what is missing and goes on, `max_continuations` times
/// in a run at most (the goal's own number, where that is less), and not a third time in a row without anything new. What
/// it costs is the run's; where the run has no room for it, the agent ends. Clients see `goal_evaluated` as a custom event.
///
/// A thread without a goal costs nothing; one with a goal costs a model call at each end of a turn. With
/// `enabled: false` a goal is kept and nobody is held to it; whoever sets one is told.
#[derive(Clone)]
pub struct Goals {
    config: GoalConfig,
    judge: Arc<dyn ChatModel>,
}

impl Goals {
    /// `judge` may be a cheap model.
    pub fn new(config: GoalConfig, judge: Arc<dyn ChatModel>) -> Self {
        Self { config, judge }
    }

    async fn evaluate(&self, cx: &RunContext, goal: &Goal, state: &State) -> Option<Evaluation> {
        let request = ChatRequest {
            caller: CALLER.into(),
            system: Some(PROMPT.trim().into()),
            messages: vec![Arc::new(Message::human(question(goal, state.messages())))].into(),
            tools: Arc::new([]),
            settings: ModelSettings {
                reasoning: Reasoning::Off,
                output: Evaluation::format(),
                ..ModelSettings::default()
            },
        };
        let answer = match tokio::time::timeout(PATIENCE, side_call(cx, self.judge.as_ref(), request)).await {
            Ok(Ok(answer)) => answer.text(),
            Ok(Err(error)) => {
                tracing::warn!(%error, "a goal could not be judged; the agent ends");
                return None;
            }
            Err(_) => {
                tracing::warn!("the judge of a goal took too long; the agent ends");
                return None;
            }
        };
        let evaluation = Evaluation::parse(&answer);
        if evaluation.is_none() {
            tracing::warn!("what the judge of a goal said cannot be read; the agent ends");
        }
        evaluation
    }
}

/// What follows `/goal`, if a message begins with it.
fn command(text: &str) -> Option<String> {
    let rest = text.trim().strip_prefix("/goal")?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim().to_owned())
}

impl Goals {
    /// Does what a user says about the goal; only who sets one has the agent work.
    fn obey(&self, cx: &RunContext, words: &str, state: &State) -> Command {
        let answer = |text: String| {
            let answer = Message::ai(text).with_id(MessageId::generate());
            Command::from(Update::none().messages(answer)).goto(Goto::End)
        };
        if !self.config.enabled {
            return answer("Goals are off here. To have them: `goal: {enabled: true}`.".to_owned());
        }
        let known = state.get::<ThreadGoal>().and_then(Option::as_ref);
        match (words, known) {
            ("", None) => answer("There is no goal. `/goal what is to be reached` sets one.".to_owned()),
            ("", Some(goal)) => answer(format!("The goal is: {}", goal.objective)),
            ("clear" | "reset" | "off", _) => {
                let mut done = answer("There is no goal any more.".to_owned());
                done.update.extend(Update::none().set::<ThreadGoal>(GoalWrite::Clear));
                done
            }
            // An attempt before a crash has set it.
            (words, Some(goal)) if goal.objective == words => Command::none(),
            (words, _) if words.chars().count() > OBJECTIVE_CHARS => {
                answer(format!("A goal has at most {OBJECTIVE_CHARS} characters; say it shorter."))
            }
            (words, _) => {
                let goal = Goal { objective: words.to_owned(), ..Goal::default() };
                let goal = goal.completed(&self.config, cx.clock.now()).unwrap_or(goal);
                let text =
                    format!("The user has set a goal for this conversation. Work towards it now:\n{words}");
                let update = Update::none().set::<ThreadGoal>(GoalWrite::Whole(Box::new(goal)));
                update.messages(MessageWrites::append([background(CALLER, text)])).into()
            }
        }
    }
}

const CALLER: &str = "goal";
const PROMPT: &str = include_str!("../../prompts/goal.md");
const PATIENCE: Duration = Duration::from_secs(60);

#[async_trait]
impl Middleware for Goals {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<ThreadGoal>()?;
        Ok(())
    }

    async fn before_agent(&self, cx: &RunContext, state: &State) -> HookResult {
        if !cx.is_resuming()
            && let Some(words) = newest_question(state).and_then(|message| command(&message.text()))
        {
            return Ok(self.obey(cx, &words, state));
        }
        let Some(goal) = state.get::<ThreadGoal>().and_then(Option::as_ref) else {
            return Ok(Command::none());
        };
        if !self.config.enabled {
            tracing::warn!(
                "a goal is set, and goals are off: nobody is held to it; set `goal.enabled: true`"
            );
            return Ok(Command::none());
        }
        // A person has spoken since.
        let counts_anew = !cx.is_resuming() && goal.continuation_count > 0;
        let completed = goal.completed(&self.config, cx.clock.now());
        if !counts_anew && completed.is_none() {
            return Ok(Command::none());
        }
        let mut goal = completed.unwrap_or_else(|| goal.clone());
        if counts_anew {
            (goal.continuation_count, goal.no_progress_count) = (0, 0);
        }
        Ok(Update::none().set::<ThreadGoal>(GoalWrite::Whole(Box::new(goal))).into())
    }

    async fn after_model(&self, cx: &RunContext, state: &State) -> HookResult {
        let Some(goal) = state.get::<ThreadGoal>().cloned().flatten() else { return Ok(Command::none()) };
        if !self.config.enabled || !has_ended(state) {
            return Ok(Command::none());
        }
        let goal = goal.completed(&self.config, cx.clock.now()).unwrap_or(goal);
        let Some(evaluation) = self.evaluate(cx, &goal, state).await else { return Ok(Command::none()) };
        let goes_on = evaluation.blocker == Blocker::GoalNotMetYet && !evaluation.satisfied;
        let same = goal.last_evaluation.as_ref().is_some_and(|last| last.reason == evaluation.reason);
        let no_progress_count = if same { goal.no_progress_count + 1 } else { 0 };
        let may = Some(goal.continuation_count) < goal.max_continuations
            && Some(no_progress_count) < goal.max_no_progress_continuations;
        let event = json!({
            "type": "goal_evaluated", "objective": goal.objective, "evaluation": evaluation,
            "continues": goes_on && may, "continuation_count": goal.continuation_count,
        });
        cx.emit(AgentEvent::Custom(event)).await;
        if evaluation.satisfied {
            return Ok(Update::none().set::<ThreadGoal>(GoalWrite::Clear).into());
        }
        let sent_on = goes_on && may;
        let text = format!(
            "The goal of this conversation is not reached yet:\n{}\n\nWhat is missing: {}\nGo on with it now. If only the \
             user can say how, say so and end.",
            goal.objective, evaluation.reason
        );
        let continuation_count = goal.continuation_count + u32::from(sent_on);
        let updated_at = Some(cx.clock.now());
        let goal = Goal {
            continuation_count,
            no_progress_count,
            updated_at,
            last_evaluation: Some(evaluation),
            ..goal
        };
        let update = Update::none().set::<ThreadGoal>(GoalWrite::Whole(Box::new(goal)));
        Ok(match sent_on {
            true => Command::from(update.messages(background(CALLER, text))).goto(Goto::Model),
            false => update.into(),
        })
    }
}

/// Whether the agent is done by its own choice.
fn has_ended(state: &State) -> bool {
    state.messages().last().is_some_and(|last| {
        let whole = !last.response_metadata.contains_key("incomplete") && stop_reason(last).is_none();
        let calls = |ai: &hart_types::Ai| !ai.tool_calls.is_empty() || !ai.invalid_tool_calls.is_empty();
        whole && last.as_ai().is_some_and(|ai| !calls(ai))
    })
}

impl fmt::Debug for Goals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let judge = &self.judge.profile().name;
        f.debug_struct("Goals").field("config", &self.config).field("judge", judge).finish()
    }
}
