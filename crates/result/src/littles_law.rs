//! Little's law compares a rate with its latency. In closed loop, the number of I/Os in flight is
//! the rate times the mean latency (J. D. C. Little, A Proof for the Queuing Formula L = lambda W,
//! Operations Research 9, 1961).
//!
//! A run keeps `iodepth` I/Os of each worker in flight, except while the worker prepares the next.
//! If rate and latency contradict this, then time was lost that no latency contains, or a latency
//! counts that the rate does not. Examples of lost time are a stalled I/O of the ramp, and a worker
//! waiting for a processor. The uncertainty of such a rate is at least this difference.

use crate::run::{RunResult, WorkerResult};
use crate::stats::Moments;
use iosonde_job::plan::{Direction, Job, Plan};
use serde::{Deserialize, Serialize};

/// Tolerated difference between rate and latency, as a share of the depth. Refilling in batches
/// lowers the depth by up to a fortieth, and latencies are rounded to their buckets.
const TOLERATED_SHARE: f64 = 0.05;

/// Time of I/O slots in nanoseconds. One slot of a worker for one second is 1e9.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SlotTime {
    /// Number of slots times measured time.
    expected_ns: f64,
    /// Sum of all latencies.
    in_flight_ns: f64,
    /// Part of the difference explained by the workers' CPU time, in which slots may be empty.
    generator_ns: f64,
    /// Part of the difference explained by I/Os at both ends. Those begun in the ramp are left out,
    /// those in flight at the end count in full.
    edges_ns: f64,
}

impl SlotTime {
    /// Returns the slot time of a run, see `SlotTime::from_workers`.
    pub fn from_run(result: &RunResult) -> SlotTime {
        SlotTime::from_workers(&result.plan, &result.workers)
    }

    /// Returns the slot time of some workers of a run of `plan`. It is zero, so that nothing is
    /// unexplained, if a job does not keep its depth, a worker failed, or latencies are missing.
    pub(crate) fn from_workers<'a>(
        plan: &Plan,
        workers: impl IntoIterator<Item = &'a WorkerResult>,
    ) -> SlotTime {
        let mut sum = SlotTime::default();
        for worker in workers {
            let job = &plan.jobs[worker.job];
            if !keeps_its_depth(job) || worker.sync.total_ios > 0 || worker.error.is_some() {
                return SlotTime::default();
            }
            let Some(of_worker) = SlotTime::from_worker(job, worker) else {
                return SlotTime::default();
            };
            sum.add(&of_worker);
        }
        sum
    }

    fn from_worker(job: &Job, worker: &WorkerResult) -> Option<SlotTime> {
        let mut time = SlotTime::default();
        let (mut ios, mut deviations_ns) = (0.0, 0.0);
        for (_, stats) in worker.directions.iter() {
            let moments = &stats.lat.moments;
            // Without all latencies the law cannot be applied.
            if moments.count != stats.total_ios {
                return None;
            }
            let count = moments.count as f64;
            time.in_flight_ns += count * moments.mean;
            deviations_ns += count * moments.stddev();
            ios += count;
        }
        let slots = match worker.backend.engine.is_synchronous() {
            true => 1.0,
            false => f64::from(job.io.iodepth),
        };
        let runtime_ns = worker.runtime_ns as f64;
        let cpu_ns = (worker.cpu.user_ns + worker.cpu.system_ns) as f64;
        time.expected_ns = slots * runtime_ns;
        time.generator_ns = slots * cpu_ns.min(runtime_ns);
        debug_assert!(
            time.generator_ns <= time.expected_ns,
            "slots are empty for at most the runtime"
        );
        time.edges_ns = slots * (time.in_flight_ns + deviations_ns) / f64::max(ios, 1.0);
        Some(time)
    }

    /// Returns the slot time of a part of a run, or zero if that of the run is zero.
    pub fn from_part(result: &RunResult, length_ns: u64, latency: &Moments) -> SlotTime {
        let workers = result.workers.iter();
        let runtime_ns = workers.clone().map(|worker| worker.runtime_ns).max();
        let ios_of = |worker: &WorkerResult| {
            let all = worker.directions.iter();
            all.map(|(_, stats)| stats.total_ios).sum::<u64>()
        };
        let whole = WholeRun {
            runtime_ns: runtime_ns.unwrap_or(0),
            ios: workers.map(ios_of).sum(),
        };
        SlotTime::from_run(result).part(whole, length_ns, latency)
    }

    /// CPU time is known for the whole run only, and assigned in proportion to the I/Os.
    fn part(&self, whole: WholeRun, length_ns: u64, latency: &Moments) -> SlotTime {
        if whole.runtime_ns == 0 || whole.ios == 0 {
            return SlotTime::default();
        }
        let ios = latency.count as f64;
        let slots = self.expected_ns / whole.runtime_ns as f64;
        let expected_ns = slots * length_ns as f64;
        SlotTime {
            expected_ns,
            in_flight_ns: ios * latency.mean,
            generator_ns: (self.generator_ns * ios / whole.ios as f64).min(expected_ns),
            edges_ns: slots * (latency.mean + latency.stddev()),
        }
    }

    /// Adds another run of the same workload.
    pub fn add(&mut self, other: &SlotTime) {
        self.expected_ns += other.expected_ns;
        self.in_flight_ns += other.in_flight_ns;
        self.generator_ns += other.generator_ns;
        self.edges_ns += other.edges_ns;
    }

    /// Returns the unexplained difference between rate and latency, as a share of the depth.
    pub fn unexplained_share(&self) -> f64 {
        if self.expected_ns <= 0.0 {
            return 0.0;
        }
        let missing_ns = self.expected_ns - self.in_flight_ns;
        let explained_ns = match missing_ns > 0.0 {
            true => self.generator_ns + self.edges_ns,
            false => self.edges_ns,
        };
        let share = (missing_ns.abs() - explained_ns) / self.expected_ns;
        if share > TOLERATED_SHARE { share } else { 0.0 }
    }
}

