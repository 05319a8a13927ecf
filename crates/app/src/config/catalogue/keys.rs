//! The rows of the catalogue.
//!
//! Invariant: a section of DeerFlow that hart does not use yet is a row with `used: false`, so that its files load.

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
    keys.extend(sandbox());
    keys.extend(calls());
    keys.extend(tool_output());
    keys.extend(guards());
    keys.extend(DEERFLOW_SANDBOX_KEYS.iter().map(|name| Key {
        path: Cow::Owned(format!("sandbox.{name}")),
        ..unused("", "A setting of DeerFlow's container sandbox.")
    }));
    keys.extend(DEERFLOW_SECTIONS.iter().map(|(name, doc)| unused(name, doc)));
    keys
}

/// Where commands run.
fn sandbox() -> Vec<Key> {
    vec![
        key("sandbox", Kind::Section, "{}", "Where commands run and files are kept."),
        key("sandbox.use", Kind::Text, "local", "The provider: `local`, or DeerFlow's class path of it."),
        key(
            "sandbox.allow_host_bash",
            Kind::Bool,
            "false",
            "Where isolation is unavailable, run commands unconfined instead of refusing them. Not a boundary.",
        ),
        key(
            "sandbox.bash_output_max_chars",
            AMOUNT,
            "20000",
            "How much of a command's output the model sees.",
        ),
        key(
            "sandbox.read_file_output_max_chars",
            AMOUNT,
            "50000",
            "How much of a file the model sees at once.",
        ),
        key("sandbox.ls_output_max_chars", AMOUNT, "20000", "How much of a listing the model sees."),
        key("sandbox.bash_command_timeout", Kind::Seconds, "600", "Seconds after which a command is ended."),
        key("sandbox.mounts", Kind::Sections, "[]", "More host directories that every thread sees."),
        key("sandbox.mounts[].host_path", Kind::Text, "", "The directory on the host, absolute."),
        key("sandbox.mounts[].container_path", Kind::Text, "", "Where it appears, for example /mnt/data."),
        key("sandbox.mounts[].read_only", Kind::Bool, "false", "Whether it can only be read."),
        key(
            "sandbox.environment",
            Kind::TextMap,
            "{}",
            "Variables every command gets; `$VAR` takes the value from the environment.",
        ),
        key(
            "sandbox.network",
            Kind::Any,
            "off",
            "What commands reach: `off`, `allow` (the host's network), or a list of hosts such as `*.example.org`.",
        ),
        key(
            "sandbox.memory_limit",
            Kind::Any,
            "half of the machine's",
            "Memory of one command and all it starts, such as `2g`; 0 is no limit.",
        ),
        key("sandbox.pids_limit", AMOUNT, "512", "Processes and threads of one command; 0 is no limit."),
        key("sandbox.cpus", Kind::Number, "0", "Processors' worth of time of one command; 0 is no limit."),
        key(
            "sandbox.disk_limit",
            Kind::Any,
            "8g",
            "What all files of a thread may take, such as `2g`; 0 is no limit.",
        ),
        key(
            "sandbox.disk_reserve",
            Kind::Any,
            "1g or a twentieth",
            "What must stay free on the disk of the threads' files; with less, nothing is written or run.",
        ),
        key("sandbox.run_as", AMOUNT, "65532", "The user id of commands where hart itself is root."),
    ]
}

/// How models are called, whichever it is.
fn calls() -> [Key; 13] {
    [
        key("llm_call", Kind::Section, "{}", "How models are called: how many at once, how often again."),
        key("llm_call.max_concurrent_calls", AMOUNT, "0", "Calls at once in the whole process; 0: no limit."),
        key(
            "llm_call.retry_max_attempts",
            COUNT,
            "3",
            "Attempts at a call that may succeed later; `max_retries` of a model goes before it.",
        ),
        key("llm_call.retry_base_delay_ms", AMOUNT, "1000", "The shortest pause before another attempt."),
        key("llm_call.retry_cap_delay_ms", AMOUNT, "8000", "The longest pause that no provider asked for."),
        key(
            "llm_call.burst_retry_base_delay_ms",
            AMOUNT,
            "5000",
            "The shortest pause after a provider said that requests come too fast.",
        ),
        key("circuit_breaker", Kind::Section, "{}", "Giving a model that keeps failing a rest."),
        key(
            "circuit_breaker.failure_threshold",
            AMOUNT,
            "5",
            "Failures in a row after which a model is not asked; 0: never.",
        ),
        key("circuit_breaker.recovery_timeout_sec", Kind::Seconds, "60", "How long it is not asked."),
        key("network", Kind::Section, "{}", "The way to models elsewhere; this machine is reached directly."),
        key(
            "network.proxy",
            Kind::Text,
            "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY",
            "The proxy for all models, `http://host:port`, or `none`.",
        ),
        key(
            "network.no_proxy",
            Kind::Text,
            "NO_PROXY",
            "Hosts to reach without the proxy, with commas between.",
        ),
        key("network.ca_file", Kind::Text, "", "A PEM file of certificates to trust beside the system's."),
    ]
}

