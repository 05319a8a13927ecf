//! Who may do what: approval, rules about paths, guardrails, questions. Each run is a new agent over the same log, as
//! after a restart.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use hart_agent::approval::{DecisionKind, InterruptOn, ToolReview};
use hart_agent::guardrails::{AllowlistProvider, GuardrailConfig, GuardrailDecision, GuardrailProvider};
use hart_agent::middleware::{Clarification, Guardrail, HumanInTheLoop, Sandbox};
use hart_agent::{Features, FilePermissions, SuperAgent};
use hart_kernel::{
    Agent, CheckpointError, Checkpointer, Clock, Ended, Interrupt, LoggedWrite, Resume, RunContext, RunInput,
    RunReport, Step, StepSource, SystemClock, Update, async_trait,
};
use hart_models::{ModelConfig, ModelEntry};
use hart_sandbox::{LocalSandboxProvider, Permissions, SandboxConfig};
use hart_testkit::{Dialect, ModelServer, RecordedRequest, Turn};
use hart_tools::HumanInputResponse;
use hart_types::{CheckpointId, Message, RunId, ThreadId, ToolCall};
use serde_json::{Value, json};

use crate::support::World;

struct Scene {
    server: ModelServer,
    log: Arc<Log>,
    home: tempfile::TempDir,
    features: Box<dyn Fn() -> Features>,
}

/// All that connects two runs.
#[derive(Default)]
struct Log(Mutex<Vec<Step>>);

#[async_trait]
impl Checkpointer for Log {
    async fn append(&self, _: &ThreadId, steps: Vec<Step>) -> Result<(), CheckpointError> {
        // Through JSON, as a file would keep it.
        let steps: Vec<Step> = serde_json::from_value(serde_json::to_value(&steps).unwrap()).unwrap();
        self.0.lock().unwrap().extend(steps);
        Ok(())
    }

    async fn load(&self, _: &ThreadId, _: Option<&CheckpointId>) -> Result<Vec<Step>, CheckpointError> {
        Ok(self.0.lock().unwrap().clone())
    }
}

impl Scene {
    async fn new(turns: impl IntoIterator<Item = Turn>, features: impl Fn() -> Features + 'static) -> Self {
        let server = ModelServer::start().await;
        server.push_all(turns);
        let home = tempfile::tempdir().unwrap();
        Self { server, log: Arc::default(), home, features: Box::new(features) }
    }

    fn agent(&self) -> Agent {
        let entry = ModelEntry {
            name: "test".into(),
            provider: "openai-compatible".into(),
            model: "m".into(),
            base_url: Some(self.server.openai_base()),
            api_key: Some("k".into()),
            ..ModelEntry::default()
        };
        let config = ModelConfig::resolve(entry, &|_| None).unwrap();
        let model = hart_models::build(&config, &hart_models::http::client().unwrap());
        let provider =
            LocalSandboxProvider::new(SandboxConfig::default(), self.home.path().into(), None).unwrap();
        let sandbox = Sandbox::new(Arc::new(provider), SandboxConfig::default());
        let builder = SuperAgent::builder(model).features((self.features)()).sandbox(sandbox);
        builder.checkpointer(self.log.clone()).build().unwrap()
    }

    async fn run(&self, input: impl Into<RunInput>) -> RunReport {
        self.agent().run(input, &RunContext::new(ThreadId::from("t1"))).await
    }

    async fn ask(&self) -> Vec<Interrupt> {
        let report = self.run(Update::none().messages(Message::human("go"))).await;
        report.outcome.as_ref().unwrap();
        report.values.interrupts().to_vec()
    }

    async fn answer(&self, answer: Value) -> RunReport {
        self.run(Resume::from_json(answer)).await
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.path().join("users/default/threads/t1/user-data/workspace").join(name)
    }

    fn last(&self) -> Arc<RecordedRequest> {
        self.server.last_request()
    }

    fn result(&self, id: &str) -> String {
        self.last().tool_result(id).unwrap().content
    }
}

fn reviewed(tools: &'static [&'static str]) -> impl Fn() -> Features {
    move || {
        let on = tools.iter().fold(InterruptOn::default(), |on, name| on.tool(*name, ToolReview::new()));
        Features { human_in_the_loop: Some(HumanInTheLoop::new(on)), ..Features::default() }
    }
}

fn write(path: &str, content: &str) -> Value {
    json!({"description": "", "path": path, "content": content})
}

/// Three calls: two to decide about, one that needs no decision.
fn three() -> Turn {
    Turn::new()
        .tool_call("c1", "write_file", write("a.txt", "a"))
        .tool_call("c2", "bash", json!({"command": "touch free"}))
        .tool_call("c3", "write_file", write("b.txt", "b"))
}

