//! Earlier runs of the same plan on the same target.

use super::raw_run::RawRun;
use super::read::Loaded;
use super::record::{RunDocument, RunRecord};
use super::{Store, StoreError};
use iosonde_result::compare::{EARLIER_RUNS_MAX, ResultPart, is_same_plan_and_target};
use rusqlite::params;

/// Selects runs of the same name, kind of study, target and machine, the latest first. The series
/// is left out, since plans and parts suffice. A run that was cut off does not count.
const CANDIDATES: &str = "SELECT run.number, run.name, run.started_at_ms, run.elapsed_ns, \
            run.format, run.document, NULL AS series, study.id \
     FROM run JOIN study ON run.study = study.id \
     WHERE study.kind = ?1 AND study.target = ?2 AND study.machine = ?3 AND run.name = ?4 \
       AND run.format = 'run-result' \
       AND NOT EXISTS (SELECT 1 FROM open_run WHERE open_run.run = run.id) \
       AND study.started_at_ms < ?5 AND study.id <> ?6 \
     ORDER BY run.started_at_ms DESC LIMIT ?7";
/// Most runs whose plans are compared, for each run of a result.
const CANDIDATES_MAX: u32 = 100;

impl Store {
    /// Returns the parts of earlier runs with the plan, target and machine of a run of this result.
    /// At most the latest [`EARLIER_RUNS_MAX`] of each run, of studies begun before `before_ms`.
    pub fn earlier_runs(
        &self,
        result: &Loaded,
        before_ms: u64,
    ) -> Result<Vec<ResultPart>, StoreError> {
        let Some(machine) = &result.summary.machine else {
            return Ok(Vec::new());
        };
        let mut parts = Vec::new();
        for run in &result.study.runs {
            let found = self.candidates(result, machine, &run.name, before_ms);
            let mut same = 0;
            for (study, raw) in found.map_err(|error| self.wrong(&error))? {
                if same == EARLIER_RUNS_MAX {
                    break;
                }
                let number = raw.number();
                // A run that cannot be read is skipped.
                let Ok((_, candidate)) = raw.unpacked(&study, Vec::new()) else {
                    continue;
                };
                if !has_same_plan_and_target(run, &candidate) {
                    continue;
                }
                same += 1;
                let of_study = self.parts(&study).map_err(|error| self.wrong(&error))?;
                let of_run = of_study.into_iter().filter(|(of, _)| *of == number);
                parts.extend(of_run.map(|(_, part)| part));
            }
        }
        Ok(parts)
    }

    /// Returns runs that may have the same plan, each with the id of its study.
    fn candidates(
        &self,
        result: &Loaded,
        machine: &str,
        name: &str,
        before_ms: u64,
    ) -> rusqlite::Result<Vec<(String, RawRun)>> {
        let study = &result.summary;
        let before_ms = i64::try_from(before_ms).unwrap_or(i64::MAX);
        let mut select = self.connection.prepare_cached(CANDIDATES)?;
        let wanted = params![
            study.kind,
            study.target,
            machine,
            name,
            before_ms,
            study.id,
            CANDIDATES_MAX
        ];
        let rows = select.query_map(wanted, |row| Ok((row.get(7)?, RawRun::from_row(row)?)))?;
        rows.collect()
    }
}

fn has_same_plan_and_target(run: &RunRecord, candidate: &RunRecord) -> bool {
    match (&run.document, &candidate.document) {
        (RunDocument::Run(run), RunDocument::Run(candidate)) => {
            is_same_plan_and_target(run, candidate)
        }
        _ => false,
    }
}
