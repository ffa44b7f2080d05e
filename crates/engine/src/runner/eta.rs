//! Estimates the progress and the remaining time of a run.

use super::JobClone;
use iosonde_job::plan::{Direction, Job, Plan};
use iosonde_result::observer::WorkerProgress;

/// Returns the time left in nanoseconds and the share done, or `None` while they are unknown.
pub(super) fn estimate(
    plan: &Plan,
    clones: &[JobClone],
    workers: &[WorkerProgress],
    starts_ns: &[Option<u64>],
    now_ns: u64,
) -> (Option<u64>, Option<f64>) {
    // A stage takes as long as its slowest worker. Stages follow one another.
    let (mut total_ns, mut left_ns, mut stage) = (0u64, 0u64, (0u64, 0u64));
    for (index, clone) in clones.iter().enumerate() {
        let job = &plan.jobs[clone.job];
        // A neighbour ends with the other jobs.
        if job.schedule.neighbour {
            continue;
        }
        if job.schedule.stonewall && clone.clone == 0 {
            (total_ns, left_ns) = (total_ns + stage.0, left_ns + stage.1);
            stage = (0, 0);
        }
        let elapsed_ns = starts_ns[index].map_or(0, |start_ns| now_ns.saturating_sub(start_ns));
        let Some((all_ns, rest_ns)) = estimate_worker(job, clone, &workers[index], elapsed_ns)
        else {
            return (None, None);
        };
        stage = (stage.0.max(all_ns), stage.1.max(rest_ns));
    }
    (total_ns, left_ns) = (total_ns + stage.0, left_ns + stage.1);
    let done = if total_ns == 0 {
        1.0
    } else {
        1.0 - left_ns as f64 / total_ns as f64
    };
    (Some(left_ns), Some(done.clamp(0.0, 1.0)))
}

/// Returns the total and the remaining length of one worker's run, in nanoseconds.
fn estimate_worker(
    job: &Job,
    clone: &JobClone,
    worker: &WorkerProgress,
    elapsed_ns: u64,
) -> Option<(u64, u64)> {
    if worker.state.is_over() {
        return Some((elapsed_ns, 0));
    }
    let schedule = &job.schedule;
    let by_time = (schedule.runtime_ns > 0)
        .then(|| schedule.runtime_ns + schedule.ramp_time_ns + schedule.startdelay_ns.1);
    if schedule.time_based {
        let all_ns = by_time?;
        return Some((all_ns, all_ns.saturating_sub(elapsed_ns)));
    }
    let bytes: u64 = Direction::ALL
        .iter()
        .map(|direction| worker.counts[*direction].bytes)
        .sum();
    let pass = clone.files().io_bytes.unwrap_or(clone.files().size_bytes);
    let twice = if job.verify.as_ref().is_some_and(|verify| verify.do_verify)
        && job.workload.rw.has(Direction::Write)
    {
        2
    } else {
        1
    };
    let wanted = pass
        .saturating_mul(u64::from(schedule.loops.max(1)))
        .saturating_mul(twice);
    let by_size = (bytes > 0).then(|| (elapsed_ns as f64 * wanted as f64 / bytes as f64) as u64);
    let all_ns = match (by_time, by_size) {
        (Some(time_ns), Some(size_ns)) => time_ns.min(size_ns),
        (Some(all_ns), None) | (None, Some(all_ns)) => all_ns,
        (None, None) => return None,
    };
    Some((all_ns.max(elapsed_ns), all_ns.saturating_sub(elapsed_ns)))
}
