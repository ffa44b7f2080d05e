//! The loop on simulated devices, where the right answer is known.

use iosonde_engine::local::LocalRunner;
use iosonde_job::plan::*;
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, Observer, Progress};
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
    let measured = iops(&run(vec![thinker.clone()]));
    assert!((measured - 250.0).abs() < 1.0, "{measured}");
    // Busy or not, a pause is as long.
    for spin_ns in [1_000_000, 3_000_000] {
        if let Some(rule) = &mut thinker.schedule.thinktime {
            rule.spin_ns = spin_ns;
        }
        let measured = iops(&run(vec![thinker.clone()]));
        assert!((measured - 250.0).abs() < 1.0, "{measured}");
    }
}

#[test]
fn blocks_that_were_in_flight_count_for_the_next_pause() {
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

/// Ends a run at the first look after a second of measuring.
struct StopsSoon(u32);

impl Observer for StopsSoon {
    fn progress(&mut self, _: &Progress<'_>) -> Control {
        self.0 += 1;
        if self.0 < 20 {
            Control::Continue
        } else {
            Control::Stop
        }
    }
}

#[test]
fn the_drain_of_a_run_that_an_observer_ends_is_not_time() {
    // 512 I/Os in flight at 1000 a second: they are half of what a second starts, and take half a second to end.
    let mut deep = job("read_us=1000,parallel=1,read_dist=fixed", 512);
    deep.schedule.ramp_time_ns = 1_000_000_000;
    let plan = Plan {
        jobs: vec![deep],
        global_options: Vec::new(),
    };
    let mut session = LocalRunner::default().open();
    let measured = iops(&session.run(&plan, &mut StopsSoon(0)).unwrap());
    assert!((measured - 1000.0).abs() < 2.0, "{measured}");
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

/// Notes the intervals that it asks for.
struct Sliced {
    interval_ns: u64,
    seen: Vec<Interval>,
}

impl Observer for Sliced {
    fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.seen.push(interval.clone());
        Control::Continue
    }
}

#[test]
fn intervals_are_as_long_as_the_observer_asks() {
    let mut plan = Plan {
        jobs: vec![job("read_us=1000,parallel=1,read_dist=fixed", 1)],
        global_options: Vec::new(),
    };
    plan.jobs[0].schedule.runtime_ns = 3_000_000_000;
    let mut slow = run(plan.jobs.clone());
    for interval_ns in [100_000_000, 250_000_000, 30_000_000] {
        let mut observer = Sliced {
            interval_ns,
            seen: Vec::new(),
        };
        let mut session = LocalRunner::default().open();
        let mut result = session.run(&plan, &mut observer).unwrap();
        let expected = 3_000_000_000 / interval_ns as usize;
        // The I/O that is on its way at the end may have one of its own.
        let found = result.intervals.len();
        assert!((expected..=expected + 1).contains(&found), "{found}");
        assert!(observer.seen.len() + 1 >= expected);
        for interval in &observer.seen {
            // A few nanoseconds more, where the looks do not divide it.
            let late = interval.length_ns - interval_ns;
            assert!(late < 10, "{interval_ns}: {late}");
            let ios = interval.directions.read.ios;
            assert!(ios.abs_diff(interval_ns / 1_000_000) <= 1, "{ios}");
        }
        // All else, fio's samples included, is the same.
        result.intervals.clear();
        slow.intervals.clear();
        if interval_ns == 100_000_000 {
            assert_eq!(result, slow);
        }
    }
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

const SLOW: &str = "read_us=1000,parallel=1,read_dist=fixed";

/// One worker's result, and its error's number.
fn single(job: Job) -> (iosonde_result::run::WorkerResult, i32) {
    let worker = run(vec![job]).workers.remove(0);
    let errno = worker.error.as_ref().map_or(0, |failure| failure.errno);
    (worker, errno)
}

#[test]
fn continue_on_error_survives_what_fio_survives() {
    let device = "read_us=100,parallel=1,read_dist=fixed,error_at=100";
    let mut named = job(device, 1);
    named.errors.ignore[0] = vec![libc::EIO];
    let (worker, errno) = single(named);
    assert_eq!((errno, worker.total_errors, worker.first_error), (0, 1, 5));
    // A list goes before continue_on_error, and this one does not have EIO.
    let mut other = job(device, 1);
    other.errors.continue_read = true;
    other.errors.ignore[0] = vec![libc::ENOSPC];
    assert_eq!(single(other).1, 5);
    // Errors of writes are another kind.
    let mut writes = job(device, 1);
    writes.errors.continue_write = true;
    assert_eq!(single(writes).1, 5);
}

#[test]
fn error_dump_shows_errors_that_are_survived() {
    let mut dumped = job("read_us=100,parallel=1,read_dist=fixed,error_at=100", 1);
    dumped.errors.continue_read = true;
    assert_eq!(run(vec![dumped.clone()]).events, []);
    dumped.errors.dump = true;
    let events = run(vec![dumped]).events;
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(
        events[0].message.contains("failed with EIO"),
        "{}",
        events[0].message
    );
}

#[test]
fn max_latency_ends_a_job_with_etimedout() {
    let mut limited = job(SLOW, 1);
    limited.schedule.max_latency_ns.read = Some(999_999);
    assert_eq!(single(limited.clone()).1, libc::ETIMEDOUT);
    limited.schedule.max_latency_ns.read = Some(1_000_000);
    assert_eq!(single(limited.clone()).1, 0, "not above");
    limited.schedule.max_latency_ns.read = Some(999_999);
    limited.errors.continue_read = true;
    assert_eq!(single(limited).1, libc::ETIMEDOUT, "no error of the device");
}

#[test]
fn a_job_below_its_least_rate_fails_as_in_fio() {
    let mut slow = job(SLOW, 1);
    slow.schedule.rate_iops_min = PerDirection::all(Some(999));
    assert_eq!(single(slow.clone()).1, 0, "it neither writes nor trims");
    slow.schedule.rate_iops_min.read = Some(1_100);
    let (worker, errno) = single(slow.clone());
    assert_eq!(errno, libc::EIO);
    assert!(worker.elapsed_ns < 4_000_000_000, "{}", worker.elapsed_ns);
    slow.schedule.rate_iops_min.read = None;
    slow.schedule.rate_min_bytes.read = Some(1_100 * 4096);
    assert_eq!(single(slow).1, libc::EIO);
}

#[test]
fn pauses_after_blocks_or_time_whichever_comes_first() {
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
    // 100 I/Os take 100 ms, then 100 ms of rest.
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
    mixed.io.cmdprio_split = Some(PerDirection::all(vec![part(50, high), part(25, idle)]));
    mixed.workload.block_size = PerDirection::all(BlockSize::Split(vec![(4096, 50), (8192, 50)]));
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
fn completions_are_collected_as_the_job_says() {
    let mut batched = job("read_us=100,parallel=16,read_dist=fixed", 16);
    batched.io.batch_complete_min = 8;
    batched.io.batch_complete_max = Some(8);
    let (worker, _) = single(batched.clone());
    // Upper bounds: 0, 4, 8, 16, ...: those of exactly 8 are all but the last few.
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
fn exitall_ends_those_that_exit_what_names() {
    let runtimes = |what: ExitWhat| {
        let mut jobs: Vec<Job> = (0..4).map(|_| job(SLOW, 1)).collect();
        jobs[0].schedule.runtime_ns = 1_000_000_000;
        jobs[0].schedule.exitall = Some(what);
        // Another reporting group beside the first, and one behind a stonewall.
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
fn a_later_group_does_not_start_earlier_workers_again() {
    let slow = || {
        let mut slow = job("read_us=100,read_dist=fixed", 1);
        slow.name = "slow".to_owned();
        slow.schedule.rate_iops_min = PerDirection::all(Some(1_000_000));
        slow
    };
    let mut first = job("read_us=100,read_dist=fixed", 1);
    first.name = "first".to_owned();
    first.schedule.runtime_ns = 1_000_000_000;
    let mut second = first.clone();
    second.name = "second".to_owned();
    second.schedule.wait_for = Some("first".to_owned());
    let runtime = |jobs| run(jobs).workers[0].directions.read.runtime_ns;
    // Whether a rate is held is looked at for as long, whoever starts meanwhile.
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
fn each_clone_draws_its_start_delay() {
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
fn latency_run_goes_on_at_the_depth_that_was_found() {
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
fn flows_keep_their_proportion() {
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

/// Wants the statistics at one second.
#[derive(Default)]
struct Asks {
    seen: Vec<RunResult>,
}

impl Observer for Asks {
    fn wants_status(&mut self, at_ns: u64) -> bool {
        at_ns >= 1_000_000_000 && self.seen.is_empty()
    }

    fn status(&mut self, so_far: &RunResult) {
        self.seen.push(so_far.clone());
    }
}

#[test]
fn statistics_on_the_way_are_complete_for_each_worker_and_direction() {
    let mut mixed = job(
        "read_us=100,write_us=100,parallel=8,read_dist=fixed,write_dist=fixed",
        4,
    );
    mixed.workload.rw.mode = Mode::ReadWrite;
    let mut later = mixed.clone();
    later.schedule.stonewall = true;
    mixed.numjobs = 2;
    let mut asks = Asks::default();
    let plan = Plan {
        jobs: vec![mixed, later],
        global_options: Vec::new(),
    };
    let end = LocalRunner::default().open().run(&plan, &mut asks).unwrap();
    let [status] = &asks.seen[..] else {
        panic!("one status, not {}", asks.seen.len());
    };
    assert_eq!(status.workers.len(), 3, "also those that have not begun");
    assert_eq!(status.workers[2].directions.read.total_ios, 0);
    for worker in &status.workers[..2] {
        assert!((worker.runtime_ns as f64 / 1e9 - 1.0).abs() < 0.02);
        assert_eq!(
            worker.iodepth_level[2],
            worker.iodepth_level.iter().sum::<u64>()
        );
        for direction in [Direction::Read, Direction::Write] {
            let (now, last) = (
                &worker.directions[direction],
                &end.workers[0].directions[direction],
            );
            let share = now.total_ios as f64 / last.total_ios as f64;
            assert!((share - 0.1).abs() < 0.02, "{share}");
            assert!(now.total_ios - now.clat.moments.count <= 4);
            assert_eq!(now.clat.moments.min, last.clat.moments.min);
            assert!(now.bw.count > 0 && now.iops.count > 0);
        }
    }
}
