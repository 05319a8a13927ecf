//! What is run to death: the whole chain over real files and commands, a model that follows a plan, and tools whose
//! effects somebody outside counts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use hart_agent::compaction::{Clause, Size, SummarizationConfig, Triggers};
use hart_agent::middleware::{Sandbox, Summarization};
use hart_agent::{Features, SubagentsConfig, SuperAgent};
use hart_kernel::*;
use hart_runtime::recording::{Recordable, RecordingDeck, RecordingLimits};
use hart_runtime::*;
use hart_sandbox::{LocalSandboxProvider, SandboxConfig, SandboxProvider};
use hart_types::{Ai, Body, Message, ToolCall};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::cell::batches;
use super::fuse::Fuse;
use super::process::tell;
use crate::surrounded::Around as _;

pub(crate) struct Agents {
    pub(crate) home: PathBuf,
    pub(crate) oracle: u16,
    pub(crate) compact_at: usize,
    pub(crate) fuse: Arc<Fuse>,
}

#[async_trait]
impl AgentFactory for Agents {
    fn agents(&self) -> Vec<AgentInfo> {
        vec![AgentInfo { name: "agent".into(), description: None }]
    }

    async fn build(&self, request: &AgentRequest) -> Result<Agent, FactoryError> {
        self.reader(&request.agent, request.checkpointer.clone())
    }

    fn deck(&self, run: &Recordable<'_>) -> Option<Arc<dyn Deck>> {
        Some(Arc::new(RecordingDeck::new(run, RecordingLimits::default(), Arc::new(|_: &str| None))))
    }

    fn reader(&self, _: &str, checkpointer: Arc<dyn Checkpointer>) -> Result<Agent, FactoryError> {
        let provider = LocalSandboxProvider::new(SandboxConfig::default(), self.home.clone(), None).unwrap();
        let (provider, model): (Arc<dyn SandboxProvider>, Arc<dyn ChatModel>) =
            (Arc::new(provider), Arc::new(Planned));
        let trigger = Triggers(vec![Clause { messages: Some(self.compact_at), ..Clause::default() }]);
        let keep = Some(Size::Messages(4));
        let compaction =
            Summarization::new(SummarizationConfig { trigger, keep, ..SummarizationConfig::default() })
                .agent_model(Arc::clone(&model))
                .sandboxes(Some(Arc::clone(&provider)));
        let mut builder = SuperAgent::builder(model)
            .features(Features {
                summarization: compaction.into(),
                // The longest plan is one long repetition.
                loop_detection: false.into(),
                ..Features::default()
            })
            .delegates(true)
            .delegation(SubagentsConfig { max_total_per_run: 1000, ..SubagentsConfig::default() })
            .sandbox(Sandbox::new(provider, SandboxConfig::default()))
            .checkpointer(checkpointer);
        let effects = [
            ("notify", Effect::Once),
            ("put", Effect::Idempotent),
            ("peek", Effect::Pure),
            ("ask", Effect::Once),
        ];
        for (name, effect) in effects {
            let spec = ToolSpec {
                name: name.into(),
                description: "Does it.".into(),
                input_schema: json!({"type": "object", "properties": {"what": {"type": "string"}}}),
                effect,
            };
            let (oracle, fuse) = (self.oracle, Arc::clone(&self.fuse));
            builder = builder.tool(Arc::new(Outside { spec: Arc::new(spec), oracle, fuse }));
        }
        Ok(builder.build().unwrap())
    }
}

/// A tool that asks the oracle to do something.
struct Outside {
    spec: Arc<ToolSpec>,
    oracle: u16,
    fuse: Arc<Fuse>,
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
        let key = cx.effect.map_or_else(|| "-".to_owned(), |key| key.as_str().to_owned());
        let line = format!("{} {what} {key}\n", self.spec.name);
        self.fuse.around("effect", tell(self.oracle, line)).await;
        Ok(format!("{} {what}: done", self.spec.name).into())
    }
}

/// Does what the first message of the conversation says: a list of batches of calls, then an answer.
struct Planned;

#[async_trait]
impl ChatModel for Planned {
    fn profile(&self) -> &ModelProfile {
        static PROFILE: std::sync::LazyLock<ModelProfile> =
            std::sync::LazyLock::new(|| ModelProfile { name: "planned".into(), ..ModelProfile::default() });
        &PROFILE
    }

    async fn stream(&self, request: ChatRequest, _: &CancellationToken) -> Result<ChatStream, ModelError> {
        let told: Vec<String> = request.messages.iter().map(|message| message.text()).collect();
        let found = told.iter().find_map(|text| {
            let line = text.get(text.find("PLAN ")? + 5..)?.lines().next()?;
            Some((line, batches(line)?))
        });
        // What was said last tells where it is, also when what was said first is in a summary.
        let step =
            |text: &String| text.rsplit_once(" of the plan")?.0.rsplit_once("step ")?.1.parse::<usize>().ok();
        let done = told.iter().filter_map(step).max().map_or(0, |step| step + 1);
        let Some((line, plan)) = found else { return Ok(spoken("A title".into(), Vec::new())) };
        if request.system.as_ref().is_some_and(|system| system.starts_with("You take notes")) {
            let notes = format!("The task:\nPLAN {line}\nstep {} of the plan", done.saturating_sub(1));
            return Ok(spoken(notes, Vec::new()));
        }
        let Some(batch) = plan.get(done) else { return Ok(spoken("all is done".into(), Vec::new())) };
        let call = |(tool, args): &(String, Value)| {
            // As real providers do: a call that is asked for again has another id.
            let id = uuid::Uuid::now_v7().to_string();
            ToolCall::new(id, tool.as_str(), args.as_object().unwrap().clone())
        };
        Ok(spoken(format!("step {done} of the plan"), batch.iter().map(call).collect()))
    }
}

fn spoken(text: String, tool_calls: Vec<ToolCall>) -> ChatStream {
    let mut chunks: Vec<_> = text.split_inclusive(' ').map(|word| ChatChunk::Text(word.to_owned())).collect();
    chunks.push(ChatChunk::Done(Box::new(Message::new(Body::Ai(Ai { tool_calls, ..Ai::default() }), text))));
    Box::pin(stream::unfold(chunks.into_iter(), move |mut rest| async move {
        let chunk = rest.next()?;
        tokio::time::sleep(Duration::from_millis(2)).await;
        Some((Ok(chunk), rest))
    }))
}
