//! Subagents at the model's HTTP boundary: what they are given, what is heard of them, what becomes of them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hart_agent::approval::{InterruptOn, ToolReview};
use hart_agent::middleware::{HumanInTheLoop, RunUsage};
use hart_agent::{Delegations, Features, Status, Subagent, SubagentsConfig, SuperAgent, SuperAgentBuilder};
use hart_kernel::{
    Agent, AgentEvent, Ended, EventSink, HookError, Middleware, ModelNext, ModelRequest, ModelResponse,
    PlaceExt, Resume, RunContext, RunReport, Timestamp, Update, async_trait,
};
use hart_testkit::{Dialect, ModelServer, RecordedRequest, Turn};
use hart_types::{Message, ThreadId};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{MemoryLog, files, model, sandbox};

/// An agent that delegates, with a model that answers by who asks.
pub(crate) struct Office {
    pub(crate) server: ModelServer,
    pub(crate) agent: Agent,
    pub(crate) ears: Arc<Ears>,
    pub(crate) files: PathBuf,
    _home: TempDir,
}

impl Office {
    pub(crate) async fn new(
        answers: impl Fn(&RecordedRequest) -> Turn + Send + Sync + 'static,
        features: Features,
        more: impl FnOnce(SuperAgentBuilder) -> SuperAgentBuilder,
    ) -> Self {
        let server = ModelServer::with(answers).await;
        let home = tempfile::tempdir().unwrap();
        let builder = SuperAgent::builder(model(&server, Dialect::OpenAi))
            .features(Features { title: false.into(), ..features })
            .sandbox(sandbox(home.path()))
            .delegates(true)
            .checkpointer(Arc::new(MemoryLog::default()));
        let agent = more(builder).build().unwrap();
        Self { server, agent, ears: Arc::default(), files: files(home.path()), _home: home }
    }

    pub(crate) fn cx(&self) -> RunContext {
        RunContext::new(ThreadId::from("t1")).with_events(self.ears.clone())
    }

    pub(crate) async fn ask(&self, text: &str) -> RunReport {
        self.agent.run(Update::none().messages(Message::human(text)), &self.cx()).await
    }

    /// The custom events of this type, or of this beginning of one.
    pub(crate) fn told(&self, kind: &str) -> Vec<Value> {
        let heard = self.ears.0.lock().unwrap();
        let custom = heard.iter().filter_map(|event| match event {
            AgentEvent::Custom(data) => Some(data.clone()),
            _ => None,
        });
        custom.filter(|data| data["type"].as_str().is_some_and(|name| name.starts_with(kind))).collect()
    }

    /// What is said inside the call of this id, as its kind and the message's.
    fn inside(&self, task: &str) -> Vec<String> {
        let heard = self.ears.0.lock().unwrap();
        let events = heard.iter().filter_map(|event| match event {
            AgentEvent::Child { call_id, event, .. } if call_id.as_str() == task => Some(event.as_ref()),
            _ => None,
        });
        let messages = events.filter_map(|event| match event {
            AgentEvent::Message(message) => Some(format!("{}: {}", message.kind(), message.text())),
            _ => None,
        });
        messages.collect()
    }
}

#[derive(Default)]
pub(crate) struct Ears(Mutex<Vec<AgentEvent>>);

#[async_trait]
impl EventSink for Ears {
    async fn emit(&self, event: AgentEvent) {
        self.0.lock().unwrap().push(event);
    }
}

pub(crate) fn task(id: &str, prompt: &str) -> (String, Value) {
    (
        id.to_owned(),
        json!({"description": format!("do {id}"), "prompt": prompt, "subagent_type": "general-purpose"}),
    )
}

pub(crate) fn tasks(list: impl IntoIterator<Item = (String, Value)>) -> Turn {
    list.into_iter().fold(Turn::new(), |turn, (id, args)| turn.tool_call(id, "task", args))
}

/// The lead agent is the one that can delegate.
pub(crate) fn is_lead(request: &RecordedRequest) -> bool {
    request.tool_names().contains(&"task")
}

pub(crate) fn first_words(request: &RecordedRequest) -> String {
    request.texts_of("user").first().cloned().unwrap_or_default()
}

pub(crate) fn ledger(report: &RunReport) -> Vec<(String, Status)> {
    let entries = report.state().get::<Delegations>().cloned().unwrap_or_default();
    entries.into_iter().map(|entry| (entry.id.to_string(), entry.status)).collect()
}

