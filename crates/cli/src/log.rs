//! What the program says about itself, on stderr.
//!
//! Invariant: without being asked to, it says nothing on a terminal but what went wrong.

use hart_app::Env;
use hart_app::config::LogLevel;
use tracing_subscriber::EnvFilter;

use crate::terminal::{Notes, Terminal};

/// Starts the log; a later call changes nothing.
pub(crate) fn start(terminal: &Terminal, env: &Env, verbose: u8, configured: LogLevel) {
    let asked = env.get_non_empty("HART_LOG").or_else(|| env.get_non_empty("RUST_LOG"));
    let (directives, complaint) = match asked.map(|text| (text, EnvFilter::try_new(text))) {
        Some((_, Ok(filter))) => (filter, None),
        Some((text, Err(error))) => {
            (default(terminal, verbose, configured), Some(format!("`{text}`: {error}")))
        }
        None => (default(terminal, verbose, configured), None),
    };
    let notes = Notes(terminal.clone());
    let log = tracing_subscriber::fmt().with_env_filter(directives).with_writer(move || notes.clone());
    let started = match is_for_machines(env) {
        // With times, and with the ids of requests and runs.
        true => log.json().flatten_event(true).with_current_span(false).with_span_list(true).try_init(),
        false => log.with_ansi(terminal.err.is_colored()).with_target(false).without_time().try_init(),
    };
    if let (Ok(()), Some(complaint)) = (started, complaint) {
        tracing::warn!("HART_LOG or RUST_LOG is not understood: {complaint}");
    }
}

/// Whether each line of it is to be a JSON object.
pub(crate) fn is_for_machines(env: &Env) -> bool {
    env.get_non_empty("HART_LOG_FORMAT") == Some("json")
}

fn default(terminal: &Terminal, verbose: u8, configured: LogLevel) -> EnvFilter {
    let level = match verbose {
        0 if terminal.err.live => configured.min(LogLevel::Warn),
        0 => configured,
        1 => LogLevel::Info.max(configured),
        2 => LogLevel::Debug,
        _ => LogLevel::Trace,
    };
    // What the libraries below say is rarely about the task.
    EnvFilter::new(match level {
        LogLevel::Error | LogLevel::Warn => level.to_string(),
        level => format!("warn,{}", OURS.map(|target| format!("{target}={level}")).join(",")),
    })
}

const OURS: [&str; 11] = [
    "hart",
    "hart_app",
    "hart_agent",
    "hart_gateway",
    "hart_runtime",
    "hart_store",
    "hart_kernel",
    "hart_models",
    "hart_sandbox",
    "hart_tools",
    "hart_types",
];
