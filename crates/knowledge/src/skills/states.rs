//! Which skills are switched on: `skills` in `extensions_config.json`, as DeerFlow has it.
//!
//! Invariant: what else is in the file stays as it was; a file that cannot be read switches nothing on.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use serde_json::{Map, Value, json};

/// What the file says.
#[derive(Clone, Debug, Default)]
pub(super) struct States {
    skills: Map<String, Value>,
    /// Why it cannot be read.
    pub(super) broken: Option<String>,
}

impl States {
    pub(super) fn read(path: &Path) -> Self {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::default(),
            Err(error) => return Self { broken: Some(error.to_string()), ..Self::default() },
        };
        match serde_json::from_str::<Value>(&text) {
            Ok(Value::Object(mut file)) => match file.remove("skills") {
                Some(Value::Object(skills)) => Self { skills, broken: None },
                None | Some(Value::Null) => Self::default(),
                Some(_) => Self { broken: Some("`skills` is no map of names".to_owned()), ..Self::default() },
            },
            Ok(_) => Self { broken: Some("it is no JSON object".to_owned()), ..Self::default() },
            Err(error) => Self { broken: Some(format!("it is no valid JSON: {error}")), ..Self::default() },
        }
    }

    /// A skill that is not named is on.
    pub(super) fn enabled(&self, name: &str) -> bool {
        let said = self.skills.get(name).and_then(|skill| skill.get("enabled")).and_then(Value::as_bool);
        self.broken.is_none() && said.unwrap_or(true)
    }
}

pub(super) fn set_enabled(path: &Path, name: &str, enabled: bool) -> io::Result<()> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut file = match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str::<Value>(&text).map_err(|error| invalid(error.to_string()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => json!({}),
        Err(error) => return Err(error),
    };
    let Value::Object(sections) = &mut file else { return Err(invalid("it is no JSON object".to_owned())) };
    let skills = sections.entry("skills").or_insert_with(|| json!({}));
    let Value::Object(skills) = skills else { return Err(invalid("`skills` is no map of names".to_owned())) };
    match skills.get_mut(name) {
        Some(Value::Object(skill)) => {
            skill.insert("enabled".to_owned(), enabled.into());
        }
        _ => {
            skills.insert(name.to_owned(), json!({ "enabled": enabled }));
        }
    }
    let text = serde_json::to_string_pretty(&file).map_err(|error| invalid(error.to_string()))?;
    replace(path, text.as_bytes())
}

/// Whole or not at all.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let staged = parent.join(format!(".{name}.{}", std::process::id()));
    let mut file = fs::File::create(&staged)?;
    file.write_all(bytes)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&staged, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_else_is_in_the_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("extensions_config.json");
        assert!(States::read(&path).enabled("a"));
        fs::write(
            &path,
            r#"{"mcpServers": {"x": {"type": "stdio"}}, "skills": {"a": {"enabled": true, "note": 1}}}"#,
        )
        .unwrap();
        set_enabled(&path, "a", false).unwrap();
        set_enabled(&path, "b", false).unwrap();
        let states = States::read(&path);
        assert!(!states.enabled("a") && !states.enabled("b") && states.enabled("c"));
        let file: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(file["mcpServers"]["x"]["type"], "stdio");
        assert_eq!(file["skills"]["a"], json!({"enabled": false, "note": 1}));
    }

    #[test]
    fn a_broken_file_switches_nothing_on_and_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("extensions_config.json");
        for text in ["{", "[]", r#"{"skills": []}"#] {
            fs::write(&path, text).unwrap();
            let states = States::read(&path);
            assert!(states.broken.is_some() && !states.enabled("a"), "{text}");
            assert!(set_enabled(&path, "a", true).is_err(), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
