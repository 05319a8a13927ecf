//! Every tool call of the recorded conversations is one our tools understand.

use std::collections::BTreeMap;
use std::path::Path;

use hart_kernel::{RunContext, ToolContext, ToolError};
use hart_types::{Message, ToolCall};
use serde_json::Value;

use crate::place::{Closed, Place, call};

/// Recorded tools that live elsewhere. A name that is neither here nor a tool of this crate fails the test.
const ELSEWHERE: [&str; 3] = ["write_todos", "web_search", "web_fetch"];

/// The messages of each conversation.
fn conversations() -> Vec<Vec<Message>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contracts/conversations");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 5, "all recordings are there");
    files
        .into_iter()
        .map(|path| {
            let json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            serde_json::from_value(json["values"]["messages"].clone()).unwrap()
        })
        .collect()
}

fn calls(messages: &[Message]) -> impl Iterator<Item = &ToolCall> {
    messages.iter().flat_map(Message::tool_calls)
}

#[tokio::test]
async fn every_recorded_call_is_accepted() {
    let run = RunContext::new("thread-1".into());
    let (sandboxed, asking) = (Closed::tools(), hart_tools::ask_clarification());
    let mut accepted: BTreeMap<String, usize> = BTreeMap::new();
    let conversations = conversations();
    for recorded in conversations.iter().flat_map(|messages| calls(messages)) {
        if ELSEWHERE.contains(&recorded.name.as_str()) {
            continue;
        }
        let args = Value::Object(recorded.args.clone());
        if let Some(tool) = sandboxed.iter().find(|tool| tool.spec().name == recorded.name) {
            // The arguments were understood if the call got as far as asking for a sandbox.
            match call(tool.as_ref(), &run, args).await {
                Err(ToolError::Failed(message)) => assert_eq!(message, Closed::MESSAGE, "{recorded:?}"),
                other => panic!("{recorded:?}: {other:?}"),
            }
        } else if asking.spec().name == recorded.name {
            call(asking.as_ref(), &run, args).await.unwrap();
        } else {
            panic!("`{}` is neither a tool of this crate nor known to live elsewhere", recorded.name);
        }
        *accepted.entry(recorded.name.clone()).or_default() += 1;
    }
    let expected = [
        ("ask_clarification", 1),
        ("bash", 20),
        ("ls", 6),
        ("present_files", 6),
        ("read_file", 10),
        ("str_replace", 1),
        ("write_file", 13),
    ];
    assert_eq!(accepted, expected.map(|(name, count)| (name.to_owned(), count)).into());
}

#[tokio::test]
async fn a_recorded_question_reads_as_it_did() {
    let (run, tool, state) =
        (RunContext::new("thread-1".into()), hart_tools::ask_clarification(), Default::default());
    let mut asked = 0;
    for messages in conversations() {
        for recorded in calls(&messages).filter(|recorded| recorded.name == "ask_clarification") {
            let id = recorded.id.as_ref().unwrap();
            let answer = messages
                .iter()
                .find(|message| message.as_tool_result().is_some_and(|result| result.tool_call_id == *id))
                .unwrap();
            let cx = ToolContext { run: &run, state: &state, call_id: id, effect: None };
            let output = tool.call(&cx, recorded.args.clone()).await.unwrap();
            assert_eq!(output.content.text(), answer.text());
            asked += 1;
        }
    }
    assert_eq!(asked, 1);
}

/// Each conversation's calls, one after the other, in a sandbox of its own. What is missing there (skills, pages that
/// another tool would have fetched) makes some fail; none may crash, hang, or fail without words.
#[tokio::test]
async fn recorded_calls_run_in_the_real_sandbox() {
    let (mut ran, mut refused) = (0, 0);
    for messages in conversations() {
        let place = Place::new();
        for recorded in calls(&messages).filter(|call| !ELSEWHERE.contains(&call.name.as_str())) {
            if recorded.name == "ask_clarification" {
                continue;
            }
            match place.call(&recorded.name, Value::Object(recorded.args.clone())).await {
                Ok(output) => {
                    assert!(!output.content.is_empty(), "{recorded:?} answered nothing");
                    ran += 1;
                }
                Err(ToolError::Failed(message)) => {
                    assert!(message.len() > 20 && message.contains(' '), "{recorded:?}: {message}");
                    refused += 1;
                }
                Err(other) => panic!("{recorded:?}: {other}"),
            }
        }
    }
    assert_eq!(ran + refused, 56);
    assert!(ran >= 25, "only {ran} of the calls did anything");
}
