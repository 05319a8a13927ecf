//! Where a path of a thread really leads.
//!
//! Invariant: the kernel follows the links, never string work; what it cannot follow inside the root is an error.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{CWD, Mode, OFlags, readlinkat};
use rustix::io::Errno;

use super::place::{OpenRoot, Place, Roots, explain};
use crate::error::Result;
use crate::path::{PathError, VPath};

pub(crate) fn resolve(roots: &Roots, path: &VPath) -> Result<VPath> {
    let Place::In { root, relative } = roots.locate(path)? else { return Ok(path.clone()) };
    let open = OpenRoot::open(root, path)?;
    let fail = |errno| explain(path, errno);
    let top = real_path(&open.beneath("", OFlags::PATH, Mode::empty()).map_err(fail)?).map_err(fail)?;
    // What is not there yet has no links; the directory it would be made in may have some.
    let (mut existing, mut missing) = (relative, Vec::new());
    loop {
        match open.beneath(existing, OFlags::PATH, Mode::empty()) {
            Ok(found) => {
                let real = real_path(&found).map_err(fail)?;
                let below = real.strip_prefix(&top).ok().and_then(|below| below.to_str());
                let below = below.ok_or_else(|| PathError::Symlink { path: path.clone() })?;
                let parts = std::iter::once(below).chain(missing.iter().rev().copied());
                let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
                return Ok(root.shown_at.child(&parts.join("/")));
            }
            Err(Errno::NOENT) if !existing.is_empty() => {
                if open.beneath(existing, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty()).is_ok() {
                    return Err(PathError::Symlink { path: path.clone() }.into());
                }
                let (parent, name) = existing.rsplit_once('/').unwrap_or(("", existing));
                missing.push(name);
                existing = parent;
            }
            Err(errno) => return Err(fail(errno)),
        }
    }
}

fn real_path(fd: &OwnedFd) -> Result<PathBuf, Errno> {
    let target = readlinkat(CWD, format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new())?;
    target.into_string().map(PathBuf::from).map_err(|_| Errno::ILSEQ)
}
