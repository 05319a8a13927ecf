//! What happens between fork and exec, in three processes: a waiter outside, pid 1 inside, and the command.
//!
//! Invariant: nothing here allocates, locks or panics; every failure is reported and ends the process.

use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::RawFd;

use libc::{
    CLONE_NEWNET, CLONE_NEWUSER, EPERM, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC,
};

use super::filter::Filters;
use super::landlock::{Handled, Ruleset};
use super::plan::{Access, Granted, OLD_ROOT, Plan, Step};
use super::report::{Message, Stage};
use super::sys::{self, Errno, Waited};

/// The child's ends of the pipes, open since before fork.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) report: RawFd,
    pub(super) lifeline: RawFd,
    /// For descriptors that hart is to have.
    pub(super) descriptors: RawFd,
}

/// What the processes that never exec go by; hart's own arguments may hold a prompt.
pub(super) const NAME: &CStr = c"sandbox-init";

/// What a descriptor sent to hart is.
pub(super) const SECCOMP_REPORTS: u8 = b'S';
pub(super) const PROXY_LISTENER: u8 = b'P';

pub(super) struct Failure {
    pub(super) stage: Stage,
    pub(super) index: u32,
    pub(super) errno: Errno,
}

const SET_UP_FAILED: i32 = 126;

/// Called in the forked child. Returns in the process that is to become the command; the others never leave.
pub(super) fn enter(plan: &Plan, ends: Ends, line: Option<&Range<usize>>) {
    sys::take_name(NAME, line);
    let gate = match outside(plan) {
        Ok((Side::Parent(pid), gate)) => {
            if let Some(gate) = gate {
                sys::write_all(gate.write, &[admit(plan, pid)]);
            }
            wait_outside(pid)
        }
        Ok((Side::Child, gate)) => gate,
        Err(failure) => fail(ends, &failure),
    };
    match inside(plan, ends).and_then(|()| pass(gate)).and_then(|()| start_command()) {
        Ok((Side::Parent(pid), signals)) => watch(ends, pid, signals, || {}),
        Ok((Side::Child, _)) => sys::leave_only_standard_streams(),
        Err(failure) => fail(ends, &failure),
    }
}

/// Puts pid 1 into its control groups, from outside and while it builds the root: the kernel takes its time for that.
/// Zero, or the error number.
fn admit(plan: &Plan, pid: i32) -> u8 {
    let joined = plan.cgroups.iter().try_for_each(|door| sys::put_into(*door, pid));
    joined.map_or_else(|errno| u8::try_from(errno).unwrap_or(u8::MAX), |()| 0)
}

/// Nothing of the command's runs before it is in its groups.
fn pass(gate: Option<sys::Pipe>) -> Result<(), Failure> {
    match gate.map(|gate| sys::read_byte(gate.read)) {
        None | Some(Ok(0)) => Ok(()),
        Some(Ok(errno)) => Err(Failure { stage: Stage::Cgroup, index: 0, errno: errno.into() }),
        Some(Err(errno)) => Err(Failure { stage: Stage::Cgroup, index: 0, errno }),
    }
}

pub(super) enum Side {
    Parent(i32),
    Child,
}

/// Still on the host: takes the namespaces and forks into the pid namespace.
fn outside(plan: &Plan) -> Result<(Side, Option<sys::Pipe>), Failure> {
    // Handlers of hart would run in processes that never exec.
    sys::reset_signal_handlers();
    sys::new_session();
    // If memory runs out, a command goes before hart does. Best effort.
    let _ = sys::write_file(c"/proc/self/oom_score_adj", b"800");
    at(Stage::Unshare, sys::unshare(plan.namespaces))?;
    if plan.namespaces & CLONE_NEWUSER != 0 {
        at(Stage::MapIds, sys::write_file(c"/proc/self/setgroups", b"deny"))?;
        at(Stage::MapIds, sys::write_file(c"/proc/self/uid_map", &plan.uid_map))?;
        at(Stage::MapIds, sys::write_file(c"/proc/self/gid_map", &plan.gid_map))?;
    }
    // This process and pid 1 never exec: they hold a copy of hart's memory, which no command may look into.
    at(Stage::MapIds, sys::forbid_inspection())?;
    let gate = if plan.cgroups.is_empty() { None } else { Some(at(Stage::Cgroup, sys::pipe())?) };
    at(Stage::Fork, sys::fork()).map(|pid| (side(pid), gate))
}

