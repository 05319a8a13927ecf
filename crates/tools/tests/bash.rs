//! `bash`, wherever the machine can confine a command.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hart_kernel::{AgentEvent, EventSink, RunContext, ToolError, async_trait};
use hart_sandbox::SandboxConfig;
use serde_json::json;

use crate::place::{Closed, Place, call};

fn place() -> Option<Place> {
    Place::for_commands(SandboxConfig::default())
}

#[tokio::test]
async fn a_command_answers_with_what_it_prints() {
    let Some(place) = place() else { return };
    let run = async |command: &str| place.ok("bash", json!({"description": "try", "command": command})).await;
    assert_eq!(run("echo hello; pwd").await, "hello\n/mnt/user-data/workspace");
    assert_eq!(run("true").await, "(no output)");
    assert_eq!(run("echo out; echo oops >&2").await, "out\nStd Error:\noops");
    assert_eq!(run("echo half; exit 3").await, "half\nExit Code: 3");
    assert_eq!(run("kill -9 $$").await, "Exit Code: 137 (killed by signal 9)");
}

#[tokio::test]
async fn commands_and_file_tools_see_the_same_files() {
    let Some(place) = place() else { return };
    let path = "/mnt/user-data/outputs/a.txt";
    place.ok("write_file", json!({"description": "", "path": path, "content": "one\n"})).await;
    let command = format!("cat {path}; echo two >> {path}");
    assert_eq!(place.ok("bash", json!({"description": "", "command": command})).await, "one");
    assert_eq!(place.ok("read_file", json!({"description": "", "path": path})).await, "one\ntwo\n");
}

#[tokio::test]
async fn long_output_loses_its_middle() {
    let Some(place) = place() else { return };
    let command = "echo first; i=0; while [ $i -lt 4000 ]; do echo 0123456789; i=$((i+1)); done; echo last";
    let text = place.ok("bash", json!({"description": "", "command": command})).await;
    assert_eq!(text.chars().count(), 20_000);
    assert!(text.starts_with("first\n0123456789\n") && text.ends_with("0123456789\nlast"));
    let (_, note) = text.split_once("\n... [middle truncated: ").unwrap();
    let (_, path) = note.split_once(" chars skipped; the whole output is in ").unwrap();
    let (path, how) = path.split_once(": ").unwrap();
    assert!(
        path.starts_with("/mnt/user-data/outputs/.tool-results/bash-") && path.ends_with(".log"),
        "{path}"
    );
    assert!(how.starts_with("read it with read_file (start_line, end_line) or search it with grep] ...\n"));
    let whole = place.get(path.strip_prefix("/mnt/user-data/").unwrap());
    assert_eq!(whole, format!("first\n{}last\n", "0123456789\n".repeat(4000)));
    let range = json!({"description": "", "path": path, "start_line": 4001, "end_line": 4002});
    assert_eq!(place.ok("read_file", range).await, "0123456789\nlast\n");
}

#[tokio::test]
async fn output_that_is_shown_whole_leaves_no_file() {
    let Some(place) = place() else { return };
    // More bytes than the limit has characters, but fewer characters.
    let command = "i=0; while [ $i -lt 900 ]; do echo äöüäöüäöüäöü; i=$((i+1)); done";
    let output = place.call("bash", json!({"description": "", "command": command})).await.unwrap();
    assert_eq!(output.content.text().lines().count(), 900);
    assert_eq!(output.artifact.unwrap().get("output_file"), None);
    let results = place.host("outputs/.tool-results");
    assert_eq!(std::fs::read_dir(results).map(Iterator::count).unwrap_or(0), 0);
}

#[tokio::test]
async fn a_flood_is_kept_up_to_a_limit_and_says_so() {
    let Some(place) = place() else { return };
    let command = "head -c 80000000 /dev/zero | tr '\\0' x; echo; echo end";
    let output = place.call("bash", json!({"description": "", "command": command})).await.unwrap();
    let text = output.content.text();
    assert!(
        text.contains("chars skipped; the first 67108864 bytes are in /mnt/user-data/outputs/"),
        "{text}"
    );
    assert!(text.ends_with("\nend"));
    let path = output.artifact.unwrap()["output_file"].as_str().unwrap().to_owned();
    let size = std::fs::metadata(place.host(path.strip_prefix("/mnt/user-data/").unwrap())).unwrap().len();
    assert_eq!(size, 64 << 20);
}

