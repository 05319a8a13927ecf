//! `decode → encode` is the identity on every recorded message.

use std::path::{Path, PathBuf};

use hart_types::Message;
use serde_json::Value;

#[test]
fn recorded_conversations_round_trip() {
    let count: usize = files("conversations").iter().map(|file| check(file, &read_json(file))).sum();
    assert!(count > 150, "only {count} messages found: are the recordings there?");
}

#[test]
fn recorded_wire_samples_round_trip() {
    let mut count = 0;
    for file in files("wire") {
        let text = std::fs::read_to_string(&file).unwrap();
        for line in text.lines() {
            let json = line.strip_prefix("data: ").or_else(|| line.strip_prefix("> ")).unwrap_or(line);
            if let Ok(value) = serde_json::from_str::<Value>(json) {
                count += check(&file, &value);
            }
        }
    }
    assert!(count > 400, "only {count} messages found: are the recordings there?");
}

/// Round-trips every message inside `value`, however deep, and counts them.
fn check(file: &Path, value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(|item| check(file, item)).sum(),
        Value::Object(map) => {
            let below: usize = map.values().map(|item| check(file, item)).sum();
            if !is_message(value) {
                return below;
            }
            let message: Message = serde_json::from_value(value.clone())
                .unwrap_or_else(|e| panic!("{}: {e}: {value}", file.display()));
            let again = serde_json::to_value(&message).unwrap();
            assert_eq!(&again, value, "in {}", file.display());
            below + 1
        }
        _ => 0,
    }
}

fn is_message(value: &Value) -> bool {
    let kind = value["type"].as_str().unwrap_or_default();
    let known = ["human", "ai", "tool", "system", "AIMessageChunk", "remove"].contains(&kind);
    known && (value.get("content").is_some() || kind == "remove")
}

fn read_json(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn files(folder: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contracts").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}
