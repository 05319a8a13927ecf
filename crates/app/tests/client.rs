//! The embedded client as a program uses it: files, parameters, own parts, streams, threads.

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use hart_app::kernel::{
    ChatModel, Command, HookResult, Interrupt, Middleware, PlaceExt, RunContext, Slot, State, Tool,
    ToolContext, ToolError, ToolOutput, Typed, TypedTool,
};
use hart_app::models::{ScriptedModel, ScriptedTurn};
use hart_app::store::SqliteStore;
use hart_app::types::{ThreadId, UsageMetadata};
use hart_app::{
    Ask, CancellationToken, Client, ClientBuilder, ClientError, Env, Event, Frame, Location, Mode, Resume,
    async_trait,
};
use hart_testkit::{ModelServer, Turn};
use hart_types::{Body, Message};
use serde_json::{Value, json};
use tempfile::TempDir;

fn scripted<T: Into<ScriptedTurn>>(turns: impl IntoIterator<Item = T>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(turns))
}

fn texts(texts: &[&str]) -> Arc<ScriptedModel> {
    scripted(texts.iter().map(|text| ScriptedTurn::text(*text)))
}

/// Reads nothing but what it is given.
fn bare(home: &TempDir, model: Arc<dyn ChatModel>) -> ClientBuilder {
    Client::builder().no_file().home(home.path()).model(model)
}

fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn write(call: &str, path: &str, content: &str) -> ScriptedTurn {
    let args = json!({"description": "w", "path": path, "content": content});
    ScriptedTurn::call(call, "write_file", args)
}

#[tokio::test]
async fn a_conversation_goes_on_in_its_thread() {
    let (home, model) = (home(), texts(&["Hello, Ada.", "You are Ada."]));
    let client = bare(&home, model.clone()).build().unwrap();
    let first = client.ask("I am Ada.").await.unwrap();
    assert_eq!(first.text, "Hello, Ada.");
    let second = client.chat(Ask::new("Who am I?").thread(first.thread.clone())).await.unwrap();
    assert_eq!(second, "You are Ada.");
    let asked: Vec<String> = model.requests()[1].messages.iter().map(|message| message.text()).collect();
    let asked = asked.join(" | ");
    let place = |text: &str| asked.find(text).unwrap_or_else(|| panic!("{text} is not in {asked}"));
    assert!(place("I am Ada.") < place("Hello, Ada.") && place("Hello, Ada.") < place("Who am I?"));
}

#[tokio::test]
async fn what_is_said_for_one_call_holds_for_one_call() {
    let home = home();
    let turns = (0..9).map(|n| write(&format!("c{n}"), &format!("f{n}"), "x"));
    let model = scripted(turns);
    let client = bare(&home, model.clone()).config(json!({"max_recursion_limit": 5})).build().unwrap();
    let limited = |steps| client.chat(Ask::new("go").recursion_limit(steps).mode(Mode::Flash));
    let limit_of = |error| match error {
        ClientError::Run(failure) if failure.error == "GraphRecursionError" => failure.message,
        other => panic!("{other}"),
    };
    assert!(limit_of(limited(2).await.unwrap_err()).contains(" 2 "));
    // The configuration has the last word.
    assert!(limit_of(limited(50).await.unwrap_err()).contains(" 5 "));
    use hart_app::kernel::Reasoning;
    assert_eq!(model.requests()[0].settings.reasoning, Reasoning::Off);
    assert!(limit_of(client.chat("go").await.unwrap_err()).contains(" 5 "));
    assert_ne!(model.requests().last().unwrap().settings.reasoning, Reasoning::Off);
}

