//! The times that studies promise before they begin and while they go on, beside those that they take on simulated devices.

mod loads;
mod metered;

use iosonde_job::diagnostic::Diagnostics;
use iosonde_job::env::FakeEnv;
use iosonde_result::session::Session;
use iosonde_study::TimeRange;
use iosonde_study::limits::Limits;
use iosonde_study::load::{
    LoadAnnouncement, LoadOptions, LoadWatcher, MatrixOptions, Objective, load,
};
use iosonde_study::probe::{
    Announcement, Budget, ProbeOptions, ProbeTarget, TargetKind, Watcher, probe,
};
use iosonde_study::pts::{Preset, PtsAnnouncement, PtsOptions, PtsTest, PtsWatcher, Purge, pts};
use iosonde_study::suite::{BUILTIN, MOST_RUNS, What, builtin, suite};
use iosonde_study::sweep::{
    Announcement as SweepAnnouncement, Base, Grid, SweepOptions, SweepTarget, SweepWatcher,
    parse_axes, sweep,
};
use loads::SECOND_NS;
use metered::{Clock, Metered};
use std::collections::BTreeMap;

/// Devices that are fast and slow, that have a limit or credits to spend, and that hold back what they are asked.
const DEVICES: [&str; 6] = [
    "hdd",
    "sata-ssd",
    "nvme",
    "net-iops-cap",
    "burst",
    "throttled",
];
/// Every phase is sure as soon as one can be.
const STEADY: &str = "read_us=1ms,write_us=1ms,parallel=4";
/// Flash that writes four times as fast until it is worn.
const FLASH: &str =
    "capacity=64g,read_us=90,write_us=4ms,parallel=16,link_bw=100m,fresh=4,fresh_bytes=100m";
/// A time that is off by a smaller share of it holds.
const QUARTER: f64 = 0.25;
/// A range that is wider says nothing. What is left of it may be wider: of five to twenty rounds four are soon done.
const WIDEST: f64 = 6.0;

/// What a study has said of its length, each with the time at which it said so.
struct Promises {
    study: String,
    clock: Clock,
    all: Vec<(u64, TimeRange)>,
}

impl Promises {
    fn new(study: &str, session: &Metered) -> Promises {
        Promises {
            study: study.to_owned(),
            clock: session.clock.clone(),
            all: Vec::new(),
        }
    }

    fn take(&mut self, left: TimeRange) {
        self.all.push((self.clock.now_ns(), left));
    }

