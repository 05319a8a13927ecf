//! What is recorded of a run, and how much, however often it is cut off.

use std::sync::Arc;

use hart_kernel::{Clock, Deck as _, Step, StepSource, SystemClock};
use hart_runtime::port::{Lease, Progress, RunEnd, Store};
use hart_runtime::recording::{Recordable, RecordingDeck, RecordingLimits, Reel};
use hart_runtime::*;
use hart_types::{RunStatus, ToolCall};
use serde_json::{Map, json};

use crate::support::{World, says};

const LIMIT: u64 = 2600;

/// A run that somebody executes who only records.
async fn claimed(world: &World) -> (Run, Lease) {
    let later = StartRun { after_seconds: 3600.0, ..says("t", "SAY nothing") };
    let run = world.runtime.start(later).await.unwrap();
    let store = world.runtime.store();
    let claimed = store.claim(&"t".into(), world.runtime.node(), run.start_at).await.unwrap().unwrap();
    (run, claimed.lease)
}

/// One attempt that calls tools; what is recorded of them.
async fn attempt(store: &Arc<dyn Store>, run: &Run, lease: &Lease, attempt: u32, calls: &[&str]) {
    let (clock, request): (Arc<dyn Clock>, _) = (Arc::new(SystemClock), says("t", "SAY nothing"));
    let recorded = store.recorded_bytes(&run.id).await.unwrap();
    let recordable = Recordable { store, lease, run, request: &request, attempt, recorded, clock: &clock };
    let deck =
        RecordingDeck::new(&recordable, RecordingLimits { max_bytes: LIMIT }, Arc::new(|_: &str| None));
    for call in calls {
        let (call, gave) = (ToolCall::new(*call, "tool", Map::new()), format!("{call} {}", "x".repeat(300)));
        deck.came_to(&call, json!(gave)).await;
    }
    deck.reached(None).await;
    // Records go with the next write.
    store.numbers().await.unwrap();
    assert!(store.recorded_bytes(&run.id).await.unwrap() > recorded);
}

/// A crash between the results of a batch and the pause: the call that asks is made again, and asks again.
#[tokio::test]
async fn a_question_that_is_asked_again_is_recorded_once() {
    let world = World::new().await;
    let (run, lease) = claimed(&world).await;
    let store = world.runtime.store();
    let (clock, request): (Arc<dyn Clock>, _) = (Arc::new(SystemClock), says("t", "SAY nothing"));
    for (attempt, id) in [(1, "results"), (2, "pause")] {
        let recordable = Recordable {
            store,
            lease: &lease,
            run: &run,
            request: &request,
            attempt,
            recorded: 0,
            clock: &clock,
        };
        let deck = RecordingDeck::new(&recordable, RecordingLimits::default(), Arc::new(|_: &str| None));
        deck.came_to(&ToolCall::new("asks", "tool", Map::new()), json!({"asked": []})).await;
        let step = Step {
            id: id.into(),
            parent: None,
            run_id: run.id.clone(),
            source: StepSource::Tools,
            created_at: clock.now(),
            writes: Vec::new(),
            next: None,
        };
        deck.reached(Some(&step.id)).await;
        store
            .append_progress(Progress { steps: [step].into(), ..Progress::default() }, &lease)
            .await
            .unwrap();
    }
    let end = RunEnd {
        status: RunStatus::Success,
        error: None,
        totals: Totals::default(),
        at: clock.now(),
        base: None,
        values: None,
        events: Vec::new(),
    };
    store.end_run(&run.id, end, Some(&lease)).await.unwrap().unwrap();
    let reel = Reel::load(store.as_ref(), &run.id).await.unwrap();
    assert_eq!(reel.sums().tool_calls, 1);
}

#[tokio::test]
async fn the_limit_is_the_runs_and_not_an_attempts() {
    let world = World::new().await;
    let (run, lease) = claimed(&world).await;
    let store = world.runtime.store();
    attempt(store, &run, &lease, 1, &["one", "two"]).await;
    attempt(store, &run, &lease, 2, &["three", "four", "five", "six"]).await;
    attempt(store, &run, &lease, 3, &["seven"]).await;
    let records = store.records(&run.id).await.unwrap();
    let all: String =
        records.iter().map(|record| String::from_utf8_lossy(&record.payload).into_owned()).collect();
    assert!(all.contains("three") && all.contains("\"cut\""), "{all}");
    assert!(!all.contains("six") && !all.contains("seven"), "{all}");
}
