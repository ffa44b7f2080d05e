//! Sweeps of simulated devices: alone, resumed, and with faults.

use crate::common::failing_session::FailingSession;
use crate::common::lost_pod_error::lost_pod_error;
use crate::common::lost_pod_session::LostPodSession;
use crate::common::sweep_fixture::{SECOND_NS, grid, options, run, target};
use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::{Direction, Plan};
use iosonde_result::observer::Observer;
use iosonde_result::run::{RunResult, Verdict, VerdictKind};
use iosonde_result::run_error::{RunError, TargetProblem};
use iosonde_result::session::Session;
use iosonde_result::verdict_cause::VerdictCause;
use iosonde_study::probe::StudyTargetKind;
use iosonde_study::saturation::{CellRecord, SearchProgress};
use iosonde_study::sweep::{
    BoundBy, CellBasis, CurveState, Parallel, SweepOptions, SweepTarget, planned_time, sweep,
};
use iosonde_study::{Announcement, StudyError, StudyEvent, StudyObserver, StudyStep, TimeRange};

// --- alone ---

/// At most 2000 IOPS and 40 MiB/s, 4 ms for each I/O.
const CAPPED: &str = "seed=1,read_us=4000,write_us=4000,parallel=64,cap_iops=2000,cap_bw=40m";

