//! Confinement without namespaces: Landlock and a stricter seccomp filter over the host's own paths.
//!
//! Invariant: what Landlock was not told about cannot be opened, and what a command starts is ended with it.

use std::ffi::CString;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::child::{self, Ends, Failure, Side, at};
use super::filter::{Filters, Options, Report};
use super::identity::Identity;
use super::landlock::{Grant, Handled, Ruleset};
use super::plan::{self, LIMITS};
use super::report::Stage;
use super::sys::{self, Errno, Resource};
use crate::egress::Network;

/// Everything worked out before fork.
#[derive(Debug)]
pub(crate) struct BarePlan {
    pub(super) shell: &'static str,
    handled: Handled,
    grants: Vec<(OwnedFd, Grant, bool)>,
    cgroups: Vec<RawFd>,
    limits: Vec<(Resource, u64)>,
    /// The user to become, where hart is root.
    become_user: Option<u32>,
    cwd: CString,
    filters: Filters,
}

/// What a plan is made for; `writable` and `readable` are directories of the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BareOrder<'a> {
    /// The version of Landlock.
    pub(crate) abi: u32,
    pub(crate) identity: &'a Identity,
    pub(crate) writable: &'a [PathBuf],
    pub(crate) readable: &'a [PathBuf],
    /// Never readable but for what the two lists name, even if it lies in something that is granted.
    pub(crate) hidden: &'a Path,
    pub(crate) cwd: &'a Path,
    pub(crate) network: &'a Network,
    pub(crate) file_limit: u64,
}

impl BarePlan {
    pub(crate) fn new(order: BareOrder<'_>) -> io::Result<Self> {
        let BareOrder { abi, identity, writable, readable, hidden, cwd, network, file_limit } = order;
        let become_user = identity.owner();
        let mut grants = Vec::new();
        let hidden = plan::hidden(hidden);
        let system = plan::system_paths().into_iter().flat_map(|path| all_but(path, hidden.as_deref()));
        for path in system.chain(readable.iter().cloned()).chain(["/proc".into()]) {
            grants.extend(open(&path, Grant::Read));
        }
        for path in plan::DEVICES.iter().map(|name| Path::new("/dev").join(name)).chain(["/dev/tty".into()]) {
            grants.extend(open(&path, Grant::Device));
        }
        let internet = *network == Network::Allow;
        if internet {
            for path in ["/etc/resolv.conf", "/etc/hosts"] {
                grants.extend(open(&fs::canonicalize(path).unwrap_or_default(), Grant::Read));
            }
        }
        for path in writable {
            grants.extend(open(path, Grant::Write));
        }
        let mut limits = LIMITS.to_vec();
        limits.push((libc::RLIMIT_FSIZE, file_limit));
        if become_user.is_some() || !rustix::process::geteuid().is_root() {
            // Counted over all processes of the user, not only those of this command.
            limits.push((libc::RLIMIT_NPROC, 4_096));
        }
        let options = Options { report: Report::None, bare: true, internet, own_network: false, file_limit };
        Ok(Self {
            shell: plan::shell(),
            handled: Handled::by(abi, !internet),
            grants,
            cgroups: Vec::new(),
            limits,
            become_user,
            cwd: CString::new(cwd.as_os_str().as_bytes())?,
            filters: Filters::new(options),
        })
    }

    pub(crate) fn join(&mut self, doors: Vec<RawFd>) {
        self.cgroups = doors;
    }
}

/// What to grant for `path` so that `hidden` stays closed. A rule covers everything below it and nothing takes a part
/// of that back, so a directory above what is hidden is granted child by child, and cannot be listed itself.
fn all_but(path: PathBuf, hidden: Option<&Path>) -> Vec<PathBuf> {
    let Some(hidden) = hidden else { return vec![path] };
    // A rule is about where a path leads; what leads nowhere needs none.
    let Ok(real) = fs::canonicalize(&path) else { return Vec::new() };
    if real.starts_with(hidden) {
        return Vec::new();
    }
    if !hidden.starts_with(&real) {
        return vec![real];
    }
    let children = fs::read_dir(&real).into_iter().flatten().flatten();
    // A rule for a link would be one for its target, which is granted where it is or not at all.
    let children = children.filter(|child| child.file_type().is_ok_and(|kind| !kind.is_symlink()));
    children.flat_map(|child| all_but(child.path(), Some(hidden))).collect()
}

/// What does not exist needs no rule.
fn open(path: &Path, grant: Grant) -> Option<(OwnedFd, Grant, bool)> {
    let fd = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let directory = fs::metadata(path).is_ok_and(|found| found.is_dir());
    Some((fd, grant, directory))
}

/// Called in the forked child. Returns in the process that is to become the command; its parent never leaves.
pub(super) fn enter(plan: &BarePlan, ends: Ends, line: Option<&Range<usize>>) {
    sys::take_name(child::NAME, line);
    match prepare().and_then(|()| child::start_command()) {
        Ok((Side::Parent(pid), signals)) => child::watch(ends, pid, signals, bury),
        Ok((Side::Child, _)) => {}
        Err(failure) => child::fail(ends, &failure),
    }
    match confine(plan, ends) {
        Ok(()) => sys::leave_only_standard_streams(),
        Err(failure) => child::fail(ends, &failure),
    }
}

fn prepare() -> Result<(), Failure> {
    sys::reset_signal_handlers();
    sys::new_session();
    let _ = sys::write_file(c"/proc/self/oom_score_adj", b"800");
    // It never execs: it holds a copy of hart's memory, which no command may look into.
    at(Stage::Supervise, sys::forbid_inspection())?;
    at(Stage::Supervise, sys::adopt_orphans())
}

/// In the command's process only: whoever watches over it must stay outside its Landlock domain.
fn confine(plan: &BarePlan, ends: Ends) -> Result<(), Failure> {
    at(Stage::DieWithParent, sys::die_with_parent())?;
    child::join_cgroups(&plan.cgroups)?;
    at(Stage::WorkingDirectory, sys::change_directory(&plan.cwd))?;
    child::give_up_privileges(&plan.limits, plan.become_user)?;
    at(Stage::Landlock, restrict(plan))?;
    child::install_filter(&plan.filters, ends)
}

fn restrict(plan: &BarePlan) -> Result<(), Errno> {
    let ruleset = Ruleset::new(plan.handled)?;
    for (fd, grant, directory) in &plan.grants {
        ruleset.allow(fd.as_raw_fd(), *grant, *directory)?;
    }
    ruleset.enforce()
}

/// Every orphan below becomes a child, so killing children until there are none takes the whole tree.
fn bury() {
    while sys::kill_children() {
        if !sys::wait_for_any() {
            break;
        }
    }
}
