//! Hook order, jumps, wrappers and unwinding.

use std::sync::{Arc, Mutex};

use hart_kernel::*;
use hart_types::Message;
use serde_json::json;

use crate::support::*;

type Diary = Arc<Mutex<Vec<String>>>;

/// Writes down every hook; misbehaves in the one it is told to.
struct Probe {
    name: &'static str,
    diary: Diary,
    fault: Option<(&'static str, Fault)>,
}

#[derive(Clone, Copy)]
enum Fault {
    Fail,
    Panic,
    Jump(Goto),
}

impl Probe {
    fn note(&self, hook: &'static str) -> HookResult {
        self.diary.lock().unwrap().push(format!("{}.{hook}", self.name));
        match self.fault {
            Some((at, Fault::Fail)) if at == hook => Err(HookError::Other("as asked".into())),
            Some((at, Fault::Panic)) if at == hook => panic!("as asked"),
            Some((at, Fault::Jump(goto))) if at == hook => Ok(Command::none().goto(goto)),
            _ => Ok(Command::none()),
        }
    }
}

#[async_trait]
impl Middleware for Probe {
    fn name(&self) -> &'static str {
        self.name
    }
    async fn before_agent(&self, _: &RunContext, _: &State) -> HookResult {
        self.note("before_agent")
    }
    async fn before_model(&self, _: &RunContext, _: &State) -> HookResult {
        self.note("before_model")
    }
    async fn wrap_model_call(
        &self,
        _: &RunContext,
        request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        self.note("model>")?;
        let response = next.run(request).await;
        self.note("<model")?;
        response
    }
    async fn after_model(&self, _: &RunContext, _: &State) -> HookResult {
        self.note("after_model")
    }
    async fn wrap_tool_call(
        &self,
        _: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        self.note("tool>")?;
        let outcome = next.run(request).await;
        self.note("<tool")?;
        outcome
    }
    async fn after_agent(&self, _: &RunContext, _: &State) -> HookResult {
        self.note("after_agent")
    }
}

