//! Tests of progress reports during a run, and of observers that control it.

use super::*;

/// Ends a run at the first progress report after a second of measuring.
struct StopsSoon(u32);

impl Observer for StopsSoon {
    fn progress(&mut self, _: &RunProgress<'_>) -> Control {
        self.0 += 1;
        if self.0 < 20 {
            Control::Continue
        } else {
            Control::Stop
        }
    }
}

#[test]
fn drain_after_an_observer_stop_is_not_runtime() {
    // 512 I/Os in flight at 1000 IOPS: half of a second's I/Os, which take half a second to drain.
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

/// The run ends at once. At a completion it would always end just before a burst of them.
#[test]
fn observer_stop_ends_the_run_at_once() {
    let mut slow = job("read_us=300000,parallel=1,read_dist=fixed", 1);
    slow.schedule.ramp_time_ns = 1_000_000_000;
    let plan = Plan {
        jobs: vec![slow],
        global_options: Vec::new(),
    };
    let mut session = LocalRunner::default().open();
    let result = session.run(&plan, &mut StopsSoon(0)).unwrap();
    assert_eq!(result.workers[0].runtime_ns, 1_000_000_000);
}

#[test]
fn start_delay_gives_empty_intervals() {
    let mut late = job("read_us=1000,parallel=1,read_dist=fixed", 1);
    late.schedule.startdelay_ns = (2_000_000_000, 2_000_000_000);
    late.schedule.runtime_ns = 3_000_000_000;
    let plan = Plan {
        jobs: vec![late],
        global_options: Vec::new(),
    };
    let mut observer = Sliced {
        interval_ns: 1_000_000_000,
        seen: Vec::new(),
    };
    let result = LocalRunner::default()
        .open()
        .run(&plan, &mut observer)
        .unwrap();
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
    // The first window starts at the first progress report, 0.1 s after the start.
    assert_eq!(
        result.workers[0].directions.read.iops.count, 5,
        "one sample each half second"
    );
}

/// Requests intervals and records them.
struct Sliced {
    interval_ns: u64,
    seen: Vec<Interval>,
}

impl Observer for Sliced {
    fn interval_ns(&self, _plan: &Plan) -> u64 {
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
        // The I/O in flight at the end may have an interval of its own.
        let found = result.intervals.len();
        assert!((expected..=expected + 1).contains(&found), "{found}");
        assert!(observer.seen.len() + 1 >= expected);
        for interval in &observer.seen {
            // A few nanoseconds more if the report interval does not divide it.
            let late = interval.length_ns - interval_ns;
            assert!(late < 10, "{interval_ns}: {late}");
            let ios = interval.directions.read.ios;
            assert!(ios.abs_diff(interval_ns / 1_000_000) <= 1, "{ios}");
        }
        // All other results are equal, including fio's samples.
        result.intervals.clear();
        slow.intervals.clear();
        if interval_ns == 100_000_000 {
            assert_eq!(result, slow);
        }
    }
}

/// Requests the statistics after one second.
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
fn interim_status_covers_each_worker_and_direction() {
    let mut mixed = job(
        "read_us=100,write_us=100,parallel=8,read_dist=fixed,write_dist=fixed",
        4,
    );
    mixed.workload.rw.mode = ReadWriteMode::ReadWrite;
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
