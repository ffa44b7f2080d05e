//! Tests of SNIA's specification on simulated flash whose steady level is known.

mod lost;

use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::{Engine, Mode, Plan};
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use iosonde_study::probe::{ProbeTarget, TargetKind};
use iosonde_study::pts::{Preset, PtsError, PtsOptions, PtsResult, PtsTest, Purge, pts};
use lost::{Lost, lost};

/// Bytes of the device.
const CAPACITY: u64 = 64 << 20;
/// Writes 4 ms with four servers: 1000 a second once it is worn, four times that while it is fresh.
const FLASH: &str = "seed=1,capacity=64m,read_us=8ms,write_us=4ms,parallel=4,link_bw=100m,fresh=4";

fn options(test: PtsTest) -> PtsOptions {
    PtsOptions {
        test,
        preset: Preset::Enterprise,
        time_scale: 0.01,
        most_rounds: 25,
        iodepth: 4,
        numjobs: 1,
        purge: Purge::Discard,
        size_bytes: Some(CAPACITY),
        seed: 1,
    }
}

fn target(kind: TargetKind) -> ProbeTarget {
    ProbeTarget {
        name: "flash".to_owned(),
        path: "sim".to_owned(),
        kind,
    }
}

fn run(device: &str, options: &PtsOptions) -> PtsResult {
    let target = target(TargetKind::Simulated {
        options: device.to_owned(),
    });
    let mut session = LocalRunner::default().open();
    pts(&mut session, &target, options, &mut ()).unwrap()
}

/// The decay takes several rounds; what is reported is the level that stays.
#[test]
fn the_steady_level_is_found() {
    // A round writes some 700 MB.
    let device = format!("{FLASH},fresh_bytes=2g");
    let result = run(&device, &options(PtsTest::Iops));
    let series = &result.series[0];
    let steady = series.steady.as_ref().expect("a steady state");
    assert!(
        steady.last_round > 5,
        "it was steady from the start: {steady:?}"
    );
    assert_eq!(steady.last_round, series.rounds.len());
    assert!(series.purged && series.filled_bytes == CAPACITY);
    let writes = series
        .workloads
        .iter()
        .position(|one| (one.read_percent, one.block_bytes) == (0, 4096))
        .unwrap();
    let first = series.rounds[0].cells[writes].unwrap().iops;
    let found = series.figure(writes).unwrap().iops;
    assert!(first > 2500.0, "{first}");
    assert!((found / 1000.0 - 1.0).abs() < 0.10, "{found}");
    let tracked = steady.tracked[0];
    assert!(tracked.range <= 0.2 && tracked.excursion <= 0.1);
    // Reads are what they were.
    let reads = series.figure(6).unwrap();
    assert!((reads.iops / 500.0 - 1.0).abs() < 0.02, "{reads:?}");
}

#[test]
fn what_does_not_come_to_rest_is_told_so() {
    // Writes go on getting slower by some per cent from round to round.
    let device = FLASH.replace("fresh=4", "fresh=50,fresh_bytes=20m");
    let options = PtsOptions {
        most_rounds: 6,
        ..options(PtsTest::Latency)
    };
    let result = run(&device, &options);
    assert_eq!(result.series[0].rounds.len(), 6);
    assert!(!result.is_steady() && result.series[0].steady.is_none());
    assert_eq!(result.series[0].window(), 1..6);
}

/// Writes until four times the capacity is written, from the fresh level down to the steady one.
#[test]
fn write_saturation_shows_the_decay() {
    // 80 writes a second, four times that while it is fresh.
    let device = "seed=1,capacity=64m,write_us=50ms,parallel=4,fresh=4,fresh_bytes=4m";
    let options = PtsOptions {
        time_scale: 0.1,
        ..options(PtsTest::WriteSaturation)
    };
    let result = run(device, &options);
    let rounds = &result.series[0].rounds;
    let wanted = 4.0 * 0.1 * CAPACITY as f64;
    let written = |round: usize| rounds[round].written_bytes;
    let last = rounds.len() - 1;
    assert!(
        written(last) >= wanted && written(last - 1) < wanted,
        "{rounds:?}"
    );
    assert_eq!(result.series[0].filled_bytes, 0);
    let rate = |round: usize| rounds[round].cells[0].unwrap().iops;
    assert!(
        rate(0) > 200.0 && (rate(last) / 80.0 - 1.0).abs() < 0.05,
        "{rounds:?}"
    );
    assert!(result.series[0].steady.is_some());
}

/// What the user did before counts for the first series: the second begins on what that one left.
#[test]
fn a_purge_by_somebody_else_is_one_before_the_first_series() {
    let options = PtsOptions {
        purge: Purge::Done,
        ..options(PtsTest::Throughput)
    };
    let result = run(&format!("{FLASH},fresh_bytes=16m"), &options);
    let purged: Vec<bool> = result.series.iter().map(|one| one.purged).collect();
    assert_eq!(purged, [true, false]);
    let told = result.deviations.iter();
    assert!(
        told.clone().any(|one| one.contains("not purged")),
        "{told:?}"
    );
}

