//! Limits of memory, processes and processor time, by control groups where hart may make them.
//!
//! Invariant: only groups whose name this module made are ever written to, emptied or removed.

mod find;
mod group;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

pub(crate) use group::Group;

use crate::config::SandboxConfig;
use crate::size::Size;

/// What one command and all it starts may use. Zero is no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    pub(crate) memory: u64,
    pub(crate) pids: u32,
    pub(crate) cpus: f64,
}

impl Limits {
    pub(crate) fn of(config: &SandboxConfig) -> Self {
        let memory = config.memory_limit.unwrap_or_else(|| half_of(&read("/proc/meminfo")));
        Self { memory, pids: config.pids_limit, cpus: config.cpus }
    }
}

/// Of the machine's memory: a command that takes more would push hart and its neighbours out.
fn half_of(meminfo: &str) -> u64 {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = total.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map_or(0, |kilobytes| kilobytes * 512)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controller {
    Memory,
    Pids,
    Cpu,
    /// A group of version 2 without a controller, for `cgroup.kill`.
    Kill,
}

/// A directory in which hart may make groups, and what a group there can limit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Base {
    dir: PathBuf,
    version: u8,
    controllers: Vec<Controller>,
}

/// The control groups of this hart.
#[derive(Debug)]
pub(crate) struct Cgroups {
    bases: Vec<Base>,
    /// Names this process and no other.
    prefix: String,
    /// Groups that were still busy when they should have gone.
    leftovers: Mutex<Vec<PathBuf>>,
}

impl Cgroups {
    /// Finds where groups can be made by making one, and clears away what a crashed hart left.
    pub(crate) fn find() -> Self {
        let candidates = find::candidates(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
        let owner = Owner::of_this_process();
        for dir in candidates.iter().flat_map(|place| &place.dirs) {
            owner.sweep(dir);
        }
        let prefix = owner.prefix();
        let bases = candidates.iter().filter_map(|place| place.try_out(&prefix)).collect();
        Self { bases, prefix, leftovers: Mutex::default() }
    }

    /// For where commands are not confined anyway.
    pub(crate) fn none() -> Self {
        Self { bases: Vec::new(), prefix: String::new(), leftovers: Mutex::default() }
    }

    fn has(&self, controller: Controller) -> bool {
        self.bases.iter().any(|base| base.controllers.contains(&controller))
    }

    /// A new group in every hierarchy, or `None` where there is none to be had.
    pub(crate) fn group(&self, limits: Limits) -> Option<Group> {
        self.clear_leftovers();
        Group::make(&self.bases, &next_name(&self.prefix), limits)
    }

    /// Removes a group whose processes have ended; what is still busy waits for the next command or the end.
    pub(crate) fn remove(&self, group: Group) {
        let busy = group.remove();
        if !busy.is_empty() {
            self.leftovers.lock().unwrap_or_else(PoisonError::into_inner).extend(busy);
        }
    }

    pub(crate) fn clear_leftovers(&self) {
        let mut leftovers = self.leftovers.lock().unwrap_or_else(PoisonError::into_inner);
        leftovers.retain(|dir| group::is_busy(dir));
    }

    /// For `hart doctor`.
    pub(crate) fn describe(&self, limits: Limits) -> String {
        let mut words = Vec::new();
        let version = |controller| self.bases.iter().find(|base| base.controllers.contains(&controller));
        if let Some(base) = version(Controller::Memory).filter(|_| limits.memory > 0) {
            words.push(format!("memory {} (cgroup v{})", Size(limits.memory), base.version));
        }
        if let Some(base) = version(Controller::Pids).filter(|_| limits.pids > 0) {
            words.push(format!("{} processes (cgroup v{})", limits.pids, base.version));
        }
        if let Some(base) = version(Controller::Cpu).filter(|_| limits.cpus > 0.0) {
            words.push(format!("{} processors (cgroup v{})", limits.cpus, base.version));
        }
        let wanted = [
            (Controller::Memory, limits.memory > 0, "memory"),
            (Controller::Pids, limits.pids > 0, "processes"),
            (Controller::Cpu, limits.cpus > 0.0, "processors"),
        ];
        for (_, _, name) in
            wanted.into_iter().filter(|(controller, wanted, _)| *wanted && !self.has(*controller))
        {
            words.push(format!("{name} not limited by a cgroup (none is writable)"));
        }
        words.join(", ")
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        self.clear_leftovers();
    }
}

/// Counted over the whole process: an embedder may have several providers.
fn next_name(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{prefix}{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Whose a group is, as its name tells: `hart-{pid namespace}-{pid}-{start time}-{number}`.
struct Owner {
    namespace: u64,
    pid: u32,
    started: u64,
}

impl Owner {
    fn of_this_process() -> Self {
        let pid = std::process::id();
        Self { namespace: pid_namespace(), pid, started: start_time(pid).unwrap_or_default() }
    }

    fn prefix(&self) -> String {
        format!("hart-{}-{}-{}-", self.namespace, self.pid, self.started)
    }

    fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix("hart-")?.split('-');
        let namespace = parts.next()?.parse().ok()?;
        let pid = parts.next()?.parse().ok()?;
        let started = parts.next()?.parse().ok()?;
        parts.next()?.parse::<u64>().ok()?;
        parts.next().is_none().then_some(Self { namespace, pid, started })
    }

    /// Removes groups of processes that are no more. Whether one of another pid namespace lives cannot be told from
    /// here, so those stay.
    fn sweep(&self, dir: &Path) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(owner) = name.to_str().and_then(Self::parse) else { continue };
            let gone = owner.namespace == self.namespace && start_time(owner.pid) != Some(owner.started);
            if gone {
                group::kill(&entry.path());
                // Still busy: the next start tries again.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino())
}

/// Field 22 of `/proc/PID/stat`; the second field is a name that may hold anything, so counting starts behind it.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod tests;
