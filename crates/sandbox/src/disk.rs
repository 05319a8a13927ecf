//! How much of the disk the files of a thread take, and how much is left of it.
//!
//! Invariant: a tree is walked only when enough has changed since to matter, and never so often that it is felt.

use std::ffi::{CStr, CString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2, statat, statvfs};

use crate::config::SandboxConfig;
use crate::error::{Result, SandboxError};
use crate::size::Size;

/// How often the free space is looked at while a command runs.
const TICK: Duration = Duration::from_millis(200);
/// A walk may take this part of the time.
const SHARE: u32 = 20;
/// After this long, even a little less space is a reason to walk.
const STALE: Duration = Duration::from_secs(60);
/// What a file or directory takes at least: an empty one costs the disk too.
const ENTRY: u64 = 4096;

/// Zero is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiskLimits {
    /// What a thread's files may take.
    pub(crate) quota: u64,
    /// What must stay free on the disk. `None` is a gigabyte or a twentieth of the disk, whichever is less.
    pub(crate) reserve: Option<u64>,
}

impl DiskLimits {
    pub(crate) fn of(config: &SandboxConfig) -> Self {
        Self { quota: config.disk_limit, reserve: config.disk_reserve }
    }
}

impl fmt::Display for DiskLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quota {
            0 => f.write_str("files not limited"),
            quota => write!(f, "files {} a thread", Size(quota)),
        }
    }
}

/// The disk below one thread.
#[derive(Debug)]
pub(crate) struct Disk {
    dirs: Vec<PathBuf>,
    limits: DiskLimits,
    account: Mutex<Account>,
}

/// What is known of the thread's files, kept together so that whoever asks for room sees what all others were given.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    known: Option<Known>,
    /// Admitted and not in its place yet, where no walk finds it.
    staged: u64,
    /// All that was ever put in its place. A walk that ends knows by it what came meanwhile.
    landed: u64,
}

impl Account {
    fn used(&self) -> Option<u64> {
        self.known.map(|known| known.used.saturating_add(self.staged))
    }
}

/// Room for what is being written. Dropped, it is free again; what has landed stays counted.
#[derive(Debug)]
pub(crate) struct Claim {
    disk: Arc<Disk>,
    bytes: u64,
}

impl Claim {
    /// Asked before `more` bytes are written. Blocks.
    pub(crate) fn grow(&mut self, more: u64) -> Result<()> {
        self.disk.reserve(more)?;
        self.bytes = self.bytes.saturating_add(more);
        Ok(())
    }

    /// What was written is in its place.
    pub(crate) fn landed(mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut account = self.disk.lock();
        account.staged = account.staged.saturating_sub(bytes);
        account.landed = account.landed.saturating_add(bytes);
        if let Some(known) = &mut account.known {
            known.used = known.used.saturating_add(bytes);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut account = self.disk.lock();
        account.staged = account.staged.saturating_sub(self.bytes);
    }
}

/// What the last walk found, and what the disk was like then.
#[derive(Clone, Copy, Debug)]
struct Known {
    used: u64,
    free: u64,
    entries: u64,
    at: Instant,
    took: Duration,
}

/// Why nothing more may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Quota { used: u64, quota: u64 },
    Reserve { free: u64, reserve: u64 },
}

impl Full {
    pub(crate) fn rule(&self) -> &'static str {
        match self {
            Self::Quota { .. } => "disk.quota",
            Self::Reserve { .. } => "disk.reserve",
        }
    }

    /// In words for whoever ran the command.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Quota { used, quota } => format!(
                "the files of this thread take {}, the limit is {}; remove what is not needed",
                Size(*used),
                Size(*quota)
            ),
            Self::Reserve { free, reserve } => format!(
                "the disk has {} left, and {} must stay free; ask the user to make room",
                Size(*free),
                Size(*reserve)
            ),
        }
    }

    fn error(self) -> SandboxError {
        SandboxError::DiskFull { rule: self.rule(), reason: self.words() }
    }
}

struct Space {
    free: u64,
    entries: u64,
    reserve: u64,
}

impl Disk {
    /// `dirs` are the thread's own; the first must exist.
    pub(crate) fn new(dirs: Vec<PathBuf>, limits: DiskLimits) -> Self {
        Self { dirs, limits, account: Mutex::default() }
    }

    /// Of the nearest directory that exists: the home may not have been made yet.
    pub(crate) fn below(home: &Path, limits: DiskLimits) -> Self {
        let existing = home.ancestors().find(|dir| dir.is_dir()).unwrap_or(home);
        Self::new(vec![existing.to_owned()], limits)
    }

    pub(crate) fn is_low(&self) -> bool {
        self.space().is_some_and(|space| space.free < space.reserve)
    }

    /// What is left, for `hart doctor`.
    pub(crate) fn describe(&self) -> String {
        match self.space() {
            None => "unknown".to_owned(),
            Some(Space { free, reserve, .. }) if free < reserve => {
                format!(
                    "{} left, less than the {} that must stay free: nothing is run or written",
                    Size(free),
                    Size(reserve)
                )
            }
            Some(Space { free, reserve, .. }) => format!("{} left, {} stay free", Size(free), Size(reserve)),
        }
    }

    /// Room for a file that is to be written; none is asked for yet.
    pub(crate) fn claim(this: &Arc<Self>) -> Claim {
        Claim { disk: Arc::clone(this), bytes: 0 }
    }