/// Runs `a`, `b`, `c` around the script; `fault` is `(who, hook, what)`.
async fn run(answers: Vec<Message>, fault: Option<(&str, &'static str, Fault)>) -> (RunReport, Vec<String>) {
    let diary = Diary::default();
    let chain = ["a", "b", "c"].map(|name| {
        let fault = fault.filter(|(who, ..)| *who == name).map(|(_, hook, what)| (hook, what));
        Arc::new(Probe { name, diary: diary.clone(), fault }) as Arc<dyn Middleware>
    });
    let agent = Agent::builder(script(answers)).middleware(chain.to_vec()).tools([Typed::shared(Echo)]);
    let report = agent.build().unwrap().run(ask("q"), &cx()).await;
    let diary = diary.lock().unwrap().clone();
    (report, diary)
}

fn left(diary: &[String]) -> Vec<&str> {
    diary.iter().filter_map(|line| line.strip_suffix(".after_agent")).collect()
}

#[tokio::test]
async fn before_forward_after_reverse_wrap_onion() {
    let (report, diary) = run(vec![calls(&[("1", "echo", json!({"say": "x"}))]), say("done")], None).await;
    report.outcome.unwrap();
    let turn = "a.before_model b.before_model c.before_model a.model> b.model> c.model> c.<model b.<model a.<model \
                c.after_model b.after_model a.after_model";
    let expected = format!(
        "a.before_agent b.before_agent c.before_agent {turn} a.tool> b.tool> c.tool> c.<tool b.<tool a.<tool {turn} \
         c.after_agent b.after_agent a.after_agent"
    );
    assert_eq!(diary.join(" "), expected);
}

#[tokio::test]
async fn a_jump_skips_the_rest_of_its_hook() {
    let (report, diary) = run(vec![], Some(("b", "before_agent", Fault::Jump(Goto::End)))).await;
    report.outcome.unwrap();
    assert_eq!(diary.join(" "), "a.before_agent b.before_agent b.after_agent a.after_agent");

    let (report, diary) = run(vec![], Some(("b", "before_model", Fault::Jump(Goto::End)))).await;
    report.outcome.unwrap();
    assert!(!diary.iter().any(|line| line == "c.before_model" || line.contains("model>")));
    assert_eq!(left(&diary), ["c", "b", "a"]);
}

#[tokio::test]
async fn a_jump_to_the_model_asks_again() {
    struct Once(Mutex<bool>);
    #[async_trait]
    impl Middleware for Once {
        async fn after_model(&self, _: &RunContext, _: &State) -> HookResult {
            let mut done = self.0.lock().unwrap();
            let first = !std::mem::replace(&mut *done, true);
            Ok(if first { Command::none().goto(Goto::Model) } else { Command::none() })
        }
    }
    let model = script([say("one"), say("two")]);
    let agent =
        Agent::builder(model.clone()).middleware(vec![Arc::new(Once(Mutex::new(false)))]).build().unwrap();
    let report = agent.run(ask("q"), &cx()).await;
    report.outcome.as_ref().unwrap();
    assert_eq!(report.answer().as_deref(), Some("two"));
    assert_eq!(model.calls(), 2);
}

#[tokio::test]
async fn whoever_entered_leaves_whatever_happens() {
    let hooks =
        ["before_agent", "before_model", "model>", "<model", "after_model", "tool>", "<tool", "after_agent"];
    for fault in [Fault::Fail, Fault::Panic] {
        for hook in hooks {
            let answers = vec![calls(&[("1", "echo", json!({"say": "x"}))]), say("done")];
            let (report, diary) = run(answers, Some(("b", hook, fault))).await;
            let error = report.outcome.as_ref().expect_err(hook);
            assert!(matches!(error, RunError::Hook { .. }), "{hook}: {error:?}");
            let expected: &[&str] = if hook == "before_agent" { &["a"] } else { &["c", "b", "a"] };
            assert_eq!(left(&diary), expected, "{hook}");
        }
    }
}

#[tokio::test]
async fn a_wrapper_may_retry() {
    struct Retry;
    #[async_trait]
    impl Middleware for Retry {
        async fn wrap_model_call(
            &self,
            _: &RunContext,
            request: ModelRequest,
            next: ModelNext<'_>,
        ) -> Result<ModelResponse, HookError> {
            match next.run(request.clone()).await {
                Err(HookError::Model(_)) => next.run(request).await,
                answer => answer,
            }
        }
    }
    let busy = ModelError::new(ModelErrorKind::RateLimit, "m", "busy");
    let model = Script::of([Err(busy), Ok(say("at last"))]);
    let agent = Agent::builder(model.clone()).middleware(vec![Arc::new(Retry)]).build().unwrap();
    let report = agent.run(ask("q"), &cx()).await;
    assert_eq!(report.answer().as_deref(), Some("at last"));
    assert_eq!(model.calls(), 2);
}

#[tokio::test]
async fn a_wrapper_may_answer_itself_and_write_state() {
    struct Canned;
    #[async_trait]
    impl Middleware for Canned {
        async fn wrap_model_call(
            &self,
            _: &RunContext,
            _: ModelRequest,
            _: ModelNext<'_>,
        ) -> Result<ModelResponse, HookError> {
            let update = Update::none().messages(Message::human("and then?").with_id("extra"));
            Ok(ModelResponse { message: say("from the shelf"), update })
        }
    }
    let model = script([]);
    let agent = Agent::builder(model.clone()).middleware(vec![Arc::new(Canned)]).build().unwrap();
    let report = agent.run(ask("q"), &cx()).await;
    assert_eq!(model.calls(), 0);
    assert_eq!(transcript(&report).last().unwrap().1, "and then?");
}

#[tokio::test]
async fn the_state_reached_survives_a_failing_model() {
    let refused = ModelError::new(ModelErrorKind::Auth, "m", "bad key");
    let agent = Agent::builder(Script::of([Err(refused)])).build().unwrap();
    let report = agent.run(ask("q"), &cx()).await;
    assert!(matches!(&report.outcome, Err(RunError::Model(error)) if error.kind == ModelErrorKind::Auth));
    assert_eq!(transcript(&report), [("human".to_owned(), "q".to_owned())]);
}

#[tokio::test]
async fn streamed_fragments_carry_the_final_messages_id() {
    let ears = Arc::new(Ears::default());
    let agent = Agent::builder(script([say("hello")])).build().unwrap();
    let report = agent.run(ask("q"), &cx().with_events(ears.clone())).await;
    let id = report.state().messages().last().unwrap().id.clone();
    let events = ears.0.lock().unwrap();
    let chunks: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::MessageChunk(chunk) => Some((chunk.id.clone(), chunk.text())),
            _ => None,
        })
        .collect();
    assert_eq!(chunks, [(id.clone(), "hello".to_owned()), (id, String::new())]);
}

