//! One figure of several results with the same labels.

use super::figure::PivotFigure;
use iosonde_history::StudySummary;
use iosonde_report::format::PivotOf;
use iosonde_result::compare::{
    Bounds, ComparedSide, Figure, IoPattern, Measure, MeasuredResult as OneResult, PartRole,
    ResultPart, Subject, figure_of,
};
use iosonde_suite::FigureQuantity;
use std::collections::BTreeSet;

/// Combines results of one pair of labels into one figure, with its interval if known.
pub(super) fn combine_results(
    results: &[(&StudySummary, PivotFigure)],
    of: PivotOf,
    asked: FigureQuantity,
) -> Option<ComparedSide> {
    let mut sorted: Vec<&(&StudySummary, PivotFigure)> = results.iter().collect();
    sorted.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let chosen = match of {
        PivotOf::Mean => return geometric_mean(results),
        PivotOf::Best if asked.is_better_low() => *sorted.first()?,
        PivotOf::Best => *sorted.last()?,
        // Of equal times, the last one counts, since repetitions are in order.
        PivotOf::Latest => results
            .iter()
            .max_by_key(|(study, _)| study.started_at_ms)?,
        PivotOf::Median => {
            let high = sorted.get(sorted.len() / 2)?;
            let low = sorted.get((sorted.len() - 1) / 2)?;
            let median = (low.1.value + high.1.value) / 2.0;
            let bounds = low.1.bounds.filter(|_| results.len() == 1);
            return Some(compared_side(results, median, bounds));
        }
    };
    Some(compared_side(results, chosen.1.value, chosen.1.bounds))
}

fn compared_side(
    results: &[(&StudySummary, PivotFigure)],
    value: f64,
    bounds: Option<Bounds>,
) -> ComparedSide {
    let machines: BTreeSet<&Option<String>> =
        results.iter().map(|(study, _)| &study.machine).collect();
    ComparedSide {
        bounds,
        runs: results.len(),
        machines: machines.len(),
        ..ComparedSide::from_value(value)
    }
}

/// The geometric mean, with the interval of all results together.
/// `None` if a figure has no logarithm: a command may print 0 or a negative number.
fn geometric_mean(results: &[(&StudySummary, PivotFigure)]) -> Option<ComparedSide> {
    if results.len() > 1 && results.iter().any(|(_, measured)| measured.value <= 0.0) {
        return None;
    }
    // Placeholders: all results have the same figure.
    let (part, subject, measure) = ("figure", Subject::Read, Measure::Iops);
    let one = |(study, measured): &(&StudySummary, PivotFigure)| OneResult {
        name: study.short_id.clone(),
        machine: study.machine.clone(),
        parts: vec![ResultPart {
            name: part.to_owned(),
            pattern: IoPattern::default(),
            figures: vec![Figure {
                subject,
                measure,
                value: measured.value,
                bounds: measured.bounds,
                settled: None,
            }],
            role: PartRole::Alone,
        }],
    };
    let results: Vec<OneResult> = results.iter().map(one).collect();
    figure_of(&results, part, subject, measure)
}

#[cfg(test)]
mod tests {
    use super::super::figure::tests::summary;
    use super::*;

    #[test]
    fn several_results_combine_by_pivot_of() {
        let (early, late) = (summary(1), summary(2));
        let measured = |value: f64| PivotFigure {
            value,
            bounds: None,
            rw: "randread".to_owned(),
            block_bytes: None,
        };
        let results = [
            (&late, measured(100.0)),
            (&late, measured(400.0)),
            (&early, measured(900.0)),
            (&early, measured(200.0)),
        ];
        let of = |of, asked| combine_results(&results, of, asked).unwrap().value;
        let iops = FigureQuantity::Measure(Measure::Iops);
        assert_eq!(of(PivotOf::Median, iops), 300.0);
        let with_zero = [(&late, measured(0.0)), (&early, measured(900.0))];
        let mean = combine_results(&with_zero, PivotOf::Mean, FigureQuantity::CommandFigure);
        assert_eq!(mean, None);
        assert_eq!(of(PivotOf::Latest, iops), 400.0);
        assert_eq!(of(PivotOf::Best, iops), 900.0);
        assert_eq!(
            of(PivotOf::Best, FigureQuantity::Measure(Measure::LatP99)),
            100.0
        );
        let mean = of(PivotOf::Mean, iops);
        let expected = (100.0 * 400.0 * 900.0 * 200.0f64).powf(0.25);
        assert!((mean / expected - 1.0).abs() < 1e-9);
        let middle = combine_results(&results[..3], PivotOf::Median, iops).unwrap();
        assert_eq!(middle.value, 400.0);
        assert!(combine_results(&[], PivotOf::Median, iops).is_none());
    }
}
