//! Results and messages that are too long to be shown, seen from the model.

use std::sync::Arc;

use hart_agent::SuperAgent;
use hart_agent::middleware::ToolOutputBudget;
use hart_kernel::{
    RunContext, RunReport, ToolContext, ToolError, ToolOutput, Typed, TypedTool, Update, async_trait,
};
use hart_models::ScriptedModel;
use hart_sandbox::{LocalSandboxProvider, SandboxConfig};
use hart_testkit::{Dialect, Turn};
use hart_tools::ToolOutputConfig;
use hart_types::{Ai, Block, Body, Content, Message, ToolCall};
use serde_json::{Map, Value, json};

use crate::long_world::{LongWorld, Setting, about_length};
use crate::support::{DIALECTS, World};

/// A tool that says much: 20 000 numbered lines, and shows a picture.
struct Long;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArgs {}

#[async_trait]
impl TypedTool for Long {
    const NAME: &'static str = "long";
    const DESCRIPTION: &'static str = "Says much.";
    type Args = NoArgs;

    async fn run(&self, _: &ToolContext<'_>, _: NoArgs) -> Result<ToolOutput, ToolError> {
        let text: String = (1..=20_000).map(|n| format!("line {n}\n")).collect();
        let blocks = vec![Block::text(text), Block::image_base64("image/png", "aGk=")];
        Ok(ToolOutput { content: Content::Blocks(blocks), ..ToolOutput::default() })
    }
}

fn call(id: &str, name: &str, args: Value) -> Message {
    let args = args.as_object().cloned().unwrap_or_else(Map::new);
    let ai = Ai { tool_calls: vec![ToolCall::new(id, name, args)], ..Ai::default() };
    Message::new(Body::Ai(ai), "")
}

fn result(report: &RunReport, at: usize) -> Arc<Message> {
    let results: Vec<_> =
        report.state().messages().iter().filter(|message| message.as_tool_result().is_some()).collect();
    Arc::clone(results[at])
}

/// An agent with the tool, and a sandbox unless there shall be none.
async fn run(turns: Vec<Message>, config: Value, home: Option<&std::path::Path>) -> RunReport {
    let config: ToolOutputConfig = serde_json::from_value(config).unwrap();
    let model = Arc::new(ScriptedModel::new(turns));
    let mut builder = SuperAgent::builder(model).tool(Typed::shared(Long));
    let mut features = about_length();
    let mut sandboxes = None;
    if let Some(home) = home {
        let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.into(), None).unwrap();
        let sandbox = hart_agent::middleware::Sandbox::new(Arc::new(provider), SandboxConfig::default());
        sandboxes = Some(sandbox.provider());
        features.sandbox = Some(sandbox);
    }
    features.tool_output = ToolOutputBudget::new(config, sandboxes).into();
    builder = builder.features(features);
    let cx = RunContext::new("t1".into());
    builder.build().unwrap().run(Update::none().messages(Message::human("go")), &cx).await
}

#[tokio::test]
async fn a_long_result_goes_into_a_file_that_the_model_can_read() {
    let home = tempfile::tempdir().unwrap();
    let turns = vec![
        call("call/1", "long", json!({})),
        call(
            "c2",
            "read_file",
            json!({"path": "/large_tool_results/call_1", "start_line": 777, "end_line": 778}),
        ),
        call("c3", "grep", json!({"path": "/large_tool_results", "pattern": "line 1234$"})),
        call(
            "c4",
            "bash",
            json!({"command": "tail -n 1 /large_tool_results/call_1; echo x > /large_tool_results/y"}),
        ),
        call("c5", "write_file", json!({"path": "/large_tool_results/call_1", "content": "forged"})),
        // Some servers count their calls from the beginning in every answer.
        call("call/1", "long", json!({})),
        Message::ai("done"),
    ];
    let report = run(turns, json!({}), Some(home.path())).await;
    report.outcome.as_ref().unwrap();
    let shown = result(&report, 0);
    let text = shown.text();
    assert!(
        text.starts_with("[This result is too long to be shown: 208894 characters in 20000 lines."),
        "{text}"
    );
    assert!(text.contains("line 5\n... [19990 lines left out: 6 to 19995] ...\nline 19996\n"), "{text}");
    let Content::Blocks(blocks) = &shown.content else { panic!("{shown:?}") };
    assert_eq!(blocks[1], Block::image_base64("image/png", "aGk="), "what is no text stays");
    assert_eq!(result(&report, 1).text(), "line 777\nline 778\n");
    assert!(
        result(&report, 2).text().contains("/large_tool_results/call_1:1234: line 1234"),
        "{}",
        result(&report, 2).text()
    );
    let command = result(&report, 3).text();
    assert!(command.starts_with("line 20000\n") && command.contains("Read-only"), "{command}");
    assert!(result(&report, 4).text().contains("read-only"), "{}", result(&report, 4).text());
    assert!(
        result(&report, 5).text().contains("/large_tool_results/call_1-2:"),
        "{}",
        result(&report, 5).text()
    );
    let kept = home.path().join("users/default/threads/t1/large_tool_results/call_1");
    assert_eq!(std::fs::read_to_string(kept).unwrap().lines().count(), 20_000);
}

