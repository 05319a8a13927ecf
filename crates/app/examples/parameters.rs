//! No file at all: a model, a tool and a middleware of the program's own, and settings as JSON.
//!
//! `cargo run -p hart-app --example parameters`; the model is a script, so nothing else is needed.
#![allow(clippy::print_stdout, reason = "an example talks to whoever runs it")]

use std::sync::Arc;

use hart_app::agent::middleware::Sandbox;
use hart_app::kernel::{
    HookError, Middleware, PlaceExt, RunContext, ToolContext, ToolError, ToolNext, ToolOutcome, ToolOutput,
    ToolRequest, Typed, TypedTool,
};
use hart_app::models::{ScriptedModel, ScriptedTurn};
use hart_app::{Client, async_trait};
use serde_json::json;

/// A tool of the program's own.
struct Stock;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Item {
    /// What to look for.
    name: String,
}

#[async_trait]
impl TypedTool for Stock {
    const NAME: &'static str = "stock";
    const DESCRIPTION: &'static str = "How many of an item are in stock.";
    type Args = Item;

    async fn run(&self, _cx: &ToolContext<'_>, item: Item) -> Result<ToolOutput, ToolError> {
        match item.name.as_str() {
            "plums" => Ok("200".into()),
            other => Err(ToolError::Failed(format!("there is no item `{other}`; there is: plums"))),
        }
    }
}

/// A middleware of the program's own.
struct Narrator;

#[async_trait]
impl Middleware for Narrator {
    async fn wrap_tool_call(
        &self,
        _cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let name = request.call.name.clone();
        let outcome = next.run(request).await?;
        println!("{name}: {}", outcome.message.text());
        Ok(outcome)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = [
        ScriptedTurn::call("c1", "stock", json!({"name": "plum"})),
        ScriptedTurn::call("c2", "stock", json!({"name": "plums"})),
        ScriptedTurn::text("There are 200 plums."),
    ];
    let home = tempfile::tempdir()?;
    let client = Client::builder()
        .no_file()
        .home(home.path())
        .model(Arc::new(ScriptedModel::new(script)))
        .config(json!({"tools": [{"name": "read_file"}], "max_recursion_limit": 20}))
        .features(|features| features.sandbox_audit = false.into())
        .tool(Typed::shared(Stock))
        .extra_middleware(Narrator.after::<Sandbox>())
        .build()?;
    println!("{}", client.chat("How many plums do we have?").await?);
    client.close().await;
    Ok(())
}
