//! Aggregates workers: one [`FioEntry`] per job or reporting group, one [`StatusGroup`] per status
//! group.
//!
//! The sums follow fio. Bytes, counts and CPU time add up, latencies are merged, and the runtime is
//! the longest. The *samples* of bandwidth and IOPS add up as well (minimum to minimum, mean to
//! mean), because members run in parallel.

use super::number::Units;
use crate::run::{CpuUse, RunResult, SteadyStateResult, SyncStats, WorkerResult};
use crate::run::{DirectionStats, IoFailure, PriorityLatency};
use crate::worker_sums::{add_cpu, add_direction, add_each, add_priority};
use iosonde_job::plan::{
    Direction, IoPriority, Job, MeasureOptions, PerDirection, UnifiedReporting,
};

/// The jobs of one run, as fio's formats show them.
#[derive(Debug, Clone)]
pub(crate) struct FioReport<'a> {
    /// Entries in plan order.
    pub(crate) entries: Vec<FioEntry<'a>>,
    /// Status groups ("Run status group 0", ...), with each number up to the largest, as in fio.
    pub(crate) groups: Vec<StatusGroup>,
}

/// A line of terse output or member of JSON's `jobs`: a worker, or a sum with `group_reporting`.
#[derive(Debug, Clone)]
pub(crate) struct FioEntry<'a> {
    /// Job of the first member, which provides name and description.
    pub(crate) job: &'a Job,
    /// Job of the last member, which provides the listed options.
    pub(crate) last: &'a Job,
    /// Number of members.
    pub(crate) members: u32,
    /// Reporting group.
    pub(crate) groupid: u32,
    /// Thread id of the first member.
    pub(crate) tid: u32,
    /// errno of the first member that failed or tolerated errors. 0 if there is none.
    pub(crate) errno: i32,
    /// Error that ended a worker.
    pub(crate) failure: Option<IoFailure>,
    /// Reads, writes and trims. With `unified_rw_reporting=mixed`, `read` holds the sum.
    pub(crate) directions: PerDirection<DirectionStats>,
    /// Sum of all directions, with `unified_rw_reporting=both`.
    pub(crate) mixed: Option<DirectionStats>,
    /// fsync, fdatasync and sync_file_range.
    pub(crate) sync: SyncStats,
    /// Sum of the members' CPU use.
    pub(crate) cpu: CpuUse,
    /// Sum of the members' runtimes in milliseconds, to which CPU use is relative.
    pub(crate) job_runtime_ms: u64,
    /// I/Os by depth at submission.
    pub(crate) iodepth_level: [u64; 7],
    /// Submissions by batch size.
    pub(crate) iodepth_submit: [u64; 7],
    /// Reaps by batch size.
    pub(crate) iodepth_complete: [u64; 7],
    /// Latency depth of the last member.
    pub(crate) latency_depth: u32,
    /// `steadystate` result of the last member.
    pub(crate) steady_state: Option<SteadyStateResult>,
    /// Number of tolerated errors.
    pub(crate) total_errors: u64,
    /// errno of the first error that the last member tolerated.
    pub(crate) first_error: i32,
}

/// A status group: the sum of its entries.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StatusGroup {
    /// Number of the group.
    pub(crate) groupid: u32,
    /// `unified_rw_reporting` of its jobs.
    pub(crate) unified: UnifiedReporting,
    /// Format of sizes and rates, from the last entry.
    pub(crate) units: Units,
    /// Sums by direction. `None` for directions that did not run.
    pub(crate) directions: PerDirection<Option<GroupDirection>>,
}

/// One direction of a status group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupDirection {
    /// Bytes moved.
    pub(crate) io_bytes: u64,
    /// Total bandwidth: bytes divided by the longest runtime, in bytes per second.
    pub(crate) aggregate_bytes_per_second: u64,
    /// Bandwidth of the slowest and the fastest entry, in bytes per second.
    pub(crate) bytes_per_second: (u64, u64),
    /// Shortest and longest runtime in milliseconds.
    pub(crate) runtime_ms: (u64, u64),
}

/// Returns a runtime in whole milliseconds, rounded up as in fio, so that it is at least one.
pub(crate) fn runtime_ms(runtime_ns: u64) -> u64 {
    runtime_ns.div_ceil(1_000_000)
}

/// Returns a rate per second, rounded down. The runtime is in milliseconds. It is 0 if nothing ran.
pub(crate) fn per_second(amount: u64, runtime_ms: u64) -> u64 {
    match runtime_ms {
        0 => 0,
        _ => (u128::from(amount) * 1000 / u128::from(runtime_ms)) as u64,
    }
}

