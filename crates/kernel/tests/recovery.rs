//! A run that is cut off behind any of its steps ends as if it had not been.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hart_kernel::*;
use hart_types::{Body, CheckpointId, Message, ThreadId};
use serde_json::json;

use crate::support::*;

struct AskHuman;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[async_trait]
impl TypedTool for AskHuman {
    const NAME: &'static str = "ask";
    const DESCRIPTION: &'static str = "Asks.";
    type Args = Nothing;

    async fn run(&self, cx: &ToolContext<'_>, _: Nothing) -> Result<ToolOutput, ToolError> {
        let answer = cx.interrupt(Interrupt::new(cx.call_id.as_str(), "May I?"))?;
        Ok(format!("answered {answer}").into())
    }
}

fn agent(model: Arc<dyn ChatModel>, log: &Arc<MemoryLog>) -> Agent {
    let tools: [Arc<dyn Tool>; 2] = [Typed::shared(Echo), Typed::shared(AskHuman)];
    Agent::builder(model).tools(tools).checkpointer(log.clone()).build().unwrap()
}

/// The log of a thread that was cut off.
fn log_of(steps: &[Step]) -> Arc<MemoryLog> {
    let log = MemoryLog::default();
    log.0.lock().unwrap().insert("t1".into(), steps.to_vec());
    Arc::new(log)
}

fn messages(report: &RunReport) -> Vec<Message> {
    report.state().messages().iter().map(|message| Message::clone(message)).collect()
}

/// The answers a model has not given yet when these steps are in the log.
fn rest(answers: &[Message], steps: &[Step]) -> Arc<Script> {
    let given = steps.iter().filter(|step| step.source == StepSource::Model).count();
    script(answers.iter().skip(given).cloned())
}

type Report = (Vec<Message>, Ended);

/// Runs `input` on what `before` left, whole and then cut off behind every step; all must end alike.
async fn cut_everywhere(
    before: &[Step],
    answers: &[Message],
    input: impl Fn() -> RunInput,
    breakpoints: Breakpoints,
) -> (Report, Vec<Step>) {
    let context = |attempt| {
        let mut cx = cx();
        (cx.run_id, cx.attempt, cx.breakpoints) = ("the-run".into(), attempt, breakpoints.clone());
        cx.late_answers = true;
        cx
    };
    let log = log_of(before);
    let whole = agent(rest(answers, before), &log).run(input(), &context(1)).await;
    let whole = (messages(&whole), whole.outcome.unwrap());
    let all = steps(&log);
    for length in before.len()..=all.len() {
        // The state before the input is written together with the input.
        if all.get(length.wrapping_sub(1)).is_some_and(|step| step.source == StepSource::Start) {
            continue;
        }
        let (kept, model) = (log_of(&all[..length]), rest(answers, &all[..length]));
        let report = agent(model, &kept).run(input(), &context(2)).await;
        let mut report = (messages(&report), report.outcome.unwrap());
        let mut expected = whole.clone();
        let had = agent(script([]), &kept).fold(all[..length].to_vec()).messages().len();
        if length > before.len() && had < expected.0.len() {
            assert_eq!(report.0[had].id, expected.0[had].id, "what is made again has the id it had");
        }
        // What follows a step that was made again is new.
        for message in report.0.iter_mut().chain(&mut expected.0) {
            message.id = None;
        }
        assert_eq!(report, expected, "cut off behind {length} of {} steps", all.len());
    }
    (whole, all)
}

fn words() -> RunInput {
    ask("go").into()
}

#[tokio::test]
async fn a_run_with_tools_is_cut_off_anywhere() {
    let answers = [
        calls(&[("c1", "echo", json!({"say": "one"})), ("c2", "echo", json!({"say": "two"}))]),
        calls(&[("c3", "echo", json!({"say": "fail"}))]),
        say("done"),
    ];
    let ((messages, ended), _) = cut_everywhere(&[], &answers, words, Breakpoints::default()).await;
    assert_eq!((messages.len(), ended), (7, Ended::Finished));
}

#[tokio::test]
async fn a_jump_to_the_end_stays_one() {
    let answers = [calls(&[("c1", "echo", json!({"say": "end"}))]), say("never said")];
    let ((messages, _), _) = cut_everywhere(&[], &answers, words, Breakpoints::default()).await;
    assert!(matches!(messages.last().unwrap().body, Body::Tool(_)));
}

