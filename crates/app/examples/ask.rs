//! All from the file: asks whatever `config.yaml` or the environment's keys lead to, and shows the work.
//!
//! `cargo run -p hart-app --example ask -- "What is 6 times 7?"`; with `HART_MODEL=demo` no model is needed.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to whoever runs it")]

use std::io::Write;

use futures_util::StreamExt;
use hart_app::{Ask, Client, Env, Event};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut ask =
        Ask::new(if words.is_empty() { hart_app::demo::TASKS[0].prompt.to_owned() } else { words.join(" ") });
    if let Some(model) = Env::from_process().get_non_empty("HART_MODEL") {
        ask = ask.model(model);
    }

    let client = Client::new()?;
    let mut events = client.stream(ask).await?;
    eprintln!("thread {}", events.thread());
    while let Some(event) = events.next().await {
        match event? {
            Event::Text { text, .. } => print!("{text}"),
            Event::ToolCalls { calls, .. } => {
                for call in calls {
                    eprintln!("\n> {}", call.name);
                }
            }
            Event::End(end) => eprintln!("\n{} tokens", end.usage.total_tokens),
            _ => {}
        }
        std::io::stdout().flush()?;
    }
    for artifact in client.artifacts(events.thread().clone()).await? {
        eprintln!("file: {}", artifact.location);
    }
    client.close().await;
    Ok(())
}
