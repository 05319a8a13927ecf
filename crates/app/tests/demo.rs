//! The recorded tasks, played against the real sandbox as a newcomer would see them.

use futures_util::StreamExt;
use hart_app::demo::TASKS;
use hart_app::{Answer, Ask, Client, ClientBuilder, Event, Location};
use hart_types::ToolStatus;
use serde_json::json;

struct World {
    client: Client,
    _home: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self::with(|builder| builder)
    }

    fn with(change: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Self {
        let home = tempfile::tempdir().unwrap();
        let builder = Client::builder().no_file().home(home.path());
        Self { client: change(builder).build().unwrap(), _home: home }
    }

    async fn ask(&self, thread: &str, text: &str) -> Answer {
        self.client.ask(demo(text).thread(thread)).await.unwrap()
    }
}

fn demo(text: &str) -> Ask {
    Ask::new(text).model("demo")
}

#[tokio::test]
async fn every_recorded_task_plays_to_its_end_in_one_thread_and_again() {
    let world = World::new();
    let files = ["primes.txt", "report.md", "table.html"];
    for round in 0..2 {
        for (task, file) in TASKS.iter().zip(files) {
            let answer = world.ask("t1", task.prompt).await;
            let messages = answer.values.messages();
            let mut results = messages.iter().filter_map(|message| message.as_tool_result());
            assert!(results.all(|result| result.status == ToolStatus::Success), "{}", task.title);
            assert!(answer.text.contains(file), "round {round}, {}: {}", task.title, answer.text);
            let handed_over = answer.artifacts.iter().find(|artifact| artifact.path.ends_with(file)).unwrap();
            let Location::File(path) = &handed_over.location else { panic!("{handed_over:?}") };
            assert!(path.is_file(), "{handed_over:?}");
        }
    }
}

#[tokio::test]
async fn a_recording_says_that_it_is_one() {
    let world = World::new();
    for task in TASKS {
        let answer = world.ask(task.title, &format!("  {}\n", task.prompt.to_uppercase())).await;
        let messages = answer.values.messages();
        let first = messages.iter().find(|message| message.as_ai().is_some()).unwrap().text();
        assert!(first.contains("This is a recording"), "{first}");
    }
}

#[tokio::test]
async fn any_other_prompt_gets_advice() {
    let world = World::new();
    let answer = world.ask("t1", "Write me a novel.").await.text;
    assert!(answer.contains("No model is connected") && answer.contains("ANTHROPIC_API_KEY"), "{answer}");
}

#[tokio::test]
async fn a_tool_that_answers_differently_is_not_talked_over() {
    // Without `bash` the second recorded step cannot happen as it did.
    let world = World::with(|builder| builder.config(json!({"tools": [{"name": "write_file"}]})));
    let mut events = world.client.stream(demo(TASKS[0].prompt)).await.unwrap();
    let (mut started, mut answer) = (Vec::new(), String::new());
    while let Some(event) = events.next().await {
        match event.unwrap() {
            Event::ToolStarted(call) => started.push(call.name),
            Event::End(end) => answer = end.values.last_words(),
            _ => {}
        }
    }
    assert!(answer.contains("The recording cannot go on here"), "{answer}");
    assert_eq!(started, ["write_file", "bash"]);
}
