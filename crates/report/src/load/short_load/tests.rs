use super::super::tests::{at, measured, options};
use super::*;
use crate::load::objective;
use iosonde_study::load::LoadOptions;
use iosonde_study::probe::StudyTargetKind;

const UTF8: TextStyle = TextStyle {
    utf8: true,
    color: false,
};
const ASCII: TextStyle = TextStyle {
    utf8: false,
    color: false,
};
/// Columns before the plot.
const MARGIN_COLUMNS: usize = 10;

/// Report of a result that is stored.
fn short(result: &LoadResult, style: TextStyle) -> String {
    super::short(result, (Some("8ee054"), ""), style)
}

fn check_layout(result: &LoadResult) {
    for style in [UTF8, ASCII] {
        let text = short(result, style);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap_or(0) <= 80, "{text}");
        assert!(style.utf8 || text.is_ascii(), "{text}");
        let chart = LatencyChart::from_result(result);
        let knee = KneeRate::of_result(result);
        let lines = chart.map(|chart| chart.lines(knee.as_ref(), style).len());
        assert!(lines.unwrap_or(0) <= 12, "{text}");
    }
}

#[test]
fn knee_mark_stands_at_the_column_of_the_knee() {
    let result = measured("net-iops-cap", &options());
    check_layout(&result);
    let knee = KneeRate::of_result(&result).unwrap();
    assert!((3400.0..3600.0).contains(&knee.rate), "{knee:?}");
    // The page marks the same knee.
    assert_eq!(crate::load::knee_per_s(&result), Some(knee.rate));
    let drawn = result.points.iter();
    let drawn = drawn.filter(|point| point.percentile_ns(50.0).is_some());
    let drawn: Vec<f64> = drawn.map(|point| point.offered.total()).collect();
    let rates = || drawn.iter().copied();
    let (low, high) = (
        rates().fold(f64::MAX, f64::min),
        rates().fold(0.0, f64::max),
    );
    let share = (knee.rate - low) / (high - low);
    let column = MARGIN_COLUMNS + (share * 67.0).round() as usize;
    let text = short(&result, UTF8);
    let marked = text.lines().find(|line| line.contains('▲')).unwrap();
    assert_eq!(
        marked.chars().position(|sign| sign == '▲'),
        Some(column),
        "{text}"
    );
    let has_point = |line: &str| {
        let sign = line.chars().nth(column);
        line.contains('│') && matches!(sign, Some('●' | '◉'))
    };
    assert!(text.lines().any(has_point), "{text}");
}

#[test]
fn table_of_a_long_study_is_left_to_details() {
    let result = measured("net-iops-cap", &options());
    let text = short(&result, UTF8);
    assert!(text.lines().count() <= 25, "{text}");
    assert!(!text.contains("p99.9"), "{text}");
    let rates = result.points.len();
    let rates = format!("\ntable      {rates} rates: iosonde show 8ee054\n");
    assert!(text.contains(&rates), "{text}");
    let knee = "\nknee       near 3.50k IOPS (70 % of capacity): p99 is ";
    assert!(text.contains(knee), "{text}");
    assert!(
        text.contains("\nslo        p99 <= 3.00 ms: met up to "),
        "{text}"
    );
    assert!(text.contains("× fell behind"), "{text}");
}

#[test]
fn answers_with_their_latency_precede_the_chart() {
    let result = measured("net-iops-cap", &options());
    let text = short(&result, UTF8);
    let position = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    let parts = [
        "\nslo ",
        " IOPS (p99 ",
        "\nknee ",
        "log scale: ",
        "\ntable ",
    ];
    assert!(parts.map(position).is_sorted(), "{text}");
    assert!(text.contains("╌ objective p99 <= 3.00 ms ╌"), "{text}");
}

#[test]
fn narrow_terminal_shows_answers_to_their_last_word() {
    let result = measured("net-iops-cap", &options());
    let knee = KneeRate::of_result(&result).unwrap();
    let slo = objective(&result, &result.objectives[0]);
    let answers = format!("slo {slo} knee {}", knee.sentence(result.capacity_iops));
    for columns in [60, 40] {
        crate::text_table::set_columns(columns);
        let lines = sections(&result, Some(&knee), true);
        let widest = lines.iter().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= columns, "{lines:?}");
        let text = lines.join(" ");
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words.join(" "), answers);
    }
}

#[test]
fn head_says_that_the_device_is_simulated() {
    let mut result = measured("net-iops-cap", &at(1000.0, &[]));
    let start = "sim:net-iops-cap: a simulated device; 4k random reads, ";
    assert!(short(&result, UTF8).starts_with(start));
    assert!(crate::load::table(&result).starts_with(start));
    result.kind = StudyTargetKind::Directory { free_bytes: 1 };
    assert!(!short(&result, UTF8).contains("simulated"));
}

#[test]
fn load_report_ends_with_the_stored_result() {
    let result = measured("net-iops-cap", &at(1000.0, &[]));
    let line = "\nresult     8ee054: iosonde report 8ee054 -o report.html\n";
    assert!(short(&result, UTF8).ends_with(line));
    let text = super::short(&result, (None, ""), UTF8);
    assert!(text.ends_with("\nresult     not stored\n"), "{text}");
    let text = super::short(&result, (Some("8ee054"), " --store x.db"), UTF8);
    assert!(text.ends_with(" -o report.html --store x.db\n"), "{text}");
}

#[test]
fn load_of_few_rates_is_shown_as_a_table() {
    let one = measured("net-iops-cap", &at(1000.0, &[]));
    let text = short(&one, UTF8);
    assert!(text.contains("p99.9") && !text.contains('●'), "{text}");
    assert!(!text.contains("knee"), "{text}");
    check_layout(&one);
    let three = LoadOptions {
        rates: vec![1000.0, 2000.0, 3000.0],
        ..at(0.0, &[])
    };
    let result = measured("net-iops-cap", &three);
    let text = short(&result, UTF8);
    assert!(text.contains("p99.9") && text.contains('●'), "{text}");
    assert!(text.lines().count() <= 25, "{text}");
    check_layout(&result);
}

#[test]
fn long_target_and_notes_stay_within_80_columns() {
    let mut result = measured("net-iops-cap", &at(1000.0, &["p99=3ms"]));
    result.target = format!("/mnt/{}\u{1b}[31m", "x".repeat(300));
    result.notes = vec!["note ".repeat(100); 3];
    check_layout(&result);
    assert!(!short(&result, UTF8).contains('\u{1b}'));
    assert!(short(&result, UTF8).contains("more note"));
}

#[test]
fn caution_on_memory_leaves_room_for_the_legend() {
    let mut result = measured("net-iops-cap", &at(9000.0, &[]));
    result.points[0].runs = 3;
    result.in_memory = Some("memory (tmpfs)".to_owned());
    let text = short(&result, UTF8);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    for note in [
        "Rates near the bound of an objective have the I/Os of up to 3 runs.",
        "* fell behind: the backlog",
        "This is memory (tmpfs): its data does not survive a restart.",
    ] {
        assert!(text.contains(note), "{note}: {text}");
    }
    assert!(!text.contains("more note"), "{text}");
}
