//! Receipts: what came of a command, kept beside the thread's files for a hart that is started again.
//!
//! Invariant: a receipt is whole or not there, and no command of the thread can reach it.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use crate::dirs::safe_name;
use crate::files::Roots;

#[derive(Clone, Debug)]
pub(crate) struct Receipts {
    dir: PathBuf,
}

impl Receipts {
    /// Beside `user-data`, where nothing is shown to commands.
    pub(crate) fn of(roots: &Roots) -> Option<Self> {
        let workspace = roots.of_thread().next()?.host.as_path();
        Some(Self { dir: workspace.parent()?.parent()?.join("receipts") })
    }

    pub(crate) fn keep(&self, key: &str, content: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let (path, unnamed) = (self.path(key), self.path(&format!("{key}-new")));
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unnamed)?;
        file.write_all(content)?;
        std::fs::rename(unnamed, path)
    }

    pub(crate) fn get(&self, key: &str) -> io::Result<Option<Vec<u8>>> {
        match std::fs::read(self.path(key)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        }
    }

    pub(crate) fn forget(&self, key: &str) -> io::Result<()> {
        match std::fs::remove_file(self.path(key)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn path(&self, key: &str) -> PathBuf {
        self.dir.join(safe_name(key))
    }
}
