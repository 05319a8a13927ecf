//! Which confinement is in force, and what is missing where it is not.
//!
//! Invariant: the verdict comes from trying the real thing, not from reading settings.

use std::fmt;
use std::fs;

use crate::isolate::{self, SetupFailure};

/// How commands of a thread are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Own user, mount, pid, network, IPC and host-name namespaces, a read-only system, no privileges.
    Isolated,
    /// Unconfined, by `allow_host_bash`. Not a boundary.
    Host,
    /// Commands are refused.
    Refused,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Isolated => "isolated",
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
    /// What failed, if isolation is not in force.
    pub reason: Option<String>,
    /// What the operator can do about it.
    pub fix: Option<String>,
}

impl TierReport {
    /// What applies where the operator accepts unconfined commands rather than none.
    pub(crate) fn allow_host(mut self) -> Self {
        if self.tier == Tier::Refused {
            self.tier = Tier::Host;
        }
        self
    }
}

impl fmt::Display for TierReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sandbox: {}", self.tier)?;
        for namespace in &self.namespaces {
            write!(f, "\n  {} namespace: {}", namespace.name, if namespace.works { "yes" } else { "no" })?;
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
    match isolate::try_out() {
        Ok(()) => TierReport {
            tier: Tier::Isolated,
            namespaces: isolate::NAMESPACES.iter().map(|(name, _)| Namespace { name, works: true }).collect(),
            reason: None,
            fix: None,
        },
        Err(failure) => TierReport {
            tier: Tier::Refused,
            namespaces: isolate::NAMESPACES
                .iter()
                .map(|&(name, flag)| Namespace { name, works: isolate::namespace_works(flag) })
                .collect(),
            fix: Some(fix_for(&failure, |knob| fs::read_to_string(knob).ok())),
            reason: Some(failure.to_string()),
        },
    }
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
