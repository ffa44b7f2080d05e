//! Tests of headlines.

use super::*;
use iosonde_engine::runner::LocalRunner;
use iosonde_job::diagnostic::Diagnostics;
use iosonde_job::env::FakeEnv;
use iosonde_result::compare::{Bounds, IntervalBasis, IoPattern, PartRole, figure_of};
use iosonde_study::probe::{ProbeBudget, StudyTargetKind, probe};
use iosonde_study::pts::{
    PtsCell, PtsOptions, PtsPreset, PtsRound, PtsTest, PtsWorkload, Purge, SeriesResult, Steady,
    Tracked,
};
use iosonde_study::sweep::{Base, SweepGrid, SweepOptions, SweepTarget, parse_axes, sweep};
use iosonde_study::test_targets::{probe_options, simulated_target};
use iosonde_suite::{StepResult, SuiteResult};
use serde_json::Value;
use std::collections::BTreeMap;

/// A part that writes blocks of `block_bytes`.
fn writer(name: &str, iops: f64, block_bytes: f64) -> ResultPart {
    let figure = |measure, value| Figure {
        subject: Subject::Write,
        measure,
        value,
        bounds: None,
        settled: None,
    };
    ResultPart {
        name: name.to_owned(),
        pattern: IoPattern::default(),
        figures: vec![
            figure(Measure::Iops, iops),
            figure(Measure::BytesPerS, iops * block_bytes),
        ],
        role: Default::default(),
    }
}

fn headline_of(parts: &[ResultPart]) -> Headline {
    Headline::from_study(&suite_study(None), parts)
}

/// A stored suite with this document.
fn suite_study(document: Option<Value>) -> StudyRecord {
    StudyRecord {
        kind: "suite".to_owned(),
        target: "/data".to_owned(),
        machine: None,
        program: String::new(),
        started_at_ms: 0,
        labels: BTreeMap::new(),
        document,
        runs: Vec::new(),
    }
}

fn of_parts(parts: &[ResultPart]) -> (Option<f64>, Option<f64>) {
    let headline = headline_of(parts);
    let per_s = |rate: Option<HeadlineRate>| rate.map(|rate| rate.per_s);
    (per_s(headline.write), per_s(headline.bandwidth))
}

#[test]
fn neighbours_of_a_suite_are_left_out() {
    let with_role = |role, part| ResultPart { role, ..part };
    let mut parts = vec![
        with_role(
            PartRole::BesideNeighbour,
            writer("wal beside", 300.0, 4096.0),
        ),
        with_role(PartRole::Neighbour, writer("neighbour", 800.0, 65536.0)),
    ];
    // No part was measured alone.
    assert_eq!(of_parts(&parts), (Some(300.0), Some(300.0 * 4096.0)));
    parts.push(writer("wal", 200.0, 4096.0));
    assert_eq!(of_parts(&parts), (Some(200.0), Some(200.0 * 4096.0)));
    // A job may have the name of a neighbour.
    parts.push(writer("copy of wal", 250.0, 4096.0));
    assert_eq!(of_parts(&parts), (Some(250.0), Some(250.0 * 4096.0)));
}

#[test]
fn highest_rate_keeps_its_own_interval() {
    let mut slow = writer("slow", 200.0, 4096.0);
    let mut fast = writer("fast", 800.0, 4096.0);
    for (part, half) in [(&mut slow, 1.0), (&mut fast, 20.0)] {
        let figure = &mut part.figures[0];
        figure.bounds = Some(Bounds {
            low: figure.value - half,
            high: figure.value + half,
            freedom: 20.0,
            repeat_factor: 1.0,
            basis: IntervalBasis::Series,
        });
    }
    let headline = headline_of(&[fast, slow]);
    let written = headline.write.unwrap();
    assert_eq!((written.per_s, written.error), (800.0, Some(20.0)));
    // The interval of the bandwidth is not known.
    let error = headline.bandwidth.unwrap().error;
    assert_eq!(error, Some(f64::INFINITY));
    assert_eq!(headline.read, None);
}

