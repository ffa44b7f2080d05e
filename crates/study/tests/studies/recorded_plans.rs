//! Records the plans that each study gives to its session, in order.
//!
//! A snapshot has one line for each run: its number, the names of its jobs, and a hash of the
//! serialised plan with the length of its intervals. A change of a study's code that should not
//! change its runs keeps all snapshots. `IOSONDE_OUTCOMES=DIRECTORY` also writes the outcome of
//! each study to a file, so that two versions can be compared.

use crate::common::load_fixture::{SECOND_NS, load_options};
use crate::common::plan_recorder::{PlanRecorder, recorded_plans_text};
use crate::common::target_of_kind::{directory, simulated, target_of_kind};
use iosonde_job::diagnostic::Diagnostics;
use iosonde_job::env::FakeEnv;
use iosonde_study::load::{LoadOptions, MatrixOptions, Mix, measure_load};
use iosonde_study::probe::{ProbeBudget, ProbeOptions, StudyTargetKind, probe};
use iosonde_study::pts::{PtsOptions, PtsPreset, PtsTest, Purge, measure_pts};
use iosonde_study::sweep::{Base, SweepGrid, SweepOptions, SweepTarget, parse_axes, sweep};

/// A cap of 2000 IOPS with eight servers: a knee, a plateau and a second block size.
const CAPPED: &str = "seed=1,read_us=1000,write_us=2000,parallel=8,read_dist=exp,cap_iops=2000";
const SLOW: &str = "seed=1,read_us=500,write_us=500,parallel=64,cap_bw=50k";
const QUEUE: &str = "seed=1,read_us=1000,read_dist=exp,write_us=2000,parallel=2";
const FLASH: &str =
    "seed=1,capacity=64m,read_us=8ms,write_us=4ms,parallel=4,link_bw=100m,fresh=4,fresh_bytes=512m";

fn existing(device: bool, consent: bool) -> StudyTargetKind {
    StudyTargetKind::Existing {
        bytes: 1 << 30,
        device,
        consent,
    }
}

// --- probe ---

fn probed(
    name: &str,
    kind: StudyTargetKind,
    budget: ProbeBudget,
    mut recorder: PlanRecorder,
) -> String {
    let options = ProbeOptions {
        budget,
        size_bytes: Some(256 << 20),
        direct: true,
        seed: 1,
    };
    let outcome = probe(&mut recorder, &target_of_kind(kind), &options, &mut ());
    recorded_plans_text(&format!("probe {name}"), &recorder, &outcome)
}