fn done() -> Turn {
    Turn::new().text("done")
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

fn rules(rules: Value, allow_bash: bool) -> Option<FilePermissions> {
    let rules = Permissions::new(serde_json::from_value(rules).unwrap()).unwrap();
    Some(FilePermissions { rules, allow_bash })
}

#[tokio::test]
async fn denied_paths_are_denied_to_every_file_tool() {
    let turns = [
        Turn::new()
            .tool_call("c1", "write_file", write("secret/key", "x"))
            .tool_call("c2", "bash", json!({"command": "mkdir -p secret; echo needle > secret/key; ln -s secret/key link; echo needle > open"})),
        Turn::new()
            .tool_call("r", "read_file", json!({"path": "link"}))
            .tool_call("l", "ls", json!({"path": "."}))
            .tool_call("g", "glob", json!({"path": ".", "pattern": "**/*"}))
            .tool_call("s", "grep", json!({"path": ".", "pattern": "needle"}))
            .tool_call("e", "edit_file", json!({"path": "secret/key", "old_string": "needle", "new_string": "x"}))
            .tool_call("d", "delete", json!({"path": "secret/key"})),
        done(),
    ];
    let scene = Scene::new(turns, || {
        let deny = json!([{"operations": ["read", "write"], "paths": ["/mnt/user-data/workspace/secret/**"], "mode": "deny"}]);
        Features { permissions: rules(deny, true), ..Features::default() }
    })
    .await;
    assert!(scene.ask().await.is_empty());
    assert_eq!(
        scene.result("c1"),
        "Error: permission denied: `/mnt/user-data/workspace/secret/key` may not be changed, by the rule about \
         `/mnt/user-data/workspace/secret/**`; do without it, or ask the user"
    );
    assert!(
        scene.result("r").contains("`/mnt/user-data/workspace/secret/key` may not be read"),
        "{}",
        scene.result("r")
    );
    for id in ["l", "g", "s"] {
        let shown = scene.result(id);
        assert!(shown.contains("open") && !shown.contains("key"), "{id}: {shown}");
    }
    assert!(
        scene.result("e").contains("permission denied") && scene.result("d").contains("permission denied")
    );
    assert_eq!(std::fs::read_to_string(scene.file("secret/key")).unwrap(), "needle\n");
}

#[tokio::test]
async fn a_rule_may_ask_a_person() {
    let turns = [
        Turn::new()
            .tool_call("c1", "write_file", write("ask/a.txt", "x"))
            .tool_call("c2", "write_file", write("free.txt", "x"))
            .tool_call("c3", "ls", json!({"path": "."}))
            .tool_call("c4", "delete", json!({"path": "ask"})),
        done(),
    ];
    let scene = Scene::new(turns, || {
        let ask = json!([{"operations": ["write"], "paths": ["/mnt/user-data/workspace/ask/*"], "mode": "interrupt"}]);
        Features { permissions: rules(ask, true), ..Features::default() }
    })
    .await;
    let asked = scene.ask().await;
    let requests = asked[0].value["action_requests"].as_array().unwrap().clone();
    let named: Vec<_> = requests.iter().map(|request| request["name"].as_str().unwrap()).collect();
    assert_eq!(named, ["write_file", "delete"], "what cannot touch it is not asked about");
    let described = "`/mnt/user-data/workspace/ask/a.txt` would be changed, about which a rule asks.";
    assert_eq!(requests[0]["description"], described);
    let report = scene.answer(json!({"decisions": [{"type": "approve"}, {"type": "reject"}]})).await;
    assert_eq!(report.outcome.unwrap(), Ended::Finished);
    assert!(scene.file("ask/a.txt").exists() && scene.file("free.txt").exists());
}

#[tokio::test]
async fn rules_that_commands_would_evade_are_refused() {
    let deny = || json!([{"operations": ["read"], "paths": ["/mnt/user-data/uploads/**"], "mode": "deny"}]);
    let build = |allow_bash: bool, tools: Option<Vec<String>>| {
        let home = tempfile::tempdir().unwrap();
        let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.path().into(), None).unwrap();
        let mut sandbox = Sandbox::new(Arc::new(provider), SandboxConfig::default());
        if let Some(tools) = tools {
            sandbox = sandbox.only(tools);
        }
        let features = Features { permissions: rules(deny(), allow_bash), ..Features::default() };
        let model = Arc::new(hart_models::ScriptedModel::new([Message::ai("")]));
        SuperAgent::builder(model)
            .features(features)
            .sandbox(sandbox)
            .build()
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let error = build(false, None).unwrap_err();
    assert!(error.contains("do not hold for commands") && error.contains("allow_bash"), "{error}");
    build(true, None).unwrap();
    build(false, Some(vec!["read_file".into()])).unwrap();
}

/// Fails in a way of its own.
struct Failing(&'static str);

#[async_trait]
impl GuardrailProvider for Failing {
    fn name(&self) -> &str {
        self.0
    }

    async fn evaluate(
        &self,
        _: &ToolCall,
        _: &RunContext,
    ) -> Result<GuardrailDecision, Box<dyn std::error::Error + Send + Sync>> {
        match self.0 {
            "error" => Err("the database secret-host is down".into()),
            "panic" => panic!("boom"),
            "hang" => std::future::pending().await,
            _ => Ok(GuardrailDecision::deny("no reason is good enough")),
        }
    }
}

#[tokio::test]
async fn a_guardrail_that_fails_denies() {
    let lists = || AllowlistProvider {
        allowed_tools: Some(vec!["ls".into(), "execute".into()]),
        denied_tools: vec!["ls".into()],
    };
    let wait = GuardrailConfig { timeout_seconds: 1, ..GuardrailConfig::default() };
    let open = GuardrailConfig { fail_closed: false, ..wait.clone() };
    let failed = "Guardrail denied: the policy could not be evaluated, so the call is denied; tell the user \
        (oap.evaluator_error). Nothing was run.";
    let table: [(Guardrail, &str); 8] = [
        (Guardrail::new(Failing("error")), failed),
        (Guardrail::new(Failing("panic")), failed),
        (Guardrail::new(Failing("hang")).config(wait), failed),
        (
            Guardrail::new(Failing("no")),
            "Guardrail denied: no reason is good enough (oap.denied). Nothing was run.",
        ),
        (Guardrail::new(Failing("error")).config(open.clone()), "OK"),
        (Guardrail::new(Failing("no")).config(open), "Guardrail denied: no reason is good enough"),
        (
            Guardrail::new(lists()),
            "Guardrail denied: the tool `write_file` is not among those allowed: ls, execute (oap.tool_not_allowed)",
        ),
        (Guardrail::default(), "OK"),
    ];
    for (guardrail, expected) in table {
        let shown = format!("{guardrail:?}");
        let turns = [Turn::new().tool_call("c1", "write_file", write("a.txt", "x")), done()];
        let features = Features { guardrail: guardrail.into(), ..Features::default() };
        let world = World::with(Dialect::OpenAi, turns, features).await;
        world.ask("go").await.outcome.unwrap();
        let result = world.server.last_request().tool_result("c1").unwrap();
        assert!(result.content.starts_with(expected), "{shown}: {}", result.content);
        assert_eq!(world.files.join("workspace/a.txt").exists(), expected == "OK", "{shown}");
        assert!(!result.content.contains("secret-host"));
    }
    let turns = [
        Turn::new().tool_call("c1", "bash", json!({"command": "echo hi"})).tool_call(
            "c2",
            "ls",
            json!({"path": "."}),
        ),
        done(),
    ];
    let features = Features { guardrail: Guardrail::new(lists()).into(), ..Features::default() };
    let world = World::with(Dialect::OpenAi, turns, features).await;
    world.ask("go").await.outcome.unwrap();
    let last = world.server.last_request();
    assert_eq!(last.tool_result("c1").unwrap().content, "hi", "allowed by another of its names");
    assert!(last.tool_result("c2").unwrap().content.contains("`ls` is denied here"));
}

#[tokio::test]
async fn a_question_nobody_can_answer_is_left_to_the_model() {
    let ask = || Turn::new().tool_call("c1", "ask_clarification", json!({"question": "Which colour?"}));
    let features = Features { clarification: Clarification::BestJudgement, ..Features::default() };
    let world = World::with(Dialect::OpenAi, [ask(), done()], features).await;
    assert_eq!(world.ask("go").await.answer().as_deref(), Some("done"));
    let heard = world.server.last_request().tool_result("c1").unwrap().content;
    assert!(heard.contains("Proceed with your best judgement"), "{heard}");

    let features = Features { clarification: Clarification::NotOffered, ..Features::default() };
    let world = World::with(Dialect::OpenAi, [done()], features).await;
    world.ask("go").await.outcome.unwrap();
    assert!(!world.server.last_request().tool_names().contains(&"ask_clarification"));
}

#[tokio::test]
async fn the_reply_to_a_question_reaches_the_model_as_words() {
    let ask = Turn::new().tool_call(
        "c1",
        "ask_clarification",
        json!({"question": "Which colour?", "options": ["red", "blue"]}),
    );
    let scene = Scene::new([ask, done()], Features::default).await;
    let report = scene.run(Update::none().messages(Message::human("paint"))).await;
    let question = report.state().messages().last().unwrap().clone();
    assert_eq!(question.id.as_ref().unwrap().as_str(), "clarification:c1");
    let form = question.as_tool_result().unwrap().artifact.clone().unwrap()["human_input"].clone();
    let (id, option) = (form["request_id"].as_str().unwrap(), &form["options"][1]);
    let (option_id, value) = (option["id"].as_str().unwrap(), option["value"].as_str().unwrap());
    let reply = HumanInputResponse::option(id, option_id, value).into_message();
    assert_eq!(scene.run(Update::none().messages(reply)).await.answer().as_deref(), Some("done"));
    let said = scene.last().texts_of("user");
    assert_eq!(said[1], "--- BEGIN USER INPUT ---\nblue\n--- END USER INPUT ---");
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
    scene.log.append(&ThreadId::from("t1"), vec![step]).await.unwrap();
    scene.ask().await;
    scene.answer(json!({"decisions": [{"type": "approve"}]})).await.outcome.unwrap();
    assert!(scene.file("a.txt").exists() && !scene.file("stale.txt").exists());
}
