//! An agent inside a call that asks a person: whatever becomes of an answer, what it had done is not done again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::stream;
use hart_kernel::*;
use hart_runtime::*;
use hart_store::SqliteStore;
use hart_testkit::in_time;
use hart_types::{Ai, Body, CancelAction, Message, RunStatus, ThreadStatus, ToolCall};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{World, says};

/// The one who is asked sends a helper; the helper sends a letter, then asks.
struct Agents(PathBuf);

#[async_trait]
impl AgentFactory for Agents {
    fn agents(&self) -> Vec<AgentInfo> {
        vec![AgentInfo { name: "agent".into(), description: None }]
    }

    async fn build(&self, request: &AgentRequest) -> Result<Agent, FactoryError> {
        self.reader(&request.agent, request.checkpointer.clone())
    }

    fn reader(&self, _: &str, checkpointer: Arc<dyn Checkpointer>) -> Result<Agent, FactoryError> {
        let tools: [Arc<dyn Tool>; 2] = [Typed::shared(Letter(self.0.clone())), Typed::shared(Consult)];
        let helper = Agent::builder(Arc::new(OneByOne(&["letter", "consult"]))).tools(tools);
        let delegate = Typed::shared(Delegate(helper.build().unwrap()));
        let lead = Agent::builder(Arc::new(OneByOne(&["delegate"]))).tools([delegate]);
        Ok(lead.checkpointer(checkpointer).build().unwrap())
    }
}

/// Calls one tool after the other, without arguments, then has done.
struct OneByOne(&'static [&'static str]);

#[async_trait]
impl ChatModel for OneByOne {
    fn profile(&self) -> &ModelProfile {
        static PROFILE: std::sync::LazyLock<ModelProfile> = std::sync::LazyLock::new(|| ModelProfile {
            name: "one-by-one".into(),
            ..ModelProfile::default()
        });
        &PROFILE
    }

