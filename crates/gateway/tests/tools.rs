//! The tools of the agent that LangGraph's server was recorded with.

use std::sync::Arc;

use hart_kernel::{
    Agent, AgentEvent, EventSink, Interrupt, RunContext, Tool, ToolContext, ToolError, ToolOutput, Typed,
    TypedTool, Update, async_trait,
};
use hart_models::ScriptedModel;
use hart_types::{Message, ThreadId, ToolCallId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

pub(crate) fn tools(model: &Arc<ScriptedModel>) -> [Arc<dyn Tool>; 4] {
    [
        Arc::new(Typed::new(GetWeather)),
        Arc::new(Typed::new(AskHuman)),
        Arc::new(Typed::new(Wait)),
        Arc::new(Typed::new(Task(Arc::clone(model)))),
    ]
}

struct GetWeather;

#[derive(Deserialize, JsonSchema)]
struct City {
    city: String,
}

#[async_trait]
impl TypedTool for GetWeather {
    const NAME: &'static str = "get_weather";
    const DESCRIPTION: &'static str = "Tells the weather.";
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
    const DESCRIPTION: &'static str = "Asks.";
    type Args = Question;

    async fn run(&self, cx: &ToolContext<'_>, args: Question) -> Result<ToolOutput, ToolError> {
        let answer = cx.interrupt(Interrupt::new(cx.call_id.as_str(), json!({"question": args.question})))?;
        Ok(format!("Human answered: {}", answer.as_str().unwrap_or_default()).into())
    }
}

/// Until its run is stopped.
struct Wait;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[async_trait]
impl TypedTool for Wait {
    const NAME: &'static str = "wait";
    const DESCRIPTION: &'static str = "Waits.";
    type Args = Nothing;

    async fn run(&self, cx: &ToolContext<'_>, _: Nothing) -> Result<ToolOutput, ToolError> {
        cx.run.cancel.cancelled().await;
        Ok("stopped".into())
    }
}

/// Runs another agent on the same model.
struct Task(Arc<ScriptedModel>);

#[derive(Deserialize, JsonSchema)]
struct Description {
    description: String,
}

#[async_trait]
impl TypedTool for Task {
    const NAME: &'static str = "task";
    const DESCRIPTION: &'static str = "Has it done.";
    type Args = Description;

    async fn run(&self, cx: &ToolContext<'_>, args: Description) -> Result<ToolOutput, ToolError> {
        let agent = Agent::builder(self.0.clone()).name("researcher").build().unwrap();
        let events = Arc::new(Inside { call_id: cx.call_id.clone(), outer: Arc::clone(&cx.run.events) });
        let child = RunContext::new(ThreadId::generate()).with_events(events);
        let report = agent.run(Update::none().messages(Message::human(args.description)), &child).await;
        Ok(report.answer().unwrap_or_default().into())
    }
}

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