#[tokio::test]
async fn whoever_waits_for_the_first_word_has_it_before_the_rest_is_read() {
    let ears = Arc::new(Ears::default());
    let answer = vec![Ok(ChatChunk::Text("hello".into())), Ok(ChatChunk::Done(Box::new(say("hello"))))];
    let agent = Agent::builder(Arc::new(Chunks(Mutex::new(answer)))).build().unwrap();
    let cx = cx().with_events(ears.clone());
    let listener = async {
        loop {
            let is_word = |event: &&AgentEvent| matches!(event, AgentEvent::MessageChunk(_));
            let words = ears.0.lock().unwrap().iter().filter(is_word).count();
            if words > 0 {
                return words;
            }
            tokio::task::yield_now().await;
        }
    };
    let (report, words) = tokio::join!(agent.run(ask("hi"), &cx), listener);
    report.outcome.unwrap();
    assert_eq!(words, 1);
}

#[tokio::test]
async fn a_hook_that_always_jumps_meets_the_limit() {
    struct Circle;
    #[async_trait]
    impl Middleware for Circle {
        async fn before_model(&self, _: &RunContext, _: &State) -> HookResult {
            Ok(Command::none().goto(Goto::Model))
        }
    }
    let builder = Agent::builder(script([])).middleware(vec![Arc::new(Circle)]).recursion_limit(5);
    let report = builder.build().unwrap().run(ask("q"), &cx()).await;
    assert!(matches!(report.outcome, Err(RunError::RecursionLimit { limit: 5 })));
}

struct Secret;
impl StateKey for Secret {
    type Value = String;
    type Update = String;
    const NAME: &'static str = "secret";
    const SCOPE: Scope = Scope::Private;
    fn reduce(_: Option<String>, new: String) -> Result<String, ReduceError> {
        Ok(new)
    }
}

#[tokio::test]
async fn private_keys_are_in_no_event() {
    struct Keeper;
    #[async_trait]
    impl Middleware for Keeper {
        fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
            schema.declare::<Secret>()?;
            Ok(())
        }
        async fn before_agent(&self, _: &RunContext, _: &State) -> HookResult {
            Ok(Update::none().set::<Secret>("canary".into()).into())
        }
    }
    let ears = Arc::new(Ears::default());
    let agent = Agent::builder(script([say("a")])).middleware(vec![Arc::new(Keeper)]).build().unwrap();
    let report = agent.run(ask("q"), &cx().with_events(ears.clone())).await;
    assert_eq!(report.state().get::<Secret>().map(String::as_str), Some("canary"));
    for event in ears.0.lock().unwrap().iter() {
        let shown = match event {
            AgentEvent::Values(values) => format!("{:?}", values.values.to_json()),
            AgentEvent::Updates { update, .. } => format!("{update:?}"),
            other => format!("{other:?}"),
        };
        assert!(!shown.contains("canary"), "{shown}");
    }
}

/// Plays chunks as they stand, all at once, a moment after it was asked.
struct Chunks(Mutex<Vec<Result<ChatChunk, ModelError>>>);

#[async_trait]
impl ChatModel for Chunks {
    fn profile(&self) -> &ModelProfile {
        static PROFILE: std::sync::LazyLock<ModelProfile> =
            std::sync::LazyLock::new(|| ModelProfile { name: "chunks".into(), ..ModelProfile::default() });
        &PROFILE
    }

