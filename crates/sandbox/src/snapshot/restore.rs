//! Makes the directories as a snapshot has them.
//!
//! Invariant: each change is made through a descriptor of its directory, which the kernel opened without following a
//! link; whatever a command swaps meanwhile, nothing outside the directories is touched.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid, fchmod, fchown, fstat, futimens, mkdirat, openat,
    renameat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::manifest::{Content, Entry, Manifest, What, escape, unescape};
use super::store::Store;
use super::tree::{self, Kind, Seen, Tree};
use super::{Result, SnapshotError};
use crate::dirs::ThreadDirs;
use crate::files::OpenRoot;

/// What a restore did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    pub written: usize,
    pub deleted: usize,
    /// What could not be made as it was, and why.
    pub left: Vec<String>,
}

const TEMPORARY: &str = ".hart-restore.tmp";

/// What becomes of uploads that have come since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewUploads {
    /// They go, as everything does that was not there.
    Go,
    /// Somebody has sent them, perhaps while a run was at work that is undone now.
    Stay,
}

pub(super) fn restore(
    dirs: &ThreadDirs,
    store: &Store,
    manifest: &Manifest,
    new_uploads: NewUploads,
) -> Result<Restored> {
    let mut tree = tree::scan(dirs)?;
    if open_closed(&tree, manifest) {
        tree = tree::scan(dirs)?;
    }
    let mut work = Work { store, tree: &tree, manifest, new_uploads, done: Restored::default() };
    work.delete();
    work.make();
    work.set_modes();
    Ok(work.done)
}

/// Directories that could be looked into then and cannot now get their rights back first.
fn open_closed(tree: &Tree, manifest: &Manifest) -> bool {
    let mut opened = false;
    for (path, seen) in &tree.found {
        let was_open =
            manifest.entries.get(path).is_none_or(|entry| entry.what == What::Directory { closed: false });
        if seen.kind == (Kind::Directory { closed: true }) && was_open && !below_closed(manifest, path) {
            let fd = root_of(tree, path).and_then(|root| open_path(root, tree::split(path).1));
            opened |= fd.is_ok_and(|fd| set_mode(&fd, 0o700).is_ok());
        }
    }
    opened
}

struct Work<'a> {
    store: &'a Store,
    tree: &'a Tree,
    manifest: &'a Manifest,
    new_uploads: NewUploads,
    done: Restored,
}