/// The whole run to which a part belongs.
#[derive(Debug, Clone, Copy)]
struct WholeRun {
    runtime_ns: u64,
    ios: u64,
}

/// Returns whether the job starts the next I/O as soon as one has completed.
fn keeps_its_depth(job: &Job) -> bool {
    let schedule = &job.schedule;
    let is_rated = Direction::ALL.into_iter().any(|direction| {
        schedule.rate_bytes[direction].is_some() || schedule.rate_iops[direction].is_some()
    });
    let is_paced = is_rated
        || schedule.thinktime.is_some()
        || schedule.latency_target.is_some()
        || schedule.flow.is_some()
        || job.replay.is_some();
    let io = &job.io;
    let waits_for_batches = io.iodepth_low.is_some_and(|low| low < io.iodepth)
        || io.batch_complete_min > 1
        || io.serialize_overlap
        || io.offload;
    !is_paced && !waits_for_batches && job.verify.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one second of 8 slots, with the given I/Os, latency and CPU time of the worker.
    fn second(ios: f64, latency_ns: f64, generator_s: f64) -> SlotTime {
        SlotTime {
            expected_ns: 8e9,
            in_flight_ns: ios * latency_ns,
            generator_ns: 8e9 * generator_s,
            edges_ns: 8.0 * latency_ns,
        }
    }

    #[test]
    fn slot_time_that_agrees_leaves_nothing_unexplained() {
        assert_eq!(second(49_000.0, 163e3, 0.0).unexplained_share(), 0.0);
        assert_eq!(second(47_000.0, 163e3, 0.0).unexplained_share(), 0.0);
    }

    #[test]
    fn slot_time_lost_beside_the_latencies_is_unexplained() {
        // 11.8k IOPS at 163 us are 1.9 in flight, not 8.
        let share = second(11_800.0, 163e3, 0.0).unexplained_share();
        assert!((0.7..0.8).contains(&share), "{share}");
        let share = second(11_800.0, 163e3, 0.3).unexplained_share();
        assert!((0.4..0.5).contains(&share), "{share}");
    }

    #[test]
    fn slot_time_of_a_busy_worker_is_explained() {
        assert_eq!(second(400_000.0, 10e3, 0.55).unexplained_share(), 0.0);
    }

    #[test]
    fn slot_time_beyond_the_depth_is_unexplained() {
        let share = second(98_000.0, 163e3, 0.9).unexplained_share();
        assert!((0.9..1.1).contains(&share), "{share}");
    }

    #[test]
    fn slot_time_of_a_part_has_its_share_of_the_processor_time() {
        // Half of a second, with a half or a quarter of its I/Os.
        let whole = WholeRun {
            runtime_ns: 1_000_000_000,
            ios: 400_000,
        };
        let latency = |count: u64| Moments {
            count,
            mean: 10e3,
            ..Moments::default()
        };
        let busy = second(400_000.0, 10e3, 0.55);
        let share = |ios: u64| {
            let part = busy.part(whole, 500_000_000, &latency(ios));
            part.unexplained_share()
        };
        assert_eq!(share(200_000), 0.0);
        // I/Os occupy 2 of 8 slots, and the CPU time of 100,000 I/Os explains 2.2 more.
        assert!((0.47..0.48).contains(&share(100_000)), "{}", share(100_000));
        let unjudged = SlotTime::default().part(whole, 500_000_000, &latency(100_000));
        assert_eq!(unjudged.unexplained_share(), 0.0);
    }

    #[test]
    fn slot_times_of_two_runs_add_up() {
        let mut both = second(11_800.0, 163e3, 0.0);
        both.add(&second(49_000.0, 163e3, 0.0));
        let share = both.unexplained_share();
        assert!((0.3..0.4).contains(&share), "{share}");
    }

    #[test]
    fn slot_time_of_a_job_with_a_rate_is_not_judged() {
        let mut job = Job::new("x");
        assert!(keeps_its_depth(&job));
        job.schedule.rate_iops[Direction::Read] = Some(1000);
        assert!(!keeps_its_depth(&job));
    }
}
