//! Everything the set-up needs, worked out before fork: afterwards nothing may be allocated.
//!
//! Invariant: what is not listed here does not exist in the sandbox; nothing of the host is shown wholesale but `/usr` and `/opt`.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use super::filter::{self, Filter, Options};
use super::identity::Identity;
use super::landlock::{Grant, Handled};
use super::sys::Resource;
use crate::egress::{Network, PROXY_PORT};
use crate::files::Roots;
use crate::path::WORKSPACE;

pub(crate) const HOME: &str = WORKSPACE;
pub(crate) const USER: &str = "user";
/// The user id inside. Not 0: programs that think they are root try things that cannot work here.
const INNER_ID: u32 = 1000;
/// Where the host's root hangs while the new one is built.
pub(super) const OLD_ROOT: &str = ".host";
pub(super) const MOUNT_PROC: &str = "mount /proc";

/// Read-only, with everything below.
const SYSTEM: [&str; 2] = ["/usr", "/opt"];
/// Links into `/usr` on most systems, directories on others.
const SYSTEM_DIRS: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What ordinary programs read. Nothing here holds keys or passwords; `/etc` as a whole does.
const ETC: [&str; 38] = [
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "ssl/certs",
    "ssl/openssl.cnf",
    "ca-certificates",
    "ca-certificates.conf",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "pki/ca-trust",
    "crypto-policies",
    "localtime",
    "timezone",
    "nsswitch.conf",
    "host.conf",
    "gai.conf",
    "protocols",
    "services",
    "networks",
    "rpc",
    "mime.types",
    "magic",
    "magic.mime",
    "os-release",
    "lsb-release",
    "debian_version",
    "redhat-release",
    "alpine-release",
    "locale.alias",
    "locale.conf",
    "inputrc",
    "terminfo",
    "fonts",
    "perl",
    "vim",
    "xml",
    "papersize",
];
/// Directories with a version in their name.
const ETC_PREFIXES: [&str; 5] = ["python", "java", "ImageMagick", "libreoffice", "texmf"];
pub(super) const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

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
    pub(super) filter: Filter,
    /// The same, with reports to hart.
    pub(super) reporting_filter: Filter,
    labels: Vec<String>,
}

/// Of one process; sizes in bytes. No limit of address space: programs reserve far more than they use.
pub(super) const LIMITS: [(Resource, u64); 3] =
    [(libc::RLIMIT_CORE, 0), (libc::RLIMIT_NOFILE, 16_384), (libc::RLIMIT_FSIZE, 8 << 30)];
/// For a user shared by many commands, where the count is over all of them.
const MANY_PROCESSES: u64 = 16_384;

impl Plan {
    pub(crate) fn new(order: Order<'_>) -> io::Result<Self> {
        let Order { roots, hidden, cwd, identity, network, pids_limit, landlock } = order;
        let staging = ["/tmp", "/mnt", "/var", "/run"].into_iter().find(|dir| Path::new(dir).is_dir());
        let staging =
            staging.ok_or_else(|| io::Error::other("none of /tmp, /mnt, /var, /run is a directory"))?;
        let become_user = match identity {
            Identity::Own => None,
            Identity::Dropped { id, .. } => Some(*id),
        };
        let mut builder = Builder {
            hidden: fs::canonicalize(hidden).ok(),
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
        limits.push((libc::RLIMIT_NPROC, processes));
        let options = Options { report: false, bare: false, internet: true };
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
            filter: filter::build(options),
            reporting_filter: filter::build(Options { report: true, ..options }),
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

pub(super) fn shell() -> &'static str {
    if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" }
}

/// What of the system is shown, as the host has it.
pub(super) fn system_paths() -> Vec<PathBuf> {
    let system = SYSTEM.iter().chain(&SYSTEM_DIRS).map(PathBuf::from);
    let etc = ETC.iter().map(|name| Path::new("/etc").join(name));
    system.chain(etc).chain(versioned_etc()).chain(["/etc/passwd".into(), "/etc/group".into()]).collect()
}

fn versioned_etc() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/etc").into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        ETC_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    })
}

fn namespaces(user: bool, network: bool) -> i32 {
    let always = libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    always | if user { libc::CLONE_NEWUSER } else { 0 } | if network { libc::CLONE_NEWNET } else { 0 }
}

#[derive(Default)]
struct Builder {
    /// The user id inside.
    id: u32,
    /// Whether the thread's directories get their owners translated.
    mapped: bool,
    grants: Vec<Granted>,
    steps: Vec<Step>,
    labels: Vec<String>,
    made: BTreeSet<PathBuf>,
    hidden: Option<PathBuf>,
}

impl Builder {
    fn system(&mut self) -> io::Result<()> {
        for dir in SYSTEM {
            self.show(Path::new(dir), dir, Access::Read)?;
        }
        for dir in SYSTEM_DIRS {
            match fs::read_link(dir) {
                Ok(target) => self.link(dir, target.as_os_str().as_bytes())?,
                Err(_) => self.show(Path::new(dir), dir, Access::Read)?,
            }
        }
        Ok(())
    }

    fn etc(&mut self) -> io::Result<()> {
        for name in ETC {
            self.show(&Path::new("/etc").join(name), &format!("/etc/{name}"), Access::Read)?;
        }
        for path in versioned_etc() {
            if let Some(shown_at) = path.to_str() {
                self.show(&path, shown_at, Access::Read)?;
            }
        }
        let id = self.id;
        self.file(
            "/etc/passwd",
            format!(
                "root:x:0:0:root:/:/bin/sh\n{USER}:x:{id}:{id}:{USER}:{HOME}:/bin/sh\n\
                 nobody:x:65534:65534:nobody:/:/bin/false\n"
            ),
        )?;
        self.file("/etc/group", format!("root:x:0:\n{USER}:x:{id}:\nnogroup:x:65534:\n"))?;
        self.file("/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n".to_owned())?;
        self.file("/etc/hostname", "sandbox\n".to_owned())
    }

