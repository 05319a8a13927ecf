//! Files inside of packages: `skill.skill/SKILL.md`.
//!
//! Invariant: whatever an archive says of itself, no more is read or unpacked than the limits allow.

use std::io::{self, Read as _};

use axum::body::Bytes;
use flate2::Crc;
use flate2::read::DeflateDecoder;
use hart_runtime::Workspace;

use super::files::{FileError, Files, OpenFile};
use crate::error::{ApiError, ApiResult};

/// What a package's name ends in.
const PACKAGES: [&str; 2] = [".skill", ".zip"];
/// How long the list of an archive's files may be, in bytes.
const LONGEST_LIST: u64 = 8 << 20;
/// How large a file may be once it is unpacked.
const LARGEST: u64 = 10 << 20;

/// What a path names that leads into a package; `None` where it does not, or nothing is there.
pub(super) async fn member(files: &dyn Files, of: &Workspace, path: &str) -> ApiResult<Option<Vec<u8>>> {
    for (at, _) in path.match_indices('/').skip(1) {
        let (package, member) = path.split_at(at);
        if !PACKAGES.iter().any(|ending| package.to_ascii_lowercase().ends_with(ending)) {
            continue;
        }
        match files.open(of, package).await {
            Ok(file) => return find(file.as_ref(), member.trim_start_matches('/')).await,
            Err(FileError::NotFound | FileError::Refused(_)) => {}
            Err(error) => return Err(error.about(&format!("the package `{package}`"))),
        }
    }
    Ok(None)
}

async fn find(file: &dyn OpenFile, member: &str) -> ApiResult<Option<Vec<u8>>> {
    let entries = match entries(file).await {
        Ok(entries) => entries,
        Err(broken) => return Err(broken.into()),
    };
    let inside = |entry: &&Entry| {
        // Most packages have one folder around everything.
        entry.name == member || entry.name.split_once('/').is_some_and(|(_, rest)| rest == member)
    };
    let exact = entries.iter().find(|entry| entry.name == member);
    match exact.or_else(|| entries.iter().find(inside)) {
        Some(entry) => Ok(Some(unpack(file, entry).await?)),
        None => Ok(None),
    }
}

/// One file, as the archive's list has it.
struct Entry {
    name: String,
    encrypted: bool,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    /// Where it begins, with a head of its own.
    at: u64,
}

/// Why an archive cannot be read.
enum Broken {
    Io(io::Error),
    Damaged(&'static str),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Broken> for ApiError {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Io(error) => FileError::Failed(error.to_string()).about("the package"),
            Broken::Damaged(why) => Self::unprocessable(format!("the package cannot be read: {why}")),
        }
    }
}

async fn entries(file: &dyn OpenFile) -> Result<Vec<Entry>, Broken> {
    /// The end of an archive, and the longest comment there may be behind it.
    const END: u64 = 22;
    let tail_at = file.size().saturating_sub(END + 0xffff);
    let tail = exactly(file, tail_at, file.size() - tail_at).await?;
    let end = memchr::memmem::rfind(&tail, b"PK\x05\x06").and_then(|at| tail.get(at..));
    let end = end.ok_or(Broken::Damaged("it is no archive"))?;
    let (size, at) = (u64::from(number(end, 12)?), u64::from(number(end, 16)?));
    if at == u64::from(u32::MAX) || size > LONGEST_LIST {
        return Err(Broken::Damaged("it is too large"));
    }
    let list = exactly(file, at, size).await?;
    let mut entries = Vec::new();
    let mut rest: &[u8] = &list;
    while rest.starts_with(b"PK\x01\x02") {
        let length = |at| short(rest, at).map(usize::from);
        let (name_len, more) = (length(28)?, length(30)? + length(32)?);
        let name = rest.get(46..46 + name_len).ok_or(TRUNCATED)?;
        entries.push(Entry {
            name: String::from_utf8_lossy(name).replace('\\', "/"),
            encrypted: short(rest, 8)? & 1 == 1,
            method: short(rest, 10)?,
            crc: number(rest, 16)?,
            packed: number(rest, 20)?.into(),
            size: number(rest, 24)?.into(),
            at: number(rest, 42)?.into(),
        });
        rest = rest.get(46 + name_len + more..).ok_or(TRUNCATED)?;
    }
    Ok(entries)
}

async fn unpack(file: &dyn OpenFile, entry: &Entry) -> Result<Vec<u8>, Broken> {
    if entry.encrypted {
        return Err(Broken::Damaged("the file in it is encrypted"));
    }
    if entry.size > LARGEST || entry.packed > LARGEST {
        return Err(Broken::Damaged("the file in it is too large to be shown; download the package"));
    }
    /// Without the name and what else is of any length.
    const HEAD: u64 = 30;
    let head = exactly(file, entry.at, HEAD).await?;
    if !head.starts_with(b"PK\x03\x04") {
        return Err(Broken::Damaged("its list does not fit to its files"));
    }
    let before = HEAD + u64::from(short(&head, 26)?) + u64::from(short(&head, 28)?);
    let packed = exactly(file, entry.at + before, entry.packed).await?;
    let content = match entry.method {
        0 => packed.to_vec(),
        8 => {
            let mut content = Vec::new();
            let mut unpacked = DeflateDecoder::new(&*packed).take(LARGEST + 1);
            unpacked.read_to_end(&mut content).map_err(|_| DAMAGED)?;
            content
        }
        _ => return Err(Broken::Damaged("the file in it is packed in a way that is not known here")),
    };
    let mut crc = Crc::new();
    crc.update(&content);
    if content.len() as u64 != entry.size || crc.sum() != entry.crc {
        return Err(DAMAGED);
    }
    Ok(content)
}

const TRUNCATED: Broken = Broken::Damaged("its list of files is cut off");
const DAMAGED: Broken = Broken::Damaged("the file in it is damaged");

async fn exactly(file: &dyn OpenFile, at: u64, len: u64) -> Result<Bytes, Broken> {
    let len = usize::try_from(len).map_err(|_| Broken::Damaged("it is too large"))?;
    let read = file.read_at(at, len).await?;
    if read.len() == len { Ok(read) } else { Err(Broken::Damaged("it ends too early")) }
}

fn short(bytes: &[u8], at: usize) -> Result<u16, Broken> {
    let found = bytes.get(at..at + 2).and_then(|bytes| bytes.try_into().ok());
    found.map(u16::from_le_bytes).ok_or(TRUNCATED)
}

fn number(bytes: &[u8], at: usize) -> Result<u32, Broken> {
    let found = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    found.map(u32::from_le_bytes).ok_or(TRUNCATED)
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
