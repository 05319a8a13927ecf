//! What became of a delegation: one terminal result, with what there is when it was cut.
//!
//! Invariant: words and keys are DeerFlow's; clients read the keys, the model reads the text.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use hart_kernel::{Ended, RunError, RunReport, Timestamp};
use hart_types::{Body, Message, ToolCallId, ToolStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ledger::{brief, sha256};
use super::{Kind, schema};
use crate::answer::stop_reason;
use crate::middleware::{RunUsage, UsageTotals};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Completed,
    Failed,
    Cancelled,
    TimedOut,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
        }
    }
}

/// How a subagent ended.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) kind: String,
    pub(crate) description: String,
    pub(crate) model: String,
    pub(crate) status: Status,
    /// Why it ended earlier than it would have, though with an answer.
    pub(crate) stop_reason: Option<String>,
    pub(crate) error: Option<String>,
    /// The report, or what had been said when it was cut.
    pub(crate) said: String,
    pub(crate) usage: UsageTotals,
    /// What it took of what subagents have together.
    pub(crate) tokens: u64,
    /// Why nobody can be sent after it.
    pub(crate) was_last: Option<String>,
    /// From its first step to its end, in milliseconds; also over a crash, or while it waited for an answer.
    pub(crate) took: i64,
}

/// What a subagent's run came to; nothing while it waits for an answer. `stalled` is for how long it had been silent, if
/// that is why it was ended.
pub(super) fn judge(
    kind: &Kind,
    description: &str,
    report: &RunReport,
    turns: (u64, Option<u64>),
    stalled: Option<f64>,
    took: i64,
) -> Option<Outcome> {
    let last = report.state().messages().iter().rev().find(|message| says_something(message));
    let said = last.map(|message| message.text().trim().to_owned()).unwrap_or_default();
    let capped = last.and_then(|message| stop_reason(message)).map(|reason| match turns {
        (used, Some(limit)) if reason == "token_capped" && used >= limit => "turn_capped",
        _ => reason,
    });
    let (status, error) = match (&report.outcome, stalled) {
        (Ok(Ended::Paused), _) => return None,
        (Err(RunError::Cancelled), Some(seconds)) => {
            (Status::TimedOut, Some(format!("it made no progress for {seconds:.0} seconds")))
        }
        (Ok(Ended::Finished), _) => match problem(kind, &said) {
            None => (Status::Completed, None),
            Some(problem) => (Status::Failed, Some(problem)),
        },
        (Err(RunError::OutOfTime { limit }), _) => {
            (Status::TimedOut, Some(format!("its time of {limit:.0?} was over")))
        }
        (Err(RunError::Cancelled), None) => (Status::Cancelled, Some("it was cancelled".to_owned())),
        (Err(error), _) => (Status::Failed, Some(in_full(error))),
    };
    Some(Outcome {
        kind: kind.name.clone(),
        description: description.to_owned(),
        model: kind.model.clone(),
        status,
        stop_reason: capped.map(str::to_owned),
        error,
        said,
        usage: usage(report),
        tokens: 0,
        was_last: None,
        took,
    })
}

/// In milliseconds. A clock that was set back has measured nothing.
pub(super) fn took(began: Timestamp, ended: Timestamp) -> i64 {
    (ended.as_millisecond() - began.as_millisecond()).max(0)
}

pub(super) fn usage(report: &RunReport) -> UsageTotals {
    report.state().get::<RunUsage>().cloned().unwrap_or_default()
}

fn says_something(message: &Message) -> bool {
    message.as_ai().is_some() && !message.text().trim().is_empty()
}

/// What is wrong with a report.
fn problem(kind: &Kind, said: &str) -> Option<String> {
    if said.is_empty() {
        return Some("it ended without a word".to_owned());
    }
    let schema = kind.result.as_ref()?;
    match serde_json::from_str::<Value>(said) {
        Ok(report) => schema::mismatch(schema, &report)
            .map(|why| format!("its report does not fit what was asked for: {why}")),
        Err(error) => Some(format!("its report is not the JSON that was asked for: {error}")),
    }
}

fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl Outcome {
    /// What the model reads.
    pub(super) fn text(&self) -> String {
        let error = self.error.as_deref().unwrap_or_default();
        let partly = match self.said.is_empty() {
            true => String::new(),
            false => format!("\nThe last it said: {}", self.said),
        };
        let text = match self.status {
            Status::Completed => {
                let capped = match self.stop_reason.as_deref() {
                    Some(reason) => format!(" (it was ended early: {reason}; the report may be incomplete)"),
                    None => String::new(),
                };
                format!("Task Succeeded. Result: {}{capped}", self.said)
            }
            Status::Failed => format!("Task failed. Error: {error}{partly}"),
            Status::Cancelled => format!("Task cancelled. Error: {error}{partly}"),
            Status::TimedOut => format!("Task timed out. Error: {error}{partly}"),
        };
        match &self.was_last {
            Some(why) => {
                format!("{text}\n[BUDGET] Nobody can be sent after it: {why}. Do the rest yourself.")
            }
            None => text,
        }
    }

    /// The last of the events.
    pub(super) fn event(&self, task: &ToolCallId) -> Value {
        let (key, value) = match self.status {
            Status::Completed => ("result", &self.said),
            _ => ("error", self.error.as_ref().unwrap_or(&self.said)),
        };
        json!({
            "type": format!("task_{}", self.status.name()),
            "task_id": task,
            (key): value,
            "usage": tokens(&self.usage),
            "model_name": self.model,
            "duration_ms": self.took,
        })
    }

    /// Says in the result's own keys what its text says.
    pub(crate) fn mark(&self, message: &mut Message) {
        if let (Body::Tool(result), true) = (&mut message.body, self.status != Status::Completed) {
            result.status = ToolStatus::Error;
        }
        let marks = [
            ("subagent_status", Some(self.status.name().into())),
            ("subagent_stop_reason", self.stop_reason.clone().map(Value::from)),
            ("subagent_error", self.error.clone().map(Value::from)),
            ("subagent_result_brief", Some(brief(&self.said).into())),
            ("subagent_result_sha256", Some(sha256(&self.said).into())),
            ("subagent_model_name", Some(self.model.clone().into())),
            ("subagent_token_usage", Some(tokens(&self.usage))),
            ("subagent_duration_ms", Some(self.took.into())),
        ];
        let marks = marks.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        message.additional_kwargs.extend(marks);
    }
}

/// As LangChain counts.
pub(super) fn tokens(usage: &UsageTotals) -> Value {
    let total = &usage.total;
    json!({
        "input_tokens": total.input_tokens,
        "output_tokens": total.output_tokens,
        "total_tokens": total.total_tokens,
    })
}

/// How the delegations of one run ended, until somebody takes note of it.
#[derive(Default)]
pub(crate) struct Outcomes(
    /// Never held across an await.
    Mutex<Ends>,
);

#[derive(Default)]
struct Ends {
    ended: HashMap<ToolCallId, Outcome>,
    /// What those have used that wait for an answer.
    waiting: Vec<(UsageTotals, u64)>,
}

impl Outcomes {
    pub(super) fn put(&self, task: &ToolCallId, outcome: Outcome) {
        self.held().ended.insert(task.clone(), outcome);
    }

    pub(super) fn put_waiting(&self, usage: UsageTotals, tokens: u64) {
        self.held().waiting.push((usage, tokens));
    }

    pub(crate) fn take(&self, task: &ToolCallId) -> Option<Outcome> {
        self.held().ended.remove(task)
    }

    pub(crate) fn take_waiting(&self) -> Vec<(UsageTotals, u64)> {
        std::mem::take(&mut self.held().waiting)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Ends> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
