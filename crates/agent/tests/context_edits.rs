//! What is taken out of requests to save room: old tool results, tools that do not fit.

use std::sync::Arc;

use hart_agent::middleware::{ContextEditing, ToolSelection};
use hart_agent::{ClearedThrough, ContextEditingConfig, Features, ToolSelectionConfig, ToolsUsed};
use hart_kernel::{RunReport, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, async_trait};
use hart_testkit::{Dialect, RecordedRequest, Turn};
use serde_json::{Map, Value, json};

use crate::long_world::{LongWorld, Setting, about_length};
use crate::support::model;

/// A run that prints about 700 tokens per call, and what it was sent.
async fn run(config: Value, calls: usize) -> (LongWorld, RunReport) {
    run_asking("print", config, calls).await
}

async fn run_asking(text: &str, config: Value, calls: usize) -> (LongWorld, RunReport) {
    let config: ContextEditingConfig = serde_json::from_value(config).unwrap();
    let features = Features { context_editing: ContextEditing::new(config).into(), ..about_length() };
    let setting = Setting { window: Some(200_000), features, ..Setting::default() };
    let world = LongWorld::new(setting, move |request| {
        let n = request.tool_results().len();
        let tool = if n == 1 { "ls" } else { "bash" };
        if n >= calls {
            return Turn::new().text("done");
        }
        Turn::new().tool_call(
            format!("c{n}"),
            tool,
            json!({"path": ".", "command": format!("seq {n} {}", n + 350)}),
        )
    })
    .await;
    let report = world.ask(text).await;
    report.outcome.as_ref().unwrap();
    (world, report)
}

fn cleared(request: &RecordedRequest) -> usize {
    request.tool_results().iter().filter(|result| result.content == "[cleared]").count()
}

#[tokio::test]
async fn old_results_are_cleared_in_steps_and_the_thread_keeps_them() {
    let (world, report) =
        run(json!({"trigger": 8000, "clear_at_least": 3000, "exclude_tools": ["ls"]}), 40).await;
    let counts: Vec<_> = world.turns().iter().map(|request| cleared(request)).collect();
    assert_eq!(counts[0], 0);
    assert!(counts.windows(2).all(|pair| pair[0] <= pair[1]), "what is cleared stays cleared: {counts:?}");
    let moves = counts.windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!((3..=12).contains(&moves), "{counts:?}");
    let last = world.server.last_request();
    let results = last.tool_results();
    assert!(results.iter().rev().take(3).all(|result| result.content != "[cleared]"), "the newest stay");
    assert_ne!(results[1].content, "[cleared]", "`ls` is excluded");
    let turns = world.turns();
    let shared = turns.windows(2).filter(|pair| {
        let (before, after) = (pair[0].messages(), pair[1].messages());
        after[..before.len()] == *before
    });
    assert_eq!(shared.count(), turns.len() - 1 - moves, "the beginning changed without a move");
    assert!(report.state().messages().iter().all(|message| message.text() != "[cleared]"));
    assert!(report.state().get::<ClearedThrough>().is_some());
    assert!(!report.values.to_json().contains_key("cleared_through"));
    // The next run knows the border from the thread.
    let before = cleared(&last);
    world.ask("and?").await.outcome.unwrap();
    assert_eq!(cleared(&world.server.last_request()), before);
}

#[tokio::test]
async fn the_border_does_not_move_for_little_even_if_it_is_always_too_much() {
    // What the user said is above the trigger by itself.
    let text = "say it again ".repeat(3000);
    let (world, _) = run_asking(&text, json!({"trigger": 8000, "clear_at_least": 3000}), 30).await;
    let counts: Vec<_> = world.turns().iter().map(|request| cleared(request)).collect();
    let moves: Vec<_> =
        counts.windows(2).filter(|pair| pair[0] < pair[1]).map(|pair| pair[1] - pair[0]).collect();
    assert!(!moves.is_empty() && moves.iter().all(|moved| *moved > 2), "{counts:?}");
}