#[test]
fn repetitions_of_a_suite_have_the_figure_of_its_table() {
    let with_bounds = |iops: f64| {
        let mut part = writer("g", iops, 4096.0);
        part.figures[0].bounds = Some(Bounds {
            low: iops - 22.0,
            high: iops + 22.0,
            freedom: 20.0,
            repeat_factor: 1.0,
            basis: IntervalBasis::Series,
        });
        part
    };
    let parts = [254.0, 254.1].map(with_bounds);
    let steps = (1..).zip(&parts).map(|(repetition, part)| StepResult {
        parts: vec![part.clone()],
        ..StepResult::without_figures("g", "g", repetition)
    });
    let suite = SuiteResult::from_steps("s", "/data", steps.collect());
    let all = run_repetitions(&suite);
    let shown = figure_of(&all, "g", Subject::Write, Measure::Iops).unwrap();
    let bounds = shown.bounds.unwrap();
    let study = suite_study(serde_json::to_value(&suite).ok());
    let written = Headline::from_study(&study, &parts).write.unwrap();
    assert_eq!(written.per_s, shown.value);
    let half = (shown.value - bounds.low).max(bounds.high - shown.value);
    assert_eq!(written.error, Some(half));
    assert!(half < 1.0, "{half}");
    // A suite that was cut off has its runs alone.
    let alone = headline_of(&parts).write.unwrap().error.unwrap();
    assert!((alone - 22.0).abs() < 1e-9, "{alone}");
}

#[test]
fn highest_rate_of_jobs_keeps_its_own_direction_and_doubt() {
    let slow = writer("slow", 200.0, 65536.0);
    let mut fast = writer("fast", 800.0, 4096.0);
    // A synchronous engine keeps one I/O in flight at any depth.
    (fast.pattern.iodepth, fast.pattern.numjobs) = (32, 4);
    fast.pattern.rw = "randrw:8".to_owned();
    fast.figures[0].settled = Some(false);
    let headline = headline_of(&[fast, slow]);
    let (written, bandwidth) = (headline.write.unwrap(), headline.bandwidth.unwrap());
    assert_eq!(written.workload.as_deref(), Some("writes of a mix"));
    assert_eq!((written.depths, written.is_alone), (None, false));
    assert!(written.is_unsteady);
    assert_eq!(bandwidth.workload.as_deref(), Some("writes"));
    assert_eq!((bandwidth.depths, bandwidth.is_alone), (None, false));
    assert!(!bandwidth.is_unsteady);
    let plain = headline_of(&[writer("plain", 200.0, 4096.0)]);
    assert_eq!(plain.write.unwrap().workload, None);
}

#[test]
fn highest_rate_names_its_workload() {
    let mut headline = Headline::default();
    for (rw, iops) in [
        ("read", 5.0),
        ("randread", 10.0),
        ("read", 7.0),
        ("rw", 20.0),
    ] {
        let rate = HeadlineRate::from_workload(rw, (iops, None));
        headline.take_rate(rate, (iops, None));
    }
    let workload = |rate: Option<HeadlineRate>| rate.and_then(|rate| rate.workload);
    assert_eq!(workload(headline.read).as_deref(), Some("randread"));
    assert_eq!(workload(headline.bandwidth).as_deref(), Some("rw"));
    assert_eq!(headline.write, None);
}

#[test]
fn writes_with_fdatasync_are_no_headline_of_a_probe() {
    let options = probe_options(ProbeBudget::QUICK, None);
    let mut session = LocalRunner::default().open();
    let mut result = probe(&mut session, &simulated_target("nvme"), &options, &mut ()).unwrap();
    let mut figures = result.figures.iter_mut();
    let synced = figures.find(|figure| figure.phase == ProbePhase::SyncedWrite);
    let synced = synced.unwrap();
    (synced.iops.mean, synced.bytes_per_s.mean) = (1e12, 1e15);
    let headline = Headline::from_probe(&result);
    let (written, bandwidth) = (headline.write.unwrap(), headline.bandwidth.unwrap());
    assert!(written.per_s < 1e12, "{written:?}");
    assert!(bandwidth.per_s < 1e15, "{bandwidth:?}");
    assert!(!bandwidth.is_of_sweep);
}

