//! The loop on simulated devices, where the right answer is known.

use iosonde_engine::local::LocalRunner;
use iosonde_job::plan::*;
use iosonde_result::run::RunResult;
use iosonde_result::session::Session;

fn job(device: &str, iodepth: u32) -> Job {
    let mut job = Job::new("sim");
    job.io.engine = Engine::Sim;
    job.io.sim = Some(device.to_owned());
    job.io.iodepth = iodepth;
    job.io.direct = true;
    job.files.size = Some(Extent::Bytes(1 << 30));
    job.workload.rw = ReadWrite {
        mode: Mode::Read,
        random: true,
    };
    job.workload.percentage_random = PerDirection::all(100);
    job.schedule.time_based = true;
    job.schedule.runtime_ns = 10_000_000_000;
    job
}

fn run(jobs: Vec<Job>) -> RunResult {
    let mut session = LocalRunner::default().open();
    session
        .run(
            &Plan {
                jobs,
                global_options: Vec::new(),
            },
            &mut (),
        )
        .unwrap()
}

fn iops(result: &RunResult) -> f64 {
    let total = |worker: &iosonde_result::run::WorkerResult| {
        let read = &worker.directions.read;
        read.total_ios as f64 * 1e9 / read.runtime_ns as f64
    };
    result.workers.iter().map(total).sum()
}

#[test]
fn a_device_of_four_servers_of_100_us_serves_what_it_must() {
    for (depth, expected) in [(1, 10_000.0), (2, 20_000.0), (4, 40_000.0), (64, 40_000.0)] {
        let result = run(vec![job("read_us=100,parallel=4,read_dist=fixed", depth)]);
        let measured = iops(&result);
        assert!(
            (measured / expected - 1.0).abs() < 0.001,
            "depth {depth}: {measured}"
        );
        let clat = result.workers[0].directions.read.clat.moments.mean;
        let little = depth as f64 / expected * 1e9;
        assert!(
            (clat / little - 1.0).abs() < 0.01,
            "depth {depth}: {clat} ns, {little} by Little's law"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let once = || {
        let mut jobs = vec![job("nvme,seed=3", 16), job("nvme,seed=3", 4)];
        jobs[1].numjobs = 2;
        jobs[1].schedule.rate_iops.read = Some(5_000);
        let mut result = run(jobs);
        result.elapsed_ns = 0;
        serde_json::to_string(&result).unwrap()
    };
    assert_eq!(once(), once());
}

#[test]
fn open_loop_latency_counts_from_the_intended_start() {
    // One server of 10 ms and a request each 5 ms: the queue grows, and total latency with it; completion latency is that
    // of the device alone.
    let mut paced = job("read_us=10000,parallel=1,read_dist=fixed", 1);
    paced.schedule.rate_iops.read = Some(200);
    paced.schedule.runtime_ns = 1_000_000_000;
    let result = run(vec![paced]);
    let read = &result.workers[0].directions.read;
    assert_eq!(read.clat.moments.max, 10e6);
    assert!(read.lat.moments.max > 400e6, "{}", read.lat.moments.max);
}

#[test]
fn think_time_leaves_the_device_idle() {
    let mut thinker = job("read_us=1000,parallel=1,read_dist=fixed", 1);
    thinker.schedule.thinktime = Some(ThinkTime {
        pause_ns: 3_000_000,
        spin_ns: 0,
        blocks: 1,
        count_issued: false,
        iotime_ns: 0,
    });
    let measured = iops(&run(vec![thinker]));
    assert!((measured - 250.0).abs() < 1.0, "{measured}");
}

#[test]
fn ramp_is_not_measured() {
    let mut ramped = job("read_us=100,parallel=1,read_dist=fixed", 1);
    ramped.schedule.ramp_time_ns = 5_000_000_000;
    ramped.schedule.runtime_ns = 1_000_000_000;
    let result = run(vec![ramped]);
    let read = &result.workers[0].directions.read;
    assert!(
        (9_999..=10_001).contains(&read.total_ios),
        "{}",
        read.total_ios
    );
    assert!((iops(&result) - 10_000.0).abs() < 2.0);
}

#[test]
fn start_delay_and_intervals() {
    let mut late = job("read_us=1000,parallel=1,read_dist=fixed", 1);
    late.schedule.startdelay_ns = (2_000_000_000, 2_000_000_000);
    late.schedule.runtime_ns = 3_000_000_000;
    let result = run(vec![late]);
    let per_second: Vec<u64> = result
        .intervals
        .iter()
        .map(|interval| interval.directions.read.ios)
        .collect();
    assert_eq!(per_second[..2], [0, 0]);
    assert!(
        per_second[2..5]
            .iter()
            .all(|ios| (999..=1001).contains(ios)),
        "{per_second:?}"
    );
    // The first window begins at the first look after the start, a tenth of a second later.
    assert_eq!(
        result.workers[0].directions.read.iops.count, 5,
        "one sample each half second"
    );
}

#[test]
fn a_latency_target_finds_the_depth() {
    let mut target = job("read_us=1000,parallel=1,read_dist=fixed", 64);
    target.schedule.latency_target = Some(LatencyTarget {
        target_ns: 8_500_000,
        window_ns: 500_000_000,
        percentile: 100.0,
        run: false,
    });
    assert_eq!(run(vec![target]).workers[0].latency_depth, 8);
}

#[test]
fn errors_are_counted_or_end_the_job() {
    let device = "read_us=100,parallel=1,read_dist=fixed,error_at=100";
    let result = run(vec![job(device, 1)]);
    let failure = result.workers[0]
        .error
        .as_ref()
        .expect("an error without continue_on_error ends the job");
    assert_eq!(failure.errno, 5);
    let mut survivor = job(device, 1);
    survivor.errors.continue_read = true;
    let result = run(vec![survivor]);
    assert_eq!(
        (
            result.workers[0].error.clone(),
            result.workers[0].total_errors
        ),
        (None, 1)
    );
}
