//! What a conversation is called.
//!
//! Invariant: a title is one line, not empty, and no longer than it may be.

/// The user's first words as a title, cut between words where there are any.
pub(crate) fn local(text: &str, max_chars: usize) -> Option<String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() {
        return None;
    }
    Some(cut(&line, max_chars))
}

/// A model's answer as a title; `None` if nothing of it can be one.
pub(crate) fn from_answer(answer: &str, max_words: usize, max_chars: usize) -> Option<String> {
    // Models that think aloud end with the answer.
    let answer = answer.rsplit("</think>").next().unwrap_or(answer);
    let line = answer.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line = line.strip_prefix("Title:").unwrap_or(line);
    let line = line.trim_matches(|c: char| c.is_whitespace() || "\"'`*#“”‘’「」".contains(c));
    let line = line.trim_end_matches(['.', '。']);
    let words: Vec<&str> = line.split_whitespace().take(max_words).collect();
    local(&words.join(" "), max_chars)
}

fn cut(line: &str, max_chars: usize) -> String {
    if line.chars().count() <= max_chars {
        return line.to_owned();
    }
    let room: String = line.chars().take(max_chars.saturating_sub(1)).collect();
    let rest_begins = line.get(room.len()..).and_then(|rest| rest.chars().next());
    let whole = match (rest_begins, room.rfind(' ')) {
        (Some(' '), _) => room.as_str(),
        // A word that takes most of the room is cut rather than left out; so is a script without spaces.
        (_, Some(at)) if at * 2 >= room.len() => room.get(..at).unwrap_or(&room),
        _ => room.as_str(),
    };
    format!("{}…", whole.trim_end_matches([' ', ',', ';', ':', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_titles() {
        for (text, title) in [
            ("Hello", Some("Hello")),
            ("  two\n lines ", Some("two lines")),
            ("", None),
            (" \n", None),
            (
                "Write a report about the market for heat pumps in Norway",
                Some("Write a report about the market for heat pumps in…"),
            ),
            (
                "Write a report about the market for heat pumps, in Norway",
                Some("Write a report about the market for heat pumps…"),
            ),
            (
                "https://example.com/a/very/long/address/that/has/no/spaces/at/all",
                Some("https://example.com/a/very/long/address/that/has/…"),
            ),
            (&"漢".repeat(80), Some(&format!("{}…", "漢".repeat(49)))),
        ] {
            let found = local(text, 50);
            assert_eq!(found.as_deref(), title, "{text}");
            assert!(found.is_none_or(|title| title.chars().count() <= 50));
        }
    }

    #[test]
    fn titles_from_a_model() {
        for (answer, title) in [
            ("Heat pumps in Norway", Some("Heat pumps in Norway")),
            ("\"Heat pumps in Norway.\"\n\nI chose this because…", Some("Heat pumps in Norway")),
            ("<think>hm\n</think>\n**Title** one", Some("Title** one")),
            ("Title: one two three four five six seven eight", Some("one two three four five six")),
            ("", None),
            ("\"\"", None),
        ] {
            assert_eq!(from_answer(answer, 6, 60).as_deref(), title, "{answer}");
        }
        assert!(from_answer(&"x".repeat(100), 6, 60).unwrap().chars().count() <= 60);
    }
}
