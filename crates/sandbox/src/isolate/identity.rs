//! Who a command is to the kernel.
//!
//! Invariant: where hart is root, a command is root only if nothing else works, and then the report says so.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use super::{new_command, sys};

#[derive(Debug)]
pub(crate) enum Identity {
    /// hart's own user, alone in a user namespace without privileges.
    Own,
    /// hart is root, commands are this user.
    Dropped {
        id: u32,
        /// A user namespace in which root is `id`: mounts translated by it show root's files as this user's, and
        /// what this user makes in them is root's on the disk. `None` where the file system cannot do that.
        mapping: Option<OwnedFd>,
    },
}

impl Identity {
    /// What root should try first: `home` is where the threads' files are.
    pub(crate) fn other_than_root(id: u32, home: &Path) -> Self {
        let mapping = mapping(id).ok().filter(|mapping| can_be_mapped(home, mapping.as_raw_fd()));
        Self::Dropped { id, mapping }
    }

    /// The same without mounts, where files can only be given away.
    pub(crate) fn owning_its_files(id: u32) -> Self {
        Self::Dropped { id, mapping: None }
    }

    pub(super) fn mapping(&self) -> Option<RawFd> {
        match self {
            Self::Own | Self::Dropped { mapping: None, .. } => None,
            Self::Dropped { mapping: Some(fd), .. } => Some(fd.as_raw_fd()),
        }
    }

    /// The user to whom threads' files must belong on the disk, if that is not hart's own.
    pub(crate) fn owner(&self) -> Option<u32> {
        match self {
            Self::Dropped { id, mapping: None } => Some(*id),
            Self::Own | Self::Dropped { .. } => None,
        }
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Own if rustix::process::geteuid().is_root() => {
                "root without privileges (no other user could be used: give hart CAP_SETUID and CAP_SYS_ADMIN, \
                 or run it as an ordinary user)"
                    .to_owned()
            }
            Self::Own => format!("uid {}", rustix::process::geteuid().as_raw()),
            Self::Dropped { id, mapping: Some(_) } => format!("uid {id}, files mapped"),
            Self::Dropped { id, mapping: None } => format!("uid {id}, files owned by it"),
        }
    }
}

/// A user namespace lives as long as someone holds it, so the process it was made with can go.
fn mapping(id: u32) -> io::Result<OwnedFd> {
    let mut keeper = new_command("/bin/cat");
    keeper.env_clear().stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let unshare = || sys::unshare(libc::CLONE_NEWUSER).map_err(io::Error::from_raw_os_error);
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    // SAFETY: the closure makes one system call and touches no memory that another thread may hold.
    unsafe {
        keeper.pre_exec(unshare);
    }
    let mut keeper = keeper.spawn()?;
    let made = (|| {
        let of = |name: &str| format!("/proc/{}/{name}", keeper.id());
        for map in ["uid_map", "gid_map"] {
            std::fs::write(of(map), format!("0 {id} 1\n"))?;
        }
        Ok(std::fs::File::open(of("ns/user"))?.into())
    })();
    drop(keeper.stdin.take());
    keeper.wait()?;
    made
}

/// Asked of the nearest directory that exists: the home may not have been made yet.
fn can_be_mapped(home: &Path, mapping: RawFd) -> bool {
    let existing = home.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    let path = CString::new(existing.as_os_str().as_bytes());
    path.is_ok_and(|path| sys::can_be_mapped(&path, mapping).is_ok())
}
