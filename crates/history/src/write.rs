//! Writing to the history.

use super::interval_blocks::{insert_intervals, signed};
use super::record::{RunDocument, RunRecord, StudyRecord};
use super::study_facts::insert_facts;
use super::{Store, StoreError, blob, id};
use iosonde_result::compare::ResultPart;
use iosonde_result::interval::Intervals;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// Outcome of the import of a study.
#[derive(Debug, PartialEq, Eq)]
pub enum Imported {
    /// The study was stored under this id.
    New(String),
    /// The history already held the study under this id.
    Known(String),
}

impl Store {
    /// Begins a study and returns its id. Runs in `study` are not written.
    pub fn begin(&mut self, study: &StudyRecord) -> Result<String, StoreError> {
        self.transaction(|transaction| insert_study(transaction, study, None))
    }

    /// Adds a run to a study.
    pub(crate) fn add_run(&mut self, study: &str, run: &RunRecord) -> Result<(), StoreError> {
        let packed = PackedRun::pack(run).map_err(|error| self.io(error))?;
        self.transaction(|transaction| {
            packed.insert(transaction, study, run)?;
            add_facts(transaction, study, run)
        })
    }

    /// Returns the number that the next run of a study gets.
    pub fn next_run(&self, study: &str) -> Result<u32, StoreError> {
        let next = "SELECT coalesce(max(number), 0) + 1 FROM run WHERE study = ?1";
        let number = self.connection.query_row(next, [study], |row| row.get(0));
        let number: u32 = number.map_err(|error| self.wrong(&error))?;
        debug_assert!(number >= 1, "runs of {study} are numbered from 1");
        Ok(number)
    }

    /// Removes runs of a study by their numbers, and returns how many it removed.
    pub(crate) fn remove_runs(
        &mut self,
        study: &str,
        numbers: Range<u32>,
    ) -> Result<usize, StoreError> {
        self.transaction(|transaction| {
            transaction.execute(
                "DELETE FROM run WHERE study = ?1 AND number >= ?2 AND number < ?3",
                params![study, numbers.start, numbers.end],
            )
        })
    }

    /// Ends a study. `document` is its result without the runs. No end time: it was cut off.
    pub fn finish(
        &mut self,
        (study, target): (&str, &str),
        digest: Option<&str>,
        document: Option<&Value>,
        finished_at_ms: Option<u64>,
    ) -> Result<(), StoreError> {
        let document = document.map(blob::packed).transpose();
        let document = document.map_err(|error| self.io(error))?;
        self.transaction(|transaction| {
            // A known digest is no error: the same measurement was imported meanwhile.
            transaction.execute(
                "UPDATE study SET document = ?2, finished_at_ms = ?3, target = ?5, digest = \
                 CASE WHEN EXISTS (SELECT 1 FROM study WHERE digest = ?4) THEN NULL ELSE ?4 END \
                 WHERE id = ?1",
                params![study, document, finished_at_ms.map(signed), digest, target],
            )?;
            Ok(())
        })
    }

    /// Imports complete studies, all or none, each with its file. Skips known ones.
    pub fn import(
        &mut self,
        studies: &[(StudyRecord, String)],
    ) -> Result<Vec<Imported>, StoreError> {
        let packed: Result<Vec<PackedStudy<'_>>, _> = studies
            .iter()
            .map(|(study, from)| PackedStudy::pack(study, from))
            .collect();
        let packed = packed.map_err(|error| self.io(error))?;
        self.transaction(|transaction| {
            let each = packed.iter().map(|packed| packed.insert(transaction));
            each.collect()
        })
    }

    /// Removes studies, all or none.
    pub fn remove(&mut self, ids: &[String]) -> Result<(), StoreError> {
        if self.is_merged {
            return self.own_file_of(ids)?.remove(ids);
        }
        self.transaction(|transaction| {
            for id in ids {
                transaction.execute("DELETE FROM study WHERE id = ?1", [id])?;
            }
            Ok(())
        })
    }

    /// Runs `work` in an immediate transaction, which waits for other writers.
    pub(super) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let outcome = Transaction::new(&mut self.connection, TransactionBehavior::Immediate)
            .and_then(|transaction| {
                let value = work(&transaction)?;
                transaction.commit()?;
                Ok(value)
            });
        outcome.map_err(|error| self.wrong(&error))
    }

    pub(super) fn io(&self, error: std::io::Error) -> StoreError {
        StoreError::Io(self.place.path.clone(), error)
    }
}

