//! Sweeps of simulated devices that several tests run.

use iosonde_engine::runner::LocalRunner;
use iosonde_job::diagnostic::Diagnostics;
use iosonde_job::env::FakeEnv;
use iosonde_study::probe::StudyTargetKind;
use iosonde_study::sweep::{
    Base, SweepGrid, SweepOptions, SweepResult, SweepTarget, parse_axes, sweep,
};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

pub(crate) fn target(device: &str) -> SweepTarget {
    SweepTarget {
        name: format!("sim:{device}"),
        path: "sim".into(),
        kind: StudyTargetKind::Simulated {
            options: device.to_owned(),
        },
        bytes: 64 << 30,
    }
}

pub(crate) fn grid(targets: &[SweepTarget], axes: &[(&str, &str)]) -> SweepGrid {
    let mut diagnostics = Diagnostics::default();
    let pairs: Vec<(String, String)> = axes
        .iter()
        .map(|(name, values)| ((*name).to_owned(), (*values).to_owned()))
        .collect();
    let axes = parse_axes(&pairs, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{diagnostics}");
    SweepGrid::new(&Base::Plain, targets, &axes, &FakeEnv::new()).unwrap()
}

pub(crate) fn options(runtime_s: u64) -> SweepOptions {
    SweepOptions {
        exhaustive: false,
        runtime_ns: runtime_s * SECOND_NS,
        budget_ns: None,
        seed: 1,
        most_warmup_ns: None,
    }
}

pub(crate) fn run(device: &str, axes: &[(&str, &str)], options: &SweepOptions) -> SweepResult {
    let targets = [target(device)];
    let mut session = LocalRunner::default().open();
    let grid = grid(&targets, axes);
    sweep(&mut session, &targets, &grid, options, Vec::new(), &mut ()).unwrap()
}
