//! Everything the set-up needs, worked out before fork: afterwards nothing may be allocated.
//!
//! Invariant: what is not listed here does not exist in the sandbox; nothing of the host is shown wholesale but `/usr` and `/opt`.

mod builder;
mod system;

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use builder::Builder;
pub(crate) use system::system_paths;
pub(super) use system::{DEVICES, shell};

use super::filter::{Filters, Options, Report};
use super::identity::Identity;
use super::landlock::{Grant, Handled};
use super::sys::Resource;
use crate::egress::{Network, PROXY_PORT};
use crate::files::Roots;
use crate::path::WORKSPACE;

pub(crate) const HOME: &str = WORKSPACE;
pub(crate) const USER: &str = "user";
/// Private to a command, and writable.
pub(crate) const SCRATCH: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// The user id inside. Not 0: programs that think they are root try things that cannot work here.
const INNER_ID: u32 = 1000;
/// Where the host's root hangs while the new one is built.
pub(super) const OLD_ROOT: &str = ".host";
pub(super) const MOUNT_PROC: &str = "mount /proc";

/// One thing to do in the new root. Paths are absolute there; `source` is seen through the old root.
#[derive(Debug)]
pub(super) enum Step {
    Directory(CString),
    File {
        path: CString,
        content: Vec<u8>,
    },
    Link {
        path: CString,
        target: CString,
    },
    Bind {
        source: CString,
        path: CString,
        access: Access,
    },
    /// A bind whose owners are translated; plain where the file system cannot do that.
    BindMapped {
        source: CString,
        path: CString,
        access: Access,
    },
    Tmpfs {
        path: CString,
        options: CString,
    },
    Proc(CString),
    Terminals(CString),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    Device,
}

/// What Landlock leaves: a path in the new root, what may be done below it, whether it is a directory.
pub(super) type Granted = (CString, Grant, bool);

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order<'a> {
    pub(crate) roots: &'a Roots,
    /// Never visible, even if it lies in something that is shown.
    pub(crate) hidden: &'a Path,
    pub(crate) cwd: &'a str,
    pub(crate) identity: &'a Identity,
    pub(crate) network: &'a Network,
    pub(crate) pids_limit: u32,
    pub(crate) landlock: u32,
    /// No file grows beyond it.
    pub(crate) file_limit: u64,
}

#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) shell: &'static str,
    /// For `unshare`.
    pub(super) namespaces: i32,
    /// Of the user namespace, where there is one.
    pub(super) uid_map: Vec<u8>,
    pub(super) gid_map: Vec<u8>,
    /// The user to become once everything is built.
    pub(super) become_user: Option<u32>,
    /// For `Step::BindMapped`.
    pub(super) mapping: Option<RawFd>,
    /// Where joining a control group is written to.
    pub(super) cgroups: Vec<RawFd>,
    pub(super) limits: Vec<(Resource, u64)>,
    /// What Landlock takes away and what it leaves; `None` where the kernel has none.
    pub(super) landlock: Option<(Handled, Vec<Granted>)>,
    /// Whether hart runs a proxy for this command.
    pub(super) proxy_port: Option<u16>,
    /// An existing directory of the host to mount the new root on, for the moment before it becomes `/`.
    pub(super) staging: CString,
    /// The place in it where the old root goes.
    pub(super) old_root_on_staging: CString,
    pub(super) steps: Vec<Step>,
    pub(super) cwd: CString,
    pub(super) filters: Filters,
    labels: Vec<String>,
}

/// No file grows beyond it, whatever a thread may have.
pub(crate) const FILE_LIMIT: u64 = 8 << 30;
/// Of one process; sizes in bytes. No limit of address space: programs reserve far more than they use.
pub(super) const LIMITS: [(Resource, u64); 2] = [(libc::RLIMIT_CORE, 0), (libc::RLIMIT_NOFILE, 16_384)];
/// For a user shared by many commands, where the count is over all of them.
const MANY_PROCESSES: u64 = 16_384;

impl Plan {
    pub(crate) fn new(order: Order<'_>) -> io::Result<Self> {
        let Order { roots, hidden, cwd, identity, network, pids_limit, landlock, file_limit } = order;
        let staging = ["/tmp", "/mnt", "/var", "/run"].into_iter().find(|dir| Path::new(dir).is_dir());
        let staging =
            staging.ok_or_else(|| io::Error::other("none of /tmp, /mnt, /var, /run is a directory"))?;
        let become_user = match identity {
            Identity::Own => None,
            Identity::Dropped { id, .. } => Some(*id),
        };
        let mut builder = Builder {
            hidden: self::hidden(hidden),
            id: become_user.unwrap_or(INNER_ID),
            mapped: identity.mapping().is_some(),
            ..Builder::default()
        };
        builder.system()?;
        builder.etc()?;
        if *network == Network::Allow {
            builder.show(Path::new("/etc/resolv.conf"), "/etc/resolv.conf", Access::Read)?;
        }
        builder.devices_and_scratch()?;
        builder.thread(roots)?;
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        // Counted per user and user namespace: with a user namespace of its own, per command.
        let processes = match (become_user, pids_limit) {
            (Some(_), _) => MANY_PROCESSES,
            (None, 0) => u64::MAX,
            (None, limit) => limit.into(),
        };
        let mut limits = LIMITS.to_vec();
        limits.extend([(libc::RLIMIT_NPROC, processes), (libc::RLIMIT_FSIZE, file_limit)]);
        let options = Options {
            report: Report::None,
            bare: false,
            internet: true,
            own_network: *network != Network::Allow,
            file_limit,
        };
        Ok(Self {
            namespaces: namespaces(become_user.is_none(), *network != Network::Allow),
            become_user,
            mapping: identity.mapping(),
            cgroups: Vec::new(),
            limits,
            landlock: (landlock > 0).then_some((Handled::by(landlock, false), builder.grants)),
            proxy_port: matches!(network, Network::Hosts(_)).then_some(PROXY_PORT),
            shell: shell(),
            // One id is all a user without privileges may map. Should hart be root and unable to use another user, this
            // is kernel uid 0 without its capabilities: it still owns root's files, so only harmless ones are shown
            // and /proc is read-only.
            uid_map: format!("{INNER_ID} {uid} 1\n").into_bytes(),
            gid_map: format!("{INNER_ID} {gid} 1\n").into_bytes(),
            staging: c_string(staging)?,
            old_root_on_staging: c_string(&format!("{staging}/{OLD_ROOT}"))?,
            steps: builder.steps,
            cwd: c_string(cwd)?,
            filters: Filters::new(options),
            labels: builder.labels,
        })
    }

    /// Joins these control groups. The descriptors must stay open until the command has started.
    pub(crate) fn join(&mut self, doors: Vec<RawFd>) {
        self.cgroups = doors;
    }

    /// What to call each step when it fails.
    pub(super) fn take_labels(&mut self) -> Vec<String> {
        std::mem::take(&mut self.labels)
    }
}

/// Where what must not be seen really is. The root of the machine cannot be hidden; only a probe without a home asks.
pub(super) fn hidden(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok().filter(|path| path.parent().is_some())
}

fn namespaces(user: bool, network: bool) -> i32 {
    let always = libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    always | if user { libc::CLONE_NEWUSER } else { 0 } | if network { libc::CLONE_NEWNET } else { 0 }
}

fn c_string(text: &str) -> io::Result<CString> {
    Ok(CString::new(text)?)
}
