//! The names that other agents' skills give to tools, and what these are called here.
//!
//! Invariant: a name that nobody here knows stays what it is, and so allows nothing.

/// The tool a skill means in `allowed-tools`; a pattern behind it (`Bash(git:*)`) is left out, which allows the whole
/// tool.
pub fn native_tool(written: &str) -> &str {
    let name = written.split_once('(').map_or(written, |(name, _)| name).trim();
    match name {
        "Read" | "NotebookRead" => "read_file",
        "Write" => "write_file",
        "Edit" | "MultiEdit" => "str_replace",
        "Bash" | "Shell" => "bash",
        "Glob" => "glob",
        "Grep" => "grep",
        "LS" => "ls",
        "WebSearch" => "web_search",
        "WebFetch" => "web_fetch",
        "Task" => "task",
        "TodoWrite" => "write_todos",
        "AskUserQuestion" => "ask_clarification",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_elsewhere_are_understood() {
        for (written, meant) in
            [("Read", "read_file"), ("Bash(git:*)", "bash"), ("bash", "bash"), ("mcp__x__y", "mcp__x__y")]
        {
            assert_eq!(native_tool(written), meant);
        }
    }
}
