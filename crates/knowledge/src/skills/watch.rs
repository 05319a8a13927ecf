//! Whether anything happened to files since they were read, without asking about each of them.
//!
//! Invariant: quiet means that nobody on this machine has written, made or removed any of them by its name. What another
//! machine does to a shared disk is not told, nor what is written to mapped memory or by another name of the same file:
//! whoever relies on this looks for itself from time to time.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

use super::stamps::Stamps;

/// The kernel's word on all files and folders that something was made of.
#[derive(Debug)]
pub(super) struct Watch {
    events: OwnedFd,
    /// What is not there cannot be watched.
    absent: Vec<PathBuf>,
}

impl Watch {
    /// None where the kernel does not watch all of them: there are limits, and file systems without it.
    pub(super) fn over(stamps: &Stamps) -> Option<Self> {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let folders: HashSet<&Path> = stamps.folders().collect();
        let in_a_folder = |path: &Path| path.parent().is_some_and(|parent| folders.contains(parent));
        for path in folders.iter().copied().chain(stamps.files().filter(|path| !in_a_folder(path))) {
            inotify::add_watch(&events, path, changes()).ok()?;
        }
        let absent = stamps.absent().map(Path::to_owned).collect();
        // What happened since they were read and before they were watched is told by nobody.
        stamps.still_hold().then_some(Self { events, absent })
    }

    /// Whether nothing was told since the last time.
    pub(super) fn is_quiet(&self) -> bool {
        let mut told = [0; 4096];
        let mut quiet = true;
        loop {
            match rustix::io::read(&self.events, &mut told) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Ok(bytes) if bytes > 0 => quiet = false,
                _ => return false,
            }
        }
        quiet && !self.absent.iter().any(|path| path.symlink_metadata().is_ok())
    }
}

fn changes() -> WatchFlags {
    WatchFlags::MODIFY
        | WatchFlags::ATTRIB
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MOVE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::DONT_FOLLOW
}