#[tokio::test]
async fn a_stream_tells_everything_once_and_ends_with_what_it_cost() {
    let home = home();
    let mut speaks = Message::ai("It is there.");
    if let Body::Ai(ai) = &mut speaks.body {
        ai.usage = Some(UsageMetadata::new(10, 3));
    }
    let model = scripted([write("c1", "/mnt/user-data/outputs/a.txt", "42"), speaks.into()]);
    let client = bare(&home, model).build().unwrap();
    let mut stream = client.stream(Ask::new("Write it down.").thread("t1")).await.unwrap();
    assert_eq!(stream.thread().as_str(), "t1");
    let mut frames = Vec::new();
    while let Some(event) = stream.next().await {
        frames.push(Frame::from(&event.unwrap()));
    }
    let tuples: Vec<&Value> =
        frames.iter().filter(|frame| frame.event == "messages-tuple").map(|frame| &frame.data).collect();
    assert_eq!(tuples[0]["tool_calls"][0]["name"], "write_file");
    assert_eq!((tuples[0]["type"].as_str(), tuples[0]["content"].as_str()), (Some("ai"), Some("")));
    assert_eq!((&tuples[1]["type"], &tuples[1]["tool_call_id"]), (&json!("tool"), &json!("c1")));
    let said: String = tuples[2..].iter().filter_map(|data| data["content"].as_str()).collect();
    assert_eq!(said, "It is there.");
    let counted = tuples.iter().filter(|data| data.get("usage_metadata").is_some()).count();
    assert_eq!(counted, 1);
    let values = frames.iter().rfind(|frame| frame.event == "values").unwrap();
    let kinds: Vec<&str> = values.data["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["human", "system", "ai", "tool", "ai"], "with the date that hart told the model");
    let end = frames.last().unwrap();
    assert_eq!((end.event, &end.data["status"]), ("end", &json!("success")));
    assert_eq!(end.data["usage"], json!({"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}));
    assert!(stream.next().await.is_none());
}

struct AskHuman;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Question {
    question: String,
}

#[async_trait]
impl TypedTool for AskHuman {
    const NAME: &'static str = "ask_human";
    const DESCRIPTION: &'static str = "Asks a person.";
    type Args = Question;

    async fn run(&self, cx: &ToolContext<'_>, args: Question) -> Result<ToolOutput, ToolError> {
        let answer = cx.interrupt(Interrupt::new(cx.call_id.as_str(), json!({"question": args.question})))?;
        Ok(format!("they said {answer}").into())
    }
}

#[tokio::test]
async fn a_paused_run_waits_in_its_thread_and_another_client_resumes_it() {
    let home = home();
    let tool = || -> Arc<dyn Tool> { Typed::shared(AskHuman) };
    let question = || ScriptedTurn::call("c1", "ask_human", json!({"question": "Left?"}));
    let client = bare(&home, scripted([question(), question()])).tool(tool()).build().unwrap();
    let paused = client.ask(Ask::new("Which way?").thread("t1")).await.unwrap();
    assert_eq!(paused.interrupts()[0].value, json!({"question": "Left?"}));
    let error = client.chat(Ask::new("Which way?").thread("t2")).await.unwrap_err();
    assert!(matches!(&error, ClientError::Paused { thread } if thread.as_str() == "t2"), "{error}");

    let model = texts(&["Left it is."]);
    let other = bare(&home, model.clone()).tool(tool()).build().unwrap();
    assert_eq!(other.thread("t1").await.unwrap().interrupts().len(), 1);
    let answer = other.resume("t1", Resume::from_json(json!("yes"))).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.interrupts().len()), ("Left it is.", 0));
    assert_eq!(model.requests()[0].messages.last().unwrap().text(), "they said \"yes\"");
    let error = other.resume("t1", Resume::from_json(json!("yes"))).await.unwrap_err();
    assert!(error.to_string().contains("nothing in this thread waits"), "{error}");
    other.resume("t9", Resume::from_json(json!("yes"))).await.unwrap_err();
    assert!(matches!(other.thread("t9").await, Err(ClientError::NoThread(_))), "nothing was said in it");
}

#[tokio::test]
async fn threads_are_listed_looked_at_and_deleted() {
    let home = home();
    let out = "/mnt/user-data/outputs/a.txt";
    let present = ScriptedTurn::call("c2", "present_files", json!({"filepaths": [out]}));
    let turns = [ScriptedTurn::text("one"), write("c1", out, "42"), present, ScriptedTurn::text("two")];
    let client = bare(&home, scripted(turns)).build().unwrap();
    client.chat(Ask::new("a").thread("first")).await.unwrap();
    // A name that cannot be a folder's is still found by it.
    let odd = "second/of two";
    let answer = client.ask(Ask::new("b").thread(odd)).await.unwrap();

    let all = client.threads(10).await.unwrap();
    let ids: Vec<&str> = all.iter().map(|thread| thread.id.as_str()).collect();
    assert_eq!(ids, [odd, "first"]);
    assert!(all.iter().all(|thread| thread.created_at <= thread.updated_at));
    let titles: Vec<&str> = all.iter().map(|thread| thread.title.as_deref().unwrap()).collect();
    assert_eq!(titles, ["b", "a"]);
    assert_eq!(client.threads(1).await.unwrap().len(), 1);

    let state = client.thread(odd).await.unwrap();
    let said = state.values.messages().iter().filter(|message| message.kind() != "system").count();
    assert_eq!(said, 6);
    let artifacts = client.artifacts(odd).await.unwrap();
    assert_eq!(artifacts, answer.artifacts);
    let Location::File(file) = &artifacts[0].location else { panic!("{artifacts:?}") };
    assert_eq!(std::fs::read_to_string(file).unwrap(), "42");

    client.delete_thread(odd).await.unwrap();
    assert!(!file.exists());
    assert!(matches!(client.thread(odd).await, Err(ClientError::NoThread(_))));
    assert!(matches!(client.delete_thread(odd).await, Err(ClientError::NoThread(_))));
    assert_eq!(client.threads(10).await.unwrap().len(), 1);
}

/// Gives threads a title of its own, in the place of the built-in one.
struct Titles;

struct Title;

impl hart_app::kernel::StateKey for Title {
    type Value = String;
    type Update = String;
    const NAME: &'static str = "title";
    fn reduce(_: Option<String>, new: String) -> Result<String, hart_app::kernel::ReduceError> {
        Ok(new)
    }
}

#[async_trait]
impl Middleware for Titles {
    fn declare(&self, schema: &mut hart_app::kernel::Schema) -> Result<(), hart_app::kernel::StateError> {
        schema.declare::<Title>()?;
        Ok(())
    }
    async fn after_agent(&self, _: &RunContext, _: &State) -> HookResult {
        Ok(hart_app::kernel::Update::none().set::<Title>("Greetings".into()).into())
    }
}

#[tokio::test]
async fn a_title_that_a_middleware_gave_is_in_the_list() {
    let home = home();
    let client =
        bare(&home, texts(&["hi"])).features(|features| features.title = Titles.into()).build().unwrap();
    client.chat("hello").await.unwrap();
    assert_eq!(client.threads(10).await.unwrap()[0].title.as_deref(), Some("Greetings"));
}

#[tokio::test]
async fn users_do_not_see_each_others_threads() {
    let home = home();
    let client = bare(&home, texts(&["for ada", "for bob"])).user("ada").build().unwrap();
    let bob = client.for_user("bob");
    client.chat(Ask::new("hi").thread("t1")).await.unwrap();
    assert!(matches!(bob.thread("t1").await, Err(ClientError::NoThread(_))));
    bob.chat(Ask::new("hi").thread("t1")).await.unwrap();
    let text = |state: hart_app::ThreadState| state.values.last_words();
    assert_eq!(text(client.thread("t1").await.unwrap()), "for ada");
    assert_eq!(text(bob.thread("t1").await.unwrap()), "for bob");
}

#[tokio::test]
async fn two_clients_in_one_process_do_not_see_each_other() {
    let (left, right) = (home(), home());
    let one = bare(&left, texts(&["left"])).config(json!({"log_level": "debug"})).build().unwrap();
    let two = bare(&right, texts(&["right"])).features(|features| features.sandbox = None).build().unwrap();
    let (a, b) = tokio::join!(one.chat(Ask::new("?").thread("t")), two.chat(Ask::new("?").thread("t")));
    assert_eq!((a.unwrap().as_str(), b.unwrap().as_str()), ("left", "right"));
    assert_ne!(one.config().log_level, two.config().log_level);
    one.close().await;
    assert!(matches!(one.chat("?").await, Err(ClientError::Closed)));
    assert!(
        matches!(two.chat("?").await, Err(ClientError::Run(failure)) if failure.message.contains("script")),
        "its script is exhausted"
    );
}

/// Says when a run is left.
struct Leaves(Arc<Mutex<Vec<&'static str>>>, tokio::sync::mpsc::UnboundedSender<()>);

#[async_trait]
impl Middleware for Leaves {
    async fn after_agent(&self, _: &RunContext, _: &State) -> HookResult {
        self.0.lock().unwrap().push("left");
        let _ = self.1.send(());
        Ok(Command::none())
    }
}

#[tokio::test]
async fn dropping_the_stream_or_cancelling_its_token_ends_the_run_and_unwinds_it() {
    let home = home();
    let (left, (sender, mut receiver)) = (Arc::default(), tokio::sync::mpsc::unbounded_channel());
    let model = scripted([ScriptedTurn::Hang, ScriptedTurn::Hang, ScriptedTurn::Hang]);
    let client = bare(&home, model).extra_middleware(Leaves(Arc::clone(&left), sender)).build().unwrap();
    let mut stream = client.stream(Ask::new("wait").thread("t1")).await.unwrap();
    // The input has been saved, so the run is under way.
    assert!(matches!(stream.next().await, Some(Ok(Event::Values(_)))));
    let busy = client.chat(Ask::new("and?").thread("t1")).await.unwrap_err();
    assert!(matches!(&busy, ClientError::Busy(thread) if thread.as_str() == "t1"), "{busy}");
    drop(stream);
    receiver.recv().await.unwrap();

    let token = CancellationToken::new();
    let mut stream = client.stream(Ask::new("wait").cancel(token.clone())).await.unwrap();
    assert!(matches!(stream.next().await, Some(Ok(Event::Values(_)))));
    token.cancel();
    let last = stream.map(|event| event.err()).collect::<Vec<_>>().await.pop().unwrap().unwrap();
    assert!(matches!(last, ClientError::Cancelled), "{last}");
    receiver.recv().await.unwrap();

    // Closing ends what still runs, also where nobody reads.
    let mut stream = client.stream("wait").await.unwrap();
    assert!(matches!(stream.next().await, Some(Ok(Event::Values(_)))));
    client.close().await;
    receiver.recv().await.unwrap();
    assert_eq!(left.lock().unwrap().len(), 3);
    let last = stream.map(|event| event.err()).collect::<Vec<_>>().await.pop().unwrap();
    assert!(matches!(last, Some(ClientError::Cancelled)), "{last:?}");
}

#[tokio::test]
async fn a_reader_who_never_reads_does_not_keep_the_client_from_closing() {
    let home = home();
    let long = "word ".repeat(2000);
    let client = bare(&home, texts(&[&long])).build().unwrap();
    let stream = client.stream("talk").await.unwrap();
    // The buffer is full by now, or will be; either way closing returns.
    tokio::task::yield_now().await;
    client.close().await;
    let events: Vec<_> = stream.collect().await;
    assert!(matches!(events.last(), Some(Ok(Event::End(_)) | Err(ClientError::Cancelled))));
}

#[tokio::test]
async fn threads_live_where_the_store_puts_them() {
    let (home, store) = (home(), Arc::new(SqliteStore::in_memory().unwrap()));
    let client = bare(&home, texts(&["one", "two"])).store(store.clone()).build().unwrap();
    client.chat(Ask::new("a").thread("t1")).await.unwrap();
    client.chat(Ask::new("b").thread("t1")).await.unwrap();
    let other = bare(&home, texts(&[])).store(store).build().unwrap();
    let thread = other.thread("t1").await.unwrap();
    let said = thread.values.messages().iter().filter(|message| message.kind() != "system").count();
    assert_eq!((said, other.threads(10).await.unwrap().len()), (4, 1));
    assert!(!home.path().join("hart.db").exists());
}

#[tokio::test]
async fn the_file_the_parameters_and_the_defaults_lie_in_this_order() {
    let (dir, server) = (home(), ModelServer::start().await);
    server.push_all([Turn::new().text("from a"), Turn::new().text("from b")]);
    let base = server.openai_base();
    let file = dir.path().join("settings.yaml");
    let text = format!(
        "log_level: warn
max_recursion_limit: 7
models:
  - {{name: a, use: openai-compatible, model: m, api_key: $MY_KEY, base_url: '{base}'}}
sandbox: {{bash_command_timeout: 30, memory_limit: 1g}}
"
    );
    std::fs::write(&file, text).unwrap();
    let client = Client::builder()
        .config_file(&file)
        .env(Env::from_iter([("MY_KEY", "sk-from-env"), ("HART_NO_PROBE", "1")]))
        .home(dir.path().join("home"))
        .config(json!({"sandbox": {"memory_limit": null}, "models": [{"name": "a", "model": "n"}]}))
        .config(json!({"models": [{"name": "b", "use": "openai-compatible", "model": "o", "api_key": "k", "base_url": base}]}))
        .build()
        .unwrap();
    assert_eq!(client.chat("?").await.unwrap(), "from a");
    assert_eq!(server.last_request().model(), "n");
    assert_eq!(client.chat(Ask::new("?").model("b")).await.unwrap(), "from b");
    assert_eq!(server.last_request().model(), "o");
    let config = client.config();
    assert_eq!((config.log_level.as_str(), config.max_recursion_limit), ("warn", 7));
    assert_eq!(config.sandbox.bash_command_timeout.as_secs(), 30);
    let origin = |path| config.explain(path).unwrap().origin.to_string();
    assert_eq!(origin("sandbox.memory_limit"), "default");
    assert!(origin("log_level").contains("settings.yaml:1"));
    let names: Vec<String> = client.models().await.unwrap().into_iter().map(|model| model.name).collect();
    assert_eq!(names, ["a", "b", "demo"]);
    assert_eq!(client.model("b").await.unwrap().model, "o");
    let error = client.model("c").await.unwrap_err().to_string();
    assert!(error.contains("there is no model `c`; there is: a, b, demo"), "{error}");
}

#[tokio::test]
async fn a_given_model_goes_first_and_a_recording_is_never_an_answer_unasked() {
    let home = home();
    let client = bare(&home, texts(&["mine"])).build().unwrap();
    let models = client.models().await.unwrap();
    assert_eq!((models[0].name.as_str(), models[0].reason.as_str()), ("scripted", "given by the program"));
    let unasked = Client::builder().no_file().home(home.path()).build().unwrap();
    let error = unasked.chat("hello").await.unwrap_err();
    assert!(matches!(error, ClientError::NoModel) && error.to_string().contains("`model(…)`"), "{error}");
    let recorded = unasked.chat(Ask::new("hello").model("demo")).await.unwrap();
    assert!(recorded.contains("No model is connected"), "{recorded}");
}

#[test]
fn what_is_wrong_is_wrong_before_anything_runs_and_says_what_to_do() {
    struct Twice;
    impl Middleware for Twice {}
    fn no_file(home: &Path) -> ClientBuilder {
        Client::builder().no_file().home(home)
    }
    let dir = home();
    let at = dir.path();
    let table: Vec<(ClientBuilder, &str)> = vec![
        (Client::builder().no_file(), "give the builder a `home(…)`"),
        (Client::builder().config_file("/no/such/config.yaml"), "does not exist"),
        (no_file(at).config(json!({"sandbox": {"netwerk": "off"}})), "did you mean `network`?"),
        (no_file(at).config(json!({"max_recursion_limit": "many"})), "expected an integer"),
        (no_file(at).extra_middleware(Twice).extra_middleware(Twice), "two middlewares are called `Twice`"),
        (no_file(at).extra_middleware(Twice.before::<Titles>()), "`Titles`, which is not in the chain"),
        (no_file(at).tool(Typed::shared(AskHuman)).tool(Typed::shared(AskHuman)), "two tools are called"),
    ];
    for (builder, words) in table {
        let shown = format!("{builder:?}");
        let error = builder.build().unwrap_err();
        let mut chain = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(error) = source {
            chain = format!("{chain}: {error}");
            source = error.source();
        }
        assert!(chain.contains(words), "{shown}: {chain}");
    }
}

#[tokio::test]
async fn features_are_laid_over_what_the_configuration_says() {
    let home = home();
    let turns = || [write("c1", "a.txt", "2"), ScriptedTurn::text("done")];
    let model = scripted(turns().into_iter().chain(turns()));
    let off = json!({"read_before_write": {"enabled": false}});
    let (first, second) = (ThreadId::generate(), ThreadId::generate());
    let workspace = |thread: &ThreadId| {
        let folder = home.path().join(format!("users/default/threads/{thread}/user-data/workspace"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("a.txt"), "1").unwrap();
    };
    let result = |nth: usize| model.requests()[nth].messages.last().unwrap().text();
    let plain = bare(&home, model.clone()).config(off.clone()).build().unwrap();
    workspace(&first);
    plain.chat(Ask::new("go").thread(first)).await.unwrap();
    assert_eq!(result(1), "OK");
    let guarded = bare(&home, model.clone())
        .config(off)
        .features(|features| {
            features.read_before_write = true.into();
            features.title = false.into();
        })
        .extra_middleware(Titles.at(Slot::ModelLogical))
        .build()
        .unwrap();
    workspace(&second);
    guarded.chat(Ask::new("go").thread(second)).await.unwrap();
    assert!(result(3).contains("read_file"), "{}", result(3));
}
