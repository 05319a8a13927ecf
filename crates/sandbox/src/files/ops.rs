//! Read, write, list and remove, one blocking function each.
//!
//! Invariant: a write either replaces the whole file or leaves it as it was; only appends touch a file in place.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, fchmod, fstat, mkdirat, openat, readlinkat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::place::{OpenRoot, Place, Roots, explain};
use super::walk::{Walk, entry_kind, is_noise};
use crate::contract::{Entry, EntryKind, Listing, Stat};
use crate::error::{Result, SandboxError};
use crate::path::{PathError, VPath};

const MAX_READ: u64 = 100 << 20;
const MAX_LISTED: usize = 5_000;
/// Like the kernel's own limit for links in one path.
const MAX_LINKS: usize = 40;

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

/// Reads a file that is about to be rewritten, so what cannot be written fails before the edit runs.
pub(crate) fn modify_read(roots: &Roots, path: &VPath) -> Result<Vec<u8>> {
    roots.open_for_change(path)?;
    read(roots, path)
}

pub(crate) fn append(roots: &Roots, path: &VPath, content: &[u8]) -> Result<()> {
    let (root, relative) = roots.open_for_change(path)?;
    open_parent(&root, relative, path)?;
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | CAREFUL;
    let fd = root.beneath(relative, flags, Mode::from(0o644)).map_err(|errno| explain(path, errno))?;
    if regular_file(&fd, path)?.1 == 0 {
        root.adopt(&fd);
    }
    File::from(fd).write_all(content).map_err(|source| SandboxError::io(path, source))
}

/// Writes beside the target and renames over it.
pub(crate) fn create_or_replace(roots: &Roots, path: &VPath, content: &[u8], replace: bool) -> Result<()> {
    let (root, relative) = roots.open_for_change(path)?;
    let target = final_target(&root, relative, path, replace)?;
    let temporary = temporary_name();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(&target.parent, temporary.as_str(), flags, Mode::from(0o644))
        .map_err(|errno| explain(path, errno))?;
    root.adopt(&fd);
    let written = (|| {
        if let Some(mode) = target.mode {
            fchmod(&fd, mode).map_err(|errno| explain(path, errno))?;
        }
        File::from(fd).write_all(content).map_err(|source| SandboxError::io(path, source))?;
        let (parent, from, to) = (target.parent.as_fd(), temporary.as_str(), target.name.as_str());
        if replace {
            renameat(parent, from, parent, to)
        } else {
            renameat_with(parent, from, parent, to, RenameFlags::NOREPLACE)
        }
        .map_err(|errno| explain(path, errno))
    })();
    if written.is_err() {
        // Best effort: the name is ours alone, and what failed is already reported.
        let _ = unlinkat(&target.parent, temporary.as_str(), AtFlags::empty());
    }
    written
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
    .map_err(|errno| explain(path, errno))
}

/// The directory and name a write ends in, once links at the last component are followed.
struct Target {
    parent: OwnedFd,
    name: String,
    mode: Option<Mode>,
}

fn final_target(root: &OpenRoot, relative: &str, path: &VPath, replace: bool) -> Result<Target> {
    let mut relative = relative.to_owned();
    for _ in 0..MAX_LINKS {
        let parent = open_parent(root, &relative, path)?;
        let (above, name) = split(&relative);
        let found = match statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(Target { parent, name: name.to_owned(), mode: None }),
            found => found.map_err(|errno| explain(path, errno))?,
        };
        if !replace {
            return Err(SandboxError::AlreadyExists(path.clone()));
        }
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {
                let mode = Mode::from_raw_mode(found.st_mode & 0o777);
                return Ok(Target { parent, name: name.to_owned(), mode: Some(mode) });
            }
            FileType::Directory => return Err(SandboxError::IsDirectory(path.clone())),
            FileType::Symlink => {
                let link = readlinkat(&parent, name, Vec::new()).map_err(|errno| explain(path, errno))?;
                // An absolute target, even one that a command would see inside, cannot be checked by the kernel.
                let escape = || SandboxError::Path(PathError::Symlink { path: path.clone() });
                let link = link.to_str().ok().filter(|link| !link.starts_with('/')).ok_or_else(escape)?;
                relative = if above.is_empty() { link.to_owned() } else { format!("{above}/{link}") };
                if matches!(split(&relative).1, "" | "." | "..") {
                    return Err(SandboxError::IsDirectory(path.clone()));
                }
            }
            other => return Err(SandboxError::NotAFile { path: path.clone(), kind: in_words(other) }),
        }
    }
    Err(SandboxError::Path(PathError::Symlink { path: path.clone() }))
}

/// Opens the directory of `relative`, making what is missing on the way.
pub(super) fn open_parent(root: &OpenRoot, relative: &str, path: &VPath) -> Result<OwnedFd> {
    let directory = OFlags::PATH | OFlags::DIRECTORY;
    let open = |relative: &str| root.beneath(relative, directory, Mode::empty());
    let wanted = split(relative).0;
    match open(wanted) {
        Err(Errno::NOENT) => {}
        other => return other.map_err(|errno| explain(path, errno)),
    }
    let mut parent = open("").map_err(|errno| explain(path, errno))?;
    let mut made = String::new();
    for name in wanted.split('/').filter(|name| !name.is_empty()) {
        if !made.is_empty() {
            made.push('/');
        }
        made.push_str(name);
        // Each step starts from the root again: a link on the way may point upwards and still be inside.
        parent = match open(&made) {
            Err(Errno::NOENT) => match mkdirat(&parent, name, Mode::from(0o755)) {
                Ok(()) => open(&made).inspect(|dir| root.adopt(dir)),
                Err(Errno::EXIST) => open(&made),
                Err(errno) => Err(errno),
            },
            other => other,
        }
        .map_err(|errno| explain(path, errno))?;
    }
    Ok(parent)
}

fn split(relative: &str) -> (&str, &str) {
    relative.rsplit_once('/').unwrap_or(("", relative))
}

pub(super) fn regular_file(fd: &OwnedFd, path: &VPath) -> Result<(Mode, u64)> {
    let found = fstat(fd).map_err(|errno| explain(path, errno))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok((Mode::from_raw_mode(found.st_mode), found.st_size.unsigned_abs())),
        FileType::Directory => Err(SandboxError::IsDirectory(path.clone())),
        other => Err(SandboxError::NotAFile { path: path.clone(), kind: in_words(other) }),
    }
}

fn in_words(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        FileType::Symlink => "symbolic link",
        FileType::CharacterDevice | FileType::BlockDevice => "device",
        _ => "special file",
    }
}

/// Unique in this process and, by the process id, among hart processes that share a directory.
fn temporary_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!(".hart-{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