#[tokio::test]
async fn where_the_output_cannot_be_kept_the_model_hears_why() {
    let Some(place) = place() else { return };
    place.put("outputs/.tool-results", "a file where the folder should be");
    let text = place.ok("bash", json!({"description": "", "command": "seq 9999"})).await;
    assert!(text.contains(" chars skipped; it could not be kept in a file ("), "{text}");
    assert!(text.contains("); redirect the output to a file and read that in parts] ...\n"), "{text}");
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_stopped_and_told() {
    let config =
        SandboxConfig { bash_command_timeout: Duration::from_millis(500), ..SandboxConfig::default() };
    let Some(place) = Place::for_commands(config) else { return };
    let text = place.ok("bash", json!({"description": "", "command": "echo begun; sleep 600"})).await;
    assert!(
        text.starts_with(
            "begun\nTimed Out: the command was stopped after 0.5 seconds, with everything it had started. "
        ),
        "{text}"
    );
}

#[tokio::test]
async fn a_cancelled_run_stops_its_command() {
    let Some(place) = place() else { return };
    let command = json!({"description": "", "command": "echo begun; sleep 600"});
    let (text, ()) = tokio::join!(place.ok("bash", command), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        place.run.cancel.cancel();
    });
    assert!(text.ends_with("Cancelled: the command was stopped before it ended."), "{text}");
}

/// Remembers progress: which call it was of, and what it said.
#[derive(Default)]
struct Listener(Mutex<Vec<(String, String)>>);

#[async_trait]
impl EventSink for Listener {
    async fn emit(&self, event: AgentEvent) {
        // A slow listener: what comes meanwhile must be neither lost nor reordered.
        tokio::task::yield_now().await;
        if let AgentEvent::ToolProgress { call_id, text } = event {
            self.0.lock().unwrap().push((call_id.to_string(), text));
        }
    }
}

#[tokio::test]
async fn output_is_streamed_while_the_command_runs() {
    let Some(mut place) = place() else { return };
    let listener = Arc::new(Listener::default());
    place.run =
        RunContext::new(place.run.thread_id.clone()).with_events(Arc::clone(&listener) as Arc<dyn EventSink>);
    // It waits for a file that is made only once its first line was seen: without streaming this would never end.
    let command =
        json!({"description": "", "command": "echo one; until [ -e go ]; do sleep 0.05; done; echo two"});
    let (text, ()) = tokio::join!(place.ok("bash", command), async {
        while listener.0.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        place.put("workspace/go", "");
    });
    assert_eq!(text, "one\ntwo");
    let seen = listener.0.lock().unwrap();
    assert!(seen.iter().all(|(call_id, _)| call_id == "call-1"));
    assert_eq!(seen.iter().map(|(_, text)| text.as_str()).collect::<String>(), "one\ntwo\n");
    assert_eq!(seen.first().unwrap().1, "one\n");
}

#[tokio::test]
async fn endless_output_is_not_streamed_without_end() {
    let Some(mut place) = place() else { return };
    let listener = Arc::new(Listener::default());
    place.run =
        RunContext::new(place.run.thread_id.clone()).with_events(Arc::clone(&listener) as Arc<dyn EventSink>);
    place.ok("bash", json!({"description": "", "command": "head -c 5000000 /dev/zero | tr '\\0' x"})).await;
    let seen: String = listener.0.lock().unwrap().iter().map(|(_, text)| text.as_str()).collect();
    assert!(seen.len() <= (1 << 20) + 100, "{}", seen.len());
    assert!(seen.ends_with("\n... [the rest is not streamed] ...\n"));
}

#[tokio::test]
async fn commands_that_cannot_be_are_explained() {
    let place = Place::new();
    assert_eq!(
        place.fails("bash", json!({"description": "", "command": " \n"})).await,
        "the command is empty; say what to run"
    );
    assert_eq!(
        place.fails("bash", json!({"description": "", "command": "echo a\0b"})).await,
        "the command contains a NUL byte; remove it"
    );
    let error = place.fails("bash", json!({"description": "", "command": "#".repeat(200_000)})).await;
    assert!(error.ends_with("write it to a file and run that file"), "{error}");
}

#[tokio::test]
async fn a_sandbox_that_is_not_there_is_for_the_user_to_know() {
    let run = RunContext::new("thread-1".into());
    for tool in Closed::tools() {
        let args = json!({
            "description": "", "command": "true", "path": ".", "pattern": "x", "content": "", "old_str": "a",
            "new_str": "b", "filepaths": ["a"], "action": "list",
        });
        match call(tool.as_ref(), &run, args).await {
            Err(ToolError::Failed(message)) => assert_eq!(message, Closed::MESSAGE),
            other => panic!("{}: {other:?}", tool.spec().name),
        }
    }
}