#[tokio::test]
async fn a_question_is_asked_again_and_its_answer_used_once() {
    let answers =
        [calls(&[("c1", "ask", json!({})), ("c2", "echo", json!({"say": "meanwhile"}))]), say("thank you")];
    let ((_, ended), asked) = cut_everywhere(&[], &answers, words, Breakpoints::default()).await;
    assert_eq!(ended, Ended::Paused);
    let asked: Vec<Step> =
        asked.into_iter().map(|step| Step { run_id: "an-earlier-run".into(), ..step }).collect();
    for update in [Update::none(), ask("and this")] {
        let writes = update.to_writes();
        let answer = || RunInput::Answer {
            resume: Resume::One(json!("yes")),
            update: match writes.is_empty() {
                true => Update::none(),
                false => ask("and this"),
            },
        };
        let before = asked.clone();
        let log = log_of(&before);
        let report = agent(rest(&answers, &before), &log).run(answer(), &cx()).await;
        assert_eq!(report.outcome.unwrap(), Ended::Finished);
    }
    let answer = || RunInput::from(Resume::One(json!("yes")));
    let ((messages, ended), _) = cut_everywhere(&asked, &answers, answer, Breakpoints::default()).await;
    assert_eq!((messages.last().unwrap().text().as_str(), ended), ("thank you", Ended::Finished));
}

#[tokio::test]
async fn a_breakpoint_stops_whoever_comes_back_too() {
    let breakpoints = Breakpoints { before: Nodes::Named(vec!["tools".into()]), after: Nodes::default() };
    let answers = [calls(&[("c1", "echo", json!({"say": "one"}))]), say("done")];
    let ((messages, ended), _) = cut_everywhere(&[], &answers, words, breakpoints).await;
    assert_eq!((messages.len(), ended), (2, Ended::Paused));
}

/// It is for nobody; the calls are made, and who asks then asks.
#[tokio::test]
async fn an_answer_at_a_breakpoint_is_used_by_nobody() {
    let breakpoints = Breakpoints { before: Nodes::Named(vec!["tools".into()]), after: Nodes::default() };
    let answers = [calls(&[("c1", "ask", json!({})), ("c2", "echo", json!({"say": "meanwhile"}))])];
    let (_, stopped) = cut_everywhere(&[], &answers, words, breakpoints).await;
    let stopped: Vec<Step> =
        stopped.into_iter().map(|step| Step { run_id: "an-earlier-run".into(), ..step }).collect();
    let answer = || RunInput::from(Resume::One(json!("yes")));
    let ((messages, ended), _) = cut_everywhere(&stopped, &answers, answer, Breakpoints::default()).await;
    assert_eq!((messages.len(), ended), (3, Ended::Paused));
}

/// Steps that another run made are not this one's to go on from.
#[tokio::test]
async fn a_second_attempt_that_finds_nothing_of_the_first_begins_anew() {
    let log = Arc::default();
    agent(script([say("one")]), &log).run(ask("first"), &cx()).await.outcome.unwrap();
    let mut again = cx();
    again.attempt = 2;
    let report = agent(script([say("two")]), &log).run(ask("second"), &again).await;
    let texts: Vec<_> = transcript(&report).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["first", "one", "second", "two"]);
}

/// A log that does not take the first answer of a model where it is made.
#[derive(Default)]
struct Broken {
    log: Arc<MemoryLog>,
    failed: AtomicBool,
}

#[async_trait]
impl Checkpointer for Broken {
    async fn append(&self, thread: &ThreadId, steps: Arc<[Step]>) -> Result<(), CheckpointError> {
        let is_answer = steps.iter().any(|step| step.source == StepSource::Model);
        if is_answer && !self.failed.swap(true, Ordering::SeqCst) {
            return Err(CheckpointError { message: "the disk failed".to_owned(), source: None });
        }
        self.log.append(thread, steps).await
    }

    async fn load(&self, thread: &ThreadId, at: Option<&CheckpointId>) -> Result<Vec<Step>, CheckpointError> {
        self.log.load(thread, at).await
    }
}

/// It ended by that, and died before anybody was told: whoever comes next makes the calls that the answer asks for.
#[tokio::test]
async fn calls_of_an_answer_that_was_hard_to_write_are_made_by_the_next_attempt() {
    let broken = Arc::new(Broken::default());
    let agent = |answers: [Message; 1]| {
        let checkpointer = Arc::clone(&broken) as Arc<dyn Checkpointer>;
        Agent::builder(script(answers))
            .tools([Typed::shared(Echo)])
            .checkpointer(checkpointer)
            .build()
            .unwrap()
    };
    let once = cx();
    let first = agent([calls(&[("c1", "echo", json!({"say": "one"}))])]).run(words(), &once).await;
    assert!(matches!(first.outcome, Err(RunError::Checkpoint(_))), "{:?}", first.outcome);
    assert_eq!(steps(&broken.log).last().unwrap().next.as_deref(), Some("after_model"));

    let mut again = cx();
    (again.run_id, again.attempt) = (once.run_id.clone(), 2);
    let report = agent([say("done")]).run(words(), &again).await;
    assert_eq!(*report.outcome.as_ref().unwrap(), Ended::Finished);
    let kinds: Vec<_> = messages(&report).iter().map(|message| message.kind().to_owned()).collect();
    assert_eq!(kinds, ["human", "ai", "tool", "ai"]);
}
