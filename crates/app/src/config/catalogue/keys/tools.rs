//! The keys of what stands around tools: long results, overwriting, commands.
//!
//! Invariant: the defaults told here are those of the types that are read.

use super::{AMOUNT, COUNT, Key, Kind, key};

/// What stands between a call and its tool.
pub(super) fn guards() -> [Key; 5] {
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

pub(super) fn tool_output() -> [Key; 12] {
    [
        key("tool_output", Kind::Section, "{}", "Moving long tool results into files."),
        key("tool_output.enabled", Kind::Bool, "true", "Whether long results are moved at all."),
        key(
            "tool_output.externalize_min_chars",
            COUNT,
            "80000",
            "From how many characters on a result goes into a file.",
        ),
        key(
            "tool_output.preview_head_chars",
            AMOUNT,
            "",
            "How much of its beginning the model sees, instead of its first and last five lines.",
        ),
        key("tool_output.preview_tail_chars", AMOUNT, "", "How much of its end the model sees then."),
        key(
            "tool_output.fallback_max_chars",
            COUNT,
            "",
            "Where there is no file to be had: from how many characters on a result is cut. It stays whole without.",
        ),
        key("tool_output.fallback_head_chars", AMOUNT, "8000", "What then stays of its beginning."),
        key("tool_output.fallback_tail_chars", AMOUNT, "3000", "What then stays of its end."),
        key(
            "tool_output.human_min_chars",
            COUNT,
            "200000",
            "From how many characters on a message of the user's is shown by its ends and kept in a file.",
        ),
        key(
            "tool_output.storage_subdir",
            Kind::Text,
            "",
            "A folder in the outputs for the files, instead of /large_tool_results.",
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
