//! Secrets that a skill asks for: in the environment of its commands, and nowhere else.

use std::path::Path;

use hart_testkit::Turn;
use serde_json::{Value, json};

use super::world::World;

const HUSH: &str = "hush-9f27c1aa";

fn skill(world: &World, name: &str, front: &str) {
    let folder = world.home.path().join(".hart/skills/custom").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("---\nname: {name}\ndescription: d\n{front}---\nThe method of {name}.\n");
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
}

fn bash(id: &str, command: &str) -> Turn {
    Turn::new().tool_call(id, "bash", json!({"description": "d", "command": command}))
}

async fn say(world: &World, thread: &str, words: &str, secrets: Value) -> Value {
    let input = json!({"messages": [{"role": "user", "content": words}]});
    let context = json!({ "secrets": secrets });
    let run =
        json!({"assistant_id": "lead_agent", "input": input, "context": context, "stream_mode": "values"});
    world.post(&format!("/threads/{thread}/runs/wait"), run).await
}

/// Files below a folder that hold this, but what the agent itself wrote, and the copies that are kept of its files.
fn holding(folder: &Path, needle: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.ends_with("snapshots") {
            continue;
        }
        if path.is_dir() {
            holding(&path, needle, found);
        } else if !path.ends_with("workspace/own.txt")
            && std::fs::read(&path)
                .is_ok_and(|bytes| bytes.windows(needle.len()).any(|at| at == needle.as_bytes()))
        {
            found.push(path.display().to_string());
        }
    }
}

#[tokio::test]
async fn the_commands_of_an_active_skill_have_them_and_nobody_else_does() {
    let read = |id: &str, path: &str| {
        Turn::new().tool_call(id, "read_file", json!({"description": "d", "path": path}))
    };
    let long = "for i in $(seq 4000); do echo \"$i $API_KEY\"; done";
    let world = World::new([
        bash("c1", "echo \"key=$API_KEY\"; env | grep API_; echo \"$API_KEY\" > own.txt; echo ${#API_KEY}"),
        read("c2", "/mnt/user-data/workspace/own.txt"),
        bash("c3", long),
        Turn::new().text("Done."),
        bash("d1", "echo [${API_KEY:-gone}]"),
        Turn::new().text("Done again."),
    ])
    .await;
    skill(&world, "notes", "required-secrets:\n  - API_KEY\n  - {name: OTHER, optional: true}\n");
    let thread = world.thread().await;
    let secrets = json!({"API_KEY": HUSH, "UNASKED": "hush-of-another"});
    say(&world, &thread, "/notes write", secrets.clone()).await;
    let last = world.model.last_request();
    let result = |id: &str| last.tool_result(id).unwrap().content;
    let length = HUSH.len().to_string();
    assert_eq!(result("c1"), format!("key=[redacted]\nAPI_KEY=[redacted]\n{length}"));
    assert!(result("c2").contains("[redacted]"), "{}", result("c2"));
    assert!(result("c3").contains("truncated"), "{}", result("c3").len());
    assert!(!last.texts_of("user").concat().contains("needs secrets"), "all that it needs is there");

    // The next turn follows no skill.
    say(&world, &thread, "and now?", secrets).await;
    assert_eq!(world.model.last_request().tool_result("d1").unwrap().content, "[gone]");

    for request in world.model.requests() {
        assert!(!String::from_utf8_lossy(&request.raw).contains(HUSH));
    }
    for path in ["", "/state", "/history", "/runs"] {
        let told = world.get(&format!("/threads/{thread}{path}")).await.to_string();
        assert!(!told.contains(HUSH), "{path}");
    }
    let mut found = Vec::new();
    holding(world.home.path(), HUSH, &mut found);
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test]
async fn what_is_missing_is_told_and_who_was_not_named_may_be_kept_from_them() {
    let world = World::new([
        Turn::new().text("I cannot."),
        Turn::new().tool_call(
            "r",
            "read_file",
            json!({"description": "d", "path": "/mnt/skills/custom/shy/SKILL.md"}),
        ),
        bash("b", "echo [${API_KEY:-gone}]"),
        Turn::new().text("Nothing."),
        bash("n", "echo ${#API_KEY}"),
        Turn::new().text("There."),
    ])
    .await;
    skill(&world, "notes", "required-secrets: [API_KEY]\n");
    skill(&world, "shy", "required-secrets: [API_KEY]\nsecrets-autonomous: false\n");
    let thread = world.thread().await;
    say(&world, &thread, "/notes write", json!({})).await;
    let told = world.model.last_request().texts_of("user").concat();
    assert!(told.contains("needs secrets that did not come with this run: `API_KEY`"), "{told}");

    let secrets = json!({"API_KEY": HUSH});
    say(&world, &thread, "take what fits", secrets.clone()).await;
    assert_eq!(world.model.last_request().tool_result("b").unwrap().content, "[gone]");
    say(&world, &thread, "/shy now", secrets).await;
    let length = HUSH.len().to_string();
    assert_eq!(world.model.last_request().tool_result("n").unwrap().content, length, "the user asked for it");
}
