//! What a row must add up to: SQLite looks after its pages' order, not after the bytes that are in them.
//!
//! Invariant: of an event, a step, a write, an effect, a step inside a call, a thread's newest step and what a run was
//! asked, nothing is read in which one bit fell over. Other rows (threads, runs, assistants, items) have no sum.

use crc32fast::Hasher;
use rusqlite::Row;

use super::row::unreadable;

/// CRC-32, as in zip files, of all parts with their lengths.
pub(super) fn sum(parts: &[&[u8]]) -> i64 {
    let mut crc = Hasher::new();
    for part in parts {
        crc.update(&(part.len() as u64).to_le_bytes());
        crc.update(part);
    }
    WITH_LENGTHS | i64::from(crc.finalize())
}

/// Compares it with what the row's own column says, where it says anything. Of a row of before, the first `old` parts
/// were summed.
pub(super) fn check(row: &Row<'_>, what: &str, parts: &[&[u8]], old: usize) -> rusqlite::Result<()> {
    check_sum(row.get("sum")?, || what.to_owned(), parts, old)
}

/// As [`check`], of rows that are read by the thousand: only what is damaged is given a name.
pub(super) fn check_sum(
    wanted: Option<i64>,
    what: impl FnOnce() -> String,
    parts: &[&[u8]],
    old: usize,
) -> rusqlite::Result<()> {
    let matches = match wanted {
        None => true,
        Some(wanted) if wanted & WITH_LENGTHS != 0 => wanted == sum(parts),
        Some(wanted) => wanted == without_lengths(parts.iter().take(old)),
    };
    if matches { Ok(()) } else { Err(unreadable(&what(), "it is not what was written")) }
}

/// As [`check`], of a column of its own whose sum came with it.
pub(super) fn check_column(
    row: &Row<'_>,
    column: &str,
    what: &str,
    parts: Option<&[&[u8]]>,
) -> rusqlite::Result<()> {
    match (row.get::<_, Option<i64>>(column)?, parts) {
        (Some(wanted), parts) if parts.map(sum) != Some(wanted) => {
            Err(unreadable(what, "it is not what was written"))
        }
        _ => Ok(()),
    }
}

/// Set in sums of the newer kind; a CRC has 32 bits.
const WITH_LENGTHS: i64 = 1 << 32;

fn without_lengths<'a>(parts: impl Iterator<Item = &'a &'a [u8]>) -> i64 {
    let mut crc = Hasher::new();
    parts.for_each(|part| crc.update(part));
    crc.finalize().into()
}
