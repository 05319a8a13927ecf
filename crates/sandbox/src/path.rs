//! Paths as the model sees them and as the machine has them, as two types that cannot be confused.
//!
//! Invariant: a `VPath` is absolute, normalised and under a root of the sandbox; a `HostPath` is made only here.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The parent of the three directories a thread owns; it can be listed, not written.
pub const USER_DATA: &str = "/mnt/user-data";
/// Where commands start and relative paths resolve.
pub const WORKSPACE: &str = "/mnt/user-data/workspace";
/// What the user handed in.
pub const UPLOADS: &str = "/mnt/user-data/uploads";
/// What the user shall get.
pub const OUTPUTS: &str = "/mnt/user-data/outputs";
/// The skills, read-only.
pub const SKILLS: &str = "/mnt/skills";
/// The user's own skills, read-only.
pub const USER_SKILLS: &str = "/mnt/user-skills";
/// Tool results that were too long to be shown; hart writes them, everyone else only reads.
pub const LARGE_RESULTS: &str = "/large_tool_results";
/// What left the conversation when it was compacted; hart writes it, everyone else only reads.
pub const HISTORY: &str = "/conversation_history";

pub(crate) const THREAD_ROOTS: [&str; 3] = [WORKSPACE, UPLOADS, OUTPUTS];
pub(crate) const ARCHIVE_ROOTS: [&str; 2] = [LARGE_RESULTS, HISTORY];
const MAX_LEN: usize = 4095;

/// A path inside the sandbox, as the model writes and reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VPath(String);

impl VPath {
    /// Reads a path under one of the roots every sandbox has. Relative paths start in [`WORKSPACE`].
    ///
    /// A sandbox with configured mounts has more roots: prefer [`crate::Sandbox::path`] where one is at hand.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        Self::parse_with(text, &[])
    }

    pub(crate) fn parse_with(text: &str, more_roots: &[String]) -> Result<Self, PathError> {
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text.contains('\0') {
            return Err(PathError::Nul { path: shorten(&text.replace('\0', "\\0")) });
        }
        let outside = || PathError::Outside { path: shorten(text), roots: roots_in_words(more_roots) };
        let start = if text.starts_with('/') { "" } else { WORKSPACE };
        let mut parts: Vec<&str> = Vec::new();
        for part in start.split('/').chain(text.split('/')) {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or_else(outside)?;
                }
                name => parts.push(name),
            }
        }
        let path = format!("/{}", parts.join("/"));
        if path.len() > MAX_LEN {
            return Err(PathError::TooLong { path: shorten(text), len: path.len(), limit: MAX_LEN });
        }
        let own = THREAD_ROOTS.into_iter().chain(ARCHIVE_ROOTS).chain([SKILLS, USER_SKILLS]);
        let mut roots = own.chain(more_roots.iter().map(String::as_str));
        if path == USER_DATA || roots.any(|root| is_under(&path, root)) {
            return Ok(Self(path));
        }
        Err(outside())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last component; the name of the root for a root.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The text after the last dot of the name, if there is one and the name does not start with it.
    pub fn extension(&self) -> Option<&str> {
        Path::new(&self.0).extension().and_then(|ext| ext.to_str())
    }

    /// True for the path itself and everything below `root`.
    pub fn is_under(&self, root: &str) -> bool {
        is_under(&self.0, root)
    }

    /// A path found on disk below this one. `relative` has no `..`, because a directory reader produced it.
    pub(crate) fn child(&self, relative: &str) -> Self {
        if relative.is_empty() { self.clone() } else { Self(format!("{}/{relative}", self.0)) }
    }

    /// The directory it is in, and its name there; a root of the sandbox is in none.
    pub(crate) fn parent(&self) -> Option<(Self, &str)> {
        let (parent, name) = self.0.rsplit_once('/')?;
        Some((Self(parent.to_owned()), name))
    }

    /// For a root that the sandbox itself declares.
    pub(crate) fn root(path: &str) -> Self {
        Self(path.to_owned())
    }
}

impl fmt::Display for VPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for VPath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromStr for VPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text)
    }
}

/// A path on the machine that runs hart. Never shown to a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPath(PathBuf);

impl HostPath {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

/// Why a text is no path of the sandbox. The message is written for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    #[error("the path is empty; name a file or directory, for example {WORKSPACE}")]
    Empty,
    #[error("the path contains a NUL byte: `{path}`; remove it")]
    Nul { path: String },
    #[error("the path is too long: `{path}` has {len} bytes, the limit is {limit}; use a shorter one")]
    TooLong { path: String, len: usize, limit: usize },
    #[error("outside the sandbox: `{path}`; use {roots}")]
    Outside { path: String, roots: String },
    #[error(
        "`{path}` leads through a symbolic link that leaves its directory or has an absolute target; \
         name the target itself, or make the link relative (`ln -sr`)"
    )]
    Symlink { path: VPath },
}

fn is_under(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn roots_in_words(more_roots: &[String]) -> String {
    let mut words = [WORKSPACE, UPLOADS, OUTPUTS].join(", ");
    for root in more_roots {
        words.push_str(", ");
        words.push_str(root);
    }
    format!("{words}, {SKILLS} or {USER_SKILLS}")
}

fn shorten(text: &str) -> String {
    const SHOWN: usize = 200;
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(SHOWN).collect();
    short.push('…');
    short
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
