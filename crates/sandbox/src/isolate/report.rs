//! What the inside of a sandbox tells the outside: which step failed, or how the command ended.
//!
//! Invariant: a message is one small fixed-size write, so it arrives whole or not at all.

use std::fmt;
use std::io::{self, PipeReader};

use crate::exec::Exit;

/// The steps of the set-up, and the two ways to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Stage {
    Unshare = 1,
    MapIds,
    Cgroup,
    Proxy,
    BecomeUser,
    Landlock,
    Fork,
    DieWithParent,
    HostName,
    Loopback,
    PrivateMounts,
    NewRoot,
    PivotRoot,
    /// One entry of the plan; the message carries its index.
    Build,
    DetachOldRoot,
    SealRoot,
    WorkingDirectory,
    Limits,
    DropPrivileges,
    Filter,
    Supervise,
    Exited,
    Signalled,
}

const STAGES: [(Stage, &str); 21] = [
    (Stage::Unshare, "unshare(user, mount, pid, network, ipc, uts namespaces)"),
    (Stage::MapIds, "write /proc/self/uid_map"),
    (Stage::Cgroup, "join the control group"),
    (Stage::Proxy, "listen for the proxy"),
    (Stage::BecomeUser, "become the user of commands"),
    (Stage::Landlock, "restrict by Landlock"),
    (Stage::Fork, "fork into the pid namespace"),
    (Stage::DieWithParent, "prctl(PR_SET_PDEATHSIG)"),
    (Stage::HostName, "sethostname"),
    (Stage::Loopback, "bring up the loopback device"),
    (Stage::PrivateMounts, "make mounts private"),
    (Stage::NewRoot, "mount a tmpfs for the new root"),
    (Stage::PivotRoot, "pivot_root"),
    (Stage::Build, "build the new root"),
    (Stage::DetachOldRoot, "detach the old root"),
    (Stage::SealRoot, "make the new root read-only"),
    (Stage::WorkingDirectory, "change to the working directory"),
    (Stage::Limits, "setrlimit"),
    (Stage::DropPrivileges, "drop capabilities"),
    (Stage::Filter, "install the seccomp filter"),
    (Stage::Supervise, "watch over the command"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) stage: u32,
    pub(super) index: u32,
    /// The errno, exit code or signal.
    pub(super) value: i32,
}

pub(super) enum Outcome {
    Ended(Exit),
    Failed(SetupFailure),
}

impl Message {
    const LEN: usize = 12;

    /// Runs after fork: no allocation.
    pub(super) fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let fields = [self.stage.to_ne_bytes(), self.index.to_ne_bytes(), self.value.to_ne_bytes()];
        for (slot, field) in bytes.chunks_exact_mut(4).zip(fields) {
            slot.copy_from_slice(&field);
        }
        bytes
    }

    /// What is in the pipe now. Does not wait: another command that is just starting may hold the other end for a moment.
    pub(super) fn receive(pipe: &PipeReader) -> Option<Self> {
        let flags = rustix::fs::fcntl_getfl(pipe).ok()?;
        rustix::fs::fcntl_setfl(pipe, flags | rustix::fs::OFlags::NONBLOCK).ok()?;
        let mut bytes = [0; Self::LEN];
        let read = rustix::io::read(pipe, &mut bytes).ok()?;
        let mut fields = bytes.chunks_exact(4).map_while(|field| <[u8; 4]>::try_from(field).ok());
        let (stage, index, value) = (fields.next()?, fields.next()?, fields.next()?);
        (read == Self::LEN).then_some(Self {
            stage: u32::from_ne_bytes(stage),
            index: u32::from_ne_bytes(index),
            value: i32::from_ne_bytes(value),
        })
    }

    pub(super) fn outcome(self, labels: &[String]) -> Outcome {
        if self.stage == Stage::Exited as u32 {
            return Outcome::Ended(Exit::Code(self.value));
        }
        if self.stage == Stage::Signalled as u32 {
            return Outcome::Ended(Exit::Signal(self.value));
        }
        let known = STAGES.iter().find(|(stage, _)| *stage as u32 == self.stage);
        let step = match known {
            Some((Stage::Build, words)) => labels.get(self.index as usize).map_or(*words, String::as_str),
            Some((_, words)) => words,
            None => "an unknown step",
        };
        let error = io::Error::from_raw_os_error(self.value);
        Outcome::Failed(SetupFailure { step: step.to_owned(), error })
    }
}

/// A step of the set-up that the kernel refused.
#[derive(Debug)]
pub(crate) struct SetupFailure {
    step: String,
    error: io::Error,
}

impl SetupFailure {
    pub(super) fn other(error: io::Error) -> Self {
        Self { step: "start the trial command".to_owned(), error }
    }

    /// The kernel is older than the call.
    pub(crate) fn is_missing_call(&self) -> bool {
        self.error.raw_os_error() == Some(libc::ENOSYS)
    }

    pub(crate) fn mounts_proc(&self) -> bool {
        self.step == super::plan::MOUNT_PROC
    }

    #[cfg(test)]
    pub(crate) fn for_test(step: &str, errno: i32) -> Self {
        Self { step: step.to_owned(), error: io::Error::from_raw_os_error(errno) }
    }
}

impl fmt::Display for SetupFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.step, self.error)
    }
}
