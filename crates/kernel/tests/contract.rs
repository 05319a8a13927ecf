//! What every author of a middleware may rely on, as tables: the order of hooks, where jumps lead, what a retry keeps.
//!
//! The order is that of LangChain's `AgentMiddleware`: `before_*` forward, `after_*` backward, wrappers nested, a jump
//! skips the rest of its hook. Where hart differs the row says so.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use hart_kernel::*;
use hart_types::Message;
use serde_json::json;

use crate::support::*;

type Diary = Arc<Mutex<Vec<String>>>;

/// Writes down every hook in two letters, and jumps once in one of them.
struct Link {
    name: &'static str,
    diary: Diary,
    jump: Option<(&'static str, Goto)>,
    jumped: AtomicBool,
}

impl Link {
    fn note(&self, hook: &'static str) -> Command {
        self.diary.lock().unwrap().push(format!("{}.{hook}", self.name));
        match self.jump {
            Some((at, goto)) if at == hook && !self.jumped.swap(true, Ordering::Relaxed) => {
                Command::none().goto(goto)
            }
            _ => Command::none(),
        }
    }
}

#[async_trait]
impl Middleware for Link {
    fn name(&self) -> &'static str {
        self.name
    }
    async fn before_agent(&self, _: &RunContext, _: &State) -> HookResult {
        Ok(self.note("ba"))
    }
    async fn before_model(&self, _: &RunContext, _: &State) -> HookResult {
        Ok(self.note("bm"))
    }
    async fn wrap_model_call(
        &self,
        _: &RunContext,
        request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        self.note("m>");
        let response = next.run(request).await;
        self.note("<m");
        response
    }
    async fn after_model(&self, _: &RunContext, _: &State) -> HookResult {
        Ok(self.note("am"))
    }
    async fn wrap_tool_call(
        &self,
        _: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        self.note("t>");
        let outcome = next.run(request).await;
        self.note("<t");
        outcome
    }
    async fn after_agent(&self, _: &RunContext, _: &State) -> HookResult {
        Ok(self.note("aa"))
    }
}

const ENTER: &str = "a.ba b.ba c.ba";
const MODEL: &str = "a.bm b.bm c.bm a.m> b.m> c.m> c.<m b.<m a.<m";
const AFTER: &str = "c.am b.am a.am";
const TOOL: &str = "a.t> b.t> c.t> c.<t b.<t a.<t";
const LEAVE: &str = "c.aa b.aa a.aa";

fn call() -> Message {
    calls(&[("c1", "echo", json!({"say": "x"}))])
}

fn end() -> Message {
    calls(&[("c1", "echo", json!({"say": "end"}))])
}

/// Runs `a b c` with a jump of `b`'s around the script.
async fn trace(jump: Option<(&'static str, Goto)>, input: Vec<Message>, answers: Vec<Message>) -> String {
    let diary = Diary::default();
    let link = |name: &'static str| -> Arc<dyn Middleware> {
        let jump = jump.filter(|_| name == "b");
        Arc::new(Link { name, diary: diary.clone(), jump, jumped: AtomicBool::new(false) })
    };
    let agent = Agent::builder(script(answers))
        .middleware(vec![link("a"), link("b"), link("c")])
        .tools([Typed::shared(Echo)])
        .build()
        .unwrap();
    agent.run(Update::none().messages(input), &cx()).await.outcome.unwrap();
    let diary = diary.lock().unwrap();
    diary.join(" ")
}

