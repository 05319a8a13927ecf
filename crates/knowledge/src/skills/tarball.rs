//! Reads tar archives inside packages, strictly: what two readers could read differently is refused.
//!
//! Invariant: every byte belongs to a plain file, a folder or the padding between them; nothing is unpacked beyond the
//! limits of a package.

use std::io::Read as _;

use flate2::bufread::GzDecoder;

use super::package::{Limits, Package, PackageError, PackagedFile, check_path};

const BLOCK: usize = 512;
const GZIP: &[u8] = b"\x1f\x8b";
/// Small texts may shrink to almost nothing.
const NO_BOMB_BELOW: usize = 1 << 20;
/// What headers of one entry may say beside its name; times and owners are all that is passed over.
const HARMLESS: [&str; 10] =
    ["mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment", "hdrcharset", "charset"];

/// What is in it; packed with gzip or not.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Package, PackageError> {
    let unpacked;
    let tar = match bytes.starts_with(GZIP) {
        true => {
            unpacked = gunzip(bytes, limits)?;
            &unpacked
        }
        false => bytes,
    };
    Package::from_files(entries(tar, limits)?, limits)
}

fn gunzip(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>, PackageError> {
    let most = limits.total_bytes.min((bytes.len() as u64).saturating_mul(limits.ratio));
    let most = most.max(NO_BOMB_BELOW as u64);
    let mut decoder = GzDecoder::new(bytes);
    let mut out = Vec::new();
    let read = decoder.by_ref().take(most + 1).read_to_end(&mut out);
    read.map_err(|_| refused("it is damaged"))?;
    if out.len() as u64 > most {
        return Err(PackageError::TooLargeInAll(most));
    }
    match decoder.into_inner() {
        [] => Ok(out),
        _ => Err(refused("there is something behind its end")),
    }
}

fn entries(tar: &[u8], limits: &Limits) -> Result<Vec<(String, PackagedFile)>, PackageError> {
    let mut files = Vec::new();
    let mut at = 0;
    loop {
        let header = block(tar, at)?;
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        at += BLOCK;
        let Header { name, kind, size, executable } = Header::read(header)?;
        let content = at.checked_add(size).and_then(|end| tar.get(at..end)).ok_or_else(cut)?;
        at += size.div_ceil(BLOCK) * BLOCK;
        match kind {
            b'0' | 0 => files.push((name, PackagedFile { bytes: content.to_vec(), executable })),
            b'5' if size == 0 => {
                // The folder that everything is in may be named.
                if !matches!(name.as_str(), "" | ".") {
                    check_path(&name, limits.depth)?;
                }
            }
            b'x' | b'g' if is_harmless(content) => {}
            b'1' | b'2' => return Err(PackageError::Link(name)),
            b'x' | b'g' | b'L' | b'K' => {
                return Err(refused("a name or size stands where not every reader looks for it"));
            }
            _ => return Err(PackageError::Special(name)),
        }
        if files.len() > limits.files {
            return Err(PackageError::TooMany(limits.files));
        }
    }
    match tar.get(at..).is_some_and(|rest| rest.iter().all(|byte| *byte == 0)) {
        true => Ok(files),
        false => Err(refused("there is something behind its end")),
    }
}

struct Header {
    name: String,
    kind: u8,
    size: usize,
    executable: bool,
}

impl Header {
    fn read(header: &[u8]) -> Result<Self, PackageError> {
        let field = |from: usize, to: usize| header.get(from..to).unwrap_or_default();
        // The sum is taken as if its own field were blank.
        let blank = |(at, byte): (usize, &u8)| {
            if (148..156).contains(&at) { u64::from(b' ') } else { u64::from(*byte) }
        };
        if number(field(148, 156)) != Some(header.iter().enumerate().map(blank).sum()) {
            return Err(refused("it is no tar archive, or damaged"));
        }
        let (name, prefix) = (text(field(0, 100))?, text(field(345, 500))?);
        let name = match (field(257, 262) == b"ustar" && !prefix.is_empty(), name.is_empty()) {
            (true, false) => format!("{prefix}/{name}"),
            _ => name.to_owned(),
        };
        let name = name.strip_prefix("./").unwrap_or(&name).trim_end_matches('/').to_owned();
        let size = number(field(124, 136)).and_then(|size| usize::try_from(size).ok()).ok_or_else(cut)?;
        let mode = number(field(100, 108)).unwrap_or_default();
        let kind = header.get(156).copied().unwrap_or_default();
        Ok(Self { name, kind, size, executable: mode & 0o111 != 0 })
    }
}

fn block(tar: &[u8], at: usize) -> Result<&[u8], PackageError> {
    at.checked_add(BLOCK).and_then(|end| tar.get(at..end)).ok_or_else(cut)
}

/// Octal digits, as all writers have them.
fn number(field: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    u64::from_str_radix(digits, 8).ok()
}

fn text(field: &[u8]) -> Result<&str, PackageError> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    std::str::from_utf8(field.get(..end).unwrap_or_default()).map_err(|_| refused("a name is not in UTF-8"))
}

/// Lines of `length key=value`.
fn is_harmless(content: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(content) else { return false };
    text.lines().all(|line| {
        let key = line.split_once(' ').and_then(|(_, rest)| rest.split_once('=')).map(|(key, _)| key);
        key.is_some_and(|key| HARMLESS.contains(&key))
    })
}

fn refused(why: &str) -> PackageError {
    PackageError::Archive(why.to_owned())
}

fn cut() -> PackageError {
    refused("it is no tar archive, or ends in the middle")
}

#[cfg(test)]
#[path = "tarball_tests.rs"]
pub(super) mod tests;
