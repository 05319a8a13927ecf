//! Calls that build the tree of mounts.
//!
//! Invariant: see the module above: system calls only, on what is given.

use std::ffi::CStr;
use std::os::fd::RawFd;
use std::ptr;

use libc::{c_char, c_int, c_ulong, c_void};

use super::{Errno, check, close};

/// `MOUNT_ATTR_*` of `mount_setattr(2)`.
pub(in crate::isolate) const READ_ONLY: u64 = 0x1;
pub(in crate::isolate) const NO_SUID: u64 = 0x2;
pub(in crate::isolate) const NO_DEVICES: u64 = 0x4;

pub(in crate::isolate) fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: c_ulong,
    options: Option<&CStr>,
) -> Result<(), Errno> {
    let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    let options: *const c_void = pointer(options).cast();
    // SAFETY: each pointer is null or a NUL-terminated string that outlives the call.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, options) }.into())
}

pub(in crate::isolate) fn bind(source: &CStr, target: &CStr) -> Result<(), Errno> {
    mount(Some(source), target, None, libc::MS_BIND | libc::MS_REC, None)
}

/// `struct mount_attr`.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Adds restrictions to a mount and, unlike a remount, also to all mounts below it.
pub(in crate::isolate) fn restrict_mount(path: &CStr, restrictions: u64, below: bool) -> Result<(), Errno> {
    let attr = MountAttr { set: restrictions, clear: 0, propagation: 0, userns_fd: 0 };
    let flags = if below { libc::AT_RECURSIVE } else { 0 };
    let size = size_of::<MountAttr>();
    let path: *const c_char = path.as_ptr();
    // SAFETY: `path` is NUL-terminated, `attr` has the layout of `struct mount_attr` and `size` is its length.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe {
        libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, path, flags, &raw const attr, size)
    })
}

/// A copy of the mounts at `source` whose owners are translated by the user namespace `mapping`, put at `target`.
pub(in crate::isolate) fn bind_mapped(
    source: &CStr,
    target: &CStr,
    restrictions: u64,
    mapping: RawFd,
) -> Result<(), Errno> {
    const ID_MAP: u64 = 0x10_0000;
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as u32;
    // SAFETY: `source` is NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    let tree = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, source.as_ptr(), flags) };
    check(tree)?;
    let tree = tree as RawFd;
    let attr = MountAttr { set: restrictions | ID_MAP, clear: 0, propagation: 0, userns_fd: mapping as u64 };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    let size = size_of::<MountAttr>();
    // SAFETY: `attr` has the layout of `struct mount_attr`, `size` is its length, and the path is an empty C string.
    #[expect(unsafe_code, reason = "system call")]
    let mapped = check(unsafe {
        libc::syscall(libc::SYS_mount_setattr, tree, c"".as_ptr(), flags, &raw const attr, size)
    });
    let moved = mapped.and_then(|()| {
        const FROM_DESCRIPTOR: c_int = 4;
        // SAFETY: both paths are NUL-terminated and alive.
        #[expect(unsafe_code, reason = "system call")]
        check(unsafe {
            let target = target.as_ptr();
            libc::syscall(libc::SYS_move_mount, tree, c"".as_ptr(), libc::AT_FDCWD, target, FROM_DESCRIPTOR)
        })
    });
    close(tree);
    moved
}

/// Whether the file system at `path` lets its owners be translated. Nothing is mounted anywhere.
pub(in crate::isolate) fn can_be_mapped(path: &CStr, mapping: RawFd) -> Result<(), Errno> {
    match bind_mapped(path, c"/nonexistent", 0, mapping) {
        Err(libc::ENOENT) => Ok(()),
        other => other,
    }
}

pub(in crate::isolate) fn pivot_root(new: &CStr, old: &CStr) -> Result<(), Errno> {
    // SAFETY: both are NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::syscall(libc::SYS_pivot_root, new.as_ptr(), old.as_ptr()) })
}

pub(in crate::isolate) fn detach(path: &CStr) -> Result<(), Errno> {
    // SAFETY: `path` is NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }.into())
}
