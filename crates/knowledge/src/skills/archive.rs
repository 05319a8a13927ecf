//! Reads zip archives, strictly: what two readers could read differently is refused.
//!
//! Invariant: every byte of the archive belongs to an entry or its index, nothing is unpacked beyond what it declares,
//! and what it declares is within the limits before a byte of it is unpacked.

use std::io::Read as _;

use flate2::read::DeflateDecoder;

use super::package::{Builder, Limits, PackageError, PackagedFile, is_litter};

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_SIZE: usize = 22;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// Small files may shrink to almost nothing.
const NO_BOMB_BELOW: u64 = 1 << 20;
/// What may stand behind an entry whose sizes were not known when it was begun.
const LONGEST_DESCRIPTOR: usize = 24;
const LONGEST_EXTRA: usize = 1024;

pub(super) fn read(bytes: &[u8], limits: &Limits, package: &mut Builder<'_>) -> Result<(), PackageError> {
    let packed = limits.total_bytes;
    if bytes.len() as u64 > packed {
        return Err(PackageError::TooLargeInAll(packed));
    }
    for entry in entries(bytes, limits)? {
        if entry.name.ends_with('/') {
            if entry.unpacked > 0 {
                return Err(refused(format!("the folder `{}` has content", entry.name.escape_debug())));
            }
            super::package::check_path(entry.name.trim_end_matches('/'), limits.depth)?;
            continue;
        }
        let file = PackagedFile { bytes: entry.unpack(bytes)?, executable: entry.mode & 0o111 != 0 };
        if !is_litter(&entry.name) {
            package.add(&entry.name, file)?;
        }
    }
    Ok(())
}

/// What an archive inside a package holds, for the scanner; the same rules, each file by itself.
pub(super) fn files(bytes: &[u8], limits: &Limits) -> Result<Vec<(String, Vec<u8>)>, PackageError> {
    let entries = entries(bytes, limits)?;
    let files = entries.into_iter().filter(|entry| !entry.name.ends_with('/'));
    files.map(|entry| Ok((entry.name.clone(), entry.unpack(bytes)?))).collect()
}

#[derive(Debug)]
struct Entry {
    name: String,
    mode: u32,
    method: u16,
    crc: u32,
    unpacked: u64,
    data: std::ops::Range<usize>,
    /// Where its header begins.
    from: usize,
}

impl Entry {
    fn unpack(&self, archive: &[u8]) -> Result<Vec<u8>, PackageError> {
        let data = archive.get(self.data.clone()).ok_or_else(cut)?;
        let mut bytes = Vec::new();
        match self.method {
            STORED => bytes.extend_from_slice(data),
            _ => {
                let unpacked = DeflateDecoder::new(data).take(self.unpacked + 1).read_to_end(&mut bytes);
                unpacked.map_err(|_| refused(format!("`{}` is damaged", self.shown())))?;
            }
        }
        if bytes.len() as u64 != self.unpacked {
            return Err(refused(format!("`{}` does not have the size it declares", self.shown())));
        }
        let mut crc = flate2::Crc::new();
        crc.update(&bytes);
        if crc.sum() != self.crc {
            return Err(refused(format!("`{}` is damaged: its checksum is wrong", self.shown())));
        }
        Ok(bytes)
    }

    fn shown(&self) -> String {
        self.name.escape_debug().to_string()
    }
}

fn entries(bytes: &[u8], limits: &Limits) -> Result<Vec<Entry>, PackageError> {
    let end = find_end(bytes)?;
    let (count, size, index) = (u16_at(bytes, end + 10)?, u32_at(bytes, end + 12)?, u32_at(bytes, end + 16)?);
    if u32_at(bytes, end + 4)? != 0 || u16_at(bytes, end + 8)? != count {
        return Err(refused("it is one part of several"));
    }
    if usize::from(count) > limits.files {
        return Err(PackageError::TooMany(limits.files));
    }
    let (index, size) = (index as usize, size as usize);
    if index.checked_add(size) != Some(end) {
        return Err(refused("its index does not end where it should; make it anew"));
    }
    let mut at = index;
    let mut entries = Vec::with_capacity(usize::from(count));
    let mut total = 0_u64;
    for _ in 0..count {
        let entry = central(bytes, &mut at, index, limits)?;
        total += entry.unpacked;
        if total > limits.total_bytes {
            return Err(PackageError::TooLargeInAll(limits.total_bytes));
        }
        entries.push(entry);
    }
    if at != end {
        return Err(refused("its index holds more than its entries"));
    }
    cover(&entries, index)?;
    Ok(entries)
}

/// Entries that share bytes are bombs; bytes that are in none are not seen by any reader but a careless one.
fn cover(entries: &[Entry], index: usize) -> Result<(), PackageError> {
    let mut ranges: Vec<(usize, usize)> = entries.iter().map(|entry| (entry.from, entry.data.end)).collect();
    ranges.sort_unstable();
    let mut at = 0;
    for (nth, (from, to)) in ranges.iter().enumerate() {
        if *from < at {
            return Err(refused("two of its entries share their bytes"));
        }
        if from - at > if nth == 0 { 0 } else { LONGEST_DESCRIPTOR } {
            return Err(refused("there are bytes in it that belong to no entry"));
        }
        at = *to;
    }
    if index < at || index - at > LONGEST_DESCRIPTOR {
        return Err(refused("there are bytes in it that belong to no entry"));
    }
    Ok(())
}

