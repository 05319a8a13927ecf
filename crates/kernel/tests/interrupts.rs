//! A question pauses a run, an answer resumes it where it stopped, in any process.

use std::sync::{Arc, Mutex};

use hart_kernel::*;
use serde_json::{Value, json};

use crate::support::*;

/// Asks in one hook, and writes down every hook it is called in.
struct Asker {
    name: &'static str,
    asks_in: Option<&'static str>,
    diary: Arc<Mutex<Vec<String>>>,
}

impl Asker {
    fn hook(&self, cx: &RunContext, hook: &'static str) -> HookResult {
        let resuming = if cx.is_resuming() { " again" } else { "" };
        let paused = if cx.is_paused() { " paused" } else { "" };
        self.diary.lock().unwrap().push(format!("{}.{hook}{resuming}{paused}", self.name));
        if self.asks_in == Some(hook) {
            let answer = cx.interrupt(Interrupt::new(hook, json!({"may I": hook})))?;
            self.diary.lock().unwrap().push(format!("heard {answer}"));
            if answer == "nonsense" {
                return Err(HookError::Other("that is no answer".into()));
            }
        }
        Ok(Command::none())
    }
}

#[async_trait]
impl Middleware for Asker {
    fn name(&self) -> &'static str {
        self.name
    }
    async fn before_agent(&self, cx: &RunContext, _: &State) -> HookResult {
        self.hook(cx, "before_agent")
    }
    async fn before_model(&self, cx: &RunContext, _: &State) -> HookResult {
        self.hook(cx, "before_model")
    }
    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        self.hook(cx, "wrap_model")?;
        next.run(request).await
    }
    async fn after_model(&self, cx: &RunContext, _: &State) -> HookResult {
        self.hook(cx, "after_model")
    }
    async fn after_agent(&self, cx: &RunContext, _: &State) -> HookResult {
        self.hook(cx, "after_agent")
    }
}

struct World {
    log: Arc<MemoryLog>,
    diary: Arc<Mutex<Vec<String>>>,
    asks_in: &'static str,
}

impl World {
    fn new(asks_in: &'static str) -> Self {
        Self { log: Arc::default(), diary: Arc::default(), asks_in }
    }

    /// A new agent each time: all that connects two runs is the log.
    fn agent(&self, model: Arc<dyn ChatModel>) -> Agent {
        let asker = |name, asks_in| -> Arc<dyn Middleware> {
            Arc::new(Asker { name, asks_in, diary: Arc::clone(&self.diary) })
        };
        Agent::builder(model)
            .middleware(vec![asker("outer", None), asker("asker", Some(self.asks_in)), asker("inner", None)])
            .tools([Arc::new(Typed::new(Echo)) as Arc<dyn Tool>, Arc::new(Typed::new(AskHuman))])
            .checkpointer(self.log.clone())
            .build()
            .unwrap()
    }

    fn diary(&self) -> Vec<String> {
        std::mem::take(&mut self.diary.lock().unwrap())
    }
}

/// Asks a person from within a tool.
struct AskHuman;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Question {
    question: String,
}

#[async_trait]
impl TypedTool for AskHuman {
    const NAME: &'static str = "ask_human";
    const DESCRIPTION: &'static str = "Asks.";
    type Args = Question;

    async fn run(&self, cx: &ToolContext<'_>, args: Question) -> Result<ToolOutput, ToolError> {
        let answer = cx.interrupt(Interrupt::new(cx.call_id.as_str(), json!({"question": args.question})))?;
        Ok(format!("a human said {answer}").into())
    }
}

fn yes() -> Resume {
    Resume::from_json(json!("yes"))
}

#[tokio::test]
async fn a_hook_that_asks_is_run_again_and_the_ones_before_it_are_not() {
    let world = World::new("after_model");
    let report = world.agent(script([say("done")])).run(ask("go"), &cx()).await;
    assert_eq!(report.outcome.unwrap(), Ended::Paused);
    assert_eq!(report.values.interrupts()[0].value, json!({"may I": "after_model"}));
    // The answer is a step of its own, so that there is a state to ask about.
    let steps = steps(&world.log);
    let told: Vec<_> = steps.iter().map(|step| (step.source, step.next.as_deref())).collect();
    let asked = [(StepSource::Model, Some("after_model")), (StepSource::Pause, Some("after_model"))];
    assert_eq!(told[2..], asked);
    let diary = world.diary();
    assert_eq!(diary[6..8], ["outer.wrap_model", "asker.wrap_model"]);
    assert_eq!(
        diary[9..],
        [
            "inner.after_model",
            "asker.after_model",
            "inner.after_agent paused",
            "asker.after_agent paused",
            "outer.after_agent paused"
        ]
    );

    // The model is not asked again: the script has nothing to say.
    let report = world.agent(script([])).run(yes(), &cx()).await;
    assert_eq!(report.outcome.as_ref().unwrap(), &Ended::Finished);
    assert!(report.values.interrupts().is_empty());
    assert_eq!(report.answer().as_deref(), Some("done"));
    assert_eq!(
        world.diary(),
        [
            "outer.before_agent again",
            "asker.before_agent again",
            "inner.before_agent again",
            "asker.after_model again",
            "heard \"yes\"",
            "outer.after_model again",
            "inner.after_agent again",
            "asker.after_agent again",
            "outer.after_agent again",
        ]
    );
}

