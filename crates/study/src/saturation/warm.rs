//! Measurement of one cell until its caches are warm, and for a fixed time after that.

use super::curve_log::CurveLog;
use super::measure::{CellRun, CellRunLength, cell_plan, elapsed_ns, has_cached_reads};
use crate::driver::{StudyDriver, first_failure};
use crate::event::StudyEvent;
use crate::figures::cell::{CellRecord, CellTotals, Warmup};
use crate::run_hook::RunPurpose;
use crate::stop_rule::StopRule;
use crate::warmup::truncation;
use iosonde_job::plan::{Direction, Job, Plan};
use iosonde_result::histogram::{Histogram, lowest, middle};
use iosonde_result::interval::Interval;
use iosonde_result::littles_law::SlotTime;
use iosonde_result::observer::Control;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::stats::{LatencyStats, Moments};
use std::borrow::Cow;

/// Number of intervals of the longest run, within the limits of the length of an interval.
const INTERVALS: u64 = 600;
const SHORTEST_NS: u64 = 100_000_000;
const LONGEST_NS: u64 = 1_000_000_000;
/// Number of intervals between two searches for the end of the warm-up.
const LOOK_EVERY: usize = 5;

/// Durations of the measurement of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WarmTimes {
    /// Measured time after the warm-up, in nanoseconds.
    pub(crate) runtime_ns: u64,
    /// Longest warm-up in nanoseconds.
    pub(crate) most_warmup_ns: u64,
    /// I/Os that read the working set once. No cache is warm before.
    pub(crate) least_ios: u64,
}

/// Measures one depth of a job after its warm-up, whose end [`truncation`] finds in its latencies.
///
/// # Errors
/// Returns an error if the run has no result.
pub(crate) fn measure_warm_cell(
    driver: &mut StudyDriver<'_>,
    job: &Job,
    iodepth: u32,
    times: WarmTimes,
    log: &mut CurveLog,
) -> Result<CellRun, RunError> {
    let mut record = CellRecord::new(job.numjobs, iodepth);
    let most_ns = times.runtime_ns + times.most_warmup_ns;
    driver.emit(&StudyEvent::CellStarted {
        jobs: record.jobs,
        iodepth,
        most_ns,
    });
    let effort = CellRunLength {
        ramp_ns: 0,
        least_ns: most_ns,
        most_ns,
        enough: 0.0,
        continues_region: false,
    };
    let plan = cell_plan(job, &record, effort);
    let mut rule = StopWhenWarm {
        times,
        slices: Vec::new(),
    };
    let result = driver.run(&plan, RunPurpose::GridCell, &mut rule)?;
    add_warm_measurements(&mut record, &result, times);
    log.take_run(&result);
    driver.note_stop(&result, log.name_of(&record).as_deref(), false);
    Ok(CellRun {
        record,
        elapsed_ns: elapsed_ns(&result).unwrap_or(most_ns),
        failure: first_failure(&result),
    })
}

/// Totals of an interval.
#[derive(Debug, Clone, Copy)]
struct Slice {
    length_ns: u64,
    ios: u64,
    bytes: u64,
}

impl Slice {
    fn from_interval(interval: &Interval) -> Slice {
        let sum = |count: fn(&iosonde_result::interval::IntervalCounts) -> u64| {
            Direction::ALL
                .iter()
                .map(|d| count(&interval.directions[*d]))
                .sum()
        };
        Slice {
            length_ns: interval.length_ns,
            ios: sum(|counts| counts.ios),
            bytes: sum(|counts| counts.bytes),
        }
    }
}

/// Returns the number of slices in the warm-up. `None` if the warm-up has not ended.
fn warmup(slices: &[Slice], least_ios: u64) -> Option<usize> {
    let ios: u64 = slices.iter().map(|slice| slice.ios).sum();
    // In closed loop, the latency is proportional to the time per I/O.
    let times: Vec<f64> = slices
        .iter()
        .map(|slice| slice.length_ns as f64 / slice.ios.max(1) as f64)
        .collect();
    truncation(&times).filter(|_| ios >= least_ios)
}

/// Adds the measurements after the warm-up to the record.
fn add_warm_measurements(record: &mut CellRecord, result: &RunResult, times: WarmTimes) {
    let usual_ns = result
        .intervals
        .iter()
        .map(|interval| interval.length_ns)
        .max();
    // Leaves out the last interval, which the end of the run shortened.
    let whole = |interval: &Cow<'_, Interval>| 2 * interval.length_ns > usual_ns.unwrap_or(0);
    let intervals = || result.intervals.iter().filter(whole);
    let slices: Vec<Slice> = intervals()
        .map(|interval| Slice::from_interval(&interval))
        .collect();
    let ended = warmup(&slices, times.least_ios);
    let cut = ended.unwrap_or(slices.len() / 2);
    let length_ns = |slices: &[Slice]| slices.iter().map(|slice| slice.length_ns).sum::<u64>();
    record.warmup = Some(Warmup {
        length_ns: length_ns(&slices[..cut]),
        complete: ended.is_some(),
    });
    let mut latency = Histogram::default();
    intervals()
        .skip(cut)
        .for_each(|interval| latency.merge(&interval.latency));
    for slice in &slices[cut..] {
        record
            .samples
            .push(slice.ios as f64 * 1e9 / slice.length_ns as f64);
    }
    let rest = &slices[cut..];
    let (rest_ns, moments) = (length_ns(rest), moments(&latency));
    record.take(&CellTotals {
        ios: rest.iter().map(|slice| slice.ios).sum(),
        bytes: rest.iter().map(|slice| slice.bytes).sum(),
        measured_ns: rest_ns,
        latency: LatencyStats {
            moments,
            histogram: Some(latency),
        },
        slots: SlotTime::from_part(result, rest_ns, &moments),
        has_cached_reads: has_cached_reads(result),
    });
}

/// Moments from the buckets of a histogram, which are at most 1 % wide.
fn moments(histogram: &Histogram) -> Moments {
    let mut moments = Moments::default();
    for (bucket, count) in histogram.buckets() {
        moments.merge(&Moments {
            count,
            min: lowest(bucket) as f64,
            max: middle(bucket) as f64,
            mean: middle(bucket) as f64,
            m2: 0.0,
        });
    }
    moments
}

/// Ends the run when it has lasted long enough after the warm-up.
struct StopWhenWarm {
    times: WarmTimes,
    slices: Vec<Slice>,
}

impl StopWhenWarm {
    fn is_enough(&self) -> bool {
        let Some(cut) = warmup(&self.slices, self.times.least_ios) else {
            return false;
        };
        let measured_ns: u64 = self.slices[cut..].iter().map(|slice| slice.length_ns).sum();
        measured_ns >= self.times.runtime_ns
    }
}

impl StopRule for StopWhenWarm {
    fn interval_ns(&self, _plan: &Plan) -> u64 {
        let most_ns = self.times.runtime_ns + self.times.most_warmup_ns;
        (most_ns / INTERVALS).clamp(SHORTEST_NS, LONGEST_NS)
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.slices.push(Slice::from_interval(interval));
        match self.slices.len().is_multiple_of(LOOK_EVERY) && self.is_enough() {
            true => Control::Stop,
            false => Control::Continue,
        }
    }
}
