//! Forks, breakpoints, and runs that go on without a word.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

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
        // An answer after which there is nothing to do is no place to stop.
        (none(), Nodes::Named(vec!["model".into()]), 1, vec!["go", ""]),
        (none(), all(), 2, vec!["go", ""]),
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
            let next = steps(&log).last().unwrap().next.clone().unwrap();
            assert!(["model", "tools"].contains(&&*next), "clients know no {next}");
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

/// Whoever speaks last, a thread that has nothing ahead stays as it is.
#[tokio::test]
async fn a_thread_at_rest_is_not_taken_up_again() {
    let log = Arc::default();
    let report = agent(script([echo("end")]), &log).run(ask("go"), &cx()).await;
    assert_eq!(texts(&report), ["go", "", "bye"]);
    assert_eq!(steps(&log).last().unwrap().next, None);
    let report = agent(script([say("not asked for")]), &log).run(RunInput::Continue, &cx()).await;
    assert_eq!(report.outcome.as_ref().unwrap(), &Ended::Finished);
    assert_eq!(texts(&report), ["go", "", "bye"]);
}

/// A hook that decides on calls has its say before they are made, also where it failed at the first try.
#[tokio::test]
async fn calls_that_nobody_has_looked_at_yet_are_looked_at() {
    #[derive(Default)]
    struct Looks(AtomicU32);
    #[async_trait]
    impl Middleware for Looks {
        async fn after_model(&self, _: &RunContext, state: &State) -> HookResult {
            match (state.messages().len(), self.0.fetch_add(1, Ordering::Relaxed)) {
                (2, 0) => Err(HookError::Other("cannot look now".into())),
                _ => Ok(Command::none()),
            }
        }
    }
    let (log, looks) = (Arc::<MemoryLog>::default(), Arc::<Looks>::default());
    let echoes: Arc<dyn Tool> = Arc::new(Typed::new(Echo));
    let agent = |model| {
        let builder = Agent::builder(model).tools([echoes.clone()]).middleware(vec![looks.clone()]);
        builder.checkpointer(log.clone()).build().unwrap()
    };
    agent(script([echo("hi")])).run(ask("go"), &cx()).await.outcome.unwrap_err();
    assert_eq!(steps(&log).last().unwrap().next.as_deref(), Some("after_model"));
    let report = agent(script([say("done")])).run(RunInput::Continue, &cx()).await;
    assert_eq!(texts(&report), ["go", "", "hi", "done"]);
    assert_eq!(looks.0.load(Ordering::Relaxed), 3, "the failed look, another one, and one at the answer");
}

#[tokio::test]
async fn what_a_client_writes_leaves_ahead_what_was_ahead() {
    let said = |text: &str| json!({"messages": [{"type": "human", "content": text}]});
    let failing = || Script::of([Err(ModelError::new(ModelErrorKind::BadRequest, "m", "no"))]);
    let nothing = json!({});
    for (before, values, as_node, expected) in [
        ("nothing", said("hello"), None, Some("model")),
        ("an answer", said("hello"), None, None),
        ("an answer", said("hello"), Some("__start__"), Some("model")),
        ("a failure", nothing.clone(), None, Some("model")),
        ("a failure", said("hello"), None, Some("model")),
        ("a failure", nothing.clone(), Some("__end__"), None),
        ("calls", nothing, None, Some("tools")),
        ("calls", said("and quickly"), None, Some("tools")),
        ("calls", said("not that, rather this"), Some("__start__"), Some("model")),
        (
            "calls",
            json!({"messages": [{"type": "tool", "content": "by hand", "tool_call_id": "c1"}]}),
            None,
            Some("model"),
        ),
    ] {
        let log = Arc::default();
        let mut stops = cx();
        stops.breakpoints.after = Nodes::Named(vec!["model".into()]);
        match before {
            "nothing" => None,
            "an answer" => Some(agent(script([say("hi")]), &log).run(ask("go"), &stops).await),
            "calls" => Some(agent(script([echo("hi")]), &log).run(ask("go"), &stops).await),
            _ => Some(agent(failing(), &log).run(ask("go"), &stops).await),
        };
        let values = values.as_object().unwrap().clone();
        let reached = agent(script([]), &log).update(values, as_node, &cx()).await.unwrap();
        assert_eq!(reached.next.as_deref(), expected, "behind {before}, as {as_node:?}");
    }
}