#[tokio::test]
async fn arguments_are_cleared_where_that_is_wanted() {
    for wanted in [false, true] {
        let (world, _) = run(json!({"trigger": 8000, "keep": 1, "clear_tool_inputs": wanted}), 20).await;
        let last = world.server.last_request();
        let calls: Vec<_> = last
            .messages()
            .iter()
            .filter_map(|m| m["tool_calls"][0]["function"]["arguments"].as_str())
            .collect();
        assert_eq!(calls[0] == "{}", wanted, "{calls:?}");
        assert_ne!(*calls.last().unwrap(), "{}");
    }
}

#[tokio::test]
async fn below_the_trigger_nothing_is_cleared() {
    let (world, report) = run(json!({}), 20).await;
    assert_eq!(cleared(&world.server.last_request()), 0);
    assert_eq!(report.state().get::<ClearedThrough>(), None);
}

struct Named(Arc<ToolSpec>);

impl Named {
    fn tool(name: &str, description: &str) -> Arc<dyn Tool> {
        let input_schema = json!({"type": "object", "properties": {}});
        Arc::new(Self(Arc::new(ToolSpec {
            effect: hart_kernel::Effect::Pure,
            name: name.into(),
            description: description.into(),
            input_schema,
        })))
    }
}

#[async_trait]
impl Tool for Named {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    async fn call(&self, _: &ToolContext<'_>, _: Map<String, Value>) -> Result<ToolOutput, ToolError> {
        Ok("done".into())
    }
}

#[tokio::test]
async fn the_tools_that_fit_are_shown_and_stay_for_the_run() {
    let server = hart_testkit::ModelServer::with(|request| {
        let said = request.messages().iter().filter(|message| message["role"] == "tool").count();
        let asked = request.texts_of("user");
        match (asked.len(), said) {
            (1, 0) => Turn::new().tool_call("c1", "get_weather", json!({})),
            // It remembers a tool that it is not shown.
            (1, 1) => Turn::new().tool_call("c2", "zebra_count", json!({})),
            _ => Turn::new().text("It rains."),
        }
    })
    .await;
    let config = ToolSelectionConfig {
        max_tools: 3,
        always_include: vec!["ask_clarification".to_owned()],
        ..ToolSelectionConfig::default()
    };
    let features = Features { tool_selection: ToolSelection::new(config).into(), ..about_length() };
    let mut builder = hart_agent::SuperAgent::builder(model(&server, Dialect::OpenAi)).features(features);
    builder = builder.tool(Named::tool("get_weather", "The weather forecast of a city"));
    for n in 0..20 {
        builder = builder.tool(Named::tool(&format!("other_{n}"), "Does something else entirely"));
    }
    builder = builder.tool(Named::tool("city_map", "Shows a map of a city"));
    builder = builder.tool(Named::tool("zebra_count", "Counts zebras"));
    let agent = builder.build().unwrap();
    let cx = hart_kernel::RunContext::new("t1".into());
    let asked = hart_types::Message::human("How is the weather in this city?");
    let report = agent.run(hart_kernel::Update::none().messages(asked), &cx).await;
    report.outcome.as_ref().unwrap();
    let shown: Vec<Vec<String>> = server
        .requests()
        .iter()
        .map(|request| request.tool_names().into_iter().map(str::to_owned).collect())
        .collect();
    assert_eq!(
        shown[0],
        ["get_weather", "other_0", "city_map", "ask_clarification"],
        "in the order they had"
    );
    assert_eq!(shown[1], shown[0], "the prompt cache holds");
    assert_eq!(shown[2], ["get_weather", "other_0", "city_map", "zebra_count", "ask_clarification"]);
    let used = report.state().get::<ToolsUsed>().unwrap();
    assert_eq!(used.iter().collect::<Vec<_>>(), ["get_weather", "zebra_count"]);
}

#[tokio::test]
async fn few_tools_are_all_shown() {
    let features = Features {
        tool_selection: ToolSelection::new(ToolSelectionConfig::default()).into(),
        ..about_length()
    };
    let world = LongWorld::new(Setting { features, ..Setting::default() }, |_| Turn::new().text("hi")).await;
    world.ask("hello").await.outcome.unwrap();
    assert_eq!(world.server.last_request().tool_names().len(), 11);
}
