//! `hart-bench`: what hart costs, next to what a raw HTTP client costs in the same run.
//!
//! Invariant: every figure of hart stands beside a floor that was measured with the same model server, the same
//! bytes and the same machine, seconds apart.

mod chain;
mod delegation;
mod durability;
mod floor;
mod memory;
mod model;
mod models;
mod sandbox;
mod server;
mod skills;
mod snapshot;
mod start;
mod text;
mod tokens;
mod turns;

use std::path::PathBuf;

/// One line of the table.
pub struct Row {
    pub measure: String,
    pub hart: String,
    pub floor: String,
    pub target: &'static str,
}

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if let [_, serve, script] = args.as_slice()
        && serve == model::SERVE
    {
        return model::serve(script);
    }
    let (flags, named): (Vec<&str>, Vec<&str>) =
        args.iter().skip(1).map(String::as_str).partition(|arg| arg.starts_with('-'));
    let quick = match flags.as_slice() {
        [] => false,
        ["--quick"] => true,
        ["-h" | "--help"] => {
            println!("{}", usage());
            return Ok(());
        }
        _ => anyhow::bail!(usage()),
    };
    let (only, part) = (named.first().copied(), named.get(1).copied());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    if only == Some("train") {
        return runtime.block_on(server::train(&hart_beside_us()?));
    }
    let rows = runtime.block_on(measure(only, part, quick))?;
    println!("load at the end: {}", std::fs::read_to_string("/proc/loadavg")?.trim());
    println!("\n| measure | hart | floor | target |\n|---|---|---|---|");
    for Row { measure, hart, floor, target } in rows {
        println!("| {measure} | {hart} | {floor} | {target} |");
    }
    Ok(())
}

/// All of it, or only what is named on the command line, of the server also `part` alone. `quick` only shows that the server's part and that of durability work.
async fn measure(only: Option<&str>, part: Option<&str>, quick: bool) -> anyhow::Result<Vec<Row>> {
    let wanted = |part: &str| only.is_none_or(|only| only == part);
    let mut rows = Vec::new();
    if wanted("turns") {
        rows.extend(turns::measure().await?);
    }
    if wanted("chain") {
        rows.extend(chain::measure()?);
    }
    if wanted("delegation") {
        rows.extend(delegation::measure().await?);
    }
    if wanted("tokens") {
        rows.extend(tokens::throughput().await?);
        rows.extend(tokens::added_delay().await?);
    }
    if wanted("text") {
        rows.extend(text::measure());
    }
    if wanted("models") {
        rows.extend(models::measure().await?);
    }
    if wanted("start") {
        rows.extend(start::measure(&hart_beside_us()?)?);
    }
    if wanted("memory") {
        rows.extend(memory::measure(&hart_beside_us()?).await?);
    }
    if wanted("sandbox") {
        rows.extend(sandbox::measure().await?);
    }
    if wanted("server") {
        rows.extend(server::measure(&hart_beside_us()?, quick, part).await?);
    }
    if wanted("durability") {
        rows.extend(durability::measure(quick).await?);
    }
    if wanted("skills") {
        rows.extend(skills::measure()?);
    }
    if wanted("snapshot") {
        rows.extend(snapshot::measure().await?);
    }
    anyhow::ensure!(!rows.is_empty(), usage());
    Ok(rows)
}

fn usage() -> String {
    let parts =
        "turns|chain|delegation|tokens|text|models|start|memory|sandbox|server|durability|skills|snapshot";
    format!("usage: hart-bench [{parts}] [--quick]\n       hart-bench server [{}] [--quick]", server::PARTS)
}

fn hart_beside_us() -> anyhow::Result<PathBuf> {
    let hart = std::env::current_exe()?.with_file_name("hart");
    anyhow::ensure!(
        hart.is_file(),
        "{} is missing: build it with the same profile (`make bench`)",
        hart.display()
    );
    Ok(hart)
}

/// The middle one; the list must not be empty.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share) as usize]
}
