//! Reading from the history.

use super::headline::{Headline, shown_parts};
use super::record::{Document, KeptRun, KeptStudy, compared_parts};
use super::running::{RunningStudy, is_running};
use super::{Store, StoreError, blob, id};
use iosonde_result::compare::{Basis, Bounds, Figure, Measured, Part, Pattern};
use iosonde_result::run::RunResult;
use rusqlite::types::Value as SqlValue;
use rusqlite::{Row, params_from_iter};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Which studies are wanted; all conditions must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Filter {
    /// Each of these labels.
    pub(crate) labels: Vec<(String, String)>,
    /// One of these targets, or something below one of these directories; any, if none is named.
    pub(crate) targets: Vec<String>,
    /// Begun at this time or later, in milliseconds of the Unix epoch.
    pub(crate) since_ms: Option<u64>,
    /// Only this one.
    pub(crate) id: Option<String>,
}

/// A study without its documents.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Summary {
    /// Its whole id.
    pub(crate) id: String,
    /// As much of the id as is needed today.
    pub(crate) short_id: String,
    /// `probe`, `fio`, ...
    pub(crate) kind: String,
    /// Target: the absolute path, or the name as the user wrote it.
    pub(crate) target: String,
    /// Where it ran.
    pub(crate) machine: Option<String>,
    /// Program and version.
    pub(crate) program: String,
    /// Milliseconds of the Unix epoch.
    pub(crate) started_at_ms: u64,
    /// When it ended; `None` for a study that goes on or was cut off.
    pub(crate) finished_at_ms: Option<u64>,
    /// Whether a process is measuring it now.
    pub(crate) is_running: bool,
    /// How far its last run has come that has no end yet, or had when it was cut off.
    pub(crate) reached_ns: Option<u64>,
    /// The file it was imported from.
    pub(crate) imported_from: Option<String>,
    /// Labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// Figures of all its runs, in the order in which they ran.
    pub(crate) parts: Vec<Part>,
    /// The figures of the result itself.
    pub(crate) headline: Headline,
    /// Its parts as it shows them: the cells of a sweep, not the looks at them.
    pub(crate) shown: Vec<Part>,
}

impl Summary {
    /// As one result of a comparison.
    pub(crate) fn measured(&self) -> Measured {
        Measured {
            name: self.short_id.clone(),
            machine: self.machine.clone(),
            parts: self.results(),
        }
    }

    /// The parts that measure something: laying out does not.
    pub(crate) fn results(&self) -> Vec<Part> {
        compared_parts(&self.kind, self.parts.iter())
    }
}

/// A study with all that is kept of it, or one of its runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Loaded {
    /// The study.
    pub(crate) summary: Summary,
    /// The run that was asked for: its number from 1; `None` for all of the study.
    pub(crate) run: Option<u32>,
    /// The study again, with documents.
    pub(crate) study: KeptStudy,
}

impl Loaded {
    /// How it is asked for.
    pub(crate) fn name(&self) -> String {
        match self.run {
            Some(number) => format!("{}.{number}", self.summary.short_id),
            None => self.summary.short_id.clone(),
        }
    }

    /// As one result of a comparison.
    pub(crate) fn measured(&self) -> Measured {
        match self.run {
            None => self.summary.measured(),
            // A layout that is named is meant.
            Some(_) => Measured {
                name: self.name(),
                machine: self.summary.machine.clone(),
                parts: self
                    .study
                    .runs
                    .iter()
                    .flat_map(|run| run.parts.clone())
                    .collect(),
            },
        }
    }
}

impl Store {
    /// Reads one state of the history, whatever other programs write meanwhile.
    fn in_one_state<T>(
        &self,
        read: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // Its end is the end of reading; inside another one, that one counts.
        let is_outermost = self.connection.is_autocommit();
        let begun = is_outermost.then(|| self.connection.unchecked_transaction());
        let _transaction = begun.transpose().map_err(|error| self.wrong(&error))?;
        read()
    }

    /// Studies that the filter lets through, the oldest first.
    pub(crate) fn list(&self, filter: &Filter) -> Result<Vec<Summary>, StoreError> {
        self.in_one_state(|| self.listed(filter))
    }

    fn listed(&self, filter: &Filter) -> Result<Vec<Summary>, StoreError> {
        let found = self.summaries(filter);
        let mut found = found.map_err(|error| self.wrong(&error))?;
        for summary in &mut found {
            // A document that cannot be read has no figures; `load` says why.
            let Ok(study) = self.without_runs(summary) else {
                continue;
            };
            let results = summary.results();
            summary.headline = Headline::of(&study, &results);
            summary.shown = shown_parts(&study, &summary.parts);
        }
        Ok(found)
    }

