//! A person decides about calls before they run.

use hart_agent::Features;
use hart_agent::approval::{DecisionKind, InterruptOn, ToolReview};
use hart_agent::middleware::HumanInTheLoop;
use hart_kernel::{Checkpointer, Clock, Ended, LoggedWrite, Step, StepSource, SystemClock};
use hart_testkit::Turn;
use hart_types::{CheckpointId, RunId, ThreadId, ToolCall};
use serde_json::json;

use crate::consent_world::{Scene, done, reviewed, write};

/// Three calls: two to decide about, one that needs no decision.
fn three() -> Turn {
    Turn::new()
        .tool_call("c1", "write_file", write("a.txt", "a"))
        .tool_call("c2", "bash", json!({"command": "touch free"}))
        .tool_call("c3", "write_file", write("b.txt", "b"))
}

#[tokio::test]
async fn nothing_of_a_turn_runs_before_everything_in_it_is_decided() {
    let scene = Scene::new([three(), done()], reviewed(&["write_file"])).await;
    let asked = scene.ask().await;
    assert_eq!(asked.len(), 1);
    let args = |path: &str, content: &str| write(path, content);
    let describe = "`write_file` needs approval before it runs.";
    let all = json!(["approve", "edit", "reject", "respond"]);
    let expected = json!({
        "action_requests": [
            {"name": "write_file", "args": args("a.txt", "a"), "description": describe},
            {"name": "write_file", "args": args("b.txt", "b"), "description": describe},
        ],
        "review_configs": [
            {"action_name": "write_file", "allowed_decisions": all},
            {"action_name": "write_file", "allowed_decisions": all},
        ],
    });
    assert_eq!(asked[0].value, expected);
    assert!(
        !scene.file("a.txt").exists() && !scene.file("free").exists(),
        "the call nobody asks about waits too"
    );

    let report = scene.answer(json!({"decisions": [{"type": "approve"}, {"type": "approve"}]})).await;
    assert_eq!(report.outcome.unwrap(), Ended::Finished);
    assert_eq!([scene.result("c1"), scene.result("c3")], ["OK", "OK"]);
    assert!(scene.file("a.txt").exists() && scene.file("b.txt").exists() && scene.file("free").exists());
    assert_eq!(scene.server.requests().len(), 2, "the model was not asked again to resume");
}

#[tokio::test]
async fn each_decision_does_what_it_says_by_position() {
    let calls = Turn::new()
        .tool_call("c1", "write_file", write("a.txt", "a"))
        .tool_call("c2", "write_file", write("b.txt", "b"))
        .tool_call("c3", "write_file", write("c.txt", "c"));
    let scene = Scene::new([calls, done()], reviewed(&["write_file"])).await;
    scene.ask().await;
    let edit =
        json!({"type": "edit", "edited_action": {"name": "write_file", "args": write("edited.txt", "mine")}});
    let reject = json!({"type": "reject", "message": "not in this folder"});
    let respond = json!({"type": "respond", "message": "I wrote it myself."});
    let report = scene.answer(json!({"decisions": [edit, reject, respond]})).await;
    assert_eq!(report.answer().as_deref(), Some("done"));

    let note = "[A reviewer changed this call of `write_file` before it ran. What ran was `write_file` with ";
    assert!(
        scene.result("c1").starts_with(note) && scene.result("c1").ends_with("Its result follows.]\nOK"),
        "{}",
        scene.result("c1")
    );
    assert_eq!(std::fs::read_to_string(scene.file("edited.txt")).unwrap(), "mine");
    let rejected = "Error: a person rejected this call of `write_file`, so it was not run. The reason given: not in this \
        folder\nDo not repeat it unchanged; find another way, or ask what is wanted.";
    assert_eq!(scene.result("c2"), rejected);
    assert_eq!(scene.result("c3"), "I wrote it myself.");
    for name in ["a.txt", "b.txt", "c.txt"] {
        assert!(!scene.file(name).exists(), "{name}");
    }
    // The model's own message still says what it asked for, and the edit is nobody else's business.
    let ai = report.state().messages().iter().find(|message| message.as_ai().is_some()).unwrap();
    assert_eq!(ai.tool_calls()[0].args["path"], "a.txt");
    assert!(!report.values.to_json().contains_key("hitl_edited_tool_calls"));
}