#[tokio::test]
async fn deerflows_settings_mean_what_they_mean_there() {
    let home = tempfile::tempdir().unwrap();
    let config = json!({"externalize_min_chars": 12_000, "preview_head_chars": 2000, "storage_subdir": ".tool-results"});
    let report =
        run(vec![call("c1", "long", json!({})), Message::ai("done")], config, Some(home.path())).await;
    let text = result(&report, 0).text();
    let (head, rest) =
        text.split_once("\n... [205894 of 208894 chars left out; the whole result is in ").unwrap();
    assert_eq!(head.chars().count(), 2000);
    let (path, rest) = rest
        .split_once(": read it with read_file (start_line, end_line) or search it with grep] ...\n")
        .unwrap();
    assert_eq!(rest.chars().count(), 1000);
    let below = path.strip_prefix("/mnt/user-data/outputs/.tool-results/long-").unwrap();
    let kept = home
        .path()
        .join("users/default/threads/t1/user-data/outputs/.tool-results")
        .join(format!("long-{below}"));
    assert_eq!(std::fs::read_to_string(kept).unwrap().lines().count(), 20_000);
}

#[tokio::test]
async fn where_there_is_no_file_the_result_stays_unless_it_shall_be_cut() {
    let turns = || vec![call("c1", "long", json!({})), Message::ai("done")];
    let report = run(turns(), json!({}), None).await;
    assert_eq!(result(&report, 0).text().chars().count(), 208_894);
    let report = run(turns(), json!({"fallback_max_chars": 30_000}), None).await;
    let text = result(&report, 0).text();
    let note = "[197894 of 208894 chars left out; they could not be kept (there is no sandbox): ask for less";
    assert!(text.contains(note), "{}", text.chars().take(9000).collect::<String>());
    // A place that cannot be written to.
    let home = tempfile::tempdir().unwrap();
    let thread = home.path().join("users/default/threads/t1");
    std::fs::create_dir_all(&thread).unwrap();
    std::fs::write(thread.join("large_tool_results"), "in the way").unwrap();
    let report = run(turns(), json!({}), Some(home.path())).await;
    assert_eq!(result(&report, 0).text().chars().count(), 208_894);
}

#[tokio::test]
async fn results_of_ordinary_length_stay() {
    let home = tempfile::tempdir().unwrap();
    let config = json!({"externalize_min_chars": 208_895});
    let report =
        run(vec![call("c1", "long", json!({})), Message::ai("done")], config, Some(home.path())).await;
    assert_eq!(result(&report, 0).text().chars().count(), 208_894);
    let world = World::with(Dialect::OpenAi, [Turn::new().text("hi")], about_length()).await;
    world.ask("hello").await.outcome.unwrap();
    assert_eq!(world.server.last_request().texts_of("user"), ["hello"]);
}

#[tokio::test]
async fn a_huge_message_is_shown_by_its_ends_and_kept_whole() {
    for dialect in DIALECTS {
        let setting = || Setting { dialect, window: Some(200_000), ..Setting::default() };
        let world = LongWorld::new(setting(), |_| Turn::new().text("I see.")).await;
        let text: String = (1..=40_000).map(|n| format!("fact {n}\n")).collect();
        let report = world.ask(&text).await;
        report.outcome.as_ref().unwrap();
        let message = report.state().messages().get(0).unwrap().clone();
        assert_eq!(message.text(), text, "the thread has it whole");
        let path = message.additional_kwargs["lc_evicted_to"].as_str().unwrap().to_owned();
        let id = message.id.as_ref().unwrap();
        assert_eq!(path, format!("/conversation_history/{id}.md"));
        let kept = world.thread().join(path.trim_start_matches('/'));
        assert_eq!(std::fs::read_to_string(kept).unwrap(), text);
        // In this run, in the next, and after a restart the model is sent the same preview.
        let first = world.server.last_request();
        world.ask("and?").await.outcome.unwrap();
        let second = world.server.last_request();
        let world = world.restarted(setting());
        world.ask("and now?").await.outcome.unwrap();
        let third = world.server.last_request();
        for request in [&first, &second, &third] {
            assert!(request.raw.len() < 60_000, "{dialect:?}: {}", request.raw.len());
            let body = String::from_utf8_lossy(&request.raw).into_owned();
            assert!(body.contains(&format!("All of it is in {path}")), "{dialect:?}");
            assert!(body.contains("fact 40000"), "{dialect:?}");
        }
        assert_eq!(second.messages()[..first.messages().len()], first.messages()[..], "{dialect:?}");
    }
}
