//! Configurations and answers, right and wrong.

use serde_json::json;

use super::*;

fn call(name: &str, args: Value) -> ToolCall {
    ToolCall::new("c1", name, args.as_object().unwrap().clone())
}

fn config(json: Value) -> Result<InterruptOn, String> {
    serde_json::from_value::<InterruptOn>(json).map_err(|error| error.to_string())
}

fn own(name: &str) -> String {
    if name == "execute" { "bash".to_owned() } else { name.to_owned() }
}

#[test]
fn a_call_is_reviewed_under_each_of_its_names() {
    let on = config(json!({"execute": true, "ls": false})).unwrap();
    for (name, asked) in [("bash", true), ("execute", true), ("ls", false), ("glob", false)] {
        assert_eq!(on.review(&call(name, json!({})), own).is_some(), asked, "{name}");
    }
}

#[test]
fn globs_on_arguments_choose_the_calls() {
    let entry = json!({"allowed_decisions": ["approve"], "description": "Deletes files.", "when": {"command": ["rm *", "*sudo*"]}});
    let on = config(json!({"bash": entry})).unwrap();
    for (args, asked) in [
        (json!({"command": "rm -rf x/y"}), true),
        (json!({"command": "ls\nsudo ls"}), true),
        (json!({"command": "ls"}), false),
        (json!({"command": ["rm ", "x"]}), false),
        (json!({}), true),
    ] {
        let review = on.review(&call("bash", args.clone()), own);
        assert_eq!(review.is_some(), asked, "{args}");
        assert!(review.is_none_or(|review| review.describes(&call("bash", args)) == "Deletes files."));
    }
}

#[test]
fn entries_that_make_no_sense_are_refused() {
    for (entry, why) in [
        (json!({}), "bash: a map needs `allowed_decisions`"),
        (json!({"allowed_decisions": []}), "nobody could ever answer"),
        (json!({"allowed_decisions": ["maybe"]}), "unknown variant `maybe`"),
        (json!({"allowed_decisions": ["approve"], "descripton": "x"}), "unknown field `descripton`"),
        (json!({"allowed_decisions": ["approve"], "when": {"command": "{a"}}), "unclosed alternate"),
        (json!("yes"), "expected true, false or a map, found \"yes\""),
    ] {
        let error = config(json!({"bash": entry})).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

fn requests(count: usize) -> Vec<ActionRequest> {
    let request = |at: usize| ActionRequest {
        call: call(&format!("tool{at}"), json!({"n": at})),
        description: "d".to_owned(),
        allowed: vec![DecisionKind::Approve, DecisionKind::Edit],
    };
    (0..count).map(request).collect()
}

#[test]
fn the_question_has_langchain_s_shape() {
    let value = batched("s", &requests(2)).value;
    let expected = json!({
        "action_requests": [
            {"name": "tool0", "args": {"n": 0}, "description": "d"},
            {"name": "tool1", "args": {"n": 1}, "description": "d"},
        ],
        "review_configs": [
            {"action_name": "tool0", "allowed_decisions": ["approve", "edit"]},
            {"action_name": "tool1", "allowed_decisions": ["approve", "edit"]},
        ],
    });
    assert_eq!(value, expected);
    let single = single("s", &requests(1)[0]);
    let expected = json!({"type": "tool_approval", "tool_call_id": "c1", "name": "tool0", "args": {"n": 0}, "description": "d"});
    assert_eq!(single.value, expected);
    let schema = single.response_schema.unwrap();
    assert_eq!(schema["oneOf"][1]["required"], json!(["type", "edited_action"]));
}

#[test]
fn an_answer_that_does_not_fit_says_what_would() {
    let approve = json!({"type": "approve"});
    for (answer, why) in [
        (json!("yes"), "not of the form {\"decisions\": [{\"type\": \"approve\"}, …]}"),
        (
            json!({"decisions": [approve]}),
            "1 decisions were given, but 2 are needed, one for each of tool0, tool1",
        ),
        (
            json!({"decisions": [approve, {"type": "reject"}]}),
            "`reject` is not allowed for `tool1`; allowed are: approve, edit",
        ),
        (
            json!({"decisions": [approve, {"type": "edit"}]}),
            "`tool1` cannot be read: missing field `edited_action`",
        ),
        (json!({"decisions": [{"type": "no"}, approve]}), "`tool0` cannot be read: unknown variant `no`"),
        (json!({"decisions": ["approve", approve]}), "`tool0` cannot be read"),
    ] {
        let error = positional(&answer, &requests(2)).unwrap_err().to_string();
        assert!(error.contains(why) && error.ends_with("the question is still open"), "{error}");
    }
    let edit = json!({"type": "edit", "edited_action": {"name": "other", "args": {"m": 1}}});
    let read = positional(&json!({"decisions": [approve, edit]}), &requests(2)).unwrap();
    assert_eq!(read[0], Decision::Approve);
    assert!(matches!(&read[1], Decision::Edit { edited_action } if edited_action.name == "other"));
}
