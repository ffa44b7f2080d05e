//! Aggregates workers: one [`Entry`] per job or reporting group, one [`Group`] per status group.
//!
//! The sums follow fio. Bytes, counts and CPU time add up, latencies are merged, and the runtime is
//! the longest. The *samples* of bandwidth and IOPS add up as well (minimum to minimum, mean to
//! mean), because members run in parallel.

use super::number::Units;
use crate::run::{CpuUse, RunResult, SteadyStateResult, SyncStats, WorkerResult};
use crate::run::{DirectionStats, IoFailure, PriorityLatency};
use crate::stats::Moments;
use iosonde_job::plan::{Direction, IoPriority, Job, Measure, PerDirection, UnifiedReporting};

/// The jobs of one run, as fio's formats show them.
#[derive(Debug, Clone)]
pub struct Report<'a> {
    /// Entries in plan order.
    pub entries: Vec<Entry<'a>>,
    /// Status groups ("Run status group 0", ...), with each number up to the largest, as in fio.
    pub groups: Vec<Group>,
}

/// A line of terse output or member of JSON's `jobs`: a worker, or a sum with `group_reporting`.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// Job of the first member, which provides name and description.
    pub job: &'a Job,
    /// Job of the last member, which provides the listed options.
    pub last: &'a Job,
    /// Number of members.
    pub members: u32,
    /// Reporting group.
    pub groupid: u32,
    /// Thread id of the first member.
    pub tid: u32,
    /// errno of the first member that failed or tolerated errors. 0 if there is none.
    pub errno: i32,
    /// Error that ended a worker.
    pub failure: Option<IoFailure>,
    /// Reads, writes and trims. With `unified_rw_reporting=mixed`, `read` holds the sum.
    pub directions: PerDirection<DirectionStats>,
    /// Sum of all directions, with `unified_rw_reporting=both`.
    pub mixed: Option<DirectionStats>,
    /// fsync, fdatasync and sync_file_range.
    pub sync: SyncStats,
    /// Sum of the members' CPU use.
    pub cpu: CpuUse,
    /// Sum of the members' runtimes in milliseconds, to which CPU use is relative.
    pub job_runtime_ms: u64,
    /// I/Os by depth at submission.
    pub iodepth_level: [u64; 7],
    /// Submissions by batch size.
    pub iodepth_submit: [u64; 7],
    /// Reaps by batch size.
    pub iodepth_complete: [u64; 7],
    /// Latency depth of the last member.
    pub latency_depth: u32,
    /// `steadystate` result of the last member.
    pub steady_state: Option<SteadyStateResult>,
    /// Number of tolerated errors.
    pub total_errors: u64,
    /// errno of the first error that the last member tolerated.
    pub first_error: i32,
}

/// A status group: the sum of its entries.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Number of the group.
    pub groupid: u32,
    /// `unified_rw_reporting` of its jobs.
    pub unified: UnifiedReporting,
    /// Format of sizes and rates, from the last entry.
    pub units: Units,
    /// Sums by direction. `None` for directions that did not run.
    pub directions: PerDirection<Option<GroupDirection>>,
}

/// One direction of a status group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupDirection {
    /// Bytes moved.
    pub io_bytes: u64,
    /// Total bandwidth: bytes divided by the longest runtime, in bytes per second.
    pub aggregate_bytes_per_second: u64,
    /// Bandwidth of the slowest and the fastest entry, in bytes per second.
    pub bytes_per_second: (u64, u64),
    /// Shortest and longest runtime in milliseconds.
    pub runtime_ms: (u64, u64),
}

/// Returns a runtime in whole milliseconds, rounded up as in fio, so that it is at least one.
pub fn runtime_ms(runtime_ns: u64) -> u64 {
    runtime_ns.div_ceil(1_000_000)
}

/// Returns a rate per second, rounded down. The runtime is in milliseconds. It is 0 if nothing ran.
pub fn per_second(amount: u64, runtime_ms: u64) -> u64 {
    match runtime_ms {
        0 => 0,
        _ => (u128::from(amount) * 1000 / u128::from(runtime_ms)) as u64,
    }
}

