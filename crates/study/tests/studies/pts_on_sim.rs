//! SNIA performance tests on simulated flash whose steady state is known.

use crate::common::lost_pod_error::lost_pod_error;
use crate::common::lost_pod_session::LostPodSession;
use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::{Engine, Plan, ReadWriteMode};
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_study::StudyError;
use iosonde_study::probe::{StudyTarget, StudyTargetKind};
use iosonde_study::pts::{PtsOptions, PtsPreset, PtsResult, PtsTest, Purge, measure_pts};

/// Size of the device in bytes.
const CAPACITY: u64 = 64 << 20;
/// Four servers of 4 ms for writes: 1000 IOPS when worn, four times that when fresh.
const FLASH: &str = "seed=1,capacity=64m,read_us=8ms,write_us=4ms,parallel=4,link_bw=100m,fresh=4";

fn options(test: PtsTest) -> PtsOptions {
    PtsOptions {
        test,
        preset: PtsPreset::Enterprise,
        time_scale: 0.01,
        most_rounds: 25,
        iodepth: 4,
        numjobs: 1,
        purge: Purge::Discard,
        size_bytes: Some(CAPACITY),
        seed: 1,
    }
}

fn target(kind: StudyTargetKind) -> StudyTarget {
    StudyTarget {
        name: "flash".to_owned(),
        path: "sim".to_owned(),
        kind,
    }
}

fn run(device: &str, options: &PtsOptions) -> PtsResult {
    let target = target(StudyTargetKind::Simulated {
        options: device.to_owned(),
    });
    let mut session = LocalRunner::default().open();
    measure_pts(&mut session, &target, options, &mut ()).unwrap()
}

/// The decay takes several rounds. The result is the level after it.
#[test]
fn steady_state_level_is_measured() {
    // A round writes about 700 MB.
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
    // Wear does not slow reads down.
    let reads = series.figure(6).unwrap();
    assert!((reads.iops / 500.0 - 1.0).abs() < 0.02, "{reads:?}");
}

#[test]
fn unsteady_series_is_reported() {
    // Writes slow down by a few per cent in each round.
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

/// The test writes four times the capacity, from the fresh level down to the steady state.
#[test]
fn write_saturation_shows_the_decay() {
    // 80 write IOPS, four times that when fresh.
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

/// A purge by the user counts for the first series; the second starts on the state that it left.
#[test]
fn purge_by_user_counts_for_first_series_only() {
    let options = PtsOptions {
        purge: Purge::Done,
        ..options(PtsTest::Throughput)
    };
    let result = run(&format!("{FLASH},fresh_bytes=16m"), &options);
    let purged: Vec<bool> = result.series.iter().map(|one| one.purged).collect();
    assert_eq!(purged, [true, false]);
    let deviations = result.deviations.iter();
    assert!(
        deviations.clone().any(|one| one.contains("not purged")),
        "{deviations:?}"
    );
}

#[test]
fn throughput_test_fills_for_each_block_size() {
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
        // The limit is the link, or four reads of 8 ms at once.
        let most = (100.0 * 1048576.0f64).min(500.0 * series.workloads[0].block_bytes as f64);
        assert!((read / most - 1.0).abs() < 0.25, "{read} of {most}");
    }
}

/// Records the runs of another session.
struct Witness<S> {
    session: S,
    asked: Vec<(String, ReadWriteMode, u64)>,
}

impl<S: Session> Session for Witness<S> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let job = &plan.jobs[0];
        assert_eq!(job.io.engine, Engine::Sim);
        let size = match job.files.size {
            Some(iosonde_job::plan::BytesOrPercent::Bytes(bytes)) => bytes,
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

/// Rounds can take hours, so their results are kept.
#[test]
fn lost_run_keeps_earlier_rounds() {
    let target = target(StudyTargetKind::Simulated {
        options: format!("{FLASH},fresh_bytes=16m"),
    });
    let lost_at = |run: usize| {
        let mut session = LostPodSession(LocalRunner::default().open(), run);
        measure_pts(
            &mut session,
            &target,
            &options(PtsTest::Throughput),
            &mut (),
        )
    };
    // Purge and fill, then rounds of two workloads each.
    let nothing = lost_at(4);
    assert!(
        matches!(nothing, Err(StudyError::Run(RunError::Lost { .. }))),
        "{nothing:?}"
    );
    let in_round = lost_at(2 + 2 * 3 + 2).unwrap();
    assert_eq!(in_round.series.len(), 1);
    assert_eq!(in_round.series[0].rounds.len(), 3);
    assert_eq!(in_round.error, Some(lost_pod_error().into()));
    // The first series has its result; the second loses its pod during the fill.
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
        (0, Some(lost_pod_error().into()))
    );
}

/// One purge, two fills, then rounds.
#[test]
fn full_scale_test_fills_device_twice() {
    let target = target(StudyTargetKind::Simulated {
        // A slow device has few I/Os to count in an hour.
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
    let result = measure_pts(&mut session, &target, &options, &mut ()).unwrap();
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
fn device_without_consent_is_refused() {
    let kind = StudyTargetKind::Existing {
        bytes: 1 << 30,
        device: true,
        consent: false,
    };
    let mut session = LocalRunner::default().open();
    let refused = measure_pts(
        &mut session,
        &target(kind),
        &options(PtsTest::Iops),
        &mut (),
    );
    assert!(matches!(refused, Err(StudyError::WriteRefused { .. })));
}
