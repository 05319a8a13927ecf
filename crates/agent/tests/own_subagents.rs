//! Subagents of a program: what they have of their own, and what cannot be one.

use hart_agent::middleware::LoopDetection;
use hart_agent::{Features, LoopDetectionConfig, Part, Subagent, SuperAgent};
use hart_testkit::{Dialect, ModelServer, RecordedRequest, Turn};
use serde_json::json;

use crate::delegation::{Office, is_lead, tasks};
use crate::support::{model, sandbox};

#[tokio::test]
async fn a_subagent_of_ones_own_has_what_it_was_given() {
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => tasks([(
            "a".to_owned(),
            json!({"description": "d", "prompt": "count", "subagent_type": "counter"}),
        )]),
        (true, _) => Turn::new().text("Done."),
        (false, _) => Turn::new().text(r#"{"count": 3}"#),
    };
    let schema =
        json!({"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]});
    let counter = Subagent::builder("counter", "Counts.")
        .prompt("You count.")
        .tools(["ls", "read_file", "bash"])
        .without_tools(["bash"])
        .result_schema(schema)
        .build()
        .unwrap();
    let office = Office::new(answers, Features::default(), |builder| builder.subagent(counter)).await;
    office.ask("go").await.outcome.unwrap();
    let requests = office.server.requests();
    let lead = requests.first().unwrap();
    assert!(lead.system().contains("- counter: Counts."));
    let child = requests.iter().find(|request| !is_lead(request)).unwrap();
    assert_eq!(child.tool_names(), ["ls", "read_file"]);
    assert!(child.system().starts_with("You count."));
    assert!(String::from_utf8_lossy(&child.raw).contains("json_schema"));
    assert_eq!(
        requests.last().unwrap().tool_result("a").unwrap().content,
        r#"Task Succeeded. Result: {"count": 3}"#
    );
}

#[tokio::test]
async fn a_part_of_ones_own_stands_in_the_place_of_the_leads() {
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => tasks([("a".to_owned(), json!({"prompt": "look", "subagent_type": "looker"}))]),
        (true, _) => Turn::new().text("Done."),
        (false, n) if n > 8 || request.body["tool_choice"] == "none" => Turn::new().text("Enough."),
        (false, n) => Turn::new().tool_call(format!("l{n}"), "ls", json!({"path": "/mnt/user-data"})),
    };
    let looker = || Subagent::builder("looker", "Looks.");
    let patient =
        LoopDetection::new(LoopDetectionConfig { hard_limit: 50, ..LoopDetectionConfig::default() });
    for (looker, ends) in [
        (looker(), "loop_capped"),
        (looker().part(Part::LoopDetection, patient), "Result: Enough."),
        (looker().part(Part::LoopDetection, false), "Result: Enough."),
    ] {
        let looker = looker.build().unwrap();
        let office = Office::new(answers, Features::default(), |builder| builder.subagent(looker)).await;
        office.ask("go").await.outcome.unwrap();
        let result = office.server.last_request().tool_result("a").unwrap().content;
        assert_eq!(result.contains("loop_capped"), ends == "loop_capped", "{result}");
        assert!(result.contains(ends), "{result}");
    }
    assert!(Part::ALL.into_iter().all(|part| Part::named(part.name()) == Some(part)));
}

#[tokio::test]
async fn a_subagent_that_cannot_be_is_refused_when_the_agent_is_built() {
    let server = ModelServer::start().await;
    let home = tempfile::tempdir().unwrap();
    let build = |subagents: &[Subagent]| {
        let mut builder = SuperAgent::builder(model(&server, Dialect::OpenAi))
            .sandbox(sandbox(home.path()))
            .delegates(true);
        for subagent in subagents {
            builder = builder.subagent(subagent.clone());
        }
        builder.build().map(|_| ()).map_err(|error| error.to_string())
    };
    let named = |tool: &str| Subagent::builder("x", "Does x.").tools([tool]).build().unwrap();
    let error = build(&[named("reed_file")]).unwrap_err();
    assert!(
        error.contains("names the tool `reed_file`, which it cannot have; there is: bash, background, ls"),
        "{error}"
    );
    let twice = build(&[named("ls"), named("ls")]).unwrap_err();
    assert!(twice.contains("two subagents are called `x`"), "{twice}");
    for (name, description, says) in
        [("a b", "d", "cannot be called `a b`"), ("x", " ", "has no description")]
    {
        let error = Subagent::builder(name, description).build().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    build(&[Subagent::builder("x", "Does x.").tools(["nothing_here", "ls"]).tolerant().build().unwrap()])
        .unwrap();
    // One of a built-in's name takes its place.
    build(&[Subagent::builder("bash", "Mine.").tools(["ls"]).build().unwrap()]).unwrap();
}
