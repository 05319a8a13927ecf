//! Finds in a command's text what it names and its sandbox does not have.
//!
//! Such a thing is simply not there for the command, so no call of it is refused that hart could hear of. The text is all
//! there is to go by: a path that a script or a program makes up is not found.
//!
//! Invariant: it only takes note. Nothing is kept from running, and the host is asked at most whether a name exists.

use std::path::{Path, PathBuf};

use super::parse;
use super::simple::{Simple, base_name};
use crate::files::Roots;
use crate::isolate::{plain, system_paths};

const HIDDEN: &str = "text.hidden-path";
const PROCESS: &str = "text.process";
const USER: &str = "text.become-user";

/// What a process shows of itself that others have no business with.
const WINDOWS: [&str; 11] =
    ["environ", "mem", "maps", "root", "cwd", "fd", "fdinfo", "exe", "cmdline", "map_files", "ns"];
/// Hidden even on a host that has no such directory.
const KNOWN: [&str; 8] = ["root", "home", "boot", "sys", "srv", "media", "var", "run"];
/// There is one of the command's own, so that only what the host's holds is worth a word.
const PRIVATE: [&str; 3] = ["/tmp/", "/var/tmp/", "/dev/shm/"];
/// Built for the sandbox, beside what is shown of the host.
const BUILT: [&str; 9] = [
    "/etc/passwd",
    "/etc/group",
    "/etc/hosts",
    "/etc/hostname",
    "/etc/resolv.conf",
    "/dev/fd",
    "/dev/pts",
    "/proc",
    "/mnt/user-data",
];
const DEVICES: [&str; 10] =
    ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "stdin", "stdout", "stderr"];

/// What a sandbox shows.
pub(crate) struct Shown<'a> {
    roots: &'a Roots,
    home: &'a Path,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(roots: &'a Roots, home: &'a Path) -> Self {
        Self { roots, home }
    }
}

/// The rule and what was found, each once.
pub(crate) fn named_outside(command: &str, shown: &Shown<'_>) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut system: Option<Vec<PathBuf>> = None;
    for simple in parse::parse(command).pipelines.iter().flatten() {
        if let Some(name) = other_user(simple) {
            found.push((USER, format!("the command runs `{name}`")));
        }
        for path in paths(simple) {
            let rule = match of_a_process(path) {
                Some(true) => PROCESS,
                Some(false) => continue,
                None if on_the_way(path).any(|path| is_hidden(&plain(path), shown, &mut system)) => HIDDEN,
                None => continue,
            };
            found.push((rule, format!("the command names `{}`", shortened(path))));
        }
    }
    found.sort();
    found.dedup();
    found
}

fn other_user(simple: &Simple) -> Option<&str> {
    let first = simple.words.iter().find(|word| !word.contains('='))?;
    Some(base_name(first)).filter(|name| matches!(*name, "su" | "sudo" | "doas" | "pkexec"))
}

/// Programs whose first argument is a pattern, which may look like a path.
const PATTERN_FIRST: [&str; 8] = ["sed", "awk", "gawk", "mawk", "grep", "egrep", "fgrep", "rg"];

/// Words that are paths, and the targets of redirections. What is only printed is no path.
fn paths(simple: &Simple) -> impl Iterator<Item = &str> {
    let printed = simple.program().is_some_and(|(name, _)| matches!(name, "echo" | "printf"));
    let pattern = simple.program().filter(|(name, _)| PATTERN_FIRST.contains(name));
    let pattern = pattern.and_then(|(_, args)| args.iter().find(|word| !word.starts_with('-')));
    let is_pattern = move |word: &&String| pattern.is_some_and(|pattern| std::ptr::eq(pattern, *word));
    let words = simple.words.iter().filter(move |word| !printed && !is_pattern(word)).map(String::as_str);
    let words = words.map(|word| word.split_once('=').map_or(word, |(_, value)| value));
    words
        .chain(simple.redirects.iter().map(|redirect| redirect.target.as_str()))
        .filter(|word| word.starts_with('/'))
}

/// Whether it looks into another process; `None` if it is not about a process at all.
fn of_a_process(path: &str) -> Option<bool> {
    let mut parts = path.strip_prefix("/proc/")?.split('/').filter(|part| !part.is_empty());
    let process = parts.next()?;
    let other = process.starts_with('$') || process.bytes().all(|byte| byte.is_ascii_digit());
    if path.contains("/..") || !(other || matches!(process, "self" | "thread-self")) {
        return None;
    }
    Some(other && parts.next().is_some_and(|window| WINDOWS.contains(&window)))
}

/// Where the path leads, and where it was before it turned back.
fn on_the_way(path: &str) -> impl Iterator<Item = &str> {
    [Some(path), path.find("/..").and_then(|end| path.get(..end))].into_iter().flatten()
}

fn is_hidden(path: &str, shown: &Shown<'_>, system: &mut Option<Vec<PathBuf>>) -> bool {
    if matches!(path, "/var" | "/run" | "/tmp" | "/") {
        return false;
    }
    let path = Path::new(path);
    if path.starts_with(shown.home) {
        return true;
    }
    if let Some((private, rest)) =
        PRIVATE.iter().find_map(|dir| Some((dir, path.to_str()?.strip_prefix(*dir)?)))
    {
        let first = rest.split('/').next().unwrap_or_default();
        return !first.contains(['*', '?', '$']) && exists(&Path::new(private).join(first));
    }
    let roots = shown.roots.0.iter().map(|root| root.shown_at.as_str());
    if BUILT.iter().copied().chain(roots).any(|dir| path.starts_with(dir) || Path::new(dir).starts_with(path))
    {
        return false;
    }
    if let Ok(device) = path.strip_prefix("/dev") {
        return !device.as_os_str().is_empty()
            && !DEVICES.iter().any(|name| device == Path::new(name))
            && !device.starts_with("tcp")
            && !device.starts_with("udp");
    }
    let system = system.get_or_insert_with(system_paths);
    if system.iter().any(|dir| path.starts_with(dir) || dir.starts_with(path)) {
        return false;
    }
    let first = path.iter().nth(1).and_then(|name| name.to_str()).unwrap_or_default();
    !first.is_empty() && (KNOWN.contains(&first) || exists(&Path::new("/").join(first)))
}

fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

fn shortened(path: &str) -> String {
    super::redact(
        &path
            .chars()
            .take(200)
            .map(|letter| if letter.is_control() { '?' } else { letter })
            .collect::<String>(),
    )
}

#[cfg(test)]
#[path = "named_tests.rs"]
mod tests;
