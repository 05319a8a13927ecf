//! What isolation and the file tools cost, next to doing the same without them.
//!
//! Invariant: each pair is measured in turns, so that a busy machine slows both.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hart_sandbox::{
    Exec, GlobQuery, GrepQuery, LocalSandboxProvider, Sandbox, SandboxConfig, SandboxProvider, VPath,
};
use hart_types::{ThreadId, UserId};
use tokio_util::sync::CancellationToken;

use crate::Row;

const FILES: usize = 20_000;
const HELD: usize = 200;

pub async fn measure() -> anyhow::Result<Vec<Row>> {
    let home = tempfile::tempdir()?;
    let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.path().into(), None)?;
    let sandbox = provider.acquire(&ThreadId::from("bench"), &UserId::from("u")).await?;
    println!("{}", provider.tier());
    let mut rows = vec![start(&*sandbox).await?, flood(&*sandbox).await?];
    for (name, command) in ORDINARY {
        rows.push(ordinary(&*sandbox, home.path(), name, command).await?);
    }
    let workspace = home.path().join("users/u/threads/bench/user-data/workspace");
    // A tree as programs have it: 200 directories. And one directory, as data has it.
    plant(|index| workspace.join(format!("tree/d{:02}/e{:02}", index % 20, index / 20 % 10)))?;
    plant(|_| workspace.join("flat"))?;
    rows.push(grep(&*sandbox, &workspace, "tree", "").await?);
    rows.push(grep(&*sandbox, &workspace, "flat", " in one directory").await?);
    rows.push(glob(&*sandbox, &workspace).await?);
    rows.push(held(&provider).await?);
    Ok(rows)
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
}

async fn run(sandbox: &dyn Sandbox, command: &str) -> anyhow::Result<()> {
    let output = sandbox.exec(Exec::new(command), None, &Default::default()).await?;
    anyhow::ensure!(output.exit.success(), "{output:?}");
    Ok(())
}

async fn start(sandbox: &dyn Sandbox) -> anyhow::Result<Row> {
    let (mut isolated, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..101 {
        let begun = Instant::now();
        run(sandbox, ":").await?;
        isolated.push(begun.elapsed());
        let begun = Instant::now();
        let output =
            tokio::process::Command::new("/bin/bash").args(["-c", ":"]).stdin(Stdio::null()).output().await?;
        bare.push(begun.elapsed());
        anyhow::ensure!(output.status.success());
    }
    let (isolated, bare) = (median(isolated), median(bare));
    Ok(Row {
        measure: "start of a command, over a bare spawn (median)".into(),
        hart: format!("{isolated:.1} ms (+{:.1})", isolated - bare),
        floor: format!("{bare:.1} ms"),
        target: "≤ +15 ms",
    })
}

/// Commands that touch many files, by reading and by writing.
const ORDINARY: [(&str, &str); 2] = [
    ("`find /usr | wc -l`", "find /usr | wc -l"),
    (
        "1 000 small files written by a shell",
        "mkdir d && for i in $(seq 1000); do echo $i > d/$i; done; rm -r d",
    ),
];

/// Here every answer that hart gives to the kernel while the command runs shows.
async fn ordinary(sandbox: &dyn Sandbox, home: &Path, name: &str, command: &str) -> anyhow::Result<Row> {
    let (mut isolated, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..21 {
        let begun = Instant::now();
        run(sandbox, command).await?;
        isolated.push(begun.elapsed());
        let begun = Instant::now();
        let mut shell = tokio::process::Command::new("/bin/bash");
        let output = shell.args(["-c", command]).current_dir(home).stdin(Stdio::null()).output().await?;
        bare.push(begun.elapsed());
        anyhow::ensure!(output.status.success());
    }
    let (isolated, bare) = (median(isolated), median(bare));
    Ok(Row {
        measure: format!("{name}, over a bare shell (median)"),
        hart: format!("{isolated:.0} ms ({:+.0} %)", (isolated / bare - 1.0) * 100.0),
        floor: format!("{bare:.0} ms"),
        target: "–",
    })
}

async fn flood(sandbox: &dyn Sandbox) -> anyhow::Result<Row> {
    let before = resident()?;
    let begun = Instant::now();
    let exec = Exec::new("head -c 1000000000 /dev/zero | tr '\\0' x").output_limit(20_000);
    let seen = std::sync::atomic::AtomicUsize::new(0);
    let sink = |_, text: &str| {
        seen.fetch_add(text.len(), std::sync::atomic::Ordering::Relaxed);
    };
    sandbox.exec(exec, Some(&sink), &Default::default()).await?;
    Ok(Row {
        measure: "memory grown by 1 GB of output".into(),
        hart: format!("{:.1} MB in {:.1} s", resident()? - before, begun.elapsed().as_secs_f64()),
        floor: "–".into(),
        target: "≤ 32 MB",
    })
}

async fn held(provider: &LocalSandboxProvider) -> anyhow::Result<Row> {
    let before = resident()?;
    let mut sandboxes = Vec::new();
    for index in 0..HELD {
        sandboxes.push(provider.acquire(&ThreadId::from(format!("t{index}")), &UserId::from("u")).await?);
    }
    let cancel = CancellationToken::new();
    let commands = sandboxes.iter().map(|sandbox| sandbox.exec(Exec::new("sleep 60"), None, &cancel));
    let watch = async {
        tokio::time::sleep(Duration::from_secs(6)).await;
        let now = resident();
        cancel.cancel();
        now
    };
    let (ended, now) = tokio::join!(join_all(commands), watch);
    ended.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Row {
        measure: format!("{HELD} sandboxes held, each running a command: hart's memory"),
        hart: format!("{:.1} MB (+{:.1})", now?, resident()? - before),
        floor: "–".into(),
        target: "< 100 MB",
    })
}

/// Files of a few kilobytes.
fn plant(dir: impl Fn(usize) -> PathBuf) -> anyhow::Result<()> {
    for index in 0..FILES {
        let dir = dir(index);
        std::fs::create_dir_all(&dir)?;
        let mut text =
            "fn main() { let value = compute(); println!(\"{value}\"); }\n".repeat(30 + index % 40);
        if index % 1000 == 7 {
            text.push_str("let needle_in_the_haystack = 1;\n");
        }
        std::fs::write(dir.join(format!("f{index}.rs")), text)?;
    }
    Ok(())
}

/// In turns with `rg`, which searches the same files for the same pattern with as many threads.
async fn grep(sandbox: &dyn Sandbox, workspace: &Path, below: &str, measure: &str) -> anyhow::Result<Row> {
    let rg = find_rg();
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..15 {
        let begun = Instant::now();
        let found = sandbox.grep(GrepQuery::new(VPath::parse(below)?, "needle_in_\\w+")).await?;
        own.push(begun.elapsed());
        anyhow::ensure!(found.matches.len() == FILES / 1000, "{} found", found.matches.len());
        if let Some(rg) = &rg {
            let begun = Instant::now();
            let output = Command::new(rg)
                .args(["-n", "-i", "needle_in_\\w+"])
                .arg(workspace.join(below))
                .stdin(Stdio::null())
                .output()?;
            theirs.push(begun.elapsed());
            anyhow::ensure!(output.status.success());
        }
    }
    let own = median(own);
    let (hart, floor) = if rg.is_some() {
        let theirs = median(theirs);
        (format!("{own:.0} ms ({:.2} ×)", own / theirs), format!("{theirs:.0} ms (`rg`)"))
    } else {
        (format!("{own:.0} ms"), "skipped: rg not installed".into())
    };
    Ok(Row { measure: format!("grep over {FILES} files{measure}"), hart, floor, target: "≤ 1.5 × `rg`" })
}

/// A program, not a script that looks for one: its start would be measured too.
fn find_rg() -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        let mut magic = [0; 4];
        let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
        read.is_ok() && magic == *b"\x7fELF"
    };
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join("rg")).find(is_program)
}

