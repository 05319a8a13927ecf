//! A library in a folder of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hart_kernel::Timestamp;
use hart_knowledge::skills::{Catalogue, Library, LibraryConfig, TroubleKind};
use tempfile::TempDir;

pub(crate) struct Shelf {
    pub(crate) dir: TempDir,
    pub(crate) library: Arc<Library>,
}

/// Later than anything these tests write, so that the file system's ticks do not matter.
pub(crate) fn later() -> Timestamp {
    "2100-01-01T00:00:00Z".parse().unwrap()
}

pub(crate) fn manifest(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n# {name}\n\nDo it well.\n")
}

impl Shelf {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Self { library: Arc::new(library(dir.path())), dir };
        shelf.library.prepare().unwrap();
        shelf
    }

    /// The same folder, seen by a process that has just begun.
    pub(crate) fn anew(&self) -> Arc<Library> {
        Arc::new(library(self.dir.path()))
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn user(&self) -> PathBuf {
        self.path("users/ada/skills")
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // A new file, as editors make it.
        let _ = fs::remove_file(&path);
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn put_script(&self, path: &str, content: &str) {
        let path = self.put(path, content);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn skill(&self, folder: &str, name: &str, description: &str) {
        self.put(&format!("{folder}/SKILL.md"), manifest(name, description));
    }

    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        self.library.catalogue(Some(&self.user()), later())
    }

    /// What is known without a look.
    pub(crate) fn unchanged(&self) -> Option<Arc<Catalogue>> {
        self.library.unchanged(Some(&self.user()))
    }

    /// Name and reason of what is not offered.
    pub(crate) fn troubles(&self) -> Vec<(TroubleKind, String, String)> {
        let catalogue = self.catalogue();
        let told = catalogue.troubles().iter();
        told.map(|trouble| (trouble.kind, trouble.name.clone(), trouble.message.clone())).collect()
    }
}

fn library(home: &Path) -> Library {
    Library::new(LibraryConfig {
        skills: home.join("skills"),
        home: home.to_owned(),
        states: home.join("extensions_config.json"),
        own: true,
        scan: true,
        lock: true,
    })
}

/// Names of the skills that are on.
pub(crate) fn names(catalogue: &Catalogue) -> Vec<&str> {
    catalogue.enabled().map(|skill| skill.name()).collect()
}