    async fn stream(&self, request: ChatRequest, _: &CancellationToken) -> Result<ChatStream, ModelError> {
        let done = request.messages.iter().filter(|message| message.as_ai().is_some()).count();
        let call = |tool: &&str| ToolCall::new(format!("{tool}-{done}"), *tool, Map::new());
        let tool_calls: Vec<_> = self.0.get(done).map(call).into_iter().collect();
        let text = if tool_calls.is_empty() { "all is done" } else { "" };
        let answer = Message::new(Body::Ai(Ai { tool_calls, ..Ai::default() }), text);
        Ok(Box::pin(stream::iter([Ok(ChatChunk::Done(Box::new(answer)))])))
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

struct Delegate(Agent);

#[async_trait]
impl TypedTool for Delegate {
    const NAME: &'static str = "delegate";
    const DESCRIPTION: &'static str = "Sends a helper.";
    const EFFECT: Effect = Effect::Idempotent;
    type Args = Nothing;

    async fn run(&self, cx: &ToolContext<'_>, _: Nothing) -> Result<ToolOutput, ToolError> {
        let child = Child::enter(cx, &self.0, &Limits::default()).await;
        let child = child.map_err(|error| ToolError::Failed(error.to_string()))?;
        let report = child.run(Update::none().messages(Message::human("go"))).await;
        match report.values.interrupts() {
            [] => Ok(report.answer().unwrap_or_default().into()),
            questions => Err(ToolError::Interrupts(questions.to_vec())),
        }
    }
}

/// Adds a line to a file that nobody else looks after.
struct Letter(PathBuf);

#[async_trait]
impl TypedTool for Letter {
    const NAME: &'static str = "letter";
    const DESCRIPTION: &'static str = "Sends a letter.";
    type Args = Nothing;

    async fn run(&self, _: &ToolContext<'_>, _: Nothing) -> Result<ToolOutput, ToolError> {
        let sent = std::fs::read_to_string(&self.0).unwrap_or_default();
        std::fs::write(&self.0, sent + "once\n").unwrap();
        Ok("sent".into())
    }
}

struct Consult;

#[async_trait]
impl TypedTool for Consult {
    const NAME: &'static str = "consult";
    const DESCRIPTION: &'static str = "Asks a person.";
    type Args = Nothing;

    async fn run(&self, cx: &ToolContext<'_>, _: Nothing) -> Result<ToolOutput, ToolError> {
        cx.interrupt(Interrupt::new(cx.call_id.as_str(), "May I?")).map(|answer| answer.to_string().into())
    }
}

async fn open(dir: &Path, settings: Settings) -> World {
    let parts = Parts {
        store: Arc::new(SqliteStore::open(&dir.join("hart.db")).unwrap()),
        agents: Arc::new(Agents(dir.join("letters"))),
        workspaces: Arc::new(NoWorkspaces),
        clock: Arc::new(SystemClock),
    };
    World::of(Runtime::open_with(parts, settings).await.unwrap())
}

fn answer(answer: Value) -> StartRun {
    StartRun { input: Input::Resume { answer, update: Map::new() }, ..says("t", "") }
}

fn letters(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("letters")).unwrap()
}

async fn status(world: &World) -> ThreadStatus {
    world.runtime.store().thread(&"t".into()).await.unwrap().unwrap().status
}

/// The helper has asked.
async fn asked(dir: &Path) -> World {
    let world = open(dir, Settings::default()).await;
    assert_eq!(world.run(says("t", "go")).await.status, RunStatus::Success);
    assert_eq!((status(&world).await, letters(dir).as_str()), (ThreadStatus::Interrupted, "once\n"));
    world
}

/// The right answer comes at last.
async fn assert_goes_on(world: &World, dir: &Path) {
    assert_eq!(world.run(answer(json!("yes"))).await.status, RunStatus::Success);
    assert_eq!(letters(dir), "once\n", "the helper goes on, it does not begin anew");
    assert_eq!(world.texts("t").await.last().unwrap(), "all is done");
    assert_eq!(status(world).await, ThreadStatus::Idle);
}

#[tokio::test]
async fn a_wrong_answer_costs_a_helper_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let world = asked(dir.path()).await;
    let wrong = world.run(answer(json!({"0123456789abcdef0123456789abcdef": "yes"}))).await;
    assert_eq!(wrong.error.unwrap().error, "UnknownInterruptError");
    assert_goes_on(&world, dir.path()).await;
}

#[tokio::test]
async fn an_answer_that_is_stopped_before_its_turn_costs_a_helper_nothing() {
    for action in [CancelAction::Interrupt, CancelAction::Rollback] {
        let dir = tempfile::tempdir().unwrap();
        let world = asked(dir.path()).await;
        let later = StartRun { after_seconds: 600.0, ..answer(json!("later")) };
        let waiting = world.runtime.start(later).await.unwrap();
        world.runtime.cancel(&waiting.id, action).await.unwrap();
        in_time("it is stopped", world.runtime.wait(&waiting.id)).await;
        assert_eq!(status(&world).await, ThreadStatus::Interrupted, "{action:?}: its question is open");
        assert_goes_on(&world, dir.path()).await;
    }
}

/// An answer whose process died, on a server that goes on with nothing.
#[test]
fn an_answer_that_nobody_goes_on_with_costs_a_helper_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let process = tokio::runtime::Runtime::new().unwrap();
    let run = process.block_on(async {
        let world = asked(dir.path()).await;
        let store = world.runtime.store();
        // As a process leaves it that dies behind its claim.
        let later = StartRun { after_seconds: 1.0, ..answer(json!("yes")) };
        let run = world.runtime.start(later).await.unwrap();
        let due = run.start_at.checked_add(std::time::Duration::from_secs(1)).unwrap();
        store.claim(&"t".into(), world.runtime.node(), due).await.unwrap().unwrap();
        run
    });
    process.shutdown_background();
    let process = tokio::runtime::Runtime::new().unwrap();
    process.block_on(async {
        let world = open(dir.path(), Settings { resume: false, ..Settings::default() }).await;
        assert_eq!(world.ended(&run.id).await.error.unwrap().error, "Orphaned");
        assert_goes_on(&world, dir.path()).await;
    });
}
