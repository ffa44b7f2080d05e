//! Blocks of intervals, each a row of the table `interval_block`.

use super::blob;
use iosonde_result::interval::Interval;
use rusqlite::{Transaction, params};

/// Duration of a block of intervals.
const BLOCK_NS: u64 = 60_000_000_000;

/// Whether consecutive intervals fill a block.
pub(super) fn is_whole_block(intervals: &[Interval]) -> bool {
    match intervals {
        [first, .., last] => last.start_ns + last.length_ns >= first.start_ns + BLOCK_NS,
        [only] => only.length_ns >= BLOCK_NS,
        [] => false,
    }
}

/// Inserts intervals as blocks numbered from `first`. The last may be shorter. Buffers one block.
pub(super) fn insert_intervals(
    transaction: &Transaction<'_>,
    row: i64,
    first: usize,
    intervals: impl Iterator<Item = Interval>,
) -> rusqlite::Result<()> {
    let mut number = first;
    let mut block = Vec::new();
    let mut insert = |block: &mut Vec<Interval>| {
        let packed = blob::packed(block)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        insert_block(transaction, row, number, &packed)?;
        number += 1;
        block.clear();
        Ok(())
    };
    for interval in intervals {
        block.push(interval);
        if is_whole_block(&block) {
            insert(&mut block)?;
        }
    }
    match block.is_empty() {
        true => Ok(()),
        false => insert(&mut block),
    }
}

pub(super) fn insert_block(
    transaction: &Transaction<'_>,
    row: i64,
    number: usize,
    block: &[u8],
) -> rusqlite::Result<()> {
    let mut insert = transaction
        .prepare_cached("INSERT INTO interval_block (run, number, block) VALUES (?1, ?2, ?3)")?;
    insert.execute(params![row, signed(number as u64), block])?;
    Ok(())
}

/// Converts to SQLite's signed integer, and saturates.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
