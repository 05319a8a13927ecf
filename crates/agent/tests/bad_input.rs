//! What nobody would write on purpose: hooks that panic or hang, answers beyond all measure.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hart_agent::Features;
use hart_kernel::{
    Agent, Command, HookError, HookResult, Middleware, ModelNext, ModelRequest, ModelResponse, RunContext,
    RunError, State, ToolNext, ToolOutcome, ToolRequest, Typed, Update, async_trait,
};
use hart_models::{ScriptedModel, ScriptedTurn};
use hart_testkit::{Dialect, Turn};
use hart_types::Message;
use serde_json::json;

use crate::bounds_support::{Look, Thread};
use crate::support::DIALECTS;

/// Misbehaves in one hook.
struct Bad {
    hook: &'static str,
    hangs: bool,
}

impl Bad {
    async fn in_hook(&self, hook: &str) -> HookResult {
        if self.hook == hook {
            if self.hangs {
                std::future::pending::<()>().await;
            }
            panic!("in {hook}");
        }
        Ok(Command::none())
    }
}

#[async_trait]
impl Middleware for Bad {
    async fn before_agent(&self, _: &RunContext, _: &State) -> HookResult {
        self.in_hook("before_agent").await
    }

    async fn before_model(&self, _: &RunContext, _: &State) -> HookResult {
        self.in_hook("before_model").await
    }

    async fn wrap_model_call(
        &self,
        _: &RunContext,
        request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        self.in_hook("wrap_model_call").await?;
        next.run(request).await
    }

    async fn after_model(&self, _: &RunContext, _: &State) -> HookResult {
        self.in_hook("after_model").await
    }

    async fn wrap_tool_call(
        &self,
        _: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        self.in_hook("wrap_tool_call").await?;
        next.run(request).await
    }

    async fn after_agent(&self, _: &RunContext, _: &State) -> HookResult {
        self.in_hook("after_agent").await
    }
}

#[derive(Clone, Default)]
struct Witness(Arc<Mutex<u32>>);

#[async_trait]
impl Middleware for Witness {
    async fn after_agent(&self, _: &RunContext, _: &State) -> HookResult {
        *self.0.lock().unwrap() += 1;
        Ok(Command::none())
    }
}

#[tokio::test]
async fn a_middleware_that_panics_or_hangs_ends_its_run_and_nothing_else() {
    let hooks =
        ["before_agent", "before_model", "wrap_model_call", "after_model", "wrap_tool_call", "after_agent"];
    for (hook, hangs) in hooks.into_iter().flat_map(|hook| [(hook, false), (hook, true)]) {
        let witness = Witness::default();
        let turns = [ScriptedTurn::call("c1", "look", json!({})), ScriptedTurn::text("done")];
        let agent = Agent::builder(Arc::new(ScriptedModel::new(turns)))
            .middleware(vec![Arc::new(witness.clone()), Arc::new(Bad { hook, hangs })])
            .tools([Typed::shared(Look::default())])
            .hook_timeout(Duration::from_millis(100))
            .build()
            .unwrap();
        let limits = hart_kernel::Limits { seconds: Some(0.5), ..hart_kernel::Limits::default() };
        let cx = RunContext::new("t1".into()).with_budget(hart_kernel::Budget::new(&limits));
        let report = agent.run(Update::none().messages(Message::human("go")), &cx).await;
        let error = report.outcome.unwrap_err();
        let wraps = hook.starts_with("wrap");
        match (hangs, wraps) {
            // A wrapper takes as long as what it wraps, so only the run's own time bounds it.
            (true, true) => assert!(matches!(error, RunError::OutOfTime { .. }), "{hook}: {error:?}"),
            (true, false) => assert!(format!("{error:?}").contains("TimedOut"), "{hook}: {error:?}"),
            (false, _) => assert!(format!("{error:?}").contains("Panic(\"in "), "{hook}: {error:?}"),
        }
        assert_eq!(*witness.0.lock().unwrap(), 1, "{hook} {hangs}: the others leave in order");
        let calls = report.values.to_json()["messages"].as_array().unwrap().len();
        assert!(calls >= 1, "{hook}: what was said is kept");
    }
}

