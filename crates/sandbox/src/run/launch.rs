//! Starts a command in the confinement there is.
//!
//! Invariant: a command gets nothing of hart's own environment, and runs unconfined only where the operator said so.

use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::cgroup::{Cgroups, Group};
use crate::disk::Disk;
use crate::egress::{self, Network};
use crate::error::{Result, SandboxError};
use crate::exec::Exec;
use crate::files::{Root, Roots};
use crate::host::{self, HostPaths};
use crate::isolate::{
    self, BareOrder, BarePlan, Confinement, LaunchError, Order, Plan, SetupFailure, Watch, Writable,
};
use crate::mask::HostMask;
use crate::path::VPath;
use crate::provider::Shared;
use crate::shell_audit::{Shown, named_outside};
use crate::tier::{Setting, Tier, fix_for};

/// A command that is running.
pub(crate) enum Launched {
    Confined {
        running: isolate::Running,
        mask: HostMask,
        group: Option<Grouped>,
        watch: Watch,
        /// What its text names that it cannot have.
        named: Vec<(&'static str, String)>,
    },
    Host(host::Running),
}

/// A control group that is removed whatever happens.
pub(crate) struct Grouped {
    all: Arc<Cgroups>,
    pub(super) group: Option<Group>,
}

impl Grouped {
    fn new(setting: &Setting) -> Option<Self> {
        let group = setting.cgroups.group(setting.limits)?;
        Some(Self { all: Arc::clone(&setting.cgroups), group: Some(group) })
    }

    fn doors(this: Option<&Self>) -> Vec<RawFd> {
        this.and_then(|this| this.group.as_ref()).map(Group::doors).unwrap_or_default()
    }
}

impl Drop for Grouped {
    fn drop(&mut self) {
        if let Some(group) = self.group.take() {
            self.all.remove(group);
        }
    }
}

/// Blocks for the few milliseconds of the set-up.
pub(crate) fn launch(
    shared: &Shared,
    roots: &Roots,
    exec: &Exec,
    cwd: &VPath,
    disk: &Disk,
) -> Result<Launched> {
    let file_limit = disk.file_limit(isolate::FILE_LIMIT)?;
    let setting = shared.setting();
    let report = &setting.report;
    let mut env = environment(shared, exec);
    let could_not = |error: io::Error| SandboxError::Spawn { reason: error.to_string() };
    let network = &shared.config.network;
    let group = match report.tier {
        Tier::Isolated | Tier::Landlock => Grouped::new(setting),
        Tier::Host | Tier::Refused => None,
    };
    let shown = Shown::new(roots, &shared.home);
    let mut mask = HostMask::new(roots).with_origins(roots, shared.mounts());
    let (confinement, command, writable) = match report.tier {
        Tier::Isolated => {
            let order = Order {
                roots,
                hidden: &shared.home,
                cwd: cwd.as_str(),
                identity: &setting.identity,
                network,
                pids_limit: setting.limits.pids,
                landlock: setting.landlock,
                file_limit,
            };
            let mut plan = Plan::new(order).map_err(could_not)?;
            plan.join(Grouped::doors(group.as_ref()));
            let writable = roots.0.iter().filter(|root| root.writable).map(|root| root.shown_at.to_string());
            let writable = writable.chain(isolate::SCRATCH.map(str::to_owned)).collect();
            (Confinement::Namespaces(plan), exec.command.clone(), writable)
        }
        Tier::Landlock => {
            let scratch = scratch(roots, setting.identity.owner()).map_err(could_not)?;
            let paths = HostPaths::new(roots).also("/tmp", &scratch);
            mask = mask.also(&scratch, "/tmp");
            let (writable, readable): (Vec<_>, Vec<_>) = roots.0.iter().partition(|root| root.writable);
            let path = |root: &Root| root.host.as_path().to_owned();
            let writable: Vec<_> = writable.into_iter().map(path).chain([scratch]).collect();
            let readable: Vec<_> = readable.into_iter().map(path).collect();
            let cwd = host::host_directory(roots, cwd)?;
            let order = BareOrder {
                abi: setting.landlock,
                identity: &setting.identity,
                writable: &writable,
                readable: &readable,
                hidden: &shared.home,
                cwd: &cwd,
                network,
                file_limit,
            };
            let mut plan = BarePlan::new(order).map_err(could_not)?;
            plan.join(Grouped::doors(group.as_ref()));
            for (_, value) in &mut env {
                *value = paths.rewrite(value);
            }
            let writable = writable.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>();
            (Confinement::Bare(plan), paths.rewrite(&exec.command), writable)
        }
        Tier::Host => return host::launch(roots, &exec.command, cwd, &env).map(Launched::Host),
        Tier::Refused => {
            return Err(SandboxError::Unavailable {
                reason: report.reason.clone().unwrap_or_default(),
                fix: report.fix.clone().unwrap_or_default(),
            });
        }
    };
    match isolate::launch(confinement, &command, &env) {
        Ok(running) => {
            let ancestor = running.child.id();
            let masked = (report.tier == Tier::Landlock).then(|| mask.clone());
            let watch = Watch { writable: Writable::new(writable), masked, ancestor };
            let named = named_outside(&exec.command, &shown);
            Ok(Launched::Confined { running, mask, group, watch, named })
        }
        Err(LaunchError::Setup(failure)) => Err(unavailable(&failure)),
        Err(LaunchError::Io(error)) => Err(could_not(error)),
    }
}

/// What stands for `/tmp` where there is no private one: beside the thread's own directories.
pub(crate) fn scratch_of(roots: &Roots) -> Option<PathBuf> {
    let workspace = roots.of_thread().next()?.host.as_path();
    Some(workspace.parent()?.parent()?.join("tmp"))
}

fn scratch(roots: &Roots, owner: Option<u32>) -> io::Result<PathBuf> {
    let scratch = scratch_of(roots).ok_or_else(|| io::Error::other("the thread has no directory"))?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&scratch)?;
    if owner.is_some() {
        std::os::unix::fs::lchown(&scratch, owner, owner)?;
    }
    Ok(scratch)
}

pub(super) fn unavailable(failure: &SetupFailure) -> SandboxError {
    let fix = fix_for(failure, |knob| std::fs::read_to_string(knob).ok());
    SandboxError::Unavailable { reason: failure.to_string(), fix }
}

/// All a command gets: nothing of hart's own environment, which holds keys.
fn environment(shared: &Shared, exec: &Exec) -> Vec<(String, String)> {
    const BASE: [(&str, &str); 7] = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", isolate::HOME),
        ("USER", isolate::USER),
        ("LOGNAME", isolate::USER),
        ("LANG", "C.UTF-8"),
        ("TERM", "dumb"),
        ("TMPDIR", "/tmp"),
    ];
    let base = BASE.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
    let configured = shared.config.environment.iter().map(|(name, value)| (name.clone(), value.clone()));
    let proxy = match &shared.config.network {
        Network::Hosts(hosts) if shared.tier().tier == Tier::Isolated => egress::environment(hosts),
        _ => Vec::new(),
    };
    base.chain(proxy).chain(configured).chain(exec.env.iter().cloned()).collect()
}