    /// Everything of the study that is named so (see [`Store::find`]); `ID.N` or `ID.NAME` is one of its runs.
    pub(crate) fn load(&self, reference: &str) -> Result<Loaded, StoreError> {
        self.in_one_state(|| self.loaded(reference))
    }

    fn loaded(&self, reference: &str) -> Result<Loaded, StoreError> {
        let (prefix, run) = match reference.split_once('.') {
            Some((prefix, run)) => (prefix, Some(run)),
            None => (reference, None),
        };
        let id = self.find(prefix)?;
        let filter = Filter {
            id: Some(id.clone()),
            ..Filter::default()
        };
        // Another program may have removed it meanwhile.
        let unknown = || StoreError::Unknown {
            name: reference.to_owned(),
            near: Vec::new(),
        };
        let summary = self.listed(&filter)?.pop().ok_or_else(unknown)?;
        let mut runs = self.runs(&id)?;
        let mut number = None;
        if let Some(run) = run {
            let place = runs
                .iter()
                .position(|(found, kept)| found.to_string() == run || kept.name == run)
                .ok_or_else(|| {
                    let names = runs.iter().map(|(_, kept)| kept.name.as_str());
                    Store::no_such_run(&summary.short_id, run, names)
                })?;
            runs = vec![runs.swap_remove(place)];
            number = Some(runs[0].0);
        }
        let document = self.document(&id)?;
        Ok(Loaded {
            run: number,
            study: KeptStudy {
                kind: summary.kind.clone(),
                target: summary.target.clone(),
                machine: summary.machine.clone(),
                program: summary.program.clone(),
                started_at_ms: summary.started_at_ms,
                labels: summary.labels.clone(),
                document,
                runs: runs.into_iter().map(|(_, run)| run).collect(),
            },
            summary,
        })
    }

    /// What a study found beyond its runs, without them.
    pub(crate) fn without_runs(&self, study: &Summary) -> Result<KeptStudy, StoreError> {
        Ok(KeptStudy {
            kind: study.kind.clone(),
            target: study.target.clone(),
            machine: study.machine.clone(),
            program: study.program.clone(),
            started_at_ms: study.started_at_ms,
            labels: study.labels.clone(),
            document: self.document(&study.id)?,
            runs: Vec::new(),
        })
    }

    fn document(&self, id: &str) -> Result<Option<serde_json::Value>, StoreError> {
        let document: Option<Vec<u8>> = self.one("SELECT document FROM study WHERE id = ?1", id)?;
        let document = document.map(|blob| blob::unpacked(&blob)).transpose();
        document.map_err(|error| unreadable(id, &error))
    }

    /// Says to other processes that a study goes on, until what is returned is dropped.
    pub(super) fn mark_running(&self, id: &str) -> Option<RunningStudy> {
        RunningStudy::mark(&self.place, id)
    }

    /// Whether some process of this host is measuring a study.
    pub(crate) fn is_running(&self, id: &str) -> bool {
        super::running::is_running(&self.place, id)
    }

    fn ids(&self) -> rusqlite::Result<Vec<String>> {
        let mut all = self.connection.prepare("SELECT id FROM study")?;
        all.query_map([], |row| row.get(0))?.collect()
    }

    fn one<T: rusqlite::types::FromSql>(&self, sql: &str, id: &str) -> Result<T, StoreError> {
        let value = self.connection.query_row(sql, [id], |row| row.get(0));
        value.map_err(|error| self.wrong(&error))
    }

    fn summaries(&self, filter: &Filter) -> rusqlite::Result<Vec<Summary>> {
        let (condition, values) = filter.sql();
        let digits = id::shown_digits(&self.ids()?);
        let mut select = self.connection.prepare(&format!(
            "SELECT id, kind, target, machine, program, started_at_ms, finished_at_ms, imported_from \
             FROM study WHERE {condition} ORDER BY started_at_ms, rowid"
        ))?;
        let found = select.query_map(params_from_iter(values), |row| summary(row, digits))?;
        let mut found: Vec<Summary> = found.collect::<rusqlite::Result<_>>()?;
        for study in &mut found {
            study.is_running = study.finished_at_ms.is_none() && is_running(&self.place, &study.id);
            study.labels = self.labels(&study.id)?;
            if study.finished_at_ms.is_none() {
                study.reached_ns = self.reached_ns(&study.id)?;
            }
            study.parts = self
                .parts(&study.id)?
                .into_iter()
                .map(|(_, part)| part)
                .collect();
        }
        Ok(found)
    }

