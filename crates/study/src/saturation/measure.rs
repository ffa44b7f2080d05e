//! Running one cell until it is sure enough.

use super::Watcher;
use super::cell::{Found, Record};
use super::series::{SAMPLE_S, Samples};
use crate::stopped::{self, MOST_REPEATS, stopped_ns};
use iosonde_job::plan::{Direction, Extent, GivenOption, Job, Plan};
use iosonde_result::interval::Interval;
use iosonde_result::littles_law::SlotTime;
use iosonde_result::observer::{Control, Observer, Progress, WorkerState};
use iosonde_result::run::{Event, IoFailure, RunResult};
use iosonde_result::session::{RunError, Session};

/// Runs of a cell begin at a multiple of this.
const GRAIN_BYTES: u64 = 1 << 20;

/// How long a run may be, and when it may end before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Not measured, at the start.
    pub(super) ramp_ns: u64,
    /// Measured at least.
    pub(super) least_ns: u64,
    /// Measured at most.
    pub(super) most_ns: u64,
    /// Relative error at which it ends in between, all runs of the cell together.
    pub(super) enough: f64,
    /// Whether sequential I/O goes on where the last run of the cell ended.
    pub(super) goes_on: bool,
}

/// What a run cost, and what ended it.
pub(super) struct Spent {
    /// From its start to its end.
    pub(super) elapsed_ns: u64,
    /// The error that ended it early.
    pub(super) failure: Option<IoFailure>,
}

/// One cell of a grid, measured for a given time.
#[derive(Debug, Clone)]
pub struct CellRun {
    /// What was found.
    pub record: Record,
    /// From its start to its end, ramp included, in nanoseconds.
    pub elapsed_ns: u64,
    /// The error that ended it early.
    pub failure: Option<IoFailure>,
}

/// Measures one depth of a job, as a grid does: for a given time, however sure it is before.
///
/// # Errors
/// When there is no result.
pub fn measure_cell(
    session: &mut dyn Session,
    job: &Job,
    iodepth: u32,
    (ramp_ns, runtime_ns): (u64, u64),
    watcher: &mut dyn Watcher,
) -> Result<CellRun, RunError> {
    let mut record = Record::new(job.numjobs, iodepth);
    let effort = Effort {
        ramp_ns,
        least_ns: runtime_ns,
        most_ns: runtime_ns,
        enough: 0.0,
        goes_on: false,
    };
    let spent = measure(session, job, &mut record, effort, watcher)?;
    Ok(CellRun {
        record,
        elapsed_ns: spent.elapsed_ns,
        failure: spent.failure,
    })
}

/// Runs a cell once more and adds what it finds to its record.
pub(super) fn measure(
    session: &mut dyn Session,
    job: &Job,
    record: &mut Record,
    effort: Effort,
    watcher: &mut dyn Watcher,
) -> Result<Spent, RunError> {
    let plan = plan(job, record, effort);
    let mut repeats = MOST_REPEATS;
    let result = loop {
        watcher.begin(record.jobs, record.iodepth, effort.ramp_ns + effort.most_ns);
        let mut samples = record.samples.clone();
        let mut observer = UntilSure {
            samples: &mut samples,
            taken: 0,
            next_look: 0,
            ended: false,
            ends_at_stop: repeats > 0,
            effort,
            watcher,
        };
        let result = session.run(&plan, &mut observer)?;
        watcher.ended(&result);
        let is_again = tell_stop(&result, record, repeats > 0, watcher);
        if !is_again {
            record.samples = samples;
            break result;
        }
        repeats -= 1;
    };
    record.take(&found(&result));
    watcher.cell(&record.cell());
    let failure = result
        .workers
        .iter()
        .find_map(|worker| worker.error.clone());
    let elapsed = result.workers.iter().map(|worker| worker.elapsed_ns).max();
    Ok(Spent {
        elapsed_ns: elapsed.unwrap_or(effort.ramp_ns + effort.most_ns),
        failure,
    })
}

