//! System calls that are safe between fork and exec, each behind a function that cannot be misused.
//!
//! Invariant: every function only makes system calls on what it is given; none allocates or takes a lock.

mod confine;
mod files;
mod mounts;
mod processes;
mod sockets;

use libc::{c_int, c_long, c_ulong};

pub(super) use confine::*;
pub(super) use files::*;
pub(super) use mounts::*;
pub(super) use processes::*;
pub(super) use sockets::*;

pub(super) type Errno = i32;
#[cfg(target_env = "gnu")]
pub(super) type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
pub(super) type Resource = c_int;

pub(super) fn unshare(namespaces: c_int) -> Result<(), Errno> {
    // SAFETY: takes no pointer. The caller is single-threaded: it was just forked.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::unshare(namespaces) }.into())
}

pub(super) fn set_host_name(name: &[u8]) -> Result<(), Errno> {
    // SAFETY: pointer and length are those of a live slice.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }.into())
}

pub(super) fn die_with_parent() -> Result<(), Errno> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong)
}

/// No ptrace, no `/proc/PID/mem`, no core dump.
pub(super) fn forbid_inspection() -> Result<(), Errno> {
    prctl(libc::PR_SET_DUMPABLE, 0)
}

/// Makes this process the parent of every orphan below it.
pub(super) fn adopt_orphans() -> Result<(), Errno> {
    prctl(libc::PR_SET_CHILD_SUBREAPER, 1)
}

fn prctl(option: c_int, argument: c_ulong) -> Result<(), Errno> {
    let unused: c_ulong = 0;
    // SAFETY: the options used here take a number, no pointer.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::prctl(option, argument, unused, unused, unused) }.into())
}

fn check(result: c_long) -> Result<(), Errno> {
    if result >= 0 {
        return Ok(());
    }
    // SAFETY: returns the address of this thread's errno, which is always valid to read.
    #[expect(unsafe_code, reason = "system call")]
    Err(unsafe { *libc::__errno_location() })
}