#[test]
fn probe_gives_recorded_plans() {
    let recorder = PlanRecorder::on;
    let all = [
        probed(
            "simulated",
            simulated(CAPPED),
            ProbeBudget::NORMAL,
            recorder(CAPPED),
        ),
        probed(
            "directory",
            directory(),
            ProbeBudget::QUICK,
            recorder(CAPPED),
        ),
        probed("slow", directory(), ProbeBudget::NORMAL, recorder(SLOW)),
        probed(
            "existing, read",
            existing(true, false),
            ProbeBudget::NORMAL,
            recorder(CAPPED),
        ),
        probed(
            "existing, overwritten, O_DIRECT refused",
            existing(false, true),
            ProbeBudget::NORMAL,
            recorder(CAPPED).refusing_direct(),
        ),
        probed(
            "stopped",
            directory(),
            ProbeBudget::NORMAL,
            recorder(CAPPED).stopped_in(&[3, 4, 5, 9, 15]),
        ),
        probed(
            "lost",
            directory(),
            ProbeBudget::NORMAL,
            recorder(CAPPED).lost_in(20),
        ),
        probed(
            "lost at once",
            directory(),
            ProbeBudget::NORMAL,
            recorder(CAPPED).lost_in(2),
        ),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

// --- load ---

fn loaded(
    name: &str,
    kind: StudyTargetKind,
    options: &LoadOptions,
    mut recorder: PlanRecorder,
) -> String {
    let outcome = measure_load(&mut recorder, &target_of_kind(kind), options, &mut ());
    recorded_plans_text(&format!("load {name}"), &recorder, &outcome)
}

#[test]
fn load_gives_recorded_plans() {
    let short = LoadOptions {
        runtime_ns: SECOND_NS,
        ramp_ns: SECOND_NS / 5,
        ..load_options()
    };
    let searched = LoadOptions {
        objectives: vec!["p99=20ms".parse().unwrap(), "p50=1500us".parse().unwrap()],
        ..short.clone()
    };
    let mixed = LoadOptions {
        mix: Mix { read_percent: 70 },
        matrix: Some(MatrixOptions { steps: 4 }),
        rates: vec![100.0, 400.0],
        ..short.clone()
    };
    let recorder = || PlanRecorder::on(QUEUE);
    let all = [
        loaded("searched", simulated(QUEUE), &searched, recorder()),
        loaded("matrix", directory(), &mixed, recorder()),
        loaded("read", existing(true, false), &short, recorder()),
        loaded("refused", existing(true, false), &mixed, recorder()),
        loaded(
            "O_DIRECT refused",
            existing(true, true),
            &mixed,
            recorder().refusing_direct(),
        ),
        loaded(
            "stopped",
            directory(),
            &short,
            recorder().stopped_in(&[1, 2, 4, 5, 6]),
        ),
        loaded("lost", directory(), &searched, recorder().lost_in(18)),
        loaded("lost at once", directory(), &short, recorder().lost_in(1)),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

// --- sweep ---

fn sweep_target(name: &str, kind: StudyTargetKind) -> SweepTarget {
    SweepTarget {
        name: name.to_owned(),
        path: name.to_owned(),
        kind,
        bytes: 256 << 20,
    }
}

fn swept(
    name: &str,
    targets: &[SweepTarget],
    axes: &[(&str, &str)],
    options: &SweepOptions,
    mut recorder: PlanRecorder,
) -> String {
    let mut found = Diagnostics::default();
    let axes = axes.iter();
    let axes: Vec<(String, String)> = axes
        .map(|(name, values)| ((*name).to_owned(), (*values).to_owned()))
        .collect();
    let axes = parse_axes(&axes, &mut found);
    let grid = SweepGrid::new(&Base::Plain, targets, &axes, &FakeEnv::new()).unwrap();
    let known = Vec::new();
    let outcome = sweep(&mut recorder, targets, &grid, options, known, &mut ());
    recorded_plans_text(&format!("sweep {name}"), &recorder, &outcome)
}

const AXES: [(&str, &str); 3] = [
    ("rw", "randread,randwrite"),
    ("bs", "4k,64k"),
    ("iodepth", "1,4,16,64"),
];

/// Options of an adaptive and an exhaustive sweep, of one with a budget, and of one with warm-up.
fn sweep_options() -> [SweepOptions; 4] {
    let adaptive = SweepOptions {
        exhaustive: false,
        runtime_ns: 10 * SECOND_NS,
        budget_ns: None,
        seed: 1,
        most_warmup_ns: None,
    };
    let exhaustive = SweepOptions {
        exhaustive: true,
        runtime_ns: SECOND_NS,
        ..adaptive.clone()
    };
    let budget = SweepOptions {
        budget_ns: Some(15 * SECOND_NS),
        ..adaptive.clone()
    };
    let warm = SweepOptions {
        most_warmup_ns: Some(5 * SECOND_NS),
        ..exhaustive.clone()
    };
    [adaptive, exhaustive, budget, warm]
}

#[test]
fn sweep_gives_recorded_plans() {
    let [adaptive, exhaustive, budget, warm] = sweep_options();
    let recorder = || PlanRecorder::on(CAPPED);
    let one = || [sweep_target("a", directory())];
    let two = || {
        let read_only = SweepTarget {
            name: "b".to_owned(),
            ..sweep_target("b", existing(true, true))
        };
        [sweep_target("a", directory()), read_only]
    };
    let sizes = [
        ("size", "16m,64m,128m,256m"),
        ("rw", "randread"),
        ("iodepth", "1"),
    ];
    let simulated = [sweep_target("sim", simulated(CAPPED))];
    let kept = [sweep_target("kept", existing(true, false))];
    let all = [
        swept("adaptive", &simulated, &AXES, &adaptive, recorder()),
        swept("budget", &one(), &AXES, &budget, recorder()),
        swept("exhaustive", &two(), &AXES, &exhaustive, recorder()),
        swept("working set", &one(), &sizes, &warm, recorder()),
        swept("refused", &kept, &AXES, &adaptive, recorder()),
        swept(
            "adaptive, O_DIRECT refused",
            &two(),
            &AXES,
            &budget,
            recorder().refusing_direct(),
        ),
        swept(
            "exhaustive, O_DIRECT refused",
            &simulated,
            &AXES,
            &exhaustive,
            recorder().refusing_direct(),
        ),
        swept(
            "adaptive, stopped",
            &one(),
            &AXES,
            &budget,
            recorder().stopped_in(&[1, 3, 4, 5, 9]),
        ),
        swept(
            "exhaustive, stopped",
            &one(),
            &AXES,
            &exhaustive,
            recorder().stopped_in(&[1, 3, 4, 5, 9]),
        ),
        swept("lost", &two(), &AXES, &budget, recorder().lost_in(9)),
        swept(
            "lost at once",
            &one(),
            &AXES,
            &budget,
            recorder().lost_in(1),
        ),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

// --- pts ---

fn tested(name: &str, test: PtsTest, kind: StudyTargetKind, mut recorder: PlanRecorder) -> String {
    let options = PtsOptions {
        test,
        preset: PtsPreset::Enterprise,
        time_scale: 0.005,
        most_rounds: 7,
        iodepth: 4,
        numjobs: 2,
        purge: Purge::Discard,
        size_bytes: Some(64 << 20),
        seed: 1,
    };
    let outcome = measure_pts(&mut recorder, &target_of_kind(kind), &options, &mut ());
    recorded_plans_text(&format!("pts {name}"), &recorder, &outcome)
}

#[test]
fn pts_gives_recorded_plans() {
    let recorder = || PlanRecorder::on(FLASH);
    let throughput = PtsTest::Throughput;
    let all = [
        tested("iops", PtsTest::Iops, simulated(FLASH), recorder()),
        tested("throughput", throughput, existing(true, true), recorder()),
        tested("latency", PtsTest::Latency, directory(), recorder()),
        tested(
            "write saturation",
            PtsTest::WriteSaturation,
            existing(true, true),
            recorder(),
        ),
        tested("refused", throughput, existing(true, false), recorder()),
        tested(
            "O_DIRECT refused",
            throughput,
            directory(),
            recorder().refusing_direct(),
        ),
        tested(
            "stopped",
            throughput,
            existing(true, true),
            recorder().stopped_in(&[1, 2, 3, 4, 5, 6, 9]),
        ),
        tested("lost", throughput, directory(), recorder().lost_in(8)),
        tested(
            "lost at once",
            throughput,
            directory(),
            recorder().lost_in(1),
        ),
    ];
    insta::assert_snapshot!(all.join("\n"));
}
