//! One table for both clients: whatever can be asked of an agent in this process can be asked of a server, and the
//! answers are the same.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use hart_app::types::{RunId, RunStatus, ThreadId};
use hart_app::{
    AnyClient, App, Ask, CancellationToken, Client, ClientError, Env, Event, HttpClient, Interrupt, Resume,
    Server, config::LoadOptions,
};
use hart_testkit::{ModelServer, Turn, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A client, and all it needs.
struct World {
    client: Arc<dyn AnyClient>,
    model: ModelServer,
    _home: TempDir,
    _server: JoinSet<()>,
}

impl World {
    async fn app() -> (App, ModelServer, TempDir) {
        let (home, model) = (tempfile::tempdir().unwrap(), ModelServer::start().await);
        let env = Env::from_iter([
            ("HART_NO_PROBE", "1"),
            ("OPENAI_API_KEY", "k"),
            ("OPENAI_BASE_URL", &model.openai_base()),
        ]);
        let settings = json!({"interrupt_on": {"write_todos": true}, "llm_call": {"retry_base_delay_ms": 1}});
        let options =
            LoadOptions { path: None, cwd: home.path().to_owned(), env: &env, overrides: Some(settings) };
        (App::open(options).unwrap(), model, home)
    }

    async fn embedded() -> Self {
        let (app, model, home) = Self::app().await;
        Self { client: Arc::new(Client::of(Arc::new(app))), model, _home: home, _server: JoinSet::new() }
    }

    async fn remote() -> Self {
        let (app, model, home) = Self::app().await;
        let server = Server::bind(&app, None, Some(0)).await.unwrap();
        let client = Arc::new(HttpClient::new(&server.url(), None).unwrap());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            server.run(CancellationToken::new()).await.unwrap();
            drop(app);
        });
        Self { client, model, _home: home, _server: tasks }
    }
}

