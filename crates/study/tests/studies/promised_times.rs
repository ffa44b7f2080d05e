//! Compares the times that studies announce with their times on simulated devices.

use crate::common::load_fixture::SECOND_NS;
use crate::common::metered_session::{MeteredSession, StudyClock};
use crate::common::target_of_kind::{directory, simulated, target_of_kind};
use iosonde_job::diagnostic::Diagnostics;
use iosonde_job::env::FakeEnv;
use iosonde_job::neighbour::fit_neighbour;
use iosonde_limits::Limits;
use iosonde_result::session::Session;
use iosonde_study::load::{LoadOptions, MatrixOptions, Objective, measure_load};
use iosonde_study::probe::{ProbeBudget, ProbeOptions, StudyTargetKind, probe};
use iosonde_study::pts::{PtsOptions, PtsPreset, PtsTest, Purge, measure_pts};
use iosonde_study::sweep::{Base, SweepGrid, SweepOptions, SweepTarget, parse_axes, sweep};
use iosonde_study::{Announcement, StudyEvent, StudyObserver, TimeRange};
use iosonde_suite::{BUILTIN, MOST_RUNS, StepKind, builtin, suite};
use std::collections::BTreeMap;

/// Fast and slow devices, with rate limits, burst credits and throttling.
const DEVICES: [&str; 6] = [
    "hdd",
    "sata-ssd",
    "nvme",
    "net-iops-cap",
    "burst",
    "throttled",
];
/// Every phase stops as early as possible.
const STEADY: &str = "read_us=1ms,write_us=1ms,parallel=4";
/// Flash that writes four times as fast when fresh.
const FLASH: &str =
    "capacity=64g,read_us=90,write_us=4ms,parallel=16,link_bw=100m,fresh=4,fresh_bytes=100m";
/// The tolerance of an announced time, as a share of it.
const QUARTER: f64 = 0.25;
/// The widest useful first range. Remaining time may vary more: of 5 to 20 rounds 4 may be done.
const WIDEST: f64 = 6.0;

/// The time ranges that a study announced, each with the time of its announcement.
struct StudyPromises {
    study: String,
    clock: StudyClock,
    all: Vec<(u64, TimeRange)>,
}

impl StudyPromises {
    fn new(study: &str, session: &MeteredSession) -> StudyPromises {
        StudyPromises {
            study: study.to_owned(),
            clock: session.clock.clone(),
            all: Vec::new(),
        }
    }

    fn take(&mut self, left: TimeRange) {
        self.all.push((self.clock.now_ns(), left));
    }

    /// Announcements that did not hold.
    fn broken(&self) -> Vec<String> {
        let end_ns = self.clock.now_ns();
        if std::env::var_os("IOSONDE_SHOW").is_some() {
            eprintln!("{}: {} s", self.study, end_ns as f64 / 1e9);
        }
        let mut broken = Vec::new();
        for (index, (at_ns, promised)) in self.all.iter().enumerate() {
            let took_ns = (end_ns - at_ns) as f64;
            let (least_ns, most_ns) = (promised.least_ns as f64, promised.most_ns as f64);
            // The end of a study needs no announcement.
            let slack_ns = 0.02 * end_ns as f64;
            let is_kept = took_ns >= least_ns * (1.0 - QUARTER) - slack_ns
                && took_ns <= most_ns * (1.0 + QUARTER) + slack_ns;
            let is_at_most = promised.least_ns == 0;
            let is_honest = is_at_most || index > 0 || most_ns <= WIDEST * least_ns + slack_ns;
            if !is_kept || !is_honest {
                broken.push(format!(
                    "{}: {:.1} s after its begin it promised {:.1} to {:.1} s and took {:.1} s",
                    self.study,
                    *at_ns as f64 / 1e9,
                    least_ns / 1e9,
                    most_ns / 1e9,
                    took_ns / 1e9
                ));
            }
        }
        broken
    }
}

// --- pts ---

impl StudyObserver for StudyPromises {
    fn event(&mut self, event: &StudyEvent<'_>) {
        match event {
            StudyEvent::TimeLeft(left) => self.take(*left),
            // The speed of the target is unknown before the fill.
            StudyEvent::Announced(Announcement::Pts { extent, .. })
                if extent.most_written_bytes.is_none() && extent.fill_bytes == 0 =>
            {
                self.take(extent.rounds);
            }
            StudyEvent::Announced(Announcement::Probe(extent)) => {
                self.take(extent.budget.total_time(extent.phases));
            }
            // The speed of the target is unknown before the layout.
            StudyEvent::Announced(Announcement::Sweep(extent)) if extent.layout_bytes == 0 => {
                self.take(extent.planned);
            }
            // The speed of the target is unknown before the layout.
            StudyEvent::Announced(Announcement::Load { extent, .. })
                if extent.layout_bytes == 0 =>
            {
                self.take(extent.planned);
            }
            _ => {}
        }
    }
}

