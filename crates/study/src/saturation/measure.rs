//! Measurement of one cell until its interval is narrow enough.

use super::curve_log::CurveLog;
use crate::driver::{RepeatableRun, StudyDriver, first_failure};
use crate::event::StudyEvent;
use crate::figures::cell::{CellRecord, CellTotals};
use crate::figures::series::{RateSamples, SAMPLE_S};
use crate::run_hook::RunPurpose;
use crate::stop_rule::StopRule;
use iosonde_job::plan::{BytesOrPercent, Direction, GivenOption, Job, Plan};
use iosonde_result::littles_law::SlotTime;
use iosonde_result::observer::{Control, RunProgress, WorkerState};
use iosonde_result::run::{IoFailure, RunResult, Verdict};
use iosonde_result::run_error::RunError;

/// Alignment of the offset at which a later run of a cell begins.
const GRAIN_BYTES: u64 = 1 << 20;

/// Length of a run, and the condition of an early end.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellRunLength {
    /// Ramp at the start, not measured.
    pub(super) ramp_ns: u64,
    /// Shortest measured time.
    pub(super) least_ns: u64,
    /// Longest measured time.
    pub(super) most_ns: u64,
    /// Relative error, over all runs of the cell, at which the run ends early.
    pub(super) enough: f64,
    /// Whether sequential I/O continues where the last run of the cell ended.
    pub(super) continues_region: bool,
}

/// Duration and failure of a run.
pub(super) struct Spent {
    /// Time from the start to the end of the run.
    pub(super) elapsed_ns: u64,
    /// I/O error that ended the run early.
    pub(super) failure: Option<IoFailure>,
}

/// One cell of a grid, measured for a fixed time.
#[derive(Debug, Clone)]
pub struct CellRun {
    /// Measurements of the cell.
    pub record: CellRecord,
    /// Time from the start to the end of the run, ramp included, in nanoseconds.
    pub elapsed_ns: u64,
    /// I/O error that ended the run early.
    pub failure: Option<IoFailure>,
}

/// Measures one depth of a job for a fixed time, as a grid does, without an early end.
///
/// # Errors
/// Returns an error if the run has no result.
pub fn measure_cell(
    driver: &mut StudyDriver<'_>,
    job: &Job,
    iodepth: u32,
    (ramp_ns, runtime_ns): (u64, u64),
    log: &mut CurveLog,
) -> Result<CellRun, RunError> {
    let mut record = CellRecord::new(job.numjobs, iodepth);
    let effort = CellRunLength {
        ramp_ns,
        least_ns: runtime_ns,
        most_ns: runtime_ns,
        enough: 0.0,
        continues_region: false,
    };
    let spent = measure(
        driver,
        job,
        &mut record,
        (effort, RunPurpose::GridCell),
        log,
    )?;
    Ok(CellRun {
        record,
        elapsed_ns: spent.elapsed_ns,
        failure: spent.failure,
    })
}

/// Runs a cell once more and adds the measurements to its record.
pub(super) fn measure(
    driver: &mut StudyDriver<'_>,
    job: &Job,
    record: &mut CellRecord,
    (effort, purpose): (CellRunLength, RunPurpose),
    log: &mut CurveLog,
) -> Result<Spent, RunError> {
    let run = RepeatableRun {
        plan: &cell_plan(job, record, effort),
        purpose,
        name: log.name_of(record),
    };
    let most_ns = effort.ramp_ns + effort.most_ns;
    let (result, rule) = driver.run_repeatable(
        &run,
        |driver| {
            driver.emit(&StudyEvent::CellStarted {
                jobs: record.jobs,
                iodepth: record.iodepth,
                most_ns,
            });
            StopWhenSure {
                samples: record.samples.clone(),
                taken: 0,
                next_look: 0,
                effort,
            }
        },
        |result| log.take_run(result),
    )?;
    record.samples = rule.samples;
    record.take(&found(&result));
    Ok(Spent {
        elapsed_ns: elapsed_ns(&result).unwrap_or(most_ns),
        failure: first_failure(&result),
    })
}

/// Returns the time of a run's slowest worker.
pub(super) fn elapsed_ns(result: &RunResult) -> Option<u64> {
    let workers = result.workers.iter();
    workers.map(|worker| worker.elapsed_ns).max()
}