    fn labels(&self, study: &str) -> rusqlite::Result<BTreeMap<String, String>> {
        let mut select = self
            .connection
            .prepare_cached("SELECT key, value FROM label WHERE study = ?1")?;
        select
            .query_map([study], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
    }

    /// The parts of all runs of a study, each with the number of its run. A run of a finished study that has no end has failed: its
    /// minutes are no result.
    pub(super) fn parts(&self, study: &str) -> rusqlite::Result<Vec<(u32, Part)>> {
        let mut select = self.connection.prepare_cached(
            "SELECT run.number, part.number, part.name, rw, bs, iodepth, numjobs, \
                    subject, measure, value, low, high, freedom, basis, settled, repeat_factor \
             FROM run JOIN part ON part.run = run.id \
             LEFT JOIN figure ON figure.run = part.run AND figure.part = part.number \
             WHERE run.study = ?1 \
               AND NOT (EXISTS (SELECT 1 FROM open_run WHERE open_run.run = run.id) \
                        AND EXISTS (SELECT 1 FROM study WHERE study.id = run.study AND finished_at_ms IS NOT NULL)) \
             ORDER BY run.number, part.number",
        )?;
        let mut rows = select.query([study])?;
        let mut parts: Vec<(u32, Part)> = Vec::new();
        let mut last = None;
        while let Some(row) = rows.next()? {
            let place: (u32, u32) = (row.get(0)?, row.get(1)?);
            if last != Some(place) {
                parts.push((place.0, part(row)?));
                last = Some(place);
            }
            if let (Some((_, part)), Some(figure)) = (parts.last_mut(), figure(row)?) {
                part.figures.push(figure);
            }
        }
        for (_, part) in &mut parts {
            part.figures
                .sort_by_key(|figure| (figure.subject, figure.measure));
        }
        Ok(parts)
    }

    fn runs(&self, study: &str) -> Result<Vec<(u32, KeptRun)>, StoreError> {
        let wrong = |error: rusqlite::Error| self.wrong(&error);
        let parts = self.parts(study).map_err(wrong)?;
        let mut select = self
            .connection
            .prepare(
                "SELECT number, name, started_at_ms, elapsed_ns, format, document, series, id, \
                        EXISTS (SELECT 1 FROM open_run WHERE open_run.run = run.id) \
                 FROM run WHERE study = ?1 ORDER BY number",
            )
            .map_err(wrong)?;
        let row = |row: &Row<'_>| Ok((RawRun::of(row)?, row.get(7)?, row.get(8)?));
        let rows = select.query_map([study], row).map_err(wrong)?;
        let raw: Vec<(RawRun, i64, bool)> = rows.collect::<rusqlite::Result<_>>().map_err(wrong)?;
        let unpack = |(raw, id, is_open): (RawRun, i64, bool)| {
            let of_it = parts.iter().filter(|(run, _)| *run == raw.number);
            let parts = of_it.map(|(_, part)| part.clone()).collect();
            let (number, mut run) = raw.unpacked(study, parts)?;
            self.add_interval_blocks(id, is_open, &mut run)?;
            Ok((number, run))
        };
        raw.into_iter().map(unpack).collect()
    }
}

impl Filter {
    /// Studies with this label.
    pub(crate) fn label(key: &str, value: &str) -> Filter {
        Filter {
            labels: vec![(key.to_owned(), value.to_owned())],
            ..Filter::default()
        }
    }