async fn glob(sandbox: &dyn Sandbox, workspace: &Path) -> anyhow::Result<Row> {
    let (mut own, mut bare) = (Vec::new(), Vec::new());
    let tree = workspace.join("tree");
    for _ in 0..41 {
        let begun = Instant::now();
        let found = sandbox.glob(GlobQuery::new(VPath::parse("tree")?, "**/f1999*.rs")).await?;
        own.push(begun.elapsed());
        anyhow::ensure!(found.paths.len() == 11, "{} found", found.paths.len());
        let begun = Instant::now();
        anyhow::ensure!(walk(&tree) == FILES);
        bare.push(begun.elapsed());
    }
    let (own, bare) = (median(own), median(bare));
    Ok(Row {
        measure: format!("glob over {FILES} files, against a bare parallel walk"),
        hart: format!("{own:.1} ms ({:.2} ×)", own / bare),
        floor: format!("{bare:.1} ms"),
        target: "≤ 1.5 ×",
    })
}

/// Two threads over one stack of directories.
fn walk(root: &Path) -> usize {
    let pending: Mutex<(Vec<PathBuf>, usize)> = Mutex::new((vec![root.to_owned()], 0));
    let lock = || pending.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let work = || {
        let mut files = 0;
        loop {
            let next = {
                let mut state = lock();
                match state.0.pop() {
                    Some(dir) => {
                        state.1 += 1;
                        Some(dir)
                    }
                    None if state.1 == 0 => return files,
                    None => None,
                }
            };
            let Some(dir) = next else {
                std::thread::yield_now();
                continue;
            };
            for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    lock().0.push(entry.path());
                } else {
                    files += 1;
                }
            }
            lock().1 -= 1;
        }
    };
    std::thread::scope(|threads| {
        let other = threads.spawn(work);
        work() + other.join().unwrap_or_default()
    })
}

/// Megabytes.
fn resident() -> anyhow::Result<f64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = statm.split(' ').nth(1).unwrap_or_default().parse()?;
    Ok(pages * 4096.0 / (1 << 20) as f64)
}
