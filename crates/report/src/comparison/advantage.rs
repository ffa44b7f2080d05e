//! How many times as fast the faster side is, and how certain that is.

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

/// Certainty of `differences`, of which `unsure` are not shown by intervals that hold together.
pub(crate) fn certainty(unsure: usize, differences: usize) -> String {
    debug_assert!(unsure <= differences);
    match unsure {
        0 => "certain: all differences together hold at 95 %".to_owned(),
        _ => format!(
            "not certain: {unsure} of {} may be chance",
            words::counted(differences, "difference")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advantage_is_the_same_for_rates_and_latencies() {
        assert_eq!(advantage(4.0), advantage(0.25));
        assert_eq!(range(1.091, 1.152), "1.09 to 1.15 times");
        assert_eq!(range(2.0, 2.001), "2.00 times");
    }

    #[test]
    fn certainty_counts_differences_that_may_be_chance() {
        assert!(certainty(0, 7).starts_with("certain"));
        assert_eq!(
            certainty(1, 1),
            "not certain: 1 of 1 difference may be chance"
        );
    }
}
