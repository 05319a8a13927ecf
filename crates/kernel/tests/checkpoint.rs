//! The log of steps: what is in it, and that a thread is the fold of it.

use std::sync::Arc;

use hart_kernel::*;
use hart_types::{CheckpointId, Message, ThreadId};
use serde_json::json;

use crate::support::*;

fn agent(answers: impl IntoIterator<Item = Message>, log: &Arc<MemoryLog>) -> Agent {
    let builder = Agent::builder(script(answers)).tools([Typed::shared(Echo)]);
    builder.checkpointer(log.clone()).build().unwrap()
}

#[tokio::test]
async fn one_step_per_model_call_and_per_batch() {
    let log = Arc::new(MemoryLog::default());
    let agent = agent([calls(&[("1", "echo", json!({"say": "x"}))]), say("done")], &log);
    agent.run(ask("q"), &cx()).await.outcome.unwrap();
    let log = log.0.lock().unwrap();
    let sources: Vec<_> = log[&ThreadId::from("t1")].iter().map(|step| step.source).collect();
    use StepSource::*;
    assert_eq!(sources, [Start, Input, Model, Tools, Model]);
}

/// Whoever looks at the thread later must not think that it waits.
#[tokio::test]
async fn a_run_that_a_hook_ends_without_a_word_leaves_a_last_step() {
    struct Ends;
    #[async_trait]
    impl Middleware for Ends {
        async fn before_model(&self, _: &RunContext, _: &State) -> HookResult {
            Ok(Command::none().goto(Goto::End))
        }
    }
    let log = Arc::new(MemoryLog::default());
    let ends: Arc<dyn Middleware> = Arc::new(Ends);
    let agent = Agent::builder(script([])).middleware(vec![ends]).checkpointer(log.clone()).build().unwrap();
    agent.run(ask("q"), &cx()).await.outcome.unwrap();
    let log = log.0.lock().unwrap();
    let steps = &log[&ThreadId::from("t1")];
    let ways: Vec<_> = steps.iter().map(|step| (step.source, step.next.as_deref())).collect();
    use StepSource::*;
    assert_eq!(ways, [(Start, Some("__start__")), (Input, Some("model")), (End, None)]);
}

#[tokio::test]
async fn the_next_run_sees_the_thread() {
    let log = Arc::new(MemoryLog::default());
    agent([say("one")], &log).run(ask("first"), &cx()).await.outcome.unwrap();
    let report = agent([say("two")], &log).run(ask("second"), &cx()).await;
    let texts: Vec<_> = transcript(&report).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["first", "one", "second", "two"]);
}

#[tokio::test]
async fn a_step_does_not_grow_with_the_thread() {
    let log = Arc::new(MemoryLog::default());
    for _ in 0..20 {
        agent([say("a")], &log).run(ask("q"), &cx()).await.outcome.unwrap();
    }
    let log = log.0.lock().unwrap();
    let size = |step: &Step| serde_json::to_string(step).unwrap().len();
    let steps = &log[&ThreadId::from("t1")];
    assert!(size(steps.last().unwrap()) <= size(&steps[2]) + 16);
}

#[tokio::test]
async fn a_log_that_cannot_be_written_fails_the_run() {
    struct Full;
    #[async_trait]
    impl Checkpointer for Full {
        async fn append(&self, _: &ThreadId, _: Arc<[Step]>) -> Result<(), CheckpointError> {
            Err(CheckpointError { message: "disk full".into(), source: None })
        }
        async fn load(&self, _: &ThreadId, _: Option<&CheckpointId>) -> Result<Vec<Step>, CheckpointError> {
            Ok(Vec::new())
        }
    }
    let model = script([]);
    let agent = Agent::builder(model.clone()).checkpointer(Arc::new(Full)).build().unwrap();
    let report = agent.run(ask("q"), &cx()).await;
    assert!(matches!(report.outcome, Err(RunError::Checkpoint(_))));
    assert_eq!(model.calls(), 0, "the model was asked although the question was not saved");
}

#[tokio::test]
async fn what_could_not_be_saved_is_tried_again_at_the_end() {
    /// Fails once, on the third call.
    #[derive(Default)]
    struct Hiccup(MemoryLog, std::sync::atomic::AtomicU32);
    #[async_trait]
    impl Checkpointer for Hiccup {
        async fn append(&self, thread: &ThreadId, steps: Arc<[Step]>) -> Result<(), CheckpointError> {
            if self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 2 {
                return Err(CheckpointError { message: "disk full".into(), source: None });
            }
            self.0.append(thread, steps).await
        }
        async fn load(
            &self,
            thread: &ThreadId,
            at: Option<&CheckpointId>,
        ) -> Result<Vec<Step>, CheckpointError> {
            self.0.load(thread, at).await
        }
    }
    let log = Arc::new(Hiccup::default());
    let model = script([calls(&[("1", "echo", json!({"say": "x"}))])]);
    let agent = Agent::builder(model).tools([Typed::shared(Echo)]).checkpointer(log.clone()).build().unwrap();
    let report = agent.run(ask("q"), &cx()).await;
    assert!(matches!(report.outcome, Err(RunError::Checkpoint(_))));
    let stored = agent.load(&ThreadId::from("t1")).await.unwrap();
    assert_eq!(stored.messages(), report.state().messages());
}
