//! Agents of the user's own: a folder each in `agents` of the data directory, with a `SOUL.md` and a `config.yaml`.
//!
//! Invariant: what is on the disk now is what the next run gets; a folder that cannot be read takes nothing from the
//! others.

mod save;

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::config::AgentConfig;

pub(crate) use save::NotSaved;

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct OwnAgent {
    pub(crate) name: String,
    /// Who it is, in its maker's words.
    pub(crate) soul: Option<String>,
    pub(crate) config: AgentConfig,
}

/// One that is not, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) folder: PathBuf,
    pub(crate) why: String,
}

#[derive(Debug)]
pub(crate) struct AgentFolders {
    dir: PathBuf,
    /// What was read last of each folder, so that a file that did not change is not read again.
    known: Mutex<BTreeMap<PathBuf, Known>>,
}

#[derive(Clone, Debug)]
struct Known {
    seen: [Option<(SystemTime, u64)>; 2],
    agent: Result<Arc<OwnAgent>, Broken>,
}

const SOUL: &str = "SOUL.md";
const CONFIG: &str = "config.yaml";
/// Each file is a part of a prompt or a few settings.
const LARGEST: u64 = 256 * 1024;

impl AgentFolders {
    pub(crate) fn in_home(home: &Path) -> Self {
        Self { dir: home.join("agents"), known: Mutex::default() }
    }

    pub(crate) fn all(&self) -> Vec<Arc<OwnAgent>> {
        self.look().into_iter().filter_map(Result::ok).collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<OwnAgent>> {
        self.all().into_iter().find(|agent| agent.name == name)
    }

    pub(crate) fn broken(&self) -> Vec<Broken> {
        self.look().into_iter().filter_map(Result::err).collect()
    }

    fn look(&self) -> Vec<Result<Arc<OwnAgent>, Broken>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = BTreeMap::new();
        let mut names: BTreeMap<String, PathBuf> = BTreeMap::new();
        for folder in folders(&self.dir) {
            let seen = [stamp(&folder.join(SOUL)), stamp(&folder.join(CONFIG))];
            let before = known.remove(&folder).filter(|known| known.seen == seen);
            let is_new = before.is_none();
            let mut agent = before.map_or_else(|| read(&folder), |known| known.agent);
            if let Ok(read) = &agent
                && let Some(other) = names.insert(read.name.clone(), folder.clone())
            {
                let why = format!("{} has the same name", other.display());
                agent = Err(Broken { folder: folder.clone(), why });
            }
            if let (true, Err(Broken { folder, why })) = (is_new, &agent) {
                tracing::warn!(folder = %folder.display(), why, "an agent cannot be used");
            }
            found.insert(folder, Known { seen, agent });
        }
        *known = found;
        known.values().map(|known| known.agent.clone()).collect()
    }
}

/// In the order of their names. One that is hidden is none.
fn folders(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let hidden =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|path| path.is_dir() && !hidden(path));
    folders.sort();
    folders
}

fn stamp(file: &Path) -> Option<(SystemTime, u64)> {
    let about = std::fs::metadata(file).ok()?;
    Some((about.modified().ok()?, about.len()))
}

fn read(folder: &Path) -> Result<Arc<OwnAgent>, Broken> {
    parse(folder).map(Arc::new).map_err(|why| Broken { folder: folder.to_owned(), why })
}

/// As an agent's folder is called; none where no agent can be called so.
pub(crate) fn name_of(said: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (!said.is_empty() && said.bytes().all(plain)).then(|| said.to_lowercase())
}

fn parse(folder: &Path) -> Result<OwnAgent, String> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name_of(name)
        .ok_or_else(|| "its name is none of an agent's; letters, digits and `-` make one".to_owned())?;
    let (soul, config) = (text_of(&folder.join(SOUL))?, text_of(&folder.join(CONFIG))?);
    if soul.is_none() && config.is_none() {
        return Err(format!("there is neither a {SOUL} nor a {CONFIG} in it"));
    }
    let config = AgentConfig::parse(config.as_deref().unwrap_or_default(), CONFIG)?;
    match &config.name {
        Some(said) if said.to_lowercase() != name => {
            Err(format!("{CONFIG} calls it `{said}`; rename the folder, or leave the name out"))
        }
        _ => Ok(OwnAgent { name, soul, config }),
    }
}

/// None where it is not there.
fn text_of(file: &Path) -> Result<Option<String>, String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let open = match std::fs::File::open(file) {
        Ok(open) => open,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{name} cannot be read: {error}")),
    };
    let mut text = String::new();
    let read = open.take(LARGEST + 1).read_to_string(&mut text);
    read.map_err(|error| format!("{name} cannot be read: {error}"))?;
    match text.len() as u64 > LARGEST {
        true => Err(format!("{name} has more than {LARGEST} bytes")),
        false => Ok(Some(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_seen_as_they_are_now_and_a_broken_one_alone_is_missing() {
        let home = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = home.path().join("agents").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let agents = AgentFolders::in_home(home.path());
        let names = || agents.all().iter().map(|agent| agent.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(), [""; 0]);
        write("Poet/SOUL.md", "You rhyme.");
        write("reader/config.yaml", "description: Reads.\ntool_groups: [file:read]\n");
        assert_eq!(names(), ["poet", "reader"]);
        assert_eq!(agents.get("poet").unwrap().soul.as_deref(), Some("You rhyme."));
        write("reader/config.yaml", "description: Reads all.\ntool_groups: [file:reed]\n");
        write("empty/note.txt", "");
        write("not a name/SOUL.md", "x");
        write("other/config.yaml", "name: another\n");
        write("poet/SOUL.md", "Somebody else.");
        write(".hidden/SOUL.md", "x");
        write("file.txt", "no folder");
        assert_eq!(names(), ["poet"]);
        let broken = agents.broken();
        let said: Vec<String> = broken.iter().map(|broken| broken.why.clone()).collect();
        let said = said.join("\n");
        for says in [
            "no tool group `file:reed`",
            "neither a SOUL.md",
            "none of an agent's",
            "calls it `another`",
            "has the same name",
        ] {
            assert!(said.contains(says), "{says}: {said}");
        }
        assert_eq!(broken.len(), 5, "{said}");
    }
}
