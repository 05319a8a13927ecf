//! What a row must add up to: SQLite looks after its pages' order, not after the bytes that are in them.
//!
//! Invariant: a row in which one bit fell over is not read.

use rusqlite::Row;

use super::row::unreadable;

/// CRC-32, as in zip files.
pub(super) fn sum(parts: &[&[u8]]) -> i64 {
    let mut sum = !0_u32;
    for byte in parts.iter().copied().flatten() {
        let index = (sum ^ u32::from(*byte)) & 0xFF;
        sum = (sum >> 8) ^ TABLE.get(index as usize).copied().unwrap_or_default();
    }
    i64::from(!sum)
}

/// Compares it with what the row's own column says, where it says anything.
pub(super) fn check(row: &Row<'_>, what: &str, parts: &[&[u8]]) -> rusqlite::Result<()> {
    match row.get::<_, Option<i64>>("sum")? {
        Some(wanted) if wanted != sum(parts) => Err(unreadable(what, "it is not what was written")),
        _ => Ok(()),
    }
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
