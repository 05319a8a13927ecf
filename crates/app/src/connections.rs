//! Models that were connected over HTTP, kept in `{home}/connections.json`.
//!
//! Invariant: the file is its owner's alone, and whole or not there; a key in it goes to its own address and to nobody
//! else.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock};

use hart_models::{ModelConfig, ModelConfigError, ModelEntry};
use serde::{Deserialize, Serialize};

use crate::home;

/// All connections, in the order in which they were made.
#[derive(Debug)]
pub(crate) struct Connections {
    path: PathBuf,
    /// One writer at a time: each writes all of the file.
    turn: Mutex<()>,
    /// The keys, for whoever hides them in what is written down.
    keys: RwLock<Vec<String>>,
}

/// As in `models:` of the configuration, as much of it as a form asks for.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Connection {
    pub(crate) name: String,
    #[serde(rename = "use")]
    pub(crate) provider: String,
    pub(crate) model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_key: Option<String>,
}

impl Connections {
    pub(crate) fn in_home(home: &Path) -> Self {
        let all =
            Self { path: home.join("connections.json"), turn: Mutex::default(), keys: RwLock::default() };
        all.remember(&all.all());
        all
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What cannot be read is told and passed over: there are other models.
    pub(crate) fn all(&self) -> Vec<Connection> {
        let told = |error: &io::Error| {
            let path = self.path.display();
            tracing::warn!(%path, %error, "connected models cannot be read: mend the file, or delete it");
        };
        self.read().inspect_err(told).unwrap_or_default()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Connection> {
        self.all().into_iter().find(|one| one.name == name)
    }

    /// Replaces one of the same name.
    pub(crate) fn save(&self, connection: Connection) -> io::Result<()> {
        self.change(|all| match all.iter_mut().find(|one| one.name == connection.name) {
            Some(known) => *known = connection,
            None => all.push(connection),
        })
    }

    /// Whether there was one.
    pub(crate) fn remove(&self, name: &str) -> io::Result<bool> {
        let mut found = false;
        self.change(|all| {
            let before = all.len();
            all.retain(|one| one.name != name);
            found = all.len() < before;
        })?;
        Ok(found)
    }

    /// The keys that were connected since the program began, and those that were there before.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Connection>)) -> io::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // A file that cannot be read is not replaced: there are keys in it.
        let mut all = self.read()?;
        change(&mut all);
        if let Some(home) = self.path.parent() {
            home::prepare(home)?;
        }
        let unfinished = self.path.with_extension("json.tmp");
        let _ = fs::remove_file(&unfinished);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        file.write_all(&serde_json::to_vec_pretty(&all)?)?;
        file.sync_all()?;
        fs::rename(&unfinished, &self.path)?;
        self.remember(&all);
        Ok(())
    }

    fn read(&self) -> io::Result<Vec<Connection>> {
        match fs::read(&self.path) {
            // What is wrong with it is said without a word of what is in it.
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                let place = format!("line {}, column {}", error.line(), error.column());
                io::Error::new(io::ErrorKind::InvalidData, format!("it is not as it was written, at {place}"))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// What was a key once is not said later either.
    fn remember(&self, all: &[Connection]) {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let given = all.iter().filter_map(|one| one.api_key.clone());
        let new: Vec<String> = given.filter(|key| !keys.contains(key)).collect();
        keys.extend(new);
    }
}

impl Connection {
    /// A key of the environment is not this connection's: it must not go to an address that somebody typed in.
    pub(crate) fn config(&self) -> Result<ModelConfig, ModelConfigError> {
        let entry = ModelEntry {
            name: self.name.clone(),
            provider: self.provider.clone(),
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            api_key: self.api_key.clone(),
            ..ModelEntry::default()
        };
        ModelConfig::resolve(entry, &|_| None)
    }
}

impl fmt::Debug for Connection {
    /// Neither the key nor what an address may carry.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("name", &self.name)
            .field("use", &self.provider)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn connection(name: &str, key: &str) -> Connection {
        Connection {
            name: name.to_owned(),
            provider: "openai".to_owned(),
            model: "m".to_owned(),
            base_url: None,
            api_key: Some(key.to_owned()),
        }
    }

    #[test]
    fn a_key_is_kept_for_its_owner_and_shown_to_nobody() {
        let home = tempfile::tempdir().unwrap();
        let all = Connections::in_home(&home.path().join("h"));
        all.save(connection("a", "first-key")).unwrap();
        all.save(connection("b", "second-key")).unwrap();
        all.save(connection("a", "third-key")).unwrap();
        let mode = fs::metadata(all.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(all.all(), [connection("a", "third-key"), connection("b", "second-key")]);
        assert!(!format!("{:?}", all.all()).contains("key"));
        assert!(all.remove("a").unwrap() && !all.remove("a").unwrap());
        let later = Connections::in_home(&home.path().join("h"));
        assert_eq!(later.all(), [connection("b", "second-key")]);
        assert_eq!(later.keys(), ["second-key"]);
        assert_eq!(all.keys().len(), 3, "what was a key once stays hidden");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_without_its_words_and_not_replaced() {
        let home = tempfile::tempdir().unwrap();
        let all = Connections::in_home(home.path());
        fs::write(all.path(), r#"[{"name": "a", "api_key": 7, "secret-word"#).unwrap();
        assert_eq!(all.all(), []);
        let error = all.save(connection("b", "k")).unwrap_err().to_string();
        assert!(error.contains("line 1") && !error.contains("secret-word"), "{error}");
        assert!(fs::read_to_string(all.path()).unwrap().contains("secret-word"));
    }

    #[test]
    fn a_key_of_the_environment_does_not_go_to_an_address_that_was_typed_in() {
        let typed = Connection {
            base_url: Some("http://127.0.0.1:1/v1".to_owned()),
            api_key: None,
            ..connection("a", "")
        };
        assert!(typed.config().unwrap().api_key.is_none());
    }
}
