//! Judges a reported call: refused by the filter, or let through to a kernel that may refuse it.
//!
//! Invariant: what is read here of a caller's memory decides what is written down, never what is allowed.

mod memory;
mod places;
mod reach;

use libc::{c_long, pid_t};
pub(crate) use places::{Writable, plain};
use places::{absolute, path_at};

use super::filter::{HERE, MAY_CREATE, NEW_NAMESPACE, SET_ID, rule_of};
use crate::mask::HostMask;

/// A system call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) number: c_long,
    pub(super) arguments: [u64; 6],
    pub(super) pid: u32,
}

pub(super) enum Answer {
    Refuse {
        rule: &'static str,
        errno: i32,
        /// `None` for a refusal that is no news.
        detail: Option<String>,
    },
    /// The kernel decides; with what is to be written down if it will refuse.
    LetThrough(Option<(&'static str, String)>),
}

/// What a command may do, as far as hart has to know to tell what the kernel will refuse.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) writable: Writable,
    /// Where there are no namespaces: the host's paths, which no one else should read.
    pub(crate) masked: Option<HostMask>,
    /// The process all of the command's descend from.
    pub(crate) ancestor: Option<u32>,
}

impl Watch {
    pub(super) fn judge(&self, call: &Call) -> Answer {
        let [a, b, c, d, ..] = call.arguments;
        match call.number {
            libc::SYS_openat if !(has(c, MAY_CREATE) && has(d, SET_ID)) => self.changes(call, a, b, "write"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open if !(has(b, MAY_CREATE) && has(c, SET_ID)) => {
                self.changes(call, here(), a, "write")
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat if !has(b, SET_ID) => self.changes(call, here(), a, "write"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => self.makes(call, here(), a),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink => self.points(call, a, (here(), b)),
            libc::SYS_mkdirat => self.makes(call, a, b),
            libc::SYS_unlinkat => self.changes(call, a, b, "remove"),
            libc::SYS_renameat2 => self.moves(call, (a, b), (c, d)),
            libc::SYS_linkat => self.links(call, (a, b), (c, d)),
            libc::SYS_symlinkat => self.points(call, a, (b, c)),
            libc::SYS_truncate => self.changes(call, here(), a, "truncate"),
            libc::SYS_kill => Answer::LetThrough(self.signals(call, a as pid_t)),
            libc::SYS_connect => Answer::LetThrough(reach::destination(call.pid, b, c)),
            libc::SYS_sendto => {
                let [.., address, length] = call.arguments;
                Answer::LetThrough(reach::destination(call.pid, address, length))
            }
            libc::SYS_prlimit64 => Answer::LetThrough(core_limit(call.pid, c)),
            libc::SYS_setrlimit => Answer::LetThrough(core_limit(call.pid, b)),
            libc::SYS_clone3 => refuse_quietly(call, memory::word(call.pid, a).unwrap_or_default()),
            _ => refuse(call),
        }
    }

    fn changes(&self, call: &Call, directory: u64, path: u64, verb: &str) -> Answer {
        Answer::LetThrough(self.outside(call, directory, path).map(|path| self.write_refused(verb, &path)))
    }

    fn makes(&self, call: &Call, directory: u64, path: u64) -> Answer {
        let outside = self.outside(call, directory, path);
        // What exists already is not refused, only found: `mkdir -p` asks for every directory on the way.
        let new = outside.filter(|path| !reach::exists(call.pid, path));
        Answer::LetThrough(new.map(|path| self.write_refused("make", &path)))
    }

    fn moves(&self, call: &Call, from: (u64, u64), to: (u64, u64)) -> Answer {
        let outside = self.outside(call, from.0, from.1).or_else(|| self.outside(call, to.0, to.1));
        Answer::LetThrough(outside.map(|path| self.write_refused("rename", &path)))
    }

    fn links(&self, call: &Call, from: (u64, u64), to: (u64, u64)) -> Answer {
        let from = self.outside(call, from.0, from.1);
        let from = from.map(|path| ("file.link", format!("link to `{}`", self.shown(&path))));
        let to = || self.outside(call, to.0, to.1).map(|path| self.write_refused("link at", &path));
        Answer::LetThrough(from.or_else(to))
    }

    /// Making such a link is no harm and allowed; following it is what fails, and that nobody would hear.
    fn points(&self, call: &Call, target: u64, at: (u64, u64)) -> Answer {
        let target = path_at(call.pid, target).filter(|target| target.starts_with('/'));
        let nowhere =
            target.filter(|target| !self.writable.covers(target) && !reach::exists(call.pid, target));
        let link = nowhere.map(|target| ("file.link", format!("link to `{}`", self.shown(&target))));
        let made = || self.outside(call, at.0, at.1).map(|path| self.write_refused("link at", &path));
        Answer::LetThrough(link.or_else(made))
    }

    /// The absolute path, if it lies where nothing may be changed.
    fn outside(&self, call: &Call, directory: u64, path: u64) -> Option<String> {
        if directory as u32 != HERE {
            return None;
        }
        let path = absolute(call.pid, path_at(call.pid, path)?)?;
        (!self.writable.covers(&path)).then_some(path)
    }

    fn write_refused(&self, verb: &str, path: &str) -> (&'static str, String) {
        ("file.write", format!("{verb} `{}`", self.shown(path)))
    }

    fn shown(&self, path: &str) -> String {
        let path = path.replace(|letter: char| letter.is_control(), "?");
        match &self.masked {
            Some(masked) => masked.shown(&path),
            None => path,
        }
    }

    fn signals(&self, call: &Call, to: pid_t) -> Option<(&'static str, String)> {
        let to = u32::try_from(to).ok().filter(|pid| *pid > 0)?;
        let own = match (&self.masked, self.ancestor) {
            (None, _) => reach::exists(call.pid, &format!("/proc/{to}")),
            (Some(_), Some(ancestor)) => reach::descends(to, ancestor),
            (Some(_), None) => true,
        };
        (!own).then(|| ("process.signal", format!("signal to process {to}, which is none of the command's")))
    }
}

fn here() -> u64 {
    HERE.into()
}

fn has(value: u64, bits: u32) -> bool {
    value as u32 & bits != 0
}

fn refuse(call: &Call) -> Answer {
    let [first, second, third, ..] = call.arguments;
    let (mut rule, mut errno) = rule_of(call.number);
    let device = |mode: u64| matches!(mode as u32 & libc::S_IFMT, libc::S_IFCHR | libc::S_IFBLK);
    let privileged = match call.number {
        libc::SYS_mknodat => device(third),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mknod => device(second),
        libc::SYS_socket => {
            matches!(first as i32, libc::AF_INET | libc::AF_INET6) && second as i32 & 0xf == libc::SOCK_RAW
        }
        _ => false,
    };
    if privileged {
        (rule, errno) = ("seccomp.privilege", libc::EPERM);
    }
    Answer::Refuse { rule, errno, detail: Some(format!("system call {}", call.number)) }
}

/// Every thread begins with this call, so only one that asks for namespaces is worth a line.
fn refuse_quietly(call: &Call, flags: u64) -> Answer {
    let (rule, errno) = rule_of(call.number);
    let detail = (flags as i32 & NEW_NAMESPACE != 0).then(|| format!("system call {}", call.number));
    Answer::Refuse { rule, errno, detail }
}

/// The hard limit is zero, so anything above is refused.
fn core_limit(pid: u32, address: u64) -> Option<(&'static str, String)> {
    let wanted = memory::word(pid, address)?;
    (wanted > 0).then(|| ("rlimit.core", "core dumps asked for".to_owned()))
}
