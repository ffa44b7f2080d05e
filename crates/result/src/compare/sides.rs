//! Comparison of two sides, figure by figure.

use super::closed_loop::{join_rates_and_latencies, join_rates_and_syncs};
use super::comparison::{ComparedSide, Comparison, ComparisonRow, ComparisonVerdict};
use super::comparison_note::ComparisonNote;
use super::confidence_interval::{LEVEL, Ratio, quantile, ratio};
use super::figure::{IntervalBasis, Measure, ResultPart, Subject};
use super::group::{FigureGroup, MeasuredResult, bounds_of_logs};
use super::matching::matching;

/// Compares the results of `b` with those of `a`.
pub fn compare(a: &[MeasuredResult], b: &[MeasuredResult]) -> Comparison {
    let matching = matching(a, b);
    let mut rows = comparison_rows(a, b, &matching.pairs);
    join_rates_and_latencies(&mut rows);
    join_rates_and_syncs(&mut rows, &matching.pairs);
    let names = |parts: &[&ResultPart]| parts.iter().map(|part| part.name.clone()).collect();
    Comparison {
        notes: notes(&rows, &matching.pairs),
        only_in_a: names(&matching.only_in_a),
        only_in_b: names(&matching.only_in_b),
        rows,
    }
}

/// Returns the figures of each pair of parts, each with its own interval.
pub(super) fn comparison_rows(
    a: &[MeasuredResult],
    b: &[MeasuredResult],
    pairs: &[(&ResultPart, &ResultPart)],
) -> Vec<ComparisonRow> {
    let mut found: Vec<FigurePair<'_>> = Vec::new();
    for (mine, theirs) in pairs {
        for subject in Subject::ALL {
            for measure in shared_measures(mine, theirs, subject) {
                let of = |side, part: &ResultPart| {
                    FigureGroup::from_results(side, &part.name, subject, measure)
                };
                if let (Some(first), Some(second)) = (of(a, mine), of(b, theirs)) {
                    found.push(FigurePair {
                        part: &mine.name,
                        subject,
                        measure,
                        first,
                        second,
                    });
                }
            }
        }
    }
    let with_interval = found
        .iter()
        .filter(|found| found.ratio(LEVEL).0.interval.is_some())
        .count();
    let joint_level = 1.0 - (1.0 - LEVEL) / with_interval.max(1) as f64;
    found.iter().map(|each| each.row(joint_level)).collect()
}

/// Returns each figure that more than one result has, with its part, subject and measure.
pub fn combine_figures(
    results: &[MeasuredResult],
) -> Vec<(String, Subject, Measure, ComparedSide)> {
    let rows = compare(results, results).rows.into_iter();
    rows.filter(|row| row.a.spread.is_some())
        .map(|row| (row.part, row.subject, row.measure, row.a))
        .collect()
}

/// Returns one figure combined over several results. `None` if no result has it.
pub fn figure_of(
    results: &[MeasuredResult],
    part: &str,
    subject: Subject,
    measure: Measure,
) -> Option<ComparedSide> {
    FigureGroup::from_results(results, part, subject, measure).map(|group| compared_side(&group))
}

/// Returns the measures that both parts have. Completion latency is included only if total latency
/// is missing. Bandwidth is included only if it differs from IOPS, because the block sizes differ.
fn shared_measures(a: &ResultPart, b: &ResultPart, subject: Subject) -> Vec<Measure> {
    let both = |measure| a.figure(subject, measure).zip(b.figure(subject, measure));
    let says_more = |measure: Measure| match measure {
        Measure::BytesPerS => match (both(Measure::Iops), both(Measure::BytesPerS)) {
            (Some((a_ios, b_ios)), Some((a_bytes, b_bytes))) => {
                let a_block = a_bytes.value / a_ios.value;
                let b_block = b_bytes.value / b_ios.value;
                (a_block / b_block - 1.0).abs() > 1e-3
            }
            _ => true,
        },
        _ => measure.of_total().is_none_or(|total| both(total).is_none()),
    };
    let shared = Measure::ALL
        .into_iter()
        .filter(|measure| both(*measure).is_some() && says_more(*measure));
    shared.collect()
}

