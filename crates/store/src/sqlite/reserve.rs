//! Room set aside beside the database: SQLite makes an index beside a file before anybody can read it, also on a disk
//! that has filled up since the file was closed.
//!
//! Invariant: nothing but opening the file spends the room. Whoever closes a store last sets it aside again; who only
//! looks through a file leaves that to them.

use std::fs;
use std::path::{Path, PathBuf};

use super::OpenError;

/// The index is 32 KiB; the rest is for the names of the files.
const ROOM: usize = 48 * 1024;

/// Opens with what is free, and on a full disk with what was set aside.
pub(super) fn spent_if_full<T>(
    database: &Path,
    open: impl Fn() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    match open() {
        Err(OpenError::Full { .. }) if fs::remove_file(reserve(database)).is_ok() => open(),
        opened => opened,
    }
}

/// A disk that is all but full gives what it has: some room is better than none.
pub(super) fn set_aside(database: &Path) {
    let path = reserve(database);
    if fs::metadata(&path).is_ok_and(|there| there.len() >= ROOM as u64) {
        return;
    }
    let _ = fs::write(path, vec![0; ROOM]);
}

fn reserve(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-reserve");
    name.into()
}
