//! What a thread has used.
//!
//! Invariant: totals are those of its runs; what nobody counted is not made up.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::State;
use hart_types::{RunId, ThreadId};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::workspace;
use crate::Gateway;
use crate::error::ApiResult;
use crate::openapi::{Table, get};
use crate::parse::Path;

pub(super) fn table() -> Table {
    Table::default().route("/api/threads/{thread}/token-usage", get("What a thread has used", of_thread))
}

async fn of_thread(State(gateway): State<Gateway>, Path(thread): Path<String>) -> ApiResult<Json<Value>> {
    let of = workspace(&gateway, &thread).await?;
    let (totals, runs) = gateway.runtime.store().thread_totals(&of.thread).await?;
    let calls = Calls::of(&gateway, &of.thread).await?;
    let context = match &calls.last {
        Some((model, tokens)) => {
            let window = gateway.house.window(model).await;
            let share = window.filter(|window| *window > 0).map(|window| {
                let tenths = tokens.saturating_mul(1000) / window;
                tenths as f64 / 10.0
            });
            json!({"token_count": tokens, "max_context_tokens": window, "percentage": share})
        }
        None => Value::Null,
    };
    Ok(Json(json!({
        "thread_id": of.thread,
        "total_tokens": totals.usage.total_tokens,
        "total_input_tokens": totals.usage.input_tokens,
        "total_output_tokens": totals.usage.output_tokens,
        "total_runs": runs,
        "total_cost": totals.cost,
        "llm_call_count": totals.model_calls,
        "by_model": calls.by_model(),
        "by_caller": calls.by_caller(),
        "context_usage": context,
    })))
}

/// The calls of models on the way to where a thread stands, as its agents counted them.
#[derive(Default)]
struct Calls {
    models: BTreeMap<String, (u64, BTreeSet<RunId>)>,
    callers: BTreeMap<&'static str, u64>,
    /// The model that was asked last, and how much it had before it then.
    last: Option<(String, u64)>,
}

/// What an agent writes of its calls.
#[derive(Deserialize)]
struct Counted {
    #[serde(default)]
    by_model: BTreeMap<String, Counts>,
    #[serde(default)]
    by_caller: BTreeMap<String, Counts>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Counts {
    model_calls: u64,
    total_tokens: u64,
}

impl Calls {
    async fn of(gateway: &Gateway, thread: &ThreadId) -> ApiResult<Self> {
        let mut calls = Self::default();
        for (run, written) in gateway.runtime.writes_of(thread, "token_usage").await? {
            let Ok(counted) = Counted::deserialize(written) else { continue };
            let (only, single) = (counted.by_model.len() == 1, counted.by_caller.len() == 1);
            for (caller, counts) in &counted.by_caller {
                *calls.callers.entry(caller_of(caller)).or_default() += counts.total_tokens;
            }
            for (model, counts) in counted.by_model {
                // A write of several calls does not say which of them came last.
                let leads = counted.by_caller.keys().all(|caller| caller_of(caller) == LEAD);
                if only && single && leads && counts.model_calls == 1 {
                    calls.last = Some((model.clone(), counts.total_tokens));
                }
                let (tokens, runs) = calls.models.entry(model).or_default();
                *tokens += counts.total_tokens;
                runs.insert(run.clone());
            }
        }
        Ok(calls)
    }

    fn by_model(&self) -> Value {
        let told = |(model, (tokens, runs)): (&String, &(u64, BTreeSet<RunId>))| {
            (model.clone(), json!({"tokens": tokens, "runs": runs.len()}))
        };
        Value::Object(self.models.iter().map(told).collect::<Map<_, _>>())
    }

    fn by_caller(&self) -> Value {
        let of = |caller| self.callers.get(caller).copied().unwrap_or_default();
        json!({LEAD: of(LEAD), SUBAGENT: of(SUBAGENT), MIDDLEWARE: of(MIDDLEWARE)})
    }
}

const LEAD: &str = "lead_agent";
const SUBAGENT: &str = "subagent";
const MIDDLEWARE: &str = "middleware";

/// Agents ask in their own names, subagents in theirs behind a mark, and so do the middlewares that ask on their own.
fn caller_of(caller: &str) -> &'static str {
    match caller {
        "title" | "summarization" => MIDDLEWARE,
        caller if caller.starts_with("subagent:") => SUBAGENT,
        _ => LEAD,
    }
}