fn pts_promises(device: &str, kind: StudyTargetKind, test: PtsTest) -> StudyPromises {
    let mut session = MeteredSession::new(device);
    let mut promises = StudyPromises::new(&format!("pts {test:?} on {device}"), &session);
    let options = PtsOptions {
        test,
        preset: PtsPreset::Enterprise,
        time_scale: 0.01,
        most_rounds: 25,
        iodepth: 4,
        numjobs: 1,
        purge: Purge::Discard,
        size_bytes: Some(512 << 20),
        seed: 1,
    };
    measure_pts(&mut session, &target_of_kind(kind), &options, &mut promises).unwrap();
    promises
}

#[test]
fn pts_time_left_holds_from_the_fill_on() {
    let mut broken = Vec::new();
    for device in DEVICES.into_iter().chain([FLASH]) {
        for test in [
            PtsTest::Latency,
            PtsTest::Throughput,
            PtsTest::WriteSaturation,
        ] {
            let promises = pts_promises(device, directory(), test);
            let is_one_round = test == PtsTest::WriteSaturation;
            assert!(is_one_round || !promises.all.is_empty(), "{device}");
            broken.extend(promises.broken());
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn pts_time_left_includes_purges_of_later_series() {
    let device = format!("{STEADY},trim_us=20s");
    let kind = StudyTargetKind::Existing {
        bytes: 1 << 30,
        device: true,
        consent: true,
    };
    let promises = pts_promises(&device, kind, PtsTest::Throughput);
    assert!(!promises.all.is_empty());
    let broken = promises.broken();
    assert!(broken.is_empty(), "{broken:#?}");
}

// --- probe ---

fn probe_promises(device: &str, budget: ProbeBudget) -> StudyPromises {
    let mut session = MeteredSession::new(device);
    let phase_s = budget.runtime_ns as f64 / 1e9;
    let mut promises = StudyPromises::new(&format!("probe of {phase_s} s on {device}"), &session);
    let options = ProbeOptions {
        budget,
        size_bytes: None,
        direct: true,
        seed: 1,
    };
    probe(
        &mut session,
        &target_of_kind(directory()),
        &options,
        &mut promises,
    )
    .unwrap();
    promises
}

#[test]
fn probe_ends_within_announced_range() {
    let mut broken = Vec::new();
    for device in DEVICES.into_iter().chain([STEADY]) {
        broken.extend(probe_promises(device, ProbeBudget::QUICK).broken());
    }
    // Faster devices have too many I/Os to count.
    for device in ["hdd", "throttled", STEADY] {
        broken.extend(probe_promises(device, ProbeBudget::NORMAL).broken());
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

// --- sweep ---

fn sweep_promises(device: &str, kind: StudyTargetKind, options: &SweepOptions) -> StudyPromises {
    let targets = [SweepTarget {
        name: "target".to_owned(),
        path: "sim".to_owned(),
        kind,
        bytes: 1 << 30,
    }];
    let mut found = Diagnostics::default();
    let axes = [
        ("rw", "randread,randwrite"),
        ("bs", "4k,1m"),
        ("iodepth", "1,4,16,64,256"),
    ];
    let axes = axes.map(|(name, values)| (name.to_owned(), values.to_owned()));
    let axes = parse_axes(&axes, &mut found);
    let grid = SweepGrid::new(&Base::Plain, &targets, &axes, &FakeEnv::new()).unwrap();
    let mut session = MeteredSession::new(device);
    let how = match options.exhaustive {
        true => "exhaustive sweep",
        false => "sweep",
    };
    let mut promises = StudyPromises::new(&format!("{how} on {device}"), &session);
    let known = Vec::new();
    sweep(&mut session, &targets, &grid, options, known, &mut promises).unwrap();
    promises
}

fn sweep_options(exhaustive: bool) -> SweepOptions {
    SweepOptions {
        exhaustive,
        runtime_ns: if exhaustive { 2 } else { 10 } * 1_000_000_000,
        budget_ns: None,
        seed: 1,
        most_warmup_ns: None,
    }
}

/// Devices whose cells have few enough I/Os to count.
const SLOWER: [&str; 5] = ["hdd", "net-iops-cap", "burst", "throttled", STEADY];

#[test]
fn adaptive_sweep_ends_within_announced_range() {
    let mut broken = Vec::new();
    for device in SLOWER {
        broken.extend(sweep_promises(device, directory(), &sweep_options(false)).broken());
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn exhaustive_sweep_takes_announced_time() {
    let mut broken = Vec::new();
    for device in SLOWER {
        broken.extend(sweep_promises(device, directory(), &sweep_options(true)).broken());
    }
    // Runs without a layout. Draining must be short, since its time is unknown beforehand.
    for device in ["hdd", "net-iops-cap", "burst", STEADY] {
        broken.extend(sweep_promises(device, simulated(device), &sweep_options(true)).broken());
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

// --- load ---

fn load_options() -> LoadOptions {
    LoadOptions {
        runtime_ns: 2 * SECOND_NS,
        ramp_ns: SECOND_NS / 5,
        size_bytes: Some(512 << 20),
        ..crate::common::load_fixture::load_options()
    }
}

fn load_promises(
    name: &str,
    device: &str,
    kind: StudyTargetKind,
    options: &LoadOptions,
) -> StudyPromises {
    let mut session = MeteredSession::new(device);
    let mut promises = StudyPromises::new(&format!("load with {name} on {device}"), &session);
    measure_load(&mut session, &target_of_kind(kind), options, &mut promises).unwrap();
    promises
}

#[test]
fn load_ends_within_announced_range() {
    let objective = |text: &str| -> Objective { text.parse().unwrap() };
    let kinds = [
        ("a curve", load_options()),
        (
            "given rates",
            LoadOptions {
                rates: vec![50.0, 100.0, 200.0],
                ..load_options()
            },
        ),
        (
            "objectives",
            LoadOptions {
                objectives: vec![objective("p99=50ms"), objective("p90=20ms")],
                ..load_options()
            },
        ),
        (
            "a matrix",
            LoadOptions {
                matrix: Some(MatrixOptions { steps: 4 }),
                ..load_options()
            },
        ),
    ];
    let mut broken = Vec::new();
    for device in SLOWER {
        for (name, options) in &kinds {
            let promises = load_promises(name, device, directory(), options);
            assert!(!promises.all.is_empty(), "{name} on {device}");
            broken.extend(promises.broken());
            // Runs without a layout.
            if !options.objectives.is_empty() {
                let kind = StudyTargetKind::Existing {
                    bytes: 1 << 30,
                    device: true,
                    consent: false,
                };
                broken.extend(load_promises(name, device, kind, options).broken());
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

// --- run ---

/// Runs the jobs and studies of a built-in suite in sequence.
fn suite_promises(name: &str, device: &str) -> StudyPromises {
    let builtin = builtin(name).unwrap();
    let (overrides, limits) = (BTreeMap::new(), Limits::published());
    let env = FakeEnv::new();
    let suite = suite(
        &builtin.file_name(),
        builtin.text,
        &overrides,
        limits,
        MOST_RUNS,
        &env,
    );
    let suite = suite.unwrap();
    let mut session = MeteredSession::new(device);
    let mut promises = StudyPromises::new(&format!("suite {name} on {device}"), &session);
    let target = target_of_kind(simulated(device));
    let mut planned = TimeRange::default();
    for step in &suite.steps {
        // The time of a step that ends with its data is unknown.
        let Some(time) = step.planned_time() else {
            continue;
        };
        planned = planned + time;
        match &step.what {
            StepKind::Jobs(plan) => {
                let mut plan = plan.as_ref().clone();
                fit_neighbour(&mut plan, u64::MAX);
                session.run(&plan, &mut ()).unwrap();
            }
            StepKind::Load(options) => {
                measure_load(&mut session, &target, options, &mut ()).unwrap();
            }
            StepKind::Command(_) => panic!("no built-in suite runs a command"),
            StepKind::Probe(options) => {
                probe(&mut session, &target, options, &mut ()).unwrap();
            }
            StepKind::Sweep(wanted) => {
                let (reach, asked) = (wanted.grid.reach(), wanted.size_bytes);
                let target = SweepTarget::for_jobs(&target, reach, asked, None).unwrap();
                let grid = wanted.grid.on(&target).unwrap();
                let (targets, known) = ([target], Vec::new());
                sweep(
                    &mut session,
                    &targets,
                    &grid,
                    &wanted.options,
                    known,
                    &mut (),
                )
                .unwrap();
            }
        }
    }
    promises.all.push((0, planned));
    promises
}

#[test]
fn suites_take_planned_time() {
    let mut broken = Vec::new();
    for one in BUILTIN {
        for device in ["hdd", "throttled"] {
            // The jobs keep 1 GiB in flight, which takes longer than their runs at 10 or 20 MB/s.
            if (one.name, device) == ("gke-local-ssd", "throttled") {
                continue;
            }
            broken.extend(suite_promises(one.name, device).broken());
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
