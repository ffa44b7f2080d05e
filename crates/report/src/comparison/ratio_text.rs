//! Ratios of two sides as text.

use crate::intervals::NOT_KNOWN;
use iosonde_result::compare::{Ratio, informative_interval};

/// Ratios from this one are not shown.
const RATIO_SHOWN_MOST: f64 = 9999.5;
/// Text of a ratio that is not shown.
const RATIO_ABOVE_MOST: &str = "9999+";

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
}
