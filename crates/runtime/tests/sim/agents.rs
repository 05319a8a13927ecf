//! A model that follows a plan and tools whose effects are written down outside of the machine.

use std::sync::{Arc, Mutex};

use futures_util::stream;
use hart_kernel::*;
use hart_runtime::recording::{Recordable, RecordingDeck, RecordingLimits};
use hart_runtime::*;
use hart_testkit::sim::{Machine, Process};
use hart_types::{Ai, Body, Message, ToolCall};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// What really happened, and under which key.
pub(super) type Book = Arc<Mutex<Vec<(String, String)>>>;

#[derive(Clone)]
pub(super) struct Agents {
    pub(super) machine: Machine,
    /// None for whoever only reads.
    pub(super) process: Option<Process>,
    pub(super) book: Book,
}

#[async_trait]
impl AgentFactory for Agents {
    fn agents(&self) -> Vec<AgentInfo> {
        vec![AgentInfo { name: "agent".into(), description: None }]
    }

    async fn build(&self, request: &AgentRequest) -> Result<Agent, FactoryError> {
        self.reader(&request.agent, request.checkpointer.clone())
    }

    fn reader(&self, _: &str, checkpointer: Arc<dyn Checkpointer>) -> Result<Agent, FactoryError> {
        let lead = Agent::builder(Arc::new(Planned(self.clone()))).tools(self.tools());
        let delegate: Arc<dyn Tool> = Arc::new(Delegate::new(self));
        Ok(lead.tools([delegate]).checkpointer(checkpointer).build().unwrap())
    }

    fn deck(&self, run: &Recordable<'_>) -> Option<Arc<dyn Deck>> {
        Some(Arc::new(RecordingDeck::new(run, RecordingLimits::default(), Arc::new(|_: &str| None))))
    }
}

impl Agents {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let effects = [
            ("notify", Effect::Once),
            ("put", Effect::Idempotent),
            ("peek", Effect::Pure),
            ("ask", Effect::Once),
        ];
        let tool = |(name, effect): (&str, Effect)| -> Arc<dyn Tool> {
            Arc::new(Outside { spec: spec(name, effect), with: self.clone() })
        };
        effects.map(tool).to_vec()
    }

    async fn pass(&self, what: &str) {
        if let Some(process) = &self.process {
            process.pass(what).await;
        }
    }
}

struct Outside {
    spec: Arc<ToolSpec>,
    with: Agents,
}

#[async_trait]
impl Tool for Outside {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn asks_first(&self) -> bool {
        self.spec.name == "ask"
    }

    async fn call(&self, cx: &ToolContext<'_>, args: Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let what = args["what"].as_str().unwrap().to_owned();
        if self.spec.name == "ask" {
            let answer = cx.interrupt(Interrupt::new(cx.call_id.as_str(), json!({"question": what})))?;
            return Ok(format!("answered: {}", answer.as_str().unwrap()).into());
        }
        let name = &self.spec.name;
        self.with.pass(&format!("{name} {what}")).await;
        let key = cx.effect.map_or_else(|| "-".to_owned(), |key| key.as_str().to_owned());
        self.with.book.lock().unwrap().push((format!("{name} {what}"), key));
        self.with.pass(&format!("{name} {what} is done")).await;
        // More than memory holds of a database before it writes.
        let much = if what.ends_with("much") { "much ".repeat(16_000) } else { String::new() };
        Ok(format!("{much}{name} {what}: done").into())
    }
}

fn spec(name: &str, effect: Effect) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.into(),
        description: "Does it.".into(),
        input_schema: json!({"type": "object", "properties": {"what": {"type": "string"}}}),
        effect,
    })
}

/// Has another agent follow a plan.
struct Delegate {
    spec: Arc<ToolSpec>,
    helper: Agent,
}

impl Delegate {
    fn new(with: &Agents) -> Self {
        let helper = Agent::builder(Arc::new(Planned(with.clone()))).name("helper").tools(with.tools());
        Self { spec: spec("delegate", Effect::Idempotent), helper: helper.build().unwrap() }
    }
}

#[async_trait]
impl Tool for Delegate {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    async fn call(&self, cx: &ToolContext<'_>, args: Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let child = match Child::enter(cx, &self.helper, &Limits::default()).await {
            Ok(child) => child,
            Err(error) => return Err(ToolError::Fatal(error.into())),
        };
        let plan = format!("PLAN {}", args["what"].as_str().unwrap());
        let report = child.run(Update::none().messages(Message::human(plan))).await;
        match (report.values.interrupts(), report.outcome) {
            ([], Ok(_)) => Ok(report.values.messages().last().unwrap().text().into()),
            (_, Err(error)) => Err(ToolError::Fatal(error.into())),
            (questions, Ok(_)) => Err(ToolError::Interrupts(questions.to_vec())),
        }
    }
}

/// Does what the last human message says, batch by batch, then says that it is done.
struct Planned(Agents);

#[async_trait]
impl ChatModel for Planned {
    fn profile(&self) -> &ModelProfile {
        static PROFILE: std::sync::LazyLock<ModelProfile> =
            std::sync::LazyLock::new(|| ModelProfile { name: "planned".into(), ..ModelProfile::default() });
        &PROFILE
    }

    async fn stream(&self, request: ChatRequest, _: &CancellationToken) -> Result<ChatStream, ModelError> {
        let messages: Vec<_> = request.messages.iter().collect();
        let asked = messages.iter().rposition(|message| matches!(message.body, Body::Human)).unwrap();
        let words = messages[asked].text();
        let plan: Vec<Vec<(String, String)>> =
            serde_json::from_str(words.strip_prefix("PLAN ").unwrap()).unwrap();
        let done = messages[asked..].iter().filter(|message| message.as_ai().is_some()).count();
        let Some(batch) = plan.get(done) else {
            return Ok(self.spoken("all is done".to_owned(), Vec::new()));
        };
        let called = self.0.machine.passed();
        let call = |(n, (tool, what)): (usize, &(String, String))| {
            let args = json!({"what": what}).as_object().unwrap().clone();
            // As real providers do: a call that is asked for again has another id.
            ToolCall::new(format!("call-{called}-{n}"), tool.as_str(), args)
        };
        let calls = batch.iter().enumerate().map(call).collect();
        Ok(self.spoken(format!("step {done} of the plan"), calls))
    }
}

impl Planned {
    fn spoken(&self, text: String, tool_calls: Vec<ToolCall>) -> ChatStream {
        let mut chunks: Vec<_> =
            text.split_inclusive(' ').map(|word| ChatChunk::Text(word.to_owned())).collect();
        let ai = Ai { tool_calls, ..Ai::default() };
        chunks.push(ChatChunk::Done(Box::new(Message::new(Body::Ai(ai), text))));
        let with = self.0.clone();
        Box::pin(stream::unfold((chunks.into_iter(), with), |(mut rest, with)| async move {
            let chunk = rest.next()?;
            with.pass("the model speaks").await;
            Some((Ok(chunk), (rest, with)))
        }))
    }
}
