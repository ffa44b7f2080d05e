//! Sweeps of simulated devices, beside an exhaustive grid and by themselves.

mod living;
mod lost;

use iosonde_engine::runner::LocalRunner;
use iosonde_job::diagnostic::Diagnostics;
use iosonde_job::env::FakeEnv;
use iosonde_job::plan::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use iosonde_sim::drawn::Family;
use iosonde_study::TimeRange;
use iosonde_study::probe::TargetKind;
use iosonde_study::saturation::{Record, SoFar};
use iosonde_study::sweep::{
    Announcement, Base, Basis, CurvePlan, CurveResult, CurveState, Grid, Parallel, SweepError,
    SweepOptions, SweepResult, SweepTarget, SweepWatcher, parse_axes, planned_time, sweep,
};
use living::living;
use lost::{Lost, lost};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const SECOND_NS: u64 = 1_000_000_000;
/// How much the maxima may differ.
const CLOSE: f64 = 0.02;
/// What devices are slowed down to where there is little time: more I/Os take long to count.
const SLOW_IOPS: f64 = 1000.0;
/// The same where 1000 would leave large blocks so few I/Os that a minute tells less than 2 %.
const FAST_IOPS: f64 = 20_000.0;

fn target(device: &str) -> SweepTarget {
    SweepTarget {
        name: format!("sim:{device}"),
        path: "sim".into(),
        kind: TargetKind::Simulated {
            options: device.to_owned(),
        },
        bytes: 64 << 30,
    }
}

fn grid(targets: &[SweepTarget], axes: &[(&str, &str)]) -> Grid {
    let mut diagnostics = Diagnostics::default();
    let pairs: Vec<(String, String)> = axes
        .iter()
        .map(|(name, values)| ((*name).to_owned(), (*values).to_owned()))
        .collect();
    let axes = parse_axes(&pairs, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{diagnostics}");
    Grid::new(&Base::Plain, targets, &axes, &FakeEnv::new()).unwrap()
}

fn options(runtime_s: u64) -> SweepOptions {
    SweepOptions {
        exhaustive: false,
        runtime_ns: runtime_s * SECOND_NS,
        budget_ns: None,
        seed: 1,
        most_warmup_ns: None,
    }
}

fn run(device: &str, axes: &[(&str, &str)], options: &SweepOptions) -> SweepResult {
    let targets = [target(device)];
    let mut session = LocalRunner::default().open();
    let grid = grid(&targets, axes);
    sweep(&mut session, &targets, &grid, options, Vec::new(), &mut ()).unwrap()
}

// --- beside an exhaustive grid ---

/// A device of a family, slowed down so far that counting its I/Os does not take long.
fn slowed(family: Family, seed: u64, most_iops: f64) -> String {
    let fast = run(
        &family.draw(seed, 1.0),
        &[("rw", "read,randread"), ("iodepth", "256")],
        &SweepOptions {
            exhaustive: true,
            runtime_ns: SECOND_NS / 10,
            ..options(1)
        },
    );
    let rates = fast.curves.iter().filter_map(|curve| curve.cells[0].iops);
    let most = rates.map(|iops| iops.mean).fold(1.0, f64::max);
    family.draw(seed, (most / most_iops).max(1.0))
}

/// A drawn device and the grid to measure on it.
struct Task<'a> {
    family: Family,
    seed: u64,
    most_iops: f64,
    axes: &'a [(&'a str, &'a str)],
}

