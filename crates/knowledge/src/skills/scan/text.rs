//! Looks at what a file says, as people, shells and models would read it.
//!
//! Invariant: what is hidden by distance, by invisible characters or by another encoding is looked at as what it says.

use std::borrow::Cow;

use super::super::package::{PackagedFile, is_invisible};
use super::rules::{Rule, matching};
use super::{Finding, Level, is_executable};

/// So many empty lines or blanks in a row push what follows out of any reader's sight.
const FAR_LINES: usize = 100;
const FAR_BLANKS: usize = 1000;
const LONG_LINE: usize = 20_000;
const LONGEST_EVIDENCE: usize = 120;

pub(super) fn look(path: &str, file: &PackagedFile, findings: &mut Vec<Finding>) {
    let executable = is_executable(path, file);
    let bytes = readable(&file.bytes);
    let text = String::from_utf8_lossy(&bytes);
    let is_text = matches!(text, Cow::Borrowed(_));
    let mut tell = |rule: &'static str, level, line, message: String, help| {
        findings.push(Finding { rule, level, file: path.to_owned(), line, message, help, evidence: None });
    };
    if is_text {
        if let Some(line) = far_away(&text) {
            let message = format!("text is hidden behind a long stretch of nothing, in line {line}");
            tell("hidden-by-distance", Level::Block, Some(line), message, "remove the empty stretch");
        }
        invisible(&text, &mut tell);
        if executable && let Some(at) = text.lines().position(|line| line.len() > LONG_LINE) {
            let message = format!("a line has more than {LONG_LINE} characters");
            tell("long-line", Level::Warn, Some(at + 1), message, "ship sources as people write them");
        }
    }
    for (rule, at, found) in matching(&bytes) {
        if let Some(finding) = judged(path, &bytes, executable, rule, at, found) {
            findings.push(finding);
        }
    }
    // A shell joins lines that end with a backslash: what is parted by them is one word to it.
    if executable && let Some(joined) = joined(&bytes) {
        let known: Vec<&str> = findings.iter().filter(|f| f.file == path).map(|f| f.rule).collect();
        let new: Vec<Finding> = matching(&joined)
            .into_iter()
            .filter(|(rule, ..)| !known.contains(&rule.name))
            .filter_map(|(rule, at, found)| judged(path, &joined, executable, rule, at, found))
            .collect();
        findings.extend(new);
    }
}

fn judged(
    path: &str,
    bytes: &[u8],
    executable: bool,
    rule: &'static Rule,
    at: usize,
    found: &[u8],
) -> Option<Finding> {
    let level = if executable { rule.in_scripts } else { rule.in_text }?;
    let line = bytes.iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
    let evidence = (!rule.secret).then(|| {
        let shown: String = String::from_utf8_lossy(found).chars().take(LONGEST_EVIDENCE).collect();
        shown.escape_debug().to_string()
    });
    let message = rule.message.to_owned();
    Some(Finding {
        rule: rule.name,
        level,
        file: path.to_owned(),
        line: Some(line),
        message,
        help: rule.help,
        evidence,
    })
}

/// UTF-16 is read as the text it is; the rest as it lies there.
fn readable(bytes: &[u8]) -> Cow<'_, [u8]> {
    let wide = |little: bool| {
        let units = bytes.get(2..).unwrap_or_default().chunks_exact(2).map(|pair| match (pair, little) {
            ([a, b], true) => u16::from_le_bytes([*a, *b]),
            ([a, b], false) => u16::from_be_bytes([*a, *b]),
            _ => 0,
        });
        let text: String =
            char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        Cow::Owned(text.into_bytes())
    };
    match bytes {
        [0xff, 0xfe, ..] => wide(true),
        [0xfe, 0xff, ..] => wide(false),
        _ => Cow::Borrowed(bytes),
    }
}

fn joined(bytes: &[u8]) -> Option<Vec<u8>> {
    let parted = bytes.windows(2).any(|pair| pair == b"\\\n");
    parted.then(|| {
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes.iter().copied().peekable();
        while let Some(byte) = rest.next() {
            if byte == b'\\' && rest.peek() == Some(&b'\n') {
                rest.next();
                continue;
            }
            out.push(byte);
        }
        out
    })
}

/// The line of the first text that stands far behind the rest.
fn far_away(text: &str) -> Option<usize> {
    let (mut line, mut empty_lines, mut blanks, mut seen) = (1, 0, 0, false);
    for c in text.chars() {
        if c == '\n' {
            line += 1;
            empty_lines += 1;
            blanks += 1;
        } else if c.is_whitespace() || is_invisible(c) {
            blanks += 1;
        } else {
            if seen && (empty_lines > FAR_LINES || blanks > FAR_BLANKS) {
                return Some(line);
            }
            (empty_lines, blanks, seen) = (0, 0, true);
        }
    }
    None
}

fn invisible(text: &str, tell: &mut impl FnMut(&'static str, Level, Option<usize>, String, &'static str)) {
    // A mark of the byte order at the start is a habit of editors.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let help = "remove them; nobody who reads the file sees them, and a model does";
    for (at, line) in text.lines().enumerate() {
        let hidden: Vec<char> = line.chars().filter(|c| is_invisible(*c)).collect();
        let worst = hidden.iter().find(
            |c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}'),
        );
        // Joiners are part of emoji and of several scripts.
        let others = hidden.iter().filter(|c| !matches!(c, '\u{200c}' | '\u{200d}')).count();
        if let Some(worst) = worst {
            let message = format!("hidden characters (U+{:04X}) change what is read", u32::from(*worst));
            return tell("hidden-characters", Level::Block, Some(at + 1), message, help);
        }
        if others > 0 {
            let message = format!("{others} characters are invisible");
            let level = if others > 3 { Level::Block } else { Level::Warn };
            return tell("hidden-characters", level, Some(at + 1), message, help);
        }
    }
}
