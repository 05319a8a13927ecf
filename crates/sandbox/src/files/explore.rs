//! Visits a whole tree with several threads, never through a link.
//!
//! Invariant: each directory is opened from the root without links, and its files from that directory's descriptor.

use std::cmp::Ordering as Order;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, OFlags, RawDir, openat};
use rustix::io::Errno;

use super::place::OpenRoot;
use super::walk::{GONE, MAX_VISITED, kind_of};
use crate::contract::EntryKind;

/// More threads than this find no more disk or processor to keep busy.
const MAX_THREADS: usize = 8;
/// So many entries are counted at once.
const COUNTED: usize = 1024;
/// Bytes of names that wait for a closer look before one is taken.
const NAMES: usize = 16 << 10;
/// Bytes of names that are worth handing to a thread without work.
const SHARED: usize = 256;

/// What looks at the entries; every thread has one of its own.
pub(crate) trait Explorer: Send {
    /// Sees each entry while its directory is read; true asks for a closer look at a file.
    fn notice(&mut self, seen: &Seen<'_>) -> bool;

    /// The closer look, maybe by the explorer of another thread. False ends the whole exploration.
    fn examine(&mut self, file: &Seen<'_>) -> bool {
        let _ = file;
        true
    }

    /// Whether a directory can hold anything that still counts.
    fn enters(&self, key: &[u8]) -> bool;
}

/// One entry, while its directory is open.
pub(crate) struct Seen<'a> {
    dir: BorrowedFd<'a>,
    /// The key of its directory.
    above: &'a [u8],
    name: &'a CStr,
    pub(crate) kind: EntryKind,
}

impl Seen<'_> {
    pub(crate) fn name(&self) -> &[u8] {
        self.name.to_bytes()
    }

    /// Where it is below the start, as the disk has it. Written over what is in `key`.
    pub(crate) fn write_key(&self, key: &mut Vec<u8>) {
        key.clear();
        self.add_key(key);
    }

    pub(crate) fn add_key(&self, key: &mut Vec<u8>) {
        key.extend_from_slice(self.above);
        if !self.above.is_empty() {
            key.push(b'/');
        }
        key.extend_from_slice(self.name());
    }

    /// Opens a file for reading; a link, or a FIFO without a writer, does not block or lead anywhere.
    pub(crate) fn open(&self) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        openat(self.dir, self.name, flags, Mode::empty()).ok().map(File::from)
    }
}

/// Path order, name by name: a directory comes directly before its content.
pub(crate) fn path_order(a: &[u8], b: &[u8]) -> Order {
    let differs = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
    let rank =
        |path: &[u8]| path.get(differs).map(|byte| if *byte == b'/' { 0 } else { u16::from(*byte) + 1 });
    rank(a).cmp(&rank(b))
}

enum Work {
    /// To be read; its key.
    Directory(Vec<u8>),
    Files(Files),
}

/// Files of one directory that want a closer look: their names, each with its NUL.
struct Files {
    dir: Arc<OpenDirectory>,
    names: Vec<u8>,
}

struct OpenDirectory {
    fd: OwnedFd,
    key: Vec<u8>,
}

#[derive(Default)]
struct Pending {
    work: Vec<Work>,
    /// How many threads are at work, and may find more of it.
    busy: usize,
}

struct Shared<'a> {
    root: &'a OpenRoot,
    relative: &'a str,
    skip: &'a (dyn Fn(&[u8]) -> bool + Sync),
    pending: Mutex<Pending>,
    changed: Condvar,
    /// Threads without work; a hint.
    idle: AtomicUsize,
    visited: AtomicUsize,
    truncated: AtomicBool,
    stopped: AtomicBool,
}

/// Returns the explorers, and whether something was left out. Fails if the start is not a directory.
pub(crate) fn explore<E: Explorer>(
    root: &OpenRoot,
    relative: &str,
    skip: &(dyn Fn(&[u8]) -> bool + Sync),
    make: impl Fn() -> E,
) -> Result<(Vec<E>, bool), Errno> {
    // The start may be named through links that stay inside; from there on, links are entries and no more.
    let start = root.beneath(relative, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
    let shared = Shared {
        root,
        relative,
        skip,
        pending: Mutex::default(),
        changed: Condvar::new(),
        idle: AtomicUsize::new(0),
        visited: AtomicUsize::new(0),
        truncated: AtomicBool::new(false),
        stopped: AtomicBool::new(false),
    };
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(MAX_THREADS));
    let mut explorers: Vec<E> = (0..threads).map(|_| make()).collect();
    // Busy with the start; who looks for work meanwhile waits for what it finds.
    shared.lock().busy = 1;
    let read = std::thread::scope(|scope| {
        let mut rest = explorers.iter_mut();
        let own = rest.next();
        for explorer in rest {
            scope.spawn(|| shared.work(explorer));
        }
        let Some(explorer) = own else { return Ok(()) };
        let at_work = AtWork(&shared);
        let read = shared.read(start, Vec::new(), explorer);
        drop(at_work);
        shared.work(explorer);
        read
    });
    read?;
    Ok((explorers, shared.truncated.into_inner()))
}

/// Says that its thread is done, also when that fell: nobody waits for it in vain.
struct AtWork<'a, 'b>(&'a Shared<'b>);

