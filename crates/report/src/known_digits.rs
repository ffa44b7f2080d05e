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

/// A unit: its size and its name.
pub(crate) type NamedUnit = (f64, &'static str);
/// Units of a quantity, from the smallest.
pub(crate) type UnitLadder = [NamedUnit];

/// Units of operations per second.
pub(crate) const RATE_UNITS: &UnitLadder = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")];
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
/// [`LATENCY_UNITS`] for output that is not restricted to ASCII characters.
pub(crate) const LATENCY_UNITS_UTF8: &UnitLadder =
    &[(1.0, " ns"), (1e3, " µs"), (1e6, " ms"), (1e9, " s")];
/// [`LATENCY_UNITS`] without their blanks, for narrow cells.
pub(crate) const UNITS_IN_CELLS: &UnitLadder = &[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")];

/// Stands before a figure whose interval is not known. It has no other meaning.
pub(crate) const APPROXIMATE_MARK: char = '~';
/// Explains the parentheses around a predicted figure.
pub(crate) const PREDICTED_LEGEND: &str = "( ) predicted";
/// Most significant digits of a figure.
const MOST_DIGITS: i32 = 3;
/// Significant digits of a figure whose interval is not known, or not shown and wide.
const LEAST_DIGITS: i32 = 2;
/// Most decimals of a figure in the unit of its column, unless two digits need more.
const MOST_DECIMALS: i32 = 3;
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

/// Returns [`known_digits`]. A predicted figure is in parentheses: it has no interval, so it lacks
/// the mark of an unknown one.
pub(crate) fn known_or_predicted_digits(
    value: f64,
    half_width: Option<f64>,
    units: &UnitLadder,
    is_predicted: bool,
) -> String {
    RoundedFigure::new(value, half_width, units, step_without_interval).marked(is_predicted)
}

/// Returns the unit in which [`known_digits`] prints a figure.
pub(crate) fn unit_of_known_digits(
    value: f64,
    half_width: Option<f64>,
    units: &UnitLadder,
) -> NamedUnit {
    let name = RoundedFigure::new(value, half_width, units, step_without_interval).unit;
    let named = units.iter().find(|unit| unit.1 == name);
    named.copied().unwrap_or(units[0])
}

/// Returns a figure as [`known_or_predicted_digits`] does, in the unit of its column, without
/// its name: `3.20`, and `0.075` in a unit that is too large for the figure.
pub(crate) fn known_digits_in_unit(
    value: f64,
    half_width: Option<f64>,
    (size, _): NamedUnit,
    is_predicted: bool,
) -> String {
    RoundedFigure::new(value, half_width, &[(size, "")], step_in_column).marked(is_predicted)
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

/// Returns a bandwidth with the digits that it has beside its interval, which is the same share as
/// that of the rate: `170 MiB/s` for `44k ±39k`.
pub(crate) fn bandwidth_of_rate(
    bytes_per_s: f64,
    rate: f64,
    half_width_of_rate: Option<f64>,
) -> String {
    round_bandwidth(bytes_per_s, rate, half_width_of_rate).without_interval()
}

/// Returns [`bandwidth_of_rate`] and half its interval: `170 MiB/s` and `±160 MiB/s`. Both end at
/// the same place.
pub(crate) fn bandwidth_and_half_of_rate(
    bytes_per_s: f64,
    rate: f64,
    half_width_of_rate: Option<f64>,
) -> (String, Option<String>) {
    round_bandwidth(bytes_per_s, rate, half_width_of_rate).texts()
}

fn round_bandwidth(bytes_per_s: f64, rate: f64, half_width_of_rate: Option<f64>) -> RoundedFigure {
    // The bandwidth is known if the rate is.
    let half_width = half_width_of_rate.filter(|_| rate > 0.0);
    let half_width = half_width.map(|half| half / rate * bytes_per_s);
    RoundedFigure::new(
        bytes_per_s,
        half_width,
        BANDWIDTH_UNITS,
        step_beside_interval,
    )
}

/// Returns a figure with two digits and without a mark, for grids with narrow cells.
pub(crate) fn two_digits(value: f64, units: &UnitLadder) -> String {
    let step = |scaled: f64, _: Option<f64>| step_of_digits(scaled, LEAST_DIGITS);
    RoundedFigure::new(value, Some(0.0), units, step).without_interval()
}

/// Returns a figure with two digits, without a mark and without zeros at the end of its fraction.
pub(crate) fn two_digits_without_end_zeros(value: f64, units: &UnitLadder) -> String {
    let step = |scaled: f64, _: Option<f64>| step_of_digits(scaled, LEAST_DIGITS);
    let figure = RoundedFigure::new(value, Some(0.0), units, step);
    figure.without_end_zeros().without_interval()
}

/// Marks the text of a figure whose interval is not known.
pub(crate) fn approximate(text: &str) -> String {
    format!("{APPROXIMATE_MARK}{text}")
}

/// Marks the text of a predicted figure.
pub(crate) fn predicted(text: &str) -> String {
    format!("({text})")
}

/// Whether a measured figure has the mark of an unknown interval: none is known, or it reaches
/// zero.
pub(crate) fn lacks_interval(value: f64, half_width: Option<f64>) -> bool {
    value > 0.0 && half_width.is_none_or(|half| !half.is_finite() || half >= value)
}

/// Whether [`known_percentile`] marks a percentile as one of an unknown interval.
pub(crate) fn percentile_lacks_interval(ns: Option<u64>, interval: Option<(u64, u64)>) -> bool {
    ns.is_some_and(|ns| lacks_interval(ns as f64, longer_half(ns, interval)))
}

/// Returns half the interval of a figure whose interval need not be symmetric: the longer half.
pub(crate) fn longer_half(value: u64, interval: Option<(u64, u64)>) -> Option<f64> {
    let (low, high) = interval?;
    Some(value.saturating_sub(low).max(high.saturating_sub(value)) as f64)
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

    /// Moves the last place to the last digit of the fraction that is not zero.
    fn without_end_zeros(self) -> RoundedFigure {
        let is_whole = |place: &i32| {
            let digits = self.value / ten_to(*place);
            (digits - digits.round()).abs() < 1e-6
        };
        let mut places = (self.last_place.min(0)..=0).rev();
        RoundedFigure {
            last_place: places.find(is_whole).unwrap_or(self.last_place),
            ..self
        }
    }

    fn decimals(&self) -> usize {
        self.last_place.min(0).unsigned_abs() as usize
    }

    fn without_interval(&self) -> String {
        self.marked(false)
    }

    /// The figure with its unit and its mark.
    fn marked(&self, is_predicted: bool) -> String {
        let decimals = self.decimals();
        let text = format!("{:.decimals$}{}", self.value, self.unit);
        match self.half_width {
            _ if is_predicted => predicted(&text),
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

/// Last digit of a figure in the unit of its column, without its interval.
fn step_in_column(scaled: f64, half: Option<f64>) -> f64 {
    if scaled <= 0.0 || !scaled.is_finite() {
        return 1.0;
    }
    let coarsest = last_place_of_digits(scaled, LEAST_DIGITS);
    let finest = last_place_of_digits(scaled, MOST_DIGITS).max(-MOST_DECIMALS);
    let (finest, coarsest) = (ten_to(finest.min(coarsest)), ten_to(coarsest));
    half.map_or(coarsest, |half| {
        step_of_interval(half).clamp(finest, coarsest)
    })
}

/// Smallest step of a figure with `digits` digits, but at most two decimals from 0.1 on.
fn step_of_digits(scaled: f64, digits: i32) -> f64 {
    if scaled <= 0.0 || !scaled.is_finite() {
        return 1.0;
    }
    let last = last_place_of_digits(scaled, digits);
    ten_to(match scaled >= 0.1 {
        true => last.max(-2),
        false => last.max(-3),
    })
}

/// Power of ten of the last digit of a positive figure with `digits` digits.
fn last_place_of_digits(scaled: f64, digits: i32) -> i32 {
    let place = leading_place(scaled);
    let last = place - digits + 1;
    // 99.96 has its third digit where 100 has it.
    let is_rounded_up = scaled >= ten_to(place + 1) - ten_to(last) / 2.0;
    last + i32::from(is_rounded_up)
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
mod tests;
