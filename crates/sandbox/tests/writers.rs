//! Many who change one file, and some who are killed while they do.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hart_sandbox::{LocalSandboxProvider, Sandbox, SandboxConfig, SandboxProvider, WriteMode};
use hart_types::{ThreadId, UserId};
use tokio::task::JoinSet;

use crate::support::{Place, path};

/// What an edit has seen.
fn digest(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

/// One of three kinds of change, each leaving a line; an edit also tells what it found.
async fn change(sandbox: &dyn Sandbox, file: &str, number: usize, overwrites: bool) {
    let file = &path(file);
    match number % 3 {
        0 if overwrites => {
            sandbox.write(file, format!("W{number}\n").as_bytes(), WriteMode::Overwrite).await.unwrap();
        }
        0 | 1 => sandbox.write(file, format!("A{number}\n").as_bytes(), WriteMode::Append).await.unwrap(),
        _ => {
            let mut edit = |old: &[u8]| {
                let line = format!("M{number} {}\n", digest(old));
                Some([old, line.as_bytes()].concat())
            };
            assert!(sandbox.modify(file, &mut edit).await.unwrap());
        }
    }
}

/// The content is what some order of the changes gives, one after the other; returns those whose line is there.
fn serial(content: &[u8], overwrites: bool) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let mut before = 0;
    for (index, line) in content.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let text = std::str::from_utf8(line).unwrap().trim_end();
        if index == 0 && text == "start" {
            before += line.len();
            continue;
        }
        let (kind, rest) = text.split_at(1);
        let (number, found) = rest.split_once(' ').unwrap_or((rest, ""));
        match kind {
            "W" => assert!(index == 0 && overwrites, "{text} at line {index}"),
            "A" => {}
            "M" => {
                assert_eq!(found, digest(&content[..before]).to_string(), "{text} did not see what was there")
            }
            other => panic!("{other}"),
        }
        assert!(seen.insert(number.parse().unwrap()), "{text} is there twice");
        before += line.len();
    }
    seen
}

/// Four names of one file.
const NAMES: [&str; 4] = ["real/f", "link/f", "real/alias", "link/../real/f"];

async fn place() -> Arc<Place> {
    let place = Place::new().await;
    place.sandbox.write(&path("real/f"), b"start\n", WriteMode::Overwrite).await.unwrap();
    symlink("real", place.workspace().join("link")).unwrap();
    symlink("f", place.workspace().join("real/alias")).unwrap();
    Arc::new(place)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_writers_give_what_some_order_of_them_gives() {
    for (round, overwrites) in [(0, false), (1, true), (2, false), (3, true), (4, false)] {
        let place = place().await;
        let mut changes = JoinSet::new();
        for number in 0..32 {
            let place = Arc::clone(&place);
            changes.spawn(async move {
                // As a subagent would: it asks for the sandbox itself, and lets go of it.
                let (thread, user) = (ThreadId::from("thread"), UserId::from("user"));
                let sandbox = place.provider.acquire(&thread, &user).await.unwrap();
                change(&*sandbox, NAMES[(number + round) % 4], number, overwrites).await;
                place.provider.release(sandbox.id()).await.unwrap();
            });
        }
        while let Some(change) = changes.join_next().await {
            change.unwrap();
        }
        let content = std::fs::read(place.workspace().join("real/f")).unwrap();
        let seen = serial(&content, overwrites);
        if !overwrites {
            assert_eq!(seen, (0..32).collect(), "a change was lost");
        }
        assert!(place.workspace().join("real/alias").is_symlink());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_that_nobody_waits_for_disturbs_no_other() {
    let place = place().await;
    let mut changes = JoinSet::new();
    for number in 0..200 {
        let place = Arc::clone(&place);
        changes.spawn(async move {
            let work = change(&*place.sandbox, NAMES[number % 4], number, false);
            // Gone in the middle of it, sooner or later.
            let _ = tokio::time::timeout(Duration::from_micros((number as u64 * 97) % 3000), work).await;
        });
    }
    while let Some(change) = changes.join_next().await {
        change.unwrap();
    }
    // Waits for whoever is still at work.
    change(&*place.sandbox, "real/f", 1000, false).await;
    let content = std::fs::read(place.workspace().join("real/f")).unwrap();
    assert!(serial(&content, false).contains(&1000));
}

/// Set only in the process that is killed, to the home directory it writes in.
const WRITER: &str = "HART_SANDBOX_TEST_WRITER";
/// No round number: what ends within a page is where a write is interrupted.
const SIZE: usize = 600_001;

#[tokio::test]
async fn a_writer_killed_in_the_middle_leaves_the_old_or_the_new() {
    if let Some(home) = std::env::var_os(WRITER) {
        write_for_ever(Path::new(&home)).await;
    }
    let place = Place::new().await;
    let mut appended = BTreeSet::new();
    for round in 0..30_u64 {
        let mut writer = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--nocapture",
                "--exact",
                "writers::a_writer_killed_in_the_middle_leaves_the_old_or_the_new",
            ])
            .env(WRITER, &place.home)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let ready = place.workspace().join("ready");
        crate::support::eventually("the writer's start", || ready.exists()).await;
        tokio::time::sleep(Duration::from_micros(round * 1711 % 20_000)).await;
        writer.kill().unwrap();
        writer.wait().unwrap();
        std::fs::remove_file(ready).unwrap();
        for name in ["replaced", "edited"] {
            let content = std::fs::read(place.workspace().join(name)).unwrap();
            assert_eq!(content.len(), SIZE, "{name}");
            assert!(content.iter().all(|byte| *byte == content[0]), "{name} is half old and half new");
        }
        let content = std::fs::read(place.workspace().join("appended")).unwrap();
        assert_eq!(content.len() % SIZE, 0, "half of something was appended");
        appended.insert(content.len());
    }
    assert!(appended.len() > 1, "nothing was going on");
    // What a killed one leaves lying about is no file to anyone who looks.
    let listing = place.sandbox.list(&path("."), 1).await.unwrap();
    assert_eq!(listing.entries.len(), 3, "{listing:?}");
}

async fn write_for_ever(home: &Path) -> ! {
    let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.to_owned(), None).unwrap();
    let sandbox = provider.acquire(&ThreadId::from("thread"), &UserId::from("user")).await.unwrap();
    let mut round = 0_u8;
    loop {
        let content = vec![b'a' + round; SIZE];
        sandbox.write(&path("replaced"), &content, WriteMode::Overwrite).await.unwrap();
        if !home.join("users/user/threads/thread/user-data/workspace/ready").exists() {
            sandbox.write(&path("appended"), &content, WriteMode::Overwrite).await.unwrap();
            sandbox.write(&path("edited"), &content, WriteMode::Overwrite).await.unwrap();
            sandbox.write(&path("ready"), b"", WriteMode::Overwrite).await.unwrap();
        }
        round = (round + 1) % 26;
        sandbox.modify(&path("edited"), &mut |_| Some(content.clone())).await.unwrap();
        for part in 0..8 {
            let mode = if part == 0 { WriteMode::Overwrite } else { WriteMode::Append };
            sandbox.write(&path("appended"), &content, mode).await.unwrap();
        }
    }
}
