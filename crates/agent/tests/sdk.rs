//! The pure-parameter face: what may be added, replaced and placed, and what of it is refused.

use std::sync::{Arc, Mutex};

use hart_agent::middleware::{
    Clarification, DanglingToolCall, ReadBeforeWrite, Sandbox, SandboxAudit, ToolOutputBudget,
};
use hart_agent::{Features, SuperAgent, SuperAgentBuilder};
use hart_kernel::*;
use hart_models::{ScriptedModel, ScriptedTurn};
use hart_sandbox::{LocalSandboxProvider, SandboxConfig};
use hart_types::{Ai, Body, Message, ThreadId, ToolCall};
use serde_json::{Map, json};
use tempfile::TempDir;

struct World {
    model: Arc<ScriptedModel>,
    home: TempDir,
}

impl World {
    fn new(turns: impl IntoIterator<Item = ScriptedTurn>) -> Self {
        Self { model: Arc::new(ScriptedModel::new(turns)), home: tempfile::tempdir().unwrap() }
    }

    fn builder(&self, features: Features) -> SuperAgentBuilder {
        let config = SandboxConfig::default;
        let provider = LocalSandboxProvider::new(config(), self.home.path().into(), None).unwrap();
        let sandbox = Sandbox::new(Arc::new(provider), config());
        SuperAgent::builder(self.model.clone()).features(features).sandbox(sandbox)
    }
}

fn chain(builder: SuperAgentBuilder) -> Vec<&'static str> {
    builder.build().unwrap().chain().collect()
}

fn error(builder: SuperAgentBuilder) -> String {
    builder.build().unwrap_err().to_string()
}

/// Writes down what it sees of model calls and of tool calls.
#[derive(Clone)]
struct Spy {
    name: &'static str,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// The last messages of requests.
    requests: Vec<String>,
    /// Arguments and results.
    calls: Vec<(String, String)>,
}

impl Spy {
    fn new(name: &'static str) -> Self {
        Self { name, seen: Arc::default() }
    }
}

#[async_trait]
impl Middleware for Spy {
    fn name(&self) -> &'static str {
        self.name
    }
    async fn wrap_model_call(
        &self,
        _: &RunContext,
        request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let kinds: Vec<&str> = request.chat.messages.iter().map(|message| message.kind()).collect();
        self.seen.lock().unwrap().requests.push(kinds.join(" "));
        next.run(request).await
    }
    async fn wrap_tool_call(
        &self,
        _: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let args = serde_json::to_string(&request.call.args).unwrap();
        let outcome = next.run(request).await?;
        self.seen.lock().unwrap().calls.push((args, outcome.message.text()));
        Ok(outcome)
    }
}

/// Changes the arguments of a call on its way in: what a guard may do.
struct Rewrites;

#[async_trait]
impl Middleware for Rewrites {
    async fn wrap_tool_call(
        &self,
        _: &RunContext,
        mut request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        Arc::make_mut(&mut request.call).args.insert("times".into(), json!(200_000));
        next.run(request).await
    }
}

struct Repeat;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Times {
    times: usize,
}

#[async_trait]
impl TypedTool for Repeat {
    const NAME: &'static str = "repeat";
    const DESCRIPTION: &'static str = "Says x.";
    type Args = Times;
    async fn run(&self, _: &ToolContext<'_>, args: Times) -> Result<ToolOutput, ToolError> {
        Ok("x".repeat(args.times).into())
    }
}