impl Work<'_> {
    /// Takes away what was not there, or was something else. Children come before their parents.
    fn delete(&mut self) {
        let tree = self.tree;
        for (path, seen) in tree.found.iter().rev() {
            if below_closed(self.manifest, path) || self.stays(path, seen) || self.is_spared(path) {
                continue;
            }
            let flags = if matches!(seen.kind, Kind::Directory { .. }) {
                AtFlags::REMOVEDIR
            } else {
                AtFlags::empty()
            };
            match self.in_parent(path, |parent, name| unlinkat(parent, name, flags)) {
                Ok(()) | Err(Errno::NOENT) => self.done.deleted += 1,
                Err(errno) => self.leave(path, errno),
            }
        }
    }

    fn is_spared(&self, path: &[u8]) -> bool {
        self.new_uploads == NewUploads::Stay
            && path.starts_with(b"uploads/")
            && !self.manifest.entries.contains_key(path)
    }

    fn stays(&self, path: &[u8], seen: &Seen) -> bool {
        match (self.manifest.entries.get(path).map(|entry| &entry.what), &seen.kind) {
            (Some(What::Directory { .. }), Kind::Directory { .. })
            | (Some(What::File(_)), Kind::File)
            | (Some(What::Other), Kind::Other) => true,
            (Some(What::Link(then)), Kind::Link(now)) => then == now,
            _ => false,
        }
    }

    fn make(&mut self) {
        let manifest = self.manifest;
        for (path, entry) in &manifest.entries {
            let now = self.tree.found.get(path).filter(|seen| self.stays(path, seen));
            let made = match (&entry.what, now) {
                (What::Directory { .. } | What::Link(_) | What::Other, Some(_)) => continue,
                (What::Directory { .. }, None) => {
                    self.in_parent(path, |parent, name| mkdirat(parent, name, Mode::from(0o700)))
                }
                (What::Link(target), None) => {
                    let target = unescape(target).unwrap_or_default();
                    self.in_parent(path, |parent, name| symlinkat(OsStr::from_bytes(&target), parent, name))
                }
                (What::Other, None) => {
                    self.done.left.push(format!("{}: a FIFO, socket or device is not kept", escape(path)));
                    continue;
                }
                (What::File(Content::LeftOut { .. }), Some(_)) => continue,
                (What::File(Content::LeftOut { reason }), None) => {
                    self.done.left.push(format!("{}: {reason}", escape(path)));
                    continue;
                }
                (What::File(content), now) => {
                    if now.is_some_and(|seen| manifest.unchanged(path, &seen.stamp).is_some()) {
                        continue;
                    }
                    self.file(path, entry, content)
                }
            };
            match made {
                Ok(()) => self.done.written += 1,
                Err(errno) => self.leave(path, errno),
            }
        }
    }

    /// Written beside its place and moved there, so that it is never half there.
    fn file(&self, path: &[u8], entry: &Entry, content: &Content) -> Result<(), Errno> {
        self.in_parent(path, |parent, name| {
            let _ = unlinkat(parent, TEMPORARY, AtFlags::empty());
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(parent, TEMPORARY, flags, Mode::from(0o600))?);
            let written = (|| {
                self.store
                    .copy_to(content, entry.stamp.size, &mut file)
                    .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
                give_back(&file, entry.owner);
                fchmod(&file, Mode::from_raw_mode(entry.mode))?;
                let at = timespec(entry.stamp.modified);
                futimens(&file, &Timestamps { last_access: at, last_modification: at })?;
                renameat(parent, TEMPORARY, parent, name)
            })();
            if written.is_err() {
                let _ = unlinkat(parent, TEMPORARY, AtFlags::empty());
            }
            written
        })
    }

    /// Last, and children first: a directory that may not be written to was written to until now.
    fn set_modes(&mut self) {
        let manifest = self.manifest;
        for (path, entry) in manifest.entries.iter().rev() {
            if entry.what != (What::Directory { closed: false }) {
                continue;
            }
            let set = root_of(self.tree, path)
                .and_then(|root| open_path(root, tree::split(path).1))
                .and_then(|fd| {
                    let now = fstat(&fd)?;
                    if (now.st_uid, now.st_gid) != entry.owner {
                        let (user, group) = (Uid::from_raw(entry.owner.0), Gid::from_raw(entry.owner.1));
                        // Only root may give files away; for others there is nothing to give.
                        let _ = rustix::fs::chownat(&fd, c"", Some(user), Some(group), AtFlags::EMPTY_PATH);
                    }
                    if now.st_mode & 0o777 == entry.mode { Ok(()) } else { set_mode(&fd, entry.mode) }
                });
            if let Err(errno) = set {
                self.leave(path, errno);
            }
        }
    }

    /// Opens the directory of `path` and works in it; one that may not be written to is opened for it first.
    fn in_parent(
        &self,
        path: &[u8],
        work: impl Fn(&OwnedFd, &OsStr) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let root = root_of(self.tree, path)?;
        let (_, below) = tree::split(path);
        let bytes = below.as_bytes();
        let at = bytes.iter().rposition(|byte| *byte == b'/');
        let parent = at.and_then(|at| bytes.get(..at)).unwrap_or_default();
        let name = at.and_then(|at| bytes.get(at + 1..)).unwrap_or(bytes);
        let parent = open_path(root, OsStr::from_bytes(parent))?;
        match work(&parent, OsStr::from_bytes(name)) {
            Err(Errno::ACCESS) => {
                set_mode(&parent, 0o700)?;
                work(&parent, OsStr::from_bytes(name))
            }
            other => other,
        }
    }

    fn leave(&mut self, path: &[u8], errno: Errno) {
        self.done.left.push(format!("{}: {}", escape(path), std::io::Error::from(errno)));
    }
}

fn below_closed(manifest: &Manifest, path: &[u8]) -> bool {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.filter_map(|(at, _)| path.get(..at)).any(|above| {
        manifest.entries.get(above).is_some_and(|entry| entry.what == What::Directory { closed: true })
    })
}

fn root_of<'a>(tree: &'a Tree, path: &[u8]) -> Result<&'a OpenRoot, Errno> {
    let (name, _) = tree::split(path);
    let found = tree.roots.iter().find(|(root, _)| root.as_bytes() == name);
    found.map(|(_, root)| root).ok_or(Errno::NOENT)
}

fn open_path(root: &OpenRoot, below: &OsStr) -> Result<OwnedFd, Errno> {
    root.beneath_without_links(below, OFlags::PATH | OFlags::DIRECTORY)
}

/// A descriptor that cannot be read or written can still be named, and then it is this directory and no other.
fn set_mode(directory: &OwnedFd, mode: u32) -> Result<(), Errno> {
    let name = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
    std::fs::set_permissions(name, std::fs::Permissions::from_mode(mode))
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Only root may give files away; for others there is nothing to give.
fn give_back(file: &File, (user, group): (u32, u32)) {
    let _ = fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
}

fn timespec(nanos: i128) -> Timespec {
    const SECOND: i128 = 1_000_000_000;
    Timespec {
        tv_sec: i64::try_from(nanos.div_euclid(SECOND)).unwrap_or_default(),
        tv_nsec: i64::try_from(nanos.rem_euclid(SECOND)).unwrap_or_default(),
    }
}

impl From<Errno> for SnapshotError {
    fn from(errno: Errno) -> Self {
        Self::Io { doing: "restoring", source: errno.into() }
    }
}
