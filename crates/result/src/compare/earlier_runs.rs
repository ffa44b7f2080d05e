//! Widens confidence intervals by the spread of earlier runs of the same plan on the same target.
//!
//! The interval of one run describes the uncertainty of its own mean. Runs of different days may
//! differ by more. The spread of earlier runs beyond their own intervals is a variance that no
//! single run shows. It is estimated by the one-way random-effects model (DerSimonian and Laird,
//! Controlled Clinical Trials 7, 1986). It can only widen the interval for another run.

use super::between_runs::BetweenRuns;
use super::comparison::{ComparedSide, Comparison, ComparisonRow};
use super::comparison_note::ComparisonNote;
use super::figure::{Bounds, Measure, ResultPart, Subject};
use super::group::MeasuredResult;
use super::sides::compare;
use crate::run::RunResult;
use iosonde_job::plan::Plan;

/// Most earlier runs that are used: the latest ones.
pub const EARLIER_RUNS_MAX: usize = 30;

/// Returns whether two runs have the same plan and target, apart from random seeds.
pub fn is_same_plan_and_target(a: &RunResult, b: &RunResult) -> bool {
    let backends = |run: &RunResult| -> Vec<_> {
        let each = run.workers.iter().map(|worker| &worker.backend);
        each.map(|used| (used.engine, used.direct)).collect()
    };
    let targets = |run: &RunResult| -> Vec<_> {
        let each = run.targets.iter().map(|target| {
            let devices = target.all_devices().into_iter();
            let devices: Vec<_> = devices
                .map(|device| (device.name.clone(), device.model.clone(), device.size_bytes))
                .collect();
            let path = comparable_path(&target.path.to_string_lossy());
            (path, target.kind, target.size_bytes, devices)
        });
        each.collect()
    };
    comparable_plan(&a.plan) == comparable_plan(&b.plan)
        && backends(a) == backends(b)
        && targets(a) == targets(b)
}

/// Returns the plan without seeds, names of working files and the option texts it came from.
fn comparable_plan(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.global_options.clear();
    for job in &mut plan.jobs {
        job.given.clear();
        job.workload.randseed = None;
        for name in &mut job.files.filenames {
            *name = comparable_path(name);
        }
    }
    plan
}

/// Returns the path without the unique part of the name of a working file.
fn comparable_path(path: &str) -> String {
    let components = path.split('/').map(|component| {
        let is_working_file = component.starts_with(WORKING_FILES);
        if is_working_file {
            WORKING_FILES
        } else {
            component
        }
    });
    components.collect::<Vec<_>>().join("/")
}

/// Prefix of the files and directories that a study creates in a directory and removes.
pub const WORKING_FILES: &str = ".iosonde-";

/// Compares two single results as [`compare`] does, given the parts of earlier runs of their plans
/// and targets. Their spread widens the intervals, and a note names a verdict that this changes.
pub fn compare_with_earlier_runs(
    a: &[MeasuredResult],
    b: &[MeasuredResult],
    earlier: [&[ResultPart]; 2],
) -> Comparison {
    let without = compare(a, b);
    let (wide_a, evidence_a) = widen(a, earlier[0]);
    let (wide_b, evidence_b) = widen(b, earlier[1]);
    let mut found = compare(&wide_a, &wide_b);
    // The notes concern each run's own interval, which earlier runs do not change.
    found.notes = without.notes;
    for row in &mut found.rows {
        row.a.earlier_runs = evidence_of(&evidence_a, row, &row.a);
        row.b.earlier_runs = evidence_of(&evidence_b, row, &row.b);
    }
    let mut pairs = without.rows.iter().zip(&found.rows);
    let has_evidence = |row: &ComparisonRow| row.a.earlier_runs.or(row.b.earlier_runs).is_some();
    let decided = pairs.find(|(before, after)| {
        before.ratio.is_shown() && !after.ratio.is_shown() && has_evidence(after)
    });
    if let Some((_, row)) = decided {
        found.notes.push(earlier_runs_note(row));
    }
    found
}

/// Evidence for one figure, and the figure's bounds after widening.
struct FigureEvidence {
    subject: Subject,
    measure: Measure,
    bounds: Bounds,
    between: BetweenRuns,
}

