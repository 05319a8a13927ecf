//! An agent inside a call of another: apart in what it knows, together in what it may use, and never lost.

use std::sync::Arc;

use hart_kernel::*;
use hart_types::{Message, Resume};
use serde_json::json;

use crate::support::*;

/// Hands its question to another agent.
struct Delegate(Agent, Limits);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Question {
    question: String,
}

#[async_trait]
impl TypedTool for Delegate {
    const NAME: &'static str = "delegate";
    const DESCRIPTION: &'static str = "Asks another.";
    const EFFECT: Effect = Effect::Idempotent;
    type Args = Question;

    async fn run(&self, cx: &ToolContext<'_>, args: Question) -> Result<ToolOutput, ToolError> {
        let child =
            Child::enter(cx, &self.0, &self.1).await.map_err(|error| ToolError::Failed(error.to_string()))?;
        let report = child.run(ask(&args.question)).await;
        match (report.outcome, report.values.interrupts()) {
            (Ok(Ended::Paused), questions) => Err(ToolError::Interrupts(questions.to_vec())),
            (Ok(_), _) => Ok(report.values.messages().last().unwrap().text().into()),
            (Err(error), _) => Err(ToolError::Failed(error.to_string())),
        }
    }
}

/// Asks a person before it answers.
struct Consult;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[async_trait]
impl TypedTool for Consult {
    const NAME: &'static str = "consult";
    const DESCRIPTION: &'static str = "Asks.";
    type Args = Nothing;

    async fn run(&self, cx: &ToolContext<'_>, _: Nothing) -> Result<ToolOutput, ToolError> {
        let answer = cx.interrupt(Interrupt::new(cx.call_id.as_str(), "May I?"))?;
        Ok(format!("was told {answer}").into())
    }
}

fn child(model: Arc<dyn ChatModel>) -> Agent {
    let tools: [Arc<dyn Tool>; 2] = [Typed::shared(Echo), Typed::shared(Consult)];
    Agent::builder(model).name("helper").tools(tools).build().unwrap()
}

fn parent(model: Arc<dyn ChatModel>, child: Agent, log: &Arc<MemoryLog>) -> Agent {
    let tools: [Arc<dyn Tool>; 2] = [Typed::shared(Delegate(child, Limits::default())), Typed::shared(Echo)];
    Agent::builder(model).tools(tools).checkpointer(log.clone()).build().unwrap()
}

fn run(id: &str, attempt: u32) -> RunContext {
    let mut cx = cx();
    (cx.run_id, cx.attempt) = (id.into(), attempt);
    cx
}

fn delegated(questions: &[&str]) -> Message {
    let list: Vec<_> = questions.iter().map(|q| (*q, "delegate", json!({"question": q}))).collect();
    calls(&list)
}

#[tokio::test]
async fn a_child_knows_its_task_alone_and_leaves_its_result_alone() {
    let log = Arc::new(MemoryLog::default());
    let inner = script([calls(&[("e", "echo", json!({"say": "inside"}))]), say("the answer")]);
    let outer = script([delegated(&["what?"]), say("done")]);
    let ears = Arc::new(Ears::default());
    let cx = run("r", 1).with_events(ears.clone());
    let report = parent(outer.clone(), child(inner.clone()), &log).run(ask("secret plans"), &cx).await;
    report.outcome.as_ref().unwrap();
    let said: Vec<String> = transcript(&report).into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["secret plans", "", "the answer", "done"]);
    let seen = &inner.requests.lock().unwrap()[1];
    let seen: Vec<String> = seen.messages.iter().map(|message| message.text()).collect();
    assert_eq!(seen, ["what?", "", "inside"]);

    let heard = ears.0.lock().unwrap();
    let inside = heard.iter().filter_map(|event| match event {
        AgentEvent::Child { call_id, agent, event } => {
            assert_eq!((call_id.as_str(), agent.as_ref()), ("what?", "helper"));
            Some(event)
        }
        _ => None,
    });
    let answers =
        inside.filter(|event| matches!(event.as_ref(), AgentEvent::Message(m) if m.text() == "the answer"));
    assert_eq!(answers.count(), 1);
    let own = heard.iter().any(|event| matches!(event, AgentEvent::Message(m) if m.text() == "inside"));
    assert!(!own, "what is said inside is told as said inside");
}

