//! Which confinement is in force, and what is missing where it is not.
//!
//! Invariant: the verdict comes from trying the real thing, not from reading settings.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::cgroup::{Cgroups, Limits};
use crate::config::SandboxConfig;
use crate::disk::{Disk, DiskLimits};
use crate::egress::Network;
use crate::isolate::{self, Identity, SetupFailure};

/// How commands of a thread are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Own user, mount, pid, network, IPC and host-name namespaces, a read-only system, no privileges.
    Isolated,
    /// No namespaces: Landlock and seccomp over the host's own paths.
    Landlock,
    /// Unconfined, by `allow_host_bash`. Not a boundary.
    Host,
    /// Commands are refused.
    Refused,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Isolated => "isolated",
            Self::Landlock => "landlock (no namespaces)",
            Self::Host => "host (unconfined)",
            Self::Refused => "refused",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    pub name: &'static str,
    pub works: bool,
}

/// The answer of [`probe`], for `hart doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierReport {
    pub tier: Tier,
    pub namespaces: Vec<Namespace>,
    /// What else is in force, one line each: `user`, `limits`, `disk`, `landlock`, `network`.
    pub layers: Vec<(&'static str, String)>,
    /// Less is left on the disk than must stay free: nothing is run or written until there is room.
    pub disk_full: bool,
    /// What failed, if isolation is not in force.
    pub reason: Option<String>,
    /// What the operator can do about it.
    pub fix: Option<String>,
}

impl fmt::Display for TierReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sandbox: {}", self.tier)?;
        for namespace in &self.namespaces {
            write!(f, "\n  {} namespace: {}", namespace.name, if namespace.works { "yes" } else { "no" })?;
        }
        for (layer, state) in &self.layers {
            write!(f, "\n  {layer}: {state}")?;
        }
        if let Some(reason) = &self.reason {
            write!(f, "\n  reason: {reason}")?;
        }
        if let Some(fix) = &self.fix {
            write!(f, "\n  help: {fix}")?;
        }
        Ok(())
    }
}

/// Sets up a sandbox, runs `true` in it and says what came of it. Takes a few milliseconds; blocks.
pub fn probe() -> TierReport {
    Setting::find(&SandboxConfig::default(), Path::new("/")).report
}

/// What this machine allows, found out once.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) report: TierReport,
    pub(crate) identity: Identity,
    pub(crate) cgroups: Arc<Cgroups>,
    pub(crate) limits: Limits,
    /// The version of Landlock; zero for none.
    pub(crate) landlock: u32,
}

impl Setting {
    /// `home` is where the threads' files are.
    pub(crate) fn find(config: &SandboxConfig, home: &Path) -> Self {
        let landlock = isolate::landlock_abi();
        let (mut found, failure) = identity(config, home, landlock);
        let bare = match (&failure, landlock) {
            (Some(_), 1..) => bare_identity(config, home, landlock),
            _ => None,
        };
        let listed = matches!(&config.network, Network::Hosts(hosts) if !hosts.is_empty());
        let tier = match (&failure, bare) {
            (None, _) => Tier::Isolated,
            // Held to a list by nothing, a command would reach everything or nothing; neither was asked for.
            (Some(_), _) if listed => Tier::Refused,
            (Some(_), Some(identity)) => {
                found = identity;
                Tier::Landlock
            }
            (Some(_), None) if config.allow_host_bash => Tier::Host,
            (Some(_), None) => Tier::Refused,
        };
        let confined = matches!(tier, Tier::Isolated | Tier::Landlock);
        let cgroups = if confined { Cgroups::find() } else { Cgroups::none() };
        let limits = Limits::of(config);
        let mut report = TierReport {
            tier,
            namespaces: isolate::NAMESPACES
                .iter()
                .map(|&(name, flag)| Namespace {
                    name,
                    works: failure.is_none() || isolate::namespace_works(flag),
                })
                .collect(),
            layers: Vec::new(),
            disk_full: Disk::below(home, DiskLimits::of(config)).is_low(),
            fix: failure.as_ref().map(|failure| fix_for(failure, |knob| fs::read_to_string(knob).ok())),
            reason: failure.as_ref().map(ToString::to_string),
        };
        if listed && tier == Tier::Refused {
            report.reason = report.reason.map(|reason| {
                format!(
                    "`sandbox.network` lists hosts, and only namespaces hold a command to a list: {reason}"
                )
            });
            report.fix = report.fix.map(|fix| format!("{fix}; or set `sandbox.network: off`"));
        }
        if confined {
            report.layers = layers(tier, config, home, &found, landlock, &cgroups);
        }
        Self { report, identity: found, cgroups: Arc::new(cgroups), limits, landlock }
    }
}