/// What is wrong with a sweep, beside the exhaustive one; nothing if all is well.
fn differences(task: &Task<'_>) -> Vec<String> {
    let Task {
        family, seed, axes, ..
    } = *task;
    let device = slowed(family, seed, task.most_iops);
    let targets = [target(&device)];
    let grid = grid(&targets, axes);
    let adaptive = options(60);
    let exhaustive = SweepOptions {
        exhaustive: true,
        ..adaptive.clone()
    };
    let mut session = living();
    let found = sweep(
        &mut session,
        &targets,
        &grid,
        &adaptive,
        Vec::new(),
        &mut (),
    )
    .unwrap();
    let mut session = living();
    // Other noise than the search sees.
    session.runs = 5000;
    let truth = sweep(
        &mut session,
        &targets,
        &grid,
        &exhaustive,
        Vec::new(),
        &mut (),
    )
    .unwrap();
    let mut wrong = Vec::new();
    for (found, truth) in found.curves.iter().zip(&truth.curves) {
        if let Some(problem) = difference(found, truth, &grid.depths) {
            wrong.push(format!(
                "{} {seed} {:?}: {problem}: {device}",
                family.preset(),
                found.values
            ));
        }
    }
    let measured_ns: u64 = truth
        .curves
        .iter()
        .flat_map(|c| &c.cells)
        .map(|c| c.measured_ns)
        .sum();
    if found.spent_ns > measured_ns / 10 {
        wrong.push(format!(
            "{} took {} s",
            family.preset(),
            found.spent_ns / SECOND_NS
        ));
    }
    if std::env::var_os("IOSONDE_SHOW").is_some() {
        eprintln!(
            "{} {seed}: {} s of {} s",
            family.preset(),
            found.spent_ns / SECOND_NS,
            measured_ns / SECOND_NS
        );
    }
    wrong
}

fn difference(found: &CurveResult, truth: &CurveResult, depths: &[u32]) -> Option<String> {
    let rates: Vec<f64> = truth
        .cells
        .iter()
        .map(|cell| cell.iops.unwrap().mean)
        .collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    let saturation = found.saturation.as_ref()?;
    let off = saturation.maximum.mean / most - 1.0;
    let reached = most * (1.0 - saturation.rules.tolerance);
    let knee = rates.iter().position(|rate| *rate >= reached)?;
    let near = depths[knee.saturating_sub(1)]..=depths[(knee + 1).min(depths.len() - 1)];
    let mut wrong = Vec::new();
    // Nobody comes closer than the cell itself would if it were measured again.
    let best = truth.cells.iter().filter_map(|cell| cell.iops);
    let best = best.max_by(|a, b| a.mean.total_cmp(&b.mean)).unwrap();
    let close = best.relative_error().unwrap_or(0.0).max(CLOSE);
    if off.abs() > close {
        wrong.push(format!("maximum of {most:.1} off by {:.2} %", off * 100.0));
    }
    if !near.contains(&saturation.knee.iodepth) {
        wrong.push(format!(
            "knee {} for {}",
            saturation.knee.iodepth, depths[knee]
        ));
    }
    // What is predicted lies where it says.
    for (cell, truth) in found.cells.iter().zip(&rates) {
        let Some(value) = cell.iops.filter(|_| cell.basis == Basis::Predicted) else {
            continue;
        };
        let most_off = value.error.unwrap_or(0.0) + 0.05 * truth;
        if (value.mean - truth).abs() > most_off {
            wrong.push(format!(
                "depth {} predicted {:.1} +- {:?}, is {truth:.1}",
                cell.iodepth, value.mean, value.error
            ));
        }
    }
    (!wrong.is_empty()).then(|| wrong.join(", "))
}

/// A part of the grid of document 002 on some families, three of them slowed down far; with `./test --full` all of it on all ten.
#[test]
fn a_sweep_agrees_with_the_exhaustive_grid_in_a_tenth_of_its_time() {
    let full = std::env::var("IOSONDE_TEST_FULL").is_ok_and(|full| full == "yes");
    let depths = ("iodepth", "1..512");
    let whole = [
        ("rw", "read,write,randread,randwrite"),
        ("bs", "4k,16k,64k,256k"),
        depths,
    ];
    let part = [("rw", "write,randread"), ("bs", "4k,64k"), depths];
    // Objects lie where they lie: a rate that holds over the first of them is not that of all.
    let objects = [("rw", "write"), ("bs", "4k,16k"), depths];
    let task = |family, most_iops, axes| Task {
        family,
        seed: 3,
        most_iops,
        axes,
    };
    let tasks: Vec<Task<'_>> = match full {
        true => Family::ALL
            .map(|family| task(family, FAST_IOPS, &whole[..]))
            .into(),
        false => vec![
            task(Family::Ceph, FAST_IOPS, &objects),
            task(Family::SataSsd, SLOW_IOPS, &part),
            task(Family::NetworkIopsCap, SLOW_IOPS, &part),
            task(Family::Nfs, SLOW_IOPS, &part),
        ],
    };
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = differences(task);
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// --- by itself ---

