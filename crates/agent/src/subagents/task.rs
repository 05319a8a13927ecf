//! `task`: hands a part of the work to another agent and waits for its report.
//!
//! Invariant: a delegation has exactly one result, however it ended; a question asked in it is not one.

use std::sync::Arc;
use std::time::Duration;

use hart_kernel::{
    Child, Effect, NotEntered, RunReport, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, Update,
    async_trait,
};
use hart_types::Message;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::outcome::{self, Outcome, Outcomes};
use super::story::Story;
use super::{Kind, Pool, SubagentsConfig, share};
use crate::middleware::ActiveSkills;

pub(crate) const TASK: &str = "task";

pub(crate) struct Task {
    kinds: Arc<[Kind]>,
    /// After which silence a subagent is ended.
    patience: Duration,
    /// What all of a run may use together.
    in_all: Option<u64>,
    spec: Arc<ToolSpec>,
}

/// What the model writes.
#[derive(Deserialize)]
struct Args {
    #[serde(default)]
    description: String,
    prompt: Option<String>,
    subagent_type: Option<String>,
    max_turns: Option<u32>,
}

impl Task {
    pub(crate) fn new(kinds: Arc<[Kind]>, config: &SubagentsConfig) -> Self {
        let patience = Duration::try_from_secs_f64(config.progress_timeout_seconds).unwrap_or(Duration::MAX);
        let in_all = Some(config.max_tokens_per_run).filter(|tokens| *tokens > 0);
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
        let list: String =
            kinds.iter().map(|kind| format!("\n- {}: {}", kind.name, kind.description)).collect();
        let spec = ToolSpec {
            name: TASK.to_owned(),
            description: format!("{ABOUT}{list}"),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "description": {"type": "string", "description": "The task in three to five words; the user sees it."},
                    "prompt": {
                        "type": "string",
                        "description": "The whole task: what is to be done, all that must be known for it, what to report.",
                    },
                    "subagent_type": {"type": "string", "enum": names, "description": "Who does it."},
                    "max_turns": {
                        "type": "integer", "minimum": 1,
                        "description": "How often its model may be asked at most; leave it out unless the task is small.",
                    },
                },
                "required": ["description", "prompt", "subagent_type"],
            }),
            // What it has done is in a log of its own: a second call goes on there.
            effect: Effect::Idempotent,
        };
        Self { kinds, patience, in_all, spec: Arc::new(spec) }
    }

    fn kind(&self, named: Option<&str>) -> Result<&Kind, ToolError> {
        let found = self.kinds.iter().find(|kind| Some(kind.name.as_str()) == named);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name.as_str()).collect();
            let what = match named {
                Some(named) => format!("there is no subagent `{}`", named.escape_debug()),
                None => "`subagent_type` is missing".to_owned(),
            };
            ToolError::Failed(format!("{what}; choose one of: {}", names.join(", ")))
        })
    }
}

const ABOUT: &str = "\
Hand a task to another agent and get its report. It works with a fresh conversation and sees nothing of this one, so the \
prompt must say everything. Several calls in one answer work at the same time.

Who there is:";

#[async_trait]
impl Tool for Task {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    async fn call(&self, cx: &ToolContext<'_>, args: Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let args: Args =
            serde_json::from_value(args.into()).map_err(|error| ToolError::Arguments(error.to_string()))?;
        let kind = self.kind(args.subagent_type.as_deref())?;
        // Models that know another `task` write the whole of it there.
        let prompt = args.prompt.as_deref().unwrap_or(&args.description);
        if prompt.trim().is_empty() {
            return Err(ToolError::Arguments("`prompt` is empty: say what is to be done".to_owned()));
        }
        let drawn = cx.run.scratch.get_or_default::<Pool>().draw(cx.run, cx.state, self.in_all);
        let in_all = share::in_all(kind, args.max_turns, drawn.share);
        let from_now = share::of_what_is_left(&cx.run.budget.remaining(), cx.state);
        let child = match Child::enter_within(cx, &kind.agent, &drawn.own, &in_all, &from_now).await {
            Ok(child) => child,
            Err(NotEntered::Exhausted(exhausted)) => return Err(nobody_was_sent(&exhausted.to_string())),
            Err(NotEntered::Log(error)) => return Err(ToolError::Fatal(Box::new(error))),
        };
        // One that had begun goes on, and ends with what it has.
        if let Some(why) = drawn.spent().filter(|_| !child.goes_on()) {
            return Err(nobody_was_sent(&why));
        }
        let story = Story::new(Arc::clone(&cx.run.events), cx.call_id, kind);
        let child = child.heard_by(|inner| story.hearing(inner));
        let began = child.began().unwrap_or_else(|| cx.run.clock.now());
        if !child.goes_on() {
            story.begins(&args.description, kind, began).await;
        }
        let (report, stalled) = self.watch(&child, &story, given(cx, kind, prompt)).await;
        let turns = (child.budget().used().model_calls, child.budget().limits().model_calls);
        let outcomes = cx.run.scratch.get_or_default::<Outcomes>();
        let took = outcome::took(began, cx.run.clock.now());
        let Some(outcome) = outcome::judge(kind, &args.description, &report, turns, stalled, took) else {
            outcomes.put_waiting(outcome::usage(&report), drawn.used());
            return Err(ToolError::Interrupts(report.values.interrupts().to_vec()));
        };
        let outcome = Outcome { tokens: drawn.used(), was_last: drawn.spent(), ..outcome };
        story.tell(outcome.event(cx.call_id)).await;
        let text = outcome.text();
        outcomes.put(cx.call_id, outcome);
        Ok(text.into())
    }
}

impl Task {
    /// Lets the subagent work until it ends, or has been silent for too long: then for how many seconds.
    async fn watch(&self, child: &Child, story: &Story, task: Update) -> (RunReport, Option<f64>) {
        let mut working = std::pin::pin!(child.run(task));
        tokio::select! {
            biased;
            report = &mut working => (report, None),
            () = story.silence(self.patience) => {
                child.cx.cancel.cancel();
                (working.await, Some(self.patience.as_secs_f64()))
            }
        }
    }
}

fn nobody_was_sent(why: &str) -> ToolError {
    ToolError::Failed(format!("nobody was sent: {why}. Do it yourself, or answer with what you have"))
}

/// The task, and the skills whose tools its sender is held to: delegation is no way around them.
fn given(cx: &ToolContext<'_>, kind: &Kind, prompt: &str) -> Update {
    let task = Update::none().messages(Message::human(prompt));
    match cx.state.get::<ActiveSkills>().filter(|active| kind.knows_skills && !active.names.is_empty()) {
        Some(active) => task.set::<ActiveSkills>(active.passed_on()),
        None => task,
    }
}