/// Tells of a stop of the process in a run. Whether the run is to be repeated, where it may be.
pub(super) fn tell_stop(
    result: &RunResult,
    record: &Record,
    may_repeat: bool,
    watcher: &mut dyn Watcher,
) -> bool {
    let stopped_ns = stopped_ns(result);
    let is_again = stopped_ns > 0 && may_repeat && !watcher.is_interrupted();
    if stopped_ns > 0 {
        let cell = format!("depth {}", record.iodepth);
        watcher.stopped(stopped::note(&cell, stopped_ns, is_again));
    }
    is_again
}

/// What a run of something else tells about its cell, for a search to [go on](super::go_on) from; `None` when that is
/// nothing.
pub fn recorded(result: &RunResult) -> Option<Record> {
    let job = result.plan.jobs.first()?;
    let mut record = Record::new(job.numjobs, job.io.iodepth);
    for interval in result.intervals.iter().filter(|interval| !interval.ramp) {
        let ios: u64 = Direction::ALL
            .iter()
            .map(|direction| interval.directions[*direction].ios)
            .sum();
        // The last one is cut off.
        if interval.length_ns >= LOOK_NS {
            let per_second = ios as f64 * 1e9 / interval.length_ns as f64;
            record.samples.push(per_second);
        }
    }
    record.take(&found(result));
    (record.found.ios > 0).then_some(record)
}

pub(super) fn plan(job: &Job, record: &Record, effort: Effort) -> Plan {
    let mut job = job.clone();
    job.numjobs = record.jobs;
    job.io.iodepth = record.iodepth;
    job.schedule.time_based = true;
    job.schedule.ramp_time_ns = effort.ramp_ns;
    job.schedule.runtime_ns = effort.most_ns;
    let milliseconds = |ns: u64| format!("{}ms", ns / 1_000_000);
    give(&mut job, "numjobs", record.jobs.to_string());
    give(&mut job, "iodepth", record.iodepth.to_string());
    give(&mut job, "time_based", String::new());
    give(&mut job, "ramp_time", milliseconds(effort.ramp_ns));
    give(&mut job, "runtime", milliseconds(effort.most_ns));
    if effort.goes_on {
        go_on_behind(&mut job, record, effort);
    }
    Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    }
}

/// A run of sequential I/O goes on where the last one of its cell ended, as one long run would: what lies at the start is not all
/// there is where objects or stripes lie on members by chance, and a cache may hold what was read last. Within the region that
/// the job has, as far as the run fits in behind.
fn go_on_behind(job: &mut Job, record: &Record, effort: Effort) {
    let (Some(Extent::Bytes(size)), Extent::Bytes(offset)) = (job.files.size, job.files.offset)
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
    // Each clone goes through the region by itself.
    let bytes = record.found.bytes / u64::from(record.jobs.max(1));
    let begin = bytes / GRAIN_BYTES * GRAIN_BYTES;
    let run_ns = (effort.ramp_ns + effort.most_ns) as f64;
    let needed = 2.0 * bytes as f64 * run_ns / record.found.measured_ns as f64;
    if begin == 0 || begin as f64 + needed > size as f64 {
        return;
    }
    // As where a study keeps a job to its target, that is not what the job was asked.
    job.files.offset = Extent::Bytes(offset + begin);
    job.files.size = Some(Extent::Bytes(size - begin));
}

/// The record of what was given must say what is run.
pub(crate) fn give(job: &mut Job, name: &str, value: String) {
    match job.given.iter_mut().find(|option| option.name == name) {
        Some(option) => option.value = value,
        None => job.given.push(GivenOption {
            name: name.to_owned(),
            value,
        }),
    }
}

