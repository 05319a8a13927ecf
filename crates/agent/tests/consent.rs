//! Who may do what: rules about paths, guardrails, questions.

use std::sync::Arc;

use hart_agent::guardrails::{AllowlistProvider, GuardrailConfig, GuardrailDecision, GuardrailProvider};
use hart_agent::middleware::{Clarification, Guardrail};
use hart_agent::{Features, FilePermissions, SuperAgent};
use hart_kernel::{Ended, RunContext, Update, async_trait};
use hart_sandbox::Permissions;
use hart_testkit::{Dialect, Turn};
use hart_tools::HumanInputResponse;
use hart_types::{Message, ToolCall};
use serde_json::{Value, json};

use crate::consent_world::{Scene, done, write};
use crate::support::{World, sandbox};

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
            .tool_call("v", "view_image", json!({"paths": ["secret/key"]}))
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
    for id in ["e", "v", "d"] {
        assert!(scene.result(id).contains("permission denied"), "{id}: {}", scene.result(id));
    }
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
        let mut sandbox = sandbox(home.path());
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