pub(super) fn insert_study(
    transaction: &Transaction<'_>,
    study: &StudyRecord,
    from: Option<&str>,
) -> rusqlite::Result<String> {
    let id = free_id(transaction)?;
    transaction.execute(
        "INSERT INTO study (id, kind, target, machine, program, started_at_ms, imported_from) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            id,
            study.kind,
            study.target,
            study.machine,
            study.program,
            signed(study.started_at_ms),
            from
        ],
    )?;
    insert_labels(transaction, &id, &study.labels)?;
    Ok(id)
}

fn free_id(connection: &Connection) -> rusqlite::Result<String> {
    loop {
        let id = id::random_id()
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let count = "SELECT count(*) FROM study WHERE id = ?1";
        if connection.query_row(count, [&id], |row| row.get::<_, i64>(0))? == 0 {
            return Ok(id);
        }
    }
}

fn insert_labels(
    transaction: &Transaction<'_>,
    study: &str,
    labels: &BTreeMap<String, String>,
) -> rusqlite::Result<()> {
    for (key, value) in labels {
        transaction.execute(
            "INSERT OR REPLACE INTO label (study, key, value) VALUES (?1, ?2, ?3)",
            params![study, key, value],
        )?;
    }
    Ok(())
}

/// Adds to the study what only a run knows: the machine, the labels and the facts of the run.
pub(super) fn add_facts(
    transaction: &Transaction<'_>,
    study: &str,
    run: &RunRecord,
) -> rusqlite::Result<()> {
    let RunDocument::Run(result) = &run.document else {
        return Ok(());
    };
    let machine = super::record::machine(result);
    transaction.execute(
        "UPDATE study SET machine = coalesce(machine, ?2) WHERE id = ?1",
        params![study, machine],
    )?;
    insert_labels(transaction, study, &result.labels)?;
    insert_facts(transaction, study, &result.facts())
}

/// A complete study, compressed before the file is locked.
struct PackedStudy<'a> {
    study: &'a StudyRecord,
    from: &'a str,
    digest: String,
    document: Option<Vec<u8>>,
    runs: Vec<PackedRun>,
}

impl PackedStudy<'_> {
    fn pack<'a>(study: &'a StudyRecord, from: &'a str) -> std::io::Result<PackedStudy<'a>> {
        let runs: std::io::Result<Vec<PackedRun>> =
            study.runs.iter().map(PackedRun::pack).collect();
        Ok(PackedStudy {
            study,
            from,
            digest: study.digest(),
            document: study.document.as_ref().map(blob::packed).transpose()?,
            runs: runs?,
        })
    }

    fn insert(&self, transaction: &Transaction<'_>) -> rusqlite::Result<Imported> {
        let known = "SELECT id FROM study WHERE digest = ?1";
        match transaction.query_row(known, [&self.digest], |row| row.get(0)) {
            Ok(id) => return Ok(Imported::Known(id)),
            Err(rusqlite::Error::QueryReturnedNoRows) => {}
            Err(error) => return Err(error),
        }
        let study = self.study;
        if let Some(id) = exported_run(transaction, study)? {
            return Ok(Imported::Known(id));
        }
        let id = insert_study(transaction, study, Some(self.from))?;
        for (packed, run) in self.runs.iter().zip(&study.runs) {
            packed.insert(transaction, &id, run)?;
            if let RunDocument::Run(result) = &run.document {
                insert_facts(transaction, &id, &result.facts())?;
            }
        }
        let elapsed_ns: u64 = study.runs.iter().map(|run| run.elapsed_ns).sum();
        let finished = study.started_at_ms.saturating_add(elapsed_ns / 1_000_000);
        transaction.execute(
            "UPDATE study SET document = ?2, digest = ?3, finished_at_ms = ?4 WHERE id = ?1",
            params![id, self.document, self.digest, signed(finished)],
        )?;
        Ok(Imported::New(id))
    }
}

