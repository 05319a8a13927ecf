//! Roots of a sandbox, and opening things beneath them.
//!
//! Invariant: `openat2` with `RESOLVE_BENEATH` is the only call here that resolves a path of a thread.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Uid, chownat, fstat, openat, openat2};
use rustix::io::Errno;

use crate::error::{Result, SandboxError};
use crate::path::{ARCHIVE_ROOTS, HostPath, PathError, THREAD_ROOTS, USER_DATA, VPath};

/// One directory of the host that the sandbox shows.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(crate) shown_at: VPath,
    pub(crate) host: HostPath,
    pub(crate) writable: bool,
}

impl Root {
    pub(crate) fn is_archive(&self) -> bool {
        ARCHIVE_ROOTS.contains(&self.shown_at.as_str())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Roots(pub(crate) Vec<Root>);

/// Where a virtual path leads.
pub(crate) enum Place<'a> {
    /// The directory above the thread's own three; it has no host side.
    UserData,
    In {
        root: &'a Root,
        relative: &'a str,
    },
}

impl Roots {
    pub(crate) fn locate<'a>(&'a self, path: &'a VPath) -> Result<Place<'a>> {
        if path.as_str() == USER_DATA {
            return Ok(Place::UserData);
        }
        for root in &self.0 {
            if path.is_under(root.shown_at.as_str()) {
                let rest = path.as_str().strip_prefix(root.shown_at.as_str()).unwrap_or_default();
                return Ok(Place::In { root, relative: rest.trim_start_matches('/') });
            }
        }
        Err(SandboxError::NotFound(path.clone()))
    }

    /// For reading: the root's descriptor and the path below it.
    pub(crate) fn open<'a>(&'a self, path: &'a VPath) -> Result<(OpenRoot, &'a str)> {
        match self.locate(path)? {
            Place::UserData => Err(SandboxError::IsDirectory(path.clone())),
            Place::In { root, relative } => Ok((OpenRoot::open(root, path)?, relative)),
        }
    }

    /// For changing: refuses read-only roots and the roots themselves.
    pub(crate) fn open_for_change<'a>(&'a self, path: &'a VPath) -> Result<(OpenRoot, &'a str)> {
        match self.locate(path)? {
            Place::In { root, .. } if !root.writable => Err(SandboxError::ReadOnly(path.clone())),
            Place::UserData => Err(SandboxError::ReadOnly(path.clone())),
            Place::In { relative: "", .. } => Err(SandboxError::IsDirectory(path.clone())),
            Place::In { root, relative } => Ok((OpenRoot::open(root, path)?, relative)),
        }
    }

    /// The thread's own roots, in their usual order.
    pub(crate) fn of_thread(&self) -> impl Iterator<Item = &Root> {
        self.0.iter().filter(|root| THREAD_ROOTS.contains(&root.shown_at.as_str()))
    }

    /// The roots that only hart writes to, for hart.
    pub(crate) fn archives(&self) -> Self {
        let archives = self.0.iter().filter(|root| root.is_archive());
        Self(archives.map(|root| Root { writable: true, ..root.clone() }).collect())
    }
}

/// A root held open: even if a directory above it is renamed, this stays the same directory.
pub(crate) struct OpenRoot(OwnedFd);

impl OpenRoot {
    /// `path` is what the caller asked for; errors name it.
    pub(crate) fn open(root: &Root, path: &VPath) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, root.host.as_path(), flags, Mode::empty()).map(Self).map_err(|errno| explain(path, errno))
    }

    /// Opens what `relative` leads to. Links may be followed as long as they stay in the root.
    pub(crate) fn beneath(
        &self,
        relative: impl AsRef<OsStr>,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Errno> {
        self.resolve(relative.as_ref(), flags, mode, ResolveFlags::empty())
    }

    /// Gives something hart just made to the owner of the root, where that is not hart's own user: commands may be it.
    pub(crate) fn adopt(&self, made: impl AsFd) {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        if let Ok(found) = fstat(&self.0)
            && found.st_uid != 0
        {
            let (uid, gid) = (Uid::from_raw(found.st_uid), Gid::from_raw(found.st_gid));
            // A file system without owners has nothing to give.
            let _ = chownat(made, c"", Some(uid), Some(gid), AtFlags::EMPTY_PATH);
        }
    }

    /// Like [`Self::beneath`], but a link anywhere on the way is an error.
    pub(crate) fn beneath_without_links(&self, relative: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.resolve(relative, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
    }

    fn resolve(
        &self,
        relative: &OsStr,
        flags: OFlags,
        mode: Mode,
        more: ResolveFlags,
    ) -> Result<OwnedFd, Errno> {
        let relative = if relative.is_empty() { OsStr::new(".") } else { relative };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | more;
        // The kernel answers EAGAIN when a rename ran into a `..` it was resolving; a thread can provoke that at will.
        const ATTEMPTS: usize = 64;
        let mut result = Err(Errno::AGAIN);
        for _ in 0..ATTEMPTS {
            result = openat2(self.0.as_fd(), relative, flags | OFlags::CLOEXEC, mode, resolve);
            if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        result
    }
}

/// Turns the kernel's answer about `path` into ours.
pub(crate) fn explain(path: &VPath, errno: Errno) -> SandboxError {
    let path = path.clone();
    match errno {
        Errno::NOENT => SandboxError::NotFound(path),
        Errno::EXIST => SandboxError::AlreadyExists(path),
        Errno::ISDIR => SandboxError::IsDirectory(path),
        Errno::NOTDIR => SandboxError::NotADirectory(path),
        Errno::NOTEMPTY => SandboxError::NotEmpty(path),
        Errno::ROFS => SandboxError::ReadOnly(path),
        Errno::XDEV | Errno::LOOP => SandboxError::Path(PathError::Symlink { path }),
        Errno::NXIO => SandboxError::NotAFile { path, kind: "socket or FIFO" },
        Errno::NOSYS => SandboxError::Unavailable {
            reason: "the kernel lacks openat2, without which files cannot be opened safely".to_owned(),
            fix: "use Linux 5.6 or newer, and allow openat2 in the container's seccomp profile".to_owned(),
        },
        other => SandboxError::io(&path, other),
    }
}
