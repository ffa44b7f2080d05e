//! Facts about a plan that follow from the options of its jobs.

use iosonde_job::plan::{BytesOrPercent, Engine, Job, Plan};
use iosonde_result::run_error::{RunError, UnsupportedFeature};

/// Iterates over all clones of all jobs: job, clone, number.
pub(crate) fn expand(plan: &Plan) -> impl Iterator<Item = (usize, u32, u32)> + '_ {
    let clones = plan
        .jobs
        .iter()
        .enumerate()
        .flat_map(|(job, spec)| (0..spec.numjobs.max(1)).map(move |clone| (job, clone)));
    clones
        .zip(0..)
        .map(|((job, clone), number)| (job, clone, number))
}

/// Whether a job starts after other jobs of the plan have ended.
pub(super) fn starts_later(plan: &Plan, job: usize) -> bool {
    let mut walls = plan.jobs[..=job].iter().skip(1);
    if plan.jobs[job].schedule.neighbour {
        return false;
    }
    plan.jobs[job].schedule.wait_for.is_some() || walls.any(|job| job.schedule.stonewall)
}

/// Whether any job runs commands before or after its I/O.
pub(super) fn has_commands(plan: &Plan) -> bool {
    let mut schedules = plan.jobs.iter().map(|job| &job.schedule);
    schedules.any(|schedule| schedule.exec_prerun.is_some() || schedule.exec_postrun.is_some())
}

/// Whether the job's files keep their existing size.
pub(super) fn finds_size(job: &Job) -> bool {
    job.files.filesize.is_none()
        && job.replay.is_none()
        && !matches!(job.files.size, Some(BytesOrPercent::Bytes(_)))
        && job.io.engine.has_paths()
}

/// Whether the plan uses simulated devices. Jobs must not mix real and simulated time.
pub(super) fn is_simulated(plan: &Plan) -> Result<bool, RunError> {
    let simulated = plan
        .jobs
        .iter()
        .filter(|job| job.io.engine == Engine::Sim)
        .count();
    if simulated > 0 && simulated < plan.jobs.len() {
        return Err(UnsupportedFeature::MixedSimulation.into());
    }
    Ok(simulated > 0)
}
