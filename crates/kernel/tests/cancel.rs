//! Cancellation reaches a silent model and a deaf tool, and leaves a thread that can go on.

use std::sync::Arc;
use std::time::Duration;

use hart_kernel::*;
use hart_types::{Message, ToolStatus};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::*;

fn nameless() -> &'static ModelProfile {
    static PROFILE: std::sync::LazyLock<ModelProfile> = std::sync::LazyLock::new(ModelProfile::default);
    &PROFILE
}

/// Never answers.
struct Silent;

#[async_trait]
impl ChatModel for Silent {
    fn profile(&self) -> &ModelProfile {
        nameless()
    }
    async fn stream(&self, _: ChatRequest, _: &CancellationToken) -> Result<ChatStream, ModelError> {
        Ok(Box::pin(futures_util::stream::pending()))
    }
}

/// Runs for ever and does not listen.
struct Deaf;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArgs {}

#[async_trait]
impl TypedTool for Deaf {
    const NAME: &'static str = "deaf";
    const DESCRIPTION: &'static str = "Does not listen.";
    type Args = NoArgs;
    async fn run(&self, _: &ToolContext<'_>, _: NoArgs) -> Result<ToolOutput, ToolError> {
        std::future::pending().await
    }
}

/// What a run may take from the moment it is stopped: where a model speaks, and where something runs. Time is paused: it
/// passes only where somebody waits for it.
const SPEAKING: Duration = Duration::from_secs(2);
const RUNNING: Duration = Duration::from_secs(5);

async fn cancelled_run(agent: Agent, cx: RunContext, within: Duration) -> RunReport {
    let cancel = cx.cancel.clone();
    let (report, stopped) = tokio::join!(agent.run(ask("q"), &cx), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
        // Once more does no harm.
        cancel.cancel();
        Instant::now()
    });
    assert!(stopped.elapsed() <= within, "{:?}", stopped.elapsed());
    report
}

