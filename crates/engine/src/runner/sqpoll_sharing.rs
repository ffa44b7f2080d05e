//! Decides whether the workers of a job share one kernel thread of io_uring (`sqthread_poll`).

use super::concurrent_jobs::heaviest_concurrent_jobs;
use super::thread_settings::{cpu_list, cpus_of_workers, online_cpus};
use crate::sys::ring::sqpoll_thread_status;
use crate::sys::thread;
use iosonde_job::plan::{Engine, Job, Plan};
use iosonde_machine::cgroup;
use iosonde_machine::proc_root::System;
use std::collections::BTreeSet;

/// Decides for each job whether its workers share a kernel thread, unless the user decides
/// otherwise. Called once per run, before the workers start.
pub(super) fn decide_sqpoll_sharing(plan: &Plan) -> Vec<bool> {
    if !plan.jobs.iter().any(has_sqpoll) {
        return vec![false; plan.jobs.len()];
    }
    let cpus = PollingCpus::measure(plan);
    (0..plan.jobs.len())
        .map(|job| shares_sqpoll_thread(plan, job, &cpus))
        .collect()
}

/// Whether the workers of a job share a kernel thread: if the workers with `sqthread_poll` that may
/// run with the job and their kernel threads, one for each, are more than their CPUs. The kernel
/// threads poll, so they would take CPU time from each other and from the workers.
///
/// A job that names the CPU of its threads keeps them. So does one with
/// `cpus_allowed_policy=split`: newer kernels run a thread only on the CPU of the worker that
/// created it.
fn shares_sqpoll_thread(plan: &Plan, job: usize, cpus: &PollingCpus) -> bool {
    let io = &plan.jobs[job].io;
    if !has_sqpoll(&plan.jobs[job]) || io.cpus_split || io.uring.sqthread_poll_cpu.is_some() {
        return false;
    }
    let jobs = heaviest_concurrent_jobs(plan, Some(job), |job| count_workers(job).into());
    let workers = jobs.iter().map(|job| count_workers(&plan.jobs[*job]));
    (workers.sum::<u64>() * 2) as f64 > cpus.count(&jobs)
}

fn has_sqpoll(job: &Job) -> bool {
    matches!(job.io.engine, Engine::Auto | Engine::IoUring) && job.io.uring.sqthread_poll
}

/// Returns the number of a job's workers with `sqthread_poll`.
fn count_workers(job: &Job) -> u64 {
    match has_sqpoll(job) {
        true => job.numjobs.max(1).into(),
        false => 0,
    }
}

/// The CPUs of workers with `sqthread_poll` and of their kernel threads.
#[derive(Debug, Default)]
struct PollingCpus {
    /// For each job. Empty if the job has no such workers, or if the CPUs are not known.
    of_jobs: Vec<BTreeSet<u32>>,
    /// CPU quota of the control group.
    quota: Option<f64>,
}

impl PollingCpus {
    /// Measures the CPUs of this machine.
    fn measure(plan: &Plan) -> PollingCpus {
        let online = online_cpus();
        let measure = |job: &Job| match has_sqpoll(job) {
            true => measure_cpus(job, online.as_deref()),
            false => BTreeSet::new(),
        };
        PollingCpus {
            of_jobs: plan.jobs.iter().map(measure).collect(),
            quota: cgroup::limits(&System::live()).cpu_quota,
        }
    }

    /// Returns the number of CPUs of these jobs together, at most the quota. Infinite if unknown.
    fn count(&self, jobs: &[usize]) -> f64 {
        let cpus: BTreeSet<u32> = jobs
            .iter()
            .flat_map(|job| &self.of_jobs[*job])
            .copied()
            .collect();
        let known = (!cpus.is_empty()).then_some(cpus.len() as f64);
        let bounds = known.into_iter().chain(self.quota);
        bounds.fold(f64::INFINITY, f64::min)
    }
}

