//! Numbers in the format of C++ streams, which tools that read `rados bench` expect.

/// Formats six significant digits like `%g`: no trailing zeros, an exponent if very large or small.
pub(crate) fn general(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let places = usize::try_from(5 - exponent).unwrap_or(0);
        return trimmed(&format!("{value:.places$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

fn trimmed(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_printf_g() {
        for (value, shown) in [
            (0.0, "0"),
            (1.0, "1"),
            (60.0, "60"),
            (738.1174, "738.117"),
            (0.0213209, "0.0213209"),
            (0.000_123_456_7, "0.000123457"),
            (0.000_012, "1.2e-05"),
            (123_456.7, "123457"),
            (999_999.6, "1e+06"),
            (12_345_678.0, "1.23457e+07"),
            (9.999_999_9, "10"),
        ] {
            assert_eq!(general(value), shown);
        }
    }
}
