//! Ratios of two sides as text.

use crate::intervals::NOT_KNOWN;
use iosonde_result::compare::{Ratio, informative_interval};
use iosonde_study::words;

/// Ratios from this one are not shown.
const RATIO_SHOWN_MOST: f64 = 9999.5;
/// Text of a ratio that is not shown.
const RATIO_ABOVE_MOST: &str = "9999+";

/// Notation of the ratios of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RatioNotation {
    /// The second side divided by the first: `0.800`.
    Quotient,
    /// A factor of at least 1 with its direction: `1.25x lower`.
    Factor,
}

impl RatioNotation {
    /// Heading of the column.
    pub(super) fn heading(self) -> &'static str {
        match self {
            RatioNotation::Quotient => "B / A",
            RatioNotation::Factor => "B vs A",
        }
    }

    pub(super) fn text(self, ratio: &Ratio) -> String {
        let factor = self.number(self.shown(ratio).value);
        match (self, ratio.value < 1.0) {
            (RatioNotation::Quotient, _) => factor,
            (RatioNotation::Factor, true) => format!("{factor}x lower"),
            (RatioNotation::Factor, false) => format!("{factor}x higher"),
        }
    }

    /// Formats the interval of the number in [`Self::text`].
    pub(super) fn interval(self, ratio: &Ratio) -> String {
        interval_of(&self.shown(ratio), |end| self.number(end))
    }

    fn number(self, ratio: f64) -> String {
        match self {
            RatioNotation::Quotient => number(ratio),
            RatioNotation::Factor if ratio < RATIO_SHOWN_MOST => words::three_digits(ratio),
            RatioNotation::Factor => RATIO_ABOVE_MOST.to_owned(),
        }
    }

    /// The ratio whose number is shown: the inverse if a factor would be below 1.
    fn shown(self, ratio: &Ratio) -> Ratio {
        match self == RatioNotation::Factor && ratio.value < 1.0 {
            true => Ratio {
                value: 1.0 / ratio.value,
                interval: ratio.interval.map(|(low, high)| (1.0 / high, 1.0 / low)),
            },
            false => *ratio,
        }
    }
}

/// Formats a ratio with three or four significant digits.
pub(super) fn number(ratio: f64) -> String {
    if ratio < 0.009_95 {
        format!("{ratio:.5}")
    } else if ratio < 0.0995 {
        format!("{ratio:.4}")
    } else if ratio < 9.9995 {
        format!("{ratio:.3}")
    } else if ratio < 99.95 {
        format!("{ratio:.1}")
    } else if ratio < RATIO_SHOWN_MOST {
        format!("{ratio:.0}")
    } else {
        RATIO_ABOVE_MOST.to_owned()
    }
}

/// Formats the interval of a ratio. Of a wide one, only the end that shows a difference is left.
pub(super) fn interval(ratio: &Ratio) -> String {
    interval_of(ratio, number)
}

fn interval_of(ratio: &Ratio, number: impl Fn(f64) -> String) -> String {
    let Some((low, high)) = ratio.interval else {
        return "-".to_owned();
    };
    match informative_interval(ratio.value, (low, high)) {
        Some((low, high)) => format!("{}-{}", number(low), number(high)),
        None if low > 1.0 => format!("above {}", number(low)),
        None if high < 1.0 => format!("below {}", number(high)),
        None => NOT_KNOWN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ratios in fine steps over all formats: the printed ends contain the printed ratio.
    #[test]
    fn printed_interval_contains_the_printed_ratio() {
        let digits = |text: &str| text.parse::<f64>().unwrap();
        for step in 0..40_000 {
            let value = 0.001 * 1.0004_f64.powi(step);
            for share in [0.0, 0.000_1, 0.003, 0.4] {
                let ratio = Ratio {
                    value,
                    interval: Some((value * (1.0 - share), value * (1.0 + share))),
                };
                let text = interval(&ratio);
                let Some((low, high)) = text.split_once('-') else {
                    panic!("{text}");
                };
                if [low, high].contains(&"9999+") {
                    continue;
                }
                let (low, high) = (digits(low), digits(high));
                let printed = digits(&number(value));
                assert!((low..=high).contains(&printed), "{printed} with {text}");
            }
        }
    }

    #[test]
    fn ratio_interval_too_wide_shows_one_end_or_none() {
        let shown = |value: f64, ends: Option<(f64, f64)>| {
            interval(&Ratio {
                value,
                interval: ends,
            })
        };
        assert_eq!(shown(1.0, Some((0.9, 1.1))), "0.900-1.100");
        assert_eq!(shown(46.5, Some((2.5, 60_000.0))), "above 2.500");
        assert_eq!(shown(0.02, Some((0.0, 0.5))), "below 0.500");
        assert_eq!(shown(1.0, Some((0.000_001, 582.0))), "not known");
        assert_eq!(shown(1.0, None), "-");
    }

    #[test]
    fn factor_names_direction_and_inverts_small_ratios() {
        let shown = |value: f64, low: f64, high: f64| {
            let ratio = Ratio {
                value,
                interval: Some((low, high)),
            };
            let notation = RatioNotation::Factor;
            (notation.text(&ratio), notation.interval(&ratio))
        };
        let texts = |text: &str, interval: &str| (text.to_owned(), interval.to_owned());
        assert_eq!(
            shown(0.0005, 0.0004, 0.000_625),
            texts("2000x lower", "1600-2500")
        );
        assert_eq!(shown(1.5, 1.47, 1.53), texts("1.50x higher", "1.47-1.53"));
        assert_eq!(shown(8.56, 8.5, 11.1), texts("8.56x higher", "8.50-11.1"));
        assert_eq!(shown(0.02, 0.0, 0.5), texts("50.0x lower", "above 2.00"));
    }
}
