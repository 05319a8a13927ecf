//! Making, replacing and extending files.
//!
//! Invariant: whoever reads, and whenever hart is killed, there is the old content or the new. Only what is appended to
//! a file that is large or has a second name is written in place. What was written is on the disk before that is said.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, fchmod, fstat, linkat, mkdirat, openat,
    readlinkat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::keep::{keep_content, keep_names};
use super::ops::{CAREFUL, in_words, regular_file};
use super::place::{OpenRoot, Roots, explain};
use crate::error::{Result, SandboxError};
use crate::path::{PathError, VPath};

/// Like the kernel's own limit for links in one path.
const MAX_LINKS: usize = 40;
/// A larger file is not copied to append to it.
const COPIED: u64 = 8 << 20;
/// A command may write to the file while it is copied; after so many tries it is appended to in place.
const ATTEMPTS: usize = 3;

/// What shall be done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is made if it is not there, with the directories above it.
    Write,
    Edit,
    /// Of the name, not of what it links to.
    Remove,
}

/// A file by the directory it is in, so that all names that lead to it through links are one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileKey {
    device: u64,
    directory: u64,
    name: String,
}

/// `None` if it leads nowhere; what is to be done will say why.
pub(crate) fn key(roots: &Roots, path: &VPath, change: Change) -> Option<FileKey> {
    let (root, relative) = roots.open_for_change(path).ok()?;
    let (parent, name) = match change {
        Change::Remove => (parent(&root, relative).ok()?, split(relative).1.to_owned()),
        Change::Write | Change::Edit => {
            let target = final_target(&root, relative, path, change).ok()?;
            (target.parent, target.name)
        }
    };
    let found = fstat(parent).ok()?;
    Some(FileKey { device: found.st_dev, directory: found.st_ino, name })
}

/// Writes beside the target and puts it in its place.
pub(crate) fn create_or_replace(roots: &Roots, path: &VPath, content: &[u8], replace: bool) -> Result<()> {
    let mut reception = Reception::begin(roots, path, replace)?;
    reception.take(content)?;
    reception.finish().map(|_| ())
}

/// A file that comes part by part. Nothing of it is seen before the end; dropped, it leaves nothing behind.
pub(crate) struct Reception {
    staged: Staged,
    path: VPath,
    replace: bool,
    size: u64,
}

impl Reception {
    pub(crate) fn begin(roots: &Roots, path: &VPath, replace: bool) -> Result<Self> {
        let (root, relative) = roots.open_for_change(path)?;
        if !replace && parent(&root, relative).is_ok_and(|parent| exists(&parent, split(relative).1)) {
            return Err(SandboxError::AlreadyExists(path.clone()));
        }
        let target = final_target(&root, relative, path, Change::Write)?;
        let staged = Staged::new(&root, target).map_err(|errno| explain(path, errno))?;
        Ok(Self { staged, path: path.clone(), replace, size: 0 })
    }

    pub(crate) fn take(&mut self, part: &[u8]) -> Result<()> {
        self.staged.file.write_all(part).map_err(|source| SandboxError::io(&self.path, source))?;
        self.size += part.len() as u64;
        Ok(())
    }

    /// Puts it in its place and says how large it is.
    pub(crate) fn finish(self) -> Result<u64> {
        let Self { staged, path, replace, size } = self;
        staged.put(replace).map_err(|errno| explain(&path, errno))?;
        Ok(size)
    }
}

pub(crate) fn append(roots: &Roots, path: &VPath, content: &[u8]) -> Result<()> {
    let (root, relative) = roots.open_for_change(path)?;
    for _ in 0..ATTEMPTS {
        let target = final_target(&root, relative, path, Change::Write)?;
        match extend(&root, target, path, content)? {
            Extended::Done => return Ok(()),
            Extended::Meanwhile => {}
            Extended::InPlace => break,
        }
    }
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | CAREFUL;
    let fd = root.beneath(relative, flags, Mode::from(0o644)).map_err(|errno| explain(path, errno))?;
    regular_file(&fd, path)?;
    let mut file = File::from(fd);
    file.write_all(content).map_err(|source| SandboxError::io(path, source))?;
    keep_content(&file).map_err(|errno| explain(path, errno))
}

enum Extended {
    Done,
    /// Someone else changed the file.
    Meanwhile,
    /// It cannot be replaced by a longer one.
    InPlace,
}

