//! Intervals as people read them: one that says nothing is never printed, but `not known`.

use iosonde_result::compare::telling_interval;

/// Stands for an interval that is not known, in all tables and sentences.
pub(crate) const NOT_KNOWN: &str = "not known";

/// The ends of the interval of a value: `388 us to 396 us`.
pub(crate) fn ends(
    value: f64,
    interval: Option<(f64, f64)>,
    show: impl Fn(f64) -> String,
) -> String {
    let telling = interval.and_then(|ends| telling_interval(value, ends));
    telling.map_or(NOT_KNOWN.to_owned(), |(low, high)| {
        format!("{} to {}", show(low), show(high))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::probe::{row, table::render};
    use crate::report::{figures, suite};
    use iosonde_result::compare::{Basis, Bounds, Figure, Measure, Part, Pattern, Subject};
    use iosonde_study::suite::{Found, FoundKind};

    const VALUE: f64 = 1000.0;

    /// What each place prints of a rate of 1000 with this interval.
    fn printed((low, high): (f64, f64)) -> Vec<String> {
        let part = Part {
            name: "job".to_owned(),
            pattern: Pattern::default(),
            figures: vec![Figure {
                subject: Subject::Read,
                measure: Measure::Iops,
                value: VALUE,
                bounds: Some(Bounds {
                    low,
                    high,
                    freedom: 20.0,
                    repeat_factor: 1.0,
                    basis: Basis::Series,
                }),
                settled: None,
            }],
        };
        let found = Found {
            part: "job".to_owned(),
            rw: "randread".to_owned(),
            kind: FoundKind::MaxIops,
            value: VALUE,
            interval: Some((low, high)),
        };
        vec![
            figures::table(std::slice::from_ref(&part)),
            figures::markdown(&[part]),
            render(&suite::studies(&[&found])),
            row::within((high - low) / 2.0 / VALUE),
        ]
    }

    #[test]
    fn interval_that_says_nothing_is_not_known_wherever_it_is_printed() {
        for text in printed((900.0, 1100.0)) {
            let is_shown = text.contains("900 to 1.10k") || text.contains("+- 10 %");
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
