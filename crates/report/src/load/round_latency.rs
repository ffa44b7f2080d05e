//! Round latencies for the axis of the chart in a terminal.

use crate::known_digits::{LATENCY_UNITS, two_digits_without_end_zeros};
use iosonde_study::words;

/// Round latencies of each decade.
const ROUND_LATENCIES: [f64; 8] = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0];
/// Names of latencies below this value have a fraction of a nanosecond.
const FRACTIONS_BELOW_NS: f64 = 10.0;

/// Returns the round latencies from the last one that is not above the range to the first one that
/// is not below it.
pub(super) fn round_latencies((low_ns, high_ns): (f64, f64)) -> Vec<f64> {
    debug_assert!(1.0 <= low_ns && low_ns < high_ns);
    let decades = low_ns.log10().floor() as i32..=high_ns.log10().ceil() as i32;
    let all = decades.flat_map(|decade| ROUND_LATENCIES.map(|round| round * 10f64.powi(decade)));
    let all: Vec<f64> = all.collect();
    let first = all.iter().rposition(|ns| *ns <= low_ns).unwrap_or(0);
    let last = all.iter().position(|ns| *ns >= high_ns);
    all[first..last.map_or(all.len(), |last| last + 1)].to_vec()
}

/// Order in which round latencies are named: powers of ten, their doubles and fives, others.
pub(super) fn roundness(ns: f64) -> u8 {
    let decade = (ns.log10() + 1e-9).floor() as i32;
    match (10.0 * ns / 10f64.powi(decade)).round() as u32 {
        10 => 0,
        20 | 50 => 1,
        _ => 2,
    }
}

/// Formats a latency beside the axis with at most three digits, without zeros at the end of the
/// fraction: `150 us`, `1.5 ms`, `15.5 ms`, `1 ms`.
pub(super) fn latency_name(ns: f64) -> String {
    match ns < FRACTIONS_BELOW_NS {
        true => two_digits_without_end_zeros(ns, LATENCY_UNITS),
        false => words::latency_without_end_zeros(ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_latencies_enclose_their_range() {
        for (range, first, last) in [
            ((122e3, 10.6e6), "100 us", "15 ms"),
            ((190e3, 260e3), "150 us", "300 us"),
            ((1e5, 1e8), "100 us", "100 ms"),
            ((1.0, 2.5), "1 ns", "3 ns"),
            ((8.1e8, 9e8), "800 ms", "1 s"),
            ((1e9, 1.1e9), "1 s", "1.5 s"),
        ] {
            let round = round_latencies(range);
            assert!(round.is_sorted(), "{round:?}");
            let ends = [round[0], round[round.len() - 1]].map(latency_name);
            assert_eq!(ends, [first, last]);
        }
    }

    #[test]
    fn latency_beside_the_axis_has_the_digits_of_its_objective() {
        let names = [1.5, 3.0, 1.5e2, 1e6, 1.5e6, 15e6, 15.5e6, 3.25e9].map(latency_name);
        let expected = "1.5 ns, 3 ns, 150 ns, 1 ms, 1.5 ms, 15 ms, 15.5 ms, 3.25 s";
        assert_eq!(names.join(", "), expected);
    }

    #[test]
    fn powers_of_ten_are_named_first() {
        let ranks = [1e5, 1e9, 2e6, 5e3, 1.5e6, 8e8].map(roundness);
        assert_eq!(ranks, [0, 0, 1, 1, 2, 2]);
    }
}