    fn devices_and_scratch(&mut self) -> io::Result<()> {
        for name in DEVICES {
            let path = format!("/dev/{name}");
            self.show(Path::new(&path), &path, Access::Device)?;
        }
        let links = [("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")];
        for (name, target) in links.into_iter().chain([("ptmx", "pts/ptmx")]) {
            self.link(&format!("/dev/{name}"), target.as_bytes())?;
        }
        self.directory(Path::new("/dev/pts"))?;
        self.push(Step::Terminals(c"/dev/pts".to_owned()), "mount /dev/pts".to_owned());
        self.tmpfs("/dev/shm", "size=256m,nr_inodes=10k,mode=1777")?;
        self.tmpfs("/tmp", "size=1g,nr_inodes=200k,mode=1777")?;
        for (path, grant) in
            [("/", Grant::Read), ("/dev", Grant::Device), ("/dev/shm", Grant::Write), ("/tmp", Grant::Write)]
        {
            self.grants.push((c_string(path)?, grant, true));
        }
        self.directory(Path::new("/run"))?;
        self.directory(Path::new("/var"))?;
        self.link("/var/tmp", b"/tmp")?;
        self.directory(Path::new("/proc"))?;
        self.push(Step::Proc(c"/proc".to_owned()), MOUNT_PROC.to_owned());
        Ok(())
    }

    fn thread(&mut self, roots: &Roots) -> io::Result<()> {
        for root in &roots.0 {
            let access = if root.writable { Access::Write } else { Access::Read };
            let from = self.steps.len();
            self.show(root.host.as_path(), root.shown_at.as_str(), access)?;
            let shown = self.steps.get_mut(from..).unwrap_or_default();
            let Some(step) = shown.iter_mut().find(|step| matches!(step, Step::Bind { .. })) else {
                continue;
            };
            if root.writable {
                let directory = fs::metadata(root.host.as_path()).is_ok_and(|found| found.is_dir());
                self.grants.push((c_string(root.shown_at.as_str())?, Grant::Write, directory));
            }
            if let Step::Bind { source, path, access } = step
                && self.mapped
            {
                let (source, path) = (std::mem::take(source), std::mem::take(path));
                *step = Step::BindMapped { source, path, access: *access };
            }
        }
        Ok(())
    }

    /// Shows a file or directory of the host at `path`. What does not exist is passed over.
    fn show(&mut self, source: &Path, path: &str, access: Access) -> io::Result<()> {
        // Links are resolved now: once the root has changed, an absolute one would lead somewhere else.
        let Ok(source) = fs::canonicalize(source) else { return Ok(()) };
        let Ok(found) = fs::metadata(&source) else { return Ok(()) };
        if found.is_dir() {
            self.directory(Path::new(path))?;
        } else {
            self.file(path, String::new())?;
        }
        let seen_at = Path::new("/").join(OLD_ROOT).join(source.strip_prefix("/").unwrap_or(&source));
        let step = Step::Bind { source: c_path(seen_at)?, path: c_string(path)?, access };
        self.push(step, format!("bind {path}"));
        let covered =
            self.hidden.as_ref().and_then(|hidden| hidden.strip_prefix(&source).ok()).map(Path::to_owned);
        if let Some(below) = covered.filter(|below| !below.as_os_str().is_empty()) {
            let cover = Path::new(path).join(below);
            let step = Step::Tmpfs { path: c_path(cover)?, options: c"size=4k,mode=000,ro".to_owned() };
            self.push(step, format!("hide a part of {path}"));
        }
        Ok(())
    }

    fn directory(&mut self, path: &Path) -> io::Result<()> {
        let mut so_far = PathBuf::from("/");
        for part in path.components() {
            if let Component::Normal(name) = part {
                so_far.push(name);
                if self.made.insert(so_far.clone()) {
                    self.push(
                        Step::Directory(c_path(so_far.clone())?),
                        format!("mkdir {}", so_far.display()),
                    );
                }
            }
        }
        Ok(())
    }

    fn parent(&mut self, path: &str) -> io::Result<()> {
        Path::new(path).parent().map_or(Ok(()), |parent| self.directory(parent))
    }

    fn file(&mut self, path: &str, content: String) -> io::Result<()> {
        self.parent(path)?;
        let step = Step::File { path: c_string(path)?, content: content.into_bytes() };
        self.push(step, format!("create {path}"));
        Ok(())
    }

    fn link(&mut self, path: &str, target: &[u8]) -> io::Result<()> {
        self.parent(path)?;
        let step = Step::Link { path: c_string(path)?, target: CString::new(target)? };
        self.push(step, format!("link {path}"));
        Ok(())
    }

    fn tmpfs(&mut self, path: &str, options: &str) -> io::Result<()> {
        self.directory(Path::new(path))?;
        let step = Step::Tmpfs { path: c_string(path)?, options: c_string(options)? };
        self.push(step, format!("mount {path}"));
        Ok(())
    }

    fn push(&mut self, step: Step, label: String) {
        self.steps.push(step);
        self.labels.push(label);
    }
}

fn c_string(text: &str) -> io::Result<CString> {
    Ok(CString::new(text)?)
}

fn c_path(path: PathBuf) -> io::Result<CString> {
    Ok(CString::new(path.into_os_string().into_vec())?)
}