/// Returns the online CPUs on which workers of a job or their kernel threads may run.
///
/// The kernel thread has the CPUs of the worker that creates it. Before Linux 6.11 it may run on
/// more: on all CPUs, or since Linux 6.2 on all that sched_setaffinity(2) allowed the worker, even
/// outside of its cpuset. Older series have the change too, so the version does not decide. A
/// thread with the affinity of the workers creates such a kernel thread, and reads its CPUs.
fn measure_cpus(job: &Job, online: Option<&[u32]>) -> BTreeSet<u32> {
    let is_online = |cpu: &u32| online.is_none_or(|online| online.contains(cpu));
    let asked = cpus_of_workers(job);
    // A worker refuses a CPU that is not there.
    let asked = asked.map(|cpus| cpus.into_iter().filter(is_online).collect::<Vec<_>>());
    let measuring = std::thread::Builder::new().spawn(move || {
        if let Some(cpus) = asked {
            let _ = thread::set_affinity(&cpus);
        }
        let of_worker = std::fs::read_to_string("/proc/thread-self/status").ok();
        [of_worker, sqpoll_thread_status().ok().flatten()]
    });
    let statuses = measuring.ok().and_then(|thread| thread.join().ok());
    let [of_worker, of_kernel_thread] = statuses.unwrap_or_default();
    let parse_cpus = |status: Option<String>| status.as_deref().map(allowed_cpus);
    let mut cpus = parse_cpus(of_worker).unwrap_or_default();
    cpus.extend(match job.io.uring.sqthread_poll_cpu {
        Some(cpu) => BTreeSet::from([cpu]),
        None => parse_cpus(of_kernel_thread).unwrap_or_default(),
    });
    // A machine to which CPUs can be added allows the absent ones, too.
    cpus.retain(is_online);
    cpus
}

