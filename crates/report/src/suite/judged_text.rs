//! Evidence of a verdict: the judged figure with half its interval, and the claim about it.

use crate::intervals;
use crate::known_digits::{BANDWIDTH_UNITS, LATENCY_UNITS, RATE_UNITS, UnitLadder, with_interval};
use iosonde_result::compare::informative_interval;
use iosonde_result::words;
use iosonde_suite::{FigureUnit, JudgedExpectation, JudgedFigure};

/// Decimals of a ratio to an earlier value.
const RATIO_DECIMALS: usize = 3;

/// Returns the evidence with the figure as tables print it: `254 ±1, expected >= 1.00k`. Results of
/// earlier versions have the text alone. `plus_minus` stands before half an interval.
#[must_use]
pub fn evidence(judged: &JudgedExpectation, plus_minus: &str) -> String {
    match &judged.measured {
        Some(measured) => {
            // The claim is stored in ASCII.
            let claim = measured.claim.replace("+-", plus_minus);
            format!("{}, {claim}", figure_text(measured, plus_minus))
        }
        None => judged.evidence.clone(),
    }
}

fn figure_text(measured: &JudgedFigure, plus_minus: &str) -> String {
    let value = measured.value;
    let half = intervals::half_width(value, measured.interval);
    let in_units = |units: &UnitLadder| with_interval(value, half, units, plus_minus);
    let in_decimals = |decimals| with_decimals(value, half, decimals, plus_minus);
    let text = match measured.unit {
        Some(FigureUnit::PerSecond) => one_sided(measured).unwrap_or_else(|| in_units(RATE_UNITS)),
        Some(FigureUnit::BytesPerSecond) => in_units(BANDWIDTH_UNITS),
        Some(FigureUnit::Nanoseconds) => in_units(LATENCY_UNITS),
        Some(FigureUnit::Depth) => in_decimals(0),
        // Only its command names the unit. The figure has three digits, as in other texts.
        Some(FigureUnit::OfCommand) => in_decimals(words::decimals_of_three_digits(value)),
        None => format!("{} of the earlier value", in_decimals(RATIO_DECIMALS)),
    };
    match half {
        Some(_) => text,
        None => format!("{text} (interval unknown)"),
    }
}

/// The ends of a rate that is one end of its interval: a load study kept the rate and failed at the
/// other end. Half the interval on both sides would include rates that the study kept.
fn one_sided(measured: &JudgedFigure) -> Option<String> {
    let ends = informative_interval(measured.value, measured.interval?)?;
    let [low, high] = [ends.0, ends.1].map(|end| FigureUnit::PerSecond.show(end));
    let is_end = measured.value <= ends.0 && low != high;
    is_end.then(|| format!("{low} ({low} to {high})"))
}

/// A number and half its interval with the same decimals. Half the interval is rounded up so that
/// the printed interval contains the measured one. It is left out if it is 0.
fn with_decimals(value: f64, half: Option<f64>, decimals: usize, plus_minus: &str) -> String {
    let number = format!("{value:.decimals$}");
    let step = (0..decimals).fold(1.0, |step, _| step / 10.0);
    let rounded = (value / step).round() * step;
    let width = half.map(|half| half + (value - rounded).abs());
    // Binary fractions of a decimal step must not round up by a whole step.
    let width = width.map(|width| (width / step - 1e-6).ceil() * step);
    match width.filter(|width| *width > 0.0) {
        Some(width) => format!("{number} {plus_minus}{width:.decimals$}"),
        None => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_suite::ExpectationVerdict;

    fn judged(
        value: f64,
        interval: Option<(f64, f64)>,
        unit: Option<FigureUnit>,
    ) -> JudgedExpectation {
        JudgedExpectation {
            expectation: "iops >= 1k".to_owned(),
            workload: "g".to_owned(),
            figure: "g IOPS".to_owned(),
            verdict: ExpectationVerdict::Missed,
            evidence: "the text of an earlier version".to_owned(),
            measured: Some(Box::new(JudgedFigure {
                value,
                interval,
                unit,
                claim: "expected >= 1.00k".to_owned(),
            })),
            failure: None,
        }
    }

    fn figure(value: f64, interval: (f64, f64), unit: FigureUnit) -> String {
        let text = evidence(&judged(value, Some(interval), Some(unit)), "±");
        text.split_once(", expected").unwrap().0.to_owned()
    }

    #[test]
    fn evidence_has_half_the_interval_instead_of_equal_ends() {
        let rate = judged(254.1, Some((253.7, 254.5)), Some(FigureUnit::PerSecond));
        assert_eq!(evidence(&rate, "±"), "254 ±1, expected >= 1.00k");
        assert_eq!(evidence(&rate, "+-"), "254 +-1, expected >= 1.00k");
        let latency = figure(500_100.0, (498_000.0, 502_000.0), FigureUnit::Nanoseconds);
        assert_eq!(latency, "500 ±3 us");
        assert_eq!(figure(16.0, (16.0, 16.0), FigureUnit::Depth), "16");
        assert_eq!(figure(12.0, (8.0, 16.0), FigureUnit::Depth), "12 ±4");
        let command = figure(12_345.0, (12_341.0, 12_350.0), FigureUnit::OfCommand);
        assert_eq!(command, "12345 ±5");
        let ratio = evidence(&judged(0.998, Some((0.9902, 1.006)), None), "±");
        assert_eq!(
            ratio,
            "0.998 ±0.008 of the earlier value, expected >= 1.00k"
        );
    }

    #[test]
    fn claim_beside_a_neighbour_has_the_sign_of_the_figure() {
        let mut beside = judged(254.1, Some((253.7, 254.5)), Some(FigureUnit::PerSecond));
        let claim = "expected >= 1.00k; 500 alone, 254 beside, 0.51 +-0.02 times";
        beside.measured.as_mut().unwrap().claim = claim.to_owned();
        let expected = "expected >= 1.00k; 500 alone, 254 beside, 0.51 ±0.02 times";
        assert_eq!(evidence(&beside, "±"), format!("254 ±1, {expected}"));
        assert_eq!(evidence(&beside, "+-"), format!("254 +-1, {claim}"));
    }

    #[test]
    fn vague_interval_is_not_shown_as_evidence() {
        // Two repetitions gave a p99 of 7.12 ms, from 214 ns to 237 s.
        for ends in [(214.0, 237e9), (0.0, 8e6), (7e6, 14.3e6)] {
            let text = figure(7.12e6, ends, FigureUnit::Nanoseconds);
            assert_eq!(text, "~7.1 ms (interval unknown)");
        }
        let unknown = evidence(&judged(254.1, None, Some(FigureUnit::PerSecond)), "±");
        assert_eq!(unknown, "~250 (interval unknown), expected >= 1.00k");
    }

    #[test]
    fn kept_rate_of_a_load_study_has_the_rate_that_failed() {
        let rate = figure(45_000.0, (45_000.0, 50_000.0), FigureUnit::PerSecond);
        assert_eq!(rate, "45.0k (45.0k to 50.0k)");
    }

    #[test]
    fn evidence_of_an_earlier_version_is_kept() {
        let earlier = JudgedExpectation {
            measured: None,
            ..judged(254.1, None, None)
        };
        assert_eq!(evidence(&earlier, "±"), "the text of an earlier version");
    }
}
