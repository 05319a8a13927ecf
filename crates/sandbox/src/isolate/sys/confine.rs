//! Calls that take rights away from the process that makes them.
//!
//! Invariant: see the module above: system calls only, on what is given; none gives anything back.

use std::os::fd::RawFd;
use std::ptr;

use libc::{c_int, c_ulong, c_void, sock_filter};

use super::super::landlock::{PathAttr, RulesetAttr};
use super::{Errno, Resource, check, prctl};

/// Sets soft and hard limit to `limit`, or to the present hard limit if that is lower.
pub(in crate::isolate) fn lower_limit(resource: Resource, limit: u64) -> Result<(), Errno> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `now` is a live, writable `struct rlimit`.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::getrlimit(resource, &raw mut now) }.into())?;
    let limit = limit.min(now.rlim_max);
    let new = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: `new` is a live `struct rlimit`.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::setrlimit(resource, &raw const new) }.into())
}

pub(in crate::isolate) fn forbid_new_privileges() -> Result<(), Errno> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1)
}

/// So that also an executable with file capabilities gets none.
pub(in crate::isolate) fn empty_bounding_set() -> Result<(), Errno> {
    // The kernel knows fewer than 64; the first one it does not know ends the list.
    for capability in 0..64 {
        match prctl(libc::PR_CAPBSET_DROP, capability) {
            Err(libc::EINVAL) => break,
            other => other?,
        }
    }
    Ok(())
}

/// Empties the sets a process acts by.
pub(in crate::isolate) fn drop_capabilities() -> Result<(), Errno> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [0_u32; 6];
    // SAFETY: `header` is a `struct __user_cap_header_struct`; version 3 reads two data structs of three `u32` each.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) })
}

pub(in crate::isolate) fn install_filter(filter: &[sock_filter]) -> Result<(), Errno> {
    seccomp(filter, 0).map(|_| ())
}

/// Returns the descriptor through which the calls that the filter reports are read and answered.
pub(in crate::isolate) fn install_reporting_filter(filter: &[sock_filter]) -> Result<RawFd, Errno> {
    seccomp(filter, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)
}

/// The same for calls that are only watched. A signal must not break off a call that would have gone through without
/// hart, so this needs a kernel that lets the caller wait undisturbed (Linux 5.19).
pub(in crate::isolate) fn install_watching_filter(filter: &[sock_filter]) -> Result<RawFd, Errno> {
    seccomp(filter, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
}

fn seccomp(filter: &[sock_filter], flags: c_ulong) -> Result<RawFd, Errno> {
    let len = libc::c_ushort::try_from(filter.len()).map_err(|_| libc::E2BIG)?;
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: `program` points to `len` live instructions; the kernel copies and never writes them.
    #[expect(unsafe_code, reason = "system call")]
    let result = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) };
    check(result).map(|()| result as RawFd)
}

/// Becomes another user for good, with no groups but `id`. The C library's functions would look for other threads.
pub(in crate::isolate) fn become_user(id: u32) -> Result<(), Errno> {
    let none: *const libc::gid_t = ptr::null();
    // SAFETY: the list of groups has no entry; the other calls take numbers.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        check(libc::syscall(libc::SYS_setgroups, 0, none))?;
        check(libc::syscall(libc::SYS_setresgid, id, id, id))?;
        check(libc::syscall(libc::SYS_setresuid, id, id, id))
    }
}

pub(in crate::isolate) fn landlock_abi() -> u32 {
    let nothing: *const c_void = ptr::null();
    // SAFETY: asked for the version, the call takes no attribute and no size.
    #[expect(unsafe_code, reason = "system call")]
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, 1_u32) };
    u32::try_from(version).unwrap_or_default()
}

pub(in crate::isolate) fn landlock_create(attr: &RulesetAttr) -> Result<RawFd, Errno> {
    let size = size_of::<RulesetAttr>();
    let attr: *const RulesetAttr = attr;
    // SAFETY: `attr` has the layout of `struct landlock_ruleset_attr` and `size` is its length.
    #[expect(unsafe_code, reason = "system call")]
    let fd = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, attr, size, 0_u32) };
    check(fd).map(|()| fd as RawFd)
}

pub(in crate::isolate) fn landlock_allow(ruleset: RawFd, attr: &PathAttr) -> Result<(), Errno> {
    const PATH_BENEATH: c_int = 1;
    let attr: *const PathAttr = attr;
    // SAFETY: `attr` has the layout of `struct landlock_path_beneath_attr`.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::syscall(libc::SYS_landlock_add_rule, ruleset, PATH_BENEATH, attr, 0_u32) })
}

pub(in crate::isolate) fn landlock_enforce(ruleset: RawFd) -> Result<(), Errno> {
    // SAFETY: takes no pointer.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0_u32) })
}
