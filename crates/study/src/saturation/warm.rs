//! Running one cell until its caches are warm, and then long enough.

use super::Watcher;
use super::cell::{Found, Record, Warmup};
use super::measure::{CellRun, Effort, plan, tell_stop};
use crate::warmup::truncation;
use iosonde_job::plan::{Direction, Job, Plan};
use iosonde_result::histogram::{Histogram, lowest, middle};
use iosonde_result::interval::Interval;
use iosonde_result::littles_law::SlotTime;
use iosonde_result::observer::{Control, Observer, Progress};
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use iosonde_result::stats::{LatencyStats, Moments};
use std::borrow::Cow;

/// How many intervals the longest run has, as far as they are not too short or too long.
const INTERVALS: u64 = 600;
const SHORTEST_NS: u64 = 100_000_000;
const LONGEST_NS: u64 = 1_000_000_000;
/// The warm-up is looked for whenever so many intervals are complete.
const LOOK_EVERY: usize = 5;

/// How long a cell runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmTimes {
    /// Measured after the warm-up, in nanoseconds.
    pub runtime_ns: u64,
    /// Most that is waited for its end.
    pub most_warmup_ns: u64,
    /// No cache is warm before so many I/Os: those that it takes to read the working set once.
    pub least_ios: u64,
}

/// Measures one depth of a job after a warm-up, whose end is found in the series of its latencies ([`truncation`]).
///
/// # Errors
/// When there is no result.
pub fn measure_warm_cell(
    session: &mut dyn Session,
    job: &Job,
    iodepth: u32,
    times: WarmTimes,
    watcher: &mut dyn Watcher,
) -> Result<CellRun, RunError> {
    let mut record = Record::new(job.numjobs, iodepth);
    let most_ns = times.runtime_ns + times.most_warmup_ns;
    watcher.begin(record.jobs, iodepth, most_ns);
    let effort = Effort {
        ramp_ns: 0,
        least_ns: most_ns,
        most_ns,
        enough: 0.0,
        goes_on: false,
    };
    let plan = plan(job, &record, effort);
    let mut observer = UntilWarm {
        times,
        slices: Vec::new(),
        ended: false,
        watcher,
    };
    let result = session.run(&plan, &mut observer)?;
    take(&mut record, &result, times);
    watcher.ended(&result);
    tell_stop(&result, &record, false, watcher);
    watcher.cell(&record.cell());
    let elapsed = result.workers.iter().map(|worker| worker.elapsed_ns).max();
    Ok(CellRun {
        record,
        elapsed_ns: elapsed.unwrap_or(most_ns),
        failure: result
            .workers
            .iter()
            .find_map(|worker| worker.error.clone()),
    })
}

/// What matters of an interval.
#[derive(Debug, Clone, Copy)]
struct Slice {
    length_ns: u64,
    ios: u64,
    bytes: u64,
}

impl Slice {
    fn of(interval: &Interval) -> Slice {
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

/// Slices that belong to the warm-up, if it has ended.
fn warmup(slices: &[Slice], least_ios: u64) -> Option<usize> {
    let ios: u64 = slices.iter().map(|slice| slice.ios).sum();
    // In closed loop the latency goes with the time for each I/O.
    let times: Vec<f64> = slices
        .iter()
        .map(|slice| slice.length_ns as f64 / slice.ios.max(1) as f64)
        .collect();
    truncation(&times).filter(|_| ios >= least_ios)
}

/// Adds to a record what came after the warm-up.
fn take(record: &mut Record, result: &RunResult, times: WarmTimes) {
    let usual_ns = result
        .intervals
        .iter()
        .map(|interval| interval.length_ns)
        .max();
    // The last one is cut off.
    let whole = |interval: &Cow<'_, Interval>| 2 * interval.length_ns > usual_ns.unwrap_or(0);
    let intervals = || result.intervals.iter().filter(whole);
    let slices: Vec<Slice> = intervals().map(|interval| Slice::of(&interval)).collect();
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
    record.take(&Found {
        ios: rest.iter().map(|slice| slice.ios).sum(),
        bytes: rest.iter().map(|slice| slice.bytes).sum(),
        measured_ns: rest_ns,
        latency: LatencyStats {
            moments,
            histogram: Some(latency),
        },
        slots: SlotTime::of_part(result, rest_ns, &moments),
    });
}

/// As near as buckets tell, which are at most 1 % wide.
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

/// Ends the run when the caches are warm and it has gone on for long enough.
struct UntilWarm<'a> {
    times: WarmTimes,
    slices: Vec<Slice>,
    ended: bool,
    watcher: &'a mut dyn Watcher,
}

impl UntilWarm<'_> {
    fn is_enough(&self) -> bool {
        let Some(cut) = warmup(&self.slices, self.times.least_ios) else {
            return false;
        };
        let measured_ns: u64 = self.slices[cut..].iter().map(|slice| slice.length_ns).sum();
        measured_ns >= self.times.runtime_ns
    }

    fn control(&mut self) -> Control {
        self.ended |= self.watcher.is_interrupted();
        if self.ended {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}

impl Observer for UntilWarm<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        self.watcher.progress(progress);
        self.control()
    }

    fn interval_ns(&self, _plan: &Plan) -> u64 {
        let most_ns = self.times.runtime_ns + self.times.most_warmup_ns;
        (most_ns / INTERVALS).clamp(SHORTEST_NS, LONGEST_NS)
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.slices.push(Slice::of(interval));
        if self.slices.len().is_multiple_of(LOOK_EVERY) {
            self.ended |= self.is_enough();
        }
        self.control()
    }
}
