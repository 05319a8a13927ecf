//! What a thread has come to: history, branches, changes by hand.

use hart_runtime::port::HistoryQuery;
use hart_runtime::{StartRun, StateError};
use serde_json::{Map, Value, json};

use crate::support::{World, says, texts};

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn history(world: &World, thread: &str) -> Vec<(Option<String>, i64, Vec<String>)> {
    let query = HistoryQuery { limit: 100, ..HistoryQuery::default() };
    let states = world.runtime.history(&thread.into(), &query, |_| true).await.unwrap();
    states
        .into_iter()
        .map(|state| {
            let step = state.step.unwrap();
            (step.next, step.number, texts(&serde_json::from_slice(&state.values).unwrap()))
        })
        .collect()
}

#[tokio::test]
async fn history_has_every_step_and_the_state_before_the_input() {
    let world = World::new().await;
    world.run(says("t", "SAY hi")).await;
    let own = |text: &str| text.to_owned();
    assert_eq!(
        history(&world, "t").await,
        [
            (None, 1, vec![own("SAY hi"), own("hi")]),
            (Some(own("model")), 0, vec![own("SAY hi")]),
            (Some(own("__start__")), -1, vec![]),
        ]
    );
}

#[tokio::test]
async fn a_run_from_an_earlier_step_makes_a_branch_that_becomes_the_head() {
    let world = World::new().await;
    world.run(says("t", "SAY one")).await;
    let fork = world.runtime.state(&"t".into(), None).await.unwrap().step.unwrap().id;
    world.run(says("t", "SAY two")).await;
    world.run(StartRun { checkpoint: Some(fork.clone()), ..says("t", "SAY three") }).await;
    assert_eq!(world.texts("t").await, ["SAY one", "one", "SAY three", "three"]);
    let all = history(&world, "t").await;
    assert!(all.iter().any(|(_, _, texts)| texts.contains(&"two".to_owned())), "the old branch is gone");
}

#[tokio::test]
async fn a_client_writes_to_a_thread() {
    let world = World::new().await;
    world.run(says("t", "SAY hi")).await;
    let message = map(json!({"messages": [{"role": "user", "content": "by hand"}]}));
    let id = world.runtime.update_state(&"t".into(), message.clone(), None, None).await.unwrap();
    assert_eq!(world.texts("t").await, ["SAY hi", "hi", "by hand"]);
    let state = world.runtime.state(&"t".into(), Some(&id)).await.unwrap();
    assert_eq!(state.step.unwrap().next, None);
    let lost = world.runtime.update_state(&"nowhere".into(), Map::new(), None, None).await;
    assert!(matches!(lost, Err(StateError::NoThread(_))));
    world.start("t", "SLOW 20 50").await;
    let busy = world.runtime.update_state(&"t".into(), message, None, None).await;
    assert!(matches!(busy, Err(StateError::Busy(_))));
}