/// 2000 I/Os a second, 40 MiB/s, 4 ms each.
const CAPPED: &str = "seed=1,read_us=4000,write_us=4000,parallel=64,cap_iops=2000,cap_bw=40m";

#[test]
fn blocks_are_told_apart_by_what_holds_them() {
    let result = run(
        CAPPED,
        &[("bs", "4k,16k,64k,256k"), ("iodepth", "1..64")],
        &options(20),
    );
    let advice = &result.advice.blocks[0];
    let bound: Vec<String> = advice
        .blocks
        .iter()
        .map(|block| format!("{:?}", block.bound_by))
        .collect();
    assert_eq!(bound, ["Iops", "Iops", "Bandwidth", "Bandwidth"]);
    assert!(
        (advice.turning_bytes / 20_971.0 - 1.0).abs() < 0.05,
        "{}",
        advice.turning_bytes
    );
    let choice = &result.advice.choices[0];
    assert_eq!(choice.values, ["4k"]);
    assert_eq!(choice.latency.iodepth, 8, "{choice:?}");
    assert_eq!(choice.throughput.iodepth, 8, "{choice:?}");
    assert!(
        (choice.latency.mean_latency_ns / 4e6 - 1.0).abs() < 0.06,
        "{choice:?}"
    );
    assert!(result.advice.parallel.is_empty());
}

#[test]
fn more_jobs_are_advised_where_depth_does_not_help() {
    // One process gets 500 a second, the server could do 2000.
    let device = "seed=1,read_us=4000,read_dist=exp,parallel=8,worker_us=2000,delay_us=300";
    let result = run(
        device,
        &[("numjobs", "1,4"), ("iodepth", "1..32")],
        &options(20),
    );
    let advice = &result.advice.parallel[0];
    assert_eq!(advice.better, Parallel::Jobs);
    assert!(
        advice.evidence.starts_with("4 jobs get "),
        "{}",
        advice.evidence
    );
    assert_eq!(result.advice.choices.len(), 1);
    assert_eq!(result.advice.choices[0].throughput.numjobs, 4);
    let result = run(
        CAPPED,
        &[("numjobs", "1,4"), ("iodepth", "1..32")],
        &options(10),
    );
    assert_eq!(result.advice.parallel[0].better, Parallel::Same);
}

#[test]
fn what_is_not_measured_is_predicted_and_marked() {
    let result = run(CAPPED, &[("iodepth", "1..512")], &options(10));
    let curve = &result.curves[0];
    assert_eq!(curve.state, CurveState::Complete);
    let (measured, all) = result.measured();
    assert!(measured < all && all == 10, "{measured} of {all}");
    for cell in &curve.cells {
        let truth = (f64::from(cell.iodepth) * 250.0).min(2000.0);
        let value = cell.iops.unwrap();
        assert!((value.mean / truth - 1.0).abs() < 0.03, "{cell:?}");
        assert_eq!(cell.latency.is_some(), cell.basis == Basis::Measured);
        assert!(cell.mean_latency_ns.is_some());
    }
}

#[test]
fn a_budget_measures_what_tells_most() {
    let axes = [
        ("bs", "4k,8k,16k,32k,64k,128k,256k,512k,1m"),
        ("iodepth", "1..64"),
    ];
    let short = SweepOptions {
        budget_ns: Some(10 * SECOND_NS),
        ..options(60)
    };
    let result = run(CAPPED, &axes, &short);
    assert!(result.spent_ns < 11 * SECOND_NS, "{}", result.spent_ns);
    let count = |state| {
        result
            .curves
            .iter()
            .filter(|curve| curve.state == state)
            .count()
    };
    let states: Vec<_> = result.curves.iter().map(|curve| curve.state).collect();
    assert!(
        count(CurveState::NotMeasured) >= 3,
        "{states:?} {:?}",
        result.notes
    );
    // The ends of the axis are measured, and what lies between is predicted.
    assert_eq!(result.curves[0].state, CurveState::Complete);
    assert_eq!(result.curves[8].state, CurveState::Complete);
    let predicted = result
        .curves
        .iter()
        .filter(|curve| curve.state == CurveState::NotMeasured);
    for curve in predicted {
        assert!(
            curve
                .cells
                .iter()
                .all(|cell| cell.basis == Basis::Predicted),
            "{curve:?}"
        );
    }
    assert!(
        result.notes.iter().any(|note| note.contains("budget")),
        "{:?}",
        result.notes
    );
}