#[tokio::test]
async fn a_question_inside_pauses_the_run_and_the_answer_goes_in() {
    let log = Arc::new(MemoryLog::default());
    let asks = calls(&[("c", "consult", json!({}))]);
    let inner = script([asks, say("quick"), say("with the answer")]);
    let outer = script([delegated(&["slow", "fast"]), say("done")]);
    let agent = parent(outer, child(inner.clone()), &log);
    let report = agent.run(ask("go"), &run("r1", 1)).await;
    assert_eq!(report.outcome.unwrap(), Ended::Paused);
    let [question] = report.values.interrupts() else { panic!("one question") };
    let id = question.id.clone();

    // Another run answers; the child that had finished is not asked again, the other goes on where it was.
    let resume = Resume::ById([(id, json!("yes"))].into());
    let report = agent.run(resume, &run("r2", 1)).await;
    assert_eq!(report.outcome.as_ref().unwrap(), &Ended::Finished);
    assert_eq!(inner.calls(), 3);
    let seen = inner.requests.lock().unwrap().last().unwrap().messages.last().unwrap().text();
    assert_eq!(seen, r#"was told "yes""#);
    let said: Vec<String> = transcript(&report).into_iter().map(|(_, text)| text).collect();
    assert_eq!(said.last().unwrap(), "done");
    assert!(said.contains(&"with the answer".to_owned()), "{said:?}");
}

#[tokio::test]
async fn an_answer_to_another_child_leaves_the_question_open() {
    let log = Arc::new(MemoryLog::default());
    let asks = || calls(&[("c", "consult", json!({}))]);
    let inner = script([asks(), asks(), say("first"), say("second")]);
    let agent = parent(script([delegated(&["a", "b"]), say("done")]), child(inner.clone()), &log);
    let report = agent.run(ask("go"), &run("r1", 1)).await;
    let ids: Vec<String> = report.values.interrupts().iter().map(|question| question.id.clone()).collect();
    assert_eq!(ids.len(), 2);
    let one = |id: &String| Resume::ById([(id.clone(), json!(1))].into());
    let report = agent.run(one(&ids[1]), &run("r2", 1)).await;
    assert_eq!(report.outcome.as_ref().unwrap(), &Ended::Paused);
    assert_eq!(report.values.interrupts()[0].id, ids[0]);
    let report = agent.run(one(&ids[0]), &run("r3", 1)).await;
    assert_eq!(report.outcome.unwrap(), Ended::Finished);
    assert_eq!(inner.calls(), 4);
}

#[tokio::test]
async fn a_child_that_was_cut_off_goes_on_behind_its_last_step() {
    let log = Arc::new(MemoryLog::default());
    let inner = || [calls(&[("e", "echo", json!({"say": "inside"}))]), say("the answer")];
    let outer = || [delegated(&["what?"]), say("done")];
    parent(script(outer()), child(script(inner())), &log).run(ask("go"), &run("r", 1)).await.outcome.unwrap();
    let all = log.0.lock().unwrap().clone();
    let own = all["t1"].clone();
    let (name, inside) = all.iter().find(|(name, _)| name.as_str() != "t1").unwrap();
    let asked = own.iter().position(|step| step.source == StepSource::Model).unwrap() + 1;
    for length in 0..=inside.len() {
        let kept = Arc::new(MemoryLog::default());
        kept.0.lock().unwrap().insert("t1".into(), own[..asked].to_vec());
        kept.0.lock().unwrap().insert(name.clone(), inside[..length].to_vec());
        let given = inside[..length].iter().filter(|step| step.source == StepSource::Model).count();
        if inside[..length].last().is_some_and(|step| step.source == StepSource::Start) {
            continue;
        }
        let model = script(inner().into_iter().skip(given));
        let agent = parent(script(outer().into_iter().skip(1)), child(model.clone()), &kept);
        let report = agent.run(ask("go"), &run("r", 2)).await;
        assert_eq!(report.outcome.as_ref().unwrap(), &Ended::Finished, "cut off behind {length}");
        assert_eq!(model.calls(), 2 - given, "cut off behind {length}");
        assert!(transcript(&report).iter().any(|(_, text)| text == "the answer"), "cut off behind {length}");
    }
}

#[tokio::test]
async fn a_child_uses_up_what_its_parent_has_and_ends_with_it() {
    let log = Arc::new(MemoryLog::default());
    let limits = Limits { children: Some(1), ..Limits::default() };
    let cx = run("r", 1).with_budget(Budget::new(&limits));
    let outer = script([delegated(&["a"]), delegated(&["b"]), say("done")]);
    let report = parent(outer, child(script([say("first")])), &log).run(ask("go"), &cx).await;
    let said: Vec<String> = transcript(&report).into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["go", "", "first", "", "Error: 1 of 1 children are used", "done"]);

    let cx = run("r2", 1);
    cx.cancel.cancel();
    let inner = script([]);
    let child = child(inner.clone());
    let state = State::default();
    let call = "c".into();
    let tool = ToolContext { run: &cx, state: &state, call_id: &call, effect: None };
    let entered = Child::enter(&tool, &child, &Limits::default()).await.unwrap();
    assert!(matches!(entered.run(ask("hello?")).await.outcome, Err(RunError::Cancelled)));
    assert_eq!(inner.calls(), 0);
}
