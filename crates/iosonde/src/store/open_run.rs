//! Runs that are in the history before they end: their intervals in blocks of a minute, the rest as of the last minute.
//!
//! A block is a row of its own, so that a minute costs the same after a week as after an hour. A run shorter than a minute has
//! no blocks: its intervals are one blob beside its document.

use super::record::{Document, KeptRun, KeptStudy};
use super::write::{add_facts, insert_parts, insert_study, signed};
use super::{Store, StoreError, blob, read};
use iosonde_machine::spill_file::SpillFile;
use iosonde_result::compare::parts;
use iosonde_result::interval::{Interval, Intervals};
use iosonde_result::run::RunResult;
use iosonde_result::spill_list::BlockItem;
use rusqlite::{OptionalExtension, Transaction, params};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

/// Intervals of a run that belong together in the history: about this time of it.
const BLOCK_NS: u64 = 60_000_000_000;

/// A run that has not ended.
#[derive(Debug)]
pub(super) struct OpenRun {
    /// The study that it belongs to.
    pub(super) study: String,
    /// Its row.
    row: i64,
    /// What is written of it.
    blocks: Vec<WrittenBlock>,
}

/// What is remembered of a block that is in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WrittenBlock {
    intervals: usize,
    hash: u64,
}

impl WrittenBlock {
    fn of(intervals: &[Interval]) -> WrittenBlock {
        let mut bytes = Vec::new();
        let each = intervals.iter();
        each.for_each(|interval| interval.encode(&mut bytes));
        let mut hasher = DefaultHasher::new();
        hasher.write(&bytes);
        WrittenBlock {
            intervals: intervals.len(),
            hash: hasher.finish(),
        }
    }
}

/// Whether the intervals, which follow each other, are a whole block.
pub(super) fn is_whole_block(intervals: &[Interval]) -> bool {
    match intervals {
        [first, .., last] => last.start_ns + last.length_ns >= first.start_ns + BLOCK_NS,
        [only] => only.length_ns >= BLOCK_NS,
        [] => false,
    }
}

/// What is new of a run.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Blocks of intervals, in the order of time.
    pub(super) blocks: Vec<Vec<Interval>>,
    /// The result as if the run had ended by now.
    pub(super) so_far: Option<Box<RunResult>>,
}

/// The same, made ready before the file is locked.
struct PackedNews {
    blocks: Vec<(WrittenBlock, Vec<u8>)>,
    end_ns: Option<u64>,
    so_far: Option<(KeptRun, Vec<u8>)>,
}

impl PackedNews {
    fn of(news: &News) -> std::io::Result<PackedNews> {
        let last = news.blocks.last().and_then(|block| block.last());
        let end_ns = last.map(|last| last.start_ns + last.length_ns);
        let so_far = news.so_far.as_deref().map(|result| -> std::io::Result<_> {
            let document = blob::packed(result)?;
            Ok((KeptRun::of(result.clone()), document))
        });
        let packed = |block: &Vec<Interval>| -> std::io::Result<_> {
            Ok((WrittenBlock::of(block), blob::packed(block)?))
        };
        let blocks: std::io::Result<_> = news.blocks.iter().map(packed).collect();
        Ok(PackedNews {
            blocks: blocks?,
            end_ns,
            so_far: so_far.transpose()?,
        })
    }

    fn insert(
        &self,
        transaction: &Transaction<'_>,
        study: &str,
        (row, next): (i64, usize),
    ) -> rusqlite::Result<()> {
        must_be_open(transaction, row, study)?;
        for (number, (_, block)) in (next..).zip(&self.blocks) {
            insert_block(transaction, row, number, block)?;
        }
        if let Some(end_ns) = self.end_ns {
            transaction.execute(
                "UPDATE run SET elapsed_ns = ?2 WHERE id = ?1",
                params![row, signed(end_ns)],
            )?;
        }
        let Some((run, document)) = &self.so_far else {
            return Ok(());
        };
        transaction.execute(
            "UPDATE run SET document = ?2, name = ?3 WHERE id = ?1",
            params![row, document, run.name],
        )?;
        replace_parts(transaction, row, run)?;
        add_facts(transaction, study, run)
    }
}

impl Store {
    /// Begins a run in a study, which is begun as well where it has no id yet, with what is known of it by now.
    pub(super) fn begin_run(
        &mut self,
        (study, head): (Option<&str>, &KeptStudy),
        opening: &KeptRun,
        news: &News,
    ) -> Result<OpenRun, StoreError> {
        let Document::Run(result) = &opening.document else {
            unreachable!("fio's JSON is imported whole");
        };
        let document = blob::packed(result).map_err(|error| self.io(error))?;
        let packed = PackedNews::of(news).map_err(|error| self.io(error))?;
        let (study, row) = self.transaction(|transaction| {
            let study = match study {
                Some(study) => study.to_owned(),
                None => insert_study(transaction, head, None)?,
            };
            transaction.execute(
                "INSERT INTO run (study, number, name, started_at_ms, elapsed_ns, format, document) \
                 VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM run WHERE study = ?1), ?2, ?3, 0, ?4, ?5)",
                params![
                    study,
                    opening.name,
                    signed(opening.started_at_ms),
                    opening.document.format(),
                    document
                ],
            )?;
            let row = transaction.last_insert_rowid();
            transaction.execute("INSERT INTO open_run (run) VALUES (?1)", [row])?;
            packed.insert(transaction, &study, (row, 0))?;
            Ok((study, row))
        })?;
        let blocks = packed.blocks.iter().map(|(written, _)| *written).collect();
        Ok(OpenRun { study, row, blocks })
    }

