//! Time that the jobs of a plan take.

use iosonde_job::plan::Plan;
use iosonde_study::TimeRange;

/// Time of a run without layout; `None` if a job has no runtime.
pub(super) fn jobs_time(plan: &Plan) -> Option<TimeRange> {
    let (mut total, mut wave) = (TimeRange::default(), TimeRange::default());
    for job in plan.jobs.iter().filter(|job| !job.schedule.neighbour) {
        let schedule = &job.schedule;
        if schedule.stonewall {
            total = total + std::mem::take(&mut wave);
        }
        if schedule.runtime_ns == 0 {
            return None;
        }
        let most_ns = schedule.startdelay_ns.1 + schedule.ramp_time_ns + schedule.runtime_ns;
        wave.most_ns = wave.most_ns.max(most_ns);
        // Other jobs may end with their data.
        if schedule.time_based {
            wave.least_ns = wave.least_ns.max(most_ns);
        }
    }
    Some(total + wave)
}
