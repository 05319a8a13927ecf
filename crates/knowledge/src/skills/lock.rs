//! `skills.lock`: the content of each package as it was approved, and what is held back until it is.
//!
//! Invariant: one process writes it at a time, whole; a file that cannot be read approves nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hart_kernel::Timestamp;
use serde::{Deserialize, Serialize};

use super::package::Package;
use super::states::replace;

/// Why a package is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// It was there, unknown, and nothing was found in it.
    FirstSeen,
    Installed,
    /// An agent wrote it, and it passed scan and review.
    Written,
    /// A person said so.
    Approved,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Lock {
    version: u32,
    /// By root and name: `custom/chart-making`.
    #[serde(default)]
    pub(super) skills: BTreeMap<String, Locked>,
    /// What waits for a person.
    #[serde(default)]
    pub(super) held: BTreeMap<String, Held>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Locked {
    pub(super) hash: String,
    pub(super) approval: Approval,
    pub(super) at: Timestamp,
    /// To say which of them changed.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
}

/// A package that is not offered until a person approves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub name: String,
    /// Where it lies now.
    pub folder: PathBuf,
    /// Where it was, and will be again.
    pub from: PathBuf,
    pub why: String,
    pub since: Timestamp,
}

const VERSION: u32 = 1;

impl Lock {
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self { version: VERSION, ..Self::default() })
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn approve(&mut self, key: &str, package: &Package, approval: Approval, now: Timestamp) {
        let locked = Locked { hash: package.hash(), approval, at: now, files: package.file_hashes() };
        self.skills.insert(key.to_owned(), locked);
        self.held.remove(key);
    }
}

impl Locked {
    /// What is different in the package, in words.
    pub(super) fn differences(&self, package: &Package) -> String {
        let now = package.file_hashes();
        let mut parts: Vec<String> = Vec::new();
        for (path, hash) in &now {
            match self.files.get(path) {
                None => parts.push(format!("new: {path}")),
                Some(before) if before != hash => parts.push(format!("changed: {path}")),
                Some(_) => {}
            }
        }
        parts.extend(
            self.files.keys().filter(|path| !now.contains_key(*path)).map(|path| format!("gone: {path}")),
        );
        if parts.is_empty() {
            return "the right to execute a file".to_owned();
        }
        let more = parts.len().saturating_sub(5);
        parts.truncate(5);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", parts.join(", "))
    }
}

/// Changes the file while nobody else does.
pub(super) fn change<T>(path: &Path, work: impl FnOnce(&mut Lock) -> io::Result<T>) -> io::Result<T> {
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    let guard = fs::OpenOptions::new().create(true).append(true).open(parent.join(".skills.guard"))?;
    // Let go of when the file is closed.
    guard.lock()?;
    let mut lock = Lock::read(path)?;
    let done = work(&mut lock)?;
    lock.version = VERSION;
    let text = serde_json::to_string_pretty(&lock).map_err(io::Error::other)?;
    replace(path, text.as_bytes())?;
    Ok(done)
}