impl Drop for AtWork<'_, '_> {
    fn drop(&mut self) {
        let mut pending = self.0.lock();
        pending.busy -= 1;
        if pending.busy == 0 {
            self.0.changed.notify_all();
        }
    }
}

impl Shared<'_> {
    fn work(&self, explorer: &mut impl Explorer) {
        while let Some(work) = self.next() {
            let _at_work = AtWork(self);
            match work {
                Work::Directory(key) => self.enter(key, explorer),
                Work::Files(files) => self.examine(files, explorer),
            }
        }
    }

    fn next(&self) -> Option<Work> {
        let mut pending = self.lock();
        loop {
            if let Some(work) = pending.work.pop() {
                pending.busy += 1;
                return Some(work);
            }
            if pending.busy == 0 {
                return None;
            }
            self.idle.fetch_add(1, Ordering::Relaxed);
            pending = self.changed.wait(pending).unwrap_or_else(PoisonError::into_inner);
            self.idle.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, key: Vec<u8>, explorer: &mut impl Explorer) {
        if self.stopped.load(Ordering::Relaxed) || !explorer.enters(&key) {
            return;
        }
        let path = join(self.relative.as_bytes(), &key);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let opened = self.root.beneath_without_links(OsStr::from_bytes(&path), flags);
        let read = opened.and_then(|dir| self.read(dir, key, explorer));
        // Gone or swapped for a link: there is nothing to enter. Otherwise something is left out.
        if read.is_err_and(|errno| !GONE.contains(&errno)) {
            self.truncated.store(true, Ordering::Relaxed);
        }
    }

    fn read(&self, fd: OwnedFd, key: Vec<u8>, explorer: &mut impl Explorer) -> Result<(), Errno> {
        let dir = Arc::new(OpenDirectory { fd, key });
        let mut buffer = [MaybeUninit::<u8>::uninit(); 32 << 10];
        let mut entries = RawDir::new(&dir.fd, &mut buffer);
        let (mut below, mut names, mut counted) = (Vec::new(), Vec::new(), 0);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") || (self.skip)(name.to_bytes()) {
                continue;
            }
            counted += 1;
            if counted >= COUNTED && !self.goes_on(std::mem::take(&mut counted)) {
                return Ok(());
            }
            let kind = kind_of(dir.fd.as_fd(), name, entry.file_type());
            let seen = Seen { dir: dir.fd.as_fd(), above: &dir.key, name, kind };
            if explorer.notice(&seen) {
                names.extend_from_slice(name.to_bytes_with_nul());
            }
            if kind == EntryKind::Directory {
                below.push(join(&dir.key, name.to_bytes()));
            }
            if names.len() >= NAMES {
                let names = std::mem::take(&mut names);
                self.examine(Files { dir: Arc::clone(&dir), names }, explorer);
            }
        }
        if !self.goes_on(counted) {
            return Ok(());
        }
        below.retain(|key| explorer.enters(key));
        if !below.is_empty() {
            // The stack gives back the first in order first, so that a search with enough results can end early.
            below.sort_unstable_by(|a, b| path_order(b, a));
            self.share(below.into_iter().map(Work::Directory));
        }
        self.examine(Files { dir, names }, explorer);
        Ok(())
    }

    fn share(&self, work: impl Iterator<Item = Work>) {
        self.lock().work.extend(work);
        if self.idle.load(Ordering::Relaxed) > 0 {
            self.changed.notify_all();
        }
    }

    /// Looks at one file after the other, and gives half of the rest away when another thread has nothing to do.
    fn examine(&self, files: Files, explorer: &mut impl Explorer) {
        let Files { dir, names } = files;
        let mut rest = names.as_slice();
        while let Ok(name) = CStr::from_bytes_until_nul(rest) {
            if self.stopped.load(Ordering::Relaxed) {
                return;
            }
            if rest.len() > SHARED && self.idle.load(Ordering::Relaxed) > 0 {
                let middle = memchr::memchr(0, rest.get(rest.len() / 2..).unwrap_or_default());
                let kept = rest.len() / 2 + middle.unwrap_or_default() + 1;
                if let Some((own, given)) = rest.split_at_checked(kept) {
                    rest = own;
                    let names = given.to_vec();
                    self.share(std::iter::once(Work::Files(Files { dir: Arc::clone(&dir), names })));
                }
            }
            let seen = Seen { dir: dir.fd.as_fd(), above: &dir.key, name, kind: EntryKind::File };
            if !explorer.examine(&seen) {
                self.stop();
            }
            rest = rest.get(name.count_bytes() + 1..).unwrap_or_default();
        }
    }

    /// Counts entries; false once there were too many, or someone has stopped.
    fn goes_on(&self, counted: usize) -> bool {
        if self.visited.fetch_add(counted, Ordering::Relaxed) + counted > MAX_VISITED {
            self.stop();
        }
        !self.stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.truncated.store(true, Ordering::Relaxed);
        self.stopped.store(true, Ordering::Relaxed);
    }
}

fn join(above: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(above.len() + 1 + name.len());
    joined.extend_from_slice(above);
    if !above.is_empty() && !name.is_empty() {
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}