#[test]
fn advice_names_iops_or_bandwidth_bound_of_each_block_size() {
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
fn rising_block_size_is_bound_by_depth() {
    let axes = [("bs", "4k,1m"), ("iodepth", "1..4")];
    let result = run(CAPPED, &axes, &options(20));
    let blocks = &result.advice.blocks[0].blocks;
    let bound: Vec<BoundBy> = blocks.iter().map(|block| block.bound_by).collect();
    assert_eq!(bound, [BoundBy::Depth, BoundBy::Bandwidth]);
}

#[test]
fn more_jobs_are_advised_when_depth_does_not_help() {
    // One process reaches 500 IOPS, the server 2000.
    let device = "seed=1,read_us=4000,read_dist=exp,parallel=8,worker_us=2000,delay_us=300";
    let result = run(
        device,
        &[("numjobs", "1,4"), ("iodepth", "1..32")],
        &options(20),
    );
    let advice = &result.advice.parallel[0];
    assert_eq!(advice.better, Parallel::Jobs);
    assert!(
        advice.evidence.starts_with("4 jobs reach "),
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
fn unmeasured_cells_are_predicted_and_marked() {
    let result = run(CAPPED, &[("iodepth", "1..512")], &options(10));
    let curve = &result.curves[0];
    assert_eq!(curve.state, CurveState::Complete);
    let (measured, all) = result.measured();
    assert!(measured < all && all == 10, "{measured} of {all}");
    for cell in &curve.cells {
        let truth = (f64::from(cell.iodepth) * 250.0).min(2000.0);
        let value = cell.iops.unwrap();
        assert!((value.mean / truth - 1.0).abs() < 0.03, "{cell:?}");
        assert_eq!(cell.latency.is_some(), cell.basis == CellBasis::Measured);
        assert!(cell.mean_latency_ns.is_some());
    }
}

#[test]
fn budget_measures_ends_of_axis_first() {
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
    // Both ends of the axis are measured, and the curves between them are predicted.
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
                .all(|cell| cell.basis == CellBasis::Predicted),
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
fn exhaustive_sweep_measures_every_cell() {
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
        TimeRange::from_steps(6, 6, 2 * SECOND_NS + SECOND_NS / 5)
    );
}

// --- resumed sweeps and faults ---

/// Records cells to resume from, and interrupts after `most` of them.
#[derive(Default)]
struct Journal {
    known: Vec<SearchProgress>,
    records: usize,
    most: Option<usize>,
}

impl Journal {
    fn new(curves: usize, most: Option<usize>) -> Journal {
        Journal {
            known: vec![SearchProgress::default(); curves],
            records: 0,
            most,
        }
    }
}

impl Journal {
    fn record(&mut self, curve: usize, record: &CellRecord, spent_ns: u64) {
        let known = &mut self.known[curve];
        known.records.retain(|other| !other.is_of_same_cell(record));
        known.records.push(record.clone());
        known.spent_ns = spent_ns;
        self.records += 1;
    }
}

impl StudyObserver for Journal {
    fn event(&mut self, event: &StudyEvent<'_>) {
        if let StudyEvent::Recorded {
            curve,
            record,
            spent_ns,
        } = event
        {
            self.record(*curve, record, *spent_ns);
        }
    }

    fn is_interrupted(&self) -> bool {
        self.most.is_some_and(|most| self.records >= most)
    }
}

/// Records the announced and the remaining times.
#[derive(Default)]
struct SweepClock {
    planned: TimeRange,
    left: Vec<TimeRange>,
    counted: Vec<(usize, usize)>,
}

impl StudyObserver for SweepClock {
    fn event(&mut self, event: &StudyEvent<'_>) {
        match event {
            StudyEvent::Announced(Announcement::Sweep(extent)) => self.planned = extent.planned,
            StudyEvent::StepStarted {
                step: StudyStep::Unit { done, units, .. },
                ..
            } => self.counted.push((*done, *units)),
            StudyEvent::TimeLeft(left) => self.left.push(*left),
            _ => {}
        }
    }
}

/// Cells that are already known take no time.
#[test]
fn time_left_excludes_known_cells() {
    let axes = [("bs", "4k,64k"), ("iodepth", "1..16")];
    let targets = [target(CAPPED)];
    let grid = grid(&targets, &axes);
    let taken = |exhaustive: bool, most: Option<usize>, known: Vec<SearchProgress>| {
        let options = SweepOptions {
            exhaustive,
            ..options(5)
        };
        let mut session = LocalRunner::default().open();
        let mut journal = Journal::new(2, most);
        let mut clock = SweepClock::default();
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
    assert_eq!(clock.planned, TimeRange::from_steps(3, 3, cell_ns));
    assert_eq!(clock.counted, [(7, 10), (8, 10), (9, 10)]);
    for (left, cells) in clock.left.iter().zip([3, 2, 1]) {
        // Includes draining at the end of each cell.
        let planned_ns = cells * cell_ns;
        let is_planned = (planned_ns..=planned_ns * 101 / 100).contains(&left.most_ns);
        assert!(
            is_planned && left.least_ns == left.most_ns,
            "{:?}",
            clock.left
        );
    }

    // One of two curves is already known, and is processed first.
    let (mut known, _) = taken(false, None, Vec::new());
    known[0] = SearchProgress::default();
    let both_ns = planned_time(&grid, &options(5)).most_ns;
    let left_ns = both_ns - known[1].spent_ns;
    let (_, clock) = taken(false, None, known);
    assert_eq!(clock.planned.most_ns, left_ns);
    // The other curve may use the time that the known one leaves.
    let most: Vec<u64> = clock.left.iter().map(|left| left.most_ns).collect();
    assert_eq!(most, [left_ns, left_ns]);
    assert!(clock.left.iter().all(|left| left.least_ns < left_ns));
}

/// Every cell is measured once, whenever the sweep was interrupted.
#[test]
fn interrupted_sweep_resumes_without_repeating_cells() {
    let axes = [("bs", "4k,64k"), ("iodepth", "1..16")];
    let targets = [target(CAPPED)];
    let grid = grid(&targets, &axes);
    for exhaustive in [true, false] {
        let options = SweepOptions {
            exhaustive,
            ..options(5)
        };
        let mut session = LocalRunner::default().open();
        let mut whole = Journal::new(2, None);
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
            let mut journal = Journal::new(2, Some(3));
            journal.known = match known.len() {
                0 => journal.known,
                _ => known.clone(),
            };
            // The journal passes through JSON.
            let text = serde_json::to_string(&journal.known).unwrap();
            let so_far: Vec<SearchProgress> = serde_json::from_str(&text).unwrap();
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

/// Measured cells are kept, and the other target is measured completely.
#[test]
fn failing_target_does_not_end_other_targets() {
    for exhaustive in [true, false] {
        let targets = [target(CAPPED), target("seed=2,read_us=5000,parallel=16")];
        let grid = grid(&targets, &[("bs", "4k,8k"), ("iodepth", "1..16")]);
        let options = SweepOptions {
            exhaustive,
            ..options(5)
        };
        let mut session = FailingSession {
            session: LocalRunner::default().open(),
            device: "seed=2",
            fails_in_run: 5,
        };
        let result = sweep(&mut session, &targets, &grid, &options, Vec::new(), &mut ()).unwrap();
        let failure = result.failure.as_ref().unwrap();
        assert!(
            failure.contains("seed=2") && failure.contains("EIO"),
            "{failure}"
        );
        let states: Vec<CurveState> = result.curves.iter().map(|curve| curve.state).collect();
        assert_eq!(states[..2], [CurveState::Complete; 2]);
        assert!(states[2..].contains(&CurveState::Partial), "{states:?}");
        let mut session = FailingSession {
            session: LocalRunner::default().open(),
            device: "seed=2",
            fails_in_run: 1,
        };
        let alone = sweep(
            &mut session,
            &targets[1..],
            &self::grid(&targets[1..], &[("iodepth", "1,2")]),
            &options,
            Vec::new(),
            &mut (),
        );
        assert!(matches!(alone, Err(StudyError::Io { .. })), "{alone:?}");
    }
}

/// Refuses all runs with this error.
struct Refusing(RunError);

impl Session for Refusing {
    fn run(&mut self, _: &Plan, _: &mut dyn Observer) -> Result<RunResult, RunError> {
        Err(self.0.clone())
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

#[test]
fn failure_of_all_targets_reports_first_error() {
    let targets = [target(CAPPED), target("seed=2,read_us=5000,parallel=16")];
    let grid = grid(&targets, &[("bs", "4k"), ("iodepth", "1,2")]);
    let no_room = RunError::Unsupported {
        problem: "there is no room".to_owned(),
        remedy: "make some".to_owned(),
    };
    for exhaustive in [true, false] {
        let options = SweepOptions {
            exhaustive,
            ..options(5)
        };
        let failed = sweep(
            &mut Refusing(no_room.clone()),
            &targets,
            &grid,
            &options,
            Vec::new(),
            &mut (),
        );
        let is_first = matches!(&failed, Err(StudyError::Run(error)) if *error == no_room);
        assert!(is_first, "{failed:?}");
    }
}

/// Collects all notes.
struct SweepNotes(Vec<String>);

impl StudyObserver for SweepNotes {
    fn event(&mut self, event: &StudyEvent<'_>) {
        if let StudyEvent::Note(note) = event {
            self.0.push((*note).to_owned());
        }
    }
}

/// The path of the error is in `/d2`. Its text contains the name `/d` too.
#[test]
fn note_names_target_unless_path_of_error_is_in_it() {
    let named = |name: &str| SweepTarget {
        name: name.to_owned(),
        ..target(CAPPED)
    };
    let targets = [named("/d"), named("/d2")];
    let grid = grid(&targets, &[("bs", "4k"), ("iodepth", "1,2")]);
    let error = RunError::unusable_target("/d2/file", TargetProblem::NoSize);
    let why = format!("{error}; {}", error.remedy());
    for exhaustive in [true, false] {
        let options = SweepOptions {
            exhaustive,
            ..options(5)
        };
        let mut collected = SweepNotes(Vec::new());
        let failed = sweep(
            &mut Refusing(error.clone()),
            &targets,
            &grid,
            &options,
            Vec::new(),
            &mut collected,
        );
        assert!(failed.is_err(), "{failed:?}");
        let mut notes = collected.0;
        notes.retain(|note| note.contains("/d2/file"));
        notes.sort();
        assert_eq!(notes, [why.clone(), format!("/d: {why}")]);
    }
}

#[test]
fn silent_target_is_not_reported_as_interrupted() {
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
        let silent = matches!(outcome, Err(StudyError::Run(RunError::NoCompletions)));
        assert!(silent, "exhaustive {exhaustive}: {outcome:?}");
    }
}

#[test]
fn silent_units_are_named_in_notes() {
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
            [format!("{place}no I/O completed in the available time")]
        );
    }
}

#[test]
fn target_without_consent_is_not_written() {
    let mut held = target(CAPPED);
    held.kind = StudyTargetKind::Existing {
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
        matches!(refused, Err(StudyError::WriteRefused { .. })),
        "{refused:?}"
    );
}

/// The cause decides the exit status: that of a lost pod, not of an I/O error.
#[test]
fn lost_target_keeps_cells_and_cause() {
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
        let mut session = LostPodSession(LocalRunner::default().open(), 3);
        let result = sweep(&mut session, &targets, &grid, &options, Vec::new(), &mut ()).unwrap();
        assert_eq!(result.cause, Some(lost_pod_error()));
        assert!(result.failure.is_some());
        let cells = result.curves.iter().flat_map(|curve| &curve.cells);
        assert!(
            cells
                .filter(|cell| cell.basis == CellBasis::Measured)
                .count()
                > 0
        );
    }
}

/// A session on a simulated device. The runs of these plans find that a cache served I/O of this
/// direction.
struct CachedSession<S>(S, Direction, fn(&Plan) -> bool);

impl<S: Session> Session for CachedSession<S> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let mut result = self.0.run(plan, observer)?;
        if (self.2)(plan) {
            result.verdicts.push(Verdict {
                kind: VerdictKind::ServedFromCache,
                evidence: "a cache served it".to_owned(),
                cause: Some(VerdictCause::ServedFromCache {
                    direction: self.1,
                    job_bytes: 1 << 30,
                    device_bytes: 0,
                }),
            });
        }
        Ok(result)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

/// Note on curves whose reads a cache served.
const CACHED_READS: &str =
    "a cache served some or all reads, so the figures may not describe the device";

fn has_reads(plan: &Plan) -> bool {
    plan.jobs[0].workload.rw.has(Direction::Read)
}

fn has_small_blocks(plan: &Plan) -> bool {
    plan.jobs[0].workload.block_size[Direction::Read].max() == 4096
}

#[test]
fn caution_on_cached_reads_names_the_curves() {
    let targets = [target(CAPPED)];
    let axes = [
        ("rw", "randread,randwrite"),
        ("bs", "4k,16k"),
        ("iodepth", "1,2"),
    ];
    let grid = grid(&targets, &axes);
    let cautions = |direction: Direction, is_cached: fn(&Plan) -> bool| {
        let mut session = CachedSession(LocalRunner::default().open(), direction, is_cached);
        let options = SweepOptions {
            exhaustive: true,
            ..options(2)
        };
        let result = sweep(&mut session, &targets, &grid, &options, Vec::new(), &mut ());
        let mut notes = result.unwrap().notes;
        notes.retain(|note| note.contains(CACHED_READS));
        notes
    };
    assert_eq!(cautions(Direction::Read, |_| true), [CACHED_READS]);
    assert!(cautions(Direction::Write, |_| true).is_empty());
    let is_named = |is_cached, names: &str| {
        let expected = format!("{names}: {CACHED_READS}");
        assert_eq!(cautions(Direction::Read, is_cached), [expected]);
    };
    is_named(has_reads, "randread");
    is_named(has_small_blocks, "4k");
    is_named(
        |plan| has_reads(plan) && has_small_blocks(plan),
        "randread, 4k",
    );
}

#[test]
fn resumed_sweep_keeps_caution_on_cached_reads() {
    let targets = [target(CAPPED)];
    let grid = grid(&targets, &[("bs", "4k,16k"), ("iodepth", "1,2")]);
    for exhaustive in [true, false] {
        let options = SweepOptions {
            exhaustive,
            ..options(5)
        };
        let mut journal = Journal::new(2, None);
        let runner = LocalRunner::default();
        let mut session = CachedSession(runner.open(), Direction::Read, has_small_blocks);
        let first = sweep(
            &mut session,
            &targets,
            &grid,
            &options,
            Vec::new(),
            &mut journal,
        );
        assert!(first.is_ok(), "{first:?}");
        // The journal passes through JSON.
        let text = serde_json::to_string(&journal.known).unwrap();
        let so_far: Vec<SearchProgress> = serde_json::from_str(&text).unwrap();
        let mut session = LocalRunner::default().open();
        let result = sweep(&mut session, &targets, &grid, &options, so_far, &mut ()).unwrap();
        let caution = format!("4k: {CACHED_READS}");
        assert!(result.notes.contains(&caution), "{:?}", result.notes);
    }
}
