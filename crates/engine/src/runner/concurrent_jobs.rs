//! Finds the jobs of a plan that may run at one time, from `stonewall` and `wait_for`.

use iosonde_job::plan::{Job, Plan};
use std::ops::Range;

/// Returns the numbers of jobs that may run at one time and have the largest sum of weights. With
/// `running`, this job is one of them. A neighbour runs with all jobs.
///
/// Jobs before and behind a stonewall never run at one time. Neither do two jobs of which one waits
/// for the other, directly or through jobs in between. All other jobs may: whether one ends before
/// another starts depends on their lengths, which are not compared.
pub(super) fn heaviest_concurrent_jobs(
    plan: &Plan,
    running: Option<usize>,
    weight: impl Fn(&Job) -> u128,
) -> Vec<usize> {
    debug_assert!(running.is_none_or(|job| job < plan.jobs.len()));
    let is_neighbour = |job: &usize| plan.jobs[*job].schedule.neighbour;
    let running = running.filter(|job| !is_neighbour(job));
    let groups = split_groups(plan).into_iter();
    let mut jobs = groups
        .filter(|group| running.is_none_or(|job| group.contains(&job)))
        .map(|group| heaviest_of_group(plan, group, running, &weight))
        .max_by_key(|jobs| jobs.weight)
        .unwrap_or_default()
        .jobs;
    jobs.extend((0..plan.jobs.len()).filter(is_neighbour));
    jobs.sort_unstable();
    jobs
}

/// Jobs that may run at one time.
#[derive(Default)]
struct WeighedJobs {
    weight: u128,
    jobs: Vec<usize>,
}

impl WeighedJobs {
    fn add(&mut self, others: WeighedJobs) {
        self.weight += others.weight;
        self.jobs.extend(others.jobs);
    }
}

/// Whether a job starts workers in its group. Files are laid out before the first group, so jobs
/// with `create_only` are done from the start, and neighbours are in no group.
fn runs_in_group(job: &Job) -> bool {
    !job.files.create_only && !job.schedule.neighbour
}

/// Splits the jobs at their stonewalls.
fn split_groups(plan: &Plan) -> Vec<Range<usize>> {
    let is_wall =
        |job: &usize| plan.jobs[*job].schedule.stonewall && runs_in_group(&plan.jobs[*job]);
    let count = plan.jobs.len();
    let starts: Vec<usize> = std::iter::once(0)
        .chain((1..count).filter(is_wall))
        .collect();
    let ends = starts.iter().skip(1).copied().chain([count]);
    starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(a, b)| a..b)
        .collect()
}

/// Returns the job of the group whose end a job waits for. Jobs of earlier groups have ended.
fn awaited_job(plan: &Plan, group_start: usize, job: usize) -> Option<usize> {
    let name = plan.jobs[job].schedule.wait_for.as_ref()?;
    let mut earlier = group_start..job;
    earlier.find(|other| plan.jobs[*other].name == *name && runs_in_group(&plan.jobs[*other]))
}

/// Returns the heaviest jobs of a group. Each job waits for at most one earlier job, so the jobs
/// are trees: of a job and those that wait for it, the heavier side is chosen.
fn heaviest_of_group(
    plan: &Plan,
    group: Range<usize>,
    running: Option<usize>,
    weight: &impl Fn(&Job) -> u128,
) -> WeighedJobs {
    let start = group.start;
    let awaited = |job: usize| awaited_job(plan, start, job);
    let first = running.and_then(awaited);
    let ended: Vec<usize> = std::iter::successors(first, |job| awaited(*job)).collect();
    let mut heaviest = WeighedJobs::default();
    let mut waiting: Vec<WeighedJobs> = group.clone().map(|_| WeighedJobs::default()).collect();
    for job in group.rev().filter(|job| runs_in_group(&plan.jobs[*job])) {
        let later = std::mem::take(&mut waiting[job - start]);
        let own = weight(&plan.jobs[job]);
        let is_heavier = own >= later.weight && !ended.contains(&job);
        let chosen = match is_heavier || running == Some(job) {
            true => WeighedJobs {
                weight: own,
                jobs: vec![job],
            },
            false => later,
        };
        match awaited(job) {
            Some(first) => waiting[first - start].add(chosen),
            None => heaviest.add(chosen),
        }
    }
    debug_assert!(
        waiting.iter().all(|jobs| jobs.jobs.is_empty()),
        "an awaited job is earlier in the group"
    );
    heaviest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs named `0`, `1`, ... Each waits for the job whose number is given.
    fn plan(awaited: &[Option<usize>]) -> Plan {
        let jobs = awaited.iter().enumerate().map(|(number, awaited)| {
            let mut job = Job::new(number.to_string());
            job.schedule.wait_for = awaited.map(|other| other.to_string());
            job
        });
        Plan {
            jobs: jobs.collect(),
            ..Plan::default()
        }
    }

    fn heaviest(plan: &Plan, running: Option<usize>) -> Vec<usize> {
        heaviest_concurrent_jobs(plan, running, |job| job.numjobs.into())
    }

    #[test]
    fn waiting_job_runs_with_jobs_that_it_does_not_wait_for() {
        // 1 waits for 0, 2 waits for 1, and 3 for none.
        let mut plan = plan(&[None, Some(0), Some(1), None]);
        plan.jobs[1].numjobs = 4;
        for (running, expected) in [(0, [0, 3]), (1, [1, 3]), (2, [2, 3]), (3, [1, 3])] {
            assert_eq!(heaviest(&plan, Some(running)), expected, "{running}");
        }
        assert_eq!(heaviest(&plan, None), [1, 3]);
    }

    #[test]
    fn jobs_that_wait_for_one_job_run_together() {
        let mut plan = plan(&[None, Some(0), Some(0)]);
        assert_eq!(heaviest(&plan, None), [1, 2]);
        plan.jobs[0].numjobs = 3;
        assert_eq!(heaviest(&plan, None), [0]);
        assert_eq!(heaviest(&plan, Some(2)), [1, 2]);
    }

    #[test]
    fn stonewall_separates_groups_also_for_waiting_jobs() {
        let mut plan = plan(&[None, None, Some(0), None]);
        plan.jobs[1].schedule.stonewall = true;
        assert_eq!(heaviest(&plan, Some(0)), [0]);
        // Job 0 has ended before the group of job 2 starts.
        assert_eq!(heaviest(&plan, Some(1)), [1, 2, 3]);
        plan.jobs[0].numjobs = 9;
        assert_eq!(heaviest(&plan, None), [0]);
    }

    #[test]
    fn job_that_only_creates_files_runs_with_none() {
        let mut plan = plan(&[None, Some(0), None]);
        plan.jobs[0].files.create_only = true;
        assert_eq!(heaviest(&plan, None), [1, 2]);
        plan.jobs[2].schedule.stonewall = true;
        plan.jobs[2].files.create_only = true;
        assert_eq!(heaviest(&plan, Some(1)), [1], "nor does its stonewall hold");
        assert_eq!(split_groups(&plan).len(), 1);
    }

    #[test]
    fn neighbour_runs_with_the_heaviest_group() {
        let mut plan = plan(&[None, None, None]);
        plan.jobs[1].schedule.stonewall = true;
        plan.jobs[1].numjobs = 5;
        plan.jobs[2].schedule.neighbour = true;
        assert_eq!(heaviest(&plan, Some(0)), [0, 2]);
        assert_eq!(heaviest(&plan, Some(2)), [1, 2]);
    }

    #[test]
    fn empty_plan_has_no_concurrent_jobs() {
        assert_eq!(heaviest(&Plan::default(), None), [0usize; 0]);
    }
}
