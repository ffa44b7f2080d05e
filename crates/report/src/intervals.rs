//! Intervals as text. An interval that is not informative is printed as `not known`.

use iosonde_result::compare::informative_interval;

/// Text for an unknown interval, in all tables and sentences.
pub(crate) const NOT_KNOWN: &str = "not known";

/// Smallest half-width of an interval that is printed, as a share.
pub(crate) const SHARE_MIN: f64 = 0.001;

/// Ends of the interval of a value: `388 us to 396 us`.
pub(crate) fn interval_text(
    value: f64,
    interval: Option<(f64, f64)>,
    show: impl Fn(f64) -> String,
) -> String {
    let telling = interval.and_then(|ends| informative_interval(value, ends));
    telling.map_or(NOT_KNOWN.to_owned(), |(low, high)| {
        format!("{} to {}", show(low), show(high))
    })
}

/// Returns half an informative interval: the longer half.
pub(crate) fn half_width(value: f64, interval: Option<(f64, f64)>) -> Option<f64> {
    let (low, high) = informative_interval(value, interval?)?;
    Some((value - low).max(high - value))
}

/// Formats an error as a share: `0.4 %`, `< 0.1 %`.
pub(crate) fn error_share(error: f64) -> String {
    match error {
        error if error < SHARE_MIN / 2.0 => "< 0.1 %".to_owned(),
        error if error < 0.0995 => format!("{:.1} %", error * 100.0),
        error if error < 1.0 => format!("{:.0} %", error * 100.0),
        _ => ">100 %".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::row;
    use crate::text_table::render;
    use crate::{figures, suite};
    use iosonde_result::compare::{
        Bounds, Figure, IntervalBasis, IoPattern, Measure, ResultPart, Subject,
    };
    use iosonde_suite::{StudyFigure, StudyFigureKind};

    const VALUE: f64 = 1000.0;

    /// Texts of all reports for a rate of 1000 with this interval.
    fn printed((low, high): (f64, f64)) -> Vec<String> {
        let part = ResultPart {
            name: "job".to_owned(),
            pattern: IoPattern::default(),
            figures: vec![Figure {
                subject: Subject::Read,
                measure: Measure::Iops,
                value: VALUE,
                bounds: Some(Bounds {
                    low,
                    high,
                    freedom: 20.0,
                    repeat_factor: 1.0,
                    basis: IntervalBasis::Series,
                }),
                settled: None,
            }],
            role: Default::default(),
        };
        let found = StudyFigure {
            part: "job".to_owned(),
            rw: "randread".to_owned(),
            kind: StudyFigureKind::MaxIops,
            value: VALUE,
            interval: Some((low, high)),
        };
        vec![
            figures::table(std::slice::from_ref(&part)),
            figures::markdown(&[part]),
            render(&suite::studies(&[&found])),
            row::within((high - low) / 2.0 / VALUE, "+-"),
        ]
    }

    #[test]
    fn interval_not_informative_is_not_known_in_all_reports() {
        for text in printed((900.0, 1100.0)) {
            let is_shown = text.contains("900 to 1.10k") || text.contains("+-10 %");
            assert!(is_shown && !text.contains(NOT_KNOWN), "{text}");
        }
        for interval in [(0.0, 2000.0), (-500.0, 2500.0), (1.0, 9999e3)] {
            for text in printed(interval) {
                assert!(text.contains(NOT_KNOWN), "{text}");
                assert!(!text.contains(" to ") && !text.contains("+-"), "{text}");
            }
        }
    }
}
