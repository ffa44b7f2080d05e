use super::*;
use crate::fake_session::{FakeDevice, FakeSession};
use crate::figures::saturation_result::Saturation;
use crate::probe::{ProbeResult, probe};
use crate::probe_budget::ProbeBudget;
use crate::study_target::{StudyTarget, StudyTargetKind};
use crate::test_targets::{directory_target, probe_options};
use iosonde_limits::{Limits, Metric};
use iosonde_result::run::VerdictKind;

/// A volume that promises 15,000 IOPS and 420 MiB/s, and delivers `share` of the write IOPS.
fn volume(share: f64) -> FakeDevice {
    FakeDevice {
        random_read_iops: 15_000.0,
        random_write_iops: 15_000.0 * share,
        read_bytes_per_s: 420.0 * 1_048_576.0,
        write_bytes_per_s: 420.0 * 1_048_576.0,
        read_ns: 500_000.0,
        write_ns: 500_000.0,
        jitter: 0.002,
        ..FakeDevice::nvme()
    }
}

fn probed(device: FakeDevice) -> ProbeResult {
    probe_target(device, &directory_target("/data"))
}

fn probe_target(device: FakeDevice, target: &StudyTarget) -> ProbeResult {
    let options = probe_options(ProbeBudget::NORMAL, None);
    probe(&mut FakeSession::new(device), target, &options, &mut ()).unwrap()
}

fn promised() -> Promise {
    let query = "gcp-pd-ssd:375GiB,machine=n1,vcpus=8".parse().unwrap();
    Limits::published().evaluate(&query).unwrap()
}

#[test]
fn outcome_follows_measured_share_of_promise() {
    let held = PromiseCheck::from_probe(&promised(), &probed(volume(1.0)));
    assert_eq!(held.outcome, PromiseOutcome::Kept, "{:?}", held.rows);
    let metrics: Vec<Metric> = held.rows.iter().map(|row| row.judged.metric).collect();
    use Metric::{ReadBandwidth, ReadIops, WriteBandwidth, WriteIops};
    assert_eq!(
        metrics,
        [ReadIops, WriteIops, ReadBandwidth, WriteBandwidth]
    );
    let held = PromiseCheck::from_probe(&promised(), &probed(volume(0.6)));
    assert_eq!(held.outcome, PromiseOutcome::Broken);
    assert_eq!(
        held.sentence(),
        "The promise is broken: write IOPS at 60 % of the promised value."
    );
}

#[test]
fn machine_verdicts_make_outcome_unclear() {
    let broken = |kind| {
        let mut found = probed(volume(0.6));
        for run in &mut found.runs {
            run.result.verdicts = vec![iosonde_result::run::Verdict {
                kind,
                evidence: String::new(),
                cause: None,
            }];
        }
        PromiseCheck::from_probe(&promised(), &found)
    };
    let doubts = |kind| {
        let held = broken(kind);
        assert_eq!(held.outcome, PromiseOutcome::Unclear, "{kind:?}");
        held.rows[1].doubts.clone()
    };
    assert_eq!(doubts(VerdictKind::Generator), [PromiseDoubt::Generator]);
    assert_eq!(doubts(VerdictKind::Throttled), [PromiseDoubt::Throttled]);
    let allowance = broken(VerdictKind::Allowance);
    assert_eq!(
        allowance.outcome,
        PromiseOutcome::Broken,
        "it is the provider's"
    );
    assert_eq!(
        doubts(VerdictKind::Interference),
        [PromiseDoubt::Interference]
    );
    assert_eq!(
        doubts(VerdictKind::ServedFromCache),
        [PromiseDoubt::ServedFromCache]
    );
}

#[test]
fn unsaturated_figure_makes_outcome_unclear() {
    let mut found = probed(volume(0.6));
    found.knees.clear();
    let alone = found.figure(ProbePhase::WriteLatency).unwrap().latency;
    for figure in &mut found.figures {
        if figure.phase == ProbePhase::RandomWrite {
            figure.latency.mean_ns = alone.mean_ns * 1.1;
        }
    }
    let held = PromiseCheck::from_probe(&promised(), &found);
    assert_eq!(held.rows[1].doubts, [PromiseDoubt::DepthTooLow]);
    assert_eq!(held.outcome, PromiseOutcome::Unclear);
}

#[test]
fn knee_search_maximum_replaces_lower_phase_figure() {
    let mut found = probed(volume(0.6));
    let search = |found: &mut ProbeResult| {
        let mut knees = found.knees.iter_mut();
        let knee = knees.find(|knee| knee.phase == ProbePhase::RandomWrite);
        knee.expect("a search").saturation.clone()
    };
    let saturation = search(&mut found);
    let with = |change: &dyn Fn(&mut Saturation)| {
        let mut found = found.clone();
        let mut changed = saturation.clone();
        change(&mut changed);
        for knee in &mut found.knees {
            if knee.phase == ProbePhase::RandomWrite {
                knee.saturation = changed.clone();
            }
        }
        PromiseCheck::from_probe(&promised(), &found)
    };
    let held = with(&|_| {});
    assert_eq!(held.outcome, PromiseOutcome::Broken);
    assert_eq!(held.rows[1].doubts, []);
    // The phase measured 9,000 IOPS, the search 15,000 with 256 I/Os in flight.
    let held = with(&|knee| {
        (knee.maximum.mean, knee.knee.iodepth) = (15_000.0, 256);
        knee.maximum.error = Some(50.0);
    });
    assert_eq!(held.outcome, PromiseOutcome::Kept, "{:?}", held.rows);
    let at = CheckedQueueDepth {
        jobs: saturation.jobs,
        iodepth: 256,
    };
    assert_eq!(held.rows[1].at, Some(at));
    let said = "write IOPS: measured at its maximum, with 256 I/Os in flight.";
    assert!(held.conditions.iter().any(|line| line == said));
    // The rate still rose at the greatest depth of the search.
    let held = with(&|knee| knee.latency_only = None);
    assert_eq!(held.rows[1].doubts, [PromiseDoubt::DepthTooLow]);
    assert_eq!(held.outcome, PromiseOutcome::Unclear);
}

#[test]
fn conditions_name_unmeasured_parts() {
    let only_read = StudyTarget {
        kind: StudyTargetKind::Existing {
            bytes: 100 << 30,
            device: true,
            consent: false,
        },
        ..directory_target("/data")
    };
    let mut found = probe_target(volume(1.0), &only_read);
    for run in &mut found.runs {
        run.result.host.cpu.online = Some(2);
        run.result.host.platform.instance_type = None;
    }
    let held = PromiseCheck::from_probe(&promised(), &found);
    assert_eq!(held.outcome, PromiseOutcome::Kept);
    insta::assert_snapshot!(held.conditions.join("\n"));
    for run in &mut found.runs {
        run.result.host.platform.instance_type = Some("n1-standard-8".to_owned());
    }
    let machine = |held: PromiseCheck| held.conditions.join("\n").contains("machine");
    assert!(!machine(PromiseCheck::from_probe(&promised(), &found)));
    for run in &mut found.runs {
        run.result.host.platform.instance_type = Some("n10-standard-8".to_owned());
    }
    assert!(machine(PromiseCheck::from_probe(&promised(), &found)));
}

#[test]
fn comparison_survives_json_round_trip() {
    let held = PromiseCheck::from_probe(&promised(), &probed(volume(0.6)));
    let json = serde_json::to_string(&held).unwrap();
    assert_eq!(serde_json::from_str::<PromiseCheck>(&json).unwrap(), held);
}
