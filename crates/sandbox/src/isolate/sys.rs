//! System calls that are safe between fork and exec, each behind a function that cannot be misused.
//!
//! Invariant: every function only makes system calls on what it is given; none allocates or takes a lock.

mod confine;
mod mounts;

use std::ffi::CStr;
use std::os::fd::RawFd;
use std::ptr;

use libc::{c_int, c_long, c_ulong, pid_t};

pub(super) use confine::*;
pub(super) use mounts::*;

pub(super) type Errno = i32;
#[cfg(target_env = "gnu")]
pub(super) type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
pub(super) type Resource = c_int;

pub(super) enum Waited {
    Exited { pid: pid_t, code: i32 },
    Signalled { pid: pid_t, signal: i32 },
    Nothing,
}

pub(super) fn unshare(namespaces: c_int) -> Result<(), Errno> {
    // SAFETY: takes no pointer. The caller is single-threaded: it was just forked.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::unshare(namespaces) }.into())
}

/// Zero in the child.
pub(super) fn fork() -> Result<pid_t, Errno> {
    // SAFETY: the caller is the only thread of a forked process, and both sides go on making system calls only.
    #[expect(unsafe_code, reason = "system call")]
    let pid = unsafe { libc::fork() };
    check(pid.into()).map(|()| pid)
}

pub(super) fn exit(code: c_int) -> ! {
    // SAFETY: ends the process at once, without running destructors or exit handlers that belong to hart.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::_exit(code)
    }
}

pub(super) fn new_session() {
    // SAFETY: takes no pointer. It fails only for a group leader, which is then already what it asks for.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::setsid();
    }
}

pub(super) fn write_file(path: &CStr, content: &[u8]) -> Result<(), Errno> {
    open_and_write(path, libc::O_WRONLY | libc::O_CLOEXEC, content)
}

pub(super) fn create_file(path: &CStr, content: &[u8]) -> Result<(), Errno> {
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
pub(super) fn join(procs: RawFd) -> Result<(), Errno> {
    write_once(procs, b"0")
}

/// Moves another process there.
pub(super) fn put_into(procs: RawFd, pid: pid_t) -> Result<(), Errno> {
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
pub(super) struct Pipe {
    pub(super) read: RawFd,
    pub(super) write: RawFd,
}

pub(super) fn pipe() -> Result<Pipe, Errno> {
    let mut ends: [c_int; 2] = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
    let [read, write] = ends;
    Ok(Pipe { read, write })
}

pub(super) fn read_byte(fd: RawFd) -> Result<u8, Errno> {
    let mut byte = [0_u8];
    // SAFETY: room for one byte.
    #[expect(unsafe_code, reason = "system call")]
    let read = unsafe { libc::read(fd, byte.as_mut_ptr().cast(), 1) };
    check(read as c_long)?;
    let [byte] = byte;
    if read == 1 { Ok(byte) } else { Err(libc::EPIPE) }
}

/// For a message smaller than a pipe's atomic unit; there is nobody left to tell of a failure.
pub(super) fn write_all(fd: RawFd, content: &[u8]) {
    let _ = write_once(fd, content);
}

pub(super) fn make_directory(path: &CStr) -> Result<(), Errno> {
    // SAFETY: `path` is NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::mkdir(path.as_ptr(), 0o755) }.into())
}

pub(super) fn remove_directory(path: &CStr) -> Result<(), Errno> {
    // SAFETY: `path` is NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::rmdir(path.as_ptr()) }.into())
}

pub(super) fn make_link(target: &CStr, path: &CStr) -> Result<(), Errno> {
    // SAFETY: both are NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::symlink(target.as_ptr(), path.as_ptr()) }.into())
}

pub(super) fn change_directory(path: &CStr) -> Result<(), Errno> {
    // SAFETY: `path` is NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::chdir(path.as_ptr()) }.into())
}

pub(super) fn set_host_name(name: &[u8]) -> Result<(), Errno> {
    // SAFETY: pointer and length are those of a live slice.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }.into())
}

/// A new network namespace has `lo`, but down: servers a command starts for itself would not be reachable.
pub(super) fn bring_up_loopback() -> Result<(), Errno> {
    #[repr(C)]
    struct InterfaceRequest {
        name: [u8; libc::IFNAMSIZ],
        flags: i16,
        padding: [u8; 22],
    }
    let mut name = [0; libc::IFNAMSIZ];
    for (slot, letter) in name.iter_mut().zip(*b"lo") {
        *slot = letter;
    }
    let request = InterfaceRequest { name, flags: libc::IFF_UP as i16, padding: [0; 22] };
    // SAFETY: takes no pointer.
    #[expect(unsafe_code, reason = "system call")]
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    check(socket.into())?;
    // SAFETY: `request` has the layout and size of `struct ifreq`, of which this call reads name and flags.
    #[expect(unsafe_code, reason = "system call")]
    let result = check(unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request) }.into());
    // SAFETY: the socket was opened above and nobody else knows it.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::close(socket);
    }
    result
}

