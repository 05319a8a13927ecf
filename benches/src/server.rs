//! `hart serve` as its clients see it: a process of its own, real connections, a model that is never the bottleneck.
//!
//! Invariant: every part starts a server of its own over an empty data directory.

mod asked;
mod load;
mod process;
mod stored;
mod streams;
mod train;

use std::path::Path;

use crate::Row;

pub use train::train;

/// How much is done. Figures are only worth telling at full size.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub starts: usize,
    pub first_tokens: usize,
    pub tokens: u32,
    pub subscribers: usize,
    pub turns: usize,
    pub threads: usize,
    pub searches: usize,
    pub concurrent: usize,
}

impl Sizes {
    const FULL: Self = Self {
        starts: 20,
        first_tokens: 200,
        tokens: 200_000,
        subscribers: 2_000,
        turns: 1_000,
        threads: 100_000,
        searches: 100,
        concurrent: 500,
    };
    /// To see that it works.
    const QUICK: Self = Self {
        starts: 2,
        first_tokens: 5,
        tokens: 500,
        subscribers: 20,
        turns: 40,
        threads: 500,
        searches: 5,
        concurrent: 10,
    };
}

/// What can be measured alone.
pub const PARTS: &str = "start|first-token|throughput|subscribers|stored|search|load";

/// All of it, or only the part with this name.
pub async fn measure(hart: &Path, quick: bool, part: Option<&str>) -> anyhow::Result<Vec<Row>> {
    let sizes = if quick { Sizes::QUICK } else { Sizes::FULL };
    let mut rows = Vec::new();
    let wanted = |name: &str| part.is_none_or(|part| part == name);
    if wanted("start") {
        rows.extend(process::start_and_rest(hart, sizes).await?);
    }
    if wanted("first-token") {
        rows.extend(streams::first_token(hart, sizes).await?);
    }
    if wanted("throughput") {
        rows.extend(streams::throughput(hart, sizes).await?);
    }
    if wanted("subscribers") {
        rows.extend(streams::subscribers(hart, sizes).await?);
    }
    if wanted("stored") {
        rows.extend(stored::bytes_per_turn(hart, sizes).await?);
    }
    if wanted("search") {
        rows.extend(stored::search(hart, sizes).await?);
    }
    if wanted("load") {
        rows.extend(load::concurrent_runs(hart, sizes).await?);
    }
    Ok(rows)
}