fn reviewing(tool: &str) -> Features {
    let review = HumanInTheLoop::new(InterruptOn::default().tool(tool, ToolReview::new()));
    Features { human_in_the_loop: Some(review), ..Features::default() }
}

#[tokio::test]
async fn a_subagent_gets_its_task_alone_and_gives_back_its_report() {
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => tasks([task("a", "Write five to n.txt.")]).usage(100, 10),
        (true, _) => Turn::new().text("All done.").usage(200, 5),
        (false, 0) => {
            let args = json!({"path": "/mnt/user-data/workspace/n.txt", "content": "five"});
            Turn::new().text("On it.").tool_call("w", "write_file", args).usage(1000, 100)
        }
        (false, _) => Turn::new().text("n.txt has five in it.").usage(2000, 50),
    };
    let office = Office::new(answers, Features::default(), |builder| builder).await;
    let report = office.ask("Something the subagent must not hear of").await;
    assert_eq!(report.answer().as_deref(), Some("All done."));
    assert_eq!(std::fs::read_to_string(office.files.join("workspace/n.txt")).unwrap(), "five");

    let requests = office.server.requests();
    let child = requests.iter().find(|request| !is_lead(request)).unwrap();
    assert_eq!(child.texts_of("user"), ["Write five to n.txt."]);
    assert!(!String::from_utf8_lossy(&child.raw).contains("must not hear"));
    for never in ["task", "ask_clarification", "present_files", "list_uploaded_files"] {
        assert!(!child.tool_names().contains(&never), "{never}");
    }
    assert!(child.tool_names().contains(&"bash") && child.system().contains("You work for another agent"));
    let result = requests.last().unwrap().tool_result("a").unwrap();
    assert_eq!(result.content, "Task Succeeded. Result: n.txt has five in it.");

    let message =
        report.state().messages().iter().find(|message| message.as_tool_result().is_some()).unwrap();
    assert_eq!(message.additional_kwargs["subagent_status"], "completed");
    assert_eq!(message.additional_kwargs["subagent_result_brief"], "n.txt has five in it.");
    assert_eq!(ledger(&report), [("a".to_owned(), Status::Completed)]);
    let usage = report.state().get::<RunUsage>().unwrap();
    assert_eq!((usage.total.total_tokens, usage.total.model_calls), (110 + 205 + 1100 + 2050, 4));
    assert_eq!(usage.by_caller["subagent:general-purpose"].total_tokens, 3150);
}

#[tokio::test]
async fn what_a_subagent_does_is_told_while_it_does_it() {
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => tasks([task("a", "Look around.")]),
        (true, _) => Turn::new().text("Done."),
        (false, 0) => {
            Turn::new().text("Looking.").tool_call("l", "ls", json!({"path": "/mnt/user-data"})).usage(10, 1)
        }
        (false, _) => Turn::new().text("Nothing there.").usage(20, 2),
    };
    let office = Office::new(answers, Features::default(), |builder| builder).await;
    office.ask("go").await.outcome.unwrap();
    let told = office.told("task_");
    let kinds: Vec<&str> = told.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["task_started", "task_running", "task_running", "task_running", "task_completed"]);
    assert!(told.iter().all(|event| event["task_id"] == "a" && event["model_name"] == "test"));
    assert_eq!(told[0]["description"], "do a");
    let indexes: Vec<_> = told[1..4].iter().map(|event| &event["message_index"]).collect();
    assert_eq!(indexes, [&json!(1), &json!(2), &json!(3)]);
    assert_eq!((&told[2]["message"]["type"], &told[2]["message"]["name"]), (&json!("tool"), &json!("ls")));
    assert_eq!(
        (&told[1]["message"]["type"], &told[1]["message"]["content"]),
        (&json!("ai"), &json!("Looking."))
    );
    assert_eq!(told[4]["result"], "Nothing there.");
    assert!(told[0]["started_at"].as_str().is_some_and(|at| at.parse::<Timestamp>().is_ok()), "{}", told[0]);
    assert!(told[4]["duration_ms"].is_u64(), "{}", told[4]);
    assert_eq!(told[4]["usage"], json!({"input_tokens": 30, "output_tokens": 3, "total_tokens": 33}));
    let inside = office.inside("a");
    assert_eq!(
        (inside.first().unwrap().as_str(), inside.last().unwrap().as_str()),
        ("human: Look around.", "ai: Nothing there.")
    );
}

