//! Runs stored before they end: intervals in blocks of a minute, the rest as of the last minute.
//!
//! Each block is a row, so the cost of a minute does not grow with the run. A run shorter than a
//! minute has no blocks: its intervals are one blob beside its document.

use super::interval_blocks::{insert_block, insert_intervals, signed};
use super::record::{RunDocument, RunRecord, StudyRecord};
use super::write::{add_facts, insert_parts, insert_study};
use super::{Store, StoreError, blob, error};
use iosonde_machine::spill_file::SpillFile;
use iosonde_result::compare::parts;
use iosonde_result::interval::{Interval, Intervals};
use iosonde_result::run::RunResult;
use iosonde_result::spill_list::BlockItem;
use rusqlite::{OptionalExtension, Transaction, params};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

/// A run that has not ended.
#[derive(Debug)]
pub(super) struct OpenRun {
    /// The id of the study.
    pub(super) study: String,
    /// The row id in the table `run`.
    row: i64,
    /// The blocks in the history.
    blocks: Vec<WrittenBlock>,
}

/// Length and hash of a block in the history, to compare it with the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WrittenBlock {
    intervals: usize,
    hash: u64,
}

impl WrittenBlock {
    fn from_intervals(intervals: &[Interval]) -> WrittenBlock {
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

/// New data of a run.
#[derive(Debug, Default)]
pub(super) struct RunUpdate {
    /// Blocks of intervals, in order of time.
    pub(super) blocks: Vec<Vec<Interval>>,
    /// The result as if the run ended now.
    pub(super) so_far: Option<Box<RunResult>>,
}

/// [`RunUpdate`], compressed before the file is locked.
struct PackedRunUpdate {
    blocks: Vec<(WrittenBlock, Vec<u8>)>,
    end_ns: Option<u64>,
    so_far: Option<(RunRecord, Vec<u8>)>,
}

impl PackedRunUpdate {
    fn pack(update: &RunUpdate) -> std::io::Result<PackedRunUpdate> {
        let last = update.blocks.last().and_then(|block| block.last());
        let end_ns = last.map(|last| last.start_ns + last.length_ns);
        let so_far = update
            .so_far
            .as_deref()
            .map(|result| -> std::io::Result<_> {
                let document = blob::packed(result)?;
                Ok((RunRecord::from_result(result.clone()), document))
            });
        let packed = |block: &Vec<Interval>| -> std::io::Result<_> {
            Ok((WrittenBlock::from_intervals(block), blob::packed(block)?))
        };
        let blocks: std::io::Result<_> = update.blocks.iter().map(packed).collect();
        Ok(PackedRunUpdate {
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
    /// Begins a run with what is known of it. Without a study id it begins the study as well.
    pub(super) fn begin_run(
        &mut self,
        (study, head): (Option<&str>, &StudyRecord),
        opening: &RunRecord,
        update: &RunUpdate,
    ) -> Result<OpenRun, StoreError> {
        let RunDocument::Run(result) = &opening.document else {
            unreachable!("fio's JSON is imported whole");
        };
        let document = blob::packed(result).map_err(|error| self.io(error))?;
        let packed = PackedRunUpdate::pack(update).map_err(|error| self.io(error))?;
        let (study, row) = self.transaction(|transaction| {
            let study = match study {
                Some(study) => study.to_owned(),
                None => insert_study(transaction, head, None)?,
            };
            transaction.execute(
                "INSERT INTO run \
                 (study, number, name, started_at_ms, elapsed_ns, format, document) \
                 VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM run WHERE study = ?1), \
                         ?2, ?3, 0, ?4, ?5)",
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

    /// Adds to a run in one transaction.
    pub(super) fn add_to_run(
        &mut self,
        run: &mut OpenRun,
        update: &RunUpdate,
    ) -> Result<(), StoreError> {
        let packed = PackedRunUpdate::pack(update).map_err(|error| self.io(error))?;
        let place = (run.row, run.blocks.len());
        self.transaction(|transaction| packed.insert(transaction, &run.study, place))?;
        let written = packed.blocks.iter().map(|(written, _)| *written);
        run.blocks.extend(written);
        Ok(())
    }

    /// Ends a run. Blocks that equal the result's intervals stay; all others are replaced.
    pub(super) fn end_run(&mut self, open: &OpenRun, run: &RunRecord) -> Result<(), StoreError> {
        let RunDocument::Run(result) = &run.document else {
            unreachable!("fio's JSON is imported whole");
        };
        let document = blob::packed(&without_intervals(result)).map_err(|error| self.io(error))?;
        // If intervals of the result cannot be read back, the blocks are more complete and stay.
        let is_whole = result.intervals.is_whole();
        let (same, rest) = behind_written(&open.blocks, &result.intervals);
        debug_assert!(same <= open.blocks.len());
        self.transaction(|transaction| {
            must_be_open(transaction, open.row, &open.study)?;
            transaction.execute(
                "UPDATE run SET name = ?2, started_at_ms = ?3, elapsed_ns = ?4, document = ?5 \
                 WHERE id = ?1",
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

    /// Loads the intervals that are in blocks. An open run takes its length from its row, and its
    /// figures from all intervals.
    pub(super) fn add_interval_blocks(
        &self,
        row: i64,
        is_open: bool,
        run: &mut RunRecord,
    ) -> Result<(), StoreError> {
        let elapsed_ns = run.elapsed_ns;
        let RunDocument::Run(result) = &mut run.document else {
            return Ok(());
        };
        let wrong = |error: rusqlite::Error| self.wrong(&error);
        let mut select = self
            .connection
            .prepare_cached(
                "SELECT block, number FROM interval_block WHERE run = ?1 ORDER BY number",
            )
            .map_err(wrong)?;
        let mut rows = select.query([row]).map_err(wrong)?;
        let mut found = Intervals::spilling_to(Arc::new(SpillFile::default()));
        let mut next = 0i64;
        while let Some(row) = rows.next().map_err(wrong)? {
            let block: Vec<u8> = row.get(0).map_err(wrong)?;
            let number: i64 = row.get(1).map_err(wrong)?;
            debug_assert_eq!(number, next, "the minutes of a run have no gap");
            next += 1;
            let intervals: Vec<Interval> = blob::unpacked(&block)
                .map_err(|error| error::unreadable(&format!("a block of {}", run.name), &error))?;
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

    /// Returns the time that all runs took so far. `None`: no run of the study is open.
    pub(super) fn reached_ns(&self, study: &str) -> rusqlite::Result<Option<u64>> {
        let mut select = self.connection.prepare_cached(
            "SELECT sum(elapsed_ns) FROM run WHERE study = ?1 AND EXISTS \
             (SELECT 1 FROM open_run JOIN run AS open ON open.id = open_run.run \
              WHERE open.study = ?1)",
        )?;
        let sum = select.query_row([study], |row| row.get::<_, Option<i64>>(0));
        Ok(sum.optional()?.flatten().map(|ns| ns.max(0) as u64))
    }
}

/// Fails if the run was removed meanwhile, since another run may have reused its row id.
fn must_be_open(transaction: &Transaction<'_>, row: i64, study: &str) -> rusqlite::Result<()> {
    let mut select = transaction.prepare_cached(
        "SELECT count(*) FROM run JOIN open_run ON open_run.run = run.id \
         WHERE run.id = ?1 AND run.study = ?2",
    )?;
    match select.query_row(params![row, study], |row| row.get::<_, i64>(0))? {
        0 => Err(rusqlite::Error::ToSqlConversionFailure(
            "the run was removed from the history before it ended".into(),
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

/// Returns the number of leading blocks that equal the result, and the intervals after them.
fn behind_written<'a>(
    written: &[WrittenBlock],
    intervals: &'a Intervals,
) -> (usize, impl Iterator<Item = Interval> + use<'a>) {
    let mut rest = intervals.iter().map(Cow::into_owned);
    let mut other = Vec::new();
    let mut same = 0;
    for known in written {
        let block: Vec<Interval> = rest.by_ref().take(known.intervals).collect();
        if WrittenBlock::from_intervals(&block) != *known {
            other = block;
            break;
        }
        same += 1;
    }
    (same, other.into_iter().chain(rest))
}

fn replace_parts(transaction: &Transaction<'_>, row: i64, run: &RunRecord) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM part WHERE run = ?1", [row])?;
    insert_parts(transaction, row, &run.parts)
}