#[test]
fn an_exhaustive_sweep_measures_every_cell_in_any_order() {
    let axes = [("bs", "4k,64k"), ("iodepth", "1,4,16")];
    let every = SweepOptions {
        exhaustive: true,
        ..options(2)
    };
    let result = run(CAPPED, &axes, &every);
    assert_eq!(result.measured(), (6, 6));
    assert!(
        result
            .curves
            .iter()
            .all(|curve| curve.state == CurveState::Complete)
    );
    let saturation = result.curves[0].saturation.as_ref().unwrap();
    assert_eq!(saturation.knee.iodepth, 16);
    let targets = [target(CAPPED)];
    assert_eq!(
        planned_time(&grid(&targets, &axes), &every),
        TimeRange::exactly(6 * (2 * SECOND_NS + SECOND_NS / 5))
    );
}

// --- going on, and faults ---

/// Keeps what it is told, and wants the end after some cells.
#[derive(Default)]
struct Journal {
    known: Vec<SoFar>,
    records: usize,
    most: Option<usize>,
}

impl Journal {
    fn of(curves: usize, most: Option<usize>) -> Journal {
        Journal {
            known: vec![SoFar::default(); curves],
            records: 0,
            most,
        }
    }
}

impl SweepWatcher for Journal {
    fn record(&mut self, curve: usize, record: &Record, spent_ns: u64) {
        let known = &mut self.known[curve];
        known.records.retain(|other| !other.is_of_same_cell(record));
        known.records.push(record.clone());
        known.spent_ns = spent_ns;
        self.records += 1;
    }

    fn is_interrupted(&self) -> bool {
        self.most.is_some_and(|most| self.records >= most)
    }
}

/// Writes down how much time is said to be left.
#[derive(Default)]
struct Clock {
    planned: TimeRange,
    left: Vec<TimeRange>,
    counted: Vec<(usize, usize)>,
}

impl SweepWatcher for Clock {
    fn begin(&mut self, announcement: &Announcement<'_>) {
        self.planned = announcement.planned;
    }

    fn unit(&mut self, done: usize, of: usize, _: &CurvePlan) {
        self.counted.push((done, of));
    }

    fn left(&mut self, left: TimeRange) {
        self.left.push(left);
    }
}

/// What is known takes no time.
#[test]
fn the_time_left_is_that_of_what_is_not_known() {
    let axes = [("bs", "4k,64k"), ("iodepth", "1..16")];
    let targets = [target(CAPPED)];
    let grid = grid(&targets, &axes);
    let taken = |exhaustive: bool, most: Option<usize>, known: Vec<SoFar>| {
        let options = SweepOptions {
            exhaustive,
            ..options(5)
        };
        let mut session = LocalRunner::default().open();
        let mut journal = Journal::of(2, most);
        let mut clock = Clock::default();
        if known.is_empty() {
            sweep(&mut session, &targets, &grid, &options, known, &mut journal).unwrap();
        } else {
            sweep(&mut session, &targets, &grid, &options, known, &mut clock).unwrap();
        }
        (journal.known, clock)
    };
    let cell = planned_time(
        &grid,
        &SweepOptions {
            exhaustive: true,
            ..options(5)
        },
    );
    let cell_ns = cell.most_ns / 10;
    let (known, _) = taken(true, Some(7), Vec::new());
    let (_, clock) = taken(true, None, known);
    assert_eq!(clock.planned, TimeRange::exactly(3 * cell_ns));
    assert_eq!(clock.counted, [(7, 10), (8, 10), (9, 10)]);
    for (left, cells) in clock.left.iter().zip([3, 2, 1]) {
        // I/Os in flight at the end of a cell are waited for.
        let planned_ns = cells * cell_ns;
        let is_planned = (planned_ns..=planned_ns * 101 / 100).contains(&left.most_ns);
        assert!(
            is_planned && left.least_ns == left.most_ns,
            "{:?}",
            clock.left
        );
    }

    // Of two curves the one is known, and is looked at first.
    let (mut known, _) = taken(false, None, Vec::new());
    known[0] = SoFar::default();
    let both_ns = planned_time(&grid, &options(5)).most_ns;
    let left_ns = both_ns - known[1].spent_ns;
    let (_, clock) = taken(false, None, known);
    assert_eq!(clock.planned.most_ns, left_ns);
    // What the known one leaves over may be given to the other.
    let most: Vec<u64> = clock.left.iter().map(|left| left.most_ns).collect();
    assert_eq!(most, [left_ns, left_ns]);
    assert!(clock.left.iter().all(|left| left.least_ns < left_ns));
}

