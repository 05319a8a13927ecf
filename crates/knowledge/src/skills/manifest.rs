//! What a `SKILL.md` says of its skill, read from its front matter.
//!
//! Invariant: reading never fails as a whole: what can be understood is there, and every mistake is told with its line.

use serde::Serialize;
use serde_json::{Map, Value};

use super::catalogue::distance;
use super::mistake::{Mistake, MistakeCode, Severity, error, mistake};
use super::required_secrets::{self, RequiredSecret};
use crate::front_matter::{BadYaml, FrontMatter, Read};

/// The file that makes a folder a skill.
pub const MANIFEST: &str = "SKILL.md";

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Manifest {
    pub name: String,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The tools it may use while it is active, as it was written; `None` is no restriction, none is no tool.
    #[serde(rename = "allowed-tools", skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    /// Variables its commands need, which whoever starts a run sends with it.
    #[serde(rename = "required-secrets", skip_serializing_if = "Vec::is_empty")]
    pub required_secrets: Vec<RequiredSecret>,
    /// Whether they are given to it also where the model took it up by itself.
    #[serde(rename = "secrets-autonomous")]
    pub secrets_autonomous: bool,
    /// Only the user activates it; the model is not told of it.
    #[serde(rename = "disable-model-invocation", skip_serializing_if = "std::ops::Not::not")]
    pub user_only: bool,
}

/// A `SKILL.md`, read.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// There unless something it cannot do without is wrong.
    pub manifest: Option<Manifest>,
    /// Where the text behind the front matter begins, in bytes.
    pub body: usize,
    pub mistakes: Vec<Mistake>,
}

const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1024;
const MAX_COMPATIBILITY: usize = 500;
/// No front matter written by a person comes near.
const MAX_BYTES: usize = 64 * 1024;

const KNOWN: [&str; 11] = [
    "name",
    "description",
    "license",
    "version",
    "author",
    "compatibility",
    "metadata",
    "allowed-tools",
    "required-secrets",
    "secrets-autonomous",
    "disable-model-invocation",
];
/// What other agents read in it, and hart does not.
const ELSEWHERE: [&str; 11] = [
    "model",
    "user-invocable",
    "argument-hint",
    "context",
    "agent",
    "hooks",
    "when_to_use",
    "tags",
    "dependencies",
    "category",
    "homepage",
];

/// Whether a skill may be called so: small letters, digits and single hyphens between them.
pub fn is_name(name: &str) -> bool {
    let part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    name.len() <= MAX_NAME && name.split('-').all(part)
}

impl Document {
    /// `folder` is what the folder is called, where it has a name.
    pub fn read(text: &str, folder: Option<&str>) -> Self {
        let Ok(matter) = FrontMatter::of(text) else {
            let what = "there is no front matter";
            let help = "begin the file with `---`, then `name:` and `description:`, then `---`";
            return Self { mistakes: vec![error(1, what, help)], ..Self::default() };
        };
        let mut reader = Reader { matter, yaml: matter.yaml, mistakes: Vec::new() };
        let manifest = reader.manifest(folder);
        let broken = reader.mistakes.iter().any(|mistake| mistake.severity == Severity::Error);
        Self { manifest: manifest.filter(|_| !broken), body: matter.body, mistakes: reader.mistakes }
    }
}