#[test]
fn maximum_of_a_sweep_is_marked_as_such() {
    let target = simulated_target("net-iops-cap");
    let targets = [SweepTarget::new(&target, None).unwrap()];
    let given = [("iodepth".to_owned(), "1,2,4,8,16".to_owned())];
    let axes = parse_axes(&given, &mut Diagnostics::default());
    let grid = SweepGrid::new(&Base::Plain, &targets, &axes, &FakeEnv::new()).unwrap();
    let options = SweepOptions {
        exhaustive: false,
        runtime_ns: 10_000_000_000,
        budget_ns: None,
        seed: 1,
        most_warmup_ns: None,
    };
    let mut session = LocalRunner::default().open();
    let result = sweep(&mut session, &targets, &grid, &options, Vec::new(), &mut ()).unwrap();
    let headline = Headline::from_sweep(&result);
    assert!(headline.bandwidth.unwrap().is_of_sweep);
}

/// A test of SNIA with one round of reads and writes, of 100 and 200 I/Os per second.
fn pts_of(test: PtsTest) -> PtsResult {
    let workload = |read_percent| PtsWorkload {
        read_percent,
        block_bytes: 4096,
    };
    let cell = |iops: f64| {
        Some(PtsCell {
            iops,
            bytes_per_s: 4096.0 * iops,
            mean_ns: 1e6,
            p99_ns: None,
            p99_9_ns: None,
            max_ns: 1e7,
        })
    };
    PtsResult {
        format: iosonde_study::pts::FORMAT,
        target: "sim".to_owned(),
        kind: StudyTargetKind::Simulated {
            options: String::new(),
        },
        options: PtsOptions {
            test,
            preset: PtsPreset::Client,
            time_scale: 1.0,
            most_rounds: 25,
            iodepth: 16,
            numjobs: 2,
            purge: Purge::None,
            size_bytes: None,
            seed: 1,
        },
        bytes: 1 << 30,
        direct: true,
        series: vec![SeriesResult {
            purged: false,
            filled_bytes: 0,
            workloads: vec![workload(100), workload(0)],
            value: Tracked::Iops,
            rounds: vec![PtsRound {
                cells: vec![cell(100.0), cell(200.0)],
                written_bytes: 0.0,
            }],
            steady: Some(Steady {
                first_round: 1,
                last_round: 1,
                tracked: Vec::new(),
            }),
        }],
        deviations: Vec::new(),
        interrupted: false,
        failure: None,
        error: None,
        notes: Vec::new(),
    }
}

#[test]
fn workload_of_pts_has_name_of_fio_and_depth_of_its_series() {
    for (test, names, (jobs, iodepth)) in [
        (PtsTest::Iops, ["randread", "randwrite"], (2, 16)),
        (PtsTest::Latency, ["randread", "randwrite"], (1, 1)),
        (PtsTest::Throughput, ["read", "write"], (1, 32)),
    ] {
        let headline = Headline::from_pts(&pts_of(test));
        let depths = Some(HeadlineDepths::from_depth(jobs, iodepth));
        for (rate, name) in [headline.read, headline.write].into_iter().zip(names) {
            let rate = rate.unwrap();
            assert_eq!(rate.workload.as_deref(), Some(name));
            assert_eq!(rate.depths, depths, "{test:?}");
        }
    }
    // The plan of the client preset has one series of throughput.
    let mut unplanned = pts_of(PtsTest::Throughput);
    let mut second = unplanned.series[0].clone();
    second.rounds[0].cells[0].as_mut().unwrap().iops = 300.0;
    unplanned.series.push(second);
    let read = Headline::from_pts(&unplanned).read.unwrap();
    assert_eq!((read.per_s, read.depths), (300.0, None));
}

#[test]
fn pts_without_steady_state_has_unsteady_rates() {
    let mut result = pts_of(PtsTest::Iops);
    let is_unsteady = |result: &PtsResult| Headline::from_pts(result).read.unwrap().is_unsteady;
    assert!(!is_unsteady(&result));
    result.series[0].steady = None;
    assert!(is_unsteady(&result));
}

#[test]
fn job_named_like_a_neighbour_counts_without_one() {
    let parts = [
        writer("wal", 200.0, 4096.0),
        writer("copy of wal", 800.0, 4096.0),
    ];
    assert_eq!(of_parts(&parts).0, Some(800.0));
}