#[tokio::test]
async fn every_hook_but_the_last_may_ask() {
    for hook in ["before_agent", "before_model", "wrap_model", "after_model"] {
        let world = World::new(hook);
        let model = script([say("done")]);
        let report = world.agent(model.clone()).run(ask("go"), &cx()).await;
        assert_eq!(report.outcome.unwrap(), Ended::Paused, "{hook}");
        let report = world.agent(model.clone()).run(yes(), &cx()).await;
        assert_eq!(report.outcome.as_ref().unwrap(), &Ended::Finished, "{hook}");
        assert_eq!(
            transcript(&report),
            [("human".into(), "go".into()), ("ai".into(), "done".into())],
            "{hook}"
        );
        assert_eq!(model.calls(), 1, "{hook}");
        assert_eq!(world.diary().iter().filter(|line| *line == "heard \"yes\"").count(), 1, "{hook}");
    }
    let world = World::new("after_agent");
    let report = world.agent(script([say("done")])).run(ask("go"), &cx()).await;
    assert!(matches!(report.outcome, Err(RunError::Hook { .. })));
}

#[tokio::test]
async fn tools_that_ask_are_run_again_alone() {
    let world = World::new("never");
    let batch = calls(&[
        ("c1", "ask_human", json!({"question": "left?"})),
        ("c2", "echo", json!({"say": "once"})),
        ("c3", "ask_human", json!({"question": "right?"})),
    ]);
    let report = world.agent(script([batch])).run(ask("go"), &cx()).await;
    assert_eq!(report.outcome.as_ref().unwrap(), &Ended::Paused);
    let questions: Vec<Value> = report.values.interrupts().iter().map(|i| i.value.clone()).collect();
    assert_eq!(questions, [json!({"question": "left?"}), json!({"question": "right?"})]);
    assert_eq!(transcript(&report).last().unwrap().1, "once");
    let ids: Vec<String> = report.values.interrupts().iter().map(|i| i.id.clone()).collect();

    // One answer for two questions fits neither; the thread still waits.
    let report = world.agent(script([])).run(yes(), &cx()).await;
    assert!(report.outcome.unwrap_err().to_string().contains(&ids[1]));
    // An answer to one of them leaves the other open.
    let right = Resume::from_json(json!({ (ids[1].as_str()): 2 }));
    let report = world.agent(script([])).run(right, &cx()).await;
    assert_eq!(report.outcome.as_ref().unwrap(), &Ended::Paused);
    assert_eq!(report.values.interrupts().len(), 1);
    let report = world.agent(script([say("thanks")])).run(Resume::One(json!(1)), &cx()).await;
    assert_eq!(report.outcome.as_ref().unwrap(), &Ended::Finished);
    let texts: Vec<String> = transcript(&report).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["go", "", "once", "a human said 2", "a human said 1", "thanks"]);
}

#[tokio::test]
async fn an_answer_that_breaks_the_hook_leaves_the_question_open() {
    let world = World::new("after_model");
    world.agent(script([say("done")])).run(ask("go"), &cx()).await.outcome.unwrap();
    let report = world.agent(script([])).run(Resume::One(json!("nonsense")), &cx()).await;
    assert!(report.outcome.is_err());
    assert_eq!(report.values.interrupts().len(), 1);
    let report = world.agent(script([])).run(yes(), &cx()).await;
    assert_eq!(report.outcome.unwrap(), Ended::Finished);
}

#[tokio::test]
async fn new_words_close_an_open_question() {
    let world = World::new("after_model");
    world.agent(script([say("one")])).run(ask("go"), &cx()).await.outcome.unwrap();
    let report = world.agent(script([say("two")])).run(ask("forget it"), &cx()).await;
    assert_eq!(report.outcome.unwrap(), Ended::Paused);
    assert_eq!(
        transcript_texts(&world.agent(script([])).load(&"t1".into()).await.unwrap()),
        ["go", "one", "forget it", "two"]
    );

    let world = World::new("never");
    let report = world.agent(script([])).run(yes(), &cx()).await;
    assert!(report.outcome.unwrap_err().to_string().contains("nothing in this thread waits"));
}