pub(super) fn side(pid: i32) -> Side {
    if pid == 0 { Side::Child } else { Side::Parent(pid) }
}

/// Pid 1 of the sandbox: builds the root and gives up every privilege.
fn inside(plan: &Plan, ends: Ends) -> Result<(), Failure> {
    at(Stage::DieWithParent, sys::die_with_parent())?;
    at(Stage::HostName, sys::set_host_name(b"sandbox"))?;
    if plan.namespaces & CLONE_NEWNET != 0 {
        at(Stage::Loopback, sys::bring_up_loopback())?;
    }
    if let Some(port) = plan.proxy_port {
        let listener = at(Stage::Proxy, sys::listen_on_loopback(port))?;
        at(Stage::Proxy, sys::send_descriptor(ends.descriptors, PROXY_LISTENER, listener))?;
        sys::close(listener);
    }
    at(Stage::PrivateMounts, sys::mount(None, c"/", None, MS_REC | MS_PRIVATE, None))?;
    let root = sys::mount(
        Some(c"tmpfs"),
        &plan.staging,
        Some(c"tmpfs"),
        MS_NOSUID | MS_NODEV,
        Some(c"size=4m,mode=755"),
    );
    at(Stage::NewRoot, root)?;
    at(Stage::PivotRoot, sys::make_directory(&plan.old_root_on_staging))?;
    at(Stage::PivotRoot, sys::pivot_root(&plan.staging, &plan.old_root_on_staging))?;
    at(Stage::PivotRoot, sys::change_directory(c"/"))?;
    for (step, index) in plan.steps.iter().zip(0..) {
        build(step, plan.mapping).map_err(|errno| Failure { stage: Stage::Build, index, errno })?;
    }
    let old_root = const {
        assert!(matches!(OLD_ROOT.as_bytes(), b".host"));
        c"/.host"
    };
    at(Stage::DetachOldRoot, sys::detach(old_root))?;
    at(Stage::DetachOldRoot, sys::remove_directory(old_root))?;
    at(Stage::SealRoot, sys::restrict_mount(c"/", sys::READ_ONLY, false))?;
    at(Stage::WorkingDirectory, sys::change_directory(&plan.cwd))?;
    give_up_privileges(&plan.limits, plan.become_user)?;
    if let Some((handled, grants)) = &plan.landlock {
        at(Stage::Landlock, restrict_files(*handled, grants))?;
    }
    install_filter(&plan.filters, ends)
}

pub(super) fn join_cgroups(doors: &[RawFd]) -> Result<(), Failure> {
    for (door, index) in doors.iter().zip(0..) {
        sys::join(*door).map_err(|errno| Failure { stage: Stage::Cgroup, index, errno })?;
    }
    Ok(())
}

pub(super) fn give_up_privileges(limits: &[(sys::Resource, u64)], user: Option<u32>) -> Result<(), Failure> {
    for (resource, limit) in limits {
        at(Stage::Limits, sys::lower_limit(*resource, *limit))?;
    }
    match sys::empty_bounding_set() {
        // Who may not change the set has nothing that could leave it.
        Ok(()) | Err(EPERM) => {}
        Err(errno) => return Err(Failure { stage: Stage::DropPrivileges, index: 0, errno }),
    }
    if let Some(id) = user {
        sys::give_to(1, id);
        sys::give_to(2, id);
        at(Stage::BecomeUser, sys::become_user(id))?;
        // Changing the user made the kernel forget it.
        at(Stage::DieWithParent, sys::die_with_parent())?;
    }
    at(Stage::DropPrivileges, sys::drop_capabilities())?;
    at(Stage::DropPrivileges, sys::forbid_new_privileges())
}

fn restrict_files(handled: Handled, grants: &[Granted]) -> Result<(), Errno> {
    let ruleset = Ruleset::new(handled)?;
    for (path, grant, directory) in grants {
        let fd = sys::open_path(path)?;
        ruleset.allow(fd, *grant, *directory)?;
        sys::close(fd);
    }
    ruleset.enforce()
}

/// With reports to hart if possible: inside another sandbox that has them, one cannot have them again.
pub(super) fn install_filter(filters: &Filters, ends: Ends) -> Result<(), Failure> {
    if filters.silent.is_empty() {
        return Ok(());
    }
    let reports = sys::install_watching_filter(&filters.watching)
        .or_else(|_| sys::install_reporting_filter(&filters.reporting));
    match reports {
        Ok(reports) => {
            at(Stage::Filter, sys::send_descriptor(ends.descriptors, SECCOMP_REPORTS, reports))?;
            sys::close(reports);
            Ok(())
        }
        Err(_) => at(Stage::Filter, sys::install_filter(&filters.silent)),
    }
}

