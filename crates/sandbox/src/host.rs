//! Runs a command unconfined, for operators who said so where isolation is missing.
//!
//! Invariant: this is no boundary. Rewriting paths makes the same commands work; it does not keep anyone out.

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::{Result, SandboxError};
use crate::exec::{OutputSink, Stream};
use crate::files::{Place, Roots};
use crate::path::{USER_DATA, VPath, WORKSPACE};

/// A command and its process group. Dropped, it takes the group with it; what left the group stays alive.
pub(crate) struct Running {
    pub(crate) child: tokio::process::Child,
    pub(crate) group: Group,
    pub(crate) masked: Masked,
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
    let masked = Masked::new(roots);
    let cwd = match roots.locate(cwd)? {
        Place::In { root, relative } => root.host.as_path().join(relative),
        Place::UserData => {
            let above = roots.of_thread().find_map(|root| root.host.as_path().parent());
            above.map(Path::to_owned).ok_or_else(|| SandboxError::NotFound(cwd.clone()))?
        }
    };
    let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
    #[expect(clippy::disallowed_methods, reason = "the operator allowed unconfined commands")]
    let mut shell = tokio::process::Command::new(shell);
    shell
        .arg("-c")
        .arg(masked.rewrite(command))
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, masked.rewrite(value))))
        .current_dir(cwd)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let child = shell.spawn().map_err(|error| SandboxError::Spawn { reason: error.to_string() })?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    Ok(Running { child, group: Group(group), masked })
}

/// Host directories and the names they go by in the sandbox.
#[derive(Clone, Debug)]
pub(crate) struct Masked(Vec<(String, String)>);

impl Masked {
    fn new(roots: &Roots) -> Self {
        let mut pairs: Vec<(String, String)> = roots
            .0
            .iter()
            .filter_map(|root| Some((root.host.as_path().to_str()?.to_owned(), root.shown_at.to_string())))
            .collect();
        let workspace = pairs.iter().find(|(_, shown)| shown == WORKSPACE);
        if let Some(above) = workspace.and_then(|(host, _)| Path::new(host).parent()?.to_str()) {
            pairs.push((above.to_owned(), USER_DATA.to_owned()));
        }
        pairs.sort_by_key(|(host, _)| std::cmp::Reverse(host.len()));
        Self(pairs)
    }

    /// Virtual to host, for what the shell reads.
    pub(crate) fn rewrite(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (host, shown)| replace_path(&text, shown, host))
    }

    /// Host to virtual, for what the model reads.
    pub(crate) fn apply(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (host, shown)| replace_path(&text, host, shown))
    }

    pub(crate) fn sink<'a>(&'a self, inner: &'a dyn OutputSink) -> MaskingSink<'a> {
        MaskingSink { masked: self, inner }
    }
}

pub(crate) struct MaskingSink<'a> {
    masked: &'a Masked,
    inner: &'a dyn OutputSink,
}

impl OutputSink for MaskingSink<'_> {
    fn output(&self, stream: Stream, text: &str) {
        self.inner.output(stream, &self.masked.apply(text));
    }
}

/// Replaces `from` where it ends a path component.
fn replace_path(text: &str, from: &str, to: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(from) {
        replaced.push_str(before);
        let goes_on =
            after.starts_with(|next: char| next.is_alphanumeric() || matches!(next, '_' | '-' | '.'));
        replaced.push_str(if goes_on { from } else { to });
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Root;
    use crate::path::HostPath;

    fn masked() -> Masked {
        let root = |shown: &str, host: &str| Root {
            shown_at: VPath::root(shown),
            host: HostPath::new(host.into()),
            writable: true,
        };
        Masked::new(&Roots(vec![root(WORKSPACE, "/h/t/user-data/workspace"), root("/mnt/data", "/srv/data")]))
    }

    #[test]
    fn paths_are_rewritten_where_they_end() {
        let text = "cat /mnt/user-data/workspace/a '/mnt/user-data/workspace' /mnt/user-data/workspace2 /mnt/data;ls";
        assert_eq!(
            masked().rewrite(text),
            "cat /h/t/user-data/workspace/a '/h/t/user-data/workspace' /h/t/user-data/workspace2 /srv/data;ls"
        );
    }

    #[test]
    fn output_never_shows_the_host_side() {
        let text = "/h/t/user-data/workspace/x: no such file\n/srv/data/y /h/t/user-data";
        assert_eq!(
            masked().apply(text),
            "/mnt/user-data/workspace/x: no such file\n/mnt/data/y /mnt/user-data"
        );
    }
}
