//! What a snapshot says about each entry, and how that is written down.
//!
//! Invariant: a name is bytes; whatever it is made of, it comes back the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::tree::{Kind, Tree};

/// `workspace/a/b` → what is there, parents before children.
pub(super) type Entries = BTreeMap<Vec<u8>, Entry>;

#[derive(Debug, Default)]
pub(super) struct Manifest {
    /// When the walk began, by the clock that files are stamped with, in nanoseconds.
    pub(super) began: i128,
    pub(super) entries: Entries,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) mode: u32,
    /// User and group.
    pub(super) owner: (u32, u32),
    pub(super) stamp: Stamp,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum What {
    Directory {
        /// Nobody could look into it, so nothing is known about what is in it.
        closed: bool,
    },
    File(Content),
    /// The target, escaped like a path.
    Link(String),
    /// A FIFO, socket or device; known by name only.
    Other,
}

impl What {
    fn is_a(&self, kind: &Kind) -> bool {
        match (self, kind) {
            (Self::Directory { closed }, Kind::Directory { closed: now }) => closed == now,
            (Self::Link(target), Kind::Link(now)) => target == now,
            (Self::File(_), Kind::File) | (Self::Other, Kind::Other) => true,
            _ => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Content {
    /// In a pack, from an offset on.
    Packed { pack: String, offset: u64, hash: String },
    /// A file of its own in the store.
    Object { hash: String },
    /// Too large, or not readable.
    LeftOut { reason: String },
}

impl Content {
    pub(super) fn hash(&self) -> Option<&str> {
        match self {
            Self::Packed { hash, .. } | Self::Object { hash } => Some(hash),
            Self::LeftOut { .. } => None,
        }
    }
}

/// A file with the same stamp has the same content, unless it was written in the very moment it was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    pub(super) size: u64,
    pub(super) device: u64,
    pub(super) inode: u64,
    /// Nanoseconds since 1970.
    pub(super) modified: i128,
    pub(super) changed: i128,
}

/// The kernel stamps files with a clock that ticks every few milliseconds; within a tick two writes look like one.
const TICK: i128 = 20_000_000;

impl Manifest {
    /// The entry, if what it says about a file with this stamp is still certain.
    pub(super) fn unchanged(&self, path: &[u8], stamp: &Stamp) -> Option<&Entry> {
        let certain = stamp.changed < self.began - TICK;
        self.entries.get(path).filter(|entry| certain && entry.stamp == *stamp)
    }

    /// Whether it certainly says of a tree all there is to say.
    pub(super) fn is_of(&self, tree: &Tree) -> bool {
        self.entries.len() == tree.found.len()
            && tree.found.iter().all(|(path, seen)| {
                self.unchanged(path, &seen.stamp).is_some_and(|entry| {
                    entry.mode == seen.mode && entry.owner == seen.owner && entry.what.is_a(&seen.kind)
                })
            })
    }

    /// One line each: the head, then the entries.
    pub(super) fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let mut out = serde_json::to_vec(&(VERSION, self.began.to_string(), self.entries.len()))?;
        for (path, entry) in &self.entries {
            out.push(b'\n');
            serde_json::to_writer(&mut out, &(escape(path), entry))?;
        }
        out.push(b'\n');
        Ok(out)
    }

    /// `Err` says what is wrong with it.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let head = lines.next().ok_or("it is empty")?;
        let (version, began, count): (u32, String, usize) =
            serde_json::from_slice(head).map_err(|error| error.to_string())?;
        if version != VERSION {
            return Err(format!("it is of version {version}"));
        }
        let began = began.parse().map_err(|_| "its time is no number")?;
        let mut entries = Entries::new();
        for line in lines {
            let (path, entry): (String, Entry) =
                serde_json::from_slice(line).map_err(|error| error.to_string())?;
            let path = unescape(&path).filter(|path| is_plain(path)).ok_or("a path in it is not one")?;
            entries.insert(path, entry);
        }
        if entries.len() == count {
            Ok(Self { began, entries })
        } else {
            Err("its end is missing".to_owned())
        }
    }
}

const VERSION: u32 = 1;

/// No component that leads elsewhere: what is read from disk is not trusted with more than names.
fn is_plain(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/')
        .all(|part| !part.is_empty() && part != b"." && part != b".." && !part.contains(&0))
}

pub(super) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '%' { text.push_str("%25") } else { text.push(c) }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02x}"));
        }
    }
    text
}

pub(super) fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after.get(2..)?;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    Some(bytes)
}