/// Returns the study of a stored run that iosonde exported as fio's JSON. That document has other
/// figures, and so another digest, but the exact time of the run.
fn exported_run(
    transaction: &Transaction<'_>,
    study: &StudyRecord,
) -> rusqlite::Result<Option<String>> {
    let [run] = &study.runs[..] else {
        return Ok(None);
    };
    // The document of a simulated run has no start: many such runs have one duration.
    let is_own = match &run.document {
        RunDocument::Fio(json) => ["started_at_ms", "elapsed_ns"]
            .iter()
            .all(|key| json["iosonde"][*key].is_u64()),
        RunDocument::Run(_) => false,
    };
    if !is_own {
        return Ok(None);
    }
    let same = "SELECT study FROM run WHERE started_at_ms = ?1 AND elapsed_ns = ?2";
    let found = transaction.query_row(
        same,
        params![signed(run.started_at_ms), signed(run.elapsed_ns)],
        |row| row.get(0),
    );
    match found {
        Ok(id) => Ok(Some(id)),
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Longest series that is stored as one blob. A longer one is stored in blocks.
const SERIES_INTERVALS_MAX: usize = 3600;

/// The blobs of a run, compressed before the file is locked.
struct PackedRun {
    document: Vec<u8>,
    series: Option<Vec<u8>>,
    /// The intervals of a series that is stored in blocks.
    in_blocks: Intervals,
}

impl PackedRun {
    fn pack(run: &RunRecord) -> std::io::Result<PackedRun> {
        let mut in_blocks = Intervals::default();
        Ok(match &run.document {
            RunDocument::Run(result) => {
                let mut rest = result.clone();
                let intervals = std::mem::take(&mut rest.intervals);
                let series = match intervals.len() > SERIES_INTERVALS_MAX {
                    true => {
                        in_blocks = intervals;
                        None
                    }
                    false => Some(blob::packed(&intervals)?),
                };
                PackedRun {
                    document: blob::packed(&rest)?,
                    series,
                    in_blocks,
                }
            }
            RunDocument::Fio(json) => PackedRun {
                document: blob::packed(json)?,
                series: None,
                in_blocks,
            },
        })
    }

    fn insert(
        &self,
        transaction: &Transaction<'_>,
        study: &str,
        run: &RunRecord,
    ) -> rusqlite::Result<()> {
        debug_assert!(self.series.is_none() || self.in_blocks.is_empty());
        transaction.execute(
            "INSERT INTO run \
             (study, number, name, started_at_ms, elapsed_ns, format, document, series) \
             VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM run WHERE study = ?1), \
                     ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                study,
                run.name,
                signed(run.started_at_ms),
                signed(run.elapsed_ns),
                run.document.format(),
                self.document,
                self.series
            ],
        )?;
        let row = transaction.last_insert_rowid();
        insert_parts(transaction, row, &run.parts)?;
        let intervals = self.in_blocks.iter().map(Cow::into_owned);
        insert_intervals(transaction, row, 0, intervals)
    }
}

pub(super) fn insert_parts(
    transaction: &Transaction<'_>,
    run: i64,
    parts: &[ResultPart],
) -> rusqlite::Result<()> {
    let mut insert_part = transaction.prepare_cached(
        "INSERT INTO part (run, number, name, rw, bs, iodepth, numjobs, role) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let mut insert_figure = transaction.prepare_cached(
        "INSERT INTO figure (run, part, subject, measure, value, low, high, freedom, basis, \
         settled, repeat_factor) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    for (number, part) in (1i64..).zip(parts) {
        let pattern = &part.pattern;
        insert_part.execute(params![
            run,
            number,
            part.name,
            pattern.rw,
            pattern.bs,
            pattern.iodepth,
            pattern.numjobs,
            part.role.name()
        ])?;
        for figure in &part.figures {
            let bounds = figure.bounds;
            insert_figure.execute(params![
                run,
                number,
                figure.subject.name(),
                figure.measure.name(),
                figure.value,
                bounds.map(|bounds| bounds.low),
                bounds.map(|bounds| bounds.high),
                bounds.map(|bounds| bounds.freedom),
                bounds.map(|bounds| bounds.basis.name()),
                figure.settled,
                bounds.map(|bounds| bounds.repeat_factor)
            ])?;
        }
    }
    Ok(())
}
