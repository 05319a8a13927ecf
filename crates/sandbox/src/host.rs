//! Runs a command unconfined, for operators who said so where isolation is missing.
//!
//! Invariant: this is no boundary. Rewriting paths makes the same commands work; it does not keep anyone out.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::{Result, SandboxError};
use crate::files::{Place, Roots};
use crate::mask::HostMask;
use crate::path::{USER_DATA, VPath, WORKSPACE};

/// A command and its process group. Dropped, it takes the group with it; what left the group stays alive.
pub(crate) struct Running {
    pub(crate) child: tokio::process::Child,
    pub(crate) group: Group,
    pub(crate) mask: HostMask,
}

pub(crate) struct Group(Option<Pid>);

impl Group {
    pub(crate) fn kill(&self) {
        if let Some(group) = self.0 {
            // It fails only if nobody is left in it.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn launch(roots: &Roots, command: &str, cwd: &VPath, env: &[(String, String)]) -> Result<Running> {
    let paths = HostPaths::new(roots);
    let cwd = host_directory(roots, cwd)?;
    let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
    #[expect(clippy::disallowed_methods, reason = "the operator allowed unconfined commands")]
    let mut shell = tokio::process::Command::new(shell);
    shell
        .arg("-c")
        .arg(paths.rewrite(command))
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, paths.rewrite(value))))
        .current_dir(cwd)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let child = shell.spawn().map_err(|error| SandboxError::Spawn { reason: error.to_string() })?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    Ok(Running { child, group: Group(group), mask: HostMask::new(roots) })
}

/// Where a directory of the sandbox is on the host.
pub(crate) fn host_directory(roots: &Roots, path: &VPath) -> Result<PathBuf> {
    match roots.locate(path)? {
        Place::In { root, relative } => Ok(root.host.as_path().join(relative)),
        Place::UserData => {
            let above = roots.of_thread().find_map(|root| root.host.as_path().parent());
            above.map(Path::to_owned).ok_or_else(|| SandboxError::NotFound(path.clone()))
        }
    }
}

/// Names of the sandbox and the host directories that stand for them, the longest first.
#[derive(Clone, Debug)]
pub(crate) struct HostPaths(Vec<(String, String)>);

impl HostPaths {
    pub(crate) fn new(roots: &Roots) -> Self {
        let mut pairs: Vec<(String, String)> = roots
            .0
            .iter()
            .filter_map(|root| Some((root.shown_at.to_string(), root.host.as_path().to_str()?.to_owned())))
            .collect();
        let workspace = pairs.iter().find(|(shown, _)| shown == WORKSPACE);
        if let Some(above) = workspace.and_then(|(_, host)| Path::new(host).parent()?.to_str()) {
            pairs.push((USER_DATA.to_owned(), above.to_owned()));
        }
        pairs.sort_by_key(|(shown, _)| std::cmp::Reverse(shown.len()));
        Self(pairs)
    }

    /// `shown` stands for `host` too, where nothing stands before it.
    pub(crate) fn also(mut self, shown: &str, host: &Path) -> Self {
        if let Some(host) = host.to_str() {
            self.0.push((shown.to_owned(), host.to_owned()));
            self.0.sort_by_key(|(shown, _)| std::cmp::Reverse(shown.len()));
        }
        self
    }

    /// Virtual to host, for what the shell reads.
    pub(crate) fn rewrite(&self, text: &str) -> String {
        let pairs = self.0.iter().map(|(shown, host)| (shown.as_str(), host.as_str()));
        // Whole paths were replaced in text by text.
        String::from_utf8(replace_paths(text.as_bytes(), pairs)).unwrap_or_else(|_| text.to_owned())
    }
}

/// Replaces paths where they end a component. In one pass: what was put in may look like another path to replace.
/// A name at the root such as `/tmp` must also begin the path.
fn replace_paths<'a>(text: &[u8], pairs: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<u8> {
    let of_a_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | 0x80..);
    let mut replaced = Vec::with_capacity(text.len());
    let mut last = None;
    let mut rest = text;
    while let Some((first, after_first)) = rest.split_first() {
        let found = (*first == b'/').then(|| {
            pairs.clone().find(|(from, _)| {
                let ends = rest.get(from.len()..).is_some_and(|after| !after.first().is_some_and(of_a_name));
                let began = last.as_ref().is_some_and(|byte| of_a_name(byte) || *byte == b'/');
                let must_begin = from.matches('/').count() == 1;
                rest.starts_with(from.as_bytes()) && ends && !(must_begin && began)
            })
        });
        match found.flatten() {
            Some((from, to)) => {
                replaced.extend_from_slice(to.as_bytes());
                last = from.as_bytes().last().copied();
                rest = rest.get(from.len()..).unwrap_or_default();
            }
            None => {
                replaced.push(*first);
                last = Some(*first);
                rest = after_first;
            }
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Root;
    use crate::path::HostPath;

    fn paths() -> HostPaths {
        let root = |shown: &str, host: &str| Root {
            shown_at: VPath::root(shown),
            host: HostPath::new(host.into()),
            writable: true,
        };
        HostPaths::new(&Roots(vec![
            root(WORKSPACE, "/h/t/user-data/workspace"),
            root("/mnt/data", "/srv/data"),
        ]))
    }

    #[test]
    fn paths_are_rewritten_where_they_end() {
        let text = "cat /mnt/user-data/workspace/a '/mnt/user-data/workspace' /mnt/user-data/workspace2 /mnt/data;ls";
        assert_eq!(
            paths().rewrite(text),
            "cat /h/t/user-data/workspace/a '/h/t/user-data/workspace' /h/t/user-data/workspace2 /srv/data;ls"
        );
    }

    #[test]
    fn a_private_tmp_is_only_the_one_at_the_root() {
        let paths = paths().also("/tmp", Path::new("/tmp/h/tmp"));
        assert_eq!(
            paths.rewrite("ls /tmp /tmp/x '/tmp' /var/tmp a/tmp x=/tmp"),
            "ls /tmp/h/tmp /tmp/h/tmp/x '/tmp/h/tmp' /var/tmp a/tmp x=/tmp/h/tmp"
        );
    }
}
