//! Reading from the history.

use super::error::unreadable;
use super::headline::{Headline, shown_parts};
use super::part_roles::set_roles_from_names;
use super::raw_run::RawRun;
use super::record::{RunRecord, StudyRecord, compared_parts};
use super::running::{RunningStudy, is_running};
use super::{Store, StoreError, blob, id};
use iosonde_result::compare::{
    Bounds, Figure, IntervalBasis, IoPattern, MeasuredResult, PartRole, ResultPart,
};
use iosonde_result::property_values::PropertyValues;
use rusqlite::types::Value as SqlValue;
use rusqlite::{Row, params_from_iter};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Conditions on studies, all of which must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Keys with the patterns of their values: labels, facts, or what all studies have.
    pub labels: Vec<(String, String)>,
    /// Targets, or directories above targets. Empty: any target.
    pub targets: Vec<String>,
    /// Earliest start, in milliseconds since the Unix epoch.
    pub since_ms: Option<u64>,
    /// The id of the one study to return.
    pub id: Option<String>,
}

/// A study without its documents.
#[derive(Debug, Clone, PartialEq)]
pub struct StudySummary {
    /// The whole id.
    pub id: String,
    /// The shortest prefix of the id that is unique in this history.
    pub short_id: String,
    /// `probe`, `fio`, ...
    pub kind: String,
    /// Target: the absolute path, or the name as the user wrote it.
    pub target: String,
    /// Machine that the study ran on, if known.
    pub machine: Option<String>,
    /// Program and version.
    pub program: String,
    /// Start in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// End in milliseconds since the Unix epoch; `None`: the study is running or was cut off.
    pub finished_at_ms: Option<u64>,
    /// Whether a process is measuring the study now.
    pub is_running: bool,
    /// Time that all runs took so far, in nanoseconds. `None`: no run is open.
    pub reached_ns: Option<u64>,
    /// The file that the study was imported from.
    pub imported_from: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Facts of machine and storage that the runs know.
    pub facts: BTreeMap<String, PropertyValues>,
    /// Figures of all runs, in the order of the runs.
    pub parts: Vec<ResultPart>,
    /// The figures of the result itself.
    pub headline: Headline,
    /// The parts that the result shows: of a sweep its cells, not the samples of each.
    pub shown: Vec<ResultPart>,
}

impl StudySummary {
    /// Converts the study to one result of a comparison.
    pub fn measured(&self) -> MeasuredResult {
        MeasuredResult {
            name: self.short_id.clone(),
            machine: self.machine.clone(),
            parts: self.results(),
        }
    }

    /// Returns the parts that are results: layout, purge and fill are not.
    pub fn results(&self) -> Vec<ResultPart> {
        // The figures of these studies are in their documents. One of a suite may be unreadable.
        let parts = match self.kind.as_str() {
            "lifecycle" | "csi" => &self.shown,
            "suite" if !self.shown.is_empty() => &self.shown,
            _ => &self.parts,
        };
        compared_parts(&self.kind, parts.iter())
    }
}

/// A study with its documents, or one of its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The study.
    pub summary: StudySummary,
    /// The number of the requested run, from 1; `None`: the whole study.
    pub run: Option<u32>,
    /// The study with its documents.
    pub study: StudyRecord,
}

impl Loaded {
    /// Name that loads the same study or run again: `ID` or `ID.N`.
    pub fn name(&self) -> String {
        match self.run {
            Some(number) => format!("{}.{number}", self.summary.short_id),
            None => self.summary.short_id.clone(),
        }
    }

