//! Takes away what a hart that was cut off, or refused something, left half done.
//!
//! Invariant: what the lock knows of, and what another process may be writing at this moment, stays.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use hart_kernel::{Clock as _, SystemClock};

use super::Library;
use crate::skills::catalogue::Root;
use crate::skills::lock;

/// No package takes so long to write.
const AGE_MILLIS: i64 = 600_000;

impl Library {
    /// Staged folders, kept former versions and what lies in quarantine without being held. What a package was replaced
    /// from is put back if the replacement never came.
    pub(super) fn sweep(&self) -> io::Result<()> {
        let roots: Vec<_> = [Root::Public, self.config.installs_to()]
            .into_iter()
            .filter(|root| self.config.own || *root == Root::Installed)
            .filter_map(|root| self.root(root, None))
            .chain(users(&self.config.home))
            .collect();
        let left: Vec<_> = roots.iter().flat_map(|root| old_entries(root, is_half_done)).collect();
        let quarantined: Vec<_> =
            folders(&self.quarantine()).iter().flat_map(|root| old_entries(root, |_| true)).collect();
        if left.is_empty() && quarantined.is_empty() {
            return Ok(());
        }
        // Whoever replaces a package holds the same lock.
        lock::change(&self.lock_file(), |lock| {
            for path in left.iter().filter(|path| path.exists()) {
                match replaced(path).filter(|place| !place.exists()) {
                    Some(place) => fs::rename(path, place)?,
                    None => fs::remove_dir_all(path)?,
                }
            }
            for path in quarantined.iter().filter(|path| path.exists()) {
                if !lock.held.values().any(|held| held.folder == **path) {
                    fs::remove_dir_all(path)?;
                }
            }
            lock.held.retain(|_, held| held.folder.exists() || held.from.exists());
            Ok(())
        })
    }
}

fn users(home: &Path) -> impl Iterator<Item = PathBuf> {
    folders(&home.join("users")).into_iter().map(|user| user.join("skills"))
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Folders of these names that nobody has touched for long.
fn old_entries(dir: &Path, wanted: fn(&str) -> bool) -> Vec<PathBuf> {
    // The times of files are the machine's, so they are held against its clock.
    let now = SystemClock.now().as_millisecond();
    let is_old = |path: &Path| {
        let touched = fs::symlink_metadata(path).and_then(|meta| meta.modified()).ok();
        let since = touched.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let millis = since.and_then(|since| i64::try_from(since.as_millis()).ok());
        millis.is_some_and(|millis| now.saturating_sub(millis) > AGE_MILLIS)
    };
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).is_some_and(wanted);
    folders(dir).into_iter().filter(|path| name(path) && is_old(path)).collect()
}

/// `.name.123` is being written by the process 123, `.name.before` is what was there before.
fn is_half_done(name: &str) -> bool {
    let Some((_, end)) = name.strip_prefix('.').and_then(|name| name.rsplit_once('.')) else { return false };
    end == "before" || (!end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Where a package was before it was to be replaced.
fn replaced(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_prefix('.')?.strip_suffix(".before")?;
    Some(path.with_file_name(name))
}
