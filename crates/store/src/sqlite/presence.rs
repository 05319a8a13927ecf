//! A locked file per node beside the database: the kernel lets go of the lock when the process ends, however it ends.
//!
//! Invariant: whoever finds a node's file unlocked knows that the node is no more. A file that is not there proves
//! nothing.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hart_runtime::port::Sign;
use hart_types::NodeId;

#[derive(Debug)]
pub(super) struct Presence {
    /// None for a store in memory, which nobody else can see.
    dir: Option<PathBuf>,
    /// Ours. The locks last as long as the files are open; the files stay, so that what is left of a node is taken
    /// over at once.
    joined: Mutex<HashMap<NodeId, File>>,
}

impl Presence {
    pub(super) fn beside(database: &Path) -> Self {
        let mut name = database.as_os_str().to_owned();
        name.push("-nodes");
        Self { dir: Some(name.into()), joined: Mutex::default() }
    }

    pub(super) fn none() -> Self {
        Self { dir: None, joined: Mutex::default() }
    }

    pub(super) fn join(&self, node: &NodeId) -> io::Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        std::fs::create_dir_all(dir)?;
        // Locked before it has its name, so that nobody finds it unlocked.
        let unnamed = dir.join(format!("{node}.new"));
        let file = File::create(&unnamed)?;
        file.lock()?;
        std::fs::rename(&unnamed, dir.join(node.as_str()))?;
        self.joined.lock().unwrap_or_else(PoisonError::into_inner).insert(node.clone(), file);
        Ok(())
    }

    /// Whether a process that has joined lives.
    pub(super) fn is_anybody_there(&self) -> bool {
        let Some(entries) = self.dir.as_ref().and_then(|dir| std::fs::read_dir(dir).ok()) else {
            return false;
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.into_iter().any(|name| self.sign(&name) == Sign::There)
    }

    pub(super) fn sign(&self, node: &str) -> Sign {
        if node.is_empty() {
            // Nobody's: let go of, or of a hart that did not write down who executes what.
            return Sign::Gone;
        }
        let Some(dir) = &self.dir else { return Sign::None };
        match File::open(dir.join(node)).map(|file| file.try_lock()) {
            Ok(Ok(())) => Sign::Gone,
            Ok(Err(TryLockError::WouldBlock)) => Sign::There,
            Ok(Err(TryLockError::Error(_))) | Err(_) => Sign::None,
        }
    }

    /// Takes away the files of nodes that are no more, but for those that somebody may still ask about.
    pub(super) fn sweep(&self, asked: &[String]) {
        let Some(entries) = self.dir.as_ref().and_then(|dir| std::fs::read_dir(dir).ok()) else { return };
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            if !name.ends_with(".new") && !asked.contains(&name) && self.sign(&name) == Sign::Gone {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}
