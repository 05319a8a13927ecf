//! Calls that middlewares make on their own: on the run's account, and named in its totals.

use hart_agent::Features;
use hart_agent::middleware::{RunUsage, Title, TitleConfig};
use hart_kernel::{AgentEvent, Budget, EventSink, Limits, RunContext, RunReport, Update, async_trait};
use hart_testkit::{Dialect, ModelServer, Turn};
use hart_types::{Message, ThreadId, UsageMetadata};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

use crate::long_world::{LongWorld, Setting, is_summary, padding};
use crate::stage::Stage;
use crate::support::model;

/// What a listener adds up.
#[derive(Default)]
struct Heard(Mutex<UsageMetadata>);

#[async_trait]
impl EventSink for Heard {
    async fn emit(&self, event: AgentEvent) {
        let mut all = self.0.lock().unwrap();
        match event {
            AgentEvent::SideCall(call) => all.add(&call.usage),
            AgentEvent::MessageChunk(chunk) => {
                if let Some(usage) = chunk.as_ai().and_then(|ai| ai.usage.as_ref()) {
                    all.add(usage);
                }
            }
            _ => {}
        }
    }
}

async fn ask(stage: &Stage, limits: &Limits) -> (RunReport, u64, u64) {
    let heard = Arc::new(Heard::default());
    let budget = Budget::new(limits);
    let cx = RunContext::new(ThreadId::from("t1")).with_events(heard.clone()).with_budget(budget.clone());
    let report = stage.agent.run(Update::none().messages(Message::human("Name the seas.")), &cx).await;
    let heard = heard.0.lock().unwrap().total_tokens;
    (report, heard, budget.used().tokens)
}

async fn titled(titles: &ModelServer) -> Stage {
    let title = Title::new(TitleConfig::default()).with_model(model(titles, Dialect::Anthropic));
    let features = Features { title: title.into(), ..Features::default() };
    let turns = [Turn::new().text("The North Sea.").usage(1000, 50)];
    Stage::with(Dialect::OpenAi, turns, |_| {}, |builder| builder.features(features)).await
}

#[tokio::test]
async fn a_title_is_paid_for_by_the_run_that_got_it() {
    let titles = ModelServer::start().await;
    titles.push(Turn::new().text("Seas").usage(70, 3));
    let (report, heard, used) = ask(&titled(&titles).await, &Limits::default()).await;
    let values = report.values.to_json();
    assert_eq!(values["title"], "Seas");
    let usage = &values["token_usage"];
    assert_eq!((&usage["model_calls"], &usage["total_tokens"]), (&json!(2), &json!(1123)), "{usage}");
    assert_eq!(usage["by_caller"]["title"]["total_tokens"], 73);
    assert_eq!(usage["by_caller"]["lead"]["total_tokens"], 1050, "{usage}");
    assert_eq!((heard, used), (1123, 1123), "what was heard, and what was charged");
}

#[tokio::test]
async fn where_nothing_is_left_nothing_is_asked() {
    let titles = ModelServer::start().await;
    // The answer's worst case fits; beside what it took, a title's does not.
    let limits = Limits { model_calls: Some(1), ..Limits::default() };
    let (report, heard, used) = ask(&titled(&titles).await, &limits).await;
    report.outcome.as_ref().unwrap();
    assert_eq!(report.values.to_json()["title"], "Name the seas.");
    assert!(titles.requests().is_empty());
    assert_eq!((heard, used), (1050, 1050));
}

#[tokio::test]
async fn so_are_summaries() {
    let features =
        Features { token_usage: true.into(), budget: true.into(), ..crate::long_world::about_length() };
    let world = LongWorld::new(Setting { features, ..Setting::default() }, |request| {
        if is_summary(request) {
            return Turn::new().text("## Task\nTalk.").usage(5000, 40);
        }
        Turn::new().text("yes").usage(100, 1)
    })
    .await;
    let mut summed: Vec<Value> = Vec::new();
    for turn in 1..=40 {
        let report = world.ask(&padding(turn)).await;
        let usage = serde_json::to_value(report.state().get::<RunUsage>().unwrap()).unwrap();
        assert_eq!(usage["by_caller"]["lead"]["total_tokens"], 101);
        if !usage["by_caller"]["summarization"].is_null() {
            assert_eq!(usage["total_tokens"], 5141);
            summed.push(usage);
        }
    }
    assert_eq!(summed.len(), world.summaries().len());
    assert!(!summed.is_empty());
}
