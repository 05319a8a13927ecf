//! However a command ends, nothing of it stays.

use std::process::{Command, Stdio};
use std::time::Duration;

use hart_sandbox::{Exec, Exit, LocalSandboxProvider, SandboxConfig, SandboxProvider};
use hart_types::{ThreadId, UserId};
use tokio_util::sync::CancellationToken;

use crate::support::{Place, eventually, processes_with, tree_of};

/// Prints, leaves a process in a session of its own that ignores signals, and stays.
fn stubborn(marker: &str) -> String {
    format!(
        "echo started; setsid bash -c 'trap \"\" TERM HUP INT; while :; do sleep 600; done; : {marker}' & \
         trap '' TERM; while :; do sleep 600; done; : {marker}"
    )
}

fn marker(name: &str) -> String {
    format!("hart-test-{}-{name}", std::process::id())
}

#[tokio::test]
async fn a_timeout_takes_the_whole_tree_and_keeps_the_output() {
    let Some(place) = Place::isolated().await else { return };
    let marker = marker("timeout");
    let output = place.exec(Exec::new(stubborn(&marker)).timeout(Duration::from_secs(3))).await;
    assert_eq!(output.exit, Exit::TimedOut);
    assert_eq!(output.stdout, "started\n");
    assert_eq!(processes_with(&marker), [] as [u32; 0]);
}

#[tokio::test]
async fn cancelling_takes_the_whole_tree() {
    let Some(place) = Place::isolated().await else { return };
    let marker = marker("cancel");
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let sink = |_, _: &str| stop.cancel();
    let output = place.sandbox.exec(Exec::new(stubborn(&marker)), Some(&sink), &cancel).await.unwrap();
    assert_eq!(output.exit, Exit::Cancelled);
    assert_eq!(output.stdout, "started\n");
    assert_eq!(processes_with(&marker), [] as [u32; 0]);
}

#[tokio::test]
async fn a_cancelled_call_does_not_start() {
    let place = Place::new().await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let output = place.sandbox.exec(Exec::new("touch ran"), None, &cancel).await.unwrap();
    assert_eq!(output.exit, Exit::Cancelled);
    assert!(!place.workspace().join("ran").exists());
}

#[tokio::test]
async fn dropping_the_future_takes_the_whole_tree() {
    let Some(place) = Place::isolated().await else { return };
    let marker = marker("drop");
    let started = tokio::sync::Notify::new();
    let sink = |_, _: &str| started.notify_one();
    let cancel = CancellationToken::new();
    tokio::select! {
        output = place.sandbox.exec(Exec::new(stubborn(&marker)), Some(&sink), &cancel) => panic!("ended: {output:?}"),
        () = started.notified() => {}
    }
    eventually("the end of the tree", || processes_with(&marker).is_empty()).await;
}

#[tokio::test]
async fn a_background_process_ends_with_its_command() {
    let Some(place) = Place::isolated().await else { return };
    let marker = marker("background");
    let command = format!("setsid bash -c 'echo up; sleep 600; : {marker}' & sleep 0.2; echo done");
    let output = place.run(&command).await;
    assert_eq!(output.exit, Exit::Code(0));
    assert!(output.stdout.contains("done"));
    assert_eq!(processes_with(&marker), [] as [u32; 0]);
}

#[tokio::test]
async fn closed_streams_do_not_end_a_command() {
    let Some(place) = Place::isolated().await else { return };
    let output = place.run("exec >&- 2>&-; sleep 0.3; exit 3").await;
    assert_eq!(output.exit, Exit::Code(3));
}

#[tokio::test]
async fn shutdown_ends_what_runs() {
    let Some(place) = Place::isolated().await else { return };
    let marker = marker("shutdown");
    let started = tokio::sync::Notify::new();
    let sink = |_, _: &str| started.notify_one();
    let cancel = CancellationToken::new();
    let run = place.sandbox.exec(Exec::new(stubborn(&marker)), Some(&sink), &cancel);
    let close = async {
        started.notified().await;
        place.provider.shutdown().await;
    };
    let (output, ()) = tokio::join!(run, close);
    assert_eq!(output.unwrap().exit, Exit::Cancelled);
    let again = place.provider.acquire(&ThreadId::from("t"), &UserId::from("u")).await;
    assert!(again.unwrap_err().to_string().contains("shutting down"));
}

/// Set only in the process to be killed: the marker of its command and its home directory.
const TO_BE_KILLED: &str = "HART_SANDBOX_TEST_TO_BE_KILLED";

async fn run_until_killed(setting: &str) {
    let (marker, home) = setting.split_once('|').unwrap();
    let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.into(), None).unwrap();
    let sandbox = provider.acquire(&ThreadId::from("t"), &UserId::from("u")).await.unwrap();
    let _ = sandbox.exec(Exec::new(stubborn(marker)), None, &CancellationToken::new()).await;
}

#[tokio::test]
async fn killing_hart_takes_the_whole_tree() {
    // Who kills hart must outlive it, so hart is a second process: this binary, started below for this test alone.
    if let Ok(setting) = std::env::var(TO_BE_KILLED) {
        return run_until_killed(&setting).await;
    }
    let Some(place) = Place::isolated().await else { return };
    let marker = marker("kill");
    let mut helper = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ending::killing_hart_takes_the_whole_tree"])
        .env(TO_BE_KILLED, format!("{marker}|{}", place.home.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The helper, its waiter, pid 1, the command and the process in its own session.
    let started = || tree_of(helper.id()).len() >= 5 && processes_with(&marker).len() >= 2;
    eventually("the start of the tree", started).await;
    let tree = tree_of(helper.id());
    helper.kill().unwrap();
    helper.wait().unwrap();
    let alive = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    eventually("the end of the tree", || !tree.iter().any(alive) && processes_with(&marker).is_empty()).await;
}

#[tokio::test]
async fn a_fork_storm_ends_at_the_timeout() {
    let Some(place) = Place::isolated().await else { return };
    let marker = marker("storm");
    let storm =
        format!("for i in $(seq 60); do (setsid bash -c 'sleep 600; : {marker}' &) ; done; sleep 600");
    let output = place.exec(Exec::new(storm).timeout(Duration::from_secs(3))).await;
    assert_eq!(output.exit, Exit::TimedOut);
    assert_eq!(processes_with(&marker), [] as [u32; 0]);
    assert!(place.run("true").await.exit.success());
}
