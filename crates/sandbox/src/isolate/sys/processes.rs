//! Calls on processes: making them, waiting for them, ending them.
//!
//! Invariant: see the module above: system calls only, on what is given; `command_line` alone is for before fork.

use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::RawFd;
use std::ptr;

use libc::{c_int, pid_t};

use super::{Errno, check, close};

pub(in crate::isolate) enum Waited {
    Exited { pid: pid_t, code: i32 },
    Signalled { pid: pid_t, signal: i32 },
    Nothing,
}

/// Zero in the child.
pub(in crate::isolate) fn fork() -> Result<pid_t, Errno> {
    // SAFETY: the caller is the only thread of a forked process, and both sides go on making system calls only.
    #[expect(unsafe_code, reason = "system call")]
    let pid = unsafe { libc::fork() };
    check(pid.into()).map(|()| pid)
}

pub(in crate::isolate) fn exit(code: c_int) -> ! {
    // SAFETY: ends the process at once, without running destructors or exit handlers that belong to hart.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::_exit(code)
    }
}

pub(in crate::isolate) fn new_session() {
    // SAFETY: takes no pointer. It fails only for a group leader, which is then already what it asks for.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::setsid();
    }
}

/// Where the kernel finds the arguments and the environment this process was started with: they lie one behind the
/// other on its first stack. Asked before fork.
pub(in crate::isolate) fn command_line() -> Option<Range<usize>> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is a name that may hold anything, so counting starts behind it: 48 is the start of the
    // arguments, 49 their end, 50 and 51 the same of the environment.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(45).map(str::parse::<usize>);
    let mut next = || fields.next()?.ok();
    let (start, end, env_start, env_end) = (next()?, next()?, next()?, next()?);
    let end = if env_start == end { env_end.max(end) } else { end };
    (start > 0 && start < end && end - start <= 4 << 20).then_some(start..end)
}

/// Has `/proc/PID/cmdline` and the process's name say `name` instead of what hart was called with.
pub(in crate::isolate) fn take_name(name: &CStr, line: Option<&Range<usize>>) {
    let Some(line) = line else { return };
    // SAFETY: the range is the kernel's own record of this process's arguments and environment, on its first stack,
    // which is writable and lives as long as the process. The caller was just forked: the memory is its own copy, no
    // other thread exists, and what follows until exec reads neither.
    #[expect(unsafe_code, reason = "the kernel shows this memory to everyone")]
    unsafe {
        let start: *mut u8 = ptr::with_exposed_provenance_mut(line.start);
        ptr::write_bytes(start, 0, line.len());
        let shown = name.count_bytes().min(line.len().saturating_sub(1));
        ptr::copy_nonoverlapping(name.as_ptr().cast(), start, shown);
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
    }
}

/// Kills every child of this process. True if there was one.
pub(in crate::isolate) fn kill_children() -> bool {
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
pub(in crate::isolate) fn wait_for_any() -> bool {
    loop {
        match wait(-1, 0) {
            Err(libc::EINTR) => {}
            Err(_) => return false,
            Ok(_) => return true,
        }
    }
}

pub(in crate::isolate) fn reset_signal_handlers() {
    for signal in 1..=64 {
        // SAFETY: takes no pointer but the constant for the default action; numbers that cannot be changed are refused.
        #[expect(unsafe_code, reason = "system call")]
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Blocks SIGCHLD and returns a descriptor that becomes readable when one is pending.
pub(in crate::isolate) fn child_signals() -> Result<RawFd, Errno> {
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

pub(in crate::isolate) fn unblock_signals() {
    // SAFETY: a zeroed `sigset_t` is a valid (empty) set, and the old mask is not asked for.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut());
    }
}

/// Waits. True once the other end of `lifeline` is closed; false when a child has changed state.
pub(in crate::isolate) fn hung_up_or_signalled(lifeline: RawFd, signals: RawFd) -> bool {
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

pub(in crate::isolate) fn wait_for(pid: pid_t) -> Waited {
    loop {
        match wait(pid, 0) {
            Err(libc::EINTR) => {}
            Err(_) => return Waited::Nothing,
            Ok(waited) => return waited,
        }
    }
}

pub(in crate::isolate) fn reap_any() -> Waited {
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
