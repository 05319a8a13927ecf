//! Writing a conversation of a megabyte into a request.
//!
//! Invariant: cold means a client that has seen nothing; the next turn has one message more.

use std::hint::black_box;

use hart_kernel::ChatRequest;
use hart_types::{Message, ToolCall, ToolCallId, ToolStatus};
use serde_json::{Map, json};

use super::{SPOKEN, chat, seconds};
use crate::{Row, median};

const RUNS: usize = 15;

pub fn measure() -> anyhow::Result<Vec<Row>> {
    let http = hart_models::http::client()?;
    let mut rows = Vec::new();
    for spoken in SPOKEN {
        let (mut cold, mut next, mut floor, mut size) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for _ in 0..RUNS {
            let write = spoken.writer(&http)?;
            let mut request = conversation();
            let (time, body) = seconds(|| write(&request));
            cold.push(time * 1e3);
            size = body.len();
            request.messages.push(Message::human("And now?").into());
            next.push(seconds(|| black_box(write(&request))).0 * 1e3);
            floor.push(seconds(|| black_box(body.clone())).0 * 1e3);
        }
        rows.push(Row {
            measure: format!("{}: request of {:.1} MB written, next turn", spoken.name, size as f64 / 1e6),
            hart: format!("{:.2} ms, {:.2} ms", median(cold), median(next)),
            floor: format!("{:.2} ms (copying it)", median(floor)),
            target: "≤ 5 ms",
        });
    }
    Ok(rows)
}

/// Rounds of a question, a call, its result and an answer; a megabyte in all.
fn conversation() -> ChatRequest {
    let prose =
        "The deer walk through the \"valley\" in the early morning,\nlooking for fresh grass. ".repeat(12);
    let output = "total 48\ndrwxr-xr-x  6 deer deer  4096 Nov 15 04:21 ./src/models\t\"ok\"\n".repeat(28);
    let round = |n: usize| {
        let id = ToolCallId::from(format!("call_{n}").as_str());
        let mut call = Message::ai("I look.");
        if let hart_types::Body::Ai(ai) = &mut call.body {
            let args = Map::from_iter([("command".to_owned(), json!(format!("ls -la ./src/models/{n}")))]);
            ai.tool_calls.push(ToolCall::new(id.clone(), "bash", args));
        }
        let result = Message::tool(&id, "bash", ToolStatus::Success, output.as_str());
        [Message::human(prose.as_str()), call, result, Message::ai(prose.as_str())]
    };
    chat((0..250).flat_map(round))
}
