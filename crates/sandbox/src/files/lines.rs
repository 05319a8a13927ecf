//! Some lines of a file, and a mark of its content, however large it is.
//!
//! Invariant: memory holds the lines that were asked for and one buffer, never the file.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags, fstat};
use sha2::{Digest, Sha256};

use super::ops::{CAREFUL, regular_file};
use super::place::{Roots, explain};
use super::write::open_parent;
use crate::contract::{LineQuery, Lines};
use crate::error::{Result, SandboxError};
use crate::path::VPath;

const BUFFER: usize = 256 << 10;
/// Enough to know a file by its first bytes.
const HEAD: usize = 8 << 10;
/// How far beyond the wanted lines the others are counted.
const COUNTED: u64 = 256 << 20;
/// A file is hashed up to here; beyond, its size and times stand for its content.
const HASHED: u64 = 16 << 20;

pub(crate) fn read_lines(roots: &Roots, path: &VPath, query: LineQuery) -> Result<Lines> {
    let (file, size) = open(roots, path)?;
    scan(file, size, query).map_err(|source| SandboxError::io(path, source))
}

/// What [`crate::Sandbox::mark`] says of a file with this content, unless it is a very large one.
pub fn content_mark(content: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(content)))
}

pub(crate) fn mark(roots: &Roots, path: &VPath) -> Result<String> {
    let (mut file, size) = open(roots, path)?;
    if size > HASHED {
        let found = fstat(file.as_fd()).map_err(|errno| explain(path, errno))?;
        let (changed, at) = (found.st_ctime as i64, found.st_ctime_nsec);
        return Ok(format!("stat:{size}:{}:{changed}.{at}", found.st_ino));
    }
    let mut hash = Sha256::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        match file.read(&mut buffer).map_err(|source| SandboxError::io(path, source))? {
            0 => break,
            read => hash.update(buffer.get(..read).unwrap_or_default()),
        }
    }
    Ok(format!("sha256:{}", hex(&hash.finalize())))
}

/// Opens a new, empty file for a log, with the directories above it.
pub(crate) fn create_log(roots: &Roots, path: &VPath) -> Result<File> {
    let (root, relative) = roots.open_for_change(path)?;
    open_parent(&root, relative, path)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | CAREFUL;
    let fd = root.beneath(relative, flags, Mode::from(0o644)).map_err(|errno| explain(path, errno))?;
    regular_file(&fd, path)?;
    Ok(File::from(fd))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(*DIGITS.get(usize::from(value & 15)).unwrap_or(&b'0'));
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

fn open(roots: &Roots, path: &VPath) -> Result<(File, u64)> {
    let (root, relative) = roots.open(path)?;
    let fd = root
        .beneath(relative, OFlags::RDONLY | CAREFUL, Mode::empty())
        .map_err(|errno| explain(path, errno))?;
    let size = regular_file(&fd, path)?.1;
    Ok((File::from(fd), size))
}

/// Reads through, keeping the wanted lines.
pub(crate) fn scan(mut input: impl Read, size: u64, query: LineQuery) -> std::io::Result<Lines> {
    let mut scan = Scan { query, line: 1, seen: 0, beyond: 0, lines: Lines { size, ..Lines::default() } };
    let mut buffer = vec![0; BUFFER];
    let mut ends_in_newline = true;
    loop {
        let read = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let bytes = buffer.get(..read).unwrap_or_default();
        ends_in_newline = bytes.last() == Some(&b'\n');
        scan.push(bytes);
        if scan.beyond > COUNTED {
            scan.lines.total = None;
            scan.lines.at_least = scan.line.saturating_sub(1);
            return Ok(scan.lines);
        }
    }
    let total = if ends_in_newline { scan.line - 1 } else { scan.line };
    scan.lines.total = Some(total);
    scan.lines.at_least = total;
    Ok(scan.lines)
}

struct Scan {
    query: LineQuery,
    /// The line the next byte belongs to.
    line: u64,
    seen: u64,
    /// Bytes read after everything wanted was there.
    beyond: u64,
    lines: Lines,
}

impl Scan {
    fn push(&mut self, bytes: &[u8]) {
        if self.lines.head.len() < HEAD {
            let room = HEAD - self.lines.head.len();
            self.lines.head.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        }
        self.seen += bytes.len() as u64;
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.line > self.query.last || self.lines.cut && self.line > self.query.first {
                self.lines.cut |= self.line <= self.query.last;
                self.line += memchr::memchr_iter(b'\n', rest).count() as u64;
                self.beyond += rest.len() as u64;
                return;
            }
            let end = memchr::memchr(b'\n', rest).map(|at| at + 1);
            let (piece, after) = rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or((rest, &[]));
            if self.line >= self.query.first {
                self.keep(piece);
            }
            self.line += u64::from(end.is_some());
            rest = after;
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        if self.line == self.query.first {
            // Every byte but those that continue a character.
            self.lines.first_line_chars += piece.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64;
        }
        let room = self.query.max_bytes.saturating_sub(self.lines.text.len()).min(piece.len());
        self.lines.text.extend_from_slice(piece.get(..room).unwrap_or_default());
        if room < piece.len() {
            self.lines.cut = true;
            self.beyond += (piece.len() - room) as u64;
        }
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
