//! Figures with the digits that their intervals support: `93.4k ±1.2k`, `44k ±39k`, `~3.1k`.
//!
//! Beside its interval, a figure ends at the second digit of half the interval, and has at most
//! three significant digits: `11.5k ±5.7k`, `405 ±19`, `402 ±8`, `3.28k ±0.01k`. Half the interval
//! ends at the same place. It is rounded up by so much that the printed interval contains the
//! measured one.
//!
//! Without its interval, a figure ends at the first digit of half the interval, or at the second
//! if the first is 1, and has two or three significant digits. A figure whose interval is not known
//! has two digits after the mark `~`. A predicted figure is in parentheses: `(3.1k)`. All other
//! modules take the marks from here.

/// Units of a quantity: each with its size and its name, from the smallest.
pub(crate) type UnitLadder = [(f64, &'static str)];

/// Units of operations per second.
pub(crate) const RATE_UNITS: &UnitLadder = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")];
/// Bandwidths are in one unit, so that a table has one scale.
pub(crate) const MEBIBYTES: &UnitLadder = &[(1_048_576.0, "")];
/// Bandwidths of a sentence about such a table.
pub(crate) const MEBIBYTES_PER_S: &UnitLadder = &[(1_048_576.0, " MiB/s")];
/// Units of bytes per second.
pub(crate) const BANDWIDTH_UNITS: &UnitLadder = &[
    (1.0, " B/s"),
    (1024.0, " KiB/s"),
    (1_048_576.0, " MiB/s"),
    (1_073_741_824.0, " GiB/s"),
    (1_099_511_627_776.0, " TiB/s"),
];
/// Units of latencies, which are in nanoseconds.
pub(crate) const LATENCY_UNITS: &UnitLadder =
    &[(1.0, " ns"), (1e3, " us"), (1e6, " ms"), (1e9, " s")];

/// Stands before a figure whose interval is not known. It has no other meaning.
pub(crate) const APPROXIMATE_MARK: char = '~';
/// Explains the parentheses around a predicted figure.
pub(crate) const PREDICTED_LEGEND: &str = "( ) predicted";
/// Most significant digits of a figure.
const MOST_DIGITS: i32 = 3;
/// Significant digits of a figure whose interval is not known, or not shown and wide.
const LEAST_DIGITS: i32 = 2;
/// Values from here on are shown in the next unit, as in `iosonde_result::words`.
const NEXT_UNIT_FROM: f64 = 999.5;

/// A figure rounded to its known digits, in multiples of its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RoundedFigure {
    value: f64,
    /// Half the interval. `None`: the interval is not known.
    half_width: Option<f64>,
    /// Power of ten of the last digit.
    last_place: i32,
    unit: &'static str,
}

/// Returns a figure with half its interval: `93.4k ±1.2k`, `3.20 ±0.01 GiB/s`. Without an interval
/// that excludes zero: `~3.1k`.
pub(crate) fn with_interval(
    value: f64,
    half_width: Option<f64>,
    units: &UnitLadder,
    plus_minus: &str,
) -> String {
    let rounded = RoundedFigure::new(value, half_width, units, step_beside_interval);
    let (decimals, unit) = (rounded.decimals(), rounded.unit);
    let number = format!("{:.decimals$}", rounded.value);
    match rounded.half_width {
        None => rounded.without_interval(),
        Some(half) if unit.starts_with(' ') => {
            format!("{number} {plus_minus}{half:.decimals$}{unit}")
        }
        Some(half) => format!("{number}{unit} {plus_minus}{half:.decimals$}{unit}"),
    }
}

/// Returns a figure with its known digits, without its interval: `365 MiB/s`, `~3.1k`.
pub(crate) fn known_digits(value: f64, half_width: Option<f64>, units: &UnitLadder) -> String {
    RoundedFigure::new(value, half_width, units, step_without_interval).without_interval()
}

/// Returns half the interval, to stand beside [`known_digits`] with as many decimals: `±3k` beside
/// `88k`. `None`: the interval is not known, or reaches zero.
pub(crate) fn half_of_known_digits(
    value: f64,
    half_width: Option<f64>,
    units: &UnitLadder,
) -> Option<String> {
    let (_, half) = RoundedFigure::new(value, half_width, units, step_without_interval).texts();
    half
}

/// Returns the parts of [`with_interval`], each with its unit: `93.4k` and `±1.2k`.
pub(crate) fn figure_and_half(
    value: f64,
    half_width: Option<f64>,
    units: &UnitLadder,
) -> (String, Option<String>) {
    RoundedFigure::new(value, half_width, units, step_beside_interval).texts()
}

/// Returns a figure with the digits that it has beside its interval, without the interval: `93.4k`
/// of `93.4k ±1.2k`.
pub(crate) fn digits_beside_interval(
    value: f64,
    half_width: Option<f64>,
    units: &UnitLadder,
) -> String {
    RoundedFigure::new(value, half_width, units, step_beside_interval).without_interval()
}

/// Returns a bandwidth with as many digits as its rate has beside its interval: `170 MiB/s` for
/// `44k ±39k`.
pub(crate) fn bandwidth_of_rate(
    bytes_per_s: f64,
    rate: f64,
    half_width_of_rate: Option<f64>,
) -> String {
    round_bandwidth(bytes_per_s, rate, half_width_of_rate).without_interval()
}

/// Returns [`bandwidth_of_rate`] and half its interval, which is the same share as that of the
/// rate: `170 MiB/s` and `±160 MiB/s`. Both end at the same place.
pub(crate) fn bandwidth_and_half_of_rate(
    bytes_per_s: f64,
    rate: f64,
    half_width_of_rate: Option<f64>,
) -> (String, Option<String>) {
    round_bandwidth(bytes_per_s, rate, half_width_of_rate).texts()
}

fn round_bandwidth(bytes_per_s: f64, rate: f64, half_width_of_rate: Option<f64>) -> RoundedFigure {
    let rounded_rate =
        RoundedFigure::new(rate, half_width_of_rate, RATE_UNITS, step_beside_interval);
    let digits = rounded_rate.digits();
    // The bandwidth is known if the rate is.
    let half_width = half_width_of_rate.filter(|_| rate > 0.0);
    let half_width = half_width.map(|half| half / rate * bytes_per_s);
    let step = |scaled: f64, _: Option<f64>| step_of_digits(scaled, digits);
    RoundedFigure::new(bytes_per_s, half_width, BANDWIDTH_UNITS, step)
}

/// Returns a figure with two digits and without a mark, for grids with narrow cells.
pub(crate) fn two_digits(value: f64, units: &UnitLadder) -> String {
    let step = |scaled: f64, _: Option<f64>| step_of_digits(scaled, LEAST_DIGITS);
    RoundedFigure::new(value, Some(0.0), units, step).without_interval()
}

/// Marks the text of a figure whose interval is not known.
pub(crate) fn approximate(text: &str) -> String {
    format!("{APPROXIMATE_MARK}{text}")
}

/// Whether a text has the mark of a figure whose interval is not known.
pub(crate) fn is_approximate(text: &str) -> bool {
    text.starts_with(APPROXIMATE_MARK)
}

/// Marks the text of a predicted figure. It has no interval, so it loses the mark of an unknown
/// one.
pub(crate) fn predicted(text: &str) -> String {
    format!("({})", text.trim_start_matches(APPROXIMATE_MARK))
}

/// Whether a text has the marks of a predicted figure.
pub(crate) fn is_predicted(text: &str) -> bool {
    text.starts_with('(') && text.ends_with(')')
}

/// Returns half the interval of a figure whose interval need not be symmetric: the longer half.
pub(crate) fn longer_half(value: u64, interval: Option<(u64, u64)>) -> Option<f64> {
    let (low, high) = interval?;
    Some(value.saturating_sub(low).max(high.saturating_sub(value)) as f64)
}

/// Replaces the unit `us` of a latency, for output that is not restricted to ASCII characters.
pub(crate) fn with_micro_sign(latency: &str) -> String {
    latency.replace(" us", " µs")
}

/// Formats a percentile with its known digits. `-` if too few I/Os were measured.
pub(crate) fn known_percentile(ns: Option<u64>, interval: Option<(u64, u64)>) -> String {
    ns.map_or("-".to_owned(), |ns| {
        known_digits(ns as f64, longer_half(ns, interval), LATENCY_UNITS)
    })
}

impl RoundedFigure {
    /// Rounds a figure in the first unit in which it stays below the next unit. `step` returns the
    /// size of its last digit from the figure and half its interval, both in multiples of the unit.
    fn new(
        value: f64,
        half_width: Option<f64>,
        units: &UnitLadder,
        step: impl Fn(f64, Option<f64>) -> f64,
    ) -> RoundedFigure {
        let half = half_width.filter(|half| half.is_finite() && *half < value);
        let mut index = 0;
        loop {
            let (size, unit) = units[index];
            let (scaled, half) = (value / size, half.map(|half| half / size));
            let figure = RoundedFigure::in_unit(scaled, half, step(scaled, half), unit);
            index += 1;
            if figure.value < NEXT_UNIT_FROM || index >= units.len() {
                return figure;
            }
        }
    }

    fn in_unit(scaled: f64, half: Option<f64>, step: f64, unit: &'static str) -> RoundedFigure {
        debug_assert!(step > 0.0);
        let rounded = (scaled / step).round() * step;
        RoundedFigure {
            value: rounded,
            half_width: half.map(|half| {
                let width = half + (scaled - rounded).abs();
                // Binary fractions of a decimal step must not round up by a whole step.
                ((width / step - 1e-6).ceil() * step).max(step)
            }),
            last_place: step.log10().round() as i32,
            unit,
        }
    }

    fn decimals(&self) -> usize {
        self.last_place.min(0).unsigned_abs() as usize
    }

    /// Significant digits, at least one.
    fn digits(&self) -> i32 {
        (leading_place(self.value) - self.last_place + 1).max(1)
    }

    fn without_interval(&self) -> String {
        let decimals = self.decimals();
        let text = format!("{:.decimals$}{}", self.value, self.unit);
        match self.half_width {
            None if self.value > 0.0 => approximate(&text),
            _ => text,
        }
    }

    /// The figure, and half its interval, each with its unit.
    fn texts(&self) -> (String, Option<String>) {
        let (decimals, unit) = (self.decimals(), self.unit);
        let half = self.half_width;
        let half = half.map(|half| format!("±{half:.decimals$}{unit}"));
        (self.without_interval(), half)
    }
}

/// Exponent of the first digit that is not zero. 0 for zero.
fn leading_place(value: f64) -> i32 {
    match value > 0.0 {
        // A value just below a power of ten, such as 999.9999999, has the place of that power.
        true => (value.log10() + 1e-9).floor() as i32,
        false => 0,
    }
}

fn ten_to(place: i32) -> f64 {
    10f64.powi(place)
}

/// Last digit of a figure that is shown with its interval.
fn step_beside_interval(scaled: f64, half: Option<f64>) -> f64 {
    match half {
        Some(half) if half > 0.0 => {
            ten_to(leading_place(half) - 1).max(step_of_digits(scaled, MOST_DIGITS))
        }
        Some(_) => step_of_digits(scaled, MOST_DIGITS),
        None => step_of_digits(scaled, LEAST_DIGITS),
    }
}

/// Last digit of a figure that is shown without its interval.
fn step_without_interval(scaled: f64, half: Option<f64>) -> f64 {
    let (finest, coarsest) = (
        step_of_digits(scaled, MOST_DIGITS),
        step_of_digits(scaled, LEAST_DIGITS),
    );
    half.map_or(coarsest, |half| {
        step_of_interval(half).clamp(finest, coarsest)
    })
}

/// Smallest step of a figure with `digits` digits, but at most two decimals from 0.1 on.
fn step_of_digits(scaled: f64, digits: i32) -> f64 {
    if scaled <= 0.0 || !scaled.is_finite() {
        return 1.0;
    }
    let place = leading_place(scaled);
    let last = place - digits + 1;
    // 99.96 has its third digit where 100 has it.
    let is_rounded_up = scaled >= ten_to(place + 1) - ten_to(last) / 2.0;
    let last = last + i32::from(is_rounded_up);
    ten_to(match scaled >= 0.1 {
        true => last.max(-2),
        false => last.max(-3),
    })
}

/// Last known digit by half an interval: its first digit, or the second if the first is 1.
fn step_of_interval(half: f64) -> f64 {
    if half <= 0.0 {
        return 0.0;
    }
    let place = leading_place(half);
    match half / ten_to(place) < 1.95 {
        true => ten_to(place - 1),
        false => ten_to(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(value: f64, half: f64) -> String {
        with_interval(value, Some(half), RATE_UNITS, "±")
    }

    #[test]
    fn figure_ends_at_last_digit_of_interval() {
        assert_eq!(rate(93_410.0, 1_150.0), "93.4k ±1.2k");
        assert_eq!(rate(96_300.0, 7_100.0), "96.3k ±7.1k");
        assert_eq!(rate(44_200.0, 38_000.0), "44k ±39k");
        assert_eq!(rate(11_460.0, 5_600.0), "11.5k ±5.7k");
        assert_eq!(rate(405.3, 18.0), "405 ±19");
        assert_eq!(rate(3_280.0, 2.0), "3.28k ±0.01k");
        assert_eq!(rate(997.0, 150.0), "1.00k ±0.16k");
        assert_eq!(rate(402.0, 7.6), "402 ±8");
        assert_eq!(rate(182.3, 13.0), "182 ±14");
        assert_eq!(rate(752_961.0, 75.0), "753k ±1k");
        assert_eq!(rate(999_700.0, 3.0), "1.00M ±0.01M");
        let bandwidth = with_interval(3.2 * 1_073_741_824.0, Some(1e6), BANDWIDTH_UNITS, "+-");
        assert_eq!(bandwidth, "3.20 +-0.01 GiB/s");
        assert_eq!(
            known_digits(608_300.0, Some(4_000.0), LATENCY_UNITS),
            "608 us"
        );
        assert_eq!(
            known_digits(1_360_400.0, Some(20_000.0), LATENCY_UNITS),
            "1.36 ms"
        );
    }

    #[test]
    fn figure_without_interval_has_two_digits() {
        for half in [None, Some(3_100.0), Some(1e9), Some(f64::INFINITY)] {
            assert_eq!(with_interval(3_100.0, half, RATE_UNITS, "±"), "~3.1k");
        }
        let latency = |ns: f64| known_digits(ns, None, LATENCY_UNITS);
        assert_eq!(latency(176e6), "~180 ms");
        assert_eq!(latency(13.0e6), "~13 ms");
        assert_eq!(latency(996_000.0), "~1.0 ms");
        // An interval that is wide, but not shown, leaves two digits.
        assert_eq!(known_digits(44_200.0, Some(38_000.0), RATE_UNITS), "44k");
        assert_eq!(known_digits(0.0, None, RATE_UNITS), "0");
        assert_eq!(longer_half(10, Some((8, 15))), Some(5.0));
        assert_eq!(longer_half(10, None), None);
    }

    #[test]
    fn half_beside_known_digits_has_their_decimals() {
        let both = |value, half| {
            let digits = known_digits(value, half, RATE_UNITS);
            (digits, half_of_known_digits(value, half, RATE_UNITS))
        };
        let known = |digits: &str, half: &str| (digits.to_owned(), Some(half.to_owned()));
        assert_eq!(both(88_400.0, Some(2_300.0)), known("88k", "±3k"));
        assert_eq!(both(93_410.0, Some(1_150.0)), known("93.4k", "±1.2k"));
        assert_eq!(both(65_900.0, Some(126_700.0)), ("~66k".to_owned(), None));
        assert_eq!(both(65_900.0, None), ("~66k".to_owned(), None));
    }

    #[test]
    fn predicted_figure_has_no_mark_of_unknown_interval() {
        assert_eq!(predicted("530"), "(530)");
        assert_eq!(predicted(&known_digits(530.0, None, RATE_UNITS)), "(530)");
        assert!(is_predicted("(530)") && !is_predicted("530") && !is_predicted("~530"));
        assert!(is_approximate("~530") && !is_approximate("530") && !is_approximate("(530)"));
    }

    #[test]
    fn two_digits_have_no_mark_and_fit_narrow_cells() {
        let latency = |ns: f64| two_digits(ns, LATENCY_UNITS);
        assert_eq!(latency(1_640_000.0), "1.6 ms");
        assert_eq!(latency(9_960_000.0), "10 ms");
        assert_eq!(latency(838_000.0), "840 us");
        assert_eq!(latency(999_000.0), "1.0 ms");
        assert_eq!(latency(0.0), "0 ns");
    }

    #[test]
    fn bandwidth_has_as_many_digits_as_its_rate() {
        let bandwidth = |rate: f64, half| bandwidth_of_rate(rate * 4096.0, rate, half);
        assert_eq!(bandwidth(44_200.0, Some(38_000.0)), "170 MiB/s");
        assert_eq!(bandwidth(11_460.0, Some(5_600.0)), "44.8 MiB/s");
        assert_eq!(bandwidth(402.0, Some(7.6)), "1.57 MiB/s");
        assert_eq!(bandwidth(753_000.0, Some(75.0)), "2.87 GiB/s");
        assert_eq!(bandwidth(44_200.0, None), "~170 MiB/s");
        assert_eq!(bandwidth(0.0, None), "0 B/s");
    }

    #[test]
    fn half_beside_bandwidth_is_that_of_the_printed_bandwidth() {
        let both = |rate: f64, half| bandwidth_and_half_of_rate(rate * 4096.0, rate, half);
        let known = |digits: &str, half: &str| (digits.to_owned(), Some(half.to_owned()));
        let wide = both(44_200.0, Some(38_000.0));
        assert_eq!(wide, known("170 MiB/s", "±160 MiB/s"));
        let narrow = both(753_000.0, Some(75.0));
        assert_eq!(narrow, known("2.87 GiB/s", "±0.01 GiB/s"));
        assert_eq!(both(44_200.0, None), ("~170 MiB/s".to_owned(), None));
        assert_eq!(both(0.0, None), ("0 B/s".to_owned(), None));
    }

    #[test]
    fn figure_without_its_interval_keeps_the_digits_beside_it() {
        let digits = |value, half| digits_beside_interval(value, half, RATE_UNITS);
        assert_eq!(digits(96_300.0, Some(7_100.0)), "96.3k");
        assert_eq!(digits(44_200.0, Some(38_000.0)), "44k");
        assert_eq!(digits(3_100.0, None), "~3.1k");
        let parts = figure_and_half(93_410.0, Some(1_150.0), RATE_UNITS);
        assert_eq!(parts, ("93.4k".to_owned(), Some("±1.2k".to_owned())));
    }

    /// Reads `93.4k` or `170 MiB/s` back.
    fn read_number(text: &str, units: &UnitLadder) -> f64 {
        let digits = text.trim_end_matches(|sign: char| !sign.is_ascii_digit());
        let unit = &text[digits.len()..];
        let size = units.iter().find(|(_, name)| *name == unit).unwrap().0;
        digits.parse::<f64>().unwrap() * size
    }

    /// Reads `93.4k ±1.2k` back.
    fn read(text: &str) -> (f64, f64) {
        let (value, half) = text.split_once(" ±").unwrap();
        (
            read_number(value, RATE_UNITS),
            read_number(half, RATE_UNITS),
        )
    }

    /// Checks that the printed interval of a bandwidth contains the measured one.
    fn check_bandwidth(rate: f64, half: f64) {
        let texts = bandwidth_and_half_of_rate(rate * 4096.0, rate, Some(half));
        let printed = read_number(&texts.0, BANDWIDTH_UNITS);
        let width = texts.1.as_deref().unwrap().trim_start_matches('±');
        let width = read_number(width, BANDWIDTH_UNITS);
        let slack = rate * 4096.0 * 1e-5;
        let (low, high) = ((rate - half) * 4096.0, (rate + half) * 4096.0);
        assert!(printed - width <= low + slack, "{rate} {half}: {texts:?}");
        assert!(printed + width >= high - slack, "{rate} {half}: {texts:?}");
    }

    #[test]
    fn printed_interval_contains_measured_interval() {
        // Values and widths from a multiplicative generator (Lehmer), over nine decades.
        let mut seed: u64 = 1;
        let mut share = || {
            seed = seed * 48_271 % 2_147_483_647;
            seed as f64 / 2_147_483_647.0
        };
        for _ in 0..20_000 {
            let value = 10f64.powf(share() * 9.0);
            let half = value * 10f64.powf(-6.0 * share()) * 0.999;
            let text = rate(value, half);
            let (printed, width) = read(&text);
            check_bandwidth(value, half);
            let slack = value * 1e-5;
            assert!(
                printed - width <= value - half + slack,
                "{value} {half}: {text}"
            );
            assert!(
                printed + width >= value + half - slack,
                "{value} {half}: {text}"
            );
            // The printed interval is not much wider than known digits require.
            let third_digit = value / 100.0;
            assert!(
                width <= 1.5 * half + 1.5 * third_digit + 0.02,
                "{value} {half}: {text}"
            );
            assert!(text.chars().count() <= 12, "{text}");
            let figure = text.split_once(" ±").unwrap().0;
            let digits = figure.chars().filter(char::is_ascii_digit).count();
            assert!(digits <= 3, "{value} {half}: {text}");
        }
    }
}
