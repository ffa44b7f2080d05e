//! `rate_min` and `rate_iops_min`: fails a job whose rate is too low.

use crate::counters::WorkerCounters;
use iosonde_job::plan::{Direction, Job, PerDirection};
use iosonde_result::interval::IntervalCounts;
use iosonde_result::run::IoFailure;

/// Checks the rate of one worker.
#[derive(Debug)]
pub(super) struct RateWatch {
    min_bytes: PerDirection<Option<u64>>,
    min_iops: PerDirection<Option<u64>>,
    cycle_ns: u64,
    /// Start of the window; 0 before the first check.
    since_ns: u64,
    from_ns: u64,
    before: PerDirection<IntervalCounts>,
    failure: Option<String>,
}

impl RateWatch {
    /// Returns a check from `from_ns` on, if the job has a minimum rate.
    pub(super) fn new(job: &Job, from_ns: u64) -> Option<RateWatch> {
        // A rate without commas applies to all directions; only those of the job are checked.
        let of_the_job = |rates: PerDirection<Option<u64>>| {
            PerDirection::from_fn(|direction| {
                rates[direction].filter(|_| job.workload.rw.has(direction))
            })
        };
        let min_bytes = of_the_job(job.schedule.rate_min_bytes);
        let min_iops = of_the_job(job.schedule.rate_iops_min);
        let any = |rates: &PerDirection<Option<u64>>| {
            rates
                .iter()
                .any(|(_, rate)| rate.is_some_and(|rate| rate > 0))
        };
        (any(&min_bytes) || any(&min_iops)).then(|| RateWatch {
            min_bytes,
            min_iops,
            cycle_ns: job.schedule.rate_cycle_ns.max(1),
            since_ns: 0,
            from_ns,
            before: PerDirection::default(),
            failure: None,
        })
    }

    /// Whether a window has just ended below the minimum rate.
    pub(super) fn is_too_slow(&mut self, now_ns: u64, shared: &WorkerCounters) -> bool {
        let counts = PerDirection::from_fn(|direction| shared.counts(direction));
        // As in fio, the first two seconds are not checked.
        if now_ns < self.from_ns + 2_000_000_000 || self.since_ns == 0 {
            (self.since_ns, self.before) = (now_ns, counts);
            return false;
        }
        let elapsed_ns = now_ns - self.since_ns;
        // A window holds at least one I/O, as a low rate can leave windows empty. As in fio, a job
        // without any progress is therefore not detected.
        if elapsed_ns < self.cycle_ns || counts == self.before {
            return false;
        }
        for direction in Direction::ALL {
            let per_second =
                |amount: u64| (u128::from(amount) * 1_000_000_000 / u128::from(elapsed_ns)) as u64;
            let bytes = per_second(counts[direction].bytes - self.before[direction].bytes);
            let iops = per_second(counts[direction].ios - self.before[direction].ios);
            let name = direction.name();
            if self.min_bytes[direction].is_some_and(|min| bytes < min) {
                let min = self.min_bytes[direction].unwrap_or(0);
                self.failure = Some(format!(
                    "{name} rate of {bytes} B/s fell below rate_min={min}"
                ));
            }
            if self.min_iops[direction].is_some_and(|min| iops < min) {
                let min = self.min_iops[direction].unwrap_or(0);
                self.failure = Some(format!(
                    "{name} rate of {iops} IOPS fell below rate_iops_min={min}"
                ));
            }
        }
        (self.since_ns, self.before) = (now_ns, counts);
        self.failure.is_some()
    }

    /// Returns the failure to report, if any.
    pub(super) fn failure(&self) -> Option<IoFailure> {
        self.failure.as_ref().map(|message| IoFailure {
            errno: libc::EIO,
            operation: "rate".to_owned(),
            file: None,
            offset: None,
            message: message.clone(),
        })
    }
}
