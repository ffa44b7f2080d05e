//! Parses single numbers: sizes, times, counts, percentages.

use super::{ParsedValue, ValueError, expression};
use crate::plan::BytesOrPercent;

/// The meaning of size suffixes: `kb_base`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bytes {
    /// `kb_base=1024`, the default: `k` is 1024 and `kib` is 1000.
    Binary,
    /// `kb_base=1000`: `k` is 1000 and `kib` is 1024.
    Decimal,
}

/// The unit of a time without suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
}

impl TimeUnit {
    /// Returns the nanoseconds of one unit.
    pub(crate) fn nanoseconds(self) -> u64 {
        match self {
            TimeUnit::Seconds => 1_000_000_000,
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Microseconds => 1_000,
        }
    }
}

/// Parses a size in bytes: `4096`, `4k`, `1.5m`, `0x1000`, `(8*4k)`.
pub fn bytes(text: &str, base: Bytes) -> ParsedValue<u64> {
    let value = signed(text, base)?;
    u64::try_from(value).map_err(|_| {
        let problem = if value < 0 {
            "must not be negative"
        } else {
            "is too large"
        };
        ValueError::new(format!("`{text}` {problem}"))
    })
}

/// Parses a size in bytes that may be negative: `-8k`.
pub(crate) fn signed_bytes(text: &str, base: Bytes) -> ParsedValue<i64> {
    i64::try_from(signed(text, base)?)
        .map_err(|_| ValueError::new(format!("`{text}` is too large")))
}

/// Parses an integer. As in fio, counts may have size suffixes.
pub fn integer(text: &str) -> ParsedValue<i64> {
    signed_bytes(text, Bytes::Binary)
}

/// Parses `1` or `0`. As in fio, blanks around it and the forms `00` and `0x1` are allowed.
pub fn boolean(text: &str) -> ParsedValue<bool> {
    match integer(text) {
        Ok(1) => Ok(true),
        Ok(0) => Ok(false),
        _ => Err(ValueError::new(format!("`{text}` is neither 1 nor 0")).help("use 1 or 0")),
    }
}

/// Parses a decimal fraction.
pub fn float(text: &str) -> ParsedValue<f64> {
    text.trim()
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .ok_or_else(|| ValueError::new(format!("`{text}` is not a number")))
}

/// Returns the number before a percent sign; `None` without one. As in fio, `%%` is one sign:
/// Python's ConfigParser writes it.
pub(crate) fn before_percent_sign(text: &str) -> Option<&str> {
    text.ends_with('%').then(|| text.trim_end_matches('%'))
}

/// Returns the greatest common divisor of two numbers. That of 0 and another number is the other.
pub fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => greatest_common_divisor(b, a % b),
    }
}

/// Parses an integer percentage from 0 to 100, with or without the sign.
pub fn percent(text: &str) -> ParsedValue<u8> {
    let number = before_percent_sign(text).unwrap_or(text);
    match integer(number)? {
        value @ 0..=100 => Ok(value as u8),
        _ => Err(ValueError::new(format!(
            "`{text}` is not between 0 and 100"
        ))),
    }
}

/// Parses a size or a percentage: `20%`.
pub fn extent(text: &str, base: Bytes) -> ParsedValue<BytesOrPercent> {
    if let Some(number) = before_percent_sign(text) {
        let value = float(number)?;
        if value < 0.0 {
            return Err(ValueError::new(format!("`{text}` must not be negative")));
        }
        return Ok(BytesOrPercent::Percent(value));
    }
    let (digits, suffix) = number_and_suffix(text);
    if suffix.eq_ignore_ascii_case("z") && !digits.is_empty() {
        return Err(ValueError::new("zones are not supported as a unit")
            .help("give the size in bytes; zoned devices (zonemode=zbd) are not supported"));
    }
    bytes(text, base).map(BytesOrPercent::Bytes)
}

/// Parses a time and returns nanoseconds: `10`, `1.5s`, `100ms`, `2m`.
pub fn time_ns(text: &str, unit: TimeUnit) -> ParsedValue<u64> {
    let trimmed = text.trim();
    time_trimmed(trimmed, unit).map_err(|error| error.within(text, trimmed))
}

fn time_trimmed(text: &str, unit: TimeUnit) -> ParsedValue<u64> {
    if text.starts_with('(') {
        // In expressions, fio counts in microseconds, regardless of the option's unit.
        let number = |part: &str| time_f64(part, TimeUnit::Microseconds).map(|ns| ns / 1e3);
        return evaluate(text, number).and_then(|us| nanoseconds(text, us * 1e3));
    }
    if let Some(value) = unsigned_digits(text)
        && let Some(ns) = value.checked_mul(u128::from(unit.nanoseconds()))
    {
        return u64::try_from(ns).map_err(|_| ValueError::new(format!("`{text}` is too long")));
    }
    let value = time_f64(text, unit).ok_or_else(|| not_a_time(text))?;
    nanoseconds(text, value)
}