#[test]
fn throughput_fills_for_each_block_size() {
    let result = run(
        &format!("{FLASH},fresh_bytes=16m"),
        &options(PtsTest::Throughput),
    );
    let blocks: Vec<u64> = result
        .series
        .iter()
        .map(|one| one.workloads[0].block_bytes)
        .collect();
    assert_eq!(blocks, [1 << 20, 128 << 10]);
    for series in &result.series {
        assert!(series.purged && series.filled_bytes == CAPACITY);
        assert_eq!(series.steady.as_ref().unwrap().tracked.len(), 2);
        let read = series.figure(0).unwrap().bytes_per_s;
        // By the link, or by four reads of 8 ms at once.
        let most = (100.0 * 1048576.0f64).min(500.0 * series.workloads[0].block_bytes as f64);
        assert!((read / most - 1.0).abs() < 0.25, "{read} of {most}");
    }
}

/// Runs as another session does, and writes down what it was asked for.
struct Witness<S> {
    session: S,
    asked: Vec<(String, Mode, u64)>,
}

impl<S: Session> Session for Witness<S> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let job = &plan.jobs[0];
        assert_eq!(job.io.engine, Engine::Sim);
        let size = match job.files.size {
            Some(iosonde_job::plan::Extent::Bytes(bytes)) => bytes,
            _ => 0,
        };
        self.asked
            .push((job.name.clone(), job.workload.rw.mode, size));
        self.session.run(plan, observer)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

/// Hours of rounds are not thrown away.
#[test]
fn a_run_without_a_result_leaves_the_rounds_before_it() {
    let target = target(TargetKind::Simulated {
        options: format!("{FLASH},fresh_bytes=16m"),
    });
    let lost_at = |run: usize| {
        let mut session = Lost(LocalRunner::default().open(), run);
        pts(
            &mut session,
            &target,
            &options(PtsTest::Throughput),
            &mut (),
        )
    };
    // Purge, fill, then rounds of two workloads each.
    let nothing = lost_at(4);
    assert!(
        matches!(nothing, Err(PtsError::Run(RunError::Lost { .. }))),
        "{nothing:?}"
    );
    let in_round = lost_at(2 + 2 * 3 + 2).unwrap();
    assert_eq!(in_round.series.len(), 1);
    assert_eq!(in_round.series[0].rounds.len(), 3);
    assert_eq!(in_round.error, Some(lost().into()));
    // The first series has its result, the second one was being filled.
    let rounds = run(
        &format!("{FLASH},fresh_bytes=16m"),
        &options(PtsTest::Throughput),
    )
    .series[0]
        .rounds
        .len();
    let in_fill = lost_at(2 + 2 * rounds + 2).unwrap();
    assert!(in_fill.series[0].steady.is_some());
    assert_eq!(
        (in_fill.series[1].rounds.len(), in_fill.error),
        (0, Some(lost().into()))
    );
}

/// Discarded once, written twice, then rounds.
#[test]
fn at_full_scale_everything_is_written_twice() {
    let target = target(TargetKind::Simulated {
        // Slow: an hour is to be counted.
        options: "seed=1,capacity=64m,read_us=50ms,write_us=50ms,parallel=64".to_owned(),
    });
    let options = PtsOptions {
        time_scale: 1.0,
        most_rounds: 5,
        ..options(PtsTest::Latency)
    };
    let mut session = Witness {
        session: LocalRunner::default().open(),
        asked: Vec::new(),
    };
    let result = pts(&mut session, &target, &options, &mut ()).unwrap();
    let prepared: Vec<(&str, u64)> = session
        .asked
        .iter()
        .take(4)
        .map(|(name, _, size)| (name.as_str(), *size))
        .collect();
    assert_eq!(
        prepared[..3],
        [("purge", CAPACITY), ("fill", CAPACITY), ("fill", CAPACITY)]
    );
    assert_eq!(prepared[3].0, "random-100-8192");
    assert_eq!(session.asked.len(), 3 + 5 * 9);
    assert_eq!(result.series[0].filled_bytes, 2 * CAPACITY);
    assert!(result.deviations.is_empty(), "{:?}", result.deviations);
}

#[test]
fn what_is_somebodys_is_refused() {
    let kind = TargetKind::Existing {
        bytes: 1 << 30,
        device: true,
        consent: false,
    };
    let mut session = LocalRunner::default().open();
    let refused = pts(
        &mut session,
        &target(kind),
        &options(PtsTest::Iops),
        &mut (),
    );
    assert!(matches!(refused, Err(PtsError::Consent { .. })));
}
