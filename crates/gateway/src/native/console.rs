//! What all threads have used: for charts.
//!
//! Invariant: what nobody counted is not made up; a thread that was deleted takes its figures with it.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use hart_kernel::Timestamp;
use hart_runtime::port::Used;
use hart_runtime::{ModelTotals, Totals};
use hart_types::ThreadId;
use serde_json::{Map, Value, json};

use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Table, get};
use crate::parse::Query;

pub(super) fn table() -> Table {
    Table::default().route(
        "/api/console/usage",
        get("What runs have used, by day, by model and by thread", usage)
            .query(&[("days", "integer"), ("utc_offset", "integer")]),
    )
}

const DAY: i64 = 86_400;
/// Further back nobody looks at days.
const LONGEST: u64 = 366;
/// How many threads are named, those that used most.
const THREADS: usize = 20;

/// `utc_offset` is how many minutes the reader's clock is before UTC's.
async fn usage(State(gateway): State<Gateway>, query: Query) -> ApiResult<Json<Value>> {
    let days = match query.number("days", 30)? {
        days @ 1..=LONGEST => i64::try_from(days).unwrap_or(DAY),
        _ => return Err(ApiError::unprocessable(format!("`days` must be between 1 and {LONGEST}"))),
    };
    let east = offset_of(query.get("utc_offset"))? * 60;
    let today = (gateway.runtime.now().as_second() + east).div_euclid(DAY);
    let first = today - days + 1;
    let since = Timestamp::from_second(first * DAY - east);
    let since = since.map_err(|error| ApiError::unprocessable(error.to_string()))?;
    let used = gateway.runtime.store().usage(since, east).await?;
    let mut all = Sum::default();
    let (mut by_day, mut by_thread) = (BTreeMap::<i64, Sum>::new(), BTreeMap::<&ThreadId, Sum>::new());
    for one in &used {
        for sum in [&mut all, by_day.entry(one.day).or_default(), by_thread.entry(&one.thread).or_default()] {
            sum.add(one);
        }
    }
    // A day on which nothing ran is a day, too.
    let by_day: Vec<Value> = (first..=today)
        .map(|day| {
            let sum = by_day.remove(&day).unwrap_or_default();
            sum.told(json!({"date": date(day), "by_model": models(&sum.totals)}))
        })
        .collect();
    let mut threads: Vec<(&ThreadId, Sum)> = by_thread.into_iter().collect();
    threads.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.totals.usage.total_tokens));
    let mut by_thread = Vec::new();
    for (id, sum) in threads.into_iter().take(THREADS) {
        let row = gateway.runtime.store().thread(id).await?;
        let title = row.and_then(|row| row.metadata.get("title").cloned()).unwrap_or_default();
        by_thread.push(sum.told(json!({"thread_id": id, "title": title})));
    }
    let total = all.told(json!({}));
    let by_model = models(&all.totals);
    Ok(Json(json!({"days": by_day, "by_model": by_model, "by_thread": by_thread, "total": total})))
}

#[derive(Default)]
struct Sum {
    runs: u64,
    totals: Totals,
}

impl Sum {
    fn add(&mut self, used: &Used) {
        self.runs += used.runs;
        self.totals.add(&used.totals);
    }

    /// `about` it, with the figures.
    fn told(&self, about: Value) -> Value {
        let Totals { usage, model_calls, cost, .. } = &self.totals;
        let figures = json!({
            "runs": self.runs,
            "llm_call_count": model_calls,
            "total_tokens": usage.total_tokens,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost": cost,
        });
        match (about, figures) {
            (Value::Object(about), Value::Object(figures)) => about.into_iter().chain(figures).collect(),
            (_, figures) => figures,
        }
    }
}

fn models(totals: &Totals) -> Value {
    let told = |(model, used): (&String, &ModelTotals)| {
        let ModelTotals { calls, input_tokens, output_tokens, total_tokens, cost } = used;
        let used = json!({
            "llm_call_count": calls, "total_tokens": total_tokens, "input_tokens": input_tokens,
            "output_tokens": output_tokens, "cost": cost,
        });
        (model.clone(), used)
    };
    Value::Object(totals.by_model.iter().map(told).collect::<Map<_, _>>())
}

/// No clock is further from UTC than fourteen hours.
fn offset_of(asked: Option<&str>) -> ApiResult<i64> {
    let minutes = asked.map_or(Ok(0), str::parse::<i64>);
    let minutes = minutes.ok().filter(|minutes| (-840..=840).contains(minutes));
    minutes.ok_or_else(|| ApiError::unprocessable("`utc_offset` must be between -840 and 840 minutes"))
}

fn date(day: i64) -> String {
    let midnight = Timestamp::from_second(day.saturating_mul(DAY)).unwrap_or_default();
    midnight.to_string().chars().take("2026-01-01".len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(20_772), "2026-11-15");
        assert_eq!(offset_of(Some("-840")), Ok(-840));
        for wrong in ["841", "x", "1e9"] {
            assert!(offset_of(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
