//! The thread's directories as they are now, seen without following a link.
//!
//! Invariant: every directory is opened from its root by the kernel's own rules; a swap leads nowhere.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, readlinkat, statat};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::manifest::{Stamp, escape};
use super::{Result, SnapshotError};
use crate::dirs::ThreadDirs;
use crate::files::{OpenRoot, Root};
use crate::path::{HostPath, VPath};

/// Above this a thread keeps what no run needs.
const MAX_ENTRIES: usize = 200_000;

/// The names of the three directories, which are the first component of every path.
pub(super) const ROOTS: [&str; 3] = ["outputs", "uploads", "workspace"];

pub(super) struct Tree {
    pub(super) began: i128,
    pub(super) roots: Vec<(&'static str, OpenRoot)>,
    pub(super) found: BTreeMap<Vec<u8>, Seen>,
}

#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    pub(super) stamp: Stamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Directory { closed: bool },
    File,
    Link(String),
    Other,
}

pub(super) fn open_root(dirs: &ThreadDirs, name: &str) -> Result<OpenRoot> {
    let host: HostPath = match name {
        "outputs" => dirs.outputs(),
        "uploads" => dirs.uploads(),
        _ => dirs.workspace(),
    };
    let shown_at = VPath::root(&format!("{}/{name}", crate::path::USER_DATA));
    let root = Root { shown_at: shown_at.clone(), host, writable: true };
    OpenRoot::open(&root, &shown_at)
        .map_err(|error| SnapshotError::io("opening the thread's directories")(std::io::Error::other(error)))
}

pub(super) fn scan(dirs: &ThreadDirs) -> Result<Tree> {
    dirs.create().map_err(SnapshotError::io("making the thread's directories"))?;
    let now = clock_gettime(ClockId::RealtimeCoarse);
    let began = nanos(now.tv_sec, now.tv_nsec);
    let mut tree = Tree { began, roots: Vec::new(), found: BTreeMap::new() };
    for name in ROOTS {
        let root = open_root(dirs, name)?;
        let mut pending = vec![Vec::new()];
        while let Some(below) = pending.pop() {
            enter(&root, name, below, &mut pending, &mut tree.found)?;
        }
        tree.roots.push((name, root));
    }
    Ok(tree)
}

/// Lists one directory. What vanished meanwhile was not there; what cannot be opened is closed.
fn enter(
    root: &OpenRoot,
    name: &str,
    below: Vec<u8>,
    pending: &mut Vec<Vec<u8>>,
    found: &mut BTreeMap<Vec<u8>, Seen>,
) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let opened = root.beneath_without_links(OsStr::from_bytes(&below), flags).and_then(Dir::new);
    let mut dir = match opened {
        Ok(dir) => dir,
        Err(errno) if below.is_empty() => {
            return Err(SnapshotError::io("reading the thread's directories")(errno.into()));
        }
        Err(errno) => {
            if let Some(Seen { kind: Kind::Directory { closed }, .. }) = found.get_mut(&full(name, &below)) {
                *closed = true;
            }
            let gone = matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP);
            if gone {
                found.remove(&full(name, &below));
            }
            return Ok(());
        }
    };
    let mut names = Vec::new();
    while let Some(entry) = dir.read() {
        // Half a listing would be a snapshot in which the other half does not exist.
        let entry = entry.map_err(|errno| SnapshotError::io("listing a directory")(errno.into()))?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name.to_owned());
        }
    }
    let fd = dir.fd().map_err(|errno| SnapshotError::io("listing a directory")(errno.into()))?;
    for child in names {
        let stat = match statat(fd, &child, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => continue,
            // It can be listed and not entered: what is in it is not known.
            Err(_) => {
                if let Some(seen) = found.get_mut(&full(name, &below)) {
                    seen.kind = Kind::Directory { closed: true };
                }
                return Ok(());
            }
        };
        let mut path = below.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(child.to_bytes());
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                pending.push(path.clone());
                Kind::Directory { closed: false }
            }
            FileType::RegularFile => Kind::File,
            FileType::Symlink => match readlinkat(fd, &child, Vec::new()) {
                Ok(target) => Kind::Link(escape(target.to_bytes())),
                Err(_) => continue,
            },
            _ => Kind::Other,
        };
        if found.len() >= MAX_ENTRIES {
            return Err(SnapshotError::TooMany { limit: MAX_ENTRIES });
        }
        let (mode, owner) = (stat.st_mode & 0o777, (stat.st_uid, stat.st_gid));
        found.insert(full(name, &path), Seen { kind, mode, owner, stamp: stamp(&stat) });
    }
    Ok(())
}

fn full(root: &str, below: &[u8]) -> Vec<u8> {
    if below.is_empty() { root.as_bytes().to_vec() } else { [root.as_bytes(), b"/", below].concat() }
}

/// The root's name and the path below it.
pub(super) fn split(path: &[u8]) -> (&[u8], &OsStr) {
    let at = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
    let (root, rest) = path.split_at_checked(at).unwrap_or((path, &[]));
    (root, OsStr::from_bytes(rest.get(1..).unwrap_or_default()))
}

pub(super) fn stamp(stat: &Stat) -> Stamp {
    Stamp {
        size: stat.st_size.unsigned_abs(),
        device: stat.st_dev,
        inode: stat.st_ino,
        modified: nanos(stat.st_mtime, stat.st_mtime_nsec as i64),
        changed: nanos(stat.st_ctime, stat.st_ctime_nsec as i64),
    }
}

fn nanos(seconds: i64, nanos: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanos)
}