/// What must be the same, without what differs between any two runs.
type Told = Vec<(&'static str, Value)>;

fn thread() -> ThreadId {
    ThreadId::from("my/odd name")
}

fn told(error: &ClientError) -> Value {
    let text = error.to_string();
    // A run's id is made anew each time.
    let kind = format!("{error:?}");
    json!([kind.split(['(', ' ']).next(), text.split('`').next()])
}

async fn events(client: &dyn AnyClient, ask: Ask) -> Value {
    let mut events = client.stream(ask).await.unwrap();
    let mut told = Vec::new();
    while let Some(event) = events.next().await {
        told.push(match event {
            Ok(Event::Text { text, .. }) => json!(["text", text]),
            Ok(Event::Reasoning { text, .. }) => json!(["reasoning", text]),
            Ok(Event::ToolCalls { calls, .. }) => json!(["calls", calls]),
            Ok(Event::ToolStarted(call)) => json!(["started", call]),
            Ok(Event::ToolProgress { call, .. }) => json!(["progress", call]),
            Ok(Event::ToolResult(message)) => json!(["result", message.text(), message.name]),
            Ok(Event::Usage { usage, .. }) => json!(["usage", usage]),
            Ok(Event::Updates { node, update }) => {
                json!(["updates", node, update.keys().collect::<Vec<_>>()])
            }
            Ok(Event::Values(values)) => json!(["values", values.messages().len(), values.title()]),
            Ok(Event::Paused(interrupts)) => json!(["paused", asked(&interrupts)]),
            Ok(Event::Custom(data)) => json!(["custom", data]),
            Ok(Event::End(end)) => {
                json!(["end", end.usage, end.values.last_words(), asked(&end.interrupts)])
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => json!(["error", self::told(&error)]),
        });
    }
    told.into()
}

/// Without the ids, which follow from those of messages.
fn asked(interrupts: &[Interrupt]) -> Value {
    interrupts.iter().map(|one| json!([one.value, one.response_schema, one.id.len()])).collect()
}

/// Everything that can be asked, one after the other.
async fn ask_everything(world: &World) -> Told {
    let (client, model) = (&*world.client, &world.model);
    let mut told_all: Told = Vec::new();
    let out = "/mnt/user-data/outputs/a.txt";
    let write = json!({"description": "w", "path": out, "content": "42"});
    model.push_all([
        Turn::new().reasoning("hmm").text_fragments(["Let me ", "write."]).tool_call(
            "c1",
            "write_file",
            write,
        ),
        Turn::new().tool_call("c2", "present_files", json!({"filepaths": [out]})),
        Turn::new().text_fragments(["It is ", "there."]).usage(10, 3),
    ]);
    told_all
        .push(("stream", events(client, Ask::new("Write it down.").thread(thread()).mode("flash")).await));

    model.push(Turn::new().text("Again."));
    let answer = client.ask(Ask::new("And again?").thread(thread())).await.unwrap();
    let paths: Vec<&str> = answer.artifacts.iter().map(|artifact| artifact.path.as_str()).collect();
    told_all.push(("ask", json!([answer.text, answer.thread, answer.usage, paths, answer.model()])));
    model.push(Turn::new().text("Hello."));
    told_all.push(("chat", client.chat(Ask::new("Hi.").recursion_limit(9)).await.unwrap().into()));

    let plan = json!({"todos": [{"content": "a", "status": "completed"}]});
    model.push(Turn::new().tool_call("c3", "write_todos", plan));
    let ask = Ask::new("Plan.").thread("waits").plan_mode(true).without_states();
    told_all.push(("pause", events(client, ask).await));
    let waits = client.thread(&"waits".into()).await.unwrap();
    told_all.push((
        "thread",
        json!([waits.id, asked(&waits.interrupts), waits.values.messages().len(), waits.values.title()]),
    ));
    model.push(Turn::new().text("Planned."));
    let decision = Resume::from_json(json!({"decisions": [{"type": "approve"}]}));
    let resumed = client.resume(&"waits".into(), decision.clone()).await.unwrap();
    told_all.push(("resume", json!([resumed.text, resumed.interrupts()])));
    let error = client.resume(&"waits".into(), decision.clone()).await.unwrap_err();
    told_all.push(("resume what is not paused", told(&error)));
    let error = client.resume(&"never".into(), decision).await.unwrap_err();
    told_all.push(("resume what is not there", told(&error)));

    let threads = client.threads(10).await.unwrap();
    assert!(threads.windows(2).all(|pair| pair[0].updated_at >= pair[1].updated_at));
    let listed = threads.iter().map(|thread| {
        let named = thread.id == crate::either_client::thread() || thread.id.as_str() == "waits";
        json!([named.then(|| thread.id.clone()), thread.title, thread.status])
    });
    told_all.push(("threads", listed.collect()));
    told_all.push(("one thread", client.threads(1).await.unwrap().len().into()));

    let artifacts = client.artifacts(&thread()).await.unwrap();
    let paths: Vec<&str> = artifacts.iter().map(|artifact| artifact.path.as_str()).collect();
    told_all.push(("artifacts", json!(paths)));
    let content = client.artifact(&thread(), out).await.unwrap();
    told_all.push(("artifact", String::from_utf8(content).unwrap().into()));
    for wrong in
        ["/mnt/user-data/outputs/none", "/etc/passwd", "/mnt/user-data/outputs/../../../etc/passwd", "x"]
    {
        told_all.push(("no artifact", told(&client.artifact(&thread(), wrong).await.unwrap_err())));
    }
    told_all.push(("models", json!(client.models().await.unwrap())));

    let runs = client.runs(Some(&thread()), 10).await.unwrap();
    let shown = |run: &hart_app::RunInfo| json!([run.status, run.error, run.usage, run.model_calls]);
    assert!(runs.iter().all(|run| *run.called() == thread()), "by the name it was given: {runs:?}");
    told_all.push(("runs", runs.iter().map(shown).collect()));
    told_all.push(("all runs", client.runs(None, 3).await.unwrap().iter().map(shown).collect()));
    let first = runs.last().unwrap();
    assert_eq!(client.run(&first.id).await.unwrap(), *first);
    let mut joined = client.join(&first.id).await.unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = joined.next_frame().await {
        frames.push(frame.unwrap().event);
    }
    told_all.push(("join", frames.into()));
    client.cancel(&first.id).await.unwrap();
    told_all.push(("no run", told(&client.run(&RunId::from("nobody")).await.unwrap_err())));
    told_all.push(("no cancel", told(&client.cancel(&RunId::from("nobody")).await.unwrap_err())));

    told_all.push(("failures", failures(client, model).await));
    told_all.push(("stopped", stopped(client, model).await));
    client.delete_thread(&thread()).await.unwrap();
    told_all.push(("gone", told(&client.thread(&thread()).await.unwrap_err())));
    told_all.push(("gone twice", told(&client.delete_thread(&thread()).await.unwrap_err())));
    told_all.push(("gone runs", told(&client.runs(Some(&thread()), 1).await.unwrap_err())));
    told_all
}

async fn failures(client: &dyn AnyClient, model: &ModelServer) -> Value {
    model.push(Turn::status(400));
    let broken = client.chat(Ask::new("?")).await.unwrap_err();
    let unknown = client.chat(Ask::new("?").model("nobody")).await.unwrap_err();
    let warp = client.chat(Ask::new("?").mode("warp")).await.unwrap_err();
    json!([told(&broken), told(&unknown), told(&warp)])
}

/// A run that hangs is busy, and ends by its token, by somebody else, or when nobody listens.
async fn stopped(client: &dyn AnyClient, model: &ModelServer) -> Value {
    let mut ends = Vec::new();
    for way in ["token", "cancel", "drop"] {
        model.push(Turn::new().text_fragments(["a", "b", "c"]).hang_after(2));
        let (token, name) = (CancellationToken::new(), format!("hangs-{way}"));
        let ask = Ask::new("hang").thread(name.as_str()).cancel(token.clone());
        let mut stream = client.stream(ask).await.unwrap();
        while !matches!(stream.next().await, Some(Ok(Event::Text { .. }))) {}
        let busy = client.chat(Ask::new("?").thread(name.as_str())).await.unwrap_err();
        ends.push(told(&busy));
        let run = stream.run().clone();
        match way {
            "token" => token.cancel(),
            "cancel" => client.cancel(&run).await.unwrap(),
            _ => drop(std::mem::replace(&mut stream, client.join(&run).await.unwrap().into_events())),
        }
        let last = stream.collect::<Vec<_>>().await.pop().unwrap();
        ends.push(told(&last.unwrap_err()));
        let is_running = async || client.run(&run).await.unwrap().status == RunStatus::Running;
        eventually("the run ends", async || (!is_running().await).then_some(())).await;
        ends.push(json!(client.run(&run).await.unwrap().status));
    }
    ends.into()
}

/// Passes connections on and cuts each off after so many bytes of the answer; how many there were.
async fn cutting_proxy(
    to: SocketAddr,
    after: u64,
    tasks: &mut JoinSet<()>,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (client, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
            connections.spawn(async move {
                let server = TcpStream::connect(to).await.unwrap();
                let ((mut from_client, mut to_client), (from_server, mut to_server)) =
                    (client.into_split(), server.into_split());
                let mut answer = from_server.take(after);
                tokio::select! {
                    _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
                    _ = tokio::io::copy(&mut answer, &mut to_client) => {}
                }
            });
        }
    });
    (address, count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_breaks_again_and_again_loses_nothing() {
    let (app, model, _home) = World::app().await;
    let words: Vec<String> = (0..300).map(|n| format!("w{n} ")).collect();
    model.push(Turn::new().text_fragments(words.clone()));
    let server = Server::bind(&app, None, Some(0)).await.unwrap();
    let mut tasks = JoinSet::new();
    let to = server.url().strip_prefix("http://").unwrap().parse().unwrap();
    let (proxy, connections) = cutting_proxy(to, 9_000, &mut tasks).await;
    tasks.spawn(async move { server.run(CancellationToken::new()).await.unwrap() });
    let client = HttpClient::new(&format!("http://{proxy}"), None).unwrap();
    let mut events = client.stream(Ask::new("talk").without_states()).await.unwrap();
    let mut said = String::new();
    while let Some(event) = events.next().await {
        if let Event::Text { text, .. } = event.unwrap() {
            said.push_str(&text);
        }
    }
    assert_eq!(said, words.concat());
    assert!(connections.load(Ordering::Relaxed) > 3, "it broke: {connections:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_answers_as_an_agent_in_this_process_does() {
    let (embedded, remote) = (World::embedded().await, World::remote().await);
    let (here, there) = (ask_everything(&embedded).await, ask_everything(&remote).await);
    for ((what, here), (_, there)) in here.iter().zip(&there) {
        assert_eq!(here, there, "{what}");
    }
    assert_eq!(here.len(), there.len());
    let of = |name: &str| &here.iter().find(|(what, _)| *what == name).unwrap().1;
    // The table says something: its answers are those that were scripted.
    assert_eq!(of("chat"), "Hello.");
    assert_eq!(of("artifact"), "42");
    assert_eq!(of("ask")[0], "Again.");
    assert_eq!(of("stopped")[0][0], "Busy");
    assert_eq!(of("stopped")[1][0], "Cancelled");
}
