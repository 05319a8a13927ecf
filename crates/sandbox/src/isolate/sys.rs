//! System calls that are safe between fork and exec, each behind a function that cannot be misused.
//!
//! Invariant: every function only makes system calls on what it is given; none allocates or takes a lock.

use std::ffi::CStr;
use std::os::fd::RawFd;
use std::ptr;

use libc::{c_char, c_int, c_long, c_ulong, c_void, pid_t, sock_filter};

pub(super) type Errno = i32;
#[cfg(target_env = "gnu")]
pub(super) type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
pub(super) type Resource = c_int;

/// `MOUNT_ATTR_*` of `mount_setattr(2)`.
pub(super) const READ_ONLY: u64 = 0x1;
pub(super) const NO_SUID: u64 = 0x2;
pub(super) const NO_DEVICES: u64 = 0x4;

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

/// For a message smaller than a pipe's atomic unit; there is nobody left to tell of a failure.
pub(super) fn write_all(fd: RawFd, content: &[u8]) {
    let _ = write_once(fd, content);
}

pub(super) fn mount(
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

pub(super) fn bind(source: &CStr, target: &CStr) -> Result<(), Errno> {
    mount(Some(source), target, None, libc::MS_BIND | libc::MS_REC, None)
}

/// Adds restrictions to a mount and, unlike a remount, also to all mounts below it.
pub(super) fn restrict_mount(path: &CStr, restrictions: u64, below: bool) -> Result<(), Errno> {
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        userns_fd: u64,
    }
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

pub(super) fn pivot_root(new: &CStr, old: &CStr) -> Result<(), Errno> {
    // SAFETY: both are NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::syscall(libc::SYS_pivot_root, new.as_ptr(), old.as_ptr()) })
}

pub(super) fn detach(path: &CStr) -> Result<(), Errno> {
    // SAFETY: `path` is NUL-terminated and alive.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }.into())
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

/// Sets soft and hard limit to `limit`, or to the present hard limit if that is lower.
pub(super) fn lower_limit(resource: Resource, limit: u64) -> Result<(), Errno> {
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

pub(super) fn die_with_parent() -> Result<(), Errno> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong)
}

/// No ptrace, no `/proc/PID/mem`, no core dump.
pub(super) fn forbid_inspection() -> Result<(), Errno> {
    prctl(libc::PR_SET_DUMPABLE, 0)
}

pub(super) fn forbid_new_privileges() -> Result<(), Errno> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1)
}

/// Empties every capability set, so that also an executable with file capabilities gets none.
pub(super) fn drop_capabilities() -> Result<(), Errno> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    // The kernel knows fewer than 64; the first one it does not know ends the list.
    for capability in 0..64 {
        match prctl(libc::PR_CAPBSET_DROP, capability) {
            Err(libc::EINVAL) => break,
            other => other?,
        }
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [0_u32; 6];
    // SAFETY: `header` is a `struct __user_cap_header_struct`; version 3 reads two data structs of three `u32` each.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) })
}

pub(super) fn install_filter(filter: &[sock_filter]) -> Result<(), Errno> {
    let len = libc::c_ushort::try_from(filter.len()).map_err(|_| libc::E2BIG)?;
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: `program` points to `len` live instructions; the kernel copies and never writes them.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program) })
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