/// The first identity with which a command really runs, and otherwise why none does.
fn identity(config: &SandboxConfig, home: &Path, landlock: u32) -> (Identity, Option<SetupFailure>) {
    if rustix::process::geteuid().is_root() {
        let other = Identity::other_than_root(config.run_as, home);
        match isolate::try_out(&other, landlock) {
            Ok(()) => return (other, None),
            Err(failure) => tracing::debug!(%failure, "commands cannot be another user than root"),
        }
    }
    (Identity::Own, isolate::try_out(&Identity::Own, landlock).err())
}

/// The same without namespaces.
fn bare_identity(config: &SandboxConfig, home: &Path, landlock: u32) -> Option<Identity> {
    let other = rustix::process::geteuid().is_root().then(|| Identity::owning_its_files(config.run_as));
    let mut candidates = other.into_iter().chain([Identity::Own]);
    candidates.find(|identity| isolate::try_out_bare(identity, landlock, home).is_ok())
}

fn layers(
    tier: Tier,
    config: &SandboxConfig,
    home: &Path,
    identity: &Identity,
    landlock: u32,
    cgroups: &Cgroups,
) -> Vec<(&'static str, String)> {
    let abi = match landlock {
        0 => "no: the kernel lacks it (Linux 5.13 has the first)".to_owned(),
        abi @ 1..6 => format!("ABI {abi} (signals and abstract sockets are not covered before 6)"),
        abi => format!("ABI {abi}"),
    };
    let user = match (identity, tier) {
        (Identity::Own, Tier::Landlock) if rustix::process::geteuid().is_root() => {
            "root without privileges (no other user could be used: give hart CAP_SETUID, and let others pass \
             through the directories above its home)"
                .to_owned()
        }
        (identity, _) => identity.describe(),
    };
    let disk = DiskLimits::of(config);
    vec![
        ("user", user),
        ("limits", format!("{}, {disk}", cgroups.describe(Limits::of(config)))),
        ("disk", Disk::below(home, disk).describe()),
        ("landlock", abi),
        ("network", config.network.to_string()),
    ]
}

/// The knob that most likely closes the door, judged by its present value.
pub(crate) fn fix_for(failure: &SetupFailure, read: impl Fn(&str) -> Option<String>) -> String {
    let value = |knob: &str| read(knob).map(|text| text.trim().to_owned());
    let is = |knob: &str, closed: &str| value(knob).is_some_and(|value| value == closed);
    if is("/proc/sys/user/max_user_namespaces", "0") {
        return "user namespaces are limited to 0: `sysctl -w user.max_user_namespaces=15000`".to_owned();
    }
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return "user namespaces are closed to users: `sysctl -w kernel.unprivileged_userns_clone=1`"
            .to_owned();
    }
    if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        return "AppArmor takes the privileges of user namespaces away: give hart a profile with `userns,`, or \
                `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
            .to_owned();
    }
    if failure.is_missing_call() {
        return "use Linux 5.12 or newer, which has every call the sandbox needs".to_owned();
    }
    if failure.mounts_proc() {
        return "a container runtime hides parts of /proc: start the container with \
                `--security-opt systempaths=unconfined`, or run hart outside a container"
            .to_owned();
    }
    "in a container, allow user namespaces and mounts (for Docker `--security-opt seccomp=unconfined --security-opt \
     apparmor=unconfined`); to run commands unconfined instead, set `sandbox.allow_host_bash: true`"
        .to_owned()
}

#[cfg(test)]
#[path = "tier_tests.rs"]
mod tests;
