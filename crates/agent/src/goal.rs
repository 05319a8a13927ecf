//! What a thread is to reach, and whether it has.
//!
//! Invariant: an evaluation that cannot be read lets the agent end; nobody goes on because of a misunderstanding.

use hart_guard::{Seal, Untrusted};
use hart_kernel::{MessageList, OutputFormat, ReduceError, Scope, StateKey, Timestamp};
use hart_types::{Body, Message};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Goals of a thread. The names are DeerFlow's.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GoalConfig {
    pub enabled: bool,
    /// How often an agent that ends before the goal is reached is sent on, in a run; a goal may ask for less.
    pub max_continuations: u32,
    /// How often in a row without anything new.
    pub max_no_progress_continuations: u32,
    /// Who judges; without one, the agent's own model.
    pub model_name: Option<String>,
}

impl Default for GoalConfig {
    fn default() -> Self {
        Self { enabled: true, max_continuations: 8, max_no_progress_continuations: 2, model_name: None }
    }
}

/// The state key `goal`.
#[derive(Debug)]
pub struct ThreadGoal;

/// What a thread is to reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Goal {
    pub objective: String,
    /// `active` while it is not reached.
    pub status: String,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    /// How often the agent was sent on, in this run.
    pub continuation_count: u32,
    /// How often it may be, within what [`GoalConfig`] has.
    pub max_continuations: Option<u32>,
    pub no_progress_count: u32,
    pub max_no_progress_continuations: Option<u32>,
    pub last_evaluation: Option<Evaluation>,
}

/// A goal in words, one with all its parts, or none any more.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GoalWrite {
    Words(String),
    Whole(Box<Goal>),
    Clear,
}

pub(crate) const OBJECTIVE_CHARS: usize = 4000;
const REASON_CHARS: usize = 1000;
const ACTIVE: &str = "active";

impl StateKey for ThreadGoal {
    type Value = Option<Goal>;
    type Update = GoalWrite;
    const NAME: &'static str = "goal";
    const SCOPE: Scope = Scope::Thread;

    fn reduce(_: Option<Option<Goal>>, write: GoalWrite) -> Result<Option<Goal>, ReduceError> {
        let goal = match write {
            GoalWrite::Clear => return Ok(None),
            GoalWrite::Words(objective) => Goal { objective, ..Goal::default() },
            GoalWrite::Whole(goal) => *goal,
        };
        let objective = goal.objective.trim();
        if objective.is_empty() {
            return Ok(None);
        }
        let chars = objective.chars().count();
        if chars > OBJECTIVE_CHARS {
            return Err(ReduceError(format!("a goal has at most {OBJECTIVE_CHARS} characters, not {chars}")));
        }
        Ok(Some(Goal { objective: objective.to_owned(), status: ACTIVE.to_owned(), ..goal }))
    }
}

impl Goal {
    /// With what whoever set it left open; `None` where nothing is.
    pub(crate) fn completed(&self, config: &GoalConfig, now: Timestamp) -> Option<Self> {
        let least = |own: Option<u32>, most: u32| Some(own.map_or(most, |own| own.min(most)));
        let whole = Self {
            created_at: self.created_at.or(Some(now)),
            updated_at: self.updated_at.or(Some(now)),
            max_continuations: least(self.max_continuations, config.max_continuations),
            max_no_progress_continuations: least(
                self.max_no_progress_continuations,
                config.max_no_progress_continuations,
            ),
            ..self.clone()
        };
        (whole != *self).then_some(whole)
    }
}

/// What a judge says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluation {
    pub satisfied: bool,
    #[serde(default)]
    pub blocker: Blocker,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub evidence_summary: String,
}

/// Why a goal is not reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    #[default]
    None,
    MissingEvidence,
    NeedsUserInput,
    RunFailed,
    ExternalWait,
    /// The only one that the agent can do something about by itself.
    GoalNotMetYet,
}

impl Evaluation {
    /// The JSON in an answer, whatever stands around it.
    pub(crate) fn parse(answer: &str) -> Option<Self> {
        let answer = answer.rsplit("</think>").next().unwrap_or(answer);
        let (from, to) = (answer.find('{')?, answer.rfind('}')?);
        let mut evaluation: Self = serde_json::from_str(answer.get(from..=to)?).ok()?;
        for text in [&mut evaluation.reason, &mut evaluation.evidence_summary] {
            *text = text.chars().take(REASON_CHARS).collect();
        }
        Some(evaluation)
    }

    pub(crate) fn format() -> OutputFormat {
        let blockers = [
            "none",
            "missing_evidence",
            "needs_user_input",
            "run_failed",
            "external_wait",
            "goal_not_met_yet",
        ];
        let schema = json!({
            "type": "object",
            "properties": {
                "satisfied": {"type": "boolean"},
                "blocker": {"type": "string", "enum": blockers},
                "reason": {"type": "string"},
                "evidence_summary": {"type": "string"},
            },
            "required": ["satisfied", "blocker", "reason", "evidence_summary"],
            "additionalProperties": false,
        });
        OutputFormat::Json { name: "evaluation".to_owned(), schema }
    }
}

/// How much of a conversation is judged.
const MESSAGES: usize = 30;
const CHARS: usize = 12_000;

/// What the judge is asked: the goal, and the end of the conversation between marks that nobody in it can write.
pub(crate) fn question(goal: &Goal, messages: &MessageList) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut left = CHARS;
    for message in messages.iter().rev().filter(|message| is_visible(message)).take(MESSAGES) {
        let who = match &message.body {
            Body::Human => "user",
            Body::Tool(_) => "tool",
            _ => "agent",
        };
        let calls: String =
            message.tool_calls().iter().map(|call| format!(" [calls {}]", call.name)).collect();
        let text: String = message.text().chars().take(left).collect();
        left = left.saturating_sub(text.chars().count());
        lines.push(format!("{who}: {text}{calls}"));
        if left == 0 {
            break;
        }
    }
    lines.reverse();
    let said = Untrusted::new(lines.join("\n\n").as_str()).sanitised();
    let said = Seal::fresh().enclose("conversation", &said);
    format!("The goal:\n{}\n\nThe end of the conversation:\n{said}", goal.objective)
}

fn is_visible(message: &Message) -> bool {
    let hidden = message.additional_kwargs.get("hide_from_ui") == Some(&Value::Bool(true));
    !hidden && matches!(message.body, Body::Human | Body::Ai(_) | Body::Tool(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evaluation_is_found_in_what_stands_around_it() {
        let answer = "<think>{hm}</think>```json\n{\"satisfied\": false, \"blocker\": \"goal_not_met_yet\", \
                      \"reason\": \"two of three\"}\n```";
        let evaluation = Evaluation::parse(answer).unwrap();
        assert_eq!((evaluation.satisfied, evaluation.blocker), (false, Blocker::GoalNotMetYet));
        for nothing in
            ["", "yes", "{\"blocker\": \"none\"}", "{\"satisfied\": true, \"blocker\": \"boredom\"}"]
        {
            assert_eq!(Evaluation::parse(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_goal_is_words_or_its_parts_or_gone() {
        let write = |value: Value| ThreadGoal::reduce(None, serde_json::from_value(value).unwrap());
        assert_eq!(write(json!("  win ")).unwrap().unwrap().objective, "win");
        assert_eq!(write(json!({"objective": "win"})).unwrap().unwrap().status, "active");
        assert!(write(json!(null)).unwrap().is_none() && write(json!("")).unwrap().is_none());
        assert!(write(json!("x".repeat(4001))).unwrap_err().to_string().contains("at most 4000 characters"));
    }
}