impl<'a> Report<'a> {
    /// Aggregates a run as the jobs' `group_reporting`, `unified_rw_reporting` and `stats` demand.
    pub fn of(result: &'a RunResult) -> Report<'a> {
        let mut entries: Vec<Entry<'a>> = Vec::new();
        for worker in &result.workers {
            let job = &result.plan.jobs[worker.job];
            if !job.measure.stats {
                continue;
            }
            match entries.last_mut() {
                Some(entry) if job.measure.group_reporting && entry.groupid == worker.groupid => {
                    entry.add(&worker.as_fio_counts(), job);
                }
                _ => entries.push(Entry::of(&worker.as_fio_counts(), job)),
            }
        }
        for entry in &mut entries {
            entry.unify();
        }
        let groups = groups(result, &entries);
        Report { entries, groups }
    }

    /// Returns the group of `entry`.
    pub fn group(&self, entry: &Entry<'_>) -> &Group {
        &self.groups[entry.groupid as usize]
    }
}

impl<'a> Entry<'a> {
    fn of(worker: &WorkerResult, job: &'a Job) -> Entry<'a> {
        let mut entry = Entry {
            job,
            last: job,
            members: 0,
            groupid: worker.groupid,
            tid: worker.tid,
            errno: 0,
            failure: None,
            directions: PerDirection::default(),
            mixed: None,
            sync: SyncStats::default(),
            cpu: CpuUse::default(),
            job_runtime_ms: 0,
            iodepth_level: [0; 7],
            iodepth_submit: [0; 7],
            iodepth_complete: [0; 7],
            latency_depth: 0,
            steady_state: None,
            total_errors: 0,
            first_error: 0,
        };
        entry.add(worker, job);
        entry
    }

    fn add(&mut self, worker: &WorkerResult, job: &'a Job) {
        self.members += 1;
        self.last = job;
        for direction in Direction::ALL {
            let (sum, more) = (
                &mut self.directions[direction],
                &worker.directions[direction],
            );
            add_direction(sum, more);
            if more.by_priority.is_empty() {
                add_priority(&mut sum.by_priority, &of_the_jobs_priority(job, more));
            }
        }
        self.sync.total_ios += worker.sync.total_ios;
        self.sync.other_than_fsync += worker.sync.other_than_fsync;
        self.sync.lat.merge(&worker.sync.lat);
        add_cpu(&mut self.cpu, &worker.cpu);
        self.job_runtime_ms += worker.runtime_ns / 1_000_000;
        add_each(&mut self.iodepth_level, &worker.iodepth_level);
        add_each(&mut self.iodepth_submit, &worker.iodepth_submit);
        add_each(&mut self.iodepth_complete, &worker.iodepth_complete);
        self.latency_depth = worker.latency_depth;
        self.steady_state = worker.steady_state.clone();
        self.total_errors += worker.total_errors;
        self.first_error = worker.first_error;
        if self.errno == 0 {
            self.failure = worker.error.clone();
            self.errno = match &worker.error {
                Some(failure) => failure.errno,
                None if continues_on_error(job) => worker.first_error,
                None => 0,
            };
        }
    }

    /// Sums the directions if the job demands it.
    fn unify(&mut self) {
        match self.job.measure.unified {
            UnifiedReporting::None => {}
            UnifiedReporting::Both => self.mixed = Some(self.sum_of_directions()),
            UnifiedReporting::Mixed => {
                self.directions = PerDirection {
                    read: self.sum_of_directions(),
                    ..PerDirection::default()
                };
            }
        }
    }

    fn sum_of_directions(&self) -> DirectionStats {
        let mut sum = DirectionStats::default();
        for (_, direction) in self.directions.iter() {
            add_direction(&mut sum, direction);
        }
        sum
    }

    /// Returns whether all directions are reported as one.
    pub fn is_mixed(&self) -> bool {
        self.job.measure.unified == UnifiedReporting::Mixed
    }

    /// Returns whether the job tolerates any kind of error, so that tolerated errors are shown.
    pub fn continues_on_error(&self) -> bool {
        continues_on_error(self.job)
    }

    /// Returns the number of I/Os issued in all directions.
    pub fn total_ios(&self) -> u64 {
        self.directions.iter().map(|(_, d)| d.total_ios).sum()
    }

    /// Returns user and system time in per cent of the runtime.
    pub fn cpu_percent(&self) -> (f64, f64) {
        let percent = |ns: u64| match self.job_runtime_ms {
            0 => 0.0,
            ms => ns as f64 / (ms as f64 * 1e6) * 100.0,
        };
        (percent(self.cpu.user_ns), percent(self.cpu.system_ns))
    }
}

fn continues_on_error(job: &Job) -> bool {
    let errors = &job.errors;
    let ignores = errors.ignore.iter().any(|list| !list.is_empty());
    ignores || errors.continue_read || errors.continue_write || errors.continue_verify
}

pub(crate) fn add_each(sum: &mut [u64; 7], more: &[u64; 7]) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

pub(crate) fn add_cpu(sum: &mut CpuUse, more: &CpuUse) {
    sum.user_ns += more.user_ns;
    sum.system_ns += more.system_ns;
    sum.context_switches += more.context_switches;
    sum.major_faults += more.major_faults;
    sum.minor_faults += more.minor_faults;
}

pub(crate) fn add_direction(sum: &mut DirectionStats, more: &DirectionStats) {
    sum.io_bytes += more.io_bytes;
    sum.total_ios += more.total_ios;
    sum.short_ios += more.short_ios;
    sum.drop_ios += more.drop_ios;
    sum.runtime_ns = sum.runtime_ns.max(more.runtime_ns);
    sum.slat.merge(&more.slat);
    sum.clat.merge(&more.clat);
    if sum.started_lat.is_some() || more.started_lat.is_some() {
        // If no I/O had an intended start, both latencies are equal.
        let due = sum.started_lat.get_or_insert_with(|| sum.lat.clone());
        due.merge(more.started_lat.as_ref().unwrap_or(&more.lat));
    }
    sum.lat.merge(&more.lat);
    sum.bw = side_by_side(&sum.bw, &more.bw);
    sum.iops = side_by_side(&sum.iops, &more.iops);
    for each in &more.by_priority {
        add_priority(&mut sum.by_priority, each);
    }
}

fn add_priority(sum: &mut Vec<PriorityLatency>, more: &PriorityLatency) {
    if more.latency.moments.count == 0 {
        return;
    }
    match sum.iter_mut().find(|sum| sum.priority == more.priority) {
        Some(sum) => sum.latency.merge(&more.latency),
        None => sum.push(more.clone()),
    }
}

/// Returns all I/Os of a direction in which all I/Os had the job's priority.
fn of_the_jobs_priority(job: &Job, stats: &DirectionStats) -> PriorityLatency {
    let none = IoPriority { class: 0, level: 0 };
    PriorityLatency {
        priority: job.io.ioprio.unwrap_or(none),
        latency: if job.measure.lat_percentiles {
            stats.lat.clone()
        } else {
            stats.clat.clone()
        },
    }
}

/// Returns the priorities that fio shows: none unless the I/Os of a direction had at least two.
pub fn shown_priorities(stats: &DirectionStats) -> &[PriorityLatency] {
    match &stats.by_priority[..] {
        several @ [_, _, ..] => several,
        _ => &[],
    }
}

/// Adds the samples of two parallel members. As in fio, all moments and the counts add up.
fn side_by_side(a: &Moments, b: &Moments) -> Moments {
    Moments {
        count: a.count + b.count,
        min: a.min + b.min,
        max: a.max + b.max,
        mean: a.mean + b.mean,
        m2: a.m2 + b.m2,
    }
}

fn groups(result: &RunResult, entries: &[Entry<'_>]) -> Vec<Group> {
    let plan_groups = result.plan.jobs.iter().map(|job| job.groupid + 1);
    let entry_groups = entries.iter().map(|entry| entry.groupid + 1);
    let count = plan_groups.chain(entry_groups).max().unwrap_or(0);
    let mut groups: Vec<Group> = (0..count)
        .map(|groupid| Group {
            groupid,
            unified: UnifiedReporting::None,
            units: Units::of(&Measure::default()),
            directions: PerDirection::default(),
        })
        .collect();
    for entry in entries {
        let group = &mut groups[entry.groupid as usize];
        group.units = Units::of(&entry.job.measure);
        if entry.job.measure.unified != UnifiedReporting::None {
            group.unified = entry.job.measure.unified;
        }
        for (direction, stats) in entry.directions.iter() {
            GroupDirection::add(&mut group.directions[direction], stats);
        }
    }
    groups
}

impl GroupDirection {
    fn add(sum: &mut Option<GroupDirection>, stats: &DirectionStats) {
        let runtime = runtime_ms(stats.runtime_ns);
        if runtime == 0 {
            return;
        }
        let rate = per_second(stats.io_bytes, runtime);
        let one = GroupDirection {
            io_bytes: stats.io_bytes,
            aggregate_bytes_per_second: rate,
            bytes_per_second: (rate, rate),
            runtime_ms: (runtime, runtime),
        };
        *sum = Some(match sum.take() {
            None => one,
            Some(sum) => sum.joined(&one),
        });
    }

    /// Returns the sum of two directions. Bytes add up, and minima and maxima are those of both.
    pub fn joined(&self, other: &GroupDirection) -> GroupDirection {
        let io_bytes = self.io_bytes + other.io_bytes;
        let runtime_ms = widest(self.runtime_ms, other.runtime_ms);
        GroupDirection {
            io_bytes,
            aggregate_bytes_per_second: per_second(io_bytes, runtime_ms.1),
            bytes_per_second: widest(self.bytes_per_second, other.bytes_per_second),
            runtime_ms,
        }
    }
}

fn widest(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    (a.0.min(b.0), a.1.max(b.1))
}

impl Group {
    /// Returns the sum of all directions, for `unified_rw_reporting=both`.
    pub fn mixed(&self) -> Option<GroupDirection> {
        let directions = self.directions.iter().filter_map(|(_, d)| *d);
        directions.reduce(|a, b| a.joined(&b))
    }

    /// Returns the share of the group's bandwidth of a mean in KiB/s, in per cent. At most 100.
    pub fn share_percent(&self, direction: Option<Direction>, mean_kib: f64) -> f64 {
        let total = match direction {
            Some(direction) => self.directions[direction],
            None => self.mixed(),
        };
        match total.map(|total| total.aggregate_bytes_per_second) {
            Some(total) if total > 1024 => {
                (mean_kib.trunc() * 100.0 / (total as f64 / 1024.0)).min(100.0)
            }
            _ => 100.0,
        }
    }
}

/// Returns each count in per cent of `total`. Counts other than zero are shown as at least `least`.
pub fn shares<const N: usize>(counts: &[u64; N], total: u64, least: f64) -> [f64; N] {
    counts.map(|count| match (count, total) {
        (0, _) | (_, 0) => 0.0,
        _ => (count as f64 / total as f64 * 100.0).max(least),
    })
}
