//! Runs a test: purge, fill, rounds until they agree.

use super::deviations::PtsConditions;
use super::plan;
use super::pts_options::{PtsOptions, Purge, longest_rounds};
use super::pts_result::{FORMAT, PtsResult};
use super::pts_times::{Ahead, Pace, most_written_bytes, rounds_left, rounds_of};
use crate::TimeRange;
use crate::announcement::{Announcement, PtsAnnouncement};
use crate::driver::{
    DirectIo, Study, StudyDriver, StudyEnding, first_failure, is_direct_refused, is_einval,
    run_study,
};
use crate::error::{StudyError, WritingStudy};
use crate::event::{StudyEvent, StudyFinding, StudyObserver, StudyStep};
use crate::figures::preset::{PtsSeries, PtsTest, PtsWorkload};
use crate::figures::pts_series::{PtsCell, PtsRound, SeriesResult};
use crate::job_template::JobTemplate;
use crate::probe_budget::ProbeBudget;
use crate::run_hook::RunPurpose;
use crate::saturation::{CurveLog, measure_cell};
use crate::study_target::{StudyTarget, StudyTargetKind};
use crate::working_set::planned_bytes;
use iosonde_job::plan::Plan;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;

/// Number of times the fill writes the whole capacity.
const FILLS: f64 = 2.0;

/// Runs a test of the specification on one target.
///
/// # Errors
/// If nothing was measured. An I/O error ends the test with the rounds before it, see
/// [`PtsResult::failure`]. So does a run without a result, see [`PtsResult::error`].
pub fn measure_pts(
    session: &mut dyn Session,
    target: &StudyTarget,
    options: &PtsOptions,
    observer: &mut dyn StudyObserver,
) -> Result<PtsResult, StudyError> {
    run_pts(&mut StudyDriver::new(session, observer), target, options)
}

/// Runs one test with a driver, which may have hooks.
///
/// # Errors
/// As [`measure_pts`].
pub fn run_pts(
    driver: &mut StudyDriver<'_>,
    target: &StudyTarget,
    options: &PtsOptions,
) -> Result<PtsResult, StudyError> {
    run_study(PtsStudy::new(target, options)?, driver)
}

/// A test of the specification on one target.
struct PtsStudy<'a> {
    target: &'a StudyTarget,
    options: &'a PtsOptions,
    /// Bytes of the active range.
    bytes: u64,
    /// Bytes that the preset asks for. `None`: the target is no device.
    preset_bytes: Option<u64>,
    /// Bytes that are purged, and unit of the fill: the whole device, unless the user set a size.
    capacity: u64,
    /// Block sizes that the target refused.
    refused: Vec<u64>,
    /// Whether the kernel reports a volatile write cache.
    write_cache: Option<bool>,
    /// Speed of the fills and purges so far.
    pace: Pace,
    /// Series so far, including the current one once it has ended.
    series: Vec<SeriesResult>,
    /// Series after the current one.
    later: Vec<PtsSeries>,
}

