//! Serves an agent of one's own: three tools, a model at any OpenAI-compatible address, LangGraph's API in front.
//!
//! `cargo run -p hart-app --example conformance_server -- --port 8123 --model-base-url http://127.0.0.1:9901/v1`
//! keeps its data in `HART_HOME` (or `.hart`) and prints its address when it is ready.
#![allow(clippy::print_stdout, reason = "the ready line is for whoever waits for it")]

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hart_app::kernel::{
    Agent, AgentEvent, ChatModel, EventSink, Interrupt, RunContext, Tool, ToolContext, ToolError, ToolOutput,
    Typed, TypedTool, Update, async_trait,
};
use hart_app::models::{self, ModelConfig, ModelEntry};
use hart_app::types::{Message, ThreadId, ToolCallId};
use hart_app::{CancellationToken, Env, Server};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::read()?;
    let model = args.model()?;
    let server = Server::builder(&args.home)
        .agent("agent", move |states| {
            let tools: [Arc<dyn Tool>; 3] = [
                Arc::new(Typed::new(GetWeather)),
                Arc::new(Typed::new(AskHuman)),
                Arc::new(Typed::new(Task { model: Arc::clone(&model) })),
            ];
            Agent::builder(Arc::clone(&model)).name("agent").tools(tools).checkpointer(states).build()
        })
        .about("Knows the weather and asks humans.")
        .port(args.port)
        .drain(Duration::from_secs(1))
        .bind()
        .await?;
    println!("{}", server.url());

    let stop = CancellationToken::new();
    let mut serving = std::pin::pin!(server.run(stop.clone()));
    tokio::select! {
        served = &mut serving => return Ok(served?),
        signal = tokio::signal::ctrl_c() => signal?,
    }
    stop.cancel();
    Ok(serving.await?)
}

struct GetWeather;

#[derive(Deserialize, JsonSchema)]
struct City {
    city: String,
}

#[async_trait]
impl TypedTool for GetWeather {
    const NAME: &'static str = "get_weather";
    const DESCRIPTION: &'static str = "Tells the weather of a city.";
    type Args = City;

    async fn run(&self, cx: &ToolContext<'_>, args: City) -> Result<ToolOutput, ToolError> {
        cx.run.emit(AgentEvent::Custom(json!({"type": "weather_progress", "city": args.city}))).await;
        Ok(format!("It is sunny in {}.", args.city).into())
    }
}

struct AskHuman;

#[derive(Deserialize, JsonSchema)]
struct Question {
    question: String,
}

#[async_trait]
impl TypedTool for AskHuman {
    const NAME: &'static str = "ask_human";
    const DESCRIPTION: &'static str = "Asks a human and waits for the answer.";
    type Args = Question;

    async fn run(&self, cx: &ToolContext<'_>, args: Question) -> Result<ToolOutput, ToolError> {
        let question = Interrupt::new(cx.call_id.as_str(), json!({"question": args.question}));
        let answer = cx.interrupt(question)?;
        let answer = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        Ok(format!("Human answered: {answer}").into())
    }
}

/// Gives a task to an agent of its own.
struct Task {
    model: Arc<dyn ChatModel>,
}

#[derive(Deserialize, JsonSchema)]
struct Description {
    description: String,
}

#[async_trait]
impl TypedTool for Task {
    const NAME: &'static str = "task";
    const DESCRIPTION: &'static str = "Has somebody else do it.";
    type Args = Description;

    async fn run(&self, cx: &ToolContext<'_>, args: Description) -> Result<ToolOutput, ToolError> {
        let agent = Agent::builder(Arc::clone(&self.model)).name("researcher").build();
        let agent = agent.map_err(|error| ToolError::Fatal(error.into()))?;
        let events = Arc::new(Inside { call_id: cx.call_id.clone(), outer: Arc::clone(&cx.run.events) });
        let child =
            RunContext::new(ThreadId::generate()).with_events(events).with_cancel(cx.run.cancel.clone());
        let report = agent.run(Update::none().messages(Message::human(args.description)), &child).await;
        match report.outcome {
            Ok(_) => Ok(report.answer().unwrap_or_default().into()),
            Err(error) => Err(ToolError::Failed(error.to_string())),
        }
    }
}

/// Passes on what the inner agent says, as something inside the call.
struct Inside {
    call_id: ToolCallId,
    outer: Arc<dyn EventSink>,
}

#[async_trait]
impl EventSink for Inside {
    async fn emit(&self, event: AgentEvent) {
        let (call_id, event) = (self.call_id.clone(), Box::new(event));
        self.outer.emit(AgentEvent::Child { call_id, agent: "researcher".into(), event }).await;
    }
}

struct Args {
    port: u16,
    base_url: String,
    home: PathBuf,
}

impl Args {
    fn read() -> Result<Self, Box<dyn Error>> {
        let home =
            Env::from_process().get_non_empty("HART_HOME").map_or_else(|| ".hart".into(), PathBuf::from);
        let mut args = Self { port: 8123, base_url: "http://127.0.0.1:9901/v1".to_owned(), home };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            match word.as_str() {
                "--port" => args.port = value.parse()?,
                "--model-base-url" => args.base_url = value,
                other => {
                    return Err(
                        format!("unknown option {other}; there is --port and --model-base-url").into()
                    );
                }
            }
        }
        Ok(args)
    }

    fn model(&self) -> Result<Arc<dyn ChatModel>, Box<dyn Error>> {
        let entry = ModelEntry {
            name: "mock-model".into(),
            provider: "openai-compatible".into(),
            model: "mock-model".into(),
            base_url: Some(self.base_url.clone()),
            api_key: Some("none".into()),
            // It hears every message by itself, also two in a row.
            capabilities: serde_json::from_value(json!({"single_system_message": false}))?,
            ..ModelEntry::default()
        };
        let config = ModelConfig::resolve(entry, &|_| None)?;
        Ok(models::build(&config, &models::http::client()?))
    }
}
