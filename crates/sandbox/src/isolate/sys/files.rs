//! Calls on files, directories, pipes and descriptors.
//!
//! Invariant: see the module above: system calls only, on what is given.

use std::ffi::CStr;
use std::os::fd::RawFd;

use libc::{c_int, c_long, pid_t};

use super::{Errno, check};

pub(in crate::isolate) fn write_file(path: &CStr, content: &[u8]) -> Result<(), Errno> {
    open_and_write(path, libc::O_WRONLY | libc::O_CLOEXEC, content)
}

pub(in crate::isolate) fn create_file(path: &CStr, content: &[u8]) -> Result<(), Errno> {
    open_and_write(path, libc::O_WRONLY | libc::O_CLOEXEC | libc::O_CREAT | libc::O_EXCL, content)
}

fn open_and_write(path: &CStr, flags: c_int, content: &[u8]) -> Result<(), Errno> {
    let mode: libc::mode_t = 0o644;
    // SAFETY: `path` is NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    let fd = unsafe { libc::open(path.as_ptr(), flags, mode) };
    check(fd.into())?;
    // One write: the kernel takes an id map only whole.
    let result = if content.is_empty() { Ok(()) } else { write_once(fd, content) };
    // SAFETY: `fd` was opened above and nobody else knows it.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::close(fd);
    }
    result
}

fn write_once(fd: RawFd, content: &[u8]) -> Result<(), Errno> {
    // SAFETY: pointer and length are those of a live slice.
    #[expect(unsafe_code, reason = "system call")]
    let written = unsafe { libc::write(fd, content.as_ptr().cast(), content.len()) };
    check(written as c_long)
}

/// Moves the calling process into the control group whose `cgroup.procs` this is.
pub(in crate::isolate) fn join(procs: RawFd) -> Result<(), Errno> {
    write_once(procs, b"0")
}

/// Moves another process there.
pub(in crate::isolate) fn put_into(procs: RawFd, pid: pid_t) -> Result<(), Errno> {
    let mut digits = [0_u8; 10];
    let mut left = pid.unsigned_abs();
    let mut used = 0;
    for slot in digits.iter_mut().rev() {
        *slot = b'0' + (left % 10) as u8;
        left /= 10;
        used += 1;
        if left == 0 {
            break;
        }
    }
    write_once(procs, digits.get(digits.len() - used..).unwrap_or_default())
}

#[derive(Clone, Copy)]
pub(in crate::isolate) struct Pipe {
    pub(in crate::isolate) read: RawFd,
    pub(in crate::isolate) write: RawFd,
}

pub(in crate::isolate) fn pipe() -> Result<Pipe, Errno> {
    let mut ends: [c_int; 2] = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
    let [read, write] = ends;
    Ok(Pipe { read, write })
}

pub(in crate::isolate) fn read_byte(fd: RawFd) -> Result<u8, Errno> {
    let mut byte = [0_u8];
    // SAFETY: room for one byte.
    #[expect(unsafe_code, reason = "system call")]
    let read = unsafe { libc::read(fd, byte.as_mut_ptr().cast(), 1) };
    check(read as c_long)?;
    let [byte] = byte;
    if read == 1 { Ok(byte) } else { Err(libc::EPIPE) }
}

/// For a message smaller than a pipe's atomic unit; there is nobody left to tell of a failure.
pub(in crate::isolate) fn write_all(fd: RawFd, content: &[u8]) {
    let _ = write_once(fd, content);
}

pub(in crate::isolate) fn make_directory(path: &CStr) -> Result<(), Errno> {
    // SAFETY: `path` is NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::mkdir(path.as_ptr(), 0o755) }.into())
}

pub(in crate::isolate) fn remove_directory(path: &CStr) -> Result<(), Errno> {
    // SAFETY: `path` is NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::rmdir(path.as_ptr()) }.into())
}

pub(in crate::isolate) fn make_link(target: &CStr, path: &CStr) -> Result<(), Errno> {
    // SAFETY: both are NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::symlink(target.as_ptr(), path.as_ptr()) }.into())
}

pub(in crate::isolate) fn change_directory(path: &CStr) -> Result<(), Errno> {
    // SAFETY: `path` is NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::chdir(path.as_ptr()) }.into())
}

/// Gives what a descriptor stands for to another user, who could not open it by name otherwise (`/dev/stdout`).
pub(in crate::isolate) fn give_to(fd: RawFd, id: u32) {
    // SAFETY: takes no pointer. It fails for what has no owner, which is then not opened by name either.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::fchown(fd, id, id);
    }
}

pub(in crate::isolate) fn open_path(path: &CStr) -> Result<RawFd, Errno> {
    // SAFETY: `path` is NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    check(fd.into()).map(|()| fd)
}

pub(in crate::isolate) fn close(fd: RawFd) {
    // SAFETY: the caller opened it and uses it no more.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::close(fd);
    }
}

/// Closes every descriptor but the given ones.
pub(in crate::isolate) fn close_all_except<const N: usize>(mut kept: [RawFd; N]) {
    kept.sort_unstable();
    let mut from = 0;
    for fd in kept {
        if fd > from {
            close_range(from, fd - 1, 0);
        }
        from = fd + 1;
    }
    close_range(from, c_int::MAX, 0);
}

/// Has exec close everything but stdin, stdout and stderr.
pub(in crate::isolate) fn leave_only_standard_streams() {
    close_range(3, c_int::MAX, libc::CLOSE_RANGE_CLOEXEC as c_int);
}

fn close_range(first: RawFd, last: RawFd, flags: c_int) {
    // SAFETY: takes no pointer; the process is about to exec or never returns to code that owns a descriptor.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::syscall(libc::SYS_close_range, first, last, flags);
    }
}
