//! Which values are secret, and what is shown in their place.
//!
//! Invariant: in doubt a value is hidden; hiding too much costs a look into the file, showing too much costs a key.

use hart_models::address::{self, MASK};
use serde_json::Value;

/// How the last word of a secret's name ends.
const ENDINGS: [&str; 11] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "credentials",
    "authorization",
    "cookie",
    "bearer",
];

/// Maps whose values are all hidden: they carry what their names do not tell.
const OPAQUE: [&str; 5] = ["environment", "env", "headers", "default_headers", "extra_headers"];

/// Whether a field called `name` is likely to hold a secret: `api_key` and `botToken` do, `max_tokens` does not.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| ENDINGS.iter().any(|ending| word.ends_with(ending)))
}

pub(crate) fn is_opaque_map(name: &str) -> bool {
    OPAQUE.contains(&name.to_ascii_lowercase().as_str())
}

/// A scalar as it may be shown.
pub(crate) fn shown(value: &Value, secret: bool) -> Value {
    match value {
        Value::String(text) if text.is_empty() => value.clone(),
        Value::String(_) | Value::Number(_) if secret => Value::from(MASK),
        Value::String(text) => Value::from(address::shown(text)),
        other => other.clone(),
    }
}

/// The line of a file as an error may quote it, every character that may be secret replaced by `*`.
pub(crate) fn quotable(lines: &[&str], index: usize) -> String {
    let Some(line) = lines.get(index) else { return String::new() };
    if continues_a_secret(lines, index) {
        return stars(line);
    }
    // The first name on the line that looks secret hides all that follows it.
    let mut start = 0;
    for piece in line.split_inclusive([':', '=']) {
        let end = start + piece.len();
        if is_secret_name(piece.trim_end_matches([':', '='])) || is_opaque_map(last_word(piece)) {
            let (head, tail) = line.split_at(end);
            return format!("{head}{}", stars(tail));
        }
        start = end;
    }
    (*line).to_owned()
}

fn last_word(piece: &str) -> &str {
    piece
        .trim_end_matches(|c: char| !c.is_alphanumeric())
        .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .unwrap_or_default()
}

/// A line that is indented deeper than the key above it may be the rest of that key's value.
fn continues_a_secret(lines: &[&str], index: usize) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut depth = lines.get(index).map_or(0, |line| indent(line));
    for line in lines.iter().take(index).rev().filter(|line| !line.trim().is_empty()) {
        if indent(line) >= depth {
            continue;
        }
        depth = indent(line);
        let name = line.split(':').next().unwrap_or_default();
        let bare = name.trim_start().trim_start_matches('-').trim();
        if is_secret_name(bare) || is_opaque_map(bare) {
            return true;
        }
    }
    false
}

fn stars(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() { c } else { '*' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in
            ["api_key", "apiKey", "OPENAI_API_KEY", "bot_token", "accessToken", "client_secret", "x-api-key"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["max_tokens", "token_usage_total", "name", "base_url", "keep", "model"] {
            assert_eq!(is_secret_name(name), name == "token_usage_total", "{name}");
        }
    }

    #[test]
    fn quoted_lines_hide_values() {
        let text = "models:\n  - name: a\n    api_key: 'sk-12'3'\n    x: {token: abc, y: }\n    secret: |\n      line\n";
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(quotable(&lines, 1), "  - name: a");
        assert_eq!(quotable(&lines, 2), "    api_key: *********");
        assert_eq!(quotable(&lines, 3), "    x: {token: **** ** *");
        assert_eq!(quotable(&lines, 5), "      ****");
        assert_eq!(quotable(&lines, 99), "");
    }

    #[test]
    fn children_of_opaque_maps_are_hidden() {
        let lines = ["sandbox:", "  environment:", "    A: sk-1", "  use: local"];
        assert_eq!(quotable(&lines, 2), "    ** ****");
        assert_eq!(quotable(&lines, 3), "  use: local");
    }
}