#[tokio::test]
async fn each_slot_sees_what_it_promises_whatever_is_rewritten_in_between() {
    let world =
        World::new([ScriptedTurn::call("c9", "repeat", json!({"times": 1})), ScriptedTurn::text("done")]);
    let spies = ["logical", "physical", "visible", "raw"].map(Spy::new);
    let [logical, physical, visible, raw] = spies.clone();
    let features = Features { sandbox_audit: Rewrites.into(), tool_output: true.into(), ..Features::none() };
    let agent = world
        .builder(features)
        .tool(Typed::shared(Repeat))
        .with(raw.clone().at(Slot::ToolRaw))
        .with(physical.clone().at(Slot::ModelPhysical))
        .with(visible.clone().at(Slot::ToolVisible))
        .with(logical.clone().at(Slot::ModelLogical))
        .build()
        .unwrap();
    // A call that a crash left without a result: the repair adds one on the way to the model.
    let broken = Ai { tool_calls: vec![ToolCall::new("c1", "repeat", Map::new())], ..Ai::default() };
    let history = vec![Message::human("go"), Message::new(Body::Ai(broken), ""), Message::human("again")];
    let cx = RunContext::new(ThreadId::from("t1"));
    agent.run(Update::none().messages(history), &cx).await.outcome.unwrap();

    let first = |spy: &Spy| spy.seen.lock().unwrap().requests[0].clone();
    assert_eq!(first(&logical), "human ai human");
    assert_eq!(first(&physical), "human ai tool human");
    assert_eq!(world.model.requests()[0].messages.len(), 4, "and so did the model");

    let call = |spy: &Spy| spy.seen.lock().unwrap().calls[0].clone();
    let (made, read) = call(&visible);
    assert_eq!(made, r#"{"times":1}"#);
    assert!(read.len() < 5000 && read.contains("/large_tool_results/"), "{}", read.len());
    assert_eq!(world.model.requests()[1].messages.last().unwrap().text(), read, "as the model read it");
    let (got, gave) = call(&raw);
    assert_eq!((got.as_str(), gave.len()), (r#"{"times":200000}"#, 200_000));
}

#[tokio::test]
async fn a_slot_holds_whatever_else_is_added() {
    let world = World::new([]);
    let all = world
        .builder(Features::default())
        .with(Spy::new("raw").at(Slot::ToolRaw))
        .with(Spy::new("plain"))
        .with(Spy::new("visible").at(Slot::ToolVisible))
        .with(Spy::new("anchored").after::<ReadBeforeWrite>());
    let names = chain(all);
    assert_eq!(names.first(), Some(&"visible"));
    let place = |name: &str| names.iter().position(|other| *other == name).unwrap();
    assert_eq!(place("anchored"), place("ReadBeforeWrite") + 1);
    assert!(place("anchored") < place("plain"));
    assert_eq!(place("raw"), place("plain") + 1, "further in than all but the tail: {names:?}");
    assert_eq!(names.last(), Some(&"Clarification"));
}

/// Goes by the name of a built-in.
struct Namesake;

impl Middleware for Namesake {
    fn name(&self) -> &'static str {
        "ToolOutputBudget"
    }
}

#[tokio::test]
async fn a_built_in_is_replaced_by_name_or_by_its_feature_and_keeps_its_place() {
    let turns =
        || [ScriptedTurn::call("c1", "repeat", json!({"times": 200_000})), ScriptedTurn::text("done")];
    let read = async |world: World, builder: SuperAgentBuilder| {
        let agent = builder.tool(Typed::shared(Repeat)).build().unwrap();
        let names: Vec<&str> = agent.chain().collect();
        let cx = RunContext::new(ThreadId::from("t1"));
        agent.run(Update::none().messages(Message::human("go")), &cx).await.outcome.unwrap();
        (names, world.model.requests()[1].messages.last().unwrap().text().len())
    };
    let world = World::new(turns());
    let builder = world.builder(Features::default());
    let (built_in, cut) = read(world, builder).await;
    assert!(cut < 200_000);

    let world = World::new(turns());
    let builder = world.builder(Features::default()).with(Namesake);
    let (by_name, whole) = read(world, builder).await;
    assert_eq!((by_name, whole), (built_in.clone(), 200_000), "the built-in is gone, its place is not");

    let world = World::new(turns());
    let features = Features { tool_output: Spy::new("mine").into(), ..Features::default() };
    // An anchor to what was replaced still holds.
    let builder = world.builder(features).with(Spy::new("next").after::<ToolOutputBudget>());
    let (by_feature, whole) = read(world, builder).await;
    let mut expected = built_in;
    let at = expected.iter().position(|name| *name == "ToolOutputBudget").unwrap();
    expected[at] = "mine";
    expected.insert(at + 1, "next");
    assert_eq!((by_feature, whole), (expected, 200_000));
}

#[test]
fn what_cannot_be_placed_or_named_is_refused_with_both_names() {
    let world = World::new([]);
    let all = || world.builder(Features::default());
    let spy = Spy::new;
    struct Elsewhere;
    impl Middleware for Elsewhere {}
    let without_audit = world.builder(Features { sandbox_audit: false.into(), ..Features::default() });
    let table: Vec<(SuperAgentBuilder, &[&str])> = vec![
        (all().with(spy("x").after::<Elsewhere>()), &["`x`", "`Elsewhere`", "not in the chain: "]),
        (
            without_audit.with(spy("x").after::<SandboxAudit>()),
            &["`x`", "`SandboxAudit`", "not in the chain"],
        ),
        (all().with(spy("x").after::<Clarification>()), &["`x`", "`Clarification`", "nothing comes after"]),
        (
            all().with(spy("x").after::<Sandbox>()).with(spy("y").after::<Sandbox>()),
            &["`x` and `y`", "`Sandbox`"],
        ),
        (all().with(spy("x")).with(spy("x")), &["two middlewares are called `x`"]),
        (
            all().with(spy("DanglingToolCall").before::<Sandbox>()),
            &["two middlewares are called `DanglingToolCall`"],
        ),
        (
            all().tool(hart_tools::ask_clarification()),
            &["`ask_clarification`", "the caller", "Clarification", "rename"],
        ),
    ];
    for (builder, words) in table {
        let shown = format!("{builder:?}");
        let error = error(builder);
        assert!(words.iter().all(|word| error.contains(word)), "{shown}: {error}");
    }
    assert!(chain(all().with(spy("x").before::<DanglingToolCall>())).contains(&"x"));
}

#[test]
fn a_state_key_of_the_callers_own_meets_the_middlewares_keys() {
    struct Artifacts;
    impl StateKey for Artifacts {
        type Value = u32;
        type Update = u32;
        const NAME: &'static str = "artifacts";
        fn reduce(_: Option<u32>, new: u32) -> Result<u32, ReduceError> {
            Ok(new)
        }
    }
    let error = error(World::new([]).builder(Features::default()).state::<Artifacts>());
    assert!(error.contains("`artifacts`") && error.contains("rename"), "{error}");
}

#[tokio::test]
async fn the_other_builder_takes_the_chain_as_it_stands() {
    let model = Arc::new(ScriptedModel::new([ScriptedTurn::text("hi")]));
    let mine: Vec<Arc<dyn Middleware>> = vec![Arc::new(DanglingToolCall), Arc::new(Spy::new("mine"))];
    let agent = Agent::builder(model).middleware(mine).build().unwrap();
    assert_eq!(agent.chain().collect::<Vec<_>>(), ["DanglingToolCall", "mine"]);
    assert!(agent.tools().is_empty());
    let cx = RunContext::new(ThreadId::from("t1"));
    let report = agent.run(Update::none().messages(Message::human("hello")), &cx).await;
    assert_eq!(report.answer().as_deref(), Some("hi"));
}