    async fn stream(
        &self,
        _: ChatRequest,
        _: &tokio_util::sync::CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        tokio::task::yield_now().await;
        Ok(Box::pin(futures_util::stream::iter(std::mem::take(&mut *self.0.lock().unwrap()))))
    }
}

fn restart(attempt: u32) -> Result<ChatChunk, ModelError> {
    Ok(ChatChunk::Restart(Box::new(Restart {
        failed: "m".into(),
        kind: ModelErrorKind::Overloaded,
        reason: "the whole story".into(),
        model: "m".into(),
        attempt,
        max_attempts: 3,
        wait: std::time::Duration::from_millis(1500),
    })))
}

async fn play(
    chunks: Vec<Result<ChatChunk, ModelError>>,
) -> (RunReport, Vec<String>, Vec<serde_json::Value>) {
    let ears = Arc::new(Ears::default());
    let agent = Agent::builder(Arc::new(Chunks(Mutex::new(chunks)))).build().unwrap();
    let report = agent.run(ask("q"), &cx().with_events(ears.clone())).await;
    let events = ears.0.lock().unwrap();
    let (mut ids, mut told) = (Vec::new(), Vec::new());
    for event in events.iter() {
        match event {
            AgentEvent::MessageChunk(chunk) => ids.extend(chunk.id.as_ref().map(ToString::to_string)),
            AgentEvent::Custom(custom) => told.push(custom.clone()),
            _ => {}
        }
    }
    ids.dedup();
    (report, ids, told)
}

#[tokio::test]
async fn an_answer_that_is_asked_for_again_gets_another_id_and_is_told() {
    let text = |text: &str| Ok(ChatChunk::Text(text.to_owned()));
    let chunks =
        vec![restart(2), text("hal"), restart(3), text("half"), Ok(ChatChunk::Done(Box::new(say("half"))))];
    let (report, ids, told) = play(chunks).await;
    assert_eq!(ids.len(), 2, "the first attempt said nothing, so its id is still free: {ids:?}");
    let last = report.state().messages().last().unwrap().id.as_ref().unwrap().to_string();
    assert_eq!((last, report.answer().unwrap()), (ids[1].clone(), "half".to_owned()));
    assert_eq!(told[0]["message_id"], serde_json::Value::Null);
    assert_eq!(told[1]["message_id"], ids[0]);
    assert_eq!(
        (told[1]["type"].as_str(), told[1]["attempt"].as_u64(), told[1]["max_attempts"].as_u64()),
        (Some("llm_retry"), Some(3), Some(3))
    );
    assert_eq!((told[1]["wait_ms"].as_u64(), told[1]["reason"].as_str()), (Some(1500), Some("overloaded")));
    assert_eq!(told[1]["message"], "`m` is overloaded, trying again in 2 s (attempt 3 of 3)");
    assert_eq!(told[1]["error"], "the whole story");
}

#[tokio::test]
async fn a_broken_answer_is_kept_under_the_id_its_readers_saw() {
    let error = ModelError::new(ModelErrorKind::Overloaded, "m", "").partial(Some(say("hal")));
    let (report, ids, _) = play(vec![Ok(ChatChunk::Text("hal".into())), restart(2), Err(error)]).await;
    let kept = report.state().messages().last().unwrap().clone();
    assert_eq!((kept.text().as_str(), kept.id.as_ref().unwrap().as_str()), ("hal", ids[0].as_str()));
    assert!(report.outcome.is_err());
}

#[tokio::test]
async fn a_wait_for_a_turn_is_told() {
    let waiting = Waiting {
        model: "m".into(),
        reason: "has used up its rate".into(),
        wait: Some(std::time::Duration::from_secs(3)),
    };
    let chunks = vec![Ok(ChatChunk::Waiting(Box::new(waiting))), Ok(ChatChunk::Done(Box::new(say("ok"))))];
    let (_, _, told) = play(chunks).await;
    assert_eq!((told[0]["type"].as_str(), told[0]["wait_ms"].as_u64()), (Some("llm_wait"), Some(3000)));
    assert_eq!(told[0]["message"], "`m` has used up its rate, waiting 3 s");
}
