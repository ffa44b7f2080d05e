//! Rates of a list of results, as other screens print them.

use crate::known_digits::{BANDWIDTH_UNITS, RATE_UNITS, digits_beside_interval, with_interval};
use iosonde_history::StudySummary;

/// Returns a rate with its interval.
pub(super) fn rate(iops: f64, error: Option<f64>, plus_minus: &str) -> String {
    with_interval(iops, error, RATE_UNITS, plus_minus)
}

/// Returns the highest bandwidth of a result with the digits that its interval supports.
pub(super) fn bandwidth(study: &StudySummary) -> Option<String> {
    let bytes_per_s = study.headline.bytes_per_s?;
    let error = study.headline.bytes_per_s_error;
    Some(digits_beside_interval(bytes_per_s, error, BANDWIDTH_UNITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_of_a_list_has_only_known_digits() {
        assert_eq!(rate(96_300.0, Some(7_100.0), "±"), "96.3k ±7.1k");
        assert_eq!(rate(3_100.0, Some(f64::INFINITY), "±"), "~3.1k");
        assert_eq!(rate(3_104.0, None, "±"), "~3.1k");
    }
}
