//! Agents written down: made, changed, deleted.
//!
//! Invariant: a folder is there with all its files or not at all, and what is written is what would be read.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{AgentFolders, CONFIG, LARGEST, OwnAgent, SOUL, folders, text_of};
use crate::config::{AgentConfig, agent_settings, agent_text};
use crate::home;

#[derive(Debug, thiserror::Error)]
pub(crate) enum NotSaved {
    #[error("there is no such agent")]
    Missing,
    #[error("there is such an agent already")]
    Exists,
    /// It could not be used.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl AgentFolders {
    /// Makes an agent, or changes what is named of one that is there. The name is one of an agent's.
    pub(crate) fn save(
        &self,
        name: &str,
        settings: Map<String, Value>,
        soul: Option<String>,
        new: bool,
    ) -> Result<Arc<OwnAgent>, NotSaved> {
        let there = self.folder(name);
        let (old, old_soul) = match (&there, new) {
            (Some(_), true) => return Err(NotSaved::Exists),
            (None, false) => return Err(NotSaved::Missing),
            (None, true) => (Map::new(), None),
            (Some(folder), false) => {
                let text = text_of(&folder.join(CONFIG)).map_err(NotSaved::Refused)?.unwrap_or_default();
                let old = agent_settings(&text, CONFIG).map_err(NotSaved::Refused)?;
                (old, text_of(&folder.join(SOUL)).map_err(NotSaved::Refused)?)
            }
        };
        let config = agent_text(old.into_iter().chain(settings).collect());
        let soul = soul.or(old_soul).unwrap_or_default();
        AgentConfig::parse(&config, CONFIG).map_err(NotSaved::Refused)?;
        if let Some(long) = [&config, &soul].into_iter().find(|text| text.len() as u64 > LARGEST) {
            let why = format!("a file of an agent may have {LARGEST} bytes, this one has {}", long.len());
            return Err(NotSaved::Refused(why));
        }
        match there {
            Some(folder) => {
                replace(&folder.join(CONFIG), &config)?;
                replace(&folder.join(SOUL), &soul)?;
            }
            None => self.make(name, &config, &soul)?,
        }
        self.get(name).ok_or(NotSaved::Missing)
    }

    pub(crate) fn delete(&self, name: &str) -> Result<(), NotSaved> {
        let folder = self.folder(name).ok_or(NotSaved::Missing)?;
        // Out of sight first: half of an agent is not seen.
        let going = self.dir.join(format!(".{name}-{}", std::process::id()));
        fs::rename(folder, &going)?;
        Ok(fs::remove_dir_all(going)?)
    }

    fn make(&self, name: &str, config: &str, soul: &str) -> Result<(), NotSaved> {
        home::create_private(&self.dir)?;
        let unfinished = self.dir.join(format!(".{name}-{}", std::process::id()));
        home::create_private(&unfinished)?;
        replace(&unfinished.join(CONFIG), config)?;
        replace(&unfinished.join(SOUL), soul)?;
        fs::rename(&unfinished, self.dir.join(name)).map_err(|error| {
            let _ = fs::remove_dir_all(&unfinished);
            match error.kind() {
                io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => NotSaved::Exists,
                _ => error.into(),
            }
        })
    }

    /// The one that goes by this name, in whatever case.
    fn folder(&self, name: &str) -> Option<PathBuf> {
        let goes_by = |folder: &PathBuf| {
            folder
                .file_name()
                .and_then(|found| found.to_str())
                .is_some_and(|found| found.to_lowercase() == name)
        };
        folders(&self.dir).into_iter().find(goes_by)
    }
}

/// A reader sees the old text or the new.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let unfinished = file.with_extension("tmp");
    let mut open = fs::File::create(&unfinished)?;
    open.write_all(text.as_bytes())?;
    open.sync_all()?;
    fs::rename(unfinished, file)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn what_is_saved_is_what_is_read() {
        let home = tempfile::tempdir().unwrap();
        let agents = AgentFolders::in_home(home.path());
        let settings = json!({"description": "Reads: all #1", "tool_groups": ["file:read"]});
        let made = agents.save("reader", map(settings.clone()), Some("You read.".to_owned()), true).unwrap();
        assert_eq!(made.config.description.as_deref(), Some("Reads: all #1"));
        let again = agents.save("reader", map(settings), None, true);
        assert!(matches!(again, Err(NotSaved::Exists)), "{again:?}");
        // By hand, with a key that is not ours.
        let file = home.path().join("agents/reader/config.yaml");
        fs::write(&file, "tool_groups: [bash]\ngithub: {bindings: []}\n").unwrap();
        let changed = agents.save("reader", map(json!({"model": "big"})), None, false).unwrap();
        assert_eq!(
            (changed.config.model.as_deref(), changed.soul.as_deref()),
            (Some("big"), Some("You read."))
        );
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("bash") && text.contains("github"), "{text}");
        for refused in [json!({"tool_groups": ["magic"]}), json!({"model_settings": {"temp": 1}})] {
            let refused = agents.save("reader", map(refused), None, false);
            assert!(matches!(refused, Err(NotSaved::Refused(_))), "{refused:?}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "nothing changed");
        let long = agents.save("long", Map::new(), Some("x".repeat(300_000)), true);
        assert!(matches!(long, Err(NotSaved::Refused(_))), "{long:?}");
        agents.delete("reader").unwrap();
        assert!(matches!(agents.delete("reader"), Err(NotSaved::Missing)));
        assert_eq!(fs::read_dir(home.path().join("agents")).unwrap().count(), 0);
    }
}
