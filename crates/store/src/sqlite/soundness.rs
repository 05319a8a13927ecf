//! Whether a file has to be looked through before it is used.
//!
//! Invariant: only a file that was closed in order, in which nobody had met damage, and that nobody has touched since, is
//! taken as it is.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use super::reserve;

/// A file in use.
#[derive(Debug)]
pub(super) struct Soundness {
    path: PathBuf,
    /// How it was found, if it could be taken as it was.
    found: Option<String>,
    damaged: AtomicBool,
}

impl Soundness {
    /// Called before the file is opened.
    pub(super) fn of(path: &Path) -> Self {
        let known = fs::read_to_string(beside(path, CLOSED)).ok();
        // A crash from now on leaves none.
        let _ = fs::remove_file(beside(path, CLOSED));
        // What is still to be written back was left by a process that did not close it.
        let left_behind = fs::metadata(beside(path, "-wal")).is_ok_and(|wal| wal.len() > 0);
        let found = known.filter(|known| !left_behind && state(path).as_ref() == Some(known));
        Self { path: path.to_owned(), found, damaged: AtomicBool::new(false) }
    }

    /// Looking through a file takes time in proportion to it, which every command would pay.
    pub(super) fn must_be_checked(&self) -> bool {
        self.found.is_none()
    }

    /// Something in it could not be read: whoever opens it next looks through all of it.
    pub(super) fn met_damage(&self) {
        self.damaged.store(true, Ordering::Relaxed);
    }

    /// Called when this process has closed the file.
    pub(super) fn closed(&self) {
        // Where others have it open, the last one says so.
        if beside(&self.path, "-wal").exists() {
            return;
        }
        if !self.damaged.load(Ordering::Relaxed) {
            self.sign_off();
        }
        // Last: it takes what a full disk still has.
        reserve::set_aside(&self.path);
    }

    fn sign_off(&self) {
        match &self.found {
            // Nobody wrote to it: its time is left alone.
            Some(found) if state(&self.path).as_ref() == Some(found) => {
                let _ = fs::write(beside(&self.path, CLOSED), found);
            }
            _ => set_back(&self.path),
        }
    }
}

/// Says that the file was closed as it is now.
fn set_back(path: &Path) {
    // The clock of a file system ticks slowly. An earlier time is another one than that of the next write, however soon
    // that comes.
    let set = File::options().write(true).open(path).and_then(|file| {
        let written = file.metadata()?.modified()?;
        file.set_modified(written.checked_sub(Duration::from_secs(1)).unwrap_or(written))
    });
    if let (Ok(()), Some(state)) = (set, state(path)) {
        let _ = fs::write(beside(path, CLOSED), state);
    }
}

const CLOSED: &str = "-closed";

/// What changes when anybody writes.
fn state(path: &Path) -> Option<String> {
    let about = fs::metadata(path).ok()?;
    let modified = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{} bytes, written at {}\n", about.len(), modified.as_nanos()))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}