/// A figure of both sides.
struct FigurePair<'a> {
    part: &'a str,
    subject: Subject,
    measure: Measure,
    first: FigureGroup,
    second: FigureGroup,
}

impl FigurePair<'_> {
    fn row(&self, joint_level: f64) -> ComparisonRow {
        let (ratio, paired) = self.ratio(LEVEL);
        ComparisonRow {
            part: self.part.to_owned(),
            subject: self.subject,
            measure: self.measure,
            a: compared_side(&self.first),
            b: compared_side(&self.second),
            joint: self.ratio(joint_level).0,
            verdict: ComparisonVerdict::from_ratio(&ratio, self.measure),
            ratio,
            paired,
        }
    }

    /// Returns the ratio, and whether each machine was compared with itself.
    fn ratio(&self, level: f64) -> (Ratio, bool) {
        if let Some(paired) = self.paired(level) {
            return (paired, true);
        }
        let (a, b) = (&self.first, &self.second);
        let apart = ratio(
            (a.value, a.bounds.as_ref()),
            (b.value, b.bounds.as_ref()),
            level,
        );
        (apart, false)
    }

    /// Compares each machine with itself, if both sides ran on the same two or more machines.
    fn paired(&self, level: f64) -> Option<Ratio> {
        let (a, b) = (&self.first.machines, &self.second.machines);
        let same = a.len() == b.len()
            && a.iter()
                .zip(b)
                .all(|(mine, theirs)| mine.0.is_some() && mine.0 == theirs.0);
        if a.len() < 2 || !same {
            return None;
        }
        let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| b.1 - a.1).collect();
        let bounds = bounds_of_logs(&differences, IntervalBasis::Machines)?;
        let value = self.second.value / self.first.value;
        let wider = quantile(level, bounds.freedom) / quantile(LEVEL, bounds.freedom);
        // Equal differences leave no width, and rounding must not make it negative.
        let half = ((bounds.high / value).ln() * wider).max(0.0);
        Some(Ratio {
            value,
            interval: Some((value * (-half).exp(), value * half.exp())),
        })
    }
}

fn compared_side(group: &FigureGroup) -> ComparedSide {
    ComparedSide {
        value: group.value,
        bounds: group.bounds,
        runs: group.runs,
        machines: group.machines.len(),
        spread: group.spread,
        unsettled: group.unsettled,
        earlier_runs: None,
    }
}

fn notes(rows: &[ComparisonRow], pairs: &[(&ResultPart, &ResultPart)]) -> Vec<ComparisonNote> {
    let mut notes = Vec::new();
    for (a, b) in pairs {
        if a.pattern != b.pattern {
            notes.push(ComparisonNote::PatternsDiffer {
                a: a.pattern.clone(),
                b: b.pattern.clone(),
            });
        } else if a.name != b.name {
            notes.push(ComparisonNote::NamesDiffer {
                a: a.name.clone(),
                b: b.name.clone(),
            });
        }
    }
    let any = |is_so: &dyn Fn(&ComparedSide) -> bool| {
        rows.iter().any(|row| is_so(&row.a) || is_so(&row.b))
    };
    let basis = |side: &ComparedSide| side.bounds.map(|bounds| bounds.basis);
    let of_rows = [
        (any(&|side| side.unsettled), ComparisonNote::NotSteady),
        (
            any(&|side| basis(side) == Some(IntervalBasis::Samples)),
            ComparisonNote::NoTimeSeries,
        ),
        (
            any(&|side| basis(side) == Some(IntervalBasis::Drift)),
            ComparisonNote::RateDrifted,
        ),
        (
            rows.iter().any(ComparisonRow::is_decided_by_slow_variation),
            ComparisonNote::RatesVarySlowly,
        ),
        (
            rows.iter().any(|row| row.paired),
            ComparisonNote::SameMachines,
        ),
    ];
    notes.extend(
        of_rows
            .into_iter()
            .filter_map(|(is_so, note)| is_so.then_some(note)),
    );
    notes
}