fn find_end(bytes: &[u8]) -> Result<usize, PackageError> {
    let Some(last) = bytes.len().checked_sub(END_SIZE) else { return Err(no_archive()) };
    let first = last.saturating_sub(usize::from(u16::MAX));
    for at in (first..=last).rev() {
        if u32_at(bytes, at)? == END {
            if at + END_SIZE + usize::from(u16_at(bytes, at + 20)?) != bytes.len() {
                return Err(refused("there is something behind its end"));
            }
            return Ok(at);
        }
    }
    Err(no_archive())
}

fn central(bytes: &[u8], at: &mut usize, index: usize, limits: &Limits) -> Result<Entry, PackageError> {
    let here = *at;
    if u32_at(bytes, here)? != CENTRAL {
        return Err(refused("its index is damaged"));
    }
    let system = u16_at(bytes, here + 4)? >> 8;
    let (flags, method) = (u16_at(bytes, here + 8)?, u16_at(bytes, here + 10)?);
    let crc = u32_at(bytes, here + 16)?;
    let (packed, unpacked) = (u32_at(bytes, here + 20)?, u32_at(bytes, here + 24)?);
    let name_len = usize::from(u16_at(bytes, here + 28)?);
    let extra_len = usize::from(u16_at(bytes, here + 30)?);
    let comment_len = usize::from(u16_at(bytes, here + 32)?);
    let attributes = u32_at(bytes, here + 38)?;
    let from = u32_at(bytes, here + 42)?;
    let raw_name = bytes.get(here + 46..here + 46 + name_len).ok_or_else(cut)?;
    *at = here + 46 + name_len + extra_len + comment_len;

    let name = name(raw_name, flags)?;
    if [packed, unpacked, from].contains(&u32::MAX) {
        return Err(refused(format!("`{}` is too large for a skill", name.escape_debug())));
    }
    if flags & 1 != 0 {
        return Err(refused(format!("`{}` is encrypted", name.escape_debug())));
    }
    if method != STORED && method != DEFLATED {
        return Err(refused(format!("`{}` is packed in a way that is not known here", name.escape_debug())));
    }
    if extra_len > LONGEST_EXTRA || comment_len > LONGEST_EXTRA {
        return Err(refused(format!("`{}` carries data beside its content", name.escape_debug())));
    }
    // Only Unix says what kind of file it is.
    let mode = if system == 3 { attributes >> 16 } else { 0o644 };
    match mode & 0o170_000 {
        0 | 0o100_000 | 0o040_000 => {}
        0o120_000 => return Err(PackageError::Link(name)),
        _ => return Err(PackageError::Special(name)),
    }
    let (unpacked, packed) = (u64::from(unpacked), packed as usize);
    if unpacked > limits.file_bytes {
        return Err(PackageError::TooLarge { path: name, limit: limits.file_bytes });
    }
    if unpacked > NO_BOMB_BELOW && unpacked / (packed.max(1) as u64) > limits.ratio {
        return Err(PackageError::Bomb { path: name, ratio: limits.ratio });
    }
    let from = from as usize;
    let data = local(bytes, from, raw_name, method, packed)?;
    if data.end > index || (method == STORED && packed as u64 != unpacked) {
        return Err(refused(format!("`{}` is not where its index says", name.escape_debug())));
    }
    Ok(Entry { name, mode, method, crc, unpacked, data, from })
}

/// The header before the data must tell the same as the index: readers differ in which of the two they believe.
fn local(
    bytes: &[u8],
    from: usize,
    name: &[u8],
    method: u16,
    packed: usize,
) -> Result<std::ops::Range<usize>, PackageError> {
    let name_len = usize::from(u16_at(bytes, from + 26)?);
    let extra_len = usize::from(u16_at(bytes, from + 28)?);
    let own = bytes.get(from + 30..from + 30 + name_len).ok_or_else(cut)?;
    if u32_at(bytes, from)? != LOCAL || own != name || u16_at(bytes, from + 8)? != method {
        return Err(refused("an entry and its index tell different things"));
    }
    if extra_len > LONGEST_EXTRA {
        return Err(refused("an entry carries data beside its content"));
    }
    let start = from + 30 + name_len + extra_len;
    let end = start.checked_add(packed).filter(|end| *end <= bytes.len()).ok_or_else(cut)?;
    Ok(start..end)
}

fn name(raw: &[u8], flags: u16) -> Result<String, PackageError> {
    let utf8 = flags & 0x800 != 0;
    let name = std::str::from_utf8(raw).ok().filter(|name| utf8 || name.is_ascii());
    let shown = || String::from_utf8_lossy(raw).chars().take(80).collect::<String>();
    name.map(str::to_owned).ok_or_else(|| {
        refused(format!("the name `{}` is not in UTF-8; pack it with a newer tool", shown().escape_debug()))
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, PackageError> {
    let two = at.checked_add(2).and_then(|end| bytes.get(at..end)).ok_or_else(cut)?;
    two.try_into().map(u16::from_le_bytes).map_err(|_| cut())
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, PackageError> {
    let four = at.checked_add(4).and_then(|end| bytes.get(at..end)).ok_or_else(cut)?;
    four.try_into().map(u32::from_le_bytes).map_err(|_| cut())
}

fn refused(why: impl Into<String>) -> PackageError {
    PackageError::Archive(why.into())
}

fn cut() -> PackageError {
    refused("it ends in the middle; it was not copied whole")
}

fn no_archive() -> PackageError {
    refused("it is no zip archive; a `.skill` file is a zip of the skill's folder")
}