#[tokio::test]
async fn the_order_of_hooks_and_where_jumps_lead() {
    use Goto::{End, Model, Tools};
    let asked = || vec![Message::human("q")];
    let pending = || vec![Message::human("q"), call()];
    let once = |answer: Message| vec![answer];
    let then = |answer: Message| vec![answer, say("done")];
    type Case = (&'static str, Option<(&'static str, Goto)>, Vec<Message>, Vec<Message>, Vec<&'static str>);
    let table: Vec<Case> = vec![
        ("one answer", None, asked(), once(say("x")), vec![ENTER, MODEL, AFTER, LEAVE]),
        ("a tool turn", None, asked(), then(call()), vec![ENTER, MODEL, AFTER, TOOL, MODEL, AFTER, LEAVE]),
        // Whoever was not entered is not left; LangChain would still run its `after_agent`.
        ("before_agent to the end", Some(("ba", End)), asked(), vec![], vec!["a.ba b.ba b.aa a.aa"]),
        (
            "before_agent to the model",
            Some(("ba", Model)),
            asked(),
            once(say("x")),
            vec!["a.ba b.ba", MODEL, AFTER, "b.aa a.aa"],
        ),
        (
            "before_agent to the tools, nothing to run",
            Some(("ba", Tools)),
            asked(),
            once(say("x")),
            vec!["a.ba b.ba", MODEL, AFTER, "b.aa a.aa"],
        ),
        ("before_model to the end", Some(("bm", End)), asked(), vec![], vec![ENTER, "a.bm b.bm", LEAVE]),
        (
            "before_model to the model begins with the first",
            Some(("bm", Model)),
            asked(),
            once(say("x")),
            vec![ENTER, "a.bm b.bm", MODEL, AFTER, LEAVE],
        ),
        (
            "before_model to the tools",
            Some(("bm", Tools)),
            pending(),
            once(say("x")),
            vec![ENTER, "a.bm b.bm", TOOL, MODEL, AFTER, LEAVE],
        ),
        (
            "after_model to the end leaves the calls",
            Some(("am", End)),
            asked(),
            once(call()),
            vec![ENTER, MODEL, "c.am b.am", LEAVE],
        ),
        (
            "after_model to the model",
            Some(("am", Model)),
            asked(),
            then(say("x")),
            vec![ENTER, MODEL, "c.am b.am", MODEL, AFTER, LEAVE],
        ),
        (
            "after_model to the tools",
            Some(("am", Tools)),
            asked(),
            then(call()),
            vec![ENTER, MODEL, "c.am b.am", TOOL, MODEL, AFTER, LEAVE],
        ),
        (
            "after_model to the tools, nothing to run",
            Some(("am", Tools)),
            asked(),
            then(say("x")),
            vec![ENTER, MODEL, "c.am b.am", MODEL, AFTER, LEAVE],
        ),
        // Leaving is unwinding: it runs on every path and goes nowhere.
        (
            "after_agent goes nowhere",
            Some(("aa", Model)),
            asked(),
            once(say("x")),
            vec![ENTER, MODEL, AFTER, LEAVE],
        ),
        ("a tool that ends the run", None, asked(), once(end()), vec![ENTER, MODEL, AFTER, TOOL, LEAVE]),
    ];
    for (case, jump, input, answers, expected) in table {
        assert_eq!(trace(jump, input, answers).await, expected.join(" "), "{case}");
    }
}

/// Whoever wrote, in order.
struct Signatures;

impl StateKey for Signatures {
    type Value = Vec<String>;
    type Update = String;
    const NAME: &'static str = "signatures";
    fn reduce(current: Option<Vec<String>>, new: String) -> Result<Vec<String>, ReduceError> {
        let mut all = current.unwrap_or_default();
        all.push(new);
        Ok(all)
    }
}

/// Signs what passes through it, model calls or tool calls, and asks `attempts` times for it.
struct Signer {
    name: &'static str,
    signs: Signs,
    attempts: u32,
    seen: AtomicU32,
}

#[derive(PartialEq)]
enum Signs {
    Answers,
    Results,
}

impl Signer {
    fn shared(name: &'static str, signs: Signs, attempts: u32) -> Arc<dyn Middleware> {
        Arc::new(Self { name, signs, attempts, seen: AtomicU32::new(0) })
    }
}

#[async_trait]
impl Middleware for Signer {
    fn name(&self) -> &'static str {
        self.name
    }
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<Signatures>()?;
        Ok(())
    }
    async fn wrap_model_call(
        &self,
        _: &RunContext,
        request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        if self.signs != Signs::Answers {
            return next.run(request).await;
        }
        for _ in 1..self.attempts {
            next.run(request.clone()).await?;
        }
        let mut response = next.run(request).await?;
        let nth = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        response.update.extend(Update::none().set::<Signatures>(format!("{}{nth}", self.name)));
        Ok(response)
    }
    async fn wrap_tool_call(
        &self,
        _: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        if self.signs != Signs::Results {
            return next.run(request).await;
        }
        for _ in 1..self.attempts {
            next.run(request.clone()).await?;
        }
        let call = request.call.id.clone().unwrap();
        let mut outcome = next.run(request).await?;
        outcome.command.update.extend(Update::none().set::<Signatures>(format!("{}:{call}", self.name)));
        Ok(outcome)
    }
}

