//! The names that mean something to an agent when they stand in angle brackets.
//!
//! Invariant: names are lower case and end at a character that cannot be in one; `is_tag` folds what it is given.

/// Blocks that frameworks put into prompts, and words that injections like to dress up as such.
pub const TAGS: [&str; 45] = [
    "system-reminder",
    "system_reminder",
    "memory",
    "current_date",
    "think",
    "analysis",
    "role",
    "soul",
    "self_update",
    "thinking_style",
    "clarification_system",
    "critical_reminders",
    "response_style",
    "citations",
    "uploaded_files",
    "current_uploads",
    "subagent_system",
    "skill_system",
    "skill_index",
    "available_skills",
    "disabled_skills",
    "memory_tool_system",
    "todo_list_system",
    "durable_context_data",
    "slash_skill_activation",
    "mcp_routing_hints",
    "available-deferred-tools",
    "goal_continuation",
    "file_editing_workflow",
    "guidelines",
    "output_format",
    "working_directory",
    "tool_restrictions",
    // Of hart's own prompt.
    "way_of_working",
    "answers",
    "system",
    "instruction",
    "instructions",
    "important",
    "override",
    "ignore",
    "prompt",
    // What models write their calls in.
    "tool_call",
    "tool_response",
    "function_calls",
];

/// Longer than any of them, so that looking for one is bounded.
pub(crate) const LONGEST: usize = 32;

pub(crate) fn is_tag(name: &str) -> bool {
    TAGS.contains(&name)
}

/// Letters, digits, `-` and `_` as a tag's name spells them; full-width forms read the same to a model.
pub(crate) fn folded(c: char) -> Option<char> {
    let narrow = narrow(c);
    (narrow.is_ascii_alphanumeric() || matches!(narrow, '-' | '_')).then(|| narrow.to_ascii_lowercase())
}

/// The ASCII form of a full-width or small form.
pub(crate) fn narrow(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => u32::from(c).checked_sub(0xfee0).and_then(char::from_u32).unwrap_or(c),
        '\u{fe64}' => '<',
        '\u{fe65}' => '>',
        '\u{fe63}' => '-',
        '\u{fe68}' => '\\',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_folds_to_itself() {
        for tag in TAGS {
            assert!(tag.len() < LONGEST, "{tag}");
            assert_eq!(tag.chars().filter_map(folded).collect::<String>(), tag);
        }
        assert_eq!("ＳＹＳＴＥＭ".chars().filter_map(folded).collect::<String>(), "system");
    }
}