    /// The condition, and the values for its question marks.
    fn sql(&self) -> (String, Vec<SqlValue>) {
        let mut condition = "1".to_owned();
        let mut values = Vec::new();
        for (key, value) in &self.labels {
            condition.push_str(
                " AND EXISTS (SELECT 1 FROM label WHERE label.study = study.id AND key = ? AND value = ?)",
            );
            values.extend([SqlValue::from(key.clone()), SqlValue::from(value.clone())]);
        }
        if !self.targets.is_empty() {
            let one = "target = ? OR substr(target, 1, length(?)) = ?";
            let any = vec![one; self.targets.len()].join(" OR ");
            condition.push_str(&format!(" AND ({any})"));
        }
        for target in &self.targets {
            let below = format!("{}/", target.trim_end_matches('/'));
            values.extend([target.clone(), below.clone(), below].map(SqlValue::from));
        }
        if let Some(since_ms) = self.since_ms {
            condition.push_str(" AND started_at_ms >= ?");
            values.push(SqlValue::from(i64::try_from(since_ms).unwrap_or(i64::MAX)));
        }
        if let Some(id) = &self.id {
            condition.push_str(" AND id = ?");
            values.push(SqlValue::from(id.clone()));
        }
        (condition, values)
    }
}

fn summary(row: &Row<'_>, digits: usize) -> rusqlite::Result<Summary> {
    let id: String = row.get(0)?;
    Ok(Summary {
        short_id: id[..digits.min(id.len())].to_owned(),
        id,
        kind: row.get(1)?,
        target: row.get(2)?,
        machine: row.get(3)?,
        program: row.get(4)?,
        started_at_ms: row.get::<_, i64>(5)? as u64,
        finished_at_ms: row.get::<_, Option<i64>>(6)?.map(|ms| ms as u64),
        is_running: false,
        reached_ns: None,
        imported_from: row.get(7)?,
        labels: BTreeMap::new(),
        parts: Vec::new(),
        headline: Headline::default(),
        shown: Vec::new(),
    })
}

fn part(row: &Row<'_>) -> rusqlite::Result<Part> {
    Ok(Part {
        name: row.get(2)?,
        pattern: Pattern {
            rw: row.get(3)?,
            bs: row.get(4)?,
            iodepth: row.get(5)?,
            numjobs: row.get(6)?,
        },
        figures: Vec::new(),
    })
}

/// A figure; `None` where the part has none, or one that this program does not know.
fn figure(row: &Row<'_>) -> rusqlite::Result<Option<Figure>> {
    let (Some(subject), Some(measure)) = (word(row, 7)?, word(row, 8)?) else {
        return Ok(None);
    };
    let basis: Option<String> = row.get(13)?;
    let low: Option<f64> = row.get(10)?;
    let high: Option<f64> = row.get(11)?;
    let freedom: Option<f64> = row.get(12)?;
    let basis = basis.and_then(|name| Basis::from_name(&name));
    let bounds = match (low, high, freedom, basis) {
        (Some(low), Some(high), Some(freedom), Some(basis)) => Some(Bounds {
            low,
            high,
            freedom,
            // Results of before this column were compared by their interval alone.
            repeat_factor: row.get::<_, Option<f64>>(15)?.unwrap_or(1.0),
            basis,
        }),
        _ => None,
    };
    Ok(Some(Figure {
        subject,
        measure,
        value: row.get(9)?,
        bounds,
        settled: row.get(14)?,
    }))
}

fn word<T: FromStr>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    let name: Option<String> = row.get(column)?;
    Ok(name.and_then(|name| name.parse().ok()))
}

pub(super) fn unreadable(what: &str, problem: &dyn fmt::Display) -> StoreError {
    StoreError::Unreadable {
        what: what.to_owned(),
        problem: problem.to_string(),
    }
}

/// A run as the table has it.
pub(super) struct RawRun {
    number: u32,
    name: String,
    started_at_ms: i64,
    elapsed_ns: i64,
    format: String,
    document: Vec<u8>,
    series: Option<Vec<u8>>,
}

impl RawRun {
    /// Its number within the study, from 1.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// The columns `number, name, started_at_ms, elapsed_ns, format, document, series`.
    pub(super) fn of(row: &Row<'_>) -> rusqlite::Result<RawRun> {
        Ok(RawRun {
            number: row.get(0)?,
            name: row.get(1)?,
            started_at_ms: row.get(2)?,
            elapsed_ns: row.get(3)?,
            format: row.get(4)?,
            document: row.get(5)?,
            series: row.get(6)?,
        })
    }

    pub(super) fn unpacked(
        self,
        study: &str,
        parts: Vec<Part>,
    ) -> Result<(u32, KeptRun), StoreError> {
        let what = format!("{study}.{}", self.number);
        let damaged = |error: serde_json::Error| unreadable(&what, &error);
        let document = match self.format.as_str() {
            "run-result" => {
                let mut result: RunResult = blob::unpacked(&self.document).map_err(damaged)?;
                if let Some(series) = &self.series {
                    result.intervals = blob::unpacked(series).map_err(damaged)?;
                }
                Document::Run(Box::new(result))
            }
            "fio-json" => Document::Fio(blob::unpacked(&self.document).map_err(damaged)?),
            other => return Err(unreadable(&what, &format!("unknown format {other}"))),
        };
        let run = KeptRun {
            name: self.name,
            started_at_ms: self.started_at_ms as u64,
            elapsed_ns: self.elapsed_ns as u64,
            document,
            parts,
        };
        Ok((self.number, run))
    }
}
