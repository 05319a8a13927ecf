//! Looking for tool calls and reasoning in ordinary text: what a token costs that is neither.
//!
//! Invariant: the floor makes the same strings out of the same pieces and looks for nothing.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use hart_kernel::ToolSpec;
use hart_models::{CallsInText, TextOptions, scan_text};

use crate::{Row, median};

const RUNS: usize = 9;
const TOKENS: usize = 400_000;
/// About as often as in real answers there is code, a comparison, a list.
const PROSE: &str = "The function `parse` takes a slice and returns a list of items, or an error that says where. \
    If a < b then the first one wins; see [the notes](https://example.com) for more.\n\n\
    - one\n- two with {braces}\n\n```rust\nfn main() { let x: Vec<u8> = vec![1]; }\n```\n\nThat is all there is. ";

pub fn measure() -> Vec<Row> {
    let pieces: Vec<&str> = PROSE.split_inclusive(' ').cycle().take(TOKENS).collect();
    let schema = serde_json::json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tools = ["ls", "read_file", "write_file"].map(|name| {
        Arc::new(ToolSpec {
            name: name.into(),
            description: String::new(),
            input_schema: schema.clone(),
            effect: hart_kernel::Effect::Pure,
        })
    });
    let options = TextOptions { calls: CallsInText::UnlessNative, think: true, opened: false };
    let per_token = |run: &dyn Fn()| {
        let nanos = (0..RUNS).map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_nanos() as f64 / TOKENS as f64
        });
        median(nanos.collect())
    };
    let ours = per_token(&|| {
        black_box(scan_text(&tools, pieces.iter().copied(), options, false));
    });
    let floor = per_token(&|| {
        let said: Vec<String> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        black_box((said.concat(), said));
    });
    vec![Row {
        measure: "looking for calls in text, per token".into(),
        hart: format!("{ours:.0} ns"),
        floor: format!("{floor:.0} ns"),
        target: "< 1 µs",
    }]
}
