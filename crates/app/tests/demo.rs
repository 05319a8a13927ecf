//! The recorded tasks, played against the real sandbox as a newcomer would see them.

use std::sync::{Arc, Mutex};

use hart_app::config::LoadOptions;
use hart_app::demo::TASKS;
use hart_app::{AgentEvent, App, CancellationToken, Env, EventSink, RunReport, Task, async_trait};
use hart_types::{ThreadId, ToolStatus};

struct World {
    app: App,
    _home: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let env = Env::from_iter([("HART_NO_PROBE", "1")]);
        let options = LoadOptions { path: None, cwd: home.path().to_owned(), env: &env, overrides: None };
        Self { app: App::open(options).unwrap(), _home: home }
    }

    async fn ask(&self, thread: &str, text: &str) -> RunReport {
        let model = self.app.choose_model(None).await.unwrap();
        assert!(model.is_demo());
        let task = Task { thread: ThreadId::from(thread), ..Task::new(text, model) };
        self.app.run(&task, Arc::new(Silence), CancellationToken::new()).await.unwrap()
    }
}

struct Silence;

#[async_trait]
impl EventSink for Silence {
    async fn emit(&self, _: AgentEvent) {}
}

#[tokio::test]
async fn every_recorded_task_plays_to_its_end_in_one_thread_and_again() {
    let world = World::new();
    let files = ["primes.txt", "report.md", "table.html"];
    for round in 0..2 {
        for (task, file) in TASKS.iter().zip(files) {
            let report = world.ask("t1", task.prompt).await;
            report.outcome.as_ref().unwrap();
            let results = report.state().messages().iter().filter_map(|message| message.as_tool_result());
            assert!(results.into_iter().all(|result| result.status == ToolStatus::Success), "{}", task.title);
            let answer = report.answer().unwrap();
            assert!(answer.contains(file), "round {round}, {}: {answer}", task.title);
            let artifacts = world.app.artifacts(&ThreadId::from("t1"), report.state());
            let handed_over = artifacts.iter().find(|artifact| artifact.path.ends_with(file)).unwrap();
            assert!(handed_over.host_path.is_file(), "{handed_over:?}");
        }
    }
}

#[tokio::test]
async fn a_recording_says_that_it_is_one() {
    let world = World::new();
    for task in TASKS {
        let report = world.ask(task.title, &format!("  {}\n", task.prompt.to_uppercase())).await;
        let first =
            report.state().messages().iter().find(|message| message.as_ai().is_some()).unwrap().text();
        assert!(first.contains("This is a recording"), "{first}");
    }
}

#[tokio::test]
async fn any_other_prompt_gets_advice() {
    let world = World::new();
    let answer = world.ask("t1", "Write me a novel.").await.answer().unwrap();
    assert!(answer.contains("No model is connected") && answer.contains("ANTHROPIC_API_KEY"), "{answer}");
}

#[tokio::test]
async fn a_tool_that_answers_differently_is_not_talked_over() {
    let world = World::new();
    let home = world.app.home().to_owned();
    // Without `bash` the second recorded step cannot happen as it did.
    std::fs::write(home.parent().unwrap().join("config.yaml"), "tools: [{name: write_file}]").unwrap();
    let env = Env::from_iter([("HART_NO_PROBE", "1")]);
    let cwd = home.parent().unwrap().to_owned();
    let app = App::open(LoadOptions { path: None, cwd, env: &env, overrides: None }).unwrap();
    let model = app.choose_model(None).await.unwrap();
    let task = Task::new(TASKS[0].prompt, model);
    let seen = Arc::new(Seen::default());
    let report = app.run(&task, seen.clone(), CancellationToken::new()).await.unwrap();
    let answer = report.answer().unwrap();
    assert!(answer.contains("The recording cannot go on here"), "{answer}");
    assert_eq!(seen.0.lock().unwrap().as_slice(), ["write_file", "bash"]);
}

/// The names of the tools that were started.
#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

#[async_trait]
impl EventSink for Seen {
    async fn emit(&self, event: AgentEvent) {
        if let AgentEvent::ToolStarted(call) = event {
            self.0.lock().unwrap().push(call.name.clone());
        }
    }
}
