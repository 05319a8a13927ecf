//! The snapshots around a run: its thread's files before it and after it.
//!
//! Invariant: what counts as before a run is remembered on disk and never replaced, so that a run that was cut off and
//! goes on in another process is still undone to where it began.

use std::io;
use std::path::PathBuf;

use hart_types::RunId;
use serde::{Deserialize, Serialize};

use super::manifest::Manifest;
use super::restore::NewUploads;
use super::store::Store;
use super::{Restored, Result, SnapshotError, SnapshotId, Snapshots, WorkspaceChanges, diff, restore, tree};
use crate::dirs::{ThreadDirs, safe_name};

/// So many snapshots are kept at least; runs before that can no longer be undone or looked at.
const KEPT: usize = 20;

/// The names of a run's snapshots.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Around {
    /// None where the thread had no directories yet: most conversations never have a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

impl Snapshots {
    /// Remembers the files as they are before a run. Said again of the same run, it changes nothing.
    pub async fn before_run(&self, run: &RunId) -> Result<()> {
        let note = self.note(run);
        self.blocking(move |this| {
            if !this.has_directories() {
                return if read(&note)?.is_some() { Ok(()) } else { write(&note, &Around::default()) };
            }
            let store = Store::open(&this.root())?;
            if read(&note)?.is_some() {
                return Ok(());
            }
            let before = Some(store.take_if_changed(&tree::scan(&this.dirs)?)?.0);
            write(&note, &Around { before, after: None })
        })
        .await
    }

    /// Remembers the files as a run left them.
    pub async fn after_run(&self, run: &RunId) -> Result<()> {
        let note = self.note(run);
        self.blocking(move |this| {
            if !this.has_directories() {
                return Ok(());
            }
            let store = Store::open(&this.root())?;
            let Some(mut around) = read(&note)? else { return Ok(()) };
            around.after = Some(store.take_if_changed(&tree::scan(&this.dirs)?)?.0);
            write(&note, &around)?;
            // Not each time: it reads what all that are kept need.
            if store.list()?.len() > 2 * KEPT {
                store.prune(KEPT)?;
                this.forget_pruned(&store.list()?)?;
            }
            Ok(())
        })
        .await
    }

    /// Makes the files as they were before a run, but for uploads that have come since.
    pub async fn undo_run(&self, run: &RunId) -> Result<Restored> {
        let (note, run) = (self.note(run), run.clone());
        self.blocking(move |this| {
            let around = read(&note)?.ok_or_else(|| unknown(&run))?;
            if around.before.is_none() && !this.has_directories() {
                return Ok(Restored::default());
            }
            let store = Store::open(&this.root())?;
            restore::restore(&this.dirs, &store, &around.before(&store)?, NewUploads::Stay)
        })
        .await
    }

    /// What a run did to the files; of one that is still at work, what it has done so far.
    pub async fn run_changes(&self, run: &RunId) -> Result<WorkspaceChanges> {
        let (note, run) = (self.note(run), run.clone());
        self.blocking(move |this| {
            // Nobody has ever put a file there; asking does not make a directory.
            let around = read(&note)?.ok_or_else(|| unknown(&run))?;
            if around.before.is_none() && !this.has_directories() {
                return Ok(WorkspaceChanges::none());
            }
            let store = Store::open(&this.root())?;
            let after = match &around.after {
                Some(after) => SnapshotId(after.clone()),
                None => store.take_if_changed(&tree::scan(&this.dirs)?)?,
            };
            Ok(diff::diff(&store, &around.before(&store)?, &store.load(&after)?))
        })
        .await
    }

    /// Gives the files to another thread, as they are now.
    pub async fn copy_to(&self, other: ThreadDirs) -> Result<Restored> {
        self.blocking(move |this| {
            if !this.dirs.root().exists() {
                return Ok(Restored::default());
            }
            let store = Store::open(&this.root())?;
            let now = store.take_if_changed(&tree::scan(&this.dirs)?)?;
            other.create().map_err(SnapshotError::io("making the other thread's directories"))?;
            restore::restore(&other, &store, &store.load(&now)?, NewUploads::Go)
        })
        .await
    }

    /// Drops what is noted of runs whose snapshots are gone.
    fn forget_pruned(&self, kept: &[SnapshotId]) -> Result<()> {
        let doing = SnapshotError::io("forgetting old runs");
        for entry in std::fs::read_dir(self.notes()).map_err(&doing)? {
            let path = entry.map_err(&doing)?.path();
            let known = |around: Around| match around.before.or(around.after) {
                Some(snapshot) => kept.iter().any(|id| id.0 == snapshot),
                None => true,
            };
            if !read(&path)?.is_some_and(known) {
                std::fs::remove_file(path).map_err(&doing)?;
            }
        }
        Ok(())
    }

    fn has_directories(&self) -> bool {
        self.dirs.workspace().as_path().exists()
    }

    fn notes(&self) -> PathBuf {
        self.root().join("runs")
    }

    fn note(&self, run: &RunId) -> PathBuf {
        self.notes().join(format!("{}.json", safe_name(run.as_str())))
    }
}

impl Around {
    fn before(&self, store: &Store) -> Result<Manifest> {
        match &self.before {
            Some(before) => store.load(&SnapshotId(before.clone())),
            None => Ok(Manifest::default()),
        }
    }
}

fn unknown(run: &RunId) -> SnapshotError {
    SnapshotError::NotFound { id: run.to_string() }
}

fn read(note: &PathBuf) -> Result<Option<Around>> {
    match std::fs::read(note) {
        // Half a note is one that was never written.
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SnapshotError::io("reading what is known of a run")(error)),
    }
}

fn write(note: &PathBuf, around: &Around) -> Result<()> {
    let doing = SnapshotError::io("noting a run's snapshots");
    if let Some(dir) = note.parent() {
        std::fs::create_dir_all(dir).map_err(&doing)?;
    }
    let bytes = serde_json::to_vec(around).map_err(io::Error::from).map_err(&doing)?;
    let temporary = note.with_extension("tmp");
    std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, note)).map_err(&doing)
}
