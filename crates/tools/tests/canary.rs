//! No answer and no error of any tool names a path of the host.

use std::os::unix::fs::symlink;

use hart_sandbox::SandboxConfig;
use serde_json::{Value, json};

use crate::place::Place;

/// In the home's path, so that any leak of a host path shows it.
const CANARY: &str = "canary-7f3a9";

fn calls() -> Vec<(&'static str, Value)> {
    let paths = [
        "a.txt",
        "dir",
        "missing",
        "missing/deeper",
        "a.txt/below",
        "out",
        "absolute",
        "loop",
        "fifo",
        "binary",
        "locked/x",
        ".",
        "/",
        "/etc/passwd",
        "../../../../x",
        "/mnt/user-data",
        "/mnt/skills/x",
        "a\0b",
        "",
    ];
    let mut calls = Vec::new();
    for path in paths {
        for tool in ["ls", "read_file", "delete"] {
            calls.push((tool, json!({"path": path})));
        }
        calls.push(("read_file", json!({"path": path, "start_line": 99})));
        calls.push(("glob", json!({"path": path, "pattern": "**/*"})));
        calls.push(("glob", json!({"path": path, "pattern": "["})));
        calls.push(("grep", json!({"path": path, "pattern": "x"})));
        calls.push(("grep", json!({"path": path, "pattern": "("})));
        calls.push(("str_replace", json!({"path": path, "old_str": "nowhere", "new_str": "y"})));
        calls.push(("write_file", json!({"path": format!("{path}/new"), "content": "x"})));
        calls.push(("write_file", json!({"path": path, "content": "x"})));
        calls.push(("present_files", json!({"filepaths": [path]})));
    }
    for command in [
        "pwd; ls -la / /mnt /mnt/user-data; cat missing; cd /nowhere; readlink -f .",
        "cat /proc/self/mountinfo /proc/self/environ /proc/mounts 2>&1; env; df 2>&1",
        "find / -maxdepth 3 2>/dev/null | head -n 500",
        "seq 99999; exit 7",
    ] {
        calls.push(("bash", json!({"command": command})));
        calls.push(("bash", json!({"command": command, "background": true})));
    }
    calls.push(("background", json!({"action": "list"})));
    calls.push(("background", json!({"action": "status", "id": "bg-1", "wait_seconds": 5})));
    calls.push(("background", json!({"action": "kill", "id": "bg-2"})));
    calls
}

#[tokio::test]
async fn host_paths_stay_on_the_host() {
    let place = Place::named(CANARY, SandboxConfig::default());
    place.put("workspace/a.txt", "x marks the spot");
    place.put("workspace/dir/b.txt", "x");
    place.put("workspace/binary", b"\x89PNG\r\n\x1a\n\0\0");
    place.put("outputs/done.txt", "x");
    symlink("/etc/hostname", place.host("workspace/absolute")).unwrap();
    symlink("../../../../../etc/hostname", place.host("workspace/out")).unwrap();
    symlink("loop", place.host("workspace/loop")).unwrap();
    std::fs::create_dir(place.host("workspace/fifo")).unwrap();
    for (tool, args) in calls() {
        let shown = match place.call(tool, args.clone()).await {
            Ok(output) => format!("{} {:?}", output.content.text(), output.artifact),
            Err(error) => error.to_string(),
        };
        assert!(!shown.contains(CANARY), "{tool} {args}: {shown}");
    }
    // The tree itself: what tools wrote for the model to read.
    let saved = std::fs::read_dir(place.host("outputs/.tool-results")).into_iter().flatten().flatten();
    for entry in saved {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        assert!(!text.contains(CANARY), "{text}");
    }
}