/// Returns the record of a run made outside the search, from which a search can resume. `None` if
/// the run has no I/Os.
pub fn recorded(result: &RunResult) -> Option<CellRecord> {
    let job = result.plan.jobs.first()?;
    let mut record = CellRecord::new(job.numjobs, job.io.iodepth);
    for interval in result.intervals.iter().filter(|interval| !interval.ramp) {
        let ios: u64 = Direction::ALL
            .iter()
            .map(|direction| interval.directions[*direction].ios)
            .sum();
        // Skips the last interval if the end of the run shortened it.
        if interval.length_ns >= LOOK_NS {
            let per_second = ios as f64 * 1e9 / interval.length_ns as f64;
            record.samples.push(per_second);
        }
    }
    record.take(&found(result));
    (record.found.ios > 0).then_some(record)
}

pub(super) fn cell_plan(job: &Job, record: &CellRecord, effort: CellRunLength) -> Plan {
    let mut job = job.clone();
    job.numjobs = record.jobs;
    job.io.iodepth = record.iodepth;
    job.schedule.time_based = true;
    job.schedule.ramp_time_ns = effort.ramp_ns;
    job.schedule.runtime_ns = effort.most_ns;
    let milliseconds = |ns: u64| format!("{}ms", ns / 1_000_000);
    record_option(&mut job, "numjobs", record.jobs.to_string());
    record_option(&mut job, "iodepth", record.iodepth.to_string());
    record_option(&mut job, "time_based", String::new());
    record_option(&mut job, "ramp_time", milliseconds(effort.ramp_ns));
    record_option(&mut job, "runtime", milliseconds(effort.most_ns));
    if effort.continues_region {
        continue_behind(&mut job, record, effort);
    }
    Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    }
}

/// Moves the start of a sequential run to the end of the cell's last run, as in one long run. The
/// start of a target does not represent all of it, and a cache may hold the data read last. The job
/// keeps its region if the run would not fit behind.
fn continue_behind(job: &mut Job, record: &CellRecord, effort: CellRunLength) {
    let (Some(BytesOrPercent::Bytes(size)), BytesOrPercent::Bytes(offset)) =
        (job.files.size, job.files.offset)
    else {
        return;
    };
    let workload = &job.workload;
    let plain = !workload.rw.random
        && workload.sequencer.skip_bytes == 0
        && workload.zones.is_none()
        && workload.number_ios.is_none();
    let files = &job.files;
    let one_file = files.filenames.len() == 1 && files.nrfiles == 1 && !files.file_append;
    let whole = files.io_size.is_none() && files.filesize.is_none() && job.verify.is_none();
    if !(plain && one_file && whole && job.replay.is_none()) || record.found.measured_ns == 0 {
        return;
    }
    // Each clone reads or writes the whole region.
    let bytes = record.found.bytes / u64::from(record.jobs.max(1));
    let begin = bytes / GRAIN_BYTES * GRAIN_BYTES;
    let run_ns = (effort.ramp_ns + effort.most_ns) as f64;
    let needed = 2.0 * bytes as f64 * run_ns / record.found.measured_ns as f64;
    if begin == 0 || begin as f64 + needed > size as f64 {
        return;
    }
    // `given` stays unchanged: the user did not request this region.
    job.files.offset = BytesOrPercent::Bytes(offset + begin);
    job.files.size = Some(BytesOrPercent::Bytes(size - begin));
}

/// Sets an option in the record of given options, which must describe the job that runs.
pub(crate) fn record_option(job: &mut Job, name: &str, value: String) {
    match job.given.iter_mut().find(|option| option.name == name) {
        Some(option) => option.value = value,
        None => job.given.push(GivenOption {
            name: name.to_owned(),
            value,
        }),
    }
}

/// Whether a page cache served reads of a run.
pub(super) fn has_cached_reads(result: &RunResult) -> bool {
    let mut cached = result.verdicts.iter().filter_map(Verdict::cached_direction);
    cached.any(|direction| direction == Direction::Read)
}

/// Adds up all workers of a run.
fn found(result: &RunResult) -> CellTotals {
    let mut found = CellTotals {
        slots: SlotTime::from_run(result),
        has_cached_reads: has_cached_reads(result),
        ..CellTotals::default()
    };
    for worker in &result.workers {
        for (_, stats) in worker.directions.iter() {
            found.ios += stats.total_ios;
            found.bytes += stats.io_bytes;
            found.latency.merge(&stats.lat);
        }
        found.measured_ns = found.measured_ns.max(worker.runtime_ns);
    }
    found
}