#[tokio::test]
async fn a_wrapper_that_panics_around_a_tool_is_the_models_to_read() {
    let turns = [Turn::new().tool_call("c1", "look", json!({})), Turn::new().text("Done.")];
    let bad = Bad { hook: "wrap_tool_call", hangs: false };
    let thread = Thread::with(Dialect::OpenAi, turns, Features::default(), |builder| builder.with(bad)).await;
    assert_eq!(thread.ask("go").await.answer().as_deref(), Some("Done."));
    let text = thread.server.last_request().tool_result("c1").unwrap().content;
    assert!(text.contains("`look` failed: panicked: in wrap_tool_call"), "{text}");
}

#[tokio::test]
async fn ten_thousand_calls_in_one_answer_are_cut_to_what_can_be_run() {
    let many = (0..10_000).fold(Turn::new(), |turn, n| turn.tool_call(format!("c{n}"), "look", json!({})));
    let thread = Thread::new(Dialect::OpenAi, [many, Turn::new().text("Done.")]).await;
    let report = thread.ask("go").await;
    assert_eq!(report.answer().as_deref(), Some("Done."));
    let results = thread.server.last_request().tool_results();
    assert_eq!(results.len(), 129);
    assert!(results[..128].iter().all(|result| result.content == "nothing new"));
    let told = &results[128].content;
    assert!(told.contains("only the first 128 calls") && told.contains("9871 more"), "{told}");
}

#[tokio::test]
async fn calls_with_one_id_each_get_a_result_of_their_own() {
    for dialect in DIALECTS {
        let turns = [
            Turn::new()
                .tool_call("c", "look", json!({"how": "changing"}))
                .tool_call("c", "look", json!({"how": "changing"}))
                .tool_call("c", "look", json!({"how": "changing"})),
            Turn::new().text("Done."),
        ];
        let thread = Thread::new(dialect, turns).await;
        let report = thread.ask("go").await;
        assert_eq!(report.answer().as_deref(), Some("Done."), "{dialect:?}: {:?}", report.outcome);
        let results: Vec<_> = report
            .state()
            .messages()
            .iter()
            .filter_map(|m| m.as_tool_result()?.tool_call_id.as_str().into())
            .collect();
        assert_eq!(results.len(), 3, "{dialect:?}");
        let mut unique = results.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), 3, "{dialect:?}: {results:?}");
    }
}

#[tokio::test]
async fn ten_megabytes_of_arguments_are_only_arguments() {
    let long = "x".repeat(10 * 1024 * 1024);
    let turns = [
        Turn::new().tool_call("c1", "look", json!({"how": long})),
        Turn::new().tool_call("c2", "look", json!({"how": [long]})),
        Turn::new().text("Done."),
    ];
    let thread = Thread::new(Dialect::OpenAi, turns).await;
    let report = thread.ask("go").await;
    assert_eq!(report.answer().as_deref(), Some("Done."), "{:?}", report.outcome);
    // In the thread: what the last request showed of it had to fit into the window.
    let results: Vec<String> = report
        .state()
        .messages()
        .iter()
        .filter(|message| message.as_tool_result().is_some())
        .map(|message| message.text())
        .collect();
    assert_eq!(results[0], "nothing new");
    let wrong = &results[1];
    assert!(wrong.starts_with("Error: invalid arguments") && wrong.len() < 50_000, "{}", wrong.len());
}

#[tokio::test]
async fn half_a_character_is_read_as_a_mark_in_its_place() {
    // Inside the arguments' own JSON, and in the stream's.
    let sse = concat!(
        r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"look","arguments":"{\"how\":\"a\ud800b\"}"}}]},"finish_reason":"tool_calls"}]}"#,
        "\n\ndata: [DONE]\n\n"
    );
    let raw = || Turn::new().tool_call_raw_args("c1", "look", r#"{"how": "a\ud800b"}"#);
    for (dialect, turn) in [
        (Dialect::OpenAi, raw()),
        (Dialect::Anthropic, raw()),
        (Dialect::Responses, raw()),
        (Dialect::OpenAi, Turn::raw_sse(sse)),
    ] {
        let thread = Thread::new(dialect, [turn, Turn::new().text("Done.")]).await;
        let report = thread.ask("go").await;
        assert_eq!(report.answer().as_deref(), Some("Done."), "{dialect:?}: {:?}", report.outcome);
        let call = report.state().messages().iter().find_map(|message| message.tool_calls().first()).unwrap();
        assert_eq!(call.args["how"], "a\u{fffd}b", "{dialect:?}");
        assert_eq!(thread.server.last_request().tool_result("c1").unwrap().content, "nothing new");
    }
}
