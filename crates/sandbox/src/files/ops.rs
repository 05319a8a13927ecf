//! Read, list and remove, one blocking function each.
//!
//! Invariant: what is read is a regular file, and no more of it than anyone has room for.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, unlinkat};
use rustix::io::Errno;

use super::keep::keep_names;
use super::place::{OpenRoot, Place, Roots, explain};
use super::walk::{Walk, entry_kind, is_noise};
use super::write::split;
use crate::contract::{Entry, EntryKind, Listing, Stat};
use crate::error::{Result, SandboxError};
use crate::open::OpenFile;
use crate::path::VPath;

const MAX_READ: u64 = 100 << 20;
const MAX_LISTED: usize = 5_000;

/// FIFOs and devices must not block or be taken as a terminal, so every file is opened this way.
pub(super) const CAREFUL: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

pub(crate) fn read(roots: &Roots, path: &VPath) -> Result<Vec<u8>> {
    let (root, relative) = roots.open(path)?;
    let fd = root
        .beneath(relative, OFlags::RDONLY | CAREFUL, Mode::empty())
        .map_err(|errno| explain(path, errno))?;
    let size = regular_file(&fd, path)?.1;
    let too_large = |size| SandboxError::TooLarge { path: path.clone(), size, limit: MAX_READ };
    if size > MAX_READ {
        return Err(too_large(size));
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    // The file may grow while we read it, so the limit is on what is read.
    let read = File::from(fd).take(MAX_READ + 1).read_to_end(&mut content);
    let read = read.map_err(|source| SandboxError::io(path, source))? as u64;
    if read > MAX_READ { Err(too_large(read)) } else { Ok(content) }
}

pub(crate) fn open(roots: &Roots, path: &VPath) -> Result<OpenFile> {
    let (root, relative) = roots.open(path)?;
    let explained = |errno| explain(path, errno);
    let fd = root.beneath(relative, OFlags::RDONLY | CAREFUL, Mode::empty()).map_err(explained)?;
    regular_file(&fd, path)?;
    let found = fstat(&fd).map_err(explained)?;
    Ok(OpenFile::of(File::from(fd), found.st_size.unsigned_abs(), found.st_mtime as i64))
}

/// Reads a file that is about to be rewritten, so what cannot be written fails before the edit runs.
pub(crate) fn modify_read(roots: &Roots, path: &VPath) -> Result<Vec<u8>> {
    roots.open_for_change(path)?;
    read(roots, path)
}

pub(crate) fn stat(roots: &Roots, path: &VPath) -> Result<Stat> {
    let Place::In { root, relative } = roots.locate(path)? else {
        return Ok(Stat { kind: EntryKind::Directory, size: 0, modified: 0, read_only: true });
    };
    let read_only = !root.writable;
    let fd = OpenRoot::open(root, path)?
        .beneath(relative, OFlags::PATH, Mode::empty())
        .map_err(|errno| explain(path, errno))?;
    let found = fstat(&fd).map_err(|errno| explain(path, errno))?;
    let kind = entry_kind(FileType::from_raw_mode(found.st_mode));
    let size = if kind == EntryKind::File { found.st_size.unsigned_abs() } else { 0 };
    Ok(Stat { kind, size, modified: found.st_mtime as i64, read_only })
}

pub(crate) fn list(roots: &Roots, path: &VPath, depth: usize) -> Result<Listing> {
    let mut listing = Listing::default();
    match roots.locate(path)? {
        Place::In { root, relative } => {
            let root = OpenRoot::open(root, path)?;
            list_below(&root, relative, path, depth, 0, &mut listing)?;
        }
        Place::UserData => {
            // Their usual order has the workspace first, which suits a search; a listing promises path order.
            let mut own: Vec<_> = roots.of_thread().collect();
            own.sort_unstable_by_key(|root| root.shown_at.as_str());
            for root in own {
                let shown = &root.shown_at;
                let entry = Entry { path: shown.clone(), kind: EntryKind::Directory, size: 0, depth: 1 };
                listing.entries.push(entry);
                if depth > 1 {
                    list_below(&OpenRoot::open(root, path)?, "", shown, depth - 1, 1, &mut listing)?;
                }
            }
        }
    }
    Ok(listing)
}

fn list_below(
    root: &OpenRoot,
    relative: &str,
    path: &VPath,
    depth: usize,
    above: usize,
    listing: &mut Listing,
) -> Result<()> {
    let mut walk = Walk::start(root, relative, depth.max(1)).map_err(|errno| explain(path, errno))?;
    while let Some(found) = walk.next(is_noise) {
        if listing.entries.len() >= MAX_LISTED {
            listing.truncated = true;
            return Ok(());
        }
        listing.entries.push(Entry {
            path: path.child(&found.shown),
            kind: found.kind,
            size: found.size(root),
            depth: above + found.depth,
        });
    }
    listing.truncated |= walk.truncated();
    Ok(())
}

pub(crate) fn remove(roots: &Roots, path: &VPath) -> Result<()> {
    let (root, relative) = roots.open_for_change(path)?;
    let (parent, name) = split(relative);
    let parent = root
        .beneath(parent, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
        .map_err(|errno| explain(path, errno))?;
    match unlinkat(&parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => unlinkat(&parent, name, AtFlags::REMOVEDIR),
        other => other,
    }
    .and_then(|()| keep_names(&parent))
    .map_err(|errno| explain(path, errno))
}

pub(super) fn regular_file(fd: &OwnedFd, path: &VPath) -> Result<(Mode, u64)> {
    let found = fstat(fd).map_err(|errno| explain(path, errno))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok((Mode::from_raw_mode(found.st_mode), found.st_size.unsigned_abs())),
        FileType::Directory => Err(SandboxError::IsDirectory(path.clone())),
        other => Err(SandboxError::NotAFile { path: path.clone(), kind: in_words(other) }),
    }
}

pub(super) fn in_words(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        FileType::Symlink => "symbolic link",
        FileType::CharacterDevice | FileType::BlockDevice => "device",
        _ => "special file",
    }
}
