//! What it costs to take a snapshot of a thread's files, and to put them back.
//!
//! Invariant: the floor is a plain copy (`cp -a`) of the same tree in the same run.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hart_sandbox::{Snapshots, ThreadDirs};

use crate::{Row, median};

const FILES: usize = 5_000;
const FEW: usize = 10;
const RUNS: usize = 7;

pub async fn measure() -> anyhow::Result<Vec<Row>> {
    let home = tempfile::tempdir()?;
    let dirs = ThreadDirs::new(home.path(), &"user".into(), &"thread".into());
    dirs.create()?;
    let workspace = dirs.workspace().as_path().to_owned();
    for index in 0..FILES {
        let folder = workspace.join(format!("d{:02}", index % 50));
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("f{index}.txt")), text(index))?;
    }
    // A file written in the moment of a snapshot is read again by the next; nobody would wait for it either.
    let settle = || tokio::time::sleep(Duration::from_millis(100));
    let snapshots = Snapshots::new(dirs.clone());
    let (mut first, mut few, mut none, mut restore, mut floor) = (vec![], vec![], vec![], vec![], vec![]);
    for run in 0..RUNS {
        snapshots.prune(0).await?;
        settle().await;
        let start = Instant::now();
        let taken = snapshots.take().await?;
        first.push(milliseconds(start));
        anyhow::ensure!(taken.read == FILES, "{} files were read", taken.read);
        for index in 0..FEW {
            std::fs::write(
                workspace.join(format!("d{index:02}/f{index}.txt")),
                format!("run {run} {index}"),
            )?;
        }
        settle().await;
        let start = Instant::now();
        let again = snapshots.take().await?;
        few.push(milliseconds(start));
        anyhow::ensure!(again.read == FEW, "{} files were read", again.read);
        settle().await;
        let start = Instant::now();
        snapshots.take().await?;
        none.push(milliseconds(start));
        let start = Instant::now();
        let restored = snapshots.restore(&taken.id).await?;
        restore.push(milliseconds(start));
        anyhow::ensure!(restored.written == FEW && restored.left.is_empty(), "{restored:?}");
        floor.push(copy(&workspace, &home.path().join(format!("copy{run}")))?);
    }
    let floor = median(floor);
    let row = |measure: &str, values: Vec<f64>, target| Row {
        measure: format!("{measure}, {FILES} files"),
        hart: format!("{:.1} ms", median(values)),
        floor: format!("{floor:.1} ms (`cp -a`)"),
        target,
    };
    Ok(vec![
        row("first snapshot", first, "≤ 150 ms with reflinks"),
        row("snapshot, 10 files changed", few, "≤ 60 ms"),
        row("snapshot, nothing changed", none, "≤ 60 ms"),
        row("restore, 10 files changed", restore, "–"),
    ])
}

/// Source files are a few kilobytes long.
fn text(index: usize) -> String {
    format!("line of file {index}\n").repeat(50 + index % 100)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<f64> {
    let start = Instant::now();
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    let elapsed = milliseconds(start);
    anyhow::ensure!(status.success(), "cp ended with {status}");
    std::fs::remove_dir_all(to)?;
    Ok(elapsed)
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}