/// Three at once: one is in time, one is not, one asks.
fn three(request: &RecordedRequest) -> Turn {
    let write = |name: &str| json!({"path": format!("/mnt/user-data/workspace/{name}"), "content": name});
    match (is_lead(request), first_words(request).as_str(), request.tool_results().len()) {
        (true, _, 0) => tasks([task("quick", "be quick"), slow("slow"), task("asks", "ask first")]),
        (true, ..) => Turn::new().text("Two reports and a half."),
        (_, "be quick", _) => Turn::new().text("Quick."),
        (_, "be slow", 0) => {
            Turn::new().text("I begin.").tool_call("l", "ls", json!({"path": "/mnt/user-data"}))
        }
        (_, "be slow", _) => Turn::hang(),
        (_, _, 0) => Turn::new().tool_call("w", "write_file", write("asked.txt")),
        _ => Turn::new().text("Written as you said."),
    }
}

fn slow(id: &str) -> (String, Value) {
    (id.to_owned(), json!({"description": "do slowly", "prompt": "be slow", "subagent_type": "sloth"}))
}

fn sloth(builder: SuperAgentBuilder) -> SuperAgentBuilder {
    let sloth = Subagent::builder("sloth", "Takes its time.").timeout(Duration::from_secs(3)).build();
    builder.subagent(sloth.unwrap())
}

#[tokio::test]
async fn of_three_at_once_one_succeeds_one_times_out_and_one_asks() {
    let office = Office::new(three, reviewing("write_file"), sloth).await;
    let report = office.ask("go").await;
    assert_eq!(report.outcome.as_ref().unwrap(), &Ended::Paused);
    let [question] = report.values.interrupts() else { panic!("one question") };
    assert_eq!(question.value["action_requests"][0]["name"], "write_file");
    assert!(!office.files.join("workspace/asked.txt").exists());
    let mut ends: Vec<(String, String)> = ["completed", "failed", "timed_out", "cancelled"]
        .iter()
        .flat_map(|end| office.told(&format!("task_{end}")))
        .map(|event| {
            (event["task_id"].as_str().unwrap().to_owned(), event["type"].as_str().unwrap().to_owned())
        })
        .collect();
    ends.sort();
    assert_eq!(
        ends,
        [("quick".to_owned(), "task_completed".to_owned()), ("slow".to_owned(), "task_timed_out".to_owned())]
    );

    let before = office.server.requests().len();
    let answer = json!({"decisions": [{"type": "approve"}]});
    let report = office.agent.run(Resume::One(answer), &office.cx()).await;
    assert_eq!(report.answer().as_deref(), Some("Two reports and a half."));
    assert_eq!(std::fs::read_to_string(office.files.join("workspace/asked.txt")).unwrap(), "asked.txt");
    assert_eq!(office.server.requests().len(), before + 2, "only the one that asked, and the lead");
    let last = office.server.last_request();
    let result = |id: &str| last.tool_result(id).unwrap().content;
    assert_eq!(result("quick"), "Task Succeeded. Result: Quick.");
    assert!(
        result("slow").starts_with("Task timed out. Error: its time of 3s was over"),
        "{}",
        result("slow")
    );
    assert!(result("slow").ends_with("The last it said: I begin."), "{}", result("slow"));
    assert_eq!(result("asks"), "Task Succeeded. Result: Written as you said.");
    let mut ledger = ledger(&report);
    ledger.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [("asks", Status::Completed), ("quick", Status::Completed), ("slow", Status::TimedOut)];
    assert_eq!(ledger, expected.map(|(id, status)| (id.to_owned(), status)));
    assert_eq!(office.told("task_started").len(), 3, "nobody starts twice");
}

#[tokio::test]
async fn what_is_wrong_with_a_delegation_is_told_with_what_would_be_right() {
    let wrong = [
        json!({"description": "d", "prompt": "p", "subagent_type": "wizard"}),
        json!({"description": "d", "prompt": "p"}),
        json!({"description": " ", "prompt": "", "subagent_type": "bash"}),
        json!({"description": "d", "prompt": "p", "subagent_type": "bash", "max_turns": "many"}),
    ];
    let answers = move |request: &RecordedRequest| match request.tool_results().len() {
        0 => tasks(wrong.iter().enumerate().map(|(n, args)| (format!("c{n}"), args.clone()))),
        _ => Turn::new().text("I see."),
    };
    let config = SubagentsConfig { max_concurrent: 4, ..SubagentsConfig::default() };
    let office = Office::new(answers, Features::default(), |builder| builder.delegation(config)).await;
    office.ask("go").await.outcome.unwrap();
    let last = office.server.last_request();
    let says = [
        "there is no subagent `wizard`; choose one of: general-purpose, bash",
        "`subagent_type` is missing",
        "`prompt` is empty",
        "invalid type",
    ];
    for (n, says) in says.iter().enumerate() {
        let result = last.tool_result(&format!("c{n}")).unwrap().content;
        assert!(result.contains(says), "{result}");
    }
    assert!(office.told("task_").is_empty() && office.server.requests().len() == 2, "nobody was sent");
}