/// Replaces a file by a copy with `content` at its end.
fn extend(root: &OpenRoot, target: Target, path: &VPath, content: &[u8]) -> Result<Extended> {
    let explained = |errno| explain(path, errno);
    let failed = |source: io::Error| SandboxError::io(path, source);
    if target.mode.is_none() {
        let mut staged = Staged::new(root, target).map_err(explained)?;
        staged.file.write_all(content).map_err(failed)?;
        return match staged.put(false) {
            Ok(()) => Ok(Extended::Done),
            Err(Errno::EXIST) => Ok(Extended::Meanwhile),
            Err(errno) => Err(explain(path, errno)),
        };
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | CAREFUL;
    let old = match openat(&target.parent, target.name.as_str(), flags, Mode::empty()) {
        Ok(old) => old,
        Err(Errno::NOENT | Errno::LOOP) => return Ok(Extended::Meanwhile),
        // Whoever may not read it may still be allowed to append.
        Err(_) => return Ok(Extended::InPlace),
    };
    regular_file(&old, path)?;
    let before = fstat(&old).map_err(explained)?;
    if before.st_nlink > 1 || before.st_size.unsigned_abs() > COPIED {
        return Ok(Extended::InPlace);
    }
    let mut staged = Staged::new(root, target).map_err(explained)?;
    let mut old = File::from(old);
    let copied = io::copy(&mut old, &mut staged.file).map_err(failed)?;
    staged.file.write_all(content).map_err(failed)?;
    let target = &staged.target;
    let now = statat(&target.parent, target.name.as_str(), AtFlags::SYMLINK_NOFOLLOW);
    let is_same = now.is_ok_and(|now| stamp(&now) == stamp(&before));
    if !is_same || copied != before.st_size.unsigned_abs() {
        return Ok(Extended::Meanwhile);
    }
    staged.put(true).map_err(explained)?;
    Ok(Extended::Done)
}

fn stamp(found: &Stat) -> (u64, i64, i64, i64) {
    (found.st_ino, found.st_size, found.st_mtime, found.st_mtime_nsec as i64)
}

/// A new file that is not in its place yet. Dropped, it leaves nothing behind.
struct Staged {
    target: Target,
    file: File,
    /// Where file systems need a name for it. It is taken for noise if hart is killed before it is gone.
    name: Option<String>,
}

impl Staged {
    fn new(root: &OpenRoot, target: Target) -> Result<Self, Errno> {
        let (mode, flags) = (Mode::from(0o644), OFlags::WRONLY | OFlags::CLOEXEC);
        let unnamed = || {
            // Without this directory it could not get a name later.
            statat(CWD, OWN_FILES, AtFlags::empty())?;
            openat(&target.parent, c".", flags | OFlags::TMPFILE, mode)
        };
        let named = |name: &str| {
            openat(&target.parent, name, flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, mode)
        };
        let (fd, name) = match unnamed() {
            Ok(fd) => (fd, None),
            Err(_) => with_a_new_name(named).map(|(fd, name)| (fd, Some(name)))?,
        };
        let staged = Self { target, file: File::from(fd), name };
        root.adopt(&staged.file);
        if let Some(mode) = staged.target.mode {
            fchmod(&staged.file, mode)?;
        }
        Ok(staged)
    }

    fn put(mut self, replace: bool) -> Result<(), Errno> {
        // Before it has its name: otherwise a loss of power may leave the name and nothing in it.
        keep_content(&self.file)?;
        let (parent, to) = (self.target.parent.as_fd(), self.target.name.as_str());
        let from = match &self.name {
            Some(name) => name,
            None => {
                let own = format!("{OWN_FILES}/{}", self.file.as_raw_fd());
                let link = |name: &str| linkat(CWD, own.as_str(), parent, name, AtFlags::SYMLINK_FOLLOW);
                if !replace {
                    link(to)?;
                    return keep_names(parent);
                }
                self.name.insert(with_a_new_name(link)?.1)
            }
        };
        if replace {
            renameat(parent, from.as_str(), parent, to)?;
        } else {
            renameat_with(parent, from.as_str(), parent, to, RenameFlags::NOREPLACE)?;
        }
        self.name = None;
        keep_names(parent)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // Best effort: the name is ours alone, and what failed is already reported.
            let _ = unlinkat(&self.target.parent, name.as_str(), AtFlags::empty());
        }
    }
}

/// The directory and name a write ends in, once links at the last component are followed.
struct Target {
    parent: OwnedFd,
    name: String,
    /// Of the file that is there.
    mode: Option<Mode>,
}

fn final_target(root: &OpenRoot, relative: &str, path: &VPath, change: Change) -> Result<Target> {
    let mut relative = relative.to_owned();
    for _ in 0..MAX_LINKS {
        let parent = match change {
            Change::Write => open_parent(root, &relative, path)?,
            Change::Edit | Change::Remove => parent(root, &relative).map_err(|errno| explain(path, errno))?,
        };
        let (above, name) = split(&relative);
        let found = match statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(Target { parent, name: name.to_owned(), mode: None }),
            found => found.map_err(|errno| explain(path, errno))?,
        };
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
    match parent(root, relative) {
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
                Ok(()) => keep_names(&parent).and_then(|()| open(&made)).inspect(|dir| root.adopt(dir)),
                Err(Errno::EXIST) => open(&made),
                Err(errno) => Err(errno),
            },
            other => other,
        }
        .map_err(|errno| explain(path, errno))?;
    }
    Ok(parent)
}

/// Opens the directory of `relative`.
fn parent(root: &OpenRoot, relative: &str) -> Result<OwnedFd, Errno> {
    root.beneath(split(relative).0, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
}

fn exists(parent: &OwnedFd, name: &str) -> bool {
    statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

pub(super) fn split(relative: &str) -> (&str, &str) {
    relative.rsplit_once('/').unwrap_or(("", relative))
}

/// Where a process finds what it has open.
const OWN_FILES: &str = "/proc/self/fd";

/// Unique in this process and, by the process id, among hart processes that share a directory. A killed one may have
/// left a name behind, and another may have its id now.
fn with_a_new_name<T>(make: impl Fn(&str) -> Result<T, Errno>) -> Result<(T, String), Errno> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let name = format!(".hart-{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        match make(&name) {
            Err(Errno::EXIST) => {}
            made => return made.map(|made| (made, name)),
        }
    }
}