/// Widens the intervals of a single result by its target's earlier runs, and returns the evidence.
fn widen(
    side: &[MeasuredResult],
    earlier: &[ResultPart],
) -> (Vec<MeasuredResult>, Vec<FigureEvidence>) {
    let mut side = side.to_vec();
    let mut evidence = Vec::new();
    let [only] = &mut side[..] else {
        return (side, evidence);
    };
    for part in &mut only.parts {
        let is_same = |each: &&ResultPart| each.name == part.name && each.pattern == part.pattern;
        let same: Vec<&ResultPart> = earlier.iter().filter(is_same).collect();
        for figure in &mut part.figures {
            let (subject, measure) = (figure.subject, figure.measure);
            let of_it = same.iter().filter_map(|each| each.figure(subject, measure));
            let Some((between, bounds)) =
                BetweenRuns::from_figures(of_it).zip(figure.bounds.as_mut())
            else {
                continue;
            };
            *bounds = between.widen(bounds);
            evidence.push(FigureEvidence {
                subject,
                measure,
                bounds: *bounds,
                between,
            });
        }
    }
    (side, evidence)
}

/// Returns the evidence for a side of a row, identified by its bounds, as part names may differ.
fn evidence_of(
    evidence: &[FigureEvidence],
    row: &ComparisonRow,
    side: &ComparedSide,
) -> Option<BetweenRuns> {
    let is_of_side = |each: &&FigureEvidence| {
        (each.subject, each.measure) == (row.subject, row.measure)
            && side.bounds == Some(each.bounds)
    };
    evidence.iter().find(is_of_side).map(|each| each.between)
}

