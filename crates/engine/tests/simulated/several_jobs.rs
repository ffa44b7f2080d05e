//! Tests of several jobs: their start order, and jobs that end together.

use super::*;

#[test]
fn exitall_ends_those_that_exit_what_names() {
    let runtimes = |what: ExitWhat| {
        let mut jobs: Vec<Job> = (0..4).map(|_| job(SLOW, 1)).collect();
        jobs[0].schedule.runtime_ns = 1_000_000_000;
        jobs[0].schedule.exitall = Some(what);
        // A second reporting group, and a job after a stonewall.
        jobs[2].groupid = 1;
        jobs[3].groupid = 2;
        jobs[3].schedule.stonewall = true;
        let result = run(jobs);
        let mut seconds = [0; 4];
        for worker in &result.workers {
            seconds[worker.job] = (worker.runtime_ns + 500_000_000) / 1_000_000_000;
        }
        seconds
    };
    assert_eq!(runtimes(ExitWhat::Group), [1, 1, 10, 10]);
    assert_eq!(runtimes(ExitWhat::Stonewall), [1, 1, 1, 10]);
    assert_eq!(runtimes(ExitWhat::All), [1, 1, 1, 0]);
}

#[test]
fn exitall_on_error_ends_all() {
    let mut failing = job("read_us=1000,parallel=1,read_dist=fixed,error_at=100", 1);
    failing.schedule.exitall_on_error = true;
    let result = run(vec![failing, job(SLOW, 1)]);
    assert!(result.workers[1].runtime_ns < 1_000_000_000);
    assert_eq!(result.workers[1].error, None);
}

#[test]
fn later_group_does_not_restart_earlier_workers() {
    let slow = || {
        let mut slow = job("read_us=100,read_dist=fixed", 1);
        slow.name = "slow".to_owned();
        slow.schedule.rate_iops_min = PerDirection::from_value(Some(1_000_000));
        slow
    };
    let mut first = job("read_us=100,read_dist=fixed", 1);
    first.name = "first".to_owned();
    first.schedule.runtime_ns = 1_000_000_000;
    let mut second = first.clone();
    second.name = "second".to_owned();
    second.schedule.wait_for = Some("first".to_owned());
    let runtime = |jobs| run(jobs).workers[0].directions.read.runtime_ns;
    // A job that starts meanwhile does not change the period over which a rate is checked.
    assert_eq!(runtime(vec![slow(), first, second]), runtime(vec![slow()]));
}

#[test]
fn wait_for_waits_for_all_clones() {
    let mut first = job(SLOW, 1);
    first.name = "first".to_owned();
    first.numjobs = 2;
    first.schedule.runtime_ns = 2_000_000_000;
    let beside = job(SLOW, 1);
    let mut after = job(SLOW, 1);
    after.schedule.wait_for = Some("first".to_owned());
    let result = run(vec![first, beside, after]);
    let starts: Vec<u64> = result
        .workers
        .iter()
        .map(|worker| worker.started_at_ms)
        .collect();
    assert_eq!(starts[..3], [0, 0, 0]);
    assert!((2_000..2_200).contains(&starts[3]), "{starts:?}");
}

#[test]
fn clones_draw_separate_start_delays() {
    let mut late = job(SLOW, 1);
    late.numjobs = 8;
    late.schedule.startdelay_ns = (1_000_000_000, 3_000_000_000);
    let result = run(vec![late]);
    let starts: std::collections::BTreeSet<u64> = result
        .workers
        .iter()
        .map(|worker| worker.started_at_ms)
        .collect();
    assert!(starts.len() > 4, "{starts:?}");
    assert!(
        starts.iter().all(|ms| (1_000..=3_000).contains(ms)),
        "{starts:?}"
    );
}

#[test]
fn flow_weights_set_the_io_ratio() {
    let share = |weight| {
        let mut share = job(SLOW, 1);
        share.io.sim = Some(format!("{SLOW},seed={weight}"));
        share.schedule.flow = Some(Flow {
            id: 1,
            weight,
            sleep_ns: 100_000,
        });
        share
    };
    let result = run(vec![share(8), share(1)]);
    let ratio = result.workers[0].directions.read.total_ios as f64
        / result.workers[1].directions.read.total_ios as f64;
    assert!((7.8..8.2).contains(&ratio), "{ratio}");
}
