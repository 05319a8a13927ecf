//! What a row must add up to: SQLite looks after its pages' order, not after the bytes that are in them.
//!
//! Invariant: of an event, a step, a write, an effect, a step inside a call, a thread's newest step and what a run was
//! asked, nothing is read in which one bit fell over. Other rows (threads, runs, assistants, items) have no sum.

use rusqlite::Row;

use super::row::unreadable;

/// CRC-32, as in zip files, of all parts with their lengths.
pub(super) fn sum(parts: &[&[u8]]) -> i64 {
    let with = |crc, part: &&[u8]| crc_of(crc_of(crc, &(part.len() as u64).to_le_bytes()), part);
    WITH_LENGTHS | i64::from(!parts.iter().fold(!0, with))
}

/// Compares it with what the row's own column says, where it says anything. Of a row of before, the first `old` parts
/// were summed.
pub(super) fn check(row: &Row<'_>, what: &str, parts: &[&[u8]], old: usize) -> rusqlite::Result<()> {
    let matches = match row.get::<_, Option<i64>>("sum")? {
        None => true,
        Some(wanted) if wanted & WITH_LENGTHS != 0 => wanted == sum(parts),
        Some(wanted) => wanted == i64::from(!parts.iter().take(old).fold(!0, |crc, part| crc_of(crc, part))),
    };
    if matches { Ok(()) } else { Err(unreadable(what, "it is not what was written")) }
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

/// With these bytes behind what was summed so far.
fn crc_of(mut crc: u32, bytes: &[u8]) -> u32 {
    for byte in bytes {
        let index = (crc ^ u32::from(*byte)) & 0xFF;
        crc = (crc >> 8) ^ TABLE.get(index as usize).copied().unwrap_or_default();
    }
    crc
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { (rest >> 1) ^ 0xEDB8_8320 } else { rest >> 1 };
            bit += 1;
        }
        #[expect(
            clippy::indexing_slicing,
            reason = "constants are made by the compiler, which sees the bounds"
        )]
        {
            table[byte] = rest;
        }
        byte += 1;
    }
    table
};
