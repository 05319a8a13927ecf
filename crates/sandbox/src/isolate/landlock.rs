//! Landlock: the kernel's own list of what a process may open, which holds even where a mount or a namespace fails.
//!
//! Invariant: a ruleset only ever takes away; what the kernel is too old to handle stays as the other layers left it.

use std::os::fd::RawFd;

use super::sys::{self, Errno};

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_BLOCK: u64 = 1 << 11;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
/// What makes sense for a file; the kernel refuses the rest in a rule about one.
const OF_A_FILE: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

const BIND_AND_CONNECT: u64 = 3;
const SIGNALS_AND_ABSTRACT_SOCKETS: u64 = 3;

/// What may be done below a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
    Read,
    /// Everything but making devices.
    Write,
    /// Reading and writing what is there.
    Device,
}

/// What a ruleset will forbid, fixed before fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handled {
    files: u64,
    ports: u64,
    scopes: u64,
}

impl Handled {
    /// `ports` also forbids TCP altogether, where the kernel can.
    pub(super) fn by(abi: u32, ports: bool) -> Self {
        let files = match abi {
            0 | 1 => (1 << 13) - 1,
            2 => (1 << 14) - 1,
            3 | 4 => (1 << 15) - 1,
            _ => (1 << 16) - 1,
        };
        Self {
            files,
            ports: if ports && abi >= 4 { BIND_AND_CONNECT } else { 0 },
            scopes: if abi >= 6 { SIGNALS_AND_ABSTRACT_SOCKETS } else { 0 },
        }
    }

    fn grant(self, grant: Grant, directory: bool) -> u64 {
        let wanted = match grant {
            Grant::Read => EXECUTE | READ_FILE | READ_DIR,
            Grant::Write => !(MAKE_CHAR | MAKE_BLOCK),
            Grant::Device => READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | IOCTL_DEV,
        };
        wanted & self.files & if directory { u64::MAX } else { OF_A_FILE }
    }
}

#[repr(C)]
pub(super) struct RulesetAttr {
    files: u64,
    ports: u64,
    scopes: u64,
}

#[repr(C, packed)]
pub(super) struct PathAttr {
    allowed: u64,
    parent: RawFd,
}

/// The version of Landlock this kernel has; zero for none.
pub(crate) fn abi() -> u32 {
    sys::landlock_abi()
}

/// A ruleset under construction. Only system calls: it is built after fork.
pub(super) struct Ruleset {
    fd: RawFd,
    handled: Handled,
}

impl Ruleset {
    pub(super) fn new(handled: Handled) -> Result<Self, Errno> {
        let attr = RulesetAttr { files: handled.files, ports: handled.ports, scopes: handled.scopes };
        sys::landlock_create(&attr).map(|fd| Self { fd, handled })
    }

    pub(super) fn allow(&self, parent: RawFd, grant: Grant, directory: bool) -> Result<(), Errno> {
        let attr = PathAttr { allowed: self.handled.grant(grant, directory), parent };
        sys::landlock_allow(self.fd, &attr)
    }

    /// From here on it holds, for this process and all it starts.
    pub(super) fn enforce(self) -> Result<(), Errno> {
        let result = sys::landlock_enforce(self.fd);
        sys::close(self.fd);
        result
    }
}