impl Study for PtsStudy<'_> {
    type Outcome = PtsResult;

    fn announcement(&self) -> Announcement<'_> {
        let options = self.options;
        let series = options.test.series(options.preset);
        let saturates = options.test == PtsTest::WriteSaturation;
        let rounds = series.iter().filter_map(|one| rounds_of(one, options));
        let extent = PtsAnnouncement {
            bytes: self.bytes,
            purge_bytes: match self.discards() {
                true => series.len() as u64 * self.capacity,
                false => 0,
            },
            fill_bytes: series.iter().map(|one| self.fill_bytes_of(one)).sum(),
            rounds: match saturates {
                true => {
                    TimeRange::from_steps(1, u64::from(longest_rounds(options)), options.cell_ns())
                }
                false => rounds.fold(TimeRange::default(), |sum, one| sum + one),
            },
            most_written_bytes: saturates
                .then(|| most_written_bytes(options, self.capacity) as u64),
        };
        Announcement::Pts {
            target: self.target,
            extent,
        }
    }

    fn measure(&mut self, driver: &mut StudyDriver<'_>) -> Result<(), StudyError> {
        driver.set_direct(vec![DirectIo {
            is_used: true,
            note_if_refused: "the target refuses O_DIRECT, so all I/O goes through the page cache"
                .to_owned(),
        }]);
        let all = self.options.test.series(self.options.preset);
        for (index, series) in all.iter().enumerate() {
            if driver.is_over() {
                break;
            }
            self.later = all[index + 1..].to_vec();
            let mut result = SeriesResult::new(series);
            let outcome = self.measure_series(driver, series, index == 0, &mut result);
            self.series.push(result);
            outcome?;
        }
        Ok(())
    }

    fn conclude(self, ending: StudyEnding) -> Result<PtsResult, StudyError> {
        if self.series.iter().all(|one| one.rounds.is_empty()) {
            return Err(ending.into_error(&self.target.name));
        }
        let conditions = PtsConditions {
            options: self.options,
            kind: &self.target.kind,
            active_bytes: self.preset_bytes,
            bytes: self.bytes,
            direct: ending.is_direct(),
            purged: self.series.iter().all(|one| one.purged),
            refused: !self.refused.is_empty(),
            write_cache: self.write_cache,
        };
        let deviations = conditions.deviations();
        Ok(PtsResult {
            format: FORMAT,
            target: self.target.name.clone(),
            kind: self.target.kind.clone(),
            options: self.options.clone(),
            bytes: self.bytes,
            direct: ending.is_direct(),
            series: self.series,
            deviations,
            interrupted: ending.is_interrupted,
            failure: ending.failure,
            error: ending.error.map(Into::into),
            notes: ending.notes,
        })
    }
}

