//! One command's control groups, from made to removed.
//!
//! Invariant: dropped or removed, the group first ends every process that is still in it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};

use super::find::control_file;
use super::{Base, Controller, Limits};

const CPU_PERIOD: u64 = 100_000;

/// The directories of one command, one a hierarchy.
#[derive(Debug, Default)]
pub(crate) struct Group {
    dirs: Vec<(PathBuf, u8)>,
    procs: Vec<File>,
}

impl Group {
    pub(super) fn make(bases: &[Base], name: &str, limits: Limits) -> Option<Self> {
        let mut group = Self::default();
        for base in bases {
            let dir = base.dir.join(name);
            if let Err(error) = fs::create_dir(&dir) {
                tracing::debug!(%error, "no control group could be made");
                continue;
            }
            group.dirs.push((dir.clone(), base.version));
            for controller in &base.controllers {
                if let Err(error) = limit(&dir, base.version, *controller, limits) {
                    tracing::warn!(%error, ?controller, "a limit could not be set");
                }
            }
            match OpenOptions::new().write(true).open(dir.join("cgroup.procs")) {
                Ok(procs) => group.procs.push(procs),
                Err(error) => tracing::warn!(%error, "a control group cannot be joined"),
            }
        }
        (!group.procs.is_empty()).then_some(group)
    }

    /// To write `0` to, after fork, for joining.
    pub(crate) fn doors(&self) -> Vec<RawFd> {
        self.procs.iter().map(AsRawFd::as_raw_fd).collect()
    }

    /// Ends all that is in it. Without effect where the kernel has no `cgroup.kill`.
    pub(crate) fn kill(&self) {
        self.dirs.iter().for_each(|(dir, _)| kill(dir));
    }

    /// Which limits were run into: the rule and how often.
    pub(crate) fn exceeded(&self) -> Vec<(&'static str, u64)> {
        let mut found = Vec::new();
        for (dir, version) in &self.dirs {
            let memory = if *version == 1 { "memory.oom_control" } else { "memory.events" };
            for (rule, file, key) in
                [("cgroup.memory", memory, "oom_kill"), ("cgroup.pids", "pids.events", "max")]
            {
                let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
                let count = text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
                found.extend(count.filter(|count| *count > 0).map(|count| (rule, count)));
            }
        }
        found
    }

    /// Returns what was still busy.
    pub(super) fn remove(mut self) -> Vec<PathBuf> {
        self.procs.clear();
        self.kill();
        std::mem::take(&mut self.dirs).into_iter().map(|(dir, _)| dir).filter(|dir| is_busy(dir)).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.procs.clear();
        for (dir, _) in &self.dirs {
            kill(dir);
            // Busy for a moment longer: the next start of hart finds it by its name.
            let _ = fs::remove_dir(dir);
        }
    }
}

pub(super) fn kill(dir: &Path) {
    // Fails where the kernel or the hierarchy has no such file; then the pid namespace is the only killer.
    let _ = OpenOptions::new().write(true).open(dir.join("cgroup.kill")).and_then(|file| {
        use io::Write;
        (&file).write_all(b"1")
    });
}

/// Tries to remove it.
pub(super) fn is_busy(dir: &Path) -> bool {
    match fs::remove_dir(dir) {
        Ok(()) => false,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

pub(super) fn limit(dir: &Path, version: u8, controller: Controller, limits: Limits) -> io::Result<()> {
    let file = dir.join(control_file(version, controller));
    match controller {
        Controller::Memory if limits.memory > 0 => {
            write(&file, &limits.memory.to_string())?;
            // Swap would only postpone the end. Not every kernel counts it.
            let swap = if version == 1 { "memory.memsw.limit_in_bytes" } else { "memory.swap.max" };
            let amount = if version == 1 { limits.memory } else { 0 };
            match write(&dir.join(swap), &amount.to_string()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        }
        Controller::Pids if limits.pids > 0 => write(&file, &limits.pids.to_string()),
        Controller::Cpu if limits.cpus > 0.0 => {
            let quota = (limits.cpus * CPU_PERIOD as f64) as u64;
            match version {
                1 => {
                    write(&dir.join("cpu.cfs_period_us"), &CPU_PERIOD.to_string())?;
                    write(&file, &quota.to_string())
                }
                _ => write(&file, &format!("{quota} {CPU_PERIOD}")),
            }
        }
        _ => Ok(()),
    }
}

/// Never creates: on a file system that is no cgroup, that would look like success.
fn write(file: &Path, value: &str) -> io::Result<()> {
    use io::Write;
    OpenOptions::new().write(true).open(file)?.write_all(value.as_bytes())
}