pub(super) fn die_with_parent() -> Result<(), Errno> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong)
}

/// No ptrace, no `/proc/PID/mem`, no core dump.
pub(super) fn forbid_inspection() -> Result<(), Errno> {
    prctl(libc::PR_SET_DUMPABLE, 0)
}

/// Gives what a descriptor stands for to another user, who could not open it by name otherwise (`/dev/stdout`).
pub(super) fn give_to(fd: RawFd, id: u32) {
    // SAFETY: takes no pointer. It fails for what has no owner, which is then not opened by name either.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::fchown(fd, id, id);
    }
}

/// Makes this process the parent of every orphan below it.
pub(super) fn adopt_orphans() -> Result<(), Errno> {
    prctl(libc::PR_SET_CHILD_SUBREAPER, 1)
}

pub(super) fn open_path(path: &CStr) -> Result<RawFd, Errno> {
    // SAFETY: `path` is NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    check(fd.into()).map(|()| fd)
}

pub(super) fn close(fd: RawFd) {
    // SAFETY: the caller opened it and uses it no more.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::close(fd);
    }
}

/// A socket that listens on the loopback device of the network namespace the caller is in.
pub(super) fn listen_on_loopback(port: u16) -> Result<RawFd, Errno> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes no pointer.
    #[expect(unsafe_code, reason = "system call")]
    let socket = unsafe { libc::socket(libc::AF_INET, kind, 0) };
    check(socket.into())?;
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    };
    let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: `address` is a live `struct sockaddr_in` and `size` its length.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        check(libc::bind(socket, (&raw const address).cast(), size).into())?;
        check(libc::listen(socket, 64).into())?;
    }
    Ok(socket)
}

/// Hands a descriptor to the other end of a socket pair, with one byte that says what it is.
pub(super) fn send_descriptor(socket: RawFd, what: u8, fd: RawFd) -> Result<(), Errno> {
    #[repr(C)]
    struct Control {
        header: libc::cmsghdr,
        fd: c_int,
        padding: c_int,
    }
    let mut byte = [what];
    let mut data = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: both structures are plain integers and pointers, for which all zeroes is valid.
    #[expect(unsafe_code, reason = "the C structures have private padding on some systems")]
    let (mut control, mut message) =
        unsafe { (std::mem::zeroed::<Control>(), std::mem::zeroed::<libc::msghdr>()) };
    let length = size_of::<libc::cmsghdr>() + size_of::<c_int>();
    control.header.cmsg_len = length as _;
    control.header.cmsg_level = libc::SOL_SOCKET;
    control.header.cmsg_type = libc::SCM_RIGHTS;
    control.fd = fd;
    message.msg_iov = &raw mut data;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the message points to one live byte and one live control message of the stated lengths.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) } as c_long)
}

