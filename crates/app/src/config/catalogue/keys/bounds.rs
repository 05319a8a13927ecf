//! The keys of what keeps a run within bounds and mends what goes wrong in it.
//!
//! Invariant: the defaults told here are those of the types that are read.

use super::{AMOUNT, COUNT, Key, Kind, key, unused};

pub(super) fn keys() -> Vec<Key> {
    let mut keys = spending().to_vec();
    keys.extend(repetition());
    keys.extend(failures());
    keys
}

const ON_LIMIT: Kind = Kind::Choice(&["pause", "end"]);
const EXIT: Kind = Kind::Choice(&["continue", "end", "error"]);

fn spending() -> [Key; 16] {
    [
        key("token_usage", Kind::Section, "{}", "Adding up the tokens and the cost of a run."),
        key("token_usage.enabled", Kind::Bool, "true", "Whether the totals are kept in the thread."),
        key("token_budget", Kind::Section, "{}", "How many tokens a run may take."),
        key("token_budget.enabled", Kind::Bool, "false", "Whether these limits hold."),
        key("token_budget.max_tokens", COUNT, "200000", "Tokens of a run, read and written."),
        key("token_budget.max_input_tokens", COUNT, "", "Tokens it may read."),
        key("token_budget.max_output_tokens", COUNT, "", "Tokens it may write."),
        key(
            "token_budget.warn_threshold",
            Kind::Number,
            "0.8",
            "At which part of a limit, of any in `budget` too, the model is told once.",
        ),
        key(
            "token_budget.hard_stop_threshold",
            Kind::Number,
            "1.0",
            "At which part of a limit the run is held.",
        ),
        key("budget", Kind::Section, "{}", "What else a run may take; each limit holds where it is set."),
        key("budget.enabled", Kind::Bool, "true", "Whether these limits hold."),
        key("budget.max_cost", Kind::Number, "", "Money, in the currency of the models' prices."),
        key("budget.max_model_calls", COUNT, "", "Calls of models."),
        key("budget.max_tool_calls", COUNT, "", "Calls of tools."),
        key("budget.max_seconds", Kind::Seconds, "", "Time, without that in which it waits for somebody."),
        key(
            "budget.on_limit",
            ON_LIMIT,
            "pause",
            "At a limit, of tokens too: `pause` and ask whether to go on, or `end` with a last answer.",
        ),
    ]
}

fn repetition() -> [Key; 18] {
    [
        key("loop_detection", Kind::Section, "{}", "Correcting and ending repetition."),
        key("loop_detection.enabled", Kind::Bool, "true", "Whether repetition is looked for."),
        key(
            "loop_detection.warn_threshold",
            COUNT,
            "3",
            "At how many answers with the same calls and the same results the model is corrected.",
        ),
        key("loop_detection.hard_limit", COUNT, "5", "At how many it must answer without tools."),
        key("loop_detection.window_size", COUNT, "20", "How many of the latest answers are compared."),
        key(
            "loop_detection.tool_freq_warn",
            AMOUNT,
            "30",
            "At how many answers that call one tool the model is warned; 0: never. Not for bash and the file tools.",
        ),
        key(
            "loop_detection.tool_freq_hard_limit",
            AMOUNT,
            "50",
            "At how many it must answer without tools; 0: never.",
        ),
        key("loop_detection.tool_freq_window", COUNT, "100", "Among how many of the latest answers."),
        key(
            "loop_detection.tool_freq_overrides",
            Kind::Map,
            "{}",
            "Other numbers for some tools, by name: {bash: {warn: 150, hard_limit: 300}}.",
        ),
        unused("loop_detection.max_tracked_threads", "What is remembered lives and ends with its run."),
        key("call_limits", Kind::Section, "{}", "How many calls a model may make."),
        key("call_limits.enabled", Kind::Bool, "true", "Whether calls are counted."),
        key("call_limits.max_calls_per_answer", AMOUNT, "128", "Calls of tools in one answer; 0: no limit."),
        key("call_limits.model", Kind::Section, "{}", "Calls of the model."),
        key("call_limits.model.run_limit", AMOUNT, "", "In a run."),
        key("call_limits.model.thread_limit", AMOUNT, "", "In a thread."),
        key(
            "call_limits.model.exit_behavior",
            EXIT,
            "continue",
            "At the limit: a last answer, or with `error` none.",
        ),
        key(
            "call_limits.tools",
            Kind::Map,
            "{}",
            "Calls of tools, by name or `*` for all: {web_search: {run_limit: 20, exit_behavior: end}}.",
        ),
    ]
}

fn failures() -> [Key; 21] {
    [
        key("finish_reason", Kind::Section, "{}", "Mending answers that were cut off, refused or empty."),
        key("finish_reason.enabled", Kind::Bool, "true", "Whether they are mended."),
        key(
            "finish_reason.max_continuations",
            AMOUNT,
            "3",
            "How often in a row a model may go on after it was cut off in a call.",
        ),
        key(
            "finish_reason.max_empty_retries",
            AMOUNT,
            "1",
            "How often in a row it is asked to say something.",
        ),
        key(
            "safety_finish_reason",
            Kind::Section,
            "{}",
            "Answers that a model or its provider declined to finish.",
        ),
        key(
            "safety_finish_reason.enabled",
            Kind::Bool,
            "true",
            "Whether their calls are dropped and the user is told. Part of `finish_reason`.",
        ),
        unused(
            "safety_finish_reason.detectors",
            "DeerFlow's classes that read providers' words; hart knows them.",
        ),
        key("model_error", Kind::Section, "{}", "What a thread shows of a model that failed for good."),
        key("model_error.enabled", Kind::Bool, "true", "Whether anything is done about it."),
        key(
            "model_error.fallback_message",
            Kind::Bool,
            "false",
            "Whether the thread gets the reason as a message, as in DeerFlow; the run fails in any case.",
        ),
        key("tool_error", Kind::Section, "{}", "Turning failures of tools into results."),
        key("tool_error.enabled", Kind::Bool, "true", "Whether a tool that fails leaves the run alive."),
        key(
            "tool_error.strict",
            Kind::Bool,
            "false",
            "Whether an error that a tool calls fatal ends the run.",
        ),
        key("tool_retry", Kind::Section, "{}", "Calling tools again whose failures may pass."),
        key("tool_retry.enabled", Kind::Bool, "false", "Whether they are called again."),
        key("tool_retry.tools", Kind::Texts, "all", "The tools it is for."),
        key("tool_retry.max_retries", AMOUNT, "2", "How often a call is repeated."),
        key("tool_retry.initial_delay", Kind::Number, "1", "Seconds before the first repetition."),
        key("tool_retry.max_delay", Kind::Number, "60", "The longest pause, in seconds."),
        key(
            "tool_retry.backoff_factor",
            Kind::Number,
            "2",
            "By how much each pause is longer than the one before.",
        ),
        key(
            "tool_retry.jitter",
            Kind::Bool,
            "true",
            "Whether pauses are up to a quarter longer or shorter, so that many do not come back at once.",
        ),
    ]
}
