//! What a subagent costs by itself: one that is asked once and says one word, alone and sixty-four at a time.
//!
//! Invariant: the model answers at once and nothing is written down, so what is measured is hart's own; the floor is the
//! same calls of a tool that does nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::stream;
use hart_agent::{Features, SubagentsConfig, SuperAgent};
use hart_kernel::{
    Agent, AgentEvent, ChatChunk, ChatModel, ChatRequest, ChatStream, EventSink, ModelError, ModelProfile,
    RunContext, ToolContext, ToolError, ToolOutput, Typed, TypedTool, Update, async_trait,
};
use hart_types::{Ai, Body, Message, ThreadId, ToolCall};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{Row, median};

const ALONE: usize = 200;
const TOGETHER: usize = 64;
const RUNS: usize = 5;

pub async fn measure() -> anyhow::Result<Vec<Row>> {
    let (mut child, mut tool, mut together, mut first) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let ears = Arc::new(Ears::default());
        child.push(timed("task", 1, ALONE, &ears).await? / ALONE as f64);
        first.push(median(ears.delays()));
        tool.push(timed("nothing", 1, ALONE, &Arc::new(Ears::default())).await? / ALONE as f64);
        together.push(timed("task", TOGETHER, 1, &Arc::new(Ears::default())).await?);
    }
    let (child, tool) = (median(child), median(tool));
    let bytes = held().await?;
    Ok(vec![
        Row {
            measure: "a subagent that does nothing, over its model's own time".to_owned(),
            hart: format!("{:.3} ms", child - tool),
            floor: format!("{tool:.3} ms (a turn with a tool that does nothing)"),
            target: "≤ 1 ms",
        },
        Row {
            measure: "from the call to its first event, median".to_owned(),
            hart: format!("{:.3} ms", median(first)),
            floor: String::new(),
            target: "≤ 5 ms",
        },
        Row {
            measure: format!("{TOGETHER} subagents of one answer, all in all"),
            hart: format!("{:.1} ms", median(together)),
            floor: String::new(),
            target: "",
        },
        Row {
            measure: "memory of one that waits for its model".to_owned(),
            hart: format!("{:.0} kB", bytes / 1024.0),
            floor: String::new(),
            target: "≤ 100 kB",
        },
    ])
}

fn agent(model: Arc<Cast>) -> anyhow::Result<Agent> {
    let many = u32::try_from(ALONE.max(TOGETHER))?;
    let config =
        SubagentsConfig { max_concurrent: many, max_total_per_run: many, ..SubagentsConfig::default() };
    let features = Features { title: false.into(), loop_detection: false.into(), ..Features::default() };
    let builder = SuperAgent::builder(model).features(features).delegates(true).delegation(config);
    Ok(builder.tool(Typed::shared(Nothing)).build()?)
}

/// Milliseconds of a run with `turns` answers of `width` calls each.
async fn timed(tool: &'static str, width: usize, turns: usize, ears: &Arc<Ears>) -> anyhow::Result<f64> {
    let agent = agent(Arc::new(Cast::new(tool, width, turns)))?;
    let cx = RunContext::new(ThreadId::from("bench")).with_events(Arc::clone(ears) as Arc<dyn EventSink>);
    let began = Instant::now();
    agent.run(Update::none().messages(Message::human("go")), &cx).await.outcome?;
    Ok(began.elapsed().as_secs_f64() * 1000.0)
}

/// Bytes of each of those that wait, by what the process has more than before.
async fn held() -> anyhow::Result<f64> {
    let cast = Arc::new(Cast { hang: true, ..Cast::new("task", 32, 1) });
    let agent = agent(Arc::clone(&cast))?;
    let cx = RunContext::new(ThreadId::from("bench"));
    let cancel = cx.cancel.clone();
    let before = resident()?;
    let asked = Update::none().messages(Message::human("go"));
    let (_, grown) = tokio::join!(agent.run(asked, &cx), async {
        while cast.waiting.load(Ordering::SeqCst) < 32 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let grown = resident();
        cancel.cancel();
        grown
    });
    Ok((grown? - before).max(0.0) / 32.0)
}

fn resident() -> anyhow::Result<f64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes: f64 = line.and_then(|line| line.split_whitespace().next()).unwrap_or("0").parse()?;
    Ok(kilobytes * 1024.0)
}

/// The lead's model and its subagents'.
struct Cast {
    tool: &'static str,
    width: usize,
    turns: usize,
    hang: bool,
    asked: AtomicU64,
    waiting: AtomicU64,
}

impl Cast {
    fn new(tool: &'static str, width: usize, turns: usize) -> Self {
        Self { tool, width, turns, hang: false, asked: AtomicU64::new(0), waiting: AtomicU64::new(0) }
    }

    fn calls(&self, turn: u64) -> Message {
        let args = json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose"});
        let args = args.as_object().cloned().unwrap_or_default();
        let call = |n: usize| ToolCall::new(format!("c{turn}_{n}"), self.tool, args.clone());
        let ai = Ai { tool_calls: (0..self.width).map(call).collect(), ..Ai::default() };
        Message::new(Body::Ai(ai), "")
    }
}

#[async_trait]
impl ChatModel for Cast {
    fn profile(&self) -> &ModelProfile {
        static PROFILE: std::sync::LazyLock<ModelProfile> =
            std::sync::LazyLock::new(|| ModelProfile { name: "cast".to_owned(), ..ModelProfile::default() });
        &PROFILE
    }

    async fn stream(
        &self,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        let message = if request.caller.starts_with("subagent:") {
            if self.hang {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                cancel.cancelled().await;
                return Err(ModelError::cancelled());
            }
            Message::ai("Done.")
        } else {
            match self.asked.fetch_add(1, Ordering::SeqCst) {
                turn if (turn as usize) < self.turns => self.calls(turn),
                _ => Message::ai("All done."),
            }
        };
        let text = ChatChunk::Text(message.text());
        Ok(Box::pin(stream::iter([Ok(text), Ok(ChatChunk::Done(Box::new(message)))])))
    }
}

struct Nothing;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Anything {}

#[async_trait]
impl TypedTool for Nothing {
    const NAME: &'static str = "nothing";
    const DESCRIPTION: &'static str = "Does nothing.";
    type Args = Anything;

    async fn run(&self, _: &ToolContext<'_>, _: Anything) -> Result<ToolOutput, ToolError> {
        Ok("".into())
    }
}

/// How long it takes from a call to the first word inside of it.
#[derive(Default)]
struct Ears(Mutex<(Option<Instant>, Vec<f64>)>);

impl Ears {
    fn delays(&self) -> Vec<f64> {
        self.0.lock().map(|heard| heard.1.clone()).unwrap_or_default()
    }
}

#[async_trait]
impl EventSink for Ears {
    async fn emit(&self, event: AgentEvent) {
        let Ok(mut heard) = self.0.lock() else { return };
        match event {
            AgentEvent::ToolStarted(_) => heard.0 = Some(Instant::now()),
            AgentEvent::Child { .. } => {
                if let Some(began) = heard.0.take() {
                    heard.1.push(began.elapsed().as_secs_f64() * 1000.0);
                }
            }
            _ => {}
        }
    }
}