fn signatures(report: &RunReport) -> Vec<&str> {
    report.state().get::<Signatures>().map_or(Vec::new(), |all| all.iter().map(String::as_str).collect())
}

#[tokio::test]
async fn writes_of_a_model_call_are_applied_inner_first_and_those_of_abandoned_attempts_are_not() {
    let signer = |name, attempts| Signer::shared(name, Signs::Answers, attempts);
    let chain = vec![signer("a", 1), signer("b", 3), signer("c", 1)];
    let model = script([say("one"), say("two"), say("three")]);
    let agent = Agent::builder(model.clone()).middleware(chain).build().unwrap();
    let report = agent.run(ask("q"), &cx()).await;
    report.outcome.as_ref().unwrap();
    assert_eq!(signatures(&report), ["c3", "b1", "a1"]);
    assert_eq!((model.calls(), transcript(&report).len()), (3, 2), "the thread has one answer");
    assert_eq!(report.answer().as_deref(), Some("three"));
}

#[tokio::test]
async fn writes_of_tool_calls_are_applied_in_call_order_after_their_results() {
    let signer = |name, attempts| Signer::shared(name, Signs::Results, attempts);
    let chain = vec![signer("a", 1), signer("b", 2), signer("c", 1)];
    // The first call ends last.
    let slow = json!({"say": "slow", "turns": 20});
    let batch = calls(&[("c1", "echo", slow), ("c2", "echo", json!({"say": "quick"}))]);
    let agent = Agent::builder(Script::of([Ok(batch), Ok(say("done"))]))
        .middleware(chain)
        .tools([Typed::shared(Echo)])
        .build()
        .unwrap();
    let report = agent.run(ask("q"), &cx()).await;
    report.outcome.as_ref().unwrap();
    let texts: Vec<String> = transcript(&report).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["q", "", "slow", "quick", "done"]);
    assert_eq!(signatures(&report), ["c:c1", "b:c1", "a:c1", "c:c2", "b:c2", "a:c2"]);
}

#[tokio::test]
async fn a_wrapper_that_answers_by_itself_hides_what_is_further_in() {
    struct Shelf;
    #[async_trait]
    impl Middleware for Shelf {
        async fn wrap_model_call(
            &self,
            _: &RunContext,
            _: ModelRequest,
            _: ModelNext<'_>,
        ) -> Result<ModelResponse, HookError> {
            Ok(ModelResponse { message: say("from the shelf"), update: Update::none() })
        }
    }
    let chain = vec![
        Signer::shared("a", Signs::Answers, 1),
        Arc::new(Shelf) as Arc<dyn Middleware>,
        Signer::shared("c", Signs::Answers, 1),
    ];
    let agent = Agent::builder(script([])).middleware(chain).build().unwrap();
    let report = agent.run(ask("q"), &cx()).await;
    assert_eq!(signatures(&report), ["a1"]);
    assert_eq!(report.answer().as_deref(), Some("from the shelf"));
}

#[test]
fn what_cannot_be_an_agent_is_an_error_that_names_both_sides() {
    struct Other;
    impl StateKey for Other {
        type Value = u32;
        type Update = u32;
        const NAME: &'static str = "signatures";
        fn reduce(_: Option<u32>, new: u32) -> Result<u32, ReduceError> {
            Ok(new)
        }
    }
    struct Counts;
    impl Middleware for Counts {
        fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
            schema.declare::<Other>()?;
            Ok(())
        }
        fn tools(&self) -> Vec<Arc<dyn Tool>> {
            vec![Typed::shared(Echo)]
        }
    }
    let two_keys =
        Agent::builder(script([])).middleware(vec![Signer::shared("a", Signs::Answers, 1), Arc::new(Counts)]);
    let error = two_keys.build().unwrap_err().to_string();
    for word in ["`signatures`", "Signatures", "Other", "rename"] {
        assert!(error.contains(word), "{error}");
    }
    let two_tools =
        Agent::builder(script([])).tools([Typed::shared(Echo)]).middleware(vec![Arc::new(Counts)]);
    let error = two_tools.build().unwrap_err().to_string();
    for word in ["`echo`", "the caller", "Counts", "rename"] {
        assert!(error.contains(word), "{error}");
    }
    // The same key twice is one key.
    let same = Agent::builder(script([]))
        .middleware(vec![Signer::shared("a", Signs::Answers, 1), Signer::shared("b", Signs::Answers, 1)]);
    same.build().unwrap();
}
