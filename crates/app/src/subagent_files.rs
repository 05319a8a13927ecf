//! Subagents from files: `agents/*.md` in the data directory, front matter and a prompt.
//!
//! Invariant: they are read for every run, so a change needs no restart; one that cannot be read is told of and passed
//! over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hart_knowledge::front_matter::{FrontMatter, NoFrontMatter, Read};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::{FileRules, SubagentEntry};

/// More than any prompt; a file beyond it is something else.
const MAX_BYTES: u64 = 256 * 1024;

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub(crate) struct BadFile {
    pub(crate) path: PathBuf,
    what: String,
}

/// Those that can be read, by name, and what is wrong with the others.
pub(crate) fn read(home: &Path) -> (Vec<(String, SubagentEntry)>, Vec<BadFile>) {
    let Ok(entries) = std::fs::read_dir(home.join("agents")) else { return Default::default() };
    let is_one = |path: &PathBuf| path.extension().is_some_and(|end| end == "md") && path.is_file();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_one).collect();
    paths.sort();
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for path in paths {
        match one(&path) {
            Ok(read) => good.push(read),
            Err(what) => bad.push(BadFile { path, what }),
        }
    }
    (good, bad)
}

fn one(path: &Path) -> Result<(String, SubagentEntry), String> {
    let size = path.metadata().map_err(|error| error.to_string())?.len();
    if size > MAX_BYTES {
        return Err(format!("it has {size} bytes, and {MAX_BYTES} are the most"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    parse(&text, stem)
}

/// What stands between the two lines of dashes. Spellings of other tools are understood; what they have beyond these
/// keys (a colour, a mode) is passed over.
#[derive(Deserialize)]
struct Keys {
    name: Option<String>,
    description: Option<String>,
    tools: Option<Names>,
    #[serde(alias = "disallowedTools", alias = "disallowed-tools")]
    disallowed_tools: Option<Names>,
    model: Option<String>,
    skills: Option<Names>,
    #[serde(alias = "maxTurns", alias = "max-turns")]
    max_turns: Option<u32>,
    timeout_seconds: Option<f64>,
    #[serde(default)]
    middleware: BTreeMap<String, bool>,
    permissions: Option<FileRules>,
    #[serde(alias = "responseFormat", alias = "response-format")]
    response_format: Option<Map<String, Value>>,
}

/// A list, or words between commas.
#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    List(Vec<String>),
    Line(String),
}

impl Names {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::List(names) => names,
            Self::Line(line) => {
                let names = line.split(',').map(str::trim).filter(|name| !name.is_empty());
                names.map(str::to_owned).collect()
            }
        }
    }
}

fn parse(text: &str, stem: &str) -> Result<(String, SubagentEntry), String> {
    const FORM: &str = "write `---`, the keys `name` and `description`, `---`, and below it the prompt";
    let matter = FrontMatter::of(text).map_err(|missing| match missing {
        NoFrontMatter::NotBegun => format!("it does not begin with `---`; {FORM}"),
        NoFrontMatter::NotEnded => format!("the line `---` that ends the front matter is missing; {FORM}"),
    })?;
    let Read { value: keys, .. } = matter
        .read::<Keys>()
        .map_err(|bad| format!("line {}: the front matter cannot be read: {}", bad.line, bad.what))?;
    let prompt = text.get(matter.body..).unwrap_or_default();
    let prompt = prompt.trim();
    if prompt.is_empty() {
        return Err(format!("there is no prompt below the front matter; {FORM}"));
    }
    let name = keys.name.unwrap_or_else(|| stem.to_owned());
    let entry = SubagentEntry {
        description: keys.description,
        system_prompt: Some(prompt.to_owned()),
        tools: keys.tools.map(Names::into_vec),
        disallowed_tools: keys.disallowed_tools.map(Names::into_vec),
        model: keys.model,
        skills: keys.skills.map(Names::into_vec),
        max_turns: keys.max_turns,
        timeout_seconds: keys.timeout_seconds,
        token_budget: None,
        middleware: keys.middleware,
        permissions: keys.permissions,
        response_format: keys.response_format,
    };
    Ok((name, entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_front_matter_and_a_prompt() {
        let text = "---\ndescription: Reviews.\ntools: read_file, grep\ndisallowed_tools: [bash]\nmodel: inherit\n\
                    color: blue\nmaxTurns: 7\n---\n\nYou review.\n\n---\nA line is no end.\n";
        let (name, entry) = parse(text, "reviewer").unwrap();
        assert_eq!(name, "reviewer");
        assert_eq!(entry.system_prompt.as_deref(), Some("You review.\n\n---\nA line is no end."));
        assert_eq!(entry.tools.unwrap(), ["read_file", "grep"]);
        assert_eq!(entry.disallowed_tools.unwrap(), ["bash"]);
        assert_eq!((entry.max_turns, entry.model.as_deref()), (Some(7), Some("inherit")));
        let named = parse("---\nname: other\ndescription: d\n---\np", "file").unwrap();
        assert_eq!(named.0, "other");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        for (text, says) in [
            ("You review.", "does not begin with `---`"),
            ("---\nname: x\n", "that ends the front matter is missing"),
            ("---\nname: [x\n---\np", "the front matter cannot be read"),
            ("---\nmax_turns: many\n---\np", "the front matter cannot be read"),
            ("---\nname: x\n---\n \n", "there is no prompt"),
        ] {
            let error = parse(text, "x").unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