    /// Converts the study or the run to one result of a comparison.
    pub fn measured(&self) -> MeasuredResult {
        match self.run {
            None => self.summary.measured(),
            // A layout is compared if the user names it.
            Some(_) => MeasuredResult {
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
    /// Calls `read` in one transaction, so that it sees one state despite concurrent writers.
    fn in_one_state<T>(
        &self,
        read: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // Within another transaction, that one already gives a single state.
        let is_outermost = self.connection.is_autocommit();
        let begun = is_outermost.then(|| self.connection.unchecked_transaction());
        let _transaction = begun.transpose().map_err(|error| self.wrong(&error))?;
        read()
    }

    /// Returns the studies that match the filter, the oldest first.
    pub fn list(&self, filter: &Filter) -> Result<Vec<StudySummary>, StoreError> {
        self.in_one_state(|| self.listed(filter))
    }

    fn listed(&self, filter: &Filter) -> Result<Vec<StudySummary>, StoreError> {
        let found = self.summaries(filter);
        let mut found = found.map_err(|error| self.wrong(&error))?;
        for summary in &mut found {
            // A document that cannot be read has no figures; `load` reports why.
            let Ok(study) = self.without_runs(summary) else {
                continue;
            };
            let runs = compared_parts(&summary.kind, summary.parts.iter());
            summary.headline = Headline::from_study(&study, &runs);
            summary.shown = shown_parts(&study, &summary.parts);
        }
        Ok(found)
    }

    /// Loads a study by its name (see [`Store::find`]). `ID.N` or `ID.NAME` loads one of its runs.
    pub fn load(&self, reference: &str) -> Result<Loaded, StoreError> {
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
        // Another program may have removed the study since `find`.
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
            study: StudyRecord {
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

    /// Returns a study with its document and without its runs.
    pub fn without_runs(&self, study: &StudySummary) -> Result<StudyRecord, StoreError> {
        Ok(StudyRecord {
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

    /// Marks a study as running for other processes, until the returned value is dropped.
    pub(super) fn mark_running(&self, id: &str) -> Option<RunningStudy> {
        RunningStudy::mark(&self.place, id)
    }

    /// Whether a process of this host is measuring a study.
    pub fn is_running(&self, id: &str) -> bool {
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

    fn summaries(&self, filter: &Filter) -> rusqlite::Result<Vec<StudySummary>> {
        let (condition, values) = filter.sql();
        let digits = id::shown_digits(&self.ids()?);
        let mut select = self.connection.prepare(&format!(
            "SELECT id, kind, target, machine, program, started_at_ms, finished_at_ms, \
                    imported_from \
             FROM study WHERE {condition} ORDER BY started_at_ms, rowid"
        ))?;
        let found = select.query_map(params_from_iter(values), |row| summary(row, digits))?;
        let mut found: Vec<StudySummary> = found.collect::<rusqlite::Result<_>>()?;
        for study in &mut found {
            study.labels = self.labels(&study.id)?;
            study.facts = self.facts(&study.id)?;
        }
        debug_assert!(found.is_sorted_by_key(|study| study.started_at_ms as i64));
        let labels = &filter.labels;
        found.retain(|study| {
            labels
                .iter()
                .all(|(key, value)| study.has_value(key, value))
        });
        for study in &mut found {
            study.is_running = study.finished_at_ms.is_none() && is_running(&self.place, &study.id);
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
        let sql = "SELECT key, value FROM label WHERE study = ?1";
        let mut select = self.connection.prepare_cached(sql)?;
        select
            .query_map([study], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
    }

    fn facts(&self, study: &str) -> rusqlite::Result<BTreeMap<String, PropertyValues>> {
        let sql = "SELECT key, value FROM fact_value WHERE study = ?1 ORDER BY key, number";
        let mut select = self.connection.prepare_cached(sql)?;
        let mut rows = select.query([study])?;
        let mut facts: BTreeMap<String, PropertyValues> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let (key, value): (String, String) = (row.get(0)?, row.get(1)?);
            facts.entry(key).or_default().add(&value);
        }
        Ok(facts)
    }

    /// Returns the parts of all runs of a study, each with its run number. An open run of a
    /// finished study has failed: its blocks are no result.
    pub(super) fn parts(&self, study: &str) -> rusqlite::Result<Vec<(u32, ResultPart)>> {
        let mut select = self.connection.prepare_cached(
            "SELECT run.number, part.number, part.name, rw, bs, iodepth, numjobs, \
                    subject, measure, value, low, high, freedom, basis, settled, repeat_factor, \
                    role \
             FROM run JOIN part ON part.run = run.id \
             LEFT JOIN figure ON figure.run = part.run AND figure.part = part.number \
             WHERE run.study = ?1 \
               AND NOT (EXISTS (SELECT 1 FROM open_run WHERE open_run.run = run.id) \
                        AND EXISTS (SELECT 1 FROM study \
                                    WHERE study.id = run.study \
                                      AND finished_at_ms IS NOT NULL)) \
             ORDER BY run.number, part.number",
        )?;
        let mut rows = select.query([study])?;
        let mut parts: Vec<(u32, ResultPart)> = Vec::new();
        let mut without_role = Vec::new();
        let mut last: Option<(u32, u32)> = None;
        while let Some(row) = rows.next()? {
            let place: (u32, u32) = (row.get(0)?, row.get(1)?);
            debug_assert!(last.is_none_or(|last| last <= place), "{last:?} {place:?}");
            if last != Some(place) {
                let role: Option<PartRole> = read_word(row, 16)?;
                if role.is_none() {
                    without_role.push(parts.len());
                }
                parts.push((place.0, read_part(row, role.unwrap_or_default())?));
                last = Some(place);
            }
            if let (Some((_, part)), Some(figure)) = (parts.last_mut(), figure(row)?) {
                part.figures.push(figure);
            }
        }
        set_roles_from_names(&mut parts, &without_role);
        for (_, part) in &mut parts {
            part.figures
                .sort_by_key(|figure| (figure.subject, figure.measure));
        }
        Ok(parts)
    }

    fn runs(&self, study: &str) -> Result<Vec<(u32, RunRecord)>, StoreError> {
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
        let row = |row: &Row<'_>| Ok((RawRun::from_row(row)?, row.get(7)?, row.get(8)?));
        let rows = select.query_map([study], row).map_err(wrong)?;
        let raw: Vec<(RawRun, i64, bool)> = rows.collect::<rusqlite::Result<_>>().map_err(wrong)?;
        debug_assert!(raw.is_sorted_by_key(|(raw, ..)| raw.number()));
        debug_assert!(raw.iter().all(|(raw, ..)| raw.number() >= 1));
        let unpack = |(raw, id, is_open): (RawRun, i64, bool)| {
            let of_it = parts.iter().filter(|(run, _)| *run == raw.number());
            let parts = of_it.map(|(_, part)| part.clone()).collect();
            let (number, mut run) = raw.unpacked(study, parts)?;
            self.add_interval_blocks(id, is_open, &mut run)?;
            Ok((number, run))
        };
        raw.into_iter().map(unpack).collect()
    }
}

impl Filter {
    /// Selects studies by the value of a label or fact.
    pub fn label(key: &str, value: &str) -> Filter {
        Filter {
            labels: vec![(key.to_owned(), value.to_owned())],
            ..Filter::default()
        }
    }

    /// Returns the SQL condition, and the values of its placeholders. Labels are not among them.
    fn sql(&self) -> (String, Vec<SqlValue>) {
        let mut condition = "1".to_owned();
        let mut values = Vec::new();
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

fn summary(row: &Row<'_>, digits: usize) -> rusqlite::Result<StudySummary> {
    let id: String = row.get(0)?;
    Ok(StudySummary {
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
        facts: BTreeMap::new(),
        parts: Vec::new(),
        headline: Headline::default(),
        shown: Vec::new(),
    })
}

fn read_part(row: &Row<'_>, role: PartRole) -> rusqlite::Result<ResultPart> {
    Ok(ResultPart {
        name: row.get(2)?,
        pattern: IoPattern {
            rw: row.get(3)?,
            bs: row.get(4)?,
            iodepth: row.get(5)?,
            numjobs: row.get(6)?,
        },
        figures: Vec::new(),
        role,
    })
}

/// Reads a figure. `None`: the part has none, or this program does not know its name.
fn figure(row: &Row<'_>) -> rusqlite::Result<Option<Figure>> {
    let (Some(subject), Some(measure)) = (read_word(row, 7)?, read_word(row, 8)?) else {
        return Ok(None);
    };
    let basis: Option<String> = row.get(13)?;
    let low: Option<f64> = row.get(10)?;
    let high: Option<f64> = row.get(11)?;
    let freedom: Option<f64> = row.get(12)?;
    let basis = basis.and_then(|name| IntervalBasis::from_name(&name));
    let bounds = match (low, high, freedom, basis) {
        (Some(low), Some(high), Some(freedom), Some(basis)) => Some(Bounds {
            low,
            high,
            freedom,
            // Results older than this column were compared by their interval alone.
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

fn read_word<T: FromStr>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    let name: Option<String> = row.get(column)?;
    Ok(name.and_then(|name| name.parse().ok()))
}
