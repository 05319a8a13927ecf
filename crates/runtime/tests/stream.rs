//! The stream is the log: any reader, from any point, gets the same.

use hart_runtime::{After, LogEvent, StartRun};
use hart_testkit::{eventually, in_time};
use hart_types::StreamMode::{self, MessagesTuple, Updates, Values};
use serde_json::{Value, json};

use crate::support::{World, data, says, texts};

fn events(frames: &[hart_runtime::Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_ref()).collect()
}

#[tokio::test]
async fn frames_come_in_langgraphs_order() {
    let world = World::new().await;
    let run = world.start("t", "SAY hello big world").await;
    let frames = world.frames(&run, &[Values, MessagesTuple, Updates], After::Start).await;
    let expected =
        ["metadata", "values", "messages", "messages", "messages", "messages", "updates", "values", "end"];
    assert_eq!(events(&frames), expected);
    assert_eq!(data(&frames[0])["run_id"], run.id.as_str());
    assert_eq!(texts(&data(&frames[1])), ["SAY hello big world"]);
    let chunks: Vec<Value> = frames[2..6].iter().map(data).collect();
    let text: String = chunks.iter().map(|chunk| chunk[0]["content"].as_str().unwrap().to_owned()).collect();
    assert_eq!(text, "hello big world");
    let last = data(&frames[7]);
    assert_eq!(last["messages"][1]["id"], chunks[0][0]["id"]);
    assert_eq!(data(&frames[6])["model"]["messages"][0]["content"], "hello big world");
    for key in ["langgraph_node", "langgraph_step", "langgraph_checkpoint_ns", "run_id", "thread_id"] {
        assert!(!chunks[0][1][key].is_null(), "{key}");
    }
}

#[tokio::test]
async fn whoever_wants_the_last_state_alone_is_told_nothing_else() {
    let world = World::new().await;
    let run = world.start("t", "SAY hello big world").await;
    let mut reader = world.runtime.follow(&run.id, After::Start);
    in_time("the run ends", reader.skip_to_last_state()).await;
    let state = reader.next().await.unwrap().unwrap();
    assert!(matches!(state.logged.event, LogEvent::Values { .. }), "{state:?}");
    assert!(state.is_at_hand());
    let end = reader.next().await.unwrap().unwrap();
    assert!(matches!(end.logged.event, LogEvent::Ended { .. }), "{end:?}");
    assert!(reader.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_reader_that_comes_back_gets_exactly_the_rest() {
    let world = World::new().await;
    let run = world.start("t", r#"CALL ask_human {"question": "Deploy?"}"#).await;
    let modes = StreamMode::ALL;
    let whole = world.frames(&run, modes, After::Start).await;
    let ids: Vec<u64> = whole.iter().map(|frame| frame.id.seq).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
    for (at, frame) in whole.iter().enumerate() {
        let rest = world.frames(&run, modes, After::Frame(frame.id)).await;
        assert_eq!(rest, whole[at + 1..], "after {}", frame.id);
    }
}

#[tokio::test]
async fn a_run_read_back_from_the_disk_gives_the_same_frames() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    let modes = StreamMode::ALL;
    let (run, live) = {
        let world = World::over(&path).await;
        let run = world.start("t", r#"CALL ask_human {"question": "Deploy?"}"#).await;
        let live = world.frames(&run, modes, After::Start).await;
        world.runtime.close(std::time::Duration::from_secs(5)).await;
        (run, live)
    };
    let world = World::over(&path).await;
    assert_eq!(world.frames(&run, modes, After::Start).await, live);
    // A later run's numbers follow those of before the restart.
    let next = world.start("t", "SAY on").await;
    let frames = world.frames(&next, &[Values], After::Start).await;
    assert!(frames[0].id.seq > live.last().unwrap().id.seq);
}

#[tokio::test]
async fn a_question_is_in_updates_and_in_the_last_values() {
    let world = World::new().await;
    let run = world.start("t", r#"CALL ask_human {"question": "Deploy?"}"#).await;
    let frames = world.frames(&run, &[Values, Updates], After::Start).await;
    let question = json!({"question": "Deploy?"});
    let asked = frames.iter().rev().find(|frame| frame.event == "updates").unwrap();
    assert_eq!(data(asked)["__interrupt__"][0]["value"], question);
    let last = frames.iter().rev().find(|frame| frame.event == "values").unwrap();
    assert_eq!(data(last)["__interrupt__"][0]["value"], question);
    assert_eq!(data(last)["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn late_readers_of_a_live_run_and_of_one_that_ended() {
    let world = World::new().await;
    let run = world.start("t", "SLOW 6 40").await;
    let mut follower = world.runtime.follow(&run.id, After::Start);
    for _ in 0..4 {
        follower.next().await.unwrap().unwrap();
    }
    let rest = world.frames(&run, &[MessagesTuple], After::Now).await;
    assert_eq!(events(&rest).last(), Some(&"end"));
    assert!(!events(&rest).contains(&"metadata"));
    assert!(world.frames(&run, &[MessagesTuple], After::Now).await.is_empty());
}

#[tokio::test]
async fn an_error_is_told_and_then_the_end() {
    let world = World::new().await;
    let run = world.start("t", "FAIL it is broken").await;
    let frames = world.frames(&run, &[Values], After::Start).await;
    assert_eq!(events(&frames), ["metadata", "values", "error", "end"]);
    assert!(data(&frames[2])["message"].as_str().unwrap().contains("it is broken"));
}

/// A run longer than what stays in memory, read by a reader that starts when it is over.
#[tokio::test]
async fn a_thread_that_goes_with_its_run_stays_for_whoever_is_behind() {
    let world = World::new().await;
    let words = vec!["w"; 5000].join(" ");
    let request = StartRun { thread: None, ..says("", &format!("SAY {words}")) };
    let run = world.runtime.start(request).await.unwrap();
    let mut reader = world.runtime.frames(run.clone(), vec![MessagesTuple], false, After::Start);
    in_time("it ends", world.runtime.wait(&run.id)).await;
    let mut text = String::new();
    while let Some(more) = in_time("a frame", reader.next()).await.unwrap() {
        let said = more.iter().filter(|frame| frame.event == "messages");
        text.extend(said.map(|frame| data(frame)[0]["content"].as_str().unwrap().to_owned()));
    }
    assert_eq!(text, words);
    drop(reader);
    let gone = async || world.runtime.store().thread(&run.thread).await.unwrap().is_none();
    eventually("the thread goes", async || gone().await.then_some(())).await;
}

#[tokio::test]
async fn a_long_run_is_read_partly_from_the_disk() {
    let world = World::new().await;
    let words = vec!["w"; 5000].join(" ");
    let run = world.start("t", &format!("SAY {words}")).await;
    world.ended(&run.id).await;
    let frames = world.frames(&run, &[MessagesTuple], After::Start).await;
    let text: String = frames
        .iter()
        .filter(|frame| frame.event == "messages")
        .map(|frame| data(frame)[0]["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(text, words);
}
