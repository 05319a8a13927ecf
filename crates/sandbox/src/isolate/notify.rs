//! Reads the calls that the seccomp filter reports, writes down what is refused and answers them.
//!
//! Invariant: a call is let through only where the filter merely watches it; what the filter refuses is always answered with
//! an error, and that is decided by the call's number and plain arguments, never by memory the caller can change.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use libc::c_long;

use super::watch::{Answer, Call, Watch};
use crate::audit::Audit;

const RECEIVE: libc::c_ulong = 0xc050_2100;
const SEND: libc::c_ulong = 0xc018_2101;
const STILL_ASKS: libc::c_ulong = 0x4008_2102;
const SET_FLAGS: libc::c_ulong = 0x4008_2104;
/// The answerer is woken on the asker's processor, which saves waking another one. Kernels before 6.6 do without.
const WAKE_HERE: u64 = 1;
/// A path and a few names fit many times over.
const STACK: usize = 256 << 10;

/// Answers, on a thread of its own, until nobody who could ask is left: each call that is asked for waits, and the way
/// through a runtime would be longer than the answer. It ends with the command, whatever becomes of the caller.
pub(crate) fn answer_reports(listener: OwnedFd, watch: Watch, audit: Audit) {
    let serve = move || {
        set_flags(listener.as_raw_fd(), WAKE_HERE);
        while wait(listener.as_raw_fd()) {
            if let Some((id, call)) = receive(listener.as_raw_fd()) {
                answer(listener.as_raw_fd(), id, &call, &watch, &audit);
            }
        }
    };
    let thread =
        std::thread::Builder::new().name("sandbox-reports".to_owned()).stack_size(STACK).spawn(serve);
    if let Err(error) = thread {
        // Without a reader the kernel refuses what would have been asked for.
        tracing::warn!(%error, "reports of refused calls cannot be read");
    }
}

fn answer(listener: RawFd, id: u64, call: &Call, watch: &Watch, audit: &Audit) {
    match watch.judge(call) {
        Answer::Refuse { rule, errno, detail } => {
            // Written down first: once answered, the command may end, and with it whoever listens.
            if let Some(detail) = detail {
                audit.denied(rule, format!("{detail} by `{}`", name_of(call.pid)));
            }
            send(listener, id, errno);
        }
        Answer::LetThrough(None) => send(listener, id, 0),
        Answer::LetThrough(Some((rule, detail))) => {
            // What was read of the caller's memory counts only if it is still the caller.
            let by = name_of(call.pid);
            if still_asks(listener, id) {
                audit.denied(rule, format!("{detail} by `{by}`"));
            }
            send(listener, id, 0);
        }
    }
}

fn name_of(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().replace(|letter: char| letter.is_control(), "?")
}

/// Waits for a report; false when nobody is left who could make one.
fn wait(listener: RawFd) -> bool {
    loop {
        let mut poll = libc::pollfd { fd: listener, events: libc::POLLIN, revents: 0 };
        // SAFETY: one live `pollfd`.
        #[expect(unsafe_code, reason = "system call")]
        let ready = unsafe { libc::poll(&raw mut poll, 1, -1) };
        match poll.revents {
            events if ready > 0 && events & libc::POLLIN != 0 => return true,
            events if ready > 0 && events & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 => {
                return false;
            }
            _ if ready < 0 && std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted => {
                return false;
            }
            _ => {}
        }
    }
}

fn receive(listener: RawFd) -> Option<(u64, Call)> {
    // SAFETY: the structure is plain integers; the kernel wants it zeroed.
    #[expect(unsafe_code, reason = "a C structure")]
    let mut report: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: `report` is a live, writable `struct seccomp_notif`, which is what this request fills.
    #[expect(unsafe_code, reason = "system call")]
    let received = unsafe { libc::ioctl(listener, RECEIVE as _, &raw mut report) };
    let call = Call { number: c_long::from(report.data.nr), arguments: report.data.args, pid: report.pid };
    (received == 0).then_some((report.id, call))
}

/// An error number, or zero to let the kernel go on with the call.
fn send(listener: RawFd, id: u64, errno: i32) {
    let flags = if errno == 0 { libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32 } else { 0 };
    let answer = libc::seccomp_notif_resp { id, val: 0, error: -errno, flags };
    // SAFETY: `answer` is a live `struct seccomp_notif_resp`. It fails only if the asker has died meanwhile.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::ioctl(listener, SEND as _, &raw const answer);
    }
}

fn still_asks(listener: RawFd, id: u64) -> bool {
    // SAFETY: `id` is a live `u64`, which is what this request reads.
    #[expect(unsafe_code, reason = "system call")]
    let result = unsafe { libc::ioctl(listener, STILL_ASKS as _, &raw const id) };
    result == 0
}

fn set_flags(listener: RawFd, flags: u64) {
    // SAFETY: this request takes a number in place of a pointer.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::ioctl(listener, SET_FLAGS as _, flags);
    }
}
