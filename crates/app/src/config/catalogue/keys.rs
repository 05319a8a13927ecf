//! The rows of the catalogue.
//!
//! Invariant: a section of DeerFlow that hart does not use yet is a row with `used: false`, so that its files load.

mod bounds;
mod calls;
mod consent;
mod content;
mod context;
mod recording;
mod sandbox;
mod server;
mod skills;
mod subagents;
mod tools;

use std::borrow::Cow;

use super::{Key, Kind};

const SINCE: &str = "0.1";
const COUNT: Kind = Kind::Int { min: 1, max: u32::MAX as i64 };
/// From zero, for what may be switched off or is an amount.
const AMOUNT: Kind = Kind::Int { min: 0, max: u32::MAX as i64 };

pub(super) fn own() -> Vec<Key> {
    let mut keys = vec![
        key(
            "config_version",
            Kind::Int { min: i64::MIN, max: i64::MAX },
            "",
            "The version of DeerFlow's example that the file follows; read, not needed.",
        ),
        key(
            "log_level",
            Kind::Choice(&["trace", "debug", "info", "warn", "warning", "error", "critical"]),
            "info",
            "How much is logged.",
        ),
        key("max_recursion_limit", COUNT, "1000", "The most steps a run may ask for."),
        key("models", Kind::Sections, "[]", "The models to choose from; the first is the default."),
        key("models[].pricing.currency", Kind::Text, "", "The currency of the prices."),
        key("models[].pricing.input_per_million", Kind::Number, "", "Price of a million tokens read."),
        key("models[].pricing.output_per_million", Kind::Number, "", "Price of a million tokens written."),
        key(
            "models[].pricing.input_cache_hit_per_million",
            Kind::Number,
            "",
            "Price of a million tokens read from the cache.",
        ),
        key(
            "tools",
            Kind::Sections,
            "all built-in tools",
            "Which built-in tools an agent has; without the section, all of them.",
        ),
        key(
            "tools[].name",
            Kind::Text,
            "",
            "bash, ls, glob, grep, read_file, write_file, str_replace or delete.",
        ),
        key("tools[].group", Kind::Text, "", "DeerFlow's group of the tool; read, not needed."),
        key(
            "tools[].use",
            Kind::Text,
            "",
            "DeerFlow's path of the tool, such as deerflow.sandbox.tools:bash_tool.",
        ),
    ];
    keys.extend(sandbox::sandbox());
    keys.extend(calls::calls());
    keys.extend(tools::tool_output());
    keys.extend(tools::guards());
    keys.extend(consent::consent());
    keys.extend(context::keys());
    keys.extend(bounds::keys());
    keys.extend(content::keys());
    keys.extend(subagents::keys());
    keys.extend(server::keys());
    keys.extend(recording::keys());
    keys.extend(skills::keys());
    keys.extend(sandbox::DEERFLOW_SANDBOX_KEYS.iter().map(|name| Key {
        path: Cow::Owned(format!("sandbox.{name}")),
        ..unused("", "A setting of DeerFlow's container sandbox.")
    }));
    keys.extend(DEERFLOW_SECTIONS.iter().map(|(name, doc)| unused(name, doc)));
    keys
}

const fn key(path: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key { path: Cow::Borrowed(path), kind, default, doc, since: SINCE, used: true }
}

const fn unused(path: &'static str, doc: &'static str) -> Key {
    Key { path: Cow::Borrowed(path), kind: Kind::Any, default: "", doc, since: SINCE, used: false }
}

/// The types of the keys that `hart_models` documents.
pub(super) fn model_kind(name: &str) -> Kind {
    match name {
        "name" | "use" | "model" | "display_name" | "description" | "api_key" | "base_url"
        | "service_tier" | "proxy" | "ca_file" => Kind::Text,
        "max_tokens" | "max_completion_tokens" | "context_window" | "top_k" => COUNT,
        "max_retries" | "max_concurrent_calls" | "requests_per_minute" | "tokens_per_minute" => AMOUNT,
        "seed" => Kind::Int { min: i64::MIN, max: i64::MAX },
        "temperature"
        | "timeout"
        | "stream_chunk_timeout"
        | "connect_timeout"
        | "total_timeout"
        | "top_p"
        | "frequency_penalty"
        | "presence_penalty" => Kind::Number,
        "supports_thinking"
        | "supports_reasoning_effort"
        | "supports_vision"
        | "send_reasoning"
        | "use_responses_api"
        | "parallel_tool_calls" => Kind::Bool,
        "when_thinking_enabled"
        | "when_thinking_disabled"
        | "thinking"
        | "capabilities"
        | "extra_body"
        | "model_kwargs"
        | "default_headers"
        | "reasoning"
        | "logit_bias"
        | "chat_template_kwargs" => Kind::Map,
        "max_tokens_key" => Kind::Choice(&["max_tokens", "max_completion_tokens"]),
        "pricing" => Kind::Section,
        "fallbacks" => Kind::Texts,
        _ => Kind::Any,
    }
}

/// Options that DeerFlow hands to LangChain's constructors and that change nothing for a native client.
pub(crate) const DEERFLOW_MODEL_KEYS: &[&str] = &["output_version", "streaming", "stream_usage", "verbose"];

const DEERFLOW_SECTIONS: &[(&str, &str)] = &[
    ("logging", "Correlation of log lines with requests."),
    ("tool_groups", "Names of groups of tools."),
    ("tool_search", "Finding tools on demand."),
    ("tool_progress", "Stopping tools that make no progress."),
    ("memory", "What is remembered across threads."),
    ("database", "Where runs and threads are stored."),
    ("checkpointer", "The older name of `database`."),
    ("run_events", "Where events of runs are stored."),
    ("agent_storage", "Where custom agents are stored."),
    ("scheduler", "Runs at set times."),
    ("mcp_tasks", "Long-running tasks of MCP servers."),
    ("run_ownership", "Which node owns a run."),
    ("stream_bridge", "How events reach readers."),
    ("dedupe_storage", "Where received messages are remembered."),
    ("channel_connections", "Accounts of chat platforms."),
    ("channels", "Chat platforms."),
    ("authorization", "Who may do what."),
    ("acp_agents", "Agents reached over ACP."),
    ("auth", "Logging in."),
    ("plugins", "Python packages that extend DeerFlow."),
    ("extensions", "MCP servers and skills, inline."),
];
