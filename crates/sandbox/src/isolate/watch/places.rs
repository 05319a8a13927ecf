//! Where a command may write, and what a path in a call means.
//!
//! Invariant: paths are compared in one form: absolute, without `.`, `..` or doubled slashes.

use super::memory;
use crate::path::WORKSPACE;

/// Directories below which a command may change things, as the command sees them.
#[derive(Clone, Debug)]
pub(crate) struct Writable(Vec<String>);

/// What can be opened for writing wherever it is shown.
const DEVICES: [&str; 11] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/console",
];

impl Writable {
    pub(crate) fn new(directories: impl IntoIterator<Item = String>) -> Self {
        let mut directories: Vec<String> = directories.into_iter().collect();
        // The one most is written to is asked first.
        directories.sort_by_key(|dir| dir != WORKSPACE);
        Self(directories)
    }

    pub(super) fn covers(&self, path: &str) -> bool {
        let below =
            |dir: &str| path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.0.iter().any(|dir| below(dir))
            || DEVICES.contains(&path)
            || below("/dev/pts")
            || below("/dev/fd")
            || is_own_descriptor(path)
    }
}

/// `/proc/self/fd/1` and the like: another name for something that is open already.
fn is_own_descriptor(path: &str) -> bool {
    let mut parts = path.strip_prefix("/proc/").unwrap_or_default().split('/');
    parts.next().is_some() && matches!(parts.next(), Some("fd" | "task")) && parts.next().is_some()
}

pub(super) fn path_at(pid: u32, address: u64) -> Option<String> {
    memory::text(pid, address).filter(|path| !path.is_empty())
}

/// Joined to the caller's working directory where it is relative.
pub(super) fn absolute(pid: u32, path: String) -> Option<String> {
    if path.starts_with('/') {
        return Some(plain(&path));
    }
    let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    Some(plain(&format!("{}/{path}", cwd.to_str()?)))
}

/// By the letters alone: a link on the way is not followed.
pub(crate) fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_form() {
        for (path, expected) in [
            ("/a/./b//c/", "/a/b/c"),
            ("/a/../../b", "/b"),
            ("/", "/"),
            ("/tmp/..", "/"),
            ("/.hidden", "/.hidden"),
        ] {
            assert_eq!(plain(path), expected);
        }
    }

    #[test]
    fn only_what_lies_below_is_writable() {
        let writable = Writable::new(["/tmp".to_owned(), WORKSPACE.to_owned()]);
        for path in
            ["/tmp", "/tmp/x", "/mnt/user-data/workspace/a/b", "/dev/null", "/dev/pts/0", "/proc/self/fd/1"]
        {
            assert!(writable.covers(path), "{path}");
        }
        for path in ["/tmpx", "/", "/mnt/user-data", "/usr/x", "/dev/mem", "/proc/sys/vm/x", "/proc/self/mem"]
        {
            assert!(!writable.covers(path), "{path}");
        }
    }
}