#[tokio::test]
async fn when_nothing_is_left_to_run_the_model_is_told() {
    for (decision, heard) in [
        (
            json!({"type": "reject"}),
            "Error: a person rejected this call of `bash`, so it was not run.\nDo not",
        ),
        (json!({"type": "respond", "message": "42"}), "42"),
    ] {
        let call = Turn::new().tool_call("c1", "bash", json!({"command": "touch ran"}));
        let scene = Scene::new([call, done()], reviewed(&["bash"])).await;
        scene.ask().await;
        let report = scene.answer(json!({"decisions": [decision]})).await;
        assert_eq!(report.answer().as_deref(), Some("done"));
        assert!(scene.result("c1").starts_with(heard), "{}", scene.result("c1"));
        assert!(!scene.file("ran").exists());
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_leaves_the_question_open() {
    let scene = Scene::new([three(), done()], || {
        let review =
            ToolReview::allowing([DecisionKind::Approve, DecisionKind::Reject]).description("Writes a file.");
        let on = InterruptOn::default().tool("write_file", review);
        Features { human_in_the_loop: Some(HumanInTheLoop::new(on)), ..Features::default() }
    })
    .await;
    let asked = scene.ask().await;
    assert_eq!(asked[0].value["action_requests"][1]["description"], "Writes a file.");
    let approve = json!({"type": "approve"});
    let edit = json!({"type": "edit", "edited_action": {"name": "write_file", "args": {}}});
    for (answer, why) in [
        (json!({"decisions": [approve]}), "1 decisions were given, but 2 are needed"),
        (
            json!({"decisions": [approve, edit]}),
            "`edit` is not allowed for `write_file`; allowed are: approve, reject",
        ),
        (json!(true), "not of the form"),
    ] {
        let report = scene.answer(answer).await;
        let error = std::error::Error::source(&report.outcome.unwrap_err()).unwrap().to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(report.values.interrupts(), &asked[..]);
        assert!(!scene.file("a.txt").exists());
    }
    let report = scene.answer(json!({"decisions": [approve, approve]})).await;
    assert_eq!(report.outcome.unwrap(), Ended::Finished);
}

#[tokio::test]
async fn call_by_call_each_question_has_its_id() {
    let scene = Scene::new([three(), done()], || {
        let on = InterruptOn::default().tool("write_file", ToolReview::new()).tool("bash", ToolReview::new());
        Features { human_in_the_loop: Some(HumanInTheLoop::new(on).per_call()), ..Features::default() }
    })
    .await;
    let asked = scene.ask().await;
    assert_eq!(asked.len(), 3);
    let expected = json!({"type": "tool_approval", "tool_call_id": "c2", "name": "bash",
        "args": {"command": "touch free"}, "description": "`bash` needs approval before it runs."});
    assert_eq!(asked[1].value, expected);
    assert!(asked[1].response_schema.as_ref().unwrap()["oneOf"].is_array());

    let report = scene.answer(json!({ (asked[2].id.as_str()): {"type": "reject", "message": "no"} })).await;
    assert_eq!(report.outcome.unwrap(), Ended::Paused);
    let open: Vec<_> = report.values.interrupts().iter().map(|question| question.id.clone()).collect();
    assert_eq!(open, [asked[0].id.clone(), asked[1].id.clone()]);
    assert!(!scene.file("free").exists());

    let edit =
        json!({"type": "edit", "edited_action": {"name": "execute", "args": {"command": "touch edited"}}});
    let rest = json!({ (asked[0].id.as_str()): {"type": "approve"}, (asked[1].id.as_str()): edit });
    assert_eq!(scene.answer(rest).await.outcome.unwrap(), Ended::Finished);
    assert!(scene.file("a.txt").exists() && scene.file("edited").exists());
    assert!(!scene.file("free").exists() && !scene.file("b.txt").exists());
    assert!(scene.result("c2").contains("What ran was `execute` with {\"command\":\"touch edited\"}"));
}

#[tokio::test]
async fn a_tool_is_asked_about_under_every_name() {
    let call = Turn::new().tool_call("c1", "execute", json!({"command": "touch ran"}));
    let scene = Scene::new([call, done()], reviewed(&["bash"])).await;
    let asked = scene.ask().await;
    assert_eq!(asked[0].value["action_requests"][0]["name"], "execute");
    assert!(!scene.file("ran").exists());
}

#[tokio::test]
async fn a_predicate_chooses_the_calls() {
    let calls = Turn::new().tool_call("c1", "bash", json!({"command": "touch a"})).tool_call(
        "c2",
        "bash",
        json!({"command": "rm a"}),
    );
    let scene = Scene::new([calls, done()], || {
        let review = ToolReview::new()
            .when(|call: &ToolCall| call.args["command"].as_str().unwrap().starts_with("rm"));
        let on = InterruptOn::default().tool("bash", review);
        Features { human_in_the_loop: Some(HumanInTheLoop::new(on)), ..Features::default() }
    })
    .await;
    let asked = scene.ask().await;
    let requests = asked[0].value["action_requests"].as_array().unwrap().clone();
    assert_eq!((requests.len(), &requests[0]["args"]["command"]), (1, &json!("rm a")));
}

#[tokio::test]
async fn calls_that_share_an_id_are_decided_apart() {
    let calls = Turn::new()
        .tool_call("same", "write_file", write("a.txt", "a"))
        .tool_call("same", "write_file", write("b.txt", "b"))
        .tool_call("same", "write_file", write("c.txt", "c"));
    let scene = Scene::new([calls, done()], reviewed(&["write_file"])).await;
    scene.ask().await;
    let edit = json!({"type": "edit", "edited_action": {"name": "write_file", "args": write("d.txt", "d")}});
    let report = scene.answer(json!({"decisions": [{"type": "approve"}, {"type": "reject"}, edit]})).await;
    assert_eq!(report.outcome.unwrap(), Ended::Finished);
    let exists = ["a.txt", "b.txt", "c.txt", "d.txt"].map(|name| scene.file(name).exists());
    assert_eq!(exists, [true, false, false, true]);
    assert_eq!(scene.last().tool_results().len(), 3);
}

#[tokio::test]
async fn a_broken_call_is_not_asked_about_and_the_others_are() {
    let calls = Turn::new().tool_call_raw_args("bad", "write_file", "{\"path\": oops and no end").tool_call(
        "c1",
        "write_file",
        write("a.txt", "a"),
    );
    let scene = Scene::new([calls, done()], reviewed(&["write_file"])).await;
    let asked = scene.ask().await;
    assert_eq!(asked[0].value["action_requests"].as_array().unwrap().len(), 1);
    let report = scene.answer(json!({"decisions": [{"type": "approve"}]})).await;
    assert_eq!(report.outcome.unwrap(), Ended::Finished);
    assert!(scene.result("bad").starts_with("Error: nothing was run"), "{}", scene.result("bad"));
    assert_eq!(scene.result("c1"), "OK");
}

#[tokio::test]
async fn guards_look_at_the_edited_call() {
    let call = Turn::new().tool_call("c1", "bash", json!({"command": "rm -rf / --no-preserve-root"}));
    let scene = Scene::new([call, done()], reviewed(&["bash"])).await;
    scene.ask().await;
    let edit =
        json!({"type": "edit", "edited_action": {"name": "bash", "args": {"command": "echo harmless"}}});
    scene.answer(json!({"decisions": [edit]})).await.outcome.unwrap();
    assert!(scene.result("c1").ends_with("\nharmless"), "{}", scene.result("c1"));
}

#[tokio::test]
async fn an_edit_is_for_the_answer_it_was_made_in() {
    // Some servers use an id again in the next answer.
    let call = |name: &str| Turn::new().tool_call("c1", "write_file", write(name, "x"));
    let scene = Scene::new([call("a.txt"), call("b.txt"), done()], reviewed(&["write_file"])).await;
    scene.ask().await;
    let edit =
        json!({"type": "edit", "edited_action": {"name": "write_file", "args": write("edited.txt", "x")}});
    scene.answer(json!({"decisions": [edit]})).await.outcome.unwrap();
    assert!(scene.file("edited.txt").exists());
    scene.answer(json!({"decisions": [{"type": "approve"}]})).await.outcome.unwrap();
    assert!(scene.file("b.txt").exists() && !scene.file("a.txt").exists());
    let results = scene.last().tool_results();
    assert_eq!(results.last().unwrap().content, "OK", "without a note");
}

#[tokio::test]
async fn an_edit_whose_run_was_cut_off_does_not_reach_a_later_call() {
    let scene = Scene::new(
        [Turn::new().tool_call("c1", "write_file", write("a.txt", "x")), done()],
        reviewed(&["write_file"]),
    )
    .await;
    // What is left when the process ended between the decision and the tool.
    let edit =
        json!({"c1": {"message": "an-older-answer", "name": "write_file", "args": write("stale.txt", "x")}});
    let write = LoggedWrite { key: "hitl_edited_tool_calls".to_owned(), value: edit, private: true };
    let step = Step {
        id: CheckpointId::generate(),
        run_id: RunId::generate(),
        source: StepSource::Model,
        created_at: SystemClock.now(),
        writes: vec![write],
        parent: None,
        next: None,
    };
    scene.log.append(&ThreadId::from("t1"), [step].into()).await.unwrap();
    scene.ask().await;
    scene.answer(json!({"decisions": [{"type": "approve"}]})).await.outcome.unwrap();
    assert!(scene.file("a.txt").exists() && !scene.file("stale.txt").exists());
}

#[tokio::test]
async fn nobody_is_asked_about_a_call_that_will_not_run() {
    let bash = |id: &str| Turn::new().tool_call(id, "bash", json!({"command": "touch it"}));
    // Half of a call, as the model was cut off.
    let cut = Turn::new().tool_call_raw_args("c1", "bash", "{\"command\": \"touch").stop("length");
    let scene = Scene::new([cut, done()], reviewed(&["bash"])).await;
    assert_eq!(scene.ask().await.len(), 0, "a half-written call");
    assert!(scene.last().texts_of("user").concat().contains("[CUT OFF]"));

    // A whole one before it is asked about; the half is not.
    let both = bash("c1").tool_call_raw_args("c2", "bash", "{\"command\": \"rm").stop("length");
    let scene = Scene::new([both, done()], reviewed(&["bash"])).await;
    let asked = scene.ask().await;
    assert_eq!(asked[0].value["action_requests"].as_array().unwrap().len(), 1, "{asked:?}");
    scene.answer(json!({"decisions": [{"type": "approve"}]})).await.outcome.unwrap();
    assert!(scene.file("it").exists());
    assert!(scene.last().texts_of("user").concat().contains("[CUT OFF]"), "the model hears of the other");

    // An answer that the provider stopped.
    let scene = Scene::new([bash("c1").stop("content_filter")], reviewed(&["bash"])).await;
    assert_eq!(scene.ask().await.len(), 0, "a refusal");

    // More calls than an answer may have: the one that speaks for those left out is answered by hart.
    let many = (0..200)
        .fold(Turn::new(), |turn, n| turn.tool_call(format!("c{n}"), "bash", json!({"command": "true"})));
    let scene = Scene::new([many, done()], reviewed(&["bash"])).await;
    let asked = scene.ask().await;
    assert_eq!(asked[0].value["action_requests"].as_array().unwrap().len(), 128);
    scene.answer(json!({"decisions": vec![json!({"type": "reject"}); 128]})).await.outcome.unwrap();
    assert!(scene.result("c128").contains("nothing was run"), "{}", scene.result("c128"));
}

#[tokio::test]
async fn nobody_is_asked_about_what_a_stopped_loop_still_wants() {
    let look = |n: usize| Turn::new().tool_call(format!("c{n}"), "ls", json!({"path": "."}));
    // It goes on after it was told to stop.
    let scene = Scene::new((0..6).map(look), reviewed(&["ls"])).await;
    let mut asked = scene.ask().await;
    let mut times = 0;
    while !asked.is_empty() {
        times += 1;
        let report = scene.answer(json!({"decisions": [{"type": "approve"}]})).await;
        report.outcome.as_ref().unwrap();
        asked = report.values.interrupts().to_vec();
    }
    assert_eq!(times, 5, "the sixth was stripped and not asked about");
    assert_eq!(scene.server.requests().len(), 6);
    assert!(scene.last().texts_of("user").concat().contains("[FORCED STOP]"));
}
