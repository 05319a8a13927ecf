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
use std::sync::{Condvar, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, RawDir, openat};
use rustix::io::Errno;

use super::place::OpenRoot;
use super::walk::{GONE, MAX_VISITED, entry_kind};
use crate::contract::EntryKind;

/// More threads than this find no more disk or processor to keep busy.
const MAX_THREADS: usize = 8;

/// What looks at the entries; every thread has one of its own.
pub(crate) trait Explorer: Send {
    /// False ends the whole exploration.
    fn visit(&mut self, seen: &Seen<'_>) -> bool;

    /// Whether a directory can hold anything that still counts.
    fn enters(&self, key: &[u8]) -> bool {
        let _ = key;
        true
    }
}

/// One entry, while its directory is open.
pub(crate) struct Seen<'a> {
    dir: BorrowedFd<'a>,
    name: &'a CStr,
    /// Below the start, as the disk has it.
    pub(crate) key: &'a [u8],
    /// The same as text.
    pub(crate) shown: &'a str,
    pub(crate) kind: EntryKind,
}

impl Seen<'_> {
    /// Opens a file for reading; a link, or a FIFO without a writer, does not block or lead anywhere.
    pub(crate) fn open(&self) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        openat(self.dir, self.name, flags, Mode::empty()).ok().map(File::from)
    }
}

/// Path order, name by name: a directory comes directly before its content.
pub(crate) fn path_order(a: &[u8], b: &[u8]) -> Order {
    let rank = |byte: &u8| if *byte == b'/' { 0 } else { u16::from(*byte) + 1 };
    a.iter().map(rank).cmp(b.iter().map(rank))
}

struct Shared<'a> {
    root: &'a OpenRoot,
    relative: &'a str,
    skip: &'a (dyn Fn(&str) -> bool + Sync),
    /// Directories to read, below the start, and how many threads are reading one.
    pending: Mutex<(Vec<Vec<u8>>, usize)>,
    changed: Condvar,
    visited: AtomicUsize,
    truncated: AtomicBool,
    stopped: AtomicBool,
}

/// Returns the explorers, and whether something was left out. Fails if the start is not a directory.
pub(crate) fn explore<E: Explorer>(
    root: &OpenRoot,
    relative: &str,
    skip: &(dyn Fn(&str) -> bool + Sync),
    make: impl Fn() -> E,
) -> Result<(Vec<E>, bool), Errno> {
    // The start may be named through links that stay inside; from there on, links are entries and no more.
    let start = root.beneath(relative, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
    let shared = Shared {
        root,
        relative,
        skip,
        pending: Mutex::new((Vec::new(), 0)),
        changed: Condvar::new(),
        visited: AtomicUsize::new(0),
        truncated: AtomicBool::new(false),
        stopped: AtomicBool::new(false),
    };
    let mut first = make();
    shared.read(&start, b"", &mut first)?;
    drop(start);
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(MAX_THREADS));
    let mut explorers = vec![first];
    explorers.extend((1..threads).map(|_| make()));
    std::thread::scope(|scope| {
        let mut rest = explorers.iter_mut();
        let own = rest.next();
        for explorer in rest {
            scope.spawn(|| shared.work(explorer));
        }
        if let Some(explorer) = own {
            shared.work(explorer);
        }
    });
    Ok((explorers, shared.truncated.into_inner()))
}

impl Shared<'_> {
    fn work(&self, explorer: &mut impl Explorer) {
        while let Some(key) = self.next() {
            if explorer.enters(&key) && !self.stopped.load(Ordering::Relaxed) {
                let path = join(self.relative.as_bytes(), &key);
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                let opened = self.root.beneath_without_links(OsStr::from_bytes(&path), flags);
                let read = opened.and_then(|dir| self.read(&dir, &key, explorer));
                // Gone or swapped for a link: there is nothing to enter. Otherwise something is left out.
                if read.is_err_and(|errno| !GONE.contains(&errno)) {
                    self.truncated.store(true, Ordering::Relaxed);
                }
            }
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.1 -= 1;
            drop(pending);
            self.changed.notify_all();
        }
    }

    fn next(&self) -> Option<Vec<u8>> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(key) = pending.0.pop() {
                pending.1 += 1;
                return Some(key);
            }
            if pending.1 == 0 {
                return None;
            }
            pending = self.changed.wait(pending).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn read(&self, dir: &OwnedFd, key: &[u8], explorer: &mut impl Explorer) -> Result<(), Errno> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 32 << 10];
        let mut entries = RawDir::new(dir, &mut buffer);
        let mut below = Vec::new();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let text = name.to_string_lossy();
            if (self.skip)(&text) {
                continue;
            }
            if self.stopped.load(Ordering::Relaxed) {
                break;
            }
            if self.visited.fetch_add(1, Ordering::Relaxed) >= MAX_VISITED {
                self.stop();
                break;
            }
            let kind = entry_kind(entry.file_type());
            let child = join(key, name.to_bytes());
            let shown = String::from_utf8_lossy(&child);
            let seen = Seen { dir: dir.as_fd(), name, key: &child, shown: &shown, kind };
            if !explorer.visit(&seen) {
                self.stop();
                break;
            }
            if kind == EntryKind::Directory {
                below.push(child);
            }
        }
        if !below.is_empty() {
            // The stack gives back the first in order first, so that a search with enough results can end early.
            below.sort_unstable_by(|a, b| path_order(b, a));
            self.pending.lock().unwrap_or_else(PoisonError::into_inner).0.append(&mut below);
            self.changed.notify_all();
        }
        Ok(())
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