/// Takes a sample at every progress call, and ends the run when the error is small.
struct StopWhenSure {
    samples: RateSamples,
    /// Progress calls since all workers are past their ramp.
    taken: u64,
    /// Number of samples at which the error is checked next.
    next_look: usize,
    effort: CellRunLength,
}

/// Growth of the number of samples from one check of the error to the next.
const LOOK_GROWTH: f64 = 1.1;
/// Time between progress calls.
const LOOK_NS: u64 = (SAMPLE_S * 1e9) as u64;

impl StopWhenSure {
    fn sample(&mut self, progress: &RunProgress<'_>) {
        let running = |state| state == WorkerState::Running;
        if progress.workers.is_empty() || !progress.workers.iter().all(|w| running(w.state)) {
            return;
        }
        // While I/Os in flight drain at the end, the rate is meaningless.
        if self.taken * LOOK_NS >= self.effort.most_ns {
            return;
        }
        let rate: u64 = Direction::ALL.iter().map(|d| progress.rate[*d].ios).sum();
        // The first progress call also covers the end of the ramp.
        if self.taken > 0 {
            self.samples.push(rate as f64);
        }
        self.taken += 1;
    }

    /// Checks become rarer: each costs time, and many checks make an early end by chance likely.
    fn is_enough(&mut self) -> bool {
        if self.taken * LOOK_NS < self.effort.least_ns || self.samples.len() < self.next_look {
            return false;
        }
        self.next_look = (self.samples.len() as f64 * LOOK_GROWTH).ceil() as usize;
        self.samples
            .relative_error()
            .is_some_and(|error| error <= self.effort.enough)
    }
}

impl StopRule for StopWhenSure {
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
        self.sample(progress);
        match self.is_enough() {
            true => Control::Stop,
            false => Control::Continue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::ReadWriteMode;

    const GIB: u64 = 1 << 30;

    /// Returns the region of a cell's second run, after a first run of equal length moved `bytes`.
    fn region(
        bytes: u64,
        change: impl FnOnce(&mut Job),
    ) -> (BytesOrPercent, Option<BytesOrPercent>) {
        let mut job = Job::new("x");
        job.workload.rw.mode = ReadWriteMode::Read;
        job.workload.rw.random = false;
        job.files.filenames = vec!["/dev/x".into()];
        job.files.offset = BytesOrPercent::Bytes(4096);
        job.files.size = Some(BytesOrPercent::Bytes(GIB));
        change(&mut job);
        let mut record = CellRecord::new(1, 4);
        record.found.bytes = bytes;
        record.found.measured_ns = 1_000_000_000;
        let effort = CellRunLength {
            ramp_ns: 0,
            least_ns: 0,
            most_ns: 1_000_000_000,
            enough: 0.0,
            continues_region: true,
        };
        let given = job.given.clone();
        continue_behind(&mut job, &record, effort);
        assert_eq!(job.given, given, "it was not asked for that");
        (job.files.offset, job.files.size)
    }

    #[test]
    fn sequential_run_continues_where_last_run_ended() {
        let whole = (
            BytesOrPercent::Bytes(4096),
            Some(BytesOrPercent::Bytes(GIB)),
        );
        let behind = |begin: u64| {
            let size = BytesOrPercent::Bytes(GIB - begin);
            (BytesOrPercent::Bytes(4096 + begin), Some(size))
        };
        assert_eq!(region(100 << 20, |_| {}), behind(100 << 20));
        assert_eq!(region((5 << 20) + 4096, |_| {}), behind(5 << 20));
        assert_eq!(region(4096, |_| {}), whole, "nothing to go on from");
        assert_eq!(region(400 << 20, |_| {}), whole, "it would not fit in");
        assert_eq!(region(1 << 20, |job| job.workload.rw.random = true), whole);
        assert_eq!(region(1 << 20, |job| job.files.file_append = true), whole);
        assert_eq!(
            region(1 << 20, |job| job.files.io_size =
                Some(BytesOrPercent::Bytes(GIB))),
            whole
        );
    }
}