/// Every cell is measured once, whenever the sweep is ended between.
#[test]
fn a_sweep_goes_on_where_it_was() {
    let axes = [("bs", "4k,64k"), ("iodepth", "1..16")];
    let targets = [target(CAPPED)];
    let grid = grid(&targets, &axes);
    for exhaustive in [true, false] {
        let options = SweepOptions {
            exhaustive,
            ..options(5)
        };
        let mut session = LocalRunner::default().open();
        let mut whole = Journal::of(2, None);
        let expected = sweep(
            &mut session,
            &targets,
            &grid,
            &options,
            Vec::new(),
            &mut whole,
        )
        .unwrap();
        let mut known = Vec::new();
        let mut records = 0;
        for _ in 0..20 {
            let mut journal = Journal::of(2, Some(3));
            journal.known = match known.len() {
                0 => journal.known,
                _ => known.clone(),
            };
            // It goes through JSON on its way.
            let text = serde_json::to_string(&journal.known).unwrap();
            let so_far: Vec<SoFar> = serde_json::from_str(&text).unwrap();
            let result = sweep(
                &mut session,
                &targets,
                &grid,
                &options,
                so_far,
                &mut journal,
            )
            .unwrap();
            records += journal.records;
            known = journal.known;
            if !result.interrupted {
                for (found, expected) in result.curves.iter().zip(&expected.curves) {
                    let (found, expected) = (
                        found.saturation.as_ref().unwrap(),
                        expected.saturation.as_ref().unwrap(),
                    );
                    assert_eq!(found.knee.iodepth, expected.knee.iodepth);
                    assert!((found.maximum.mean / expected.maximum.mean - 1.0).abs() < 0.02);
                }
                break;
            }
            assert!(
                result
                    .curves
                    .iter()
                    .any(|curve| curve.state != CurveState::Complete)
            );
        }
        assert!(
            records <= whole.records + 2,
            "{records} for {}",
            whole.records
        );
    }
}