#[tokio::test(start_paused = true)]
async fn a_silent_model_is_left() {
    let report = cancelled_run(Agent::builder(Arc::new(Silent)).build().unwrap(), cx(), SPEAKING).await;
    assert!(matches!(report.outcome, Err(RunError::Cancelled)));
    assert_eq!(transcript(&report).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deaf_tool_is_dropped_and_its_call_answered() {
    let model = script([calls(&[("1", "deaf", json!({})), ("2", "echo", json!({"say": "x"}))])]);
    let tools = [Typed::shared(Deaf), Typed::shared(Echo)];
    let report = cancelled_run(Agent::builder(model).tools(tools).build().unwrap(), cx(), RUNNING).await;
    assert!(matches!(report.outcome, Err(RunError::Cancelled)));
    let messages: Vec<_> = report.state().messages().iter().collect();
    assert_eq!(messages[2].as_tool_result().unwrap().status, ToolStatus::Error);
    assert!(messages[2].text().contains("cancelled"));
    assert_eq!(messages[3].text(), "x", "the finished call's result was lost");
}

#[tokio::test(start_paused = true)]
async fn hooks_that_do_not_listen_are_left_too() {
    struct Stuck;
    #[async_trait]
    impl Middleware for Stuck {
        async fn before_model(&self, _: &RunContext, _: &State) -> HookResult {
            std::future::pending().await
        }
    }
    let agent = Agent::builder(script([])).middleware(vec![Arc::new(Stuck)]).build().unwrap();
    let report = cancelled_run(agent, cx(), RUNNING).await;
    assert!(matches!(report.outcome, Err(RunError::Cancelled)));
}

#[tokio::test]
async fn a_run_cancelled_before_it_starts_keeps_the_question() {
    let cx = cx();
    cx.cancel.cancel();
    let report = Agent::builder(script([])).build().unwrap().run(ask("q"), &cx).await;
    assert!(matches!(report.outcome, Err(RunError::Cancelled)));
    assert_eq!(transcript(&report).len(), 1);
}

/// Says half of it, then waits to be cancelled and ends with what it had.
struct HalfSaid;

#[async_trait]
impl ChatModel for HalfSaid {
    fn profile(&self) -> &ModelProfile {
        nameless()
    }
    async fn stream(&self, _: ChatRequest, cancel: &CancellationToken) -> Result<ChatStream, ModelError> {
        let cancelled = cancel.clone().cancelled_owned();
        let end = async move {
            cancelled.await;
            Err(ModelError::cancelled().partial(Some(hart_types::Message::ai("half an ans"))))
        };
        Ok(Box::pin(futures_util::stream::once(end)))
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_the_cancellation_is_kept_and_marked() {
    let report = cancelled_run(Agent::builder(Arc::new(HalfSaid)).build().unwrap(), cx(), SPEAKING).await;
    assert!(matches!(report.outcome, Err(RunError::Cancelled)));
    let last = report.state().messages().last().unwrap().clone();
    assert_eq!(last.text(), "half an ans");
    assert_eq!(last.response_metadata["incomplete"], true);
}

/// Notes at the end that there was one.
struct Farewell;

struct Parted;

impl StateKey for Parted {
    type Value = bool;
    type Update = bool;
    const NAME: &'static str = "parted";

    fn reduce(_: Option<bool>, update: bool) -> Result<bool, ReduceError> {
        Ok(update)
    }
}

#[async_trait]
impl Middleware for Farewell {
    fn declare(&self, keys: &mut Schema) -> Result<(), StateError> {
        keys.declare::<Parted>()?;
        Ok(())
    }
    async fn after_agent(&self, _: &RunContext, _: &State) -> Result<Command, HookError> {
        Ok(Update::none().set::<Parted>(true).into())
    }
}

/// Says something behind the first words of the user.
struct Reminder;

#[async_trait]
impl Middleware for Reminder {
    async fn before_model(&self, _: &RunContext, state: &State) -> Result<Command, HookError> {
        match state.messages().len() {
            1 => Ok(Update::none().messages(Message::system("it is Monday")).into()),
            _ => Ok(Command::none()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_broken_off_or_failed_is_given_anew_also_behind_a_reminder() {
    let failed = || Script::of([Err(ModelError::new(ModelErrorKind::BadRequest, "m", "no"))]);
    for is_half_said in [true, false] {
        let log = MemoryLog::default();
        let agent = |model: Arc<dyn ChatModel>| {
            let builder = Agent::builder(model).middleware(vec![Arc::new(Reminder)]);
            builder.checkpointer(Arc::new(log.clone())).build().unwrap()
        };
        let broken = match is_half_said {
            true => cancelled_run(agent(Arc::new(HalfSaid)), cx(), SPEAKING).await,
            false => agent(failed()).run(ask("q"), &cx()).await,
        };
        assert!(broken.outcome.is_err());
        let report = agent(script([say("a whole answer")])).run(RunInput::Continue, &cx()).await;
        let said: Vec<String> = transcript(&report).into_iter().map(|(_, text)| text).collect();
        assert_eq!(said, ["q", "it is Monday", "a whole answer"]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_broken_off_is_still_to_be_done_and_a_broken_answer_is_given_anew() {
    let log = MemoryLog::default();
    let agent = |model: Arc<dyn ChatModel>| {
        let builder = Agent::builder(model).middleware(vec![Arc::new(Farewell)]);
        builder.checkpointer(Arc::new(log.clone())).build().unwrap()
    };
    let next = || log.0.lock().unwrap().values().next().unwrap().last().unwrap().next.clone();
    let report = cancelled_run(agent(Arc::new(HalfSaid)), cx(), SPEAKING).await;
    assert!(matches!(report.outcome, Err(RunError::Cancelled)));
    assert_eq!(next().as_deref(), Some("model"), "also where the unwinding wrote the last step");
    let report = agent(script([say("a whole answer")])).run(RunInput::Continue, &cx()).await;
    report.outcome.as_ref().unwrap();
    let said: Vec<String> = transcript(&report).into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["q", "a whole answer"]);
    assert_eq!(next(), None);
    let failed = Script::of([Err(ModelError::new(ModelErrorKind::BadRequest, "m", "no"))]);
    assert!(agent(failed).run(ask("again"), &cx()).await.outcome.is_err());
    assert_eq!(next().as_deref(), Some("model"));
}

struct Stuck;

#[async_trait]
impl Middleware for Stuck {
    async fn wrap_model_call(
        &self,
        _: &RunContext,
        _: ModelRequest,
        _: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_when_its_time_is_over_and_says_so() {
    let agent = Agent::builder(script([])).middleware(vec![Arc::new(Stuck)]).build().unwrap();
    let limits = Limits { seconds: Some(90.0), ..Limits::default() };
    let token = CancellationToken::new();
    let cx = cx().with_cancel(token.clone()).with_budget(Budget::new(&limits));
    let error = agent.run(ask("go"), &cx).await.outcome.unwrap_err();
    assert!(matches!(error, RunError::OutOfTime { .. }), "{error:?}");
    assert!(error.to_string().contains("the time limit of 90s is over"), "{error}");
    assert!(!token.is_cancelled(), "whoever else hangs on it goes on");
}
