//! `ask_clarification`: the text people read, the payload clients show, and the limits.

use hart_kernel::{Goto, RunContext, ToolError, ToolOutput};
use serde_json::{Value, json};

use crate::place::call;

async fn ask(args: Value) -> Result<ToolOutput, ToolError> {
    call(hart_tools::ask_clarification().as_ref(), &RunContext::new("thread-1".into()), args).await
}

async fn refused(args: Value) -> String {
    match ask(args).await {
        Err(ToolError::Failed(message)) => message,
        other => panic!("should have been refused: {other:?}"),
    }
}

#[tokio::test]
async fn an_open_question() {
    let output = ask(json!({"question": "Which city?", "clarification_type": "missing_info"})).await.unwrap();
    assert_eq!(output.content.text(), "❓ Which city?");
    assert_eq!(output.command.goto, Some(Goto::End));
    assert!(output.command.update.is_empty());
    assert_eq!(
        output.artifact.unwrap(),
        json!({"human_input": {
            "version": 1,
            "kind": "human_input_request",
            "source": "ask_clarification",
            "request_id": "clarification:call-1",
            "clarification_type": "missing_info",
            "question": "Which city?",
            "input_mode": "free_text",
            "tool_call_id": "call-1",
        }})
    );
}

#[tokio::test]
async fn a_choice() {
    let output = ask(json!({
        "question": "Delete them?",
        "clarification_type": "risk_confirmation",
        "context": "There are 15 files.",
        "options": ["Yes", " ", {"label": "Keep them", "value": "keep"}, "Yes", 3, {"label": "Ask later"}],
    }))
    .await
    .unwrap();
    assert_eq!(
        output.content.text(),
        "⚠️ There are 15 files.\n\nDelete them?\n\n  1. Yes\n  2. Keep them\n  3. 3\n  4. Ask later"
    );
    assert_eq!(
        output.artifact.unwrap(),
        json!({"human_input": {
            "version": 1,
            "kind": "human_input_request",
            "source": "ask_clarification",
            "request_id": "clarification:call-1",
            "clarification_type": "risk_confirmation",
            "question": "Delete them?",
            "input_mode": "choice_with_other",
            "tool_call_id": "call-1",
            "context": "There are 15 files.",
            "options": [
                {"id": "option-1", "label": "Yes", "value": "Yes"},
                {"id": "option-2", "label": "Keep them", "value": "keep"},
                {"id": "option-3", "label": "3", "value": "3"},
                {"id": "option-4", "label": "Ask later", "value": "Ask later"},
            ],
        }})
    );
}

#[tokio::test]
async fn a_form() {
    let output = ask(json!({
        "question": "How shall the trip be?",
        "clarification_type": "suggestion",
        "options": ["ignored, because there is a form"],
        "fields": [
            {"name": "city", "label": "City", "required": "true", "placeholder": "Paris"},
            {"name": "days", "type": "number"},
            {"name": "how", "label": "By", "type": "multi_select", "options": ["train", "bus"]},
        ],
    }))
    .await
    .unwrap();
    assert_eq!(
        output.content.text(),
        "💡 How shall the trip be?\n\n  1. City (required)\n  2. days\n  3. By — options: train / bus \
         (multiple allowed)\n\nPlease reply with a value for each field."
    );
    let payload = &output.artifact.unwrap()["human_input"];
    assert_eq!(payload["version"], 2);
    assert_eq!(payload["input_mode"], "form");
    assert_eq!(payload.get("options"), None);
    assert_eq!(
        payload["fields"],
        json!([
            {"name": "city", "label": "City", "type": "text", "required": true, "placeholder": "Paris"},
            {"name": "days", "label": "days", "type": "number", "required": false},
            {"name": "how", "label": "By", "type": "multi_select", "required": false, "options": [
                {"id": "how-option-1", "label": "train", "value": "train"},
                {"id": "how-option-2", "label": "bus", "value": "bus"},
            ]},
        ])
    );
}

#[tokio::test]
async fn sloppy_calls_are_understood() {
    let output =
        ask(json!({"question": "Which?", "options": "[\"a\", \"b\"]", "fields": null, "context": " "}));
    let output = output.await.unwrap();
    assert_eq!(output.content.text(), "❓ Which?\n\n  1. a\n  2. b");
    assert_eq!(output.artifact.unwrap()["human_input"].get("context"), None);
}

#[tokio::test]
async fn every_limit_is_kept() {
    let ask = |key: &str, value: Value| {
        let mut args = json!({"question": "?", "clarification_type": "missing_info"});
        args[key] = value;
        args
    };
    let fields =
        |count: usize| (0..count).map(|index| json!({"name": format!("f{index}")})).collect::<Value>();
    let options = |count: usize| (0..count).map(|index| json!(format!("o{index}"))).collect::<Value>();
    let long = "ä".repeat(201);
    let select = |options: Value| json!([{"name": "pick", "type": "select", "options": options}]);
    for (args, message) in [
        (ask("question", json!(" ")), "the question is empty; say what you want to know"),
        (ask("fields", fields(17)), "the form has 17 fields, the limit is 16; ask for less at once"),
        (ask("options", options(25)), "the question has 25 options, the limit is 24; offer the likely ones"),
        (
            ask("fields", select(options(25))),
            "field `pick` has 25 options, the limit is 24; offer the likely ones",
        ),
        (
            ask("options", json!([long])),
            "an option of the question has 201 characters, the limit is 200; shorten it",
        ),
        (
            ask("options", json!([{"label": "x", "value": long}])),
            "the value of an option of the question has 201 characters, the limit is 200; shorten it",
        ),
        (
            ask("fields", json!([{"name": long}])),
            "the name of a field has 201 characters, the limit is 200; shorten it",
        ),
        (
            ask("fields", json!([{"name": "x", "label": long}])),
            "the label of field `x` has 201 characters, the limit is 200; shorten it",
        ),
        (
            ask("fields", json!([{"name": "x", "placeholder": long}])),
            "the placeholder of field `x` has 201 characters, the limit is 200; shorten it",
        ),
        (ask("fields", json!([{"name": " "}])), "a field has no name; give each field one"),
        (
            ask("fields", json!([{"name": "x"}, {"name": " x"}])),
            "two fields are named `x`; give each its own name",
        ),
        (
            ask("fields", json!([{"name": "constructor"}])),
            "a field cannot be named `constructor`; choose another name",
        ),
        (
            ask("fields", select(json!([]))),
            "field `pick` is to be chosen from, but has no options; add some, or use the type text",
        ),
    ] {
        assert_eq!(refused(args).await, message);
    }
    let error = refused(ask("context", json!("x".repeat(16_384)))).await;
    assert!(error.contains(", the limit is 16384; shorten the context, or ask for less at once"), "{error}");
}

#[tokio::test]
async fn what_is_within_the_limits_passes() {
    let fields: Value = (0..16).map(|index| json!({"name": format!("f{index}")})).collect();
    ask(json!({"question": "?", "fields": fields})).await.unwrap();
    let options: Value = (0..24).map(|index| json!(format!("{index:0>200}"))).collect();
    ask(json!({"question": "?", "options": options})).await.unwrap();
}

#[tokio::test]
async fn an_unknown_type_is_named_with_those_there_are() {
    for args in [
        json!({"question": "?", "clarification_type": "curiosity"}),
        json!({"question": "?", "fields": [{"name": "x", "type": "slider"}]}),
    ] {
        match ask(args).await {
            Err(ToolError::Arguments(message)) => {
                assert!(
                    message.starts_with("unknown variant") && message.contains("expected one of"),
                    "{message}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
}