/// What stands between a call and its tool.
fn guards() -> [Key; 5] {
    [
        key("read_before_write", Kind::Section, "{}", "Refusing to overwrite files that were not read."),
        key(
            "read_before_write.enabled",
            Kind::Bool,
            "true",
            "Whether write_file and str_replace refuse a file that was not read, or has changed since.",
        ),
        key("sandbox_audit", Kind::Section, "{}", "Looking at commands before they run."),
        key(
            "sandbox_audit.enabled",
            Kind::Bool,
            "true",
            "Whether dangerous commands are blocked or commented; each command gets a line in the log.",
        ),
        key(
            "sandbox_audit.log_file",
            Kind::Bool,
            "false",
            "Whether the lines are also kept in audit.jsonl in the data directory.",
        ),
    ]
}

fn tool_output() -> [Key; 11] {
    [
        key("tool_output", Kind::Section, "{}", "Moving long tool results into files."),
        key("tool_output.enabled", Kind::Bool, "true", "Whether long results are moved at all."),
        key(
            "tool_output.externalize_min_chars",
            COUNT,
            "12000",
            "From how many characters on a result goes into a file.",
        ),
        key("tool_output.preview_head_chars", AMOUNT, "2000", "How much of its beginning the model sees."),
        key("tool_output.preview_tail_chars", AMOUNT, "1000", "How much of its end the model sees."),
        key(
            "tool_output.fallback_max_chars",
            COUNT,
            "30000",
            "Where there is no file to be had: from how many characters on a result is cut.",
        ),
        key("tool_output.fallback_head_chars", AMOUNT, "8000", "What then stays of its beginning."),
        key("tool_output.fallback_tail_chars", AMOUNT, "3000", "What then stays of its end."),
        key(
            "tool_output.storage_subdir",
            Kind::Text,
            ".tool-results",
            "The folder of the files, in the outputs.",
        ),
        key(
            "tool_output.exempt_tools",
            Kind::Texts,
            "[read_file, bash]",
            "Tools whose results stay: these bound them themselves and say how to read on.",
        ),
        key(
            "tool_output.tool_overrides",
            Kind::Map,
            "{}",
            "Another externalize_min_chars for some tools, by name.",
        ),
    ]
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

const DEERFLOW_SANDBOX_KEYS: &[&str] = &[
    "image",
    "port",
    "replicas",
    "overflow_policy",
    "acquire_timeout",
    "burst_limit",
    "container_prefix",
    "idle_timeout",
    "health_check_skip_seconds",
    "ownership",
    "thread_data_mounts",
    "provisioner_url",
    "provisioner_api_key",
];

const DEERFLOW_SECTIONS: &[(&str, &str)] = &[
    ("logging", "Correlation of log lines with requests."),
    ("token_usage", "Counting tokens."),
    ("token_budget", "Limits of the tokens of a run."),
    ("tool_groups", "Names of groups of tools."),
    ("tool_search", "Finding tools on demand."),
    ("suggestions", "Follow-up questions."),
    ("input_polish", "Polishing what a user typed."),
    ("loop_detection", "Stopping an agent that repeats itself."),
    ("tool_progress", "Stopping tools that make no progress."),
    ("safety_finish_reason", "Answers cut by a provider's filter."),
    ("uploads", "Limits of uploaded files."),
    ("skills", "Where skills are found."),
    ("skill_scan", "Scanning skills before they are installed."),
    ("skill_evolution", "Letting the agent write skills."),
    ("title", "Titles of threads."),
    ("summarization", "Shortening long conversations."),
    ("memory", "What is remembered across threads."),
    ("agents_api", "Managing custom agents over HTTP."),
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
    ("guardrails", "Checking tool calls before they run."),
    ("authorization", "Who may do what."),
    ("subagents", "Agents that work for the agent."),
    ("acp_agents", "Agents reached over ACP."),
    ("auth", "Logging in."),
    ("plugins", "Python packages that extend DeerFlow."),
    ("extensions", "MCP servers and skills, inline."),
];
