//! Reads the calls that the seccomp filter refuses, writes them down and answers them.
//!
//! Invariant: every answer is an error; nothing here lets a call through.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use libc::c_long;
use tokio::io::unix::AsyncFd;

use super::filter::rule_of;
use crate::audit::Audit;

const RECEIVE: libc::c_ulong = 0xc050_2100;
const SEND: libc::c_ulong = 0xc018_2101;

/// Answers until nobody who could ask is left.
pub(crate) async fn answer_reports(listener: OwnedFd, audit: Audit) {
    // SAFETY: an `OwnedFd` that this function owns until its end: its number means the same file all along.
    #[expect(unsafe_code, reason = "the descriptor must stay the same one, which an OwnedFd does")]
    let registered = unsafe { AsyncFd::register(listener) };
    let Ok(listener) = registered else { return };
    while let Ok(mut ready) = listener.readable().await {
        match pending(listener.as_raw_fd()) {
            Pending::Report => {
                if let Some((id, number, pid)) = receive(listener.as_raw_fd()) {
                    let (rule, errno) = rule_of(number);
                    // Answered first: the process waits for nothing but that.
                    send(listener.as_raw_fd(), id, errno);
                    audit.denied(rule, format!("system call {number} by `{}`", name_of(pid)));
                }
            }
            Pending::Nothing => ready.clear_ready(),
            Pending::Over => return,
        }
    }
}

fn name_of(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().replace(|letter: char| letter.is_control(), "?")
}

enum Pending {
    Report,
    Nothing,
    Over,
}

/// Asked before every receive, which would block if there were nothing.
fn pending(listener: RawFd) -> Pending {
    let mut poll = libc::pollfd { fd: listener, events: libc::POLLIN, revents: 0 };
    // SAFETY: one live `pollfd`, and no waiting.
    #[expect(unsafe_code, reason = "system call")]
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    match poll.revents {
        events if ready > 0 && events & libc::POLLIN != 0 => Pending::Report,
        events if ready > 0 && events & (libc::POLLHUP | libc::POLLERR) != 0 => Pending::Over,
        _ => Pending::Nothing,
    }
}

fn receive(listener: RawFd) -> Option<(u64, c_long, u32)> {
    // SAFETY: the structure is plain integers; the kernel wants it zeroed.
    #[expect(unsafe_code, reason = "a C structure")]
    let mut report: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: `report` is a live, writable `struct seccomp_notif`, which is what this request fills.
    #[expect(unsafe_code, reason = "system call")]
    let received = unsafe { libc::ioctl(listener, RECEIVE as _, &raw mut report) };
    (received == 0).then(|| (report.id, c_long::from(report.data.nr), report.pid))
}

fn send(listener: RawFd, id: u64, errno: i32) {
    let answer = libc::seccomp_notif_resp { id, val: 0, error: -errno, flags: 0 };
    // SAFETY: `answer` is a live `struct seccomp_notif_resp`. It fails only if the asker has died meanwhile.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::ioctl(listener, SEND as _, &raw const answer);
    }
}