/// The target of this device dies after some runs.
struct Dying<S>(S, u32, &'static str);

impl<S: Session> Session for Dying<S> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let mut plan = plan.clone();
        for job in &mut plan.jobs {
            let device = job.io.sim.take().unwrap_or_default();
            let dies = device.contains(self.2);
            self.1 = self.1.saturating_sub(u32::from(dies));
            let fault = if dies && self.1 == 0 {
                ",read_error=1,write_error=1"
            } else {
                ""
            };
            job.io.sim = Some(format!("{device}{fault}"));
        }
        self.0.run(&plan, observer)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

/// What was measured is kept, and the other target is measured to its end.
#[test]
fn a_target_that_dies_ends_only_itself() {
    for exhaustive in [true, false] {
        let targets = [target(CAPPED), target("seed=2,read_us=5000,parallel=16")];
        let grid = grid(&targets, &[("bs", "4k,8k"), ("iodepth", "1..16")]);
        let options = SweepOptions {
            exhaustive,
            ..options(5)
        };
        let mut session = Dying(LocalRunner::default().open(), 5, "seed=2");
        let result = sweep(&mut session, &targets, &grid, &options, Vec::new(), &mut ()).unwrap();
        let failure = result.failure.as_ref().unwrap();
        assert!(
            failure.contains("seed=2") && failure.contains("EIO"),
            "{failure}"
        );
        let states: Vec<CurveState> = result.curves.iter().map(|curve| curve.state).collect();
        assert_eq!(states[..2], [CurveState::Complete; 2]);
        assert!(states[2..].contains(&CurveState::Partial), "{states:?}");
        let mut session = Dying(LocalRunner::default().open(), 1, "seed=2");
        let alone = sweep(
            &mut session,
            &targets[1..],
            &self::grid(&targets[1..], &[("iodepth", "1,2")]),
            &options,
            Vec::new(),
            &mut (),
        );
        assert!(matches!(alone, Err(SweepError::Io(_))), "{alone:?}");
    }
}

/// No run begins here.
struct Refusing;

impl Session for Refusing {
    fn run(&mut self, _: &Plan, _: &mut dyn Observer) -> Result<RunResult, RunError> {
        Err(RunError::Unsupported {
            problem: "there is no room".to_owned(),
            remedy: "make some".to_owned(),
        })
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

#[test]
fn where_all_targets_fail_the_first_says_why() {
    let targets = [target(CAPPED), target("seed=2,read_us=5000,parallel=16")];
    let grid = grid(&targets, &[("bs", "4k"), ("iodepth", "1,2")]);
    for exhaustive in [true, false] {
        let options = SweepOptions {
            exhaustive,
            ..options(5)
        };
        let failed = sweep(
            &mut Refusing,
            &targets,
            &grid,
            &options,
            Vec::new(),
            &mut (),
        );
        let error = failed.unwrap_err().to_string();
        assert!(error.contains("there is no room"), "{error}");
    }
}

#[test]
fn a_target_that_does_not_answer_in_time_is_not_called_an_interruption() {
    let device = "read_us=60s";
    let targets = [target(device)];
    let grid = grid(&targets, &[("rw", "randread"), ("iodepth", "1")]);
    for exhaustive in [true, false] {
        let options = SweepOptions {
            exhaustive,
            ..options(1)
        };
        let mut session = LocalRunner::default().open();
        let outcome = sweep(&mut session, &targets, &grid, &options, Vec::new(), &mut ());
        let silent = matches!(outcome, Err(SweepError::Run(RunError::NothingDone)));
        assert!(silent, "exhaustive {exhaustive}: {outcome:?}");
    }
}

#[test]
fn a_sweep_says_which_of_its_units_were_silent() {
    let device = "read_us=60s,write_us=100";
    let axes = [("rw", "randread,randwrite"), ("iodepth", "1")];
    for (exhaustive, place) in [(true, "randread, iodepth 1: "), (false, "randread: ")] {
        let options = SweepOptions {
            exhaustive,
            ..options(1)
        };
        let notes = run(device, &axes, &options).notes;
        assert_eq!(
            notes,
            [format!(
                "{place}no I/O was completed in the time that there was"
            )]
        );
    }
}

#[test]
fn what_is_somebodys_is_not_written() {
    let mut held = target(CAPPED);
    held.kind = TargetKind::Existing {
        bytes: 64 << 30,
        device: true,
        consent: false,
    };
    let targets = [held];
    let grid = grid(&targets, &[("rw", "randread,randwrite"), ("iodepth", "1")]);
    let mut session = LocalRunner::default().open();
    let refused = sweep(
        &mut session,
        &targets,
        &grid,
        &options(1),
        Vec::new(),
        &mut (),
    );
    assert!(
        matches!(refused, Err(SweepError::Consent { .. })),
        "{refused:?}"
    );
}

/// Whoever ran it ends with the status of a lost pod, and not with that of an I/O error.
#[test]
fn a_target_that_is_lost_leaves_its_cells_and_its_cause() {
    let targets = [target("read_us=1000,seed=1")];
    let grid = grid(
        &targets,
        &[("rw", "randread,randwrite"), ("iodepth", "1,2,4,8")],
    );
    for exhaustive in [false, true] {
        let options = SweepOptions {
            exhaustive,
            ..options(5)
        };
        let mut session = Lost(LocalRunner::default().open(), 3);
        let result = sweep(&mut session, &targets, &grid, &options, Vec::new(), &mut ()).unwrap();
        assert_eq!(result.cause, Some(lost()));
        assert!(
            result
                .failure
                .is_some_and(|why| why.contains("its node died"))
        );
        let cells = result.curves.iter().flat_map(|curve| &curve.cells);
        assert!(cells.filter(|cell| cell.basis == Basis::Measured).count() > 0);
    }
}