#[tokio::test]
async fn what_was_delegated_outlasts_the_conversation_it_was_in() {
    let answers = |request: &RecordedRequest| match (request.tool_names().is_empty(), is_lead(request)) {
        (true, _) => Turn::new().text("They talked."),
        (_, false) => Turn::new().text("The treasure is <under> the oak."),
        (_, true) if request.texts_of("user").len() == 1 && request.tool_results().is_empty() => {
            tasks([task("a", "look everywhere")])
        }
        _ => Turn::new().text("Well."),
    };
    let office = Office::new(answers, Features::default(), |builder| builder).await;
    // Long enough that a summary is shorter.
    let long = "please ".repeat(1000);
    office.ask(&format!("find it {long}")).await.outcome.unwrap();
    for question in ["and then?", "why?", "really?", "so?", "when?"] {
        office.ask(&format!("{question} {long}")).await.outcome.unwrap();
    }
    let input = json!({"compact": {"keep": {"messages": 4}}});
    let update = office.agent.input(input.as_object().unwrap().clone()).unwrap();
    office.agent.run(update, &office.cx()).await.outcome.unwrap();
    assert!(office.told("context_not_compacted").is_empty(), "{:?}", office.told("context_not_compacted"));

    office.ask("where was it?").await.outcome.unwrap();
    let request = office.server.last_request();
    assert_eq!(request.tool_result("a"), None, "it was summed up");
    let reminders = |request: &RecordedRequest| -> Vec<(usize, String)> {
        let texts = request.messages().iter().map(|message| message["content"].to_string()).enumerate();
        texts.filter(|(_, text)| text.contains("What was delegated earlier")).collect()
    };
    let [(place, text)] = &reminders(&request)[..] else {
        panic!("one reminder in {:?}", request.messages())
    };
    assert!(
        text.contains("- [completed] do a (general-purpose): The treasure is &lt;under&gt; the oak."),
        "{text}"
    );

    // It stays where it is, so that what came before it is still cached.
    office.ask("thank you").await.outcome.unwrap();
    let again = reminders(&office.server.last_request());
    assert_eq!(again, [(*place, text.clone())]);
}

/// Counts the calls of every model.
#[derive(Clone, Debug, Default)]
struct Counting(Arc<Mutex<usize>>);

#[async_trait]
impl Middleware for Counting {
    async fn wrap_model_call(
        &self,
        _cx: &RunContext,
        request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        *self.0.lock().unwrap() += 1;
        next.run(request).await
    }
}

#[tokio::test]
async fn a_middleware_is_the_leads_alone_unless_it_is_for_all() {
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => tasks([task("a", "look")]),
        _ => Turn::new().text("done"),
    };
    let (own, everyones) = (Counting::default(), Counting::default());
    let more = |builder: SuperAgentBuilder| builder.with(own.clone());
    let office = Office::new(answers, Features::default(), more).await;
    office.ask("go").await.outcome.unwrap();
    assert_eq!((*own.0.lock().unwrap(), office.server.requests().len()), (2, 3));
    let more = |builder: SuperAgentBuilder| builder.with_everywhere(everyones.clone());
    let office = Office::new(answers, Features::default(), more).await;
    office.ask("go").await.outcome.unwrap();
    assert_eq!(*everyones.0.lock().unwrap(), 3);
    // Next to something that subagents do not have.
    let model = model(&office.server, Dialect::OpenAi);
    let placed = Counting::default().after::<hart_agent::middleware::DynamicContext>();
    let refused = SuperAgent::builder(model).delegates(true).with_everywhere(placed).build().unwrap_err();
    assert!(refused.to_string().contains("DynamicContext"), "{refused}");
}

#[tokio::test]
async fn a_subagent_is_told_what_the_place_has() {
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => tasks([task("a", "look")]),
        _ => Turn::new().text("done"),
    };
    let office = Office::new(answers, Features::default(), |builder| builder).await;
    office.ask("go").await.outcome.unwrap();
    let requests = office.server.requests();
    let sent = requests.iter().find(|request| !is_lead(request)).unwrap().system();
    assert!(sent.contains("- `/large_tool_results`, `/conversation_history`: "), "{sent}");
    assert!(!sent.contains("/mnt/skills"), "{sent}");
}