    /// Adds to a run that has begun. All of it or nothing.
    pub(super) fn add_to_run(&mut self, run: &mut OpenRun, news: &News) -> Result<(), StoreError> {
        let packed = PackedNews::of(news).map_err(|error| self.io(error))?;
        let place = (run.row, run.blocks.len());
        self.transaction(|transaction| packed.insert(transaction, &run.study, place))?;
        let written = packed.blocks.iter().map(|(written, _)| *written);
        run.blocks.extend(written);
        Ok(())
    }

    /// Ends a run. Blocks that are as the result has them stay, all others are replaced.
    pub(super) fn end_run(&mut self, open: &OpenRun, run: &KeptRun) -> Result<(), StoreError> {
        let Document::Run(result) = &run.document else {
            unreachable!("fio's JSON is imported whole");
        };
        let document = blob::packed(&without_intervals(result)).map_err(|error| self.io(error))?;
        // Of intervals that cannot be read back the history has more than the result.
        let is_whole = result.intervals.is_whole();
        let (same, rest) = behind_written(&open.blocks, &result.intervals);
        self.transaction(|transaction| {
            must_be_open(transaction, open.row, &open.study)?;
            transaction.execute(
                "UPDATE run SET name = ?2, started_at_ms = ?3, elapsed_ns = ?4, document = ?5 WHERE id = ?1",
                params![
                    open.row,
                    run.name,
                    signed(run.started_at_ms),
                    signed(run.elapsed_ns),
                    document
                ],
            )?;
            if is_whole {
                transaction.execute(
                    "DELETE FROM interval_block WHERE run = ?1 AND number >= ?2",
                    params![open.row, signed(same as u64)],
                )?;
                insert_intervals(transaction, open.row, same, rest)?;
            }
            replace_parts(transaction, open.row, run)?;
            transaction.execute("DELETE FROM open_run WHERE run = ?1", [open.row])?;
            add_facts(transaction, &open.study, run)
        })
    }

    /// Adds the intervals of a run that are in blocks. One that was cut off is as long as its intervals say, and its figures
    /// come from all of them.
    pub(super) fn add_interval_blocks(
        &self,
        row: i64,
        is_open: bool,
        run: &mut KeptRun,
    ) -> Result<(), StoreError> {
        let elapsed_ns = run.elapsed_ns;
        let Document::Run(result) = &mut run.document else {
            return Ok(());
        };
        let wrong = |error: rusqlite::Error| self.wrong(&error);
        let mut select = self
            .connection
            .prepare_cached("SELECT block FROM interval_block WHERE run = ?1 ORDER BY number")
            .map_err(wrong)?;
        let mut rows = select.query([row]).map_err(wrong)?;
        let mut found = Intervals::spilling_to(Arc::new(SpillFile::default()));
        while let Some(row) = rows.next().map_err(wrong)? {
            let block: Vec<u8> = row.get(0).map_err(wrong)?;
            let intervals: Vec<Interval> = blob::unpacked(&block)
                .map_err(|error| read::unreadable(&format!("a block of {}", run.name), &error))?;
            found.extend(intervals);
        }
        if !found.is_empty() {
            result.intervals = found;
        }
        if is_open {
            result.elapsed_ns = elapsed_ns;
            run.parts = parts(result);
        }
        Ok(())
    }

    /// How long the runs of a study have taken so far; `None` where none of them is open.
    pub(super) fn reached_ns(&self, study: &str) -> rusqlite::Result<Option<u64>> {
        let mut select = self.connection.prepare_cached(
            "SELECT sum(elapsed_ns) FROM run WHERE study = ?1 AND EXISTS \
             (SELECT 1 FROM open_run JOIN run AS open ON open.id = open_run.run WHERE open.study = ?1)",
        )?;
        let sum = select.query_row([study], |row| row.get::<_, Option<i64>>(0));
        Ok(sum.optional()?.flatten().map(|ns| ns.max(0) as u64))
    }
}

/// Fails where the run was removed meanwhile: its row may be that of another run by now.
fn must_be_open(transaction: &Transaction<'_>, row: i64, study: &str) -> rusqlite::Result<()> {
    let mut select = transaction.prepare_cached(
        "SELECT count(*) FROM run JOIN open_run ON open_run.run = run.id WHERE run.id = ?1 AND run.study = ?2",
    )?;
    match select.query_row(params![row, study], |row| row.get::<_, i64>(0))? {
        0 => Err(rusqlite::Error::ToSqlConversionFailure(
            "it was removed from the history while it ran".into(),
        )),
        _ => Ok(()),
    }
}

fn without_intervals(result: &RunResult) -> RunResult {
    RunResult {
        intervals: Intervals::default(),
        ..result.clone()
    }
}

/// How many of the written blocks are as the result has them, and the intervals behind these.
fn behind_written<'a>(
    written: &[WrittenBlock],
    intervals: &'a Intervals,
) -> (usize, impl Iterator<Item = Interval> + use<'a>) {
    let mut rest = intervals.iter().map(Cow::into_owned);
    let mut other = Vec::new();
    let mut same = 0;
    for known in written {
        let block: Vec<Interval> = rest.by_ref().take(known.intervals).collect();
        if WrittenBlock::of(&block) != *known {
            other = block;
            break;
        }
        same += 1;
    }
    (same, other.into_iter().chain(rest))
}

/// Adds intervals to a run in blocks, of which `first` are there. The last one may be shorter. Memory holds one at a time.
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

fn insert_block(
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

fn replace_parts(transaction: &Transaction<'_>, row: i64, run: &KeptRun) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM part WHERE run = ?1", [row])?;
    insert_parts(transaction, row, &run.parts)
}
