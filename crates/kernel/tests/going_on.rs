//! Forks, breakpoints, and runs that go on without a word.

use std::sync::Arc;

use hart_kernel::*;
use serde_json::json;

use crate::support::*;

fn agent(model: Arc<dyn ChatModel>, log: &Arc<MemoryLog>) -> Agent {
    let echo: Arc<dyn Tool> = Arc::new(Typed::new(Echo));
    Agent::builder(model).tools([echo]).checkpointer(log.clone()).build().unwrap()
}

fn echo(text: &str) -> hart_types::Message {
    calls(&[("c1", "echo", json!({"say": text}))])
}

fn steps(log: &MemoryLog) -> Vec<Step> {
    log.0.lock().unwrap()["t1"].clone()
}

fn texts(report: &RunReport) -> Vec<String> {
    transcript(report).into_iter().map(|(_, text)| text).collect()
}

#[tokio::test]
async fn steps_follow_one_another_and_say_what_comes_next() {
    let log = Arc::default();
    agent(script([echo("hi"), say("done")]), &log).run(ask("go"), &cx()).await.outcome.unwrap();
    let steps = steps(&log);
    let next: Vec<_> = steps.iter().map(|step| step.next.as_deref()).collect();
    assert_eq!(next, [Some("__start__"), Some("model"), Some("tools"), Some("model"), None]);
    assert_eq!(steps[0].parent, None);
    for pair in steps.windows(2) {
        assert_eq!(pair[1].parent.as_ref(), Some(&pair[0].id));
        assert!(pair[0].id < pair[1].id, "ids sort by time");
    }
}

#[tokio::test]
async fn a_run_from_an_earlier_step_makes_a_branch() {
    let log = Arc::default();
    agent(script([say("one")]), &log).run(ask("first"), &cx()).await.outcome.unwrap();
    let fork = steps(&log)[2].id.clone();
    agent(script([say("two")]), &log).run(ask("second"), &cx()).await.outcome.unwrap();
    let mut other = cx();
    other.from = Some(fork.clone());
    let report = agent(script([say("three")]), &log).run(ask("instead"), &other).await;
    assert_eq!(texts(&report), ["first", "one", "instead", "three"]);
    assert_eq!(steps(&log)[6].parent, Some(fork));
}

#[tokio::test]
async fn a_breakpoint_stops_and_continue_goes_on() {
    let all = || Nodes::All;
    let tools = || Nodes::Named(vec!["tools".into()]);
    let none = Nodes::default;
    for (before, after, stops, expected) in [
        (tools(), none(), 1, vec!["go", ""]),
        (none(), tools(), 1, vec!["go", "", "hi"]),
        (all(), none(), 3, vec!["go"]),
        (Nodes::Named(vec!["elsewhere".into()]), none(), 0, vec!["go", "", "hi", "done"]),
    ] {
        let log = Arc::default();
        let model = script([echo("hi"), say("done")]);
        let stopping = || {
            let mut cx = cx();
            cx.breakpoints = Breakpoints { before: before.clone(), after: after.clone() };
            cx
        };
        let mut report = agent(model.clone(), &log).run(ask("go"), &stopping()).await;
        assert_eq!(texts(&report), expected, "{before:?} {after:?}");
        let mut stopped = 0;
        while report.outcome.as_ref().unwrap() == &Ended::Paused {
            stopped += 1;
            report = agent(model.clone(), &log).run(RunInput::Continue, &stopping()).await;
        }
        assert_eq!(stopped, stops, "{before:?} {after:?}");
        assert_eq!(texts(&report), ["go", "", "hi", "done"]);
    }
}

/// The log up to each step, as a crash right after it would leave it.
#[tokio::test]
async fn a_run_cut_off_after_any_step_can_be_continued() {
    let whole: Arc<MemoryLog> = Arc::default();
    agent(script([echo("hi"), say("done")]), &whole).run(ask("go"), &cx()).await.outcome.unwrap();
    let all = steps(&whole);
    for kept in 2..=all.len() {
        let log: Arc<MemoryLog> = Arc::default();
        log.0.lock().unwrap().insert("t1".into(), all[..kept].to_vec());
        let answers = [echo("hi"), say("done")].into_iter().skip((kept - 1) / 2);
        let report = agent(script(answers), &log).run(RunInput::Continue, &cx()).await;
        assert_eq!(report.outcome.as_ref().unwrap(), &Ended::Finished);
        assert_eq!(texts(&report), ["go", "", "hi", "done"], "cut after {kept} steps");
    }
}
