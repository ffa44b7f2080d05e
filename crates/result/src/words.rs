//! Quantities as text for people, with three significant digits and the unit.

/// Units of latencies, each 1000 of the one before.
const LATENCY_UNITS: [&str; 4] = [" ns", " us", " ms", " s"];

/// Three significant digits, without an exponent: `0.123`, `1.23`, `12.3`, `123`.
pub fn three_digits(value: f64) -> String {
    let decimals = decimals_of_three_digits(value);
    format!("{value:.decimals$}")
}

/// Decimals of a value with [`three_digits`].
#[must_use]
pub fn decimals_of_three_digits(value: f64) -> usize {
    let magnitude = value.abs();
    if magnitude >= 99.95 {
        0
    } else if magnitude >= 9.995 {
        1
    } else if magnitude >= 0.9995 || magnitude == 0.0 {
        2
    } else {
        3
    }
}

/// Returns a share of a maximum in whole per cent, rounded down: a text never claims more than was
/// measured.
#[must_use]
pub fn whole_percent(share: f64) -> f64 {
    /// Larger than the rounding error of a quotient: 0.57 is 57 %.
    const ROUNDING_PERCENT: f64 = 1e-9;
    (100.0 * share + ROUNDING_PERCENT).floor()
}

/// Returns a count with its noun, given in the singular: `1 step`, `3 steps`.
pub fn counted(count: usize, one: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {one}{end}")
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let (value, unit) = in_unit(value, step, units);
    format!("{}{unit}", three_digits(value))
}

/// Returns the value in the unit in which it has three digits.
fn in_unit<'a>(value: f64, step: f64, units: &[&'a str]) -> (f64, &'a str) {
    let mut value = value;
    let mut unit = 0;
    // 999.5 would be shown as 1000, so the comparison uses the rounded value.
    while value >= step.min(1000.0) - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    (value, units[unit])
}

/// Operations per second: `75.3k`, `1.20M`.
pub fn iops_text(per_second: f64) -> String {
    if per_second < 999.5 {
        return format!("{per_second:.0}");
    }
    scaled(per_second, 1000.0, &["", "k", "M", "G"])
}

/// Bytes per second in binary units: `312 MiB/s`.
pub fn bandwidth(bytes_per_second: f64) -> String {
    scaled(
        bytes_per_second,
        1024.0,
        &[" B/s", " KiB/s", " MiB/s", " GiB/s", " TiB/s"],
    )
}

/// Bytes in binary units, whole numbers without a fraction: `4 GiB`, `1.50 GiB`.
pub fn bytes(count: u64) -> String {
    binary(count, [" B", " KiB", " MiB", " GiB", " TiB"])
}

/// Size of a block, in KiB and MiB as a job file has it: `512 B`, `4k`, `1M`, `2 GiB`.
pub fn block_bytes(count: u64) -> String {
    binary(count, [" B", "k", "M", " GiB", " TiB"])
}

fn binary(count: u64, units: [&str; 5]) -> String {
    let mut unit = 0;
    while unit + 1 < units.len() && count >> (10 * (unit + 1)) > 0 {
        unit += 1;
    }
    let one = 1u64 << (10 * unit);
    if count.is_multiple_of(one) {
        format!("{}{}", count >> (10 * unit), units[unit])
    } else {
        format!("{}{}", three_digits(count as f64 / one as f64), units[unit])
    }
}

/// A measured duration: `870 ns`, `85.0 us`, `1.20 ms`, `3.00 s`.
pub fn latency(ns: f64) -> String {
    latency_in(ns, LATENCY_UNITS)
}

/// A measured duration without zeros at the end of its fraction: `85 us`, `1.2 ms`.
pub fn latency_without_end_zeros(ns: f64) -> String {
    if ns < 999.5 {
        return latency(ns);
    }
    let (value, unit) = in_unit(ns, 1000.0, &LATENCY_UNITS);
    let number = three_digits(value);
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number.as_str(),
    };
    format!("{number}{unit}")
}

/// A measured duration for output that is not restricted to ASCII characters: `85.0 µs`.
pub fn latency_with_micro_sign(ns: f64) -> String {
    latency_in(ns, [" ns", " µs", " ms", " s"])
}

/// The durations from `low_ns` to `high_ns`, with one unit if both have the same: `388-396 us`,
/// `980 us-1.20 ms`. One duration if both have the same digits.
#[must_use]
pub fn latency_range(low_ns: f64, high_ns: f64) -> String {
    let low = latency_parts(low_ns, LATENCY_UNITS);
    let high = latency_parts(high_ns, LATENCY_UNITS);
    let ((low_number, low_unit), (high_number, high_unit)) = (&low, &high);
    if low == high {
        format!("{low_number}{low_unit}")
    } else if low_unit == high_unit {
        format!("{low_number}-{high_number}{high_unit}")
    } else {
        format!("{low_number}{low_unit}-{high_number}{high_unit}")
    }
}

