//! Lists, step by step, how the new root is built.
//!
//! Invariant: a directory is listed before what is in it, and nothing is listed twice.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use super::system::{DEVICES, ETC, SYSTEM, SYSTEM_DIRS, versioned_etc};
use super::{Access, Granted, HOME, MOUNT_PROC, OLD_ROOT, Step, USER, c_string};
use crate::files::Roots;
use crate::isolate::landlock::Grant;

#[derive(Default)]
pub(super) struct Builder {
    /// The user id inside.
    pub(super) id: u32,
    /// Whether the thread's directories get their owners translated.
    pub(super) mapped: bool,
    pub(super) grants: Vec<Granted>,
    pub(super) steps: Vec<Step>,
    pub(super) labels: Vec<String>,
    pub(super) made: BTreeSet<PathBuf>,
    pub(super) hidden: Option<PathBuf>,
}

impl Builder {
    pub(super) fn system(&mut self) -> io::Result<()> {
        for dir in SYSTEM {
            self.show_system(Path::new(dir), dir)?;
        }
        for dir in SYSTEM_DIRS {
            match fs::read_link(dir) {
                Ok(target) => self.link(dir, target.as_os_str().as_bytes())?,
                Err(_) => self.show_system(Path::new(dir), dir)?,
            }
        }
        Ok(())
    }

    /// What is hidden may also be a directory of the system itself: then it is not shown at all.
    fn show_system(&mut self, source: &Path, path: &str) -> io::Result<()> {
        let real = fs::canonicalize(source).unwrap_or_else(|_| source.to_owned());
        match &self.hidden {
            Some(hidden) if real.starts_with(hidden) => Ok(()),
            _ => self.show(source, path, Access::Read),
        }
    }

    pub(super) fn etc(&mut self) -> io::Result<()> {
        for name in ETC {
            self.show_system(&Path::new("/etc").join(name), &format!("/etc/{name}"))?;
        }
        for path in versioned_etc() {
            if let Some(shown_at) = path.to_str() {
                self.show_system(&path, shown_at)?;
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

    pub(super) fn devices_and_scratch(&mut self) -> io::Result<()> {
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

    pub(super) fn thread(&mut self, roots: &Roots) -> io::Result<()> {
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
    pub(super) fn show(&mut self, source: &Path, path: &str, access: Access) -> io::Result<()> {
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

fn c_path(path: PathBuf) -> io::Result<CString> {
    Ok(CString::new(path.into_os_string().into_vec())?)
}
