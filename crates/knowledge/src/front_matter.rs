//! Front matter: YAML between two lines of dashes at the top of a text.
//!
//! Invariant: what is read is within fixed bounds, and whatever is wrong is told with its line.

use serde::de::DeserializeOwned;

/// A text, parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontMatter<'a> {
    pub yaml: &'a str,
    /// Where the rest begins, in bytes of the whole text.
    pub body: usize,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFrontMatter {
    /// The first line is no fence.
    NotBegun,
    /// The second fence is missing.
    NotEnded,
}

/// What it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read<T> {
    pub value: T,
    /// Lines of the whole text, from 1, whose value holds a colon and should stand in quotes. Many people forget them, and
    /// what was meant is plain.
    pub unquoted: Vec<usize>,
}

/// Why it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadYaml {
    /// Of the whole text, from 1.
    pub line: usize,
    pub what: String,
}

/// Nobody who writes by hand comes near.
const MAX_NODES: usize = 5000;
const MAX_DEPTH: usize = 16;

impl<'a> FrontMatter<'a> {
    /// A mark of the byte order before it is a habit of editors and passed over.
    pub fn of(text: &'a str) -> Result<Self, NoFrontMatter> {
        let start = text.len() - text.trim_start_matches('\u{feff}').len();
        let mut lines = text.get(start..).unwrap_or_default().split_inclusive('\n');
        let first = lines.next().filter(|line| is_fence(line)).ok_or(NoFrontMatter::NotBegun)?;
        let from = start + first.len();
        let mut at = from;
        for line in lines {
            if is_fence(line) {
                let yaml = text.get(from..at).unwrap_or_default();
                return Ok(Self { yaml, body: at + line.len() });
            }
            at += line.len();
        }
        Err(NoFrontMatter::NotEnded)
    }

    pub fn read<T: DeserializeOwned>(&self) -> Result<Read<T>, BadYaml> {
        let bad = match parsed(self.yaml) {
            Ok(value) => return Ok(Read { value, unquoted: Vec::new() }),
            Err(bad) => bad,
        };
        let (quoted, unquoted) = quoted(self.yaml);
        match parsed(&quoted) {
            Ok(value) if !unquoted.is_empty() => Ok(Read { value, unquoted }),
            _ => Err(bad),
        }
    }
}

fn parsed<T: DeserializeOwned>(yaml: &str) -> Result<T, BadYaml> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_nodes: MAX_NODES, max_depth: MAX_DEPTH },
    };
    serde_saphyr::from_str_with_options(yaml, options).map_err(|problem| {
        // The first line of the text is the fence.
        let line = problem.location().map_or(1, |place| place.line() as usize + 1);
        let what = problem.to_string();
        BadYaml { line, what: placeless(what.lines().next().unwrap_or("it cannot be read")).to_owned() }
    })
}

/// Without the parser's own place at the end, which is counted from behind the fence.
fn placeless(what: &str) -> &str {
    let is_place =
        |end: &str| end.starts_with(|first: char| first.is_ascii_digit()) && end.contains("column");
    match what.rsplit_once(" at line ") {
        Some((said, place)) if is_place(place) => said,
        _ => what,
    }
}

/// The same with quotes around plain values that hold a colon, and the lines of these.
fn quoted(yaml: &str) -> (String, Vec<usize>) {
    let mut lines = Vec::new();
    let quoted = |(at, line): (usize, &str)| {
        let Some((key, value)) = line.split_once(": ").filter(|(key, _)| is_key(key)) else {
            return line.to_owned();
        };
        let value = value.trim();
        let is_plain = value.starts_with(|first: char| first.is_alphanumeric());
        if !is_plain || !(value.contains(": ") || value.ends_with(':')) {
            return line.to_owned();
        }
        lines.push(at + 2);
        format!("{key}: '{}'", value.replace('\'', "''"))
    };
    let text: Vec<String> = yaml.lines().enumerate().map(quoted).collect();
    (text.join("\n"), lines)
}

/// One at the start of its line; what is below another key is left alone.
fn is_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_parted_at_its_fences() {
        let text = "\u{feff}---\r\na: 1\r\n--- \nbody\n---\n";
        let matter = FrontMatter::of(text).unwrap();
        assert_eq!((matter.yaml, text.get(matter.body..)), ("a: 1\r\n", Some("body\n---\n")));
        assert_eq!(FrontMatter::of("a\n---\n"), Err(NoFrontMatter::NotBegun));
        assert_eq!(FrontMatter::of(""), Err(NoFrontMatter::NotBegun));
        assert_eq!(FrontMatter::of("---\na: 1\n"), Err(NoFrontMatter::NotEnded));
        assert_eq!(FrontMatter::of("---\n---").unwrap().yaml, "");
    }

    #[test]
    fn a_colon_without_quotes_is_understood_and_told() {
        let text = "---\nname: a\ndescription: Use it so: it's short, e.g.: now\nmeta:\n  b: 1\n---\n";
        let read: Read<serde_json::Value> = FrontMatter::of(text).unwrap().read().unwrap();
        assert_eq!(read.value["description"], "Use it so: it's short, e.g.: now");
        assert_eq!((read.value["meta"]["b"].as_i64(), read.unquoted), (Some(1), vec![3]));
        for still_wrong in ["a: [b: c: d", "a:\n  b: c: d", "a: 'b': c", "a: b: c\nd: [", "a: b\n a: c: d"] {
            let text = format!("---\n{still_wrong}\n---\n");
            let read = FrontMatter::of(&text).unwrap().read::<serde_json::Value>();
            assert!(read.is_err(), "{still_wrong}: {read:?}");
        }
    }

    #[test]
    fn a_mistake_has_its_line_in_the_text() {
        let bad = FrontMatter::of("---\na: 1\nb: [\n---\n").unwrap().read::<serde_json::Value>().unwrap_err();
        assert!(bad.line >= 3 && !bad.what.contains("line"), "{bad:?}");
        let deep = format!("---\na: {}\n---\n", "[".repeat(40));
        assert!(FrontMatter::of(&deep).unwrap().read::<serde_json::Value>().is_err());
    }
}
