//! Walks a directory tree of a thread in a fixed order, never through a link.
//!
//! Invariant: each directory is opened from the root without links, so a swap in the middle of a walk leads nowhere.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, statat};
use rustix::io::Errno;

use super::place::OpenRoot;
use crate::contract::EntryKind;

/// A thread can make more files than anyone wants to wait for.
pub(super) const MAX_VISITED: usize = 200_000;

pub(super) const GONE: [Errno; 3] = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP];

/// Names that hold machine-made files nobody looks for; skipped unless the caller starts in one or asks for it.
pub(crate) fn is_noise(name: &[u8]) -> bool {
    match name {
        b".git" | b".svn" | b".hg" | b".bzr" => true,
        b"node_modules" | b"bower_components" | b".npm" | b".next" | b".nuxt" | b".turbo"
        | b".parcel-cache" => true,
        b"__pycache__" | b".venv" | b"venv" | b".tox" | b".nox" | b".eggs" | b"site-packages" => true,
        b".mypy_cache" | b".pytest_cache" | b".ruff_cache" | b".ipynb_checkpoints" => true,
        b"target" | b".gradle" | b".idea" | b".vscode" | b".cache" | b".terraform" => true,
        b".DS_Store" | b"Thumbs.db" => true,
        name => name.starts_with(b".hart-") && name.ends_with(b".tmp"),
    }
}

/// One thing met on a walk.
pub(crate) struct Found {
    /// Below the root; may hold bytes that are not UTF-8.
    pub(crate) below_root: Vec<u8>,
    /// Below the start of the walk, for showing and matching.
    pub(crate) shown: String,
    pub(crate) kind: EntryKind,
    pub(crate) depth: usize,
}

pub(crate) struct Walk<'a> {
    root: &'a OpenRoot,
    /// What is still to visit, last first.
    pending: Vec<Found>,
    max_depth: usize,
    visited: usize,
    truncated: bool,
}

impl<'a> Walk<'a> {
    /// Fails if the start is not a directory; later failures skip what cannot be read.
    pub(crate) fn start(root: &'a OpenRoot, relative: &str, max_depth: usize) -> Result<Self, Errno> {
        // The start may be named through links that stay inside; from there on, links are entries and no more.
        let dir = root.beneath(relative, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut walk = Self { root, pending: Vec::new(), max_depth, visited: 0, truncated: false };
        let start = Found {
            below_root: relative.as_bytes().to_vec(),
            shown: String::new(),
            kind: EntryKind::Directory,
            depth: 0,
        };
        walk.enter(dir, &start)?;
        Ok(walk)
    }

    /// The next entry in path order. Directories whose name `skip` refuses are neither shown nor entered.
    pub(crate) fn next(&mut self, skip: impl Fn(&[u8]) -> bool) -> Option<Found> {
        loop {
            let found = self.pending.pop()?;
            if skip(found.shown.rsplit('/').next().unwrap_or_default().as_bytes()) {
                continue;
            }
            if self.visited >= MAX_VISITED {
                self.truncated = true;
                return None;
            }
            self.visited += 1;
            if found.kind == EntryKind::Directory && found.depth < self.max_depth {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                let entered = self
                    .root
                    .beneath_without_links(found.relative(), flags)
                    .and_then(|dir| self.enter(dir, &found));
                // Gone or swapped for a link: there is nothing to enter. Otherwise something is left out.
                self.truncated |= entered.is_err_and(|errno| !GONE.contains(&errno));
            }
            return Some(found);
        }
    }

    /// True if the walk ended before everything was seen.
    pub(crate) fn truncated(&self) -> bool {
        self.truncated
    }

    fn enter(&mut self, dir: OwnedFd, parent: &Found) -> Result<(), Errno> {
        let mut names: Vec<(CString, EntryKind)> = Vec::new();
        let mut dir = Dir::new(dir)?;
        while let Some(entry) = dir.read() {
            let entry = entry?;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            if self.visited + self.pending.len() + names.len() >= MAX_VISITED {
                self.truncated = true;
                break;
            }
            let kind = kind_of(dir.fd()?, entry.file_name(), entry.file_type());
            names.push((entry.file_name().to_owned(), kind));
        }
        names.sort_unstable_by(|a, b| b.0.cmp(&a.0));
        self.pending.extend(names.into_iter().map(|(name, kind)| parent.child(&name, kind)));
        Ok(())
    }
}

impl Found {
    fn child(&self, name: &CStr, kind: EntryKind) -> Self {
        let mut below_root = self.below_root.clone();
        if !below_root.is_empty() {
            below_root.push(b'/');
        }
        below_root.extend_from_slice(name.to_bytes());
        let name = name.to_string_lossy();
        let shown = if self.shown.is_empty() { name.into_owned() } else { format!("{}/{name}", self.shown) };
        Self { below_root, shown, kind, depth: self.depth + 1 }
    }

    /// Where it is below the root.
    pub(crate) fn relative(&self) -> &OsStr {
        OsStr::from_bytes(&self.below_root)
    }

    /// Zero for anything but a file, and for what vanished meanwhile.
    pub(crate) fn size(&self, root: &OpenRoot) -> u64 {
        if self.kind != EntryKind::File {
            return 0;
        }
        root.beneath_without_links(self.relative(), OFlags::PATH)
            .and_then(|fd| statat(fd, c"", AtFlags::EMPTY_PATH))
            .map_or(0, |stat| stat.st_size.unsigned_abs())
    }
}

/// Some file systems do not say in the directory what an entry is.
pub(super) fn kind_of(dir: BorrowedFd<'_>, name: &CStr, listed: FileType) -> EntryKind {
    if listed != FileType::Unknown {
        return entry_kind(listed);
    }
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .map_or(EntryKind::Other, |found| entry_kind(FileType::from_raw_mode(found.st_mode)))
}

pub(crate) fn entry_kind(kind: FileType) -> EntryKind {
    match kind {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Symlink,
        _ => EntryKind::Other,
    }
}
