//! Counting tokens, exactly and by estimate.
//!
//! Invariant: the text is real, and a cold figure comes from a thread that has counted nothing before.

use std::hint::black_box;

use hart_models::tokens::{Family, TokenCounter, estimate, exact};
use hart_types::Message;

use super::{chat, seconds};
use crate::{Row, median};

const RUNS: usize = 7;
/// Conversations of research agents, most of them long tool results.
const TEXTS: [&str; 5] = [
    include_str!("../../../contracts/conversations/21cfea46.json"),
    include_str!("../../../contracts/conversations/7cfa5f8f.json"),
    include_str!("../../../contracts/conversations/ad76c455.json"),
    include_str!("../../../contracts/conversations/b83fbb2a.json"),
    include_str!("../../../contracts/conversations/fe3f7974.json"),
];

pub fn measure() -> anyhow::Result<Vec<Row>> {
    let text = TEXTS.concat();
    let (load, _) = seconds(|| exact("x"));
    let speed = |count: fn(&str) -> u64| {
        let once = || text.len() as f64 / 1e6 / seconds(|| black_box(count(&text))).0;
        let cold = std::thread::scope(|scope| scope.spawn(once).join());
        let warm = median((0..RUNS).map(|_| once()).collect());
        cold.map(|cold| format!("{cold:.0} MB/s, {warm:.0} MB/s")).map_err(|_| anyhow::anyhow!("a panic"))
    };
    let off = (estimate(&text) as f64 / exact(&text) as f64 - 1.0) * 100.0;
    let row = |measure: &str, hart: String, target| Row {
        measure: measure.into(),
        hart,
        floor: "–".into(),
        target,
    };
    Ok(vec![
        row("vocabulary unpacked, once per process", format!("{:.0} ms", load * 1e3), "–"),
        row("tokens counted exactly, cold, warm", speed(exact)?, "≥ 20 MB/s"),
        row(&format!("tokens estimated ({off:+.1} %), cold, warm"), speed(estimate)?, "≥ 20 MB/s"),
        conversation(&text),
    ])
}

/// A long conversation counted, and again with one message more.
fn conversation(text: &str) -> Row {
    let pieces = text.as_bytes().chunks(2000).map(|piece| String::from_utf8_lossy(piece).into_owned());
    let mut request = chat(pieces.map(Message::human));
    let counter = TokenCounter::new(Family::Anthropic);
    let (first, _) = seconds(|| counter.count_request(&request));
    let again = (0..RUNS).map(|_| {
        request.messages.push(Message::human("one more").into());
        seconds(|| black_box(counter.count_request(&request))).0
    });
    let again = median(again.collect());
    Row {
        measure: format!("conversation of {:.1} MB counted, next turn", text.len() as f64 / 1e6),
        hart: format!("{:.1} ms, {:.3} ms", first * 1e3, again * 1e3),
        floor: "–".into(),
        target: "–",
    }
}
