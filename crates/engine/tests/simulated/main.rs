//! Tests of the I/O loop on simulated devices, where the exact results are known.

use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::*;
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, Observer, RunProgress};
use iosonde_result::run::RunResult;
use iosonde_result::session::Session;

mod errors;
mod neighbours;
mod observed;
mod replay;
mod several_jobs;

fn job(device: &str, iodepth: u32) -> Job {
    let mut job = Job::new("sim");
    job.io.engine = Engine::Sim;
    job.io.sim = Some(device.to_owned());
    job.io.iodepth = iodepth;
    job.io.direct = true;
    job.files.size = Some(BytesOrPercent::Bytes(1 << 30));
    job.workload.rw = ReadWrite {
        mode: ReadWriteMode::Read,
        random: true,
    };
    job.workload.percentage_random = PerDirection::from_value(100);
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

/// Result of a single worker, and the errno of its error.
fn single(job: Job) -> (iosonde_result::run::WorkerResult, i32) {
    let worker = run(vec![job]).workers.remove(0);
    let errno = worker.error.as_ref().map_or(0, |failure| failure.errno);
    (worker, errno)
}

#[test]
fn closed_loop_rate_and_latency_follow_littles_law() {
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
fn full_queue_drains_to_iodepth_low_before_refill() {
    // One server completes an I/O per 100 us, so that each refill shows how far the queue drained.
    let mut draining = job("read_us=100,parallel=1,read_dist=fixed", 8);
    draining.io.batch_submit = Some(8);
    draining.schedule.time_based = false;
    draining.schedule.runtime_ns = 0;
    draining.workload.number_ios = Some(801);
    for (low, refill) in [(1, 7), (3, 5), (8, 1)] {
        draining.io.iodepth_low = Some(low);
        let worker = run(vec![draining.clone()]).workers.remove(0);
        let calls: u64 = worker.iodepth_submit.iter().sum();
        assert_eq!(calls, 1 + (801 - 8_u64).div_ceil(refill), "low {low}");
    }
}

#[test]
fn overlapping_ios_take_turns_where_they_are_serialized() {
    // Two blocks, eight I/Os in flight, a device with eight servers of 100 us.
    let mut two_blocks = job("read_us=100,parallel=8,read_dist=fixed", 8);
    two_blocks.files.size = Some(BytesOrPercent::Bytes(8192));
    two_blocks.workload.random_map = RandomMap::None;
    assert!((iops(&run(vec![two_blocks.clone()])) - 80_000.0).abs() < 100.0);
    two_blocks.io.serialize_overlap = true;
    let serialized = iops(&run(vec![two_blocks]));
    assert!((10_000.0..20_001.0).contains(&serialized), "{serialized}");
}

#[test]
fn poisson_arrivals_queue_as_m_d_1() {
    // A server at 90 % utilisation: evenly spaced arrivals never wait, random ones wait 4.05 ms
    // (M/D/1, Pollaczek-Khinchine).
    let mut paced = job("read_us=900,parallel=1,read_dist=fixed", 1);
    paced.schedule.rate_iops.read = Some(1000);
    paced.schedule.runtime_ns = 300_000_000_000;
    let mean = |paced: &Job| {
        let worker = run(vec![paced.clone()]).workers.remove(0);
        worker.directions.read.lat.moments.mean / 1e6
    };
    assert!((mean(&paced) - 0.9).abs() < 0.01, "{}", mean(&paced));
    paced.schedule.rate_poisson = true;
    assert!((3.9..6.2).contains(&mean(&paced)), "{}", mean(&paced));
}

#[test]
fn rate_catches_up_after_thinktime_unless_ignored() {
    let mut thinker = job("read_us=100,parallel=1,read_dist=fixed", 1);
    thinker.schedule.rate_iops.read = Some(1000);
    thinker.schedule.thinktime = Some(ThinkTime {
        pause_ns: 25_000_000,
        spin_ns: 0,
        blocks: 50,
        count_issued: false,
        iotime_ns: 0,
    });
    let caught_up = iops(&run(vec![thinker.clone()]));
    assert!((caught_up / 1000.0 - 1.0).abs() < 0.02, "{caught_up}");
    // 50 I/Os in 50 ms, then 25 ms of thinktime.
    thinker.schedule.rate_ignore_thinktime = true;
    let ignored = iops(&run(vec![thinker]));
    assert!((ignored / 667.0 - 1.0).abs() < 0.02, "{ignored}");
}

#[test]
fn rate_samples_have_the_requested_window() {
    let samples = |bw_ns, iops_ns| {
        let mut sampled = job(SLOW, 1);
        sampled.measure.bw_window_ns = bw_ns;
        sampled.measure.iops_window_ns = iops_ns;
        let worker = run(vec![sampled]).workers.remove(0);
        let read = &worker.directions.read;
        (read.bw.count, read.iops.count)
    };
    let near = |count: u64, wanted: u64| count.abs_diff(wanted) <= 1;
    let (bw, iops) = samples(1_000_000_000, 500_000_000);
    assert!(near(bw, 10) && near(iops, 20), "{bw} {iops}");
    let (bw, iops) = samples(100_000_000, 2_000_000_000);
    assert!(near(bw, 100) && near(iops, 5), "{bw} {iops}");
}

#[test]
fn same_seed_gives_the_same_result() {
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
    // One server of 10 ms and an arrival each 5 ms: the queue and total latency grow. Completion
    // latency is that of the device.
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
    let measured = iops(&run(vec![thinker.clone()]));
    assert!((measured - 250.0).abs() < 1.0, "{measured}");
    // The pause has the same length with and without `thinktime_spin`.
    for spin_ns in [1_000_000, 3_000_000] {
        if let Some(rule) = &mut thinker.schedule.thinktime {
            rule.spin_ns = spin_ns;
        }
        let measured = iops(&run(vec![thinker.clone()]));
        assert!((measured - 250.0).abs() < 1.0, "{measured}");
    }
}

#[test]
fn blocks_in_flight_count_for_the_next_thinktime() {
    let device = "read_us=100,parallel=8,read_dist=fixed";
    for (blocks, expected) in [(1, 99.0), (4, 396.0)] {
        let mut thinker = job(device, 8);
        thinker.schedule.thinktime = Some(ThinkTime {
            pause_ns: 10_000_000,
            spin_ns: 0,
            blocks,
            count_issued: false,
            iotime_ns: 0,
        });
        let measured = iops(&run(vec![thinker]));
        let ratio = measured / expected;
        assert!((0.9..1.2).contains(&ratio), "{blocks}: {measured}");
    }
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
fn latency_target_finds_the_depth() {
    let mut target = job("read_us=1000,parallel=1,read_dist=fixed", 64);
    target.schedule.latency_target = Some(LatencyTarget {
        target_ns: 8_500_000,
        window_ns: 500_000_000,
        percentile: 100.0,
        run: false,
    });
    assert_eq!(run(vec![target]).workers[0].latency_depth, 8);
}

const SLOW: &str = "read_us=1000,parallel=1,read_dist=fixed";

#[test]
fn thinktime_starts_after_blocks_or_iotime() {
    let paused = |blocks: u32, iotime_ms: u64| {
        let mut paused = job(SLOW, 1);
        paused.schedule.thinktime = Some(ThinkTime {
            pause_ns: 100_000_000,
            spin_ns: 0,
            blocks,
            count_issued: false,
            iotime_ns: iotime_ms * 1_000_000,
        });
        iops(&run(vec![paused]))
    };
    // 100 I/Os take 100 ms, then 100 ms of thinktime.
    for (blocks, iotime_ms, expected) in [
        (100, 0, 500.0),
        (u32::MAX, 100, 500.0),
        (100, 900, 500.0),
        (900, 100, 500.0),
        (u32::MAX, 900, 900.0),
    ] {
        let measured = paused(blocks, iotime_ms);
        assert!(
            (measured / expected - 1.0).abs() < 0.02,
            "{blocks} {iotime_ms}: {measured}"
        );
    }
}

#[test]
fn latencies_are_kept_by_priority() {
    let high = IoPriority { class: 1, level: 3 };
    let own = IoPriority { class: 2, level: 4 };
    let mut mixed = job("read_us=100,parallel=1,read_dist=fixed", 4);
    mixed.io.ioprio = Some(own);
    mixed.io.cmdprio_percent.read = 20;
    mixed.io.cmdprio.read = high;
    let (worker, _) = single(mixed.clone());
    let read = &worker.directions.read;
    let count = |priority| {
        let mut each = read
            .by_priority
            .iter()
            .filter(|each| each.priority == priority);
        each.next().map_or(0, |each| each.latency.moments.count)
    };
    assert_eq!(count(high) + count(own), read.clat.moments.count);
    let share = count(high) as f64 / read.total_ios as f64;
    assert!((share - 0.2).abs() < 0.01, "{share}");
    assert_eq!(worker.directions.write.by_priority, []);

    // By block size: half of the 4k blocks, a quarter of them in another class; none of 8k.
    let part = |percent, priority| CmdprioPart {
        block_bytes: 4096,
        percent,
        priority,
    };
    let idle = IoPriority { class: 3, level: 0 };
    mixed.io.cmdprio_percent.read = 0;
    mixed.io.cmdprio_split = Some(PerDirection::from_value(vec![
        part(50, high),
        part(25, idle),
    ]));
    mixed.workload.block_size =
        PerDirection::from_value(BlockSize::Split(vec![(4096, 50), (8192, 50)]));
    mixed.workload.random_map = RandomMap::None;
    let read = single(mixed).0.directions.read;
    let share = |priority| {
        let mut each = read
            .by_priority
            .iter()
            .filter(|each| each.priority == priority);
        each.next().map_or(0, |each| each.latency.moments.count) as f64 / read.total_ios as f64
    };
    for (priority, expected) in [(high, 0.25), (idle, 0.125), (own, 0.625)] {
        assert!(
            (share(priority) - expected).abs() < 0.01,
            "{priority:?}: {}",
            share(priority)
        );
    }
}

#[test]
fn completions_follow_batch_complete_options() {
    let mut batched = job("read_us=100,parallel=16,read_dist=fixed", 16);
    batched.io.batch_complete_min = 8;
    batched.io.batch_complete_max = Some(8);
    let (worker, _) = single(batched.clone());
    // Upper bounds 0, 4, 8, 16, ...: almost all batches have exactly 8 completions.
    assert!(
        worker.iodepth_complete[2] > 1_000,
        "{:?}",
        worker.iodepth_complete
    );
    assert_eq!(worker.iodepth_complete[3..], [0; 4]);
    batched.io.batch_complete_min = 1;
    batched.io.batch_complete_max = Some(3);
    let (worker, _) = single(batched);
    assert!(worker.iodepth_complete[1] > 1_000);
    assert_eq!(worker.iodepth_complete[2..], [0; 5]);
}

#[test]
fn latency_run_continues_at_the_found_depth() {
    let mut target = job(SLOW, 64);
    target.schedule.latency_target = Some(LatencyTarget {
        target_ns: 8_500_000,
        window_ns: 100_000_000,
        percentile: 100.0,
        run: true,
    });
    let (worker, errno) = single(target);
    assert_eq!((errno, worker.latency_depth), (0, 8));
    assert!(worker.runtime_ns >= 9_900_000_000, "{}", worker.runtime_ns);
}

#[test]
fn steady_state_ends_a_job_before_its_time() {
    let mut steady = job(SLOW, 1);
    steady.schedule.steady_state = Some(SteadyState {
        metric: SteadyMetric::Iops,
        slope: false,
        limit: 2.0,
        percent: true,
        duration_ns: 3_000_000_000,
        ramp_ns: 1_000_000_000,
        interval_ns: 1_000_000_000,
    });
    let (worker, _) = single(steady);
    let state = worker.steady_state.expect("it was looked for");
    assert!(
        state.attained && state.iops.iter().all(|iops| (990..=1010).contains(iops)),
        "{state:?}"
    );
    assert!(
        (4_000_000_000..5_500_000_000).contains(&worker.runtime_ns),
        "{}",
        worker.runtime_ns
    );
}

#[test]
fn device_runs_draw_separately_and_share_wear() {
    let iops_of = |device: &str| {
        let run_result = run(vec![job(device, 1)]);
        iops(&run_result)
    };
    let device = "read_us=100,read_dist=exp";
    let first = iops_of(&format!("{device},run=1"));
    assert_eq!(first, iops_of(&format!("{device},run=1")));
    assert_ne!(first, iops_of(&format!("{device},run=2")));
    assert_eq!(iops_of(device), iops_of(&format!("{device},run=0")));
    // Wear of a flash device persists into the next run of a session.
    let mut session = LocalRunner::default().open();
    let rates = [1, 2].map(|number| {
        let flash = "capacity=64m,write_us=1ms,fresh=4,fresh_bytes=4m";
        let mut writer = job(&format!("{flash},run={number}"), 1);
        writer.workload.rw.mode = ReadWriteMode::Write;
        writer.files.size = Some(BytesOrPercent::Bytes(64 << 20));
        let plan = Plan {
            jobs: vec![writer],
            global_options: Vec::new(),
        };
        let result = session.run(&plan, &mut ()).unwrap();
        result.workers[0].directions.write.total_ios
    });
    assert!(rates[0] > rates[1] + 1000, "{rates:?}");
}