impl<'a> PtsStudy<'a> {
    /// Fails if the target must not be overwritten, or is too small.
    fn new(target: &'a StudyTarget, options: &'a PtsOptions) -> Result<PtsStudy<'a>, StudyError> {
        if !target.kind.is_writable() {
            return Err(StudyError::WriteRefused {
                targets: vec![target.name.clone()],
                writer: WritingStudy::Pts,
            });
        }
        let whole = match &target.kind {
            StudyTargetKind::Existing { bytes, .. } => Some(*bytes),
            _ => None,
        };
        let preset_bytes = whole.map(|bytes| options.preset.active_bytes(bytes));
        let asked = options.size_bytes.or(preset_bytes);
        let planned = planned_bytes(&target.kind, asked, &ProbeBudget::NORMAL);
        let bytes = planned.map_err(|source| StudyError::WorkingSet {
            target: target.name.clone(),
            source,
        })?;
        Ok(PtsStudy {
            target,
            options,
            bytes,
            preset_bytes,
            capacity: match options.size_bytes {
                Some(_) => bytes,
                None => whole.unwrap_or(bytes),
            },
            refused: Vec::new(),
            write_cache: None,
            pace: Pace::default(),
            series: Vec::new(),
            later: Vec::new(),
        })
    }

    /// Returns block size and number of the fills before a series. `None`: no fill.
    fn fills(&self, series: &PtsSeries) -> Option<(u64, f64)> {
        // Write saturation begins on an empty device. A file has no blocks before it is written.
        let is_file = self.target.kind.is_ours();
        match series.fill_block_bytes {
            Some(block_bytes) => {
                let beyond = self.capacity as f64 / self.bytes as f64;
                let fills = (FILLS * beyond * self.options.time_scale).max(1.0);
                Some((block_bytes, fills))
            }
            None => is_file.then_some((1 << 20, 1.0)),
        }
    }

    fn fill_bytes_of(&self, series: &PtsSeries) -> u64 {
        let fills = self.fills(series).map_or(0.0, |(_, fills)| fills);
        (fills * self.bytes as f64) as u64
    }

    /// Returns the work of the series after the current one.
    fn later(&self) -> Ahead {
        let all = self.later.iter();
        let purges = match self.discards() {
            true => self.later.len() as u64,
            false => 0,
        };
        all.fold(Ahead::default().with_purges(purges), |ahead, series| {
            ahead.with(self.fill_bytes_of(series), rounds_of(series, self.options))
        })
    }

    /// Runs purge, fill and rounds. After an error, `result` has what was measured before.
    fn measure_series(
        &mut self,
        driver: &mut StudyDriver<'_>,
        series: &PtsSeries,
        is_first: bool,
        result: &mut SeriesResult,
    ) -> Result<(), RunError> {
        result.purged = self.purge(driver, is_first)?;
        if let Some((block_bytes, fills)) = self.fills(series) {
            let rounds = rounds_of(series, self.options);
            result.filled_bytes = self.fill(driver, fills, block_bytes, rounds)?;
        }
        let mut rounds_ns = 0;
        for number in 1..=longest_rounds(self.options) {
            let rounds = rounds_left(result, rounds_ns, self.capacity, self.options);
            if let Some(left) = self.later().with(0, rounds).time(&self.pace) {
                driver.emit(&StudyEvent::TimeLeft(left));
            }
            let Some((round, elapsed_ns)) = self.round(driver, series, result, number)? else {
                break;
            };
            rounds_ns += elapsed_ns;
            result.rounds.push(round);
            if result.steady.is_none() {
                result.steady = result.settled(series);
            }
            driver.emit(&StudyEvent::Found(StudyFinding::Round(result)));
            if self.is_complete(result) {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether a series needs no further round.
    fn is_complete(&self, series: &SeriesResult) -> bool {
        if self.options.test != PtsTest::WriteSaturation {
            return series.steady.is_some();
        }
        let most_bytes = most_written_bytes(self.options, self.capacity);
        let last = series.rounds.last();
        last.is_some_and(|round| round.written_bytes >= most_bytes)
    }

    /// Returns whether all blocks are discarded before each series.
    fn discards(&self) -> bool {
        let is_device = match self.target.kind {
            StudyTargetKind::Directory { .. } | StudyTargetKind::Pool { .. } => false,
            StudyTargetKind::Existing { device, .. } => device,
            StudyTargetKind::Simulated { .. } => true,
        };
        self.options.purge == Purge::Discard && is_device
    }

    /// Purges the target. Returns whether the target is purged before this series.
    fn purge(&mut self, driver: &mut StudyDriver<'_>, is_first: bool) -> Result<bool, RunError> {
        match self.options.purge {
            Purge::None => return Ok(false),
            // The user has purged it before the first series only.
            Purge::Done => return Ok(is_first),
            Purge::Discard if !self.discards() => {
                driver.note("not purged: only devices can be purged".to_owned());
                return Ok(false);
            }
            Purge::Discard => {}
        }
        driver.emit(&StudyEvent::StepStarted {
            step: StudyStep::Purge,
            planned_ns: None,
        });
        let plan = plan::purge(&self.template(driver.is_direct(0)), self.capacity);
        let result = driver.run(&plan, RunPurpose::Purge, &mut ())?;
        self.note_run(driver, &plan, &result);
        self.pace.take_purge(result.elapsed_ns);
        match first_failure(&result) {
            None => Ok(!driver.is_interrupted()),
            Some(failure) => {
                driver.note(format!("the device was not purged: {}", failure.message));
                Ok(false)
            }
        }
    }

    /// Writes the active range `fills` times. Returns the bytes. `rounds` is the time after it.
    fn fill(
        &mut self,
        driver: &mut StudyDriver<'_>,
        fills: f64,
        block_bytes: u64,
        rounds: Option<TimeRange>,
    ) -> Result<u64, RunError> {
        let mut left = (fills * self.bytes as f64) as u64;
        let mut filled = 0;
        while left >= block_bytes && !driver.is_over() {
            let bytes = left.min(self.bytes) / block_bytes * block_bytes;
            let done_percent = filled as f64 * 100.0 / (filled + left) as f64;
            driver.emit(&StudyEvent::StepStarted {
                step: StudyStep::Fill { done_percent },
                planned_ns: None,
            });
            let ahead = self.later().with(left - bytes, rounds);
            let outcome = driver.attempt_direct(
                0,
                |driver, direct| {
                    let plan = plan::fill_plan(&self.template(direct), bytes, block_bytes);
                    let time = ahead.after_fill(bytes, &self.pace);
                    let result = driver.run_layout(&plan, time, &mut ())?;
                    self.note_run(driver, &plan, &result);
                    Ok(result)
                },
                is_direct_refused,
            );
            let result = outcome?;
            if let Some(failure) = first_failure(&result) {
                driver.fail(failure);
                break;
            }
            self.pace.take_fill(bytes, result.elapsed_ns);
            filled += bytes;
            left -= bytes;
        }
        Ok(filled)
    }

    /// Runs every workload once. Returns the round and its time; `None` if it is incomplete.
    fn round(
        &mut self,
        driver: &mut StudyDriver<'_>,
        series: &PtsSeries,
        before: &SeriesResult,
        number: u32,
    ) -> Result<Option<(PtsRound, u64)>, RunError> {
        let mut elapsed_ns = 0;
        let last = before.rounds.last();
        let mut written_bytes = last.map_or(0.0, |round| round.written_bytes);
        let mut cells = Vec::new();
        for (index, workload) in before.workloads.iter().enumerate() {
            if driver.is_over() {
                return Ok(None);
            }
            let step = StudyStep::Workload {
                round: number,
                number: index + 1,
                workloads: before.workloads.len(),
            };
            driver.emit(&StudyEvent::StepStarted {
                step,
                planned_ns: Some(self.options.cell_ns()),
            });
            let (cell, cell_ns) = self.workload(driver, series, *workload, number)?;
            elapsed_ns += cell_ns;
            if let Some(cell) = &cell {
                let writes = f64::from(100 - workload.read_percent) / 100.0;
                written_bytes += cell.bytes_per_s * writes * self.options.cell_ns() as f64 / 1e9;
            }
            cells.push(cell);
        }
        let round = PtsRound {
            cells,
            written_bytes,
        };
        Ok((!driver.is_over()).then_some((round, elapsed_ns)))
    }

    /// Runs one workload. Returns its figures and its time.
    fn workload(
        &mut self,
        driver: &mut StudyDriver<'_>,
        series: &PtsSeries,
        workload: PtsWorkload,
        number: u32,
    ) -> Result<(Option<PtsCell>, u64), RunError> {
        if self.refused.contains(&workload.block_bytes) {
            return Ok((None, 0));
        }
        let (iodepth, numjobs) = self.options.in_flight(series);
        let template = self.template(driver.is_direct(0));
        let mut job = plan::workload(&template, workload, series.random, numjobs);
        // Each round has other offsets.
        job.workload.randseed = Some(self.options.seed.wrapping_add(u64::from(number) << 32));
        let times = (0, self.options.cell_ns());
        let run = measure_cell(driver, &job, iodepth, times, &mut CurveLog::default())?;
        let cell = run.record.cell();
        let is_empty = cell.latency.count == 0;
        let found = match run.failure {
            Some(failure) if is_einval(&failure) && is_empty && number == 1 => {
                self.refused.push(workload.block_bytes);
                driver.note(format!(
                    "the device refuses blocks of {} bytes: its blocks are larger",
                    workload.block_bytes
                ));
                None
            }
            Some(failure) => {
                driver.fail(failure);
                None
            }
            None => (!is_empty).then(|| PtsCell::from_cell(&cell)),
        };
        Ok((found, run.elapsed_ns))
    }

    /// Records the stops and the write cache state of a purge or fill.
    fn note_run(&mut self, driver: &mut StudyDriver<'_>, plan: &Plan, result: &RunResult) {
        let what = plan.jobs.first().map_or("a run", |job| job.name.as_str());
        driver.note_stop(result, Some(what), false);
        let devices = result.targets.iter().flat_map(|one| one.bottom_devices());
        let mut queues = devices.filter_map(|device| device.queue.as_ref());
        let cache = queues.find_map(|queue| queue.volatile_write_cache);
        self.write_cache = cache.or(self.write_cache);
    }

    fn template(&self, direct: bool) -> JobTemplate<'a> {
        JobTemplate::on(self.target, self.bytes, direct, self.options.seed)
    }
}
