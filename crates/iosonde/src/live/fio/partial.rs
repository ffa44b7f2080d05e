//! The result of a run that still goes on, as far as its observer can know it: exact counts of every worker, and latency
//! where one worker moves data in one direction, so that there is no doubt whose it is.

use iosonde_job::Plan;
use iosonde_job::plan::{Direction, PerDirection};
use iosonde_result::histogram::{Histogram, middle};
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Progress, WorkerProgress, WorkerState};
use iosonde_result::run::{
    BackendUsed, CpuUse, DirectionStats, FORMAT, RunResult, SyncStats, WorkerResult,
};
use iosonde_result::stats::{LatencyStats, Moments};
use std::time::{SystemTime, UNIX_EPOCH};

/// What has been seen of a run.
#[derive(Debug)]
pub(super) struct Partial {
    started_at_ms: u64,
    /// Since the start of the run, the measured part began.
    measured_from_ns: Option<u64>,
    latency: Histogram,
    clones: Vec<(usize, u32)>,
}

impl Partial {
    pub(super) fn new(plan: &Plan) -> Partial {
        let clones = plan.jobs.iter().enumerate();
        let clones =
            clones.flat_map(|(job, spec)| (0..spec.numjobs).map(move |clone| (job, clone)));
        Partial {
            started_at_ms: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_millis() as u64),
            measured_from_ns: None,
            latency: Histogram::default(),
            clones: clones.collect(),
        }
    }

    /// Takes in a second of the run.
    pub(super) fn add(&mut self, interval: &Interval) {
        if !interval.ramp {
            self.measured_from_ns.get_or_insert(interval.start_ns);
            self.latency.merge(&interval.latency);
        }
    }

    /// The result at this moment.
    pub(super) fn result(&self, plan: &Plan, progress: &Progress<'_>) -> RunResult {
        let runtime_ns = progress
            .at_ns
            .saturating_sub(self.measured_from_ns.unwrap_or(0));
        let workers = progress
            .workers
            .iter()
            .zip(&self.clones)
            .filter(|(worker, _)| worker.state != WorkerState::NotStarted)
            .map(|(worker, (_, clone))| self.worker(plan, worker, *clone, runtime_ns))
            .collect();
        RunResult {
            format: FORMAT,
            program: concat!("iosonde ", env!("CARGO_PKG_VERSION")).to_owned(),
            started_at_ms: self.started_at_ms,
            elapsed_ns: progress.at_ns,
            plan: plan.clone(),
            host: Default::default(),
            targets: Vec::new(),
            labels: Default::default(),
            workers,
            disks: Vec::new(),
            intervals: Vec::new(),
            series: Default::default(),
            events: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    fn worker(
        &self,
        plan: &Plan,
        worker: &WorkerProgress,
        clone: u32,
        runtime_ns: u64,
    ) -> WorkerResult {
        let job = &plan.jobs[worker.job];
        let is_alone = self.clones.len() == 1;
        let moving = worker
            .counts
            .iter()
            .filter(|(_, counts)| counts.ios > 0)
            .count();
        let directions = PerDirection::from_fn(|direction: Direction| {
            let counts = worker.counts[direction];
            let latency = if is_alone && moving == 1 && counts.ios > 0 {
                self.latency()
            } else {
                LatencyStats::default()
            };
            DirectionStats {
                io_bytes: counts.bytes,
                total_ios: counts.ios,
                runtime_ns: if counts.ios > 0 { runtime_ns } else { 0 },
                clat: latency.clone(),
                lat: latency,
                ..DirectionStats::default()
            }
        });
        WorkerResult {
            job: worker.job,
            clone,
            groupid: job.groupid,
            tid: 0,
            backend: BackendUsed {
                engine: job.io.engine,
                asked: job.io.engine,
                reason: None,
                direct: job.io.direct,
                registered_files: false,
                fixed_buffers: false,
            },
            started_at_ms: self.started_at_ms,
            runtime_ns,
            elapsed_ns: runtime_ns,
            directions,
            sync: SyncStats::default(),
            cpu: CpuUse::default(),
            iodepth_level: [0; 7],
            iodepth_submit: [0; 7],
            iodepth_complete: [0; 7],
            latency_depth: job.io.iodepth,
            steady_state: None,
            error: None,
            total_errors: 0,
            first_error: 0,
        }
    }

    /// Moments from the middles of the bins.
    fn latency(&self) -> LatencyStats {
        let mut moments = Moments::default();
        for (index, count) in self.latency.buckets() {
            let value = middle(index) as f64;
            moments.merge(&Moments {
                count,
                min: value,
                max: value,
                mean: value,
                m2: 0.0,
            });
        }
        LatencyStats {
            moments,
            histogram: Some(self.latency.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::Job;
    use iosonde_result::interval::IntervalCounts;

    #[test]
    fn counts_are_exact_and_latency_is_given_to_nobody_in_doubt() {
        let mut plan = Plan {
            jobs: vec![Job::new("a")],
            global_options: Vec::new(),
        };
        let mut interval = Interval {
            start_ns: 5,
            length_ns: 1_000_000_000,
            ..Interval::default()
        };
        interval.latency.record_n(1000, 10);
        let counts = PerDirection {
            read: IntervalCounts {
                ios: 10,
                bytes: 40960,
            },
            ..PerDirection::default()
        };
        let worker = WorkerProgress {
            state: WorkerState::Running,
            job: 0,
            open_files: 1,
            counts,
        };
        let latency_count = |plan: &Plan, workers: &[WorkerProgress]| {
            let mut partial = Partial::new(plan);
            partial.add(&interval);
            let progress = Progress {
                at_ns: 1_000_000_005,
                workers,
                rate: counts,
                left_ns: None,
                done: None,
            };
            let result = partial.result(plan, &progress);
            assert_eq!(result.workers.len(), workers.len());
            assert_eq!(result.workers[0].directions.read.total_ios, 10);
            assert_eq!(result.workers[0].runtime_ns, 1_000_000_000);
            result.workers[0].directions.read.clat.moments.count
        };
        assert_eq!(latency_count(&plan, &[worker]), 10);
        plan.jobs[0].numjobs = 2;
        assert_eq!(latency_count(&plan, &[worker, worker]), 0);
    }
}