fn nanoseconds(text: &str, value: f64) -> ParsedValue<u64> {
    if value < 0.0 {
        return Err(ValueError::new(format!("`{text}` must not be negative")));
    }
    if value >= u64::MAX as f64 {
        return Err(ValueError::new(format!("`{text}` is too long")));
    }
    Ok(value.round() as u64)
}

fn not_a_time(text: &str) -> ValueError {
    ValueError::new(format!("`{text}` is not a time"))
        .help("use a number with one of the units d, h, m, s, ms, us, ns: `90s`, `1.5m`, `100ms`")
}

fn time_f64(text: &str, unit: TimeUnit) -> Option<f64> {
    let (digits, suffix) = number_and_suffix(text);
    let scale: f64 = match suffix.trim().to_ascii_lowercase().as_str() {
        "" => unit.nanoseconds() as f64,
        "d" => 86_400e9,
        "h" => 3_600e9,
        "m" => 60e9,
        "s" | "sec" => 1e9,
        "ms" | "msec" => 1e6,
        "us" | "usec" => 1e3,
        "ns" | "nsec" => 1.0,
        _ => return None,
    };
    Some(fraction(digits)? * scale)
}

fn signed(text: &str, base: Bytes) -> ParsedValue<i128> {
    // Error positions count from the start of the given text, including leading blanks.
    let trimmed = text.trim();
    signed_trimmed(trimmed, base).map_err(|error| error.within(text, trimmed))
}

fn signed_trimmed(text: &str, base: Bytes) -> ParsedValue<i128> {
    if text.is_empty() {
        return Err(ValueError::new("a number is missing"));
    }
    if text.starts_with('(') {
        let value = evaluate(text, |part| size_f64(part, base))?;
        return Ok(value.trunc() as i128);
    }
    let (sign, number) = match text.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, suffix) = number_and_suffix(number);
    let Some(scale) = multiplier(suffix, base) else {
        return Err(not_a_size(text, suffix));
    };
    let value = match unsigned_digits(digits) {
        Some(whole) => i128::try_from(whole)
            .ok()
            .and_then(|whole| whole.checked_mul(i128::from(scale))),
        None => fraction(digits).map(|value| (value * scale as f64).round() as i128),
    };
    value
        .filter(|value| *value < 1 << 100)
        .map(|value| sign * value)
        .ok_or_else(|| not_a_size(text, suffix))
}

fn not_a_size(text: &str, suffix: &str) -> ValueError {
    let error = ValueError::new(format!("`{text}` is not a number"));
    if suffix.contains(['*', '/', '+', '^']) {
        return error.help(format!("put sums in parentheses: `({text})`"));
    }
    error
        .help("use a whole number, with or without a suffix: `4096`, `4k`, `1.5m`, `10g`, `0x1000`")
}

fn evaluate(text: &str, number: impl Fn(&str) -> Option<f64>) -> ParsedValue<f64> {
    expression::evaluate(text, number)
        .ok_or_else(|| ValueError::new(format!("`{text}` cannot be evaluated")))
}

fn size_f64(text: &str, base: Bytes) -> Option<f64> {
    let (digits, suffix) = number_and_suffix(text);
    let scale = multiplier(suffix, base)? as f64;
    match unsigned_digits(digits) {
        Some(whole) => Some(whole as f64 * scale),
        None => Some(fraction(digits)? * scale),
    }
}

/// Splits `4kib` after the digits; hexadecimal digits belong to the number.
fn number_and_suffix(text: &str) -> (&str, &str) {
    let hex = text
        .get(..2)
        .is_some_and(|start| start.eq_ignore_ascii_case("0x"));
    let end = if hex {
        let digits = text[2..].find(|c: char| !c.is_ascii_hexdigit());
        digits.map_or(text.len(), |at| at + 2)
    } else {
        text.find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(text.len())
    };
    text.split_at(end)
}

fn unsigned_digits(digits: &str) -> Option<u128> {
    let hex = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    match hex {
        Some(hex) => u128::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    }
}

fn fraction(digits: &str) -> Option<f64> {
    match unsigned_digits(digits) {
        Some(whole) => Some(whole as f64),
        None => digits.parse().ok(),
    }
}

