//! `bash` with `background`, and `background`.

use std::sync::Arc;

use hart_sandbox::{Background, JobState, MAX_BACKGROUND, SandboxConfig};
use serde_json::json;

use crate::place::Place;

fn place() -> Option<Place> {
    Place::for_commands(SandboxConfig::default())
}

async fn start(place: &Place, command: &str) -> String {
    place.ok("bash", json!({"description": "", "command": command, "background": true})).await
}

async fn act(place: &Place, action: &str, id: &str) -> String {
    place.ok("background", json!({"description": "", "action": action, "id": id, "wait_seconds": 60})).await
}

#[tokio::test]
async fn a_command_runs_on_and_tells_what_is_new() {
    let Some(place) = place() else { return };
    let command = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 3";
    let started = start(&place, command).await;
    assert!(started.starts_with("Started in the background.\nbg-1: running"), "{started}");
    let mut seen = started;
    while !seen.contains("one") {
        seen.push_str(&act(&place, "status", "bg-1").await);
    }
    assert_eq!(
        place.ok("background", json!({"action": "list"})).await,
        format!("bg-1 (running): {command}"),
        "the sandbox is free for other calls meanwhile"
    );
    place.put("workspace/go", "");
    while !seen.contains("ended") {
        seen.push_str(&act(&place, "status", "bg-1").await);
    }
    assert!(seen.contains("New output:\ntwo"), "{seen}");
    assert!(seen.contains("bg-1: ended, Exit Code: 3"), "{seen}");
    assert_eq!(seen.matches("\none").count(), 1, "what was told is not told again: {seen}");
    assert_eq!(act(&place, "status", "bg-1").await, "bg-1: ended, Exit Code: 3\n(no new output)");
}

#[tokio::test]
async fn a_killed_command_is_gone() {
    let Some(place) = place() else { return };
    start(&place, "trap '' TERM; echo here; while :; do date > beat; sleep 0.02; done").await;
    assert!(act(&place, "kill", "bg-1").await.starts_with("bg-1: killed"));
    let _ = std::fs::remove_file(place.host("workspace/beat"));
    place.ok("bash", json!({"description": "", "command": "sleep 0.2"})).await;
    assert!(!place.host("workspace/beat").exists(), "it still beats");
    assert!(act(&place, "kill", "bg-1").await.starts_with("bg-1: killed"), "killing twice is no error");
}

#[tokio::test]
async fn there_are_only_so_many_and_they_end_with_their_owner() {
    let Some(place) = place() else { return };
    for index in 0..MAX_BACKGROUND {
        start(&place, &format!("while :; do date > beat{index}; sleep 0.02; done")).await;
    }
    let error = place.fails("bash", json!({"command": "true", "background": "true"})).await;
    assert_eq!(
        error,
        "8 commands run in the background already; end one of them first, or wait until one ends"
    );
    let background = place.run.scratch.get_or_default::<Background>();
    background.stop().await;
    assert!(background.list().iter().all(|job| job.state != JobState::Running));
    for index in 0..MAX_BACKGROUND {
        let _ = std::fs::remove_file(place.host(&format!("workspace/beat{index}")));
    }
    place.ok("bash", json!({"command": "sleep 0.2"})).await;
    assert!(!place.host("workspace").read_dir().unwrap().any(|entry| entry.is_ok()), "one still beats");
}

#[tokio::test]
async fn what_is_dropped_ends_too() {
    let Some(mut place) = place() else { return };
    start(&place, "while :; do date > beat; sleep 0.02; done").await;
    let (home, beat) = (Arc::new(place.host("")), place.host("workspace/beat"));
    place.run = hart_kernel::RunContext::new(place.run.thread_id.clone());
    assert!(home.exists());
    for _ in 0..500 {
        let _ = std::fs::remove_file(&beat);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        if !beat.exists() {
            return;
        }
    }
    panic!("it outlived its run");
}

#[tokio::test]
async fn long_output_of_a_command_is_in_a_file() {
    let Some(place) = place() else { return };
    let mut seen = start(&place, "seq 20000").await;
    while !seen.contains("ended") {
        seen = act(&place, "status", "bg-1").await;
    }
    let (_, path) = seen.rsplit_once("[all of its output is in ").unwrap();
    let path = path.trim_end_matches(']').strip_prefix("/mnt/user-data/").unwrap();
    assert_eq!(place.get(path).lines().count(), 20_000);
}

#[tokio::test]
async fn unknown_commands_are_explained() {
    let place = Place::new();
    let fails = async |args| place.fails("background", args).await;
    assert_eq!(
        fails(json!({"action": "status", "id": "bg-7"})).await,
        "no command in the background is called `bg-7`; there are none; start one with bash and \
         background=true"
    );
    assert!(fails(json!({"action": "kill"})).await.starts_with("say which command: give its id; "));
    assert_eq!(
        place.ok("background", json!({"action": "list"})).await,
        "No commands in the background. bash with background=true starts one, up to 8 at once."
    );
}