/// Kills every child of this process. True if there was one.
pub(super) fn kill_children() -> bool {
    let mut any = false;
    // SAFETY: `path` is NUL-terminated.
    #[expect(unsafe_code, reason = "system call")]
    let fd = unsafe { libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return false;
    }
    let mut buffer = [0_u8; 4096];
    let mut pid: pid_t = 0;
    loop {
        // SAFETY: the buffer is live and as long as said.
        #[expect(unsafe_code, reason = "system call")]
        let read = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
        let Ok(read @ 1..) = usize::try_from(read) else { break };
        for byte in buffer.iter().take(read) {
            if byte.is_ascii_digit() {
                pid = pid.saturating_mul(10).saturating_add(pid_t::from(byte - b'0'));
            } else if pid > 0 {
                any = true;
                // SAFETY: takes no pointer. A child that nobody waited for cannot have passed its number on.
                #[expect(unsafe_code, reason = "system call")]
                unsafe {
                    libc::kill(pid, libc::SIGKILL);
                }
                pid = 0;
            }
        }
    }
    close(fd);
    any
}

/// Waits for the end of any child; false if there is none.
pub(super) fn wait_for_any() -> bool {
    loop {
        match wait(-1, 0) {
            Err(libc::EINTR) => {}
            Err(_) => return false,
            Ok(_) => return true,
        }
    }
}

pub(super) fn reset_signal_handlers() {
    for signal in 1..=64 {
        // SAFETY: takes no pointer but the constant for the default action; numbers that cannot be changed are refused.
        #[expect(unsafe_code, reason = "system call")]
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Blocks SIGCHLD and returns a descriptor that becomes readable when one is pending.
pub(super) fn child_signals() -> Result<RawFd, Errno> {
    // SAFETY: a zeroed `sigset_t` is a valid (empty) set; the calls fill and read that local.
    #[expect(unsafe_code, reason = "system call")]
    let fd = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut());
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    check(fd.into()).map(|()| fd)
}

pub(super) fn unblock_signals() {
    // SAFETY: a zeroed `sigset_t` is a valid (empty) set, and the old mask is not asked for.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut());
    }
}

/// Waits. True once the other end of `lifeline` is closed; false when a child has changed state.
pub(super) fn hung_up_or_signalled(lifeline: RawFd, signals: RawFd) -> bool {
    let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut ends = [poll(lifeline), poll(signals)];
    // SAFETY: `ends` is a live array of two `pollfd`.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::poll(ends.as_mut_ptr(), 2, -1);
    }
    let [lifeline, _] = ends;
    let mut drained = [0_u8; 128];
    // SAFETY: the buffer is live and as long as said; the descriptor does not block.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::read(signals, drained.as_mut_ptr().cast(), drained.len());
    }
    lifeline.revents != 0
}

pub(super) fn wait_for(pid: pid_t) -> Waited {
    loop {
        match wait(pid, 0) {
            Err(libc::EINTR) => {}
            Err(_) => return Waited::Nothing,
            Ok(waited) => return waited,
        }
    }
}

pub(super) fn reap_any() -> Waited {
    wait(-1, libc::WNOHANG).unwrap_or(Waited::Nothing)
}

fn wait(pid: pid_t, options: c_int) -> Result<Waited, Errno> {
    let mut status = 0;
    // SAFETY: `status` is a live, writable integer.
    #[expect(unsafe_code, reason = "system call")]
    let pid = unsafe { libc::waitpid(pid, &raw mut status, options) };
    check(pid.into())?;
    Ok(if pid == 0 {
        Waited::Nothing
    } else if libc::WIFSIGNALED(status) {
        Waited::Signalled { pid, signal: libc::WTERMSIG(status) }
    } else {
        Waited::Exited { pid, code: libc::WEXITSTATUS(status) }
    })
}

/// Closes every descriptor but the given ones.
pub(super) fn close_all_except<const N: usize>(mut kept: [RawFd; N]) {
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
pub(super) fn leave_only_standard_streams() {
    close_range(3, c_int::MAX, libc::CLOSE_RANGE_CLOEXEC as c_int);
}

fn close_range(first: RawFd, last: RawFd, flags: c_int) {
    // SAFETY: takes no pointer; the process is about to exec or never returns to code that owns a descriptor.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::syscall(libc::SYS_close_range, first, last, flags);
    }
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