fn earlier_runs_note(row: &ComparisonRow) -> ComparisonNote {
    let spread = |side: &ComparedSide| side.earlier_runs.map_or(0.0, |between| between.spread);
    let widest = if spread(&row.a) >= spread(&row.b) {
        &row.a
    } else {
        &row.b
    };
    ComparisonNote::EarlierRuns {
        runs: widest.earlier_runs.map_or(0, |between| between.runs),
        spread: spread(widest),
        part: row.part.clone(),
        measure: row.measure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::confidence_interval::{LEVEL, quantile};
    use crate::compare::{ComparisonVerdict, Figure, IoPattern};
    use crate::families::{Random, normal};
    use proptest::prelude::*;
    use rand::SeedableRng;

    /// Standard error of each run, as a share of the mean.
    const ERROR: f64 = 0.01;
    const FREEDOM: f64 = 30.0;

    fn part_of(value: f64) -> ResultPart {
        let half = ERROR * quantile(LEVEL, FREEDOM);
        let bounds = Bounds {
            low: value * (-half).exp(),
            high: value * half.exp(),
            freedom: FREEDOM,
            repeat_factor: 1.0,
            basis: crate::compare::IntervalBasis::Series,
        };
        ResultPart {
            name: "read".into(),
            pattern: IoPattern::default(),
            figures: vec![Figure {
                subject: Subject::Read,
                measure: Measure::Iops,
                value,
                bounds: Some(bounds),
                settled: None,
            }],
            role: Default::default(),
        }
    }

    fn side_of(value: f64) -> [MeasuredResult; 1] {
        [MeasuredResult {
            name: "run".into(),
            machine: None,
            parts: vec![part_of(value)],
        }]
    }

    /// Returns runs of a target whose speed varies between runs by `between`.
    fn runs(count: usize, between: f64, random: &mut Random) -> Vec<f64> {
        let run = |_| 1000.0 * (between * normal(random) + ERROR * normal(random)).exp();
        (0..count).map(run).collect()
    }

    /// Returns the number of 1,000 pairs of equal devices that are called different, with and
    /// without the evidence of earlier runs.
    fn called_different(earlier: usize, between: f64) -> [usize; 2] {
        let mut random = Random::seed_from_u64(earlier as u64);
        let mut called = [0; 2];
        for _ in 0..1000 {
            let all = runs(earlier + 2, between, &mut random);
            let (a, b) = (side_of(all[0]), side_of(all[1]));
            let earlier: Vec<ResultPart> = all[2..].iter().map(|value| part_of(*value)).collect();
            let with = compare_with_earlier_runs(&a, &b, [&earlier; 2]);
            let without = compare(&a, &b);
            for (count, comparison) in called.iter_mut().zip([with, without]) {
                *count += usize::from(comparison.rows[0].ratio.is_shown());
            }
        }
        called
    }

    #[test]
    fn runs_with_variation_between_runs_are_equal_given_history() {
        for between in [0.0, 0.01, 0.03] {
            for (earlier, most) in [(3, 130), (5, 90), (10, 80), (30, 70)] {
                let [with, without] = called_different(earlier, between);
                println!("{between} {earlier}: {with} {without}");
                assert!(with <= most, "{between}, {earlier} runs: {with} of 1000");
                assert!(between < 0.02 || without > 500, "{without}");
            }
        }
    }

    #[test]
    fn spread_of_earlier_runs_decides_and_is_named() {
        let (a, b) = (side_of(1000.0), side_of(1080.0));
        assert_eq!(compare(&a, &b).rows[0].verdict, ComparisonVerdict::Faster);
        let earlier: Vec<ResultPart> = [930.0, 1000.0, 1075.0, 980.0].map(part_of).to_vec();
        let found = compare_with_earlier_runs(&a, &b, [&earlier; 2]);
        assert_eq!(found.rows[0].verdict, ComparisonVerdict::NoDifferenceShown);
        let between = found.rows[0].a.earlier_runs.unwrap();
        assert_eq!(between.runs, 4);
        assert!((0.05..0.07).contains(&between.spread), "{between:?}");
        let note = found.notes.last().unwrap();
        assert!(
            matches!(note, ComparisonNote::EarlierRuns { runs: 4, .. }),
            "{note}"
        );
    }

    #[test]
    fn comparison_ignores_too_few_or_equal_earlier_runs() {
        let (a, b) = (side_of(1000.0), side_of(1080.0));
        let before = compare(&a, &b);
        let two: Vec<ResultPart> = [500.0, 1000.0].map(part_of).to_vec();
        assert_eq!(compare_with_earlier_runs(&a, &b, [&two; 2]), before);
        let equal: Vec<ResultPart> = [1000.0, 1001.0, 999.0].map(part_of).to_vec();
        let found = compare_with_earlier_runs(&a, &b, [&equal; 2]);
        assert_eq!(found.rows[0].ratio, before.rows[0].ratio);
        assert_eq!(found.rows[0].a.earlier_runs.unwrap().spread, 0.0);
    }

    #[test]
    fn runs_of_another_pattern_are_no_evidence() {
        let (a, b) = (side_of(1000.0), side_of(1080.0));
        let mut earlier: Vec<ResultPart> = [500.0, 1000.0, 2000.0].map(part_of).to_vec();
        for part in &mut earlier {
            part.pattern.iodepth = 7;
        }
        assert_eq!(
            compare_with_earlier_runs(&a, &b, [&earlier; 2]),
            compare(&a, &b)
        );
    }

    #[test]
    fn names_of_working_files_do_not_matter() {
        let of = |name: &str| comparable_path(&format!("/mnt/a/{name}"));
        assert_eq!(of(".iosonde-probe-41-0"), of(".iosonde-probe-7-1"));
        assert_ne!(of("data-1"), of("data-2"));
    }

    proptest! {
        #[test]
        fn earlier_runs_never_narrow_an_interval(
            values in proptest::collection::vec(100.0f64..10_000.0, 0..12),
            ratio in 0.5f64..2.0,
        ) {
            let (a, b) = (side_of(1000.0), side_of(1000.0 * ratio));
            let earlier: Vec<ResultPart> = values.iter().map(|value| part_of(*value)).collect();
            let with = compare_with_earlier_runs(&a, &b, [&earlier, &[]]);
            let without = compare(&a, &b);
            for (with, without) in [
                (with.rows[0].ratio, without.rows[0].ratio),
                (with.rows[0].joint, without.rows[0].joint),
            ] {
                let (with, without) = (with.interval.unwrap(), without.interval.unwrap());
                prop_assert!(with.0 <= without.0 * (1.0 + 1e-9));
                prop_assert!(with.1 >= without.1 * (1.0 - 1e-9));
            }
        }
    }
}
