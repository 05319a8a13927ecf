//! `/skill-name task`: a user's word for using one skill.
//!
//! Invariant: a text that merely begins with a path or a fraction is none.

use super::manifest::is_name;

/// What clients keep for themselves.
const RESERVED: [&str; 7] = ["bootstrap", "goal", "help", "memory", "models", "new", "status"];

/// The name and the rest of the text, if the text begins with `/name` and then a space or nothing.
pub fn activation(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim_start().strip_prefix('/')?;
    let (name, task) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    (is_name(name) && !is_reserved(name)).then_some((name, task.trim()))
}

/// Whether `/name` means something else to clients.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_paths() {
        assert_eq!(activation("/chart-making draw  it\nnow"), Some(("chart-making", "draw  it\nnow")));
        assert_eq!(activation("  /a"), Some(("a", "")));
        for text in ["/etc/hosts is odd", "/A b", "/", "hello /a", "/a- b", "/help me", "// x", "/new"] {
            assert_eq!(activation(text), None, "{text}");
        }
    }
}