/// Parses the CPUs in the status of a thread.
fn allowed_cpus(status: &str) -> BTreeSet<u32> {
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.map(cpu_list).into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polling_job(engine: Engine, sqthread_poll: bool, numjobs: u32) -> Job {
        let mut job = Job::new("x");
        job.io.engine = engine;
        job.io.uring.sqthread_poll = sqthread_poll;
        job.numjobs = numjobs;
        job
    }

    fn plan_of(jobs: Vec<Job>) -> Plan {
        Plan {
            jobs,
            ..Plan::default()
        }
    }

    /// The same CPUs for all jobs, numbered from 0.
    fn cpus_of(plan: &Plan, count: u32, quota: Option<f64>) -> PollingCpus {
        PollingCpus {
            of_jobs: vec![(0..count).collect(); plan.jobs.len()],
            quota,
        }
    }

    #[test]
    fn kernel_thread_is_shared_if_threads_outnumber_cpus() {
        let rows = [
            (1, 1, None, true),
            (1, 2, None, false),
            (2, 2, None, true),
            (2, 3, None, true),
            (2, 4, None, false),
            (3, 4, None, true),
            (4, 8, None, false),
            // A quota of the control group.
            (1, 4, Some(1.5), true),
            (2, 4, Some(3.5), true),
            (2, 4, Some(8.0), false),
            // Unknown CPUs.
            (64, 0, None, false),
        ];
        for (workers, count, quota, expected) in rows {
            let mut plan = plan_of(vec![polling_job(Engine::IoUring, true, workers)]);
            let cpus = cpus_of(&plan, count, quota);
            let shared = shares_sqpoll_thread(&plan, 0, &cpus);
            assert_eq!(shared, expected, "{workers} {count} {quota:?}");
            // The job names the CPU of its threads.
            plan.jobs[0].io.uring.sqthread_poll_cpu = Some(0);
            assert!(!shares_sqpoll_thread(&plan, 0, &cpus));
        }
    }

    #[test]
    fn kernel_threads_outside_of_the_affinity_leave_the_workers_their_cpus() {
        let plan = plan_of(vec![polling_job(Engine::IoUring, true, 2)]);
        let shared = |cpus: [u32; 4]| {
            let cpus = PollingCpus {
                of_jobs: vec![BTreeSet::from(cpus)],
                quota: None,
            };
            shares_sqpoll_thread(&plan, 0, &cpus)
        };
        // Workers on 0 and 1, kernel threads on the same CPUs, or on all four.
        assert!(shared([0, 1, 0, 1]));
        assert!(!shared([0, 1, 2, 3]));
    }

    #[test]
    fn jobs_on_different_cpus_have_those_of_both() {
        let plan = plan_of(vec![polling_job(Engine::IoUring, true, 2); 2]);
        let shared = |second: [u32; 4]| {
            let cpus = PollingCpus {
                of_jobs: vec![(0..4).collect(), BTreeSet::from(second)],
                quota: None,
            };
            [0, 1].map(|job| shares_sqpoll_thread(&plan, job, &cpus))
        };
        assert_eq!(shared([4, 5, 6, 7]), [false, false]);
        assert_eq!(shared([2, 3, 4, 5]), [true, true]);
    }

    #[test]
    fn concurrent_workers_with_sqpoll_are_counted() {
        let mut last = polling_job(Engine::IoUring, true, 8);
        last.schedule.stonewall = true;
        let mut plan = plan_of(vec![
            polling_job(Engine::IoUring, true, 2),
            polling_job(Engine::Auto, true, 1),
            polling_job(Engine::IoUring, false, 16),
            polling_job(Engine::Libaio, true, 16),
            last,
        ]);
        // The CPUs that a job's workers and threads need, so that they are not shared.
        let needed = |plan: &Plan, job| {
            let needs =
                |count: &u32| !shares_sqpoll_thread(plan, job, &cpus_of(plan, *count, None));
            (1..64).find(needs)
        };
        assert_eq!(
            [0, 1, 4].map(|job| needed(&plan, job)),
            [6, 6, 16].map(Some)
        );
        for unpolled in [2, 3] {
            assert_eq!(needed(&plan, unpolled), Some(1));
        }
        let mut neighbour = polling_job(Engine::IoUring, true, 4);
        neighbour.schedule.neighbour = true;
        plan.jobs.push(neighbour);
        let with_neighbour = [0, 1, 4, 5].map(|job| needed(&plan, job));
        assert_eq!(with_neighbour, [14, 14, 24, 24].map(Some));
    }

    #[test]
    fn waiting_workers_are_not_counted_with_those_that_they_wait_for() {
        let mut jobs = vec![polling_job(Engine::IoUring, true, 2); 3];
        jobs[0].name = "first".to_owned();
        jobs[1].schedule.wait_for = Some("first".to_owned());
        let plan = plan_of(jobs);
        // Jobs 0 and 2 run together, then jobs 1 and 2.
        for job in 0..3 {
            let shared = |count| shares_sqpoll_thread(&plan, job, &cpus_of(&plan, count, None));
            assert_eq!([7, 8].map(shared), [true, false], "{job}");
        }
    }

    #[test]
    fn workers_with_split_cpus_share_no_kernel_thread() {
        // More than the CPUs of any machine.
        let mut plan = plan_of(vec![polling_job(Engine::IoUring, true, 1 << 20)]);
        assert_eq!(decide_sqpoll_sharing(&plan), [true]);
        plan.jobs[0].io.cpus_split = true;
        assert_eq!(decide_sqpoll_sharing(&plan), [false]);
    }

    #[test]
    fn measured_cpus_are_those_of_worker_and_kernel_thread() {
        let mut job = polling_job(Engine::IoUring, true, 1);
        let all = measure_cpus(&job, None);
        let own = allowed_cpus(&std::fs::read_to_string("/proc/thread-self/status").unwrap());
        assert!(all.is_superset(&own), "{all:?}");
        let first = *own.first().unwrap();
        job.io.cpus_allowed = Some(vec![first]);
        let of_one = measure_cpus(&job, None);
        assert!(
            of_one.contains(&first) && of_one.is_subset(&all),
            "{of_one:?}"
        );
        let absent = measure_cpus(&job, Some(&[]));
        assert_eq!(absent, BTreeSet::new(), "no CPU is online");
    }

    #[test]
    fn allowed_cpus_of_a_status_are_parsed() {
        let status = "Name:\tiou-sqp-1\nCpus_allowed:\t27\nCpus_allowed_list:\t0-2,5\nx:\t1\n";
        assert_eq!(allowed_cpus(status), BTreeSet::from([0, 1, 2, 5]));
        assert_eq!(allowed_cpus("Name:\tx\n"), BTreeSet::new());
    }
}
