//! The rate that a neighbour is to keep, and whether it kept it.

use crate::run::RunResult;
use crate::words;
use iosonde_job::plan::{Direction, Job};

/// Least share of its rate that a neighbour reaches.
const RATE_SHARE_MIN: f64 = 0.95;

/// I/Os and bytes per second of each clone of a neighbour in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CloneRate {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
}

/// Returns the rates of a neighbour's job that it missed, with what it reached. `reached` returns
/// the mean rate of its clones. `None` if it kept all.
pub fn missed_rates(job: &Job, reached: impl Fn(Direction) -> CloneRate) -> Option<String> {
    let clones = f64::from(job.numjobs.max(1));
    let mut missed = Vec::new();
    let is_missed = |reached: f64, rate: u64| reached < RATE_SHARE_MIN * rate as f64;
    for direction in Direction::ALL {
        if !job.workload.rw.has(direction) {
            continue;
        }
        let name = direction.name();
        let found = reached(direction);
        if let Some(rate) = job.schedule.rate_iops[direction]
            && is_missed(found.iops, rate)
        {
            let shown = [found.iops, rate as f64].map(|iops| words::iops_text(iops * clones));
            missed.push(format!("{name} {} of {} IOPS", shown[0], shown[1]));
        }
        if let Some(rate) = job.schedule.rate_bytes[direction]
            && is_missed(found.bytes_per_s, rate)
        {
            let shown = [found.bytes_per_s, rate as f64];
            let shown = shown.map(|bytes| words::bandwidth(bytes * clones));
            missed.push(format!("{name} {} of {}", shown[0], shown[1]));
        }
    }
    let missed = (!missed.is_empty()).then(|| missed.join(", "))?;
    Some(format!("the neighbour missed its rate: {missed}"))
}

/// Returns the rates that the neighbour of a run missed. `None` if it kept all, or there is none.
pub fn missed_rates_of_run(run: &RunResult) -> Option<String> {
    let job = run.plan.neighbour()?;
    missed_rates(job, |direction| {
        let mut mean = CloneRate::default();
        let clones = run.neighbours.len().max(1) as f64;
        for worker in &run.neighbours {
            let stats = &worker.directions[direction];
            let seconds = stats.runtime_ns.max(1) as f64 / 1e9;
            mean.iops += stats.total_ios as f64 / seconds / clones;
            mean.bytes_per_s += stats.io_bytes as f64 / seconds / clones;
        }
        mean
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbour_below_its_rate_is_named() {
        let mut job = Job::new("neighbour");
        job.schedule.rate_iops.read = Some(500);
        job.schedule.rate_bytes.read = Some(1 << 20);
        let rate =
            |iops: f64, bytes_per_s: f64| missed_rates(&job, |_| CloneRate { iops, bytes_per_s });
        assert_eq!(rate(495.0, 1_048_576.0), None);
        let missed = rate(120.0, 1_048_576.0).unwrap();
        assert_eq!(
            missed,
            "the neighbour missed its rate: read 120 of 500 IOPS"
        );
        let missed = rate(500.0, 0.0).unwrap();
        assert!(missed.contains("of 1.00 MiB/s"), "{missed}");
        let free = missed_rates(&Job::new("free"), |_| CloneRate::default());
        assert_eq!(free, None);
    }
}