impl<'a> FioReport<'a> {
    /// Aggregates a run as the jobs' `group_reporting`, `unified_rw_reporting` and `stats` demand.
    pub(crate) fn from_run(result: &'a RunResult) -> FioReport<'a> {
        let mut entries: Vec<FioEntry<'a>> = Vec::new();
        for worker in &result.workers {
            let job = &result.plan.jobs[worker.job];
            if !job.measure.stats {
                continue;
            }
            match entries.last_mut() {
                Some(entry) if job.measure.group_reporting && entry.groupid == worker.groupid => {
                    entry.add(&worker.as_fio_counts(), job);
                }
                _ => entries.push(FioEntry::from_worker(&worker.as_fio_counts(), job)),
            }
        }
        let is_shown = |worker: &&WorkerResult| result.plan.jobs[worker.job].measure.stats;
        let shown = result.workers.iter().filter(is_shown);
        let members: usize = entries.iter().map(|entry| entry.members as usize).sum();
        assert_eq!(members, shown.clone().count(), "each is in one entry");
        debug_assert_eq!(
            entries.iter().map(FioEntry::total_ios).sum::<u64>(),
            shown.map(issued_ios).sum::<u64>(),
            "the entries have the I/Os of all workers"
        );
        for entry in &mut entries {
            entry.unify();
        }
        let groups = groups(result, &entries);
        FioReport { entries, groups }
    }

    /// Returns the group of `entry`.
    pub(crate) fn group(&self, entry: &FioEntry<'_>) -> &StatusGroup {
        &self.groups[entry.groupid as usize]
    }
}

impl<'a> FioEntry<'a> {
    fn from_worker(worker: &WorkerResult, job: &'a Job) -> FioEntry<'a> {
        let mut entry = FioEntry {
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
    pub(crate) fn is_mixed(&self) -> bool {
        self.job.measure.unified == UnifiedReporting::Mixed
    }

    /// Returns whether the job tolerates any kind of error, so that tolerated errors are shown.
    pub(crate) fn continues_on_error(&self) -> bool {
        continues_on_error(self.job)
    }

    /// Returns `latency_target` in ns, `latency_window` in us and `latency_percentile`.
    pub(super) fn latency_target(&self) -> (u64, u64, f64) {
        match &self.job.schedule.latency_target {
            Some(target) => (target.target_ns, target.window_ns / 1000, target.percentile),
            None => (0, 0, 100.0),
        }
    }

    /// Returns the number of I/Os issued in all directions.
    pub(crate) fn total_ios(&self) -> u64 {
        self.directions.iter().map(|(_, d)| d.total_ios).sum()
    }

    /// Returns user and system time in per cent of the runtime.
    pub(crate) fn cpu_percent(&self) -> (f64, f64) {
        let percent = |ns: u64| match self.job_runtime_ms {
            0 => 0.0,
            ms => ns as f64 / (ms as f64 * 1e6) * 100.0,
        };
        (percent(self.cpu.user_ns), percent(self.cpu.system_ns))
    }
}

/// Returns the I/Os that a worker issued, as fio counts them.
fn issued_ios(worker: &WorkerResult) -> u64 {
    let counted = worker.as_fio_counts();
    counted
        .directions
        .iter()
        .map(|(_, stats)| stats.total_ios)
        .sum()
}

fn continues_on_error(job: &Job) -> bool {
    let errors = &job.errors;
    let ignores = errors.ignore.iter().any(|list| !list.is_empty());
    ignores || errors.continue_read || errors.continue_write || errors.continue_verify
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
pub(super) fn shown_priorities(stats: &DirectionStats) -> &[PriorityLatency] {
    match &stats.by_priority[..] {
        several @ [_, _, ..] => several,
        _ => &[],
    }
}

fn groups(result: &RunResult, entries: &[FioEntry<'_>]) -> Vec<StatusGroup> {
    let jobs = result.plan.jobs.iter();
    let measured = jobs.filter(|job| !job.schedule.neighbour);
    let plan_groups = measured.map(|job| job.groupid + 1);
    let entry_groups = entries.iter().map(|entry| entry.groupid + 1);
    let count = plan_groups.chain(entry_groups).max().unwrap_or(0);
    let mut groups: Vec<StatusGroup> = (0..count)
        .map(|groupid| StatusGroup {
            groupid,
            unified: UnifiedReporting::None,
            units: Units::from_options(&MeasureOptions::default()),
            directions: PerDirection::default(),
        })
        .collect();
    for entry in entries {
        let group = &mut groups[entry.groupid as usize];
        group.units = Units::from_options(&entry.job.measure);
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
    pub(crate) fn joined(&self, other: &GroupDirection) -> GroupDirection {
        let io_bytes = self.io_bytes + other.io_bytes;
        let runtime_ms = widest(self.runtime_ms, other.runtime_ms);
        debug_assert!(
            runtime_ms.0 <= runtime_ms.1,
            "the shortest is at most the longest"
        );
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

impl StatusGroup {
    /// Returns the sum of all directions, for `unified_rw_reporting=both`.
    pub(crate) fn mixed(&self) -> Option<GroupDirection> {
        let directions = self.directions.iter().filter_map(|(_, d)| *d);
        directions.reduce(|a, b| a.joined(&b))
    }

    /// Returns the share of the group's bandwidth of a mean in KiB/s, in per cent. At most 100.
    pub(crate) fn share_percent(&self, direction: Option<Direction>, mean_kib: f64) -> f64 {
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
pub(crate) fn shares<const N: usize>(counts: &[u64; N], total: u64, least: f64) -> [f64; N] {
    counts.map(|count| match (count, total) {
        (0, _) | (_, 0) => 0.0,
        _ => (count as f64 / total as f64 * 100.0).max(least),
    })
}
