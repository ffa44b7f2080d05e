//! Decides whether the workers of a job share one kernel thread of io_uring (`sqthread_poll`).

use super::plan_facts::concurrent_jobs;
use iosonde_job::plan::{Engine, Job, Plan};
use iosonde_machine::host::describe_host;
use iosonde_machine::proc_root::System;
use iosonde_result::host::Host;

/// Whether the workers of a job share a kernel thread, if the user does not decide it. Those of a
/// job with `cpus_allowed_policy=split` do not: newer kernels would run the thread only on the CPU
/// of the worker that created it.
pub(super) fn shares_sqpoll_thread(plan: &Plan, job: usize) -> bool {
    let io = &plan.jobs[job].io;
    if !has_sqpoll(&plan.jobs[job]) || io.cpus_split {
        return false;
    }
    let thread_cpu = io.uring.sqthread_poll_cpu;
    let cpus = usable_cpus(&describe_host(&System::live()));
    lacks_cpus(count_workers(plan, job), cpus, thread_cpu)
}

/// Returns the CPUs that the process may use: those online, those of its affinity and cpuset, or
/// its CPU quota, whichever are fewest.
fn usable_cpus(host: &Host) -> f64 {
    let counts = [host.cpu.online, host.cgroup.cpuset];
    let counts = counts.into_iter().flatten().map(f64::from);
    let bounds = counts.chain(host.cgroup.cpu_quota);
    bounds.fold(f64::INFINITY, f64::min)
}

fn has_sqpoll(job: &Job) -> bool {
    matches!(job.io.engine, Engine::Auto | Engine::IoUring) && job.io.uring.sqthread_poll
}

/// Returns the number of workers with `sqthread_poll` that run while a job runs. A neighbour runs
/// with all groups.
fn count_workers(plan: &Plan, job: usize) -> u64 {
    let group = concurrent_jobs(plan, job).iter();
    let group = group.filter(|job| !job.schedule.neighbour);
    let polling = group.chain(plan.neighbour()).filter(|job| has_sqpoll(job));
    polling.map(|job| u64::from(job.numjobs.max(1))).sum()
}

/// Whether workers and kernel threads, one for each worker, are more than the CPUs. The kernel
/// threads poll, so they would take CPU time from each other and from the workers. A job that names
/// the CPU of its threads keeps them.
fn lacks_cpus(workers: u64, cpus: f64, thread_cpu: Option<u32>) -> bool {
    thread_cpu.is_none() && (workers * 2) as f64 > cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_thread_is_shared_if_threads_outnumber_cpus() {
        let rows = [
            (1, 1.0, None, true),
            (1, 2.0, None, false),
            (2, 2.0, None, true),
            (2, 3.0, None, true),
            (2, 4.0, None, false),
            (3, 4.0, None, true),
            (4, 8.0, None, false),
            // A quota of the control group.
            (1, 1.5, None, true),
            (2, 3.5, None, true),
            // The job names the CPU of its threads.
            (2, 2.0, Some(0), false),
            (64, 2.0, Some(1), false),
        ];
        for (workers, cpus, thread_cpu, expected) in rows {
            let shared = lacks_cpus(workers, cpus, thread_cpu);
            assert_eq!(shared, expected, "{workers} {cpus} {thread_cpu:?}");
        }
    }

    #[test]
    fn usable_cpus_are_online_and_within_affinity_and_quota() {
        let usable = |online, cpuset, cpu_quota| {
            let mut host = Host::default();
            host.cpu.online = online;
            (host.cgroup.cpuset, host.cgroup.cpu_quota) = (cpuset, cpu_quota);
            usable_cpus(&host)
        };
        assert_eq!(usable(Some(4), Some(2), None), 2.0);
        assert_eq!(usable(Some(4), Some(2), Some(1.5)), 1.5);
        // A machine to which CPUs can be added allows the absent ones, too.
        assert_eq!(usable(Some(4), Some(128), Some(8.0)), 4.0);
        assert_eq!(usable(None, None, None), f64::INFINITY);
    }

    #[test]
    fn concurrent_workers_with_sqpoll_are_counted() {
        let job = |engine, sqthread_poll, numjobs| {
            let mut job = Job::new("x");
            job.io.engine = engine;
            job.io.uring.sqthread_poll = sqthread_poll;
            job.numjobs = numjobs;
            job
        };
        let mut last = job(Engine::IoUring, true, 8);
        last.schedule.stonewall = true;
        let mut plan = Plan {
            jobs: vec![
                job(Engine::IoUring, true, 2),
                job(Engine::Auto, true, 1),
                job(Engine::IoUring, false, 16),
                job(Engine::Libaio, true, 16),
                last,
            ],
            ..Plan::default()
        };
        assert_eq!([0, 1, 4].map(|job| count_workers(&plan, job)), [3, 3, 8]);
        for unpolled in [2, 3] {
            assert!(!shares_sqpoll_thread(&plan, unpolled));
        }
        let mut neighbour = job(Engine::IoUring, true, 4);
        neighbour.schedule.neighbour = true;
        plan.jobs.push(neighbour);
        let with_neighbour = [0, 1, 4, 5].map(|job| count_workers(&plan, job));
        assert_eq!(with_neighbour, [7, 7, 12, 12]);
    }

    #[test]
    fn workers_with_split_cpus_share_no_kernel_thread() {
        let mut job = Job::new("x");
        job.io.engine = Engine::IoUring;
        job.io.uring.sqthread_poll = true;
        // More than the CPUs of any machine.
        job.numjobs = 1 << 20;
        let mut plan = Plan {
            jobs: vec![job],
            ..Plan::default()
        };
        assert!(shares_sqpoll_thread(&plan, 0));
        plan.jobs[0].io.cpus_split = true;
        assert!(!shares_sqpoll_thread(&plan, 0));
    }
}