/// A hook has asked about a call. What is written meanwhile, and what is said beside the answer, comes behind the call's
/// result, also where the run that was answered is cut off before it makes the call.
#[tokio::test]
async fn words_beside_a_hooks_question_wait_for_the_call_and_outlive_a_crash() {
    let world = World::new("after_model");
    let call = calls(&[("c1", "echo", json!({"say": "hi"}))]);
    world.agent(script([call])).run(ask("go"), &cx()).await.outcome.unwrap();
    let said =
        |text: &str| json!({"messages": [{"type": "human", "content": text}]}).as_object().unwrap().clone();
    let reached = world.agent(script([])).update(said("written"), None, &cx()).await.unwrap();
    assert_eq!((reached.next.as_deref(), reached.values.interrupts().len()), (Some("after_model"), 1));
    assert_eq!(transcript_texts(reached.values.state()), ["go", "", "written"]);
    let answer = || {
        let update = world.agent(script([])).input(said("said")).unwrap();
        RunInput::Answer { resume: yes(), update }
    };
    let mut answers = cx();
    answers.run_id = "answers".into();
    let whole = world.agent(script([say("done")])).run(answer(), &answers).await;
    let expected = ["go", "", "hi", "written", "said", "done"];
    assert_eq!(transcript_texts(whole.state()), expected);

    let mut steps = world.log.0.lock().unwrap()["t1"].clone();
    let judged =
        steps.iter().position(|step| step.run_id == answers.run_id && step.source == StepSource::Model);
    steps.truncate(judged.unwrap() + 1);
    world.log.0.lock().unwrap().insert("t1".into(), steps);
    let told = world.agent(script([])).load(&"t1".into()).await.unwrap();
    let shown = world.agent(script([])).snapshot(told);
    assert_eq!(transcript_texts(shown.state()), ["go", "", "written", "said"]);
    answers.attempt = 2;
    let again = world.agent(script([say("done")])).run(answer(), &answers).await;
    assert_eq!(transcript_texts(again.state()), expected);
}

fn transcript_texts(state: &State) -> Vec<String> {
    state.messages().iter().map(|message| message.text()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_never_returns_fails_the_run_and_all_are_left() {
    struct Stuck;
    #[async_trait]
    impl Middleware for Stuck {
        async fn before_model(&self, _: &RunContext, _: &State) -> HookResult {
            std::future::pending().await
        }
    }
    let diary: Arc<Mutex<Vec<String>>> = Arc::default();
    let outer = Asker { name: "outer", asks_in: None, diary: Arc::clone(&diary) };
    let agent =
        Agent::builder(script([])).middleware(vec![Arc::new(outer), Arc::new(Stuck)]).build().unwrap();
    let error = agent.run(ask("go"), &cx()).await.outcome.unwrap_err();
    assert!(error.to_string().contains("`Stuck` in BeforeModel"), "{error}");
    assert_eq!(diary.lock().unwrap().last().unwrap(), "outer.after_agent");
}

/// Asks about every call of an answer at once, then answers them itself.
struct AnswersForTools;

#[async_trait]
impl Middleware for AnswersForTools {
    async fn after_model(&self, cx: &RunContext, state: &State) -> HookResult {
        let Some(last) = state.messages().last() else { return Ok(Command::none()) };
        let questions: Vec<_> = last
            .tool_calls()
            .iter()
            .map(|call| Interrupt::new(call.id.as_ref().unwrap().as_str(), json!(cx.tool_name(&call.name))))
            .collect();
        let answers = cx.interrupt_all(questions)?;
        let results: Vec<_> = last
            .tool_calls()
            .iter()
            .zip(answers)
            .map(|(call, answer)| {
                let id = call.id.as_ref().unwrap();
                hart_types::Message::tool(id, &call.name, hart_types::ToolStatus::Success, answer.to_string())
            })
            .collect();
        Ok(Update::none().messages(MessageWrites::append(results)).into())
    }
}

#[tokio::test]
async fn several_questions_of_one_hook_are_answered_one_by_one() {
    let world = World::new("never");
    let agent = |model: Arc<dyn ChatModel>| {
        let outer = Asker { name: "outer", asks_in: None, diary: Arc::clone(&world.diary) };
        Agent::builder(model)
            .middleware(vec![Arc::new(outer), Arc::new(AnswersForTools)])
            .tools([Arc::new(Typed::new(Echo)) as Arc<dyn Tool>])
            .checkpointer(world.log.clone())
            .build()
            .unwrap()
    };
    let two = calls(&[("c1", "echo", json!({"text": "a"})), ("c2", "echo", json!({"text": "b"}))]);
    let report = agent(script([two])).run(ask("go"), &cx()).await;
    let asked = report.values.interrupts().to_vec();
    assert_eq!(asked.len(), 2);

    let second = Resume::from_json(json!({ (asked[1].id.as_str()): "two" }));
    let report = agent(script([])).run(second, &cx()).await;
    assert_eq!(report.outcome.unwrap(), Ended::Paused);
    assert_eq!(report.values.interrupts(), &asked[..1], "the other one is still open");

    world.diary();
    let model = script([say("done")]);
    let report = agent(model.clone()).run(Resume::from_json(json!("one")), &cx()).await;
    assert_eq!(report.answer().as_deref(), Some("done"), "the model hears what the hook answered");
    assert_eq!(model.calls(), 1);
    let texts = transcript_texts(report.state());
    assert_eq!(texts[2..], ["\"one\"", "\"two\"", "done"]);
    let after: Vec<_> = world.diary().into_iter().filter(|line| line.contains("after_model")).collect();
    assert_eq!(after.len(), 2, "the hooks further out had their turn each time: {after:?}");
}