/// Returns the multiplier of a size suffix. As in fio, `kb_base` swaps only the three-letter forms:
/// `4ki` is `4k`.
fn multiplier(suffix: &str, base: Bytes) -> Option<i64> {
    let suffix = suffix.to_ascii_lowercase();
    let (letter, rest) = match suffix.as_str() {
        "" | "b" => return Some(1),
        other => other.split_at_checked(1)?,
    };
    let power = "kmgtp".find(letter)? as u32 + 1;
    let other_base = match rest {
        "" | "b" | "i" => false,
        "ib" => true,
        _ => return None,
    };
    let binary = (base == Bytes::Binary) != other_base;
    Some(if binary { 1024i64 } else { 1000 }.pow(power))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn greatest_common_divisor_divides_both_numbers() {
        for (a, b, divisor) in [
            (0, 0, 0),
            (0, 7, 7),
            (7, 0, 7),
            (12, 18, 6),
            (4096, 512, 512),
        ] {
            assert_eq!(greatest_common_divisor(a, b), divisor, "{a} and {b}");
        }
    }

    #[test]
    fn size_suffixes_follow_kb_base() {
        // Values measured with fio 3.33.
        for (text, binary, decimal) in [
            ("4096", 4096, 4096),
            ("4k", 4096, 4000),
            ("4ki", 4096, 4000),
            ("4kib", 4000, 4096),
            ("4kB", 4096, 4000),
            ("4K", 4096, 4000),
            ("1mib", 1_000_000, 1_048_576),
            ("1t", 1 << 40, 1_000_000_000_000),
            ("0x10", 16, 16),
            ("0x10k", 16384, 16000),
        ] {
            assert_eq!(bytes(text, Bytes::Binary), Ok(binary), "{text}");
            assert_eq!(bytes(text, Bytes::Decimal), Ok(decimal), "{text}");
        }
    }

    #[test]
    fn fractional_sizes_and_times_are_exact() {
        assert_eq!(bytes("1.5m", Bytes::Binary), Ok(1_572_864));
        assert_eq!(time_ns("1.5", TimeUnit::Seconds), Ok(1_500_000_000));
    }

    #[test]
    fn expressions_require_parentheses() {
        assert_eq!(bytes("(8*4k)", Bytes::Binary), Ok(32768));
        assert_eq!(bytes("(1.5*64k)", Bytes::Binary), Ok(98304));
        assert_eq!(bytes("(2^10 + 5 % 3)", Bytes::Binary), Ok(1026));
        assert_eq!(time_ns("(5*1000)", TimeUnit::Seconds), Ok(5_000_000));
        assert_eq!(time_ns("(2*3s)", TimeUnit::Seconds), Ok(6_000_000_000));
        let error = bytes("8*4k", Bytes::Binary).unwrap_err();
        assert!(error.help.unwrap().contains("(8*4k)"));
    }

    #[test]
    fn times_have_units() {
        for (text, ns) in [
            ("60s", 60_000_000_000),
            ("2m", 120_000_000_000),
            ("100ms", 100_000_000),
            ("7us", 7_000),
            ("1D", 86_400_000_000_000),
            ("3", 3_000_000_000),
        ] {
            assert_eq!(time_ns(text, TimeUnit::Seconds), Ok(ns), "{text}");
        }
        assert_eq!(time_ns("3", TimeUnit::Microseconds), Ok(3_000));
        assert!(time_ns("1m30s", TimeUnit::Seconds).is_err());
        assert!(time_ns("-1", TimeUnit::Seconds).is_err());
    }

    #[test]
    fn percentages_and_sizes_make_extents() {
        assert_eq!(
            extent("20%", Bytes::Binary),
            Ok(BytesOrPercent::Percent(20.0))
        );
        assert_eq!(extent("4k", Bytes::Binary), Ok(BytesOrPercent::Bytes(4096)));
        assert!(extent("4z", Bytes::Binary).is_err());
        assert_eq!(percent("70%"), Ok(70));
        assert_eq!(percent("70%%"), Ok(70));
        assert_eq!(
            extent("20%%", Bytes::Binary),
            Ok(BytesOrPercent::Percent(20.0))
        );
        assert!(extent("%%", Bytes::Binary).is_err());
        assert!(percent("101").is_err());
    }

    #[test]
    fn invalid_numbers_are_refused() {
        for text in [
            "",
            "abc",
            "4kx",
            "1m5",
            "4 k",
            "--1",
            "-1",
            "99999999999999999999",
        ] {
            assert!(bytes(text, Bytes::Binary).is_err(), "{text}");
        }
        assert_eq!(signed_bytes("-8k", Bytes::Binary), Ok(-8192));
    }

    proptest! {
        #[test]
        fn numbers_survive_the_round_trip(value: u64) {
            prop_assert_eq!(bytes(&value.to_string(), Bytes::Binary), Ok(value));
            prop_assert_eq!(bytes(&format!("{value:#x}"), Bytes::Binary), Ok(value));
        }

        #[test]
        fn arbitrary_numbers_never_panic(text in "\\PC{0,12}") {
            let _ = bytes(&text, Bytes::Binary);
            let _ = time_ns(&text, TimeUnit::Seconds);
            let _ = extent(&text, Bytes::Decimal);
            let _ = percent(&text);
            let _ = float(&text);
        }
    }
}