fn build(step: &Step, mapping: Option<RawFd>) -> Result<(), Errno> {
    match step {
        Step::Directory(path) => sys::make_directory(path),
        Step::File { path, content } => sys::create_file(path, content),
        Step::Link { path, target } => sys::make_link(target, path),
        Step::Bind { source, path, access } => bind(source, path, *access),
        Step::BindMapped { source, path, access } => {
            let mapped =
                mapping.map(|mapping| sys::bind_mapped(source, path, restrictions(*access), mapping));
            match mapped {
                Some(Ok(())) => Ok(()),
                _ => bind(source, path, *access),
            }
        }
        Step::Tmpfs { path, options } => {
            sys::mount(Some(c"tmpfs"), path, Some(c"tmpfs"), MS_NOSUID | MS_NODEV, Some(options))
        }
        // Read-only: to the kernel's own root, files below /proc/sys are writable without any capability.
        Step::Proc(path) => {
            let flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;
            sys::mount(Some(c"proc"), path, Some(c"proc"), flags, None)
        }
        Step::Terminals(path) => mount_terminals(path),
    }
}

fn bind(source: &CStr, path: &CStr, access: Access) -> Result<(), Errno> {
    sys::bind(source, path)?;
    sys::restrict_mount(path, restrictions(access), true)
}

fn restrictions(access: Access) -> u64 {
    match access {
        Access::Read => sys::READ_ONLY | sys::NO_SUID | sys::NO_DEVICES,
        Access::Write => sys::NO_SUID | sys::NO_DEVICES,
        Access::Device => sys::NO_SUID,
    }
}

fn mount_terminals(path: &CStr) -> Result<(), Errno> {
    let options = Some(c"newinstance,ptmxmode=0666,mode=620");
    match sys::mount(Some(c"devpts"), path, Some(c"devpts"), MS_NOSUID | MS_NOEXEC, options) {
        // Some container hosts forbid it; a sandbox without terminals is still a sandbox.
        Err(EPERM) => Ok(()),
        other => other,
    }
}

/// Forks the command off. Its parent, pid 1, stays to bury whatever the command leaves behind.
pub(super) fn start_command() -> Result<(Side, RawFd), Failure> {
    let signals = at(Stage::Supervise, sys::child_signals())?;
    let side = at(Stage::Fork, sys::fork()).map(side)?;
    if matches!(side, Side::Child) {
        sys::unblock_signals();
        sys::new_session();
    }
    Ok((side, signals))
}

/// Outside: keeps nothing open and ends when pid 1 has, and with it every process of the sandbox.
fn wait_outside(pid: i32) -> ! {
    sys::close_all_except([]);
    sys::exit(match sys::wait_for(pid) {
        Waited::Exited { code, .. } => code,
        _ => 128 + libc::SIGKILL,
    })
}

/// Ends when the command does or when hart is gone. As pid 1, the kernel ends all others with it; elsewhere `bury` does.
pub(super) fn watch(ends: Ends, command: i32, signals: RawFd, bury: impl Fn()) -> ! {
    sys::close_all_except([ends.report, ends.lifeline, signals]);
    loop {
        if sys::hung_up_or_signalled(ends.lifeline, signals) {
            bury();
            sys::exit(128 + libc::SIGKILL);
        }
        loop {
            let (stage, value) = match sys::reap_any() {
                Waited::Exited { pid, code } if pid == command => (Stage::Exited, code),
                Waited::Signalled { pid, signal } if pid == command => (Stage::Signalled, signal),
                Waited::Exited { .. } | Waited::Signalled { .. } => continue,
                Waited::Nothing => break,
            };
            bury();
            send(ends, Message { stage: stage as u32, index: 0, value });
            sys::exit(0);
        }
    }
}

pub(super) fn at<T>(stage: Stage, result: Result<T, Errno>) -> Result<T, Failure> {
    result.map_err(|errno| Failure { stage, index: 0, errno })
}

pub(super) fn fail(ends: Ends, failure: &Failure) -> ! {
    send(ends, Message { stage: failure.stage as u32, index: failure.index, value: failure.errno });
    sys::exit(SET_UP_FAILED)
}

fn send(ends: Ends, message: Message) {
    sys::write_all(ends.report, &message.encode());
}
