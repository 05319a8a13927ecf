//! Has the disk keep what was changed.
//!
//! Invariant: whoever hears that a change was made finds it after a loss of power, too, as far as the file system says
//! the truth.

use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags, fsync, openat};
use rustix::io::Errno;

/// The names in a directory.
pub(super) fn keep_names(directory: impl AsFd) -> Result<(), Errno> {
    // What is open as a mere place cannot be synced.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat(directory, c".", flags, Mode::empty()).and_then(fsync) {
        // One that may be written to and not read, and file systems that know no such thing: nothing can be done.
        Err(Errno::ACCESS | Errno::INVAL) => Ok(()),
        kept => kept,
    }
}

/// What a file holds, as long as it has no name yet.
pub(super) fn keep_content(file: impl AsFd) -> Result<(), Errno> {
    match fsync(file) {
        Err(Errno::INVAL) => Ok(()),
        kept => kept,
    }
}
