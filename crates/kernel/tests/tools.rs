//! Tool calls: order, errors the model can act on, broken calls, limits.

use std::sync::Arc;

use futures_util::FutureExt as _;
use hart_kernel::*;
use hart_types::{Ai, Body, InvalidToolCall, Message, ToolStatus};
use serde_json::json;

use crate::support::*;

async fn run(answers: impl IntoIterator<Item = Message>) -> RunReport {
    let agent = Agent::builder(script(answers)).tools([Typed::shared(Echo)]).build().unwrap();
    agent.run(ask("q"), &cx()).await
}

#[tokio::test]
async fn calls_run_concurrently_and_results_keep_call_order() {
    let batch = calls(&[
        ("slow", "echo", json!({"say": "first", "turns": 50})),
        ("fast", "echo", json!({"say": "second"})),
    ]);
    let ears = Arc::new(Ears::default());
    let agent = Agent::builder(script([batch, say("done")])).tools([Typed::shared(Echo)]).build().unwrap();
    let report = agent.run(ask("q"), &cx().with_events(ears.clone())).await;
    let texts: Vec<_> = transcript(&report).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["q", "", "first", "second", "done"]);
    let events = ears.0.lock().unwrap();
    let finished: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::ToolFinished { result, .. } => Some(result.text()),
            _ => None,
        })
        .collect();
    assert_eq!(finished, ["second", "first"], "the quick call waited for the slow one");
}

