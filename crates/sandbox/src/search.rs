//! Finding files by name and lines by content.
//!
//! Invariant: the cost of a search is bounded by the tree, never by the pattern: both engines are linear. Which
//! results are returned does not depend on which thread was faster.

mod best;
mod glob;
mod grep;
mod lines;
mod pattern;

pub(crate) use glob::glob;
pub(crate) use grep::grep;

use rustix::io::Errno;

use crate::error::Result;
use crate::files::{OpenRoot, Place, Roots, explain};
use crate::path::VPath;

/// A directory to search, and how what is found in it is called.
struct Start<'a> {
    root: &'a OpenRoot,
    /// Below the root.
    relative: &'a str,
    shown: &'a VPath,
    /// What stands before a key where the pattern is matched against paths below the directory above all roots.
    prefix: &'a str,
}

/// Calls `search` for the directory that `base` is, or for each of the thread's own, until it says no.
fn each_root(
    roots: &Roots,
    base: &VPath,
    mut search: impl FnMut(Start<'_>) -> Result<bool, Errno>,
) -> Result<()> {
    let explained = |errno| explain(base, errno);
    match roots.locate(base)? {
        Place::In { root, relative } => {
            let root = &OpenRoot::open(root, base)?;
            search(Start { root, relative, shown: base, prefix: "" }).map_err(explained)?;
        }
        Place::UserData => {
            for root in roots.of_thread() {
                let (shown, open) = (&root.shown_at, OpenRoot::open(root, base)?);
                let prefix = &format!("{}/", shown.file_name());
                if !search(Start { root: &open, relative: "", shown, prefix }).map_err(explained)? {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// What a key of a search is called where the model sees it.
fn below(shown: &VPath, key: &[u8]) -> VPath {
    shown.child(&String::from_utf8_lossy(key))
}
