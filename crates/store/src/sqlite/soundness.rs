//! Whether a file has to be looked through before it is used.
//!
//! Invariant: only a file that was closed in order, and that nobody has touched since, is taken as it is.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Looking through a file takes time in proportion to it, which every command would pay.
pub(super) fn must_be_checked(path: &Path) -> bool {
    let known = fs::read_to_string(beside(path, MARK)).ok();
    // A crash from now on leaves none.
    let _ = fs::remove_file(beside(path, MARK));
    // What is still to be written back was left by a process that did not close it.
    let left_behind = fs::metadata(beside(path, "-wal")).is_ok_and(|wal| wal.len() > 0);
    left_behind || known.is_none() || known != state(path)
}

/// Called when this process has closed the file.
pub(super) fn closed(path: &Path) {
    // Others have it open: the last one marks it.
    if beside(path, "-wal").exists() {
        return;
    }
    // The clock of a file system ticks slowly. An earlier time is another one than that of the next write, however soon
    // that comes.
    let set = File::options().write(true).open(path).and_then(|file| {
        let written = file.metadata()?.modified()?;
        file.set_modified(written.checked_sub(Duration::from_secs(1)).unwrap_or(written))
    });
    if let (Ok(()), Some(state)) = (set, state(path)) {
        let _ = fs::write(beside(path, MARK), state);
    }
}

const MARK: &str = "-closed";

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