    fn reserve(&self, more: u64) -> Result<()> {
        if let Some(space) = self.space().filter(|space| space.free.saturating_sub(more) < space.reserve) {
            return Err(Full::Reserve { free: space.free, reserve: space.reserve }.error());
        }
        self.try_reserve(more).or_else(|_| {
            // Something may have been removed since, or nothing was known.
            self.measure();
            self.try_reserve(more).map_err(Full::error)
        })
    }

    fn try_reserve(&self, more: u64) -> Result<(), Full> {
        let quota = self.limits.quota;
        let mut account = self.lock();
        match account.used() {
            _ if quota == 0 => {}
            Some(used) if used.saturating_add(more) <= quota => {}
            used => return Err(Full::Quota { used: used.unwrap_or_default(), quota }),
        }
        account.staged = account.staged.saturating_add(more);
        Ok(())
    }

    /// Asked before a command starts: how large a file may get. Where the quota is used up, nothing may be written, so
    /// that a command can still remove something. Blocks, but walks only if the last walk found too much.
    pub(crate) fn file_limit(&self, usual: u64) -> Result<u64> {
        if let Some(space) = self.space().filter(|space| space.free < space.reserve) {
            return Err(Full::Reserve { free: space.free, reserve: space.reserve }.error());
        }
        let quota = self.limits.quota;
        if quota == 0 {
            return Ok(usual);
        }
        let full = self.lock().used().is_some_and(|used| used > quota) && self.measure() > quota;
        Ok(if full { 0 } else { usual.min(quota) })
    }

    /// Whether the last walk found too much.
    pub(crate) fn used_up(&self) -> Option<Full> {
        let (quota, used) = (self.limits.quota, self.lock().used().unwrap_or_default());
        (quota > 0 && used > quota).then_some(Full::Quota { used, quota })
    }

    /// Ends when nothing more may be written.
    pub(crate) async fn fills_up(self: Arc<Self>) -> Full {
        loop {
            tokio::time::sleep(TICK).await;
            let disk = Arc::clone(&self);
            let Some(space) = self.space() else { continue };
            if space.free < space.reserve {
                return Full::Reserve { free: space.free, reserve: space.reserve };
            }
            let quota = self.limits.quota;
            if quota == 0 || !self.is_due(&space) {
                continue;
            }
            let used = tokio::task::spawn_blocking(move || disk.measure()).await.unwrap_or_default();
            if used > quota {
                return Full::Quota { used, quota };
            }
        }
    }

    /// Whether the thread's files may have grown much, judged by what the whole disk has left.
    fn is_due(&self, space: &Space) -> bool {
        let Some(known) = self.lock().known else { return true };
        let room = self.limits.quota.saturating_sub(known.used);
        let taken = known.free.saturating_sub(space.free);
        let made = known.entries.saturating_sub(space.entries).saturating_mul(ENTRY);
        let grown = taken.max(made);
        let due = grown > room / 4 || (grown > 0 && known.at.elapsed() > STALE);
        due && known.at.elapsed() > known.took * SHARE
    }

    fn space(&self) -> Option<Space> {
        let found = statvfs(self.dirs.first()?).ok()?;
        let reserve = self.limits.reserve.unwrap_or_else(|| {
            let twentieth = found.f_blocks.saturating_mul(found.f_frsize) / 20;
            twentieth.min(1 << 30)
        });
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        Some(Space { free, entries: found.f_favail, reserve })
    }

    /// Walks the tree, and says what is used and promised. What lands meanwhile may be counted twice, never not at all.
    fn measure(&self) -> u64 {
        let begun = Instant::now();
        let landed_before = self.lock().landed;
        let walked = self.dirs.iter().map(tree_size).fold(0, u64::saturating_add);
        let (free, entries) = self.space().map_or((0, 0), |space| (space.free, space.entries));
        let (at, took) = (Instant::now(), begun.elapsed());
        let mut account = self.lock();
        let used = walked.saturating_add(account.landed - landed_before);
        account.known = Some(Known { used, free, entries, at, took });
        used.saturating_add(account.staged)
    }

    fn lock(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a tree takes on the disk. What vanishes meanwhile counts for nothing; links are not followed.
fn tree_size(top: &PathBuf) -> u64 {
    /// A tree may be deeper than a path may be long.
    const LONG: usize = 2000;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(top) = openat(CWD, top, flags, Mode::empty()) else { return 0 };
    let mut size = 0_u64;
    let mut open = vec![(Rc::new(top), CString::from(c"."))];
    while let Some((base, path)) = open.pop() {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let Ok(dir) = openat2(&*base, path.as_c_str(), flags, Mode::empty(), resolve) else { continue };
        let dir = Rc::new(dir);
        let (below, prefix) = match path.count_bytes() {
            ..LONG => (&base, Some(&path)),
            _ => (&dir, None),
        };
        let Ok(entries) = Dir::read_from(&*dir) else { continue };
        for entry in entries.flatten().filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b"..")) {
            let Ok(found) = statat(&*dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let blocks = u64::try_from(found.st_blocks).unwrap_or_default().saturating_mul(512);
            // A file with several names is counted once, a part at each.
            let names = u64::from(found.st_nlink.max(1) as u32);
            let directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
            let share = if directory { blocks } else { blocks / names };
            size = size.saturating_add(share.max(ENTRY));
            if directory {
                open.push((Rc::clone(below), joined(prefix.map(CString::as_c_str), entry.file_name())));
            }
        }
    }
    size
}

fn joined(above: Option<&CStr>, name: &CStr) -> CString {
    let mut path = above.map(|above| [above.to_bytes(), b"/"].concat()).unwrap_or_default();
    path.extend_from_slice(name.to_bytes());
    // Neither part holds a NUL.
    CString::new(path).unwrap_or_default()
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
