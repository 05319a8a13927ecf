//! What the file system says of files, to see without reading them whether they are the ones that were read.
//!
//! Invariant: files whose stamps are the same hold the same bytes, unless somebody sets the machine's clock back.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A file's identity and when it was last touched; `None` where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp(Option<(u64, u64, i64, i64, i64, i64, u32)>);

impl Stamp {
    pub(super) fn of(path: &Path) -> Self {
        let meta = fs::symlink_metadata(path).ok();
        // The time of the last change of the inode cannot be set by whoever changes the file.
        Self(
            meta.map(|m| (m.ino(), m.size(), m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec(), m.mode())),
        )
    }

    fn is_folder(&self) -> bool {
        self.0.is_some_and(|(.., mode)| rustix::fs::FileType::from_raw_mode(mode).is_dir())
    }

    /// When the inode last changed, in milliseconds.
    fn changed_at(&self) -> i64 {
        self.0.map_or(0, |(.., seconds, nanos, _)| seconds * 1000 + nanos / 1_000_000)
    }
}

/// All files and folders that something was made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Stamps {
    all: Vec<(PathBuf, Stamp)>,
    /// Something changed so shortly before it was read that a change right after would have the same stamp.
    fresh: bool,
}

/// The file system's clock ticks slower than files can be written.
const TICK_MILLIS: i64 = 50;

impl Stamps {
    pub(super) fn add(&mut self, path: PathBuf, now_millis: i64) {
        let stamp = Stamp::of(&path);
        self.fresh |= stamp.changed_at() + TICK_MILLIS > now_millis;
        self.all.push((path, stamp));
    }

    pub(super) fn still_hold(&self) -> bool {
        !self.fresh && self.all.iter().all(|(path, stamp)| Stamp::of(path) == *stamp)
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.all.extend(other.all.iter().cloned());
        self.fresh |= other.fresh;
    }

    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().filter(|(_, stamp)| stamp.is_folder()).map(|(path, _)| path.as_path())
    }

    /// All that is there and no folder.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        let files = self.all.iter().filter(|(_, stamp)| stamp.0.is_some() && !stamp.is_folder());
        files.map(|(path, _)| path.as_path())
    }

    pub(super) fn absent(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().filter(|(_, stamp)| stamp.0.is_none()).map(|(path, _)| path.as_path())
    }

    /// Whether both are of the same files in the same state, and both say so for certain.
    pub(super) fn same(&self, other: &Self) -> bool {
        !self.fresh && self.all == other.all
    }

    /// Everything below a folder, and the folder.
    pub(super) fn add_tree(&mut self, folder: &Path, now_millis: i64) {
        self.add(folder.to_owned(), now_millis);
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.add_tree(&entry.path(), now_millis),
                _ => self.add(entry.path(), now_millis),
            }
        }
    }
}