struct Reader<'a> {
    matter: FrontMatter<'a>,
    yaml: &'a str,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    fn manifest(&mut self, folder: Option<&str>) -> Option<Manifest> {
        if self.yaml.len() > MAX_BYTES {
            self.error(None, "the front matter is larger than 64 KiB", "move what is long below it");
            return None;
        }
        let map = self.map()?;
        self.unknown(&map);
        let name = self.name(&map, folder);
        let description = self.description(&map);
        let mut metadata = match map.get("metadata") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(metadata)) => metadata.clone(),
            Some(other) => {
                self.wrong_type("metadata", "a map", other, Severity::Warning);
                Map::new()
            }
        };
        // agentskills.io keeps these two below `metadata`.
        let text = |reader: &mut Self, key: &str| {
            reader.text(&map, key).or_else(|| metadata.get(key).and_then(Value::as_str).map(str::to_owned))
        };
        let (version, author) = (text(self, "version"), text(self, "author"));
        metadata.retain(|key, _| !matches!(key.as_str(), "version" | "author"));
        Some(Manifest {
            name: name?,
            description: description?,
            license: self.text(&map, "license"),
            version,
            author,
            compatibility: self.compatibility(&map),
            metadata,
            allowed_tools: self.allowed_tools(&map),
            required_secrets: self.secrets(&map),
            secrets_autonomous: self.autonomous(&map),
            user_only: map.get("disable-model-invocation") == Some(&Value::Bool(true)),
        })
    }

    fn map(&mut self) -> Option<Map<String, Value>> {
        let read = self.matter.read().map(|Read { value, unquoted }| {
            let help = "put quotes around it: other tools read only that";
            let what = "the value holds `: ` without quotes, and is read as one text";
            self.mistakes.extend(unquoted.iter().map(|line| mistake(Severity::Warning, *line, what, help)));
            value
        });
        match read {
            Ok(Value::Object(map)) => Some(map),
            Ok(Value::Null) => {
                self.error(None, "the front matter is empty", "write `name:` and `description:`");
                None
            }
            Ok(_) => {
                let help = "write one `key: value` a line, beginning with `name:`";
                self.error(None, "the front matter is no map of keys to values", help);
                None
            }
            Err(BadYaml { line, what }) => {
                let help = "a value that holds `: ` or ` #` needs quotes, or `>-` and an indented block";
                let what = format!("the front matter is no valid YAML: {what}");
                self.mistakes.push(error(line, what, help));
                None
            }
        }
    }

    fn unknown(&mut self, map: &Map<String, Value>) {
        for key in map.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
            if ELSEWHERE.contains(&key.as_str()) {
                continue;
            }
            let is_near =
                |known: &&str| plain(known) == plain(key) || (key.len() > 4 && distance(known, key) < 3);
            let near = KNOWN.into_iter().find(is_near);
            let help = match near {
                _ if key == "agents" => "describe them in `agents.yaml`, beside SKILL.md".to_owned(),
                Some(near) => format!("write `{near}`"),
                None => "put what is your own below `metadata`".to_owned(),
            };
            self.warn(Some(key), format!("unknown key `{}`", key.escape_debug()), help);
        }
    }

    fn name(&mut self, map: &Map<String, Value>, folder: Option<&str>) -> Option<String> {
        let Some(name) = self.text(map, "name") else {
            self.error(Some("name"), "a skill needs a `name`", "write `name: what-it-does`");
            return None;
        };
        if !is_name(&name) {
            let shown: String = name.chars().take(80).collect();
            let help = "use small letters, digits and single hyphens, at most 64 characters: `chart-making`";
            self.error(Some("name"), format!("`{}` cannot be a name", shown.escape_debug()), help);
            return None;
        }
        if let Some(folder) = folder.filter(|folder| *folder != name) {
            let what = format!("the folder is called `{}`, the skill `{name}`", folder.escape_debug());
            let help = "give both the same name; the one written here counts";
            let told = mistake(Severity::Warning, self.line(Some("name")), what, help);
            self.mistakes.push(Mistake { code: MistakeCode::FolderName, ..told });
        }
        Some(name)
    }

    fn description(&mut self, map: &Map<String, Value>) -> Option<String> {
        let key = Some("description");
        let text = self.text(map, "description").map(|text| text.trim().to_owned());
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            let help = "say what it does and when to use it: the model decides by this line alone";
            self.error(key, "a skill needs a `description`", help);
            return None;
        };
        let length = text.chars().count();
        if length > MAX_DESCRIPTION {
            let what = format!("the description has {length} characters, {MAX_DESCRIPTION} are shown");
            self.warn(key, what, "shorten it; details belong below the front matter");
        }
        if text.contains(['<', '>']) {
            let what = "the description holds `<` or `>`";
            self.warn(key, what, "leave tags out: they are shown as text, and DeerFlow refuses them");
        }
        Some(text.chars().take(MAX_DESCRIPTION).collect())
    }

    fn compatibility(&mut self, map: &Map<String, Value>) -> Option<String> {
        let text = match map.get("compatibility") {
            Some(other @ (Value::Object(_) | Value::Array(_))) => Some(other.to_string()),
            _ => self.text(map, "compatibility"),
        }?;
        if text.chars().count() > MAX_COMPATIBILITY {
            let what = format!("`compatibility` is longer than {MAX_COMPATIBILITY} characters");
            self.warn(Some("compatibility"), what, "name what must be there, no more");
        }
        Some(text)
    }

    /// A list, or a text of names parted by spaces or commas.
    fn allowed_tools(&mut self, map: &Map<String, Value>) -> Option<Vec<String>> {
        let key = "allowed-tools";
        let tools: Vec<String> = match map.get(key)? {
            Value::Null => return None,
            Value::String(text) => named_tools(text),
            Value::Array(items) => {
                let mut tools = Vec::new();
                for item in items {
                    match item.as_str().map(str::trim).filter(|name| !name.is_empty()) {
                        Some(name) => tools.push(name.to_owned()),
                        // What was meant to restrict must not vanish.
                        None => self.wrong_type(key, "a list of names", item, Severity::Error),
                    }
                }
                tools
            }
            other => {
                self.wrong_type(key, "a list of names", other, Severity::Error);
                return None;
            }
        };
        for tool in tools.iter().filter(|tool| tool.contains('(')) {
            let what = format!("the pattern in `{}` is not enforced", tool.escape_debug());
            self.warn(Some(key), what, "the whole tool is allowed; name the tool alone to say so");
        }
        Some(tools)
    }

    fn secrets(&mut self, map: &Map<String, Value>) -> Vec<RequiredSecret> {
        let key = "required-secrets";
        let (secrets, sound) = map.get(key).map_or((Vec::new(), true), required_secrets::read);
        if !sound {
            self.warn(Some(key), "some of it are no names of variables", "write names such as `API_KEY`");
        }
        secrets
    }

    fn autonomous(&mut self, map: &Map<String, Value>) -> bool {
        let key = "secrets-autonomous";
        match map.get(key) {
            None | Some(Value::Null) => true,
            Some(Value::Bool(yes)) => *yes,
            Some(_) => {
                self.warn(
                    Some(key),
                    "it is neither true nor false, so it is false",
                    "write `true` or `false`",
                );
                false
            }
        }
    }

    /// Numbers and booleans are taken as they are written: `version: 1.0` is what people write.
    fn text(&mut self, map: &Map<String, Value>, key: &str) -> Option<String> {
        match map.get(key)? {
            Value::Null => None,
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(number) => Some(self.written(key).unwrap_or_else(|| number.to_string())),
            Value::Bool(yes) => Some(yes.to_string()),
            other => {
                let severity = match key {
                    "name" | "description" => Severity::Error,
                    _ => Severity::Warning,
                };
                self.wrong_type(key, "a text", other, severity);
                None
            }
        }
    }

    /// The rest of the key's line.
    fn written(&self, key: &str) -> Option<String> {
        let line = self.yaml.lines().find(|line| is_key(line, key))?;
        let value = line.split_once(':')?.1;
        let value = value.split_once(" #").map_or(value, |(value, _)| value);
        Some(value.trim().to_owned())
    }

    fn line(&self, key: Option<&str>) -> usize {
        let at = key.and_then(|key| self.yaml.lines().position(|line| is_key(line, key)));
        // The first line of the file is the fence.
        at.map_or(1, |at| at + 2)
    }

    fn error(&mut self, key: Option<&str>, message: impl Into<String>, help: impl Into<String>) {
        self.mistakes.push(error(self.line(key), message, help));
    }

    fn warn(&mut self, key: Option<&str>, message: impl Into<String>, help: impl Into<String>) {
        self.mistakes.push(mistake(Severity::Warning, self.line(key), message, help));
    }

    fn wrong_type(&mut self, key: &str, wanted: &str, found: &Value, severity: Severity) {
        let found = match found {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "a map",
        };
        let line = self.line(Some(key));
        let what = format!("`{key}` must be {wanted}, not {found}");
        self.mistakes.push(mistake(severity, line, what, format!("write {wanted}, or leave the key out")));
    }
}

fn is_key(line: &str, key: &str) -> bool {
    let rest = line.strip_prefix(key).or_else(|| line.strip_prefix(['"', '\''])?.strip_prefix(key));
    rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
}

fn plain(key: &str) -> String {
    key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Parted at spaces and commas outside of parentheses.
fn named_tools(text: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let parted = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    });
    parted.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
