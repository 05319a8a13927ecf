//! The data directory: made when it is first needed, for its owner alone.
//!
//! Invariant: nothing in it is readable by other users, and a version control system passes it over.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Makes the data directory and the places that users may fill.
pub(crate) fn prepare(home: &Path) -> io::Result<()> {
    create_private(&home.join("skills"))?;
    let ignore = home.join(".gitignore");
    if ignore.exists() {
        return Ok(());
    }
    // Half of it would stay for good.
    std::fs::write(&ignore, "*\n").inspect_err(|_| drop(std::fs::remove_file(&ignore)))
}

pub(crate) fn create_private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Made now; one that is there already is an error.
pub(crate) fn create_new_private_file(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(drop)
}

/// Made if it is not there; what is in it stays.
pub(crate) fn create_private_file(path: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path).map(drop)
}
