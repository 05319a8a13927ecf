//! What is in a text file, at a glance: headings, columns, or its first lines.
//!
//! Invariant: an outline is short whatever the file is, and a file that is not text has none.

use hart_sandbox::{LineQuery, Sandbox, VPath};

/// Enough to see what a file is; the model reads the rest if it needs it.
const MAX_BYTES: usize = 64 * 1024;
const MAX_HEADINGS: usize = 12;
const MAX_COLUMNS: usize = 30;
const FIRST_LINES: usize = 3;
const LINE_CHARS: usize = 120;

/// A few lines about a Markdown, CSV or other text file.
pub async fn outline(sandbox: &dyn Sandbox, path: &VPath) -> Option<String> {
    let query = LineQuery { first: 1, last: u64::MAX, max_bytes: MAX_BYTES };
    let lines = sandbox.read_lines(path, query).await.ok()?;
    let text = match std::str::from_utf8(&lines.text) {
        Ok(text) => text,
        // Where it was cut, a character may have lost its end.
        Err(error) if lines.cut => std::str::from_utf8(lines.text.get(..error.valid_up_to())?).ok()?,
        Err(_) => return None,
    };
    if text.trim().is_empty() || text.contains('\0') || text.starts_with("%PDF-") {
        return None;
    }
    let length = match lines.total {
        Some(1) => "1 line".to_owned(),
        Some(total) => format!("{total} lines"),
        None => format!("more than {} lines", lines.at_least),
    };
    Some(of_text(text, path.extension().unwrap_or_default(), &length))
}

fn of_text(text: &str, extension: &str, length: &str) -> String {
    match extension.to_ascii_lowercase().as_str() {
        "md" | "markdown" | "mdx" => {
            let headings = headings(text);
            if headings.is_empty() { first_lines(text, length) } else { format!("{length}\n{headings}") }
        }
        "csv" => columns(text, ',', length),
        "tsv" | "tab" => columns(text, '\t', length),
        _ => first_lines(text, length),
    }
}

/// Each with the number of its line, to read on from there. What stands between fences is code.
fn headings(text: &str) -> String {
    let mut fenced = false;
    let mut found: Vec<String> = Vec::new();
    let mut left_out = 0;
    for (at, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        let title = line.get(level..).unwrap_or_default();
        if fenced || !(1..=6).contains(&level) || !title.starts_with(' ') {
            continue;
        }
        if found.len() < MAX_HEADINGS {
            found.push(format!("line {}: {}", at + 1, cut(line)));
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        found.push(format!("and {left_out} more headings"));
    }
    found.join("\n")
}

/// Excel in many countries separates by semicolon and calls it CSV all the same.
fn columns(text: &str, separator: char, length: &str) -> String {
    let first = text.lines().next().unwrap_or_default().trim_start_matches('\u{feff}');
    let separator = if first.contains(separator) || !first.contains(';') { separator } else { ';' };
    let names = split(first, separator);
    let shown: Vec<String> = names.iter().take(MAX_COLUMNS).map(|name| cut(name)).collect();
    let more = match names.len().saturating_sub(MAX_COLUMNS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{length}; {} columns: {}{more}", names.len(), shown.join(", "))
}

/// A separator in quotes separates nothing.
fn split(line: &str, separator: char) -> Vec<String> {
    let mut quoted = false;
    let mut fields = vec![String::new()];
    for char in line.chars() {
        if char == '"' {
            quoted = !quoted;
        } else if char == separator && !quoted {
            fields.push(String::new());
        } else if let Some(field) = fields.last_mut() {
            field.push(char);
        }
    }
    fields.into_iter().map(|field| field.trim().to_owned()).collect()
}

fn first_lines(text: &str, length: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(FIRST_LINES);
    let lines: Vec<String> = lines.map(|line| format!("| {}", cut(line))).collect();
    format!("{length}, beginning:\n{}", lines.join("\n"))
}

fn cut(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(LINE_CHARS) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outlines_by_kind() {
        for (extension, text, expected) in [
            ("md", "# One\ntext\n```\n# code\n```\n## Two\n#tag\n", "9 lines\nline 1: # One\nline 6: ## Two"),
            ("md", "no headings\n", "9 lines, beginning:\n| no headings"),
            ("csv", "a,\"b, c\",d\n1,2,3\n", "9 lines; 3 columns: a, b, c, d"),
            ("csv", "\u{feff}a;b\n", "9 lines; 2 columns: a, b"),
            ("TSV", "a\tb\n", "9 lines; 2 columns: a, b"),
            ("txt", "\n\none\ntwo\n\nthree\nfour\n", "9 lines, beginning:\n| one\n| two\n| three"),
        ] {
            assert_eq!(of_text(text, extension, "9 lines"), expected, "{text:?}");
        }
    }

    #[test]
    fn outlines_are_short() {
        let wide = (0..1000).map(|n| format!("column{n}")).collect::<Vec<_>>().join(",");
        assert!(of_text(&wide, "csv", "1 line").ends_with("column29 and 970 more"));
        assert!(of_text(&"# heading\n".repeat(1000), "md", "x").ends_with("and 988 more headings"));
        assert!(of_text(&"ä".repeat(100_000), "txt", "x").chars().count() < 200);
    }
}