    /// Those that did not hold.
    fn broken(&self) -> Vec<String> {
        let end_ns = self.clock.now_ns();
        if std::env::var_os("IOSONDE_SHOW").is_some() {
            eprintln!("{}: {} s", self.study, end_ns as f64 / 1e9);
        }
        let mut broken = Vec::new();
        for (index, (at_ns, promised)) in self.all.iter().enumerate() {
            let took_ns = (end_ns - at_ns) as f64;
            let (least_ns, most_ns) = (promised.least_ns as f64, promised.most_ns as f64);
            // A study says when it is over by ending.
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

fn target(kind: TargetKind) -> ProbeTarget {
    ProbeTarget {
        name: "target".to_owned(),
        path: "sim".to_owned(),
        kind,
    }
}

fn directory() -> TargetKind {
    TargetKind::Directory {
        free_bytes: 1 << 40,
    }
}

// --- pts ---

impl PtsWatcher for Promises {
    fn begin(&mut self, _target: &ProbeTarget, announcement: &PtsAnnouncement) {
        // Before the fill nobody knows how fast the target is.
        if announcement.most_written_bytes.is_none() && announcement.fill_bytes == 0 {
            self.take(announcement.rounds);
        }
    }

    fn left(&mut self, left: TimeRange) {
        self.take(left);
    }
}

fn pts_promises(device: &str, kind: TargetKind, test: PtsTest) -> Promises {
    let mut session = Metered::new(device);
    let mut promises = Promises::new(&format!("pts {test:?} on {device}"), &session);
    let options = PtsOptions {
        test,
        preset: Preset::Enterprise,
        time_scale: 0.01,
        most_rounds: 25,
        iodepth: 4,
        numjobs: 1,
        purge: Purge::Discard,
        size_bytes: Some(512 << 20),
        seed: 1,
    };
    pts(&mut session, &target(kind), &options, &mut promises).unwrap();
    promises
}

#[test]
fn pts_time_left_holds_from_its_fill_on() {
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
fn pts_time_left_includes_the_purges_of_later_series() {
    let device = format!("{STEADY},trim_us=20s");
    let kind = TargetKind::Existing {
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

impl Watcher for Promises {
    fn begin(&mut self, announcement: &Announcement<'_>) {
        let (budget, phases) = (announcement.budget, announcement.phases);
        self.take(budget.total_time(phases));
    }
}

fn probe_promises(device: &str, budget: Budget) -> Promises {
    let mut session = Metered::new(device);
    let phase_s = budget.runtime_ns as f64 / 1e9;
    let mut promises = Promises::new(&format!("probe of {phase_s} s on {device}"), &session);
    let options = ProbeOptions {
        budget,
        size_bytes: None,
        direct: true,
        seed: 1,
    };
    probe(&mut session, &target(directory()), &options, &mut promises).unwrap();
    promises
}

#[test]
fn probe_ends_in_the_range_that_it_announces() {
    let mut broken = Vec::new();
    for device in DEVICES.into_iter().chain([STEADY]) {
        broken.extend(probe_promises(device, Budget::QUICK).broken());
    }
    // The I/Os of faster ones take long to count.
    for device in ["hdd", "throttled", STEADY] {
        broken.extend(probe_promises(device, Budget::NORMAL).broken());
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

// --- sweep ---

impl SweepWatcher for Promises {
    fn begin(&mut self, announcement: &SweepAnnouncement<'_>) {
        // Before the layout nobody knows how fast the target is.
        if announcement.layout_bytes == 0 {
            self.take(announcement.planned);
        }
    }

    fn left(&mut self, left: TimeRange) {
        self.take(left);
    }
}

fn sweep_promises(device: &str, kind: TargetKind, options: &SweepOptions) -> Promises {
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
    let grid = Grid::new(&Base::Plain, &targets, &axes, &FakeEnv::new()).unwrap();
    let mut session = Metered::new(device);
    let how = match options.exhaustive {
        true => "exhaustive sweep",
        false => "sweep",
    };
    let mut promises = Promises::new(&format!("{how} on {device}"), &session);
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

/// Devices whose cells have not too many I/Os to count.
const SLOWER: [&str; 5] = ["hdd", "net-iops-cap", "burst", "throttled", STEADY];

#[test]
fn sweep_that_searches_ends_in_the_range_that_it_announces() {
    let mut broken = Vec::new();
    for device in SLOWER {
        broken.extend(sweep_promises(device, directory(), &sweep_options(false)).broken());
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn sweep_of_all_cells_takes_the_time_that_it_announces() {
    let mut broken = Vec::new();
    for device in SLOWER {
        broken.extend(sweep_promises(device, directory(), &sweep_options(true)).broken());
    }
    // Without a layout; I/O in flight at the end of a cell must not take long, as that is not known beforehand.
    for device in ["hdd", "net-iops-cap", "burst", STEADY] {
        let kind = TargetKind::Simulated {
            options: device.to_owned(),
        };
        broken.extend(sweep_promises(device, kind, &sweep_options(true)).broken());
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

// --- load ---

impl LoadWatcher for Promises {
    fn begin(&mut self, _target: &ProbeTarget, announcement: &LoadAnnouncement) {
        // Before the layout nobody knows how fast the target is.
        if announcement.layout_bytes == 0 {
            self.take(announcement.planned);
        }
    }

    fn left(&mut self, left: TimeRange) {
        self.take(left);
    }
}

fn load_options() -> LoadOptions {
    LoadOptions {
        runtime_ns: 2 * SECOND_NS,
        ramp_ns: SECOND_NS / 5,
        size_bytes: Some(512 << 20),
        ..loads::load_options()
    }
}

fn load_promises(name: &str, device: &str, kind: TargetKind, options: &LoadOptions) -> Promises {
    let mut session = Metered::new(device);
    let mut promises = Promises::new(&format!("load with {name} on {device}"), &session);
    load(&mut session, &target(kind), options, &mut promises).unwrap();
    promises
}

#[test]
fn load_ends_in_the_range_that_it_announces() {
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
            // Without a layout.
            if !options.objectives.is_empty() {
                let kind = TargetKind::Existing {
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

/// A built-in suite, whose jobs and studies run one after the other.
fn suite_promises(name: &str, device: &str) -> Promises {
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
    let mut session = Metered::new(device);
    let mut promises = Promises::new(&format!("suite {name} on {device}"), &session);
    let target = target(TargetKind::Simulated {
        options: device.to_owned(),
    });
    let mut planned = TimeRange::default();
    for step in &suite.steps {
        // Nobody knows how long a step takes that ends with its data.
        let Some(time) = step.planned_time() else {
            continue;
        };
        planned = planned + time;
        match &step.what {
            What::Jobs(plan) => {
                session.run(plan, &mut ()).unwrap();
            }
            What::Load(options) => {
                load(&mut session, &target, options, &mut ()).unwrap();
            }
            What::Probe(options) => {
                probe(&mut session, &target, options, &mut ()).unwrap();
            }
            What::Sweep(wanted) => {
                let (reach, asked) = (wanted.grid.reach(), wanted.size_bytes);
                let target = SweepTarget::of_jobs(&target, reach, asked, None).unwrap();
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
fn suites_take_the_time_that_they_plan() {
    let mut broken = Vec::new();
    for one in BUILTIN {
        for device in ["hdd", "throttled"] {
            // Its jobs keep 1 GiB in flight, for which 10 or 20 MB/s take longer than their runs.
            if (one.name, device) == ("gke-local-ssd", "throttled") {
                continue;
            }
            broken.extend(suite_promises(one.name, device).broken());
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