fn latency_in(ns: f64, units: [&str; 4]) -> String {
    let (number, unit) = latency_parts(ns, units);
    format!("{number}{unit}")
}

/// Number and unit of a measured duration.
fn latency_parts(ns: f64, units: [&str; 4]) -> (String, &str) {
    if ns < 999.5 {
        return (format!("{ns:.0}"), units[0]);
    }
    let (value, unit) = in_unit(ns, 1000.0, &units);
    (three_digits(value), unit)
}

/// A configured duration: `200 ms`, `1.5 s`, `1 min 10 s`.
pub fn chosen(ns: u64) -> String {
    match ns / 1_000_000 {
        ms if ms < 1000 => format!("{ms} ms"),
        ms if ms % 1000 > 0 && ms < 60_000 => {
            let seconds = format!("{:.3}", ms as f64 / 1000.0);
            format!("{} s", seconds.trim_end_matches('0'))
        }
        _ => whole_seconds_text(ns),
    }
}

/// A duration to wait for: `8 s`, `1 min 10 s`.
pub fn whole_seconds_text(ns: u64) -> String {
    let seconds = ns.div_ceil(1_000_000_000);
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// A long time in its two largest units: `33 min 20 s`, `5 h`, `1 h 10 min`.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let parts = [
        (seconds / 3600, "h"),
        (seconds % 3600 / 60, "min"),
        (seconds % 60, "s"),
    ];
    let shown: Vec<String> = parts
        .iter()
        .skip_while(|(count, _)| *count == 0)
        .take(2)
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    if shown.is_empty() {
        "0 s".to_owned()
    } else {
        shown.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_sizes_have_the_units_of_job_files() {
        let sizes = [512, 4096, 1536, 1 << 20, 3 << 30].map(block_bytes);
        assert_eq!(sizes, ["512 B", "4k", "1.50k", "1M", "3 GiB"]);
        assert_eq!(bytes(4096), "4 KiB");
    }

    #[test]
    fn whole_percent_rounds_down() {
        let percents = [0.986, 0.57, 0.999_9, 1.0].map(whole_percent);
        assert_eq!(percents, [98.0, 57.0, 99.0, 100.0]);
    }

    #[test]
    fn rates_and_latencies_have_three_digits_and_a_unit() {
        assert_eq!(iops_text(0.0), "0");
        assert_eq!(iops_text(999.4), "999");
        assert_eq!(iops_text(999.6), "1.00k");
        assert_eq!(iops_text(75_312.0), "75.3k");
        assert_eq!(iops_text(999_900.0), "1.00M");
        assert_eq!(bandwidth(327_155_712.0), "312 MiB/s");
        assert_eq!(bandwidth(1_071_644_672.0), "0.998 GiB/s");
        assert_eq!(bandwidth(0.0), "0.00 B/s");
        assert_eq!(latency(870.0), "870 ns");
        assert_eq!(latency(85_000.0), "85.0 us");
        assert_eq!(latency(1_204_000.0), "1.20 ms");
        assert_eq!(latency(61e9), "61.0 s");
    }

    #[test]
    fn latencies_may_lose_end_zeros_or_have_a_micro_sign() {
        for (ns, short, with_sign) in [
            (100.0, "100 ns", "100 ns"),
            (85_000.0, "85 us", "85.0 µs"),
            (1_204_000.0, "1.2 ms", "1.20 ms"),
            (3e9, "3 s", "3.00 s"),
            (500e9, "500 s", "500 s"),
        ] {
            assert_eq!(latency_without_end_zeros(ns), short);
            assert_eq!(latency_with_micro_sign(ns), with_sign);
        }
    }

    #[test]
    fn latency_range_has_one_unit_if_both_ends_have_it() {
        assert_eq!(latency_range(388_000.0, 396_000.0), "388-396 us");
        assert_eq!(latency_range(980_000.0, 1_200_000.0), "980 us-1.20 ms");
        assert_eq!(latency_range(900.0, 900.2), "900 ns");
    }

    #[test]
    fn sizes_and_waits_print_with_units() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(4 << 30), "4 GiB");
        assert_eq!(bytes(3 << 29), "1.50 GiB");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(whole_seconds_text(1), "1 s");
        assert_eq!(whole_seconds_text(60_000_000_000), "1 min");
        assert_eq!(whole_seconds_text(70_200_000_000), "1 min 11 s");
    }

    #[test]
    fn chosen_durations_are_not_rounded() {
        for (ms, text) in [
            (200, "200 ms"),
            (1000, "1 s"),
            (1500, "1.5 s"),
            (10_250, "10.25 s"),
            (60_000, "1 min"),
        ] {
            assert_eq!(chosen(ms * 1_000_000), text);
        }
    }

    #[test]
    fn durations_have_two_parts() {
        assert_eq!(duration(2000.0), "33 min 20 s");
        assert_eq!(duration(18_000.0), "5 h");
        assert_eq!(duration(4194.0), "1 h 9 min");
        assert_eq!(duration(1800.0), "30 min");
        assert_eq!(duration(0.2), "0 s");
    }
}
