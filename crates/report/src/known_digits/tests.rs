use super::*;

/// Unit, figure, half its interval, and the figure with and without its interval. The tests of the
/// page read the same file.
const CASES: &str = include_str!("figures.json");

#[test]
fn figures_have_the_texts_of_the_page() {
    type FigureCase = (String, f64, Option<f64>, String, String);
    let cases: Vec<FigureCase> = serde_json::from_str(CASES).unwrap();
    for (unit, value, half, with, without) in cases {
        let units = match unit.as_str() {
            "iops" => RATE_UNITS,
            "bytes_per_s" => BANDWIDTH_UNITS,
            "ns" => LATENCY_UNITS_UTF8,
            other => panic!("{other} is no unit"),
        };
        let text = with_interval(value, half, units, "±");
        assert_eq!(text, with);
        let text = known_digits(value, half, units);
        assert_eq!(text, without);
    }
}

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
    let digits = |value, half| known_or_predicted_digits(value, half, RATE_UNITS, true);
    assert_eq!(digits(530.0, None), "(530)");
    assert_eq!(digits(93_410.0, Some(2.0)), "(93.4k)");
    let kibibytes = BANDWIDTH_UNITS[1];
    let in_unit = |is_predicted| known_digits_in_unit(5300.0, None, kibibytes, is_predicted);
    assert_eq!([true, false].map(in_unit), ["(5.2)", "~5.2"]);
}

#[test]
fn mark_of_unknown_interval_follows_from_figure_and_half() {
    let halves = [None, Some(0.0), Some(8.0), Some(530.0), Some(f64::INFINITY)];
    for value in [0.0, 1.0, 530.0] {
        for half in halves {
            let text = known_digits(value, half, RATE_UNITS);
            let is_marked = text.starts_with(APPROXIMATE_MARK);
            assert_eq!(lacks_interval(value, half), is_marked, "{text} {half:?}");
        }
    }
    for (ns, interval) in [
        (None, None),
        (Some(530), None),
        (Some(530), Some((520, 540))),
        (Some(530), Some((0, 1060))),
    ] {
        let is_marked = known_percentile(ns, interval).starts_with(APPROXIMATE_MARK);
        assert_eq!(percentile_lacks_interval(ns, interval), is_marked, "{ns:?}");
    }
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
fn bandwidth_has_the_digits_of_its_own_interval() {
    let bandwidth = |rate: f64, half| bandwidth_of_rate(rate * 4096.0, rate, half);
    assert_eq!(bandwidth(44_200.0, Some(38_000.0)), "170 MiB/s");
    assert_eq!(bandwidth(11_460.0, Some(5_600.0)), "45 MiB/s");
    // Screens that know the bandwidth alone print the same.
    for half in [Some(5_600.0), Some(600.0), Some(60.0), None] {
        let half_bytes = half.map(|half| half * 4096.0);
        let alone = digits_beside_interval(11_460.0 * 4096.0, half_bytes, BANDWIDTH_UNITS);
        assert_eq!(bandwidth(11_460.0, half), alone);
    }
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

/// Bandwidths in MiB/s with half their intervals, in the unit of a column.
fn in_column(mebibytes: f64, half: Option<f64>, unit: NamedUnit) -> String {
    let bytes = |mebibytes: f64| mebibytes * 1_048_576.0;
    known_digits_in_unit(bytes(mebibytes), half.map(bytes), unit, false)
}

#[test]
fn figure_in_unit_of_its_column_keeps_its_known_digits() {
    let gibibytes = BANDWIDTH_UNITS[3];
    assert_eq!(in_column(3276.8, Some(1.0), gibibytes), "3.20");
    assert_eq!(in_column(500.0, Some(1.0), gibibytes), "0.488");
    assert_eq!(in_column(500.0, Some(50.0), gibibytes), "0.49");
    assert_eq!(in_column(77.1, Some(0.1), gibibytes), "0.075");
    assert_eq!(in_column(5.0, Some(0.01), gibibytes), "0.0049");
    assert_eq!(in_column(77.1, None, gibibytes), "~0.075");
    assert_eq!(in_column(0.0, None, gibibytes), "0");
    let mebibytes = BANDWIDTH_UNITS[2];
    assert_eq!(in_column(77.1, Some(0.1), mebibytes), "77.1");
    assert_eq!(in_column(996.0, None, mebibytes), "~1000");
}

#[test]
fn figure_in_its_own_unit_reads_as_elsewhere() {
    for mebibytes in [0.5, 1.0, 12.34, 77.1, 999.4, 1100.0, 3276.8, 2e6] {
        let bytes = mebibytes * 1_048_576.0;
        for half in [None, Some(0.01 * bytes), Some(0.3 * bytes)] {
            let unit = unit_of_known_digits(bytes, half, BANDWIDTH_UNITS);
            let number = known_digits_in_unit(bytes, half, unit, false);
            let whole = known_digits(bytes, half, BANDWIDTH_UNITS);
            assert_eq!(format!("{number}{}", unit.1), whole);
        }
    }
}
