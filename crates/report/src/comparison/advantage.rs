//! How many times as fast the faster side is, and how certain that is.

use crate::axis_numbers::value_range;
use iosonde_result::compare::{Comparison, ComparisonRow, ComparisonVerdict};
use iosonde_study::words;

/// How many times as fast the faster side is: rates grow with speed, latencies fall.
pub(crate) fn advantage(ratio: f64) -> f64 {
    if ratio >= 1.0 { ratio } else { 1.0 / ratio }
}

/// `1.09 to 1.15 times`, or `1.09 times`.
pub(crate) fn range(least: f64, most: f64) -> String {
    let [least, most] = [least, most].map(words::three_digits);
    match least == most {
        true => format!("{least} times"),
        false => format!("{least} to {most} times"),
    }
}

/// `1.09 to 1.15 times`: the smallest and the largest advantage of some rows.
pub(crate) fn range_of_advantages<'a>(rows: impl Iterator<Item = &'a ComparisonRow>) -> String {
    let (least, most) = value_range(rows.map(|row| advantage(row.ratio.value)));
    range(least, most)
}

/// Whether the row decides which side is faster.
pub(crate) fn differs(row: &ComparisonRow) -> bool {
    matches!(
        row.verdict,
        ComparisonVerdict::Faster | ComparisonVerdict::Slower
    )
}

/// Whether the row decides which side is faster by an interval that holds for all rows together.
pub(crate) fn is_certain(row: &ComparisonRow) -> bool {
    differs(row) && row.joint.is_shown()
}

/// Certainty of a comparison. It counts all rows, also those that a short report leaves out, so
/// that each report of two results says the same.
pub(crate) fn certainty_of(comparison: &Comparison) -> String {
    let certain = || "all differences hold together with 95 % confidence".to_owned();
    doubt_of(comparison).unwrap_or_else(certain)
}

/// Doubt about the differences of a comparison. `None` if all hold together.
pub(crate) fn doubt_of(comparison: &Comparison) -> Option<String> {
    let differing = || comparison.rows.iter().filter(|row| differs(row));
    let unsure = differing().filter(|row| !is_certain(row)).count();
    doubt(unsure, differing().count())
}

/// Doubt about `differences`, of which `unsure` are not shown by intervals that hold together.
fn doubt(unsure: usize, differences: usize) -> Option<String> {
    debug_assert!(unsure <= differences);
    let all = words::counted(differences, "difference");
    (unsure > 0).then(|| format!("not certain: {unsure} of {all} may be chance"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::compare::{ComparedSide, Measure, Ratio, Subject};

    /// A row that differs. `joint` is its interval that holds for all rows together.
    fn row(joint: (f64, f64)) -> ComparisonRow {
        let side = ComparedSide::from_value(1.0);
        let ratio = |interval| Ratio {
            value: 1.2,
            interval: Some(interval),
        };
        ComparisonRow {
            part: "a".to_owned(),
            subject: Subject::Read,
            measure: Measure::Iops,
            a: side.clone(),
            b: side,
            ratio: ratio((1.1, 1.3)),
            joint: ratio(joint),
            paired: false,
            verdict: ComparisonVerdict::Faster,
        }
    }

    /// `probe A B` counted its main figures only, and was certain where `compare` was not.
    #[test]
    fn certainty_counts_rows_that_a_short_report_leaves_out() {
        let mut comparison = Comparison {
            rows: vec![row((1.05, 1.4)), row((0.9, 1.5))],
            only_in_a: Vec::new(),
            only_in_b: Vec::new(),
            notes: Vec::new(),
        };
        assert_eq!(
            certainty_of(&comparison),
            "not certain: 1 of 2 differences may be chance"
        );
        comparison.rows.pop();
        let certain = "all differences hold together with 95 % confidence";
        assert_eq!(certainty_of(&comparison), certain);
        assert_eq!(doubt_of(&comparison), None);
    }

    #[test]
    fn advantage_is_the_same_for_rates_and_latencies() {
        assert_eq!(advantage(4.0), advantage(0.25));
        assert_eq!(range(1.091, 1.152), "1.09 to 1.15 times");
        assert_eq!(range(2.0, 2.001), "2.00 times");
    }

    #[test]
    fn certainty_counts_differences_that_may_be_chance() {
        assert_eq!(doubt(0, 7), None);
        let doubt = doubt(1, 1);
        let words = "not certain: 1 of 1 difference may be chance";
        assert_eq!(doubt.as_deref(), Some(words));
    }
}
