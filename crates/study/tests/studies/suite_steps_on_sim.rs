//! Steps of suites that are studies: targets in memory, and targets that become full.

use crate::common::load_fixture::{SECOND_NS, load_options};
use crate::common::sweep_fixture::{grid, options, target};
use iosonde_engine::runner::LocalRunner;
use iosonde_job::diagnostic::Diagnostics;
use iosonde_job::plan::{Engine, Plan};
use iosonde_result::host::{Locality, Mount, TargetInfo};
use iosonde_result::observer::Observer;
use iosonde_result::run::{IoFailure, RunResult};
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_study::load::{LoadOptions, LoadResult, measure_load};
use iosonde_study::sweep::sweep;
use iosonde_study::test_targets::simulated_target;
use iosonde_suite::{StepKind, StepOutcome, StudyFigure, StudyFigureKind, Suite, SuiteStep};
use std::collections::BTreeMap;

const DEVICE: &str = "seed=1,read_us=100,write_us=100,parallel=4";

/// A session on a simulated device that reports a tmpfs as its target.
struct TmpfsSession<S>(S);

impl<S: Session> Session for TmpfsSession<S> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let mut result = self.0.run(plan, observer)?;
        for worker in &mut result.workers {
            worker.backend.engine = Engine::Psync;
        }
        result.targets = vec![TargetInfo {
            mount: Some(Mount {
                fs_type: "tmpfs".to_owned(),
                locality: Locality::Memory,
                ..Mount::default()
            }),
            ..TargetInfo::default()
        }];
        Ok(result)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

/// A suite whose steps do not matter.
fn suite_without_variables() -> Suite {
    Suite {
        name: "suite".to_owned(),
        about: None,
        labels: BTreeMap::new(),
        variables: BTreeMap::new(),
        targets: Vec::new(),
        pods: None,
        steps: Vec::new(),
        parts: Vec::new(),
        expectations: Vec::new(),
        warnings: Diagnostics::default(),
    }
}

/// A step with a load study.
fn load_step(options: LoadOptions) -> SuiteStep {
    SuiteStep {
        workload: "queries".to_owned(),
        name: "queries".to_owned(),
        what: StepKind::Load(options),
        repetitions: 1,
        beside: None,
    }
}

/// The target in memory that a suite reports for a step with this outcome.
fn in_memory(outcome: &StepOutcome, options: LoadOptions) -> Option<String> {
    let step = load_step(options);
    let result = outcome.result_of(&suite_without_variables(), &step, 1);
    result.in_memory
}

fn short_load() -> LoadOptions {
    LoadOptions {
        rates: vec![500.0],
        runtime_ns: SECOND_NS,
        ..load_options()
    }
}

#[test]
fn load_step_on_tmpfs_is_in_memory() {
    let options = short_load();
    let mut session = LocalRunner::default().open();
    let target = simulated_target(DEVICE);
    let on_disk = measure_load(&mut session, &target, &options, &mut ()).unwrap();
    let outcome = StepOutcome::Load(Box::new(on_disk));
    assert_eq!(in_memory(&outcome, options.clone()), None);
    let mut session = TmpfsSession(session);
    let result = measure_load(&mut session, &target, &options, &mut ()).unwrap();
    let outcome = StepOutcome::Load(Box::new(result));
    let found = in_memory(&outcome, options);
    assert_eq!(found.as_deref(), Some("memory (tmpfs)"));
}

#[test]
fn sweep_step_on_tmpfs_is_in_memory() {
    let targets = [target(DEVICE)];
    let mut session = TmpfsSession(LocalRunner::default().open());
    let grid = grid(&targets, &[("iodepth", "1,2")]);
    let result = sweep(
        &mut session,
        &targets,
        &grid,
        &options(5),
        Vec::new(),
        &mut (),
    );
    let outcome = StepOutcome::Sweep(Box::new(result.unwrap()));
    let found = in_memory(&outcome, short_load());
    assert_eq!(found.as_deref(), Some("memory (tmpfs)"));
}

#[test]
fn interval_of_a_maximum_in_a_suite_never_reaches_zero() {
    let targets = [target(DEVICE)];
    let mut session = LocalRunner::default().open();
    let grid = grid(&targets, &[("iodepth", "1..16")]);
    let found = sweep(
        &mut session,
        &targets,
        &grid,
        &options(5),
        Vec::new(),
        &mut (),
    );
    let mut result = found.unwrap();
    for share in [0.01, 0.19, 0.21, 1.0, 1.4] {
        let saturation = result.curves[0].saturation.as_mut().unwrap();
        for rate in [&mut saturation.maximum, &mut saturation.maximum_bytes_per_s] {
            rate.error = Some(share * rate.mean);
        }
        let mut figures = StudyFigure::from_sweep("", &result);
        figures.retain(|figure| figure.kind != StudyFigureKind::Knee);
        assert_eq!(figures.len(), 2);
        for figure in figures {
            assert_eq!(figure.interval.is_some(), share < 0.2, "{share}");
            assert!(figure.interval.is_none_or(|(low, _)| low > 0.0));
        }
    }
}

#[test]
fn full_target_of_a_step_names_the_size_of_the_suite() {
    let options = short_load();
    let mut session = LocalRunner::default().open();
    let target = simulated_target(DEVICE);
    let mut result = measure_load(&mut session, &target, &options, &mut ()).unwrap();
    let failed_with = |errno| IoFailure {
        errno,
        operation: "write".to_owned(),
        file: None,
        offset: None,
        message: "write failed".to_owned(),
    };
    let failure = |result: &LoadResult| {
        let outcome = StepOutcome::Load(Box::new(result.clone()));
        let step = load_step(short_load());
        let result = outcome.result_of(&suite_without_variables(), &step, 1);
        result.failure
    };
    result.capacity_failure = Some(failed_with(5));
    assert_eq!(failure(&result).as_deref(), Some("write failed"));
    result.capacity_failure = Some(failed_with(28));
    let expected = "write failed; set a smaller size for `queries`, e.g. load = { size = \"32m\" }";
    assert_eq!(failure(&result).as_deref(), Some(expected));
}