/// All workers of a run together.
fn found(result: &RunResult) -> Found {
    let mut found = Found {
        slots: SlotTime::of(result),
        ..Found::default()
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

/// Takes a sample at every look at the workers, and ends the run when it is sure enough.
struct UntilSure<'a> {
    samples: &'a mut Samples,
    /// Looks since all workers are being measured.
    taken: u64,
    /// Samples of the cell at which it is next asked whether they are enough.
    next_look: usize,
    /// No more I/O is being started.
    ended: bool,
    /// Whether a run in which the process was stopped ends, as it is measured again.
    ends_at_stop: bool,
    effort: Effort,
    watcher: &'a mut dyn Watcher,
}

/// Growth of the samples from one question whether they are enough to the next.
const LOOK_GROWTH: f64 = 1.1;
/// Looks come so often.
const LOOK_NS: u64 = (SAMPLE_S * 1e9) as u64;

impl UntilSure<'_> {
    fn sample(&mut self, progress: &Progress<'_>) {
        let running = |state| state == WorkerState::Running;
        if progress.workers.is_empty() || !progress.workers.iter().all(|w| running(w.state)) {
            return;
        }
        // What is in flight at the end is waited for, at a rate that tells nothing.
        if self.ended || self.taken * LOOK_NS >= self.effort.most_ns {
            return;
        }
        let rate: u64 = Direction::ALL.iter().map(|d| progress.rate[*d].ios).sum();
        // The first look saw the end of the ramp too.
        if self.taken > 0 {
            self.samples.push(rate as f64);
        }
        self.taken += 1;
    }

    /// Asked ever more rarely: each look costs time, and many looks end a cell by chance.
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

impl Observer for UntilSure<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        self.watcher.progress(progress);
        self.sample(progress);
        self.ended |= self.watcher.is_interrupted() || self.is_enough();
        if self.ended {
            Control::Stop
        } else {
            Control::Continue
        }
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.ended |= self.ends_at_stop && interval.stopped_ns > 0;
        if self.ended {
            Control::Stop
        } else {
            Control::Continue
        }
    }

    fn event(&mut self, _event: &Event) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::Mode;

    const GIB: u64 = 1 << 30;

    /// The region of a cell's second run, when the first has moved so many bytes in as much time as the next is to take.
    fn region(bytes: u64, change: impl FnOnce(&mut Job)) -> (Extent, Option<Extent>) {
        let mut job = Job::new("x");
        job.workload.rw.mode = Mode::Read;
        job.workload.rw.random = false;
        job.files.filenames = vec!["/dev/x".into()];
        job.files.offset = Extent::Bytes(4096);
        job.files.size = Some(Extent::Bytes(GIB));
        change(&mut job);
        let mut record = Record::new(1, 4);
        record.found.bytes = bytes;
        record.found.measured_ns = 1_000_000_000;
        let effort = Effort {
            ramp_ns: 0,
            least_ns: 0,
            most_ns: 1_000_000_000,
            enough: 0.0,
            goes_on: true,
        };
        let given = job.given.clone();
        go_on_behind(&mut job, &record, effort);
        assert_eq!(job.given, given, "it was not asked for that");
        (job.files.offset, job.files.size)
    }

    #[test]
    fn sequential_runs_go_on_where_the_last_one_ended() {
        let whole = (Extent::Bytes(4096), Some(Extent::Bytes(GIB)));
        let behind = |begin: u64| {
            let size = Extent::Bytes(GIB - begin);
            (Extent::Bytes(4096 + begin), Some(size))
        };
        assert_eq!(region(100 << 20, |_| {}), behind(100 << 20));
        assert_eq!(region((5 << 20) + 4096, |_| {}), behind(5 << 20));
        assert_eq!(region(4096, |_| {}), whole, "nothing to go on from");
        assert_eq!(region(400 << 20, |_| {}), whole, "it would not fit in");
        assert_eq!(region(1 << 20, |job| job.workload.rw.random = true), whole);
        assert_eq!(region(1 << 20, |job| job.files.file_append = true), whole);
        assert_eq!(
            region(1 << 20, |job| job.files.io_size = Some(Extent::Bytes(GIB))),
            whole
        );
    }
}