#[tokio::test]
async fn the_model_is_asked_before_all_is_prepared_and_no_tool_acts_before() {
    let model = script([calls(&[("1", "echo", json!({"say": "acted"}))]), say("done")]);
    let agent = Agent::builder(model.clone()).tools([Typed::shared(Echo)]).build().unwrap();
    let ears = Arc::new(Ears::default());
    let (ready, prepared) = tokio::sync::oneshot::channel::<()>();
    let mut cx = cx().with_events(ears.clone());
    cx.preparation = Some(prepared.map(|_| ()).boxed().shared());
    let acted = || ears.0.lock().unwrap().iter().any(|event| matches!(event, AgentEvent::ToolStarted(_)));
    let mut running = Box::pin(agent.run(ask("q"), &cx));
    // As far as it gets.
    while model.calls() == 0 {
        assert!(futures_util::poll!(running.as_mut()).is_pending());
    }
    for _ in 0..20 {
        assert!(futures_util::poll!(running.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    assert!(!acted(), "a tool did not wait");
    ready.send(()).unwrap();
    running.await.outcome.unwrap();
    assert!(acted());
}

#[tokio::test]
async fn the_model_reads_errors_and_goes_on() {
    let mut broken = calls(&[
        ("1", "echo", json!({"say": "fail"})),
        ("2", "ecko", json!({})),
        ("3", "echo", json!({"say": 7})),
        ("4", "echo", json!({"say": "panic"})),
    ]);
    let invalid = InvalidToolCall::new("5", "echo", "{\"say\": ", "EOF at column 8".into());
    if let Body::Ai(Ai { invalid_tool_calls, .. }) = &mut broken.body {
        invalid_tool_calls.push(invalid);
    }
    let report = run([broken, say("sorry")]).await;
    report.outcome.as_ref().unwrap();
    let results: Vec<_> = report.state().messages().iter().filter(|m| m.as_tool_result().is_some()).collect();
    assert!(results.iter().all(|m| m.as_tool_result().unwrap().status == ToolStatus::Error));
    let hints = ["as asked", "the tools are: echo", "invalid arguments", "crashed", "EOF at column 8"];
    assert_eq!(results.len(), hints.len());
    for (message, hint) in results.iter().zip(hints) {
        assert!(message.text().contains(hint), "{} lacks {hint}", message.text());
    }
    assert_eq!(report.answer().as_deref(), Some("sorry"));
}

#[tokio::test]
async fn a_fatal_tool_ends_the_run_but_not_the_thread() {
    let batch = calls(&[("1", "echo", json!({"say": "fatal"})), ("2", "echo", json!({"say": "fine"}))]);
    let report = run([batch]).await;
    assert!(matches!(&report.outcome, Err(RunError::Hook { place, .. }) if place.contains("echo")));
    let texts: Vec<_> = transcript(&report).into_iter().map(|(_, text)| text).collect();
    assert!(texts[2].contains("disk on fire"));
    assert_eq!(texts[3], "fine", "the other call's result was lost");
}

#[tokio::test]
async fn a_tool_may_end_the_run() {
    let batch = calls(&[("1", "echo", json!({"say": "end"})), ("2", "echo", json!({"say": "x"}))]);
    let report = run([batch]).await;
    report.outcome.as_ref().unwrap();
    assert_eq!(transcript(&report).len(), 4);
}

#[tokio::test]
async fn the_recursion_limit_holds() {
    let again = || calls(&[("1", "echo", json!({"say": "x"}))]);
    let model = script([again(), again(), again(), again()]);
    let agent = Agent::builder(model).tools([Typed::shared(Echo)]).recursion_limit(4).build().unwrap();
    let report = agent.run(ask("q"), &cx()).await;
    assert!(matches!(report.outcome, Err(RunError::RecursionLimit { limit: 4 })));
}

#[tokio::test]
async fn middleware_contributes_tools_and_clashes_are_named() {
    struct Giver;
    impl Middleware for Giver {
        fn tools(&self) -> Vec<Arc<dyn Tool>> {
            vec![Typed::shared(Echo)]
        }
    }
    let builder = || Agent::builder(script([])).middleware(vec![Arc::new(Giver)]);
    assert_eq!(builder().build().unwrap().tools()[0].name, "echo");
    let error = builder().tools([Typed::shared(Echo)]).build().unwrap_err().to_string();
    assert!(error.contains("`echo`") && error.contains("Giver") && error.contains("the caller"), "{error}");
}

#[test]
fn a_typed_tools_schema_is_plain() {
    let tool = Typed::new(Echo);
    assert_eq!(
        tool.spec().input_schema,
        json!({
            "type": "object",
            "properties": {
                "say": {"description": "What to say.", "type": "string"},
                "turns": {"type": "integer", "minimum": 0, "default": 0},
            },
            "required": ["say"],
        })
    );
}

#[tokio::test]
async fn writes_of_one_batch_to_one_list_are_shown_together() {
    struct Files;
    impl StateKey for Files {
        type Value = Vec<String>;
        type Update = Vec<String>;
        const NAME: &'static str = "files";
        fn reduce(current: Option<Vec<String>>, new: Vec<String>) -> Result<Vec<String>, ReduceError> {
            Ok(current.into_iter().flatten().chain(new).collect())
        }
    }
    struct Give;
    #[async_trait]
    impl TypedTool for Give {
        const NAME: &'static str = "give";
        const DESCRIPTION: &'static str = "Hands over.";
        type Args = EchoArgs;
        async fn run(&self, _: &ToolContext<'_>, args: EchoArgs) -> Result<ToolOutput, ToolError> {
            let command = Update::none().set::<Files>(vec![args.say]).into();
            Ok(ToolOutput { command, ..ToolOutput::default() })
        }
    }
    let batch = calls(&[("1", "give", json!({"say": "a"})), ("2", "give", json!({"say": "b"}))]);
    let ears = Arc::new(Ears::default());
    let agent = Agent::builder(script([batch, say("done")])).tools([Typed::shared(Give)]).build().unwrap();
    agent.run(ask("q"), &cx().with_events(ears.clone())).await.outcome.unwrap();
    let shown = ears.0.lock().unwrap().iter().find_map(|event| match event {
        AgentEvent::Updates { update, .. } => update.get("files").cloned(),
        _ => None,
    });
    assert_eq!(shown, Some(json!(["a", "b"])));
}

/// `Echo` under a name and an alias of one's choice.
struct Named(Arc<ToolSpec>, Vec<&'static str>);

impl Named {
    fn shared(name: &str, aliases: &[&'static str]) -> Arc<dyn Tool> {
        let spec = ToolSpec {
            name: name.into(),
            description: "x".into(),
            input_schema: json!({}),
            effect: Effect::Pure,
        };
        Arc::new(Self(Arc::new(spec), aliases.to_vec()))
    }
}

#[async_trait]
impl Tool for Named {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn aliases(&self) -> &[&'static str] {
        &self.1
    }

    async fn call(
        &self,
        _: &ToolContext<'_>,
        _: serde_json::Map<String, serde_json::Value>,
    ) -> Result<ToolOutput, ToolError> {
        Ok(self.0.name.as_str().into())
    }
}

/// Notes the names of the calls it sees.
#[derive(Default)]
struct Notes(std::sync::Mutex<Vec<String>>);

#[async_trait]
impl Middleware for Notes {
    async fn wrap_tool_call(
        &self,
        _: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        self.0.lock().unwrap().push(request.call.name.clone());
        next.run(request).await
    }
}

#[tokio::test]
async fn an_alias_leads_to_its_tool_and_gives_way_to_a_real_name() {
    let batch = calls(&[("1", "execute", json!({})), ("2", "delete", json!({})), ("3", "other", json!({}))]);
    let notes = Arc::new(Notes::default());
    let agent = Agent::builder(script([batch, say("done")]))
        .tools([Named::shared("bash", &["execute", "delete"]), Named::shared("delete", &[])])
        .middleware(vec![notes.clone()])
        .build()
        .unwrap();
    assert_eq!(agent.tools().iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ["bash", "delete"]);
    let report = agent.run(ask("q"), &cx()).await;
    let results: Vec<_> = report.state().messages().iter().filter(|m| m.as_tool_result().is_some()).collect();
    let texts: Vec<_> = results.iter().map(|message| message.text()).collect();
    assert_eq!(texts[..2], ["bash", "delete"]);
    assert_eq!(texts[2], "Error: there is no tool `other`; the tools are: bash, delete");
    assert_eq!(results[0].name.as_deref(), Some("execute"), "answered under the name that was called");
    assert_eq!(*notes.0.lock().unwrap(), ["bash", "delete", "other"], "middleware sees the tool's own name");
}

#[test]
fn two_tools_cannot_share_an_alias() {
    let built =
        Agent::builder(script([])).tools([Named::shared("a", &["x"]), Named::shared("b", &["x"])]).build();
    let error = built.err().unwrap().to_string();
    assert_eq!(
        error,
        "two tools are called `x`: one from an alias of `a`, one from an alias of `b`; rename or drop one of them"
    );
}
