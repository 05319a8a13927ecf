//! Finds the directories of the control-group file systems in which hart could make groups.
//!
//! Invariant: a place counts only after a group was really made and configured there.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Base, Controller, next_name};

/// One hierarchy, and the directories in it that are worth trying, nearest first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) dirs: Vec<PathBuf>,
    version: u8,
    controllers: Vec<Controller>,
}

pub(super) fn candidates(mountinfo: &str, own: &str) -> Vec<Hierarchy> {
    let mut found: Vec<Hierarchy> = Vec::new();
    for mount in mountinfo.lines().filter_map(Mount::parse) {
        let (version, controllers) = match mount.kind {
            "cgroup2" => (2, vec![Controller::Memory, Controller::Pids, Controller::Cpu, Controller::Kill]),
            "cgroup" => (1, v1_controllers(mount.options)),
            _ => continue,
        };
        let covered = |found: &Hierarchy| found.version == version && found.controllers == controllers;
        if controllers.is_empty() || found.iter().any(covered) {
            continue;
        }
        let Some(path) = own_path(own, version, mount.options) else { continue };
        // A bind mount of a part of the hierarchy, as containers have it, shows only what is below `root`.
        let below = Path::new(path).strip_prefix(mount.root).unwrap_or(Path::new(""));
        let below = below.strip_prefix("/").unwrap_or(below);
        let point = Path::new(mount.point);
        // In version 2 a group that has processes cannot give controllers to groups below it: its parent can.
        let dirs: Vec<PathBuf> = match version {
            2 => point
                .join(below)
                .ancestors()
                .take_while(|dir| dir.starts_with(point))
                .map(Path::to_owned)
                .collect(),
            _ => vec![point.join(below)],
        };
        found.push(Hierarchy { dirs, version, controllers });
    }
    found
}

struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// `id parent dev root point options [tags] - type source super-options`
    fn parse(line: &'a str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let mut after = after.split(' ');
        Some(Self {
            root: before.next()?,
            point: before.next()?,
            kind: after.next()?,
            options: after.nth(1)?,
        })
    }
}

fn v1_controllers(options: &str) -> Vec<Controller> {
    let known = |name| match name {
        "memory" => Some(Controller::Memory),
        "pids" => Some(Controller::Pids),
        "cpu" => Some(Controller::Cpu),
        _ => None,
    };
    options.split(',').filter_map(known).collect()
}

/// The path of this process in a hierarchy: `4:memory:/a/b`, or `0::/a/b` in version 2.
fn own_path<'a>(own: &'a str, version: u8, options: &str) -> Option<&'a str> {
    own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let matches = match version {
            2 => controllers.is_empty(),
            _ => {
                controllers.split(',').any(|name| !name.is_empty() && options.split(',').any(|it| it == name))
            }
        };
        matches.then_some(path)
    })
}

impl Hierarchy {
    /// The first directory where a group can be made, with what can be limited there.
    pub(super) fn try_out(&self, prefix: &str) -> Option<Base> {
        let mut best: Option<Base> = None;
        for dir in &self.dirs {
            let trial = dir.join(next_name(prefix));
            if fs::create_dir(&trial).is_err() {
                continue;
            }
            let usable =
                |controller: &Controller| trial.join(control_file(self.version, *controller)).exists();
            let controllers: Vec<Controller> = self.controllers.iter().copied().filter(usable).collect();
            let joinable = fs::OpenOptions::new().write(true).open(trial.join("cgroup.procs")).is_ok();
            // Nobody ever joined it.
            let _ = fs::remove_dir(&trial);
            let better = best.as_ref().is_none_or(|best| best.controllers.len() < controllers.len());
            if joinable && !controllers.is_empty() && better {
                best = Some(Base { dir: dir.clone(), version: self.version, controllers });
            }
        }
        best
    }
}

pub(super) fn control_file(version: u8, controller: Controller) -> &'static str {
    match (version, controller) {
        (1, Controller::Memory) => "memory.limit_in_bytes",
        (1, Controller::Cpu) => "cpu.cfs_quota_us",
        (_, Controller::Memory) => "memory.max",
        (_, Controller::Cpu) => "cpu.max",
        (_, Controller::Pids) => "pids.max",
        (_, Controller::Kill) => "cgroup.kill",
    }
}
