//! Numbers of axes: bounds at round values, and labels without zeros at their ends.

/// Lowest and highest of some values above zero. Without a value, infinity and zero.
pub(crate) fn value_range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// Position of a value between the ends of a logarithmic scale: 0 to 1. A scale without a range has
/// the position 0.
pub(crate) fn log_share(value: f64, (low, high): (f64, f64)) -> f64 {
    match high > low {
        true => (value / low).ln() / (high / low).ln(),
        false => 0.0,
    }
}

/// Bounds of a logarithmic axis: powers of ten, or 2 or 5 times one.
pub(crate) fn log_bounds(values: &[f64]) -> (f64, f64) {
    let positive = values.iter().copied().filter(|value| *value > 0.0);
    let (low, high) = value_range(positive);
    if high == 0.0 {
        return (1.0, 10.0);
    }
    let steps = |power: f64| [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let (below, above) = (power_below(low), power_below(high));
    let min = steps(below)
        .into_iter()
        .rev()
        .find(|step| *step <= low * 0.98);
    let max = steps(above).into_iter().find(|step| *step >= high * 1.02);
    (min.unwrap_or(below / 2.0), max.unwrap_or(10.0 * above))
}

/// Largest power of ten that is at most `value`.
pub(crate) fn power_below(value: f64) -> f64 {
    10f64.powf(value.log10().floor())
}

/// Removes the zeros at the end of a number's fraction: `2.50 MiB/s` becomes `2.5 MiB/s`.
pub(crate) fn without_end_zeros(text: &str) -> String {
    let Some(point) = text.find('.') else {
        return text.to_owned();
    };
    let fraction = &text[point + 1..];
    let digits = fraction.len()
        - fraction
            .trim_start_matches(|sign: char| sign.is_ascii_digit())
            .len();
    let kept = fraction[..digits].trim_end_matches('0');
    let unit = &fraction[digits..];
    match kept {
        "" => format!("{}{unit}", &text[..point]),
        kept => format!("{}.{kept}{unit}", &text[..point]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_zeros_of_fractions_are_removed() {
        assert_eq!(without_end_zeros("2.50 MiB/s"), "2.5 MiB/s");
        assert_eq!(without_end_zeros("10.0k"), "10k");
        assert_eq!(without_end_zeros("100 ns"), "100 ns");
    }
}
