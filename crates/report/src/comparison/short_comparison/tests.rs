//! Tests of the comparison on one screen.

use super::*;
use iosonde_result::compare::{ComparedSide, Measure, Ratio, Subject};

fn side(value: f64) -> ComparedSide {
    ComparedSide::from_value(value)
}

/// A row whose ratio is known to 2 %, and jointly for all rows to 30 %.
fn row(
    part: &str,
    measure: Measure,
    [a, b]: [f64; 2],
    verdict: ComparisonVerdict,
) -> ComparisonRow {
    let ratio = |share: f64| Ratio {
        value: b / a,
        interval: Some((b / a * (1.0 - share), b / a * (1.0 + share))),
    };
    ComparisonRow {
        part: part.to_owned(),
        subject: Subject::Read,
        measure,
        a: side(a),
        b: side(b),
        ratio: ratio(0.02),
        joint: ratio(0.3),
        paired: false,
        verdict,
    }
}

fn compared(rows: Vec<ComparisonRow>) -> Comparison {
    Comparison {
        rows,
        only_in_a: Vec::new(),
        only_in_b: Vec::new(),
        notes: Vec::new(),
    }
}

fn shown(comparison: &Comparison) -> String {
    let document = ComparisonDocument::new("old", "new", comparison);
    document.short_text(TextStyle::PLAIN)
}

/// Two parts: the second one has the larger difference.
fn slower() -> Comparison {
    use ComparisonVerdict::{NoDifferenceShown, Slower, Undecided};
    compared(vec![
        row("first", Measure::Iops, [2e5, 1.6e5], Slower),
        row("first", Measure::LatP50, [1e6, 1e6], NoDifferenceShown),
        row("second", Measure::LatP99, [1e6, 1.5e6], Slower),
        row("second", Measure::LatP50, [1e6, 1e6], Undecided),
    ])
}

#[test]
fn comparison_on_a_narrow_terminal_keeps_ratio_and_verdict() {
    for columns in [40, 48] {
        crate::text_table::set_columns(columns);
        let text = shown(&slower());
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= columns, "{text}");
        let row = text.lines().find(|line| line.contains("read p99"));
        let row = row.unwrap();
        assert!(row.contains(" 1.500 ") && row.ends_with("slower"), "{text}");
        assert!(!text.contains("1.470-"), "{text}");
    }
}

#[test]
fn verdict_comes_first_and_largest_difference_next() {
    insta::assert_snapshot!(shown(&slower()), @r"
    B is slower than A: A is 1.25 to 1.50 times as fast in 2 of 4 figures; not
    certain: 1 of 2 differences may be chance.

    A  old
    B  new

                     A       B B / A 95 % interval
    second
     read p99  ~1.0 ms ~1.5 ms 1.500   1.470-1.530 slower
    first
     read IOPS   ~200k   ~160k 0.800   0.784-0.816 slower

    1 more figure: no difference shown; 1 more figure: undecided. `--details` prints
    all figures.
    To decide undecided figures: use longer runs (`--runtime`), or run each side 3
    times with a label.
    ");
}

#[test]
fn rows_beyond_the_limit_are_counted() {
    let rows = (0..ROWS_MAX + 3).map(|index| {
        let b = 1e6 * (1.5 + index as f64);
        let part = format!("part {index}");
        row(&part, Measure::LatP99, [1e6, b], ComparisonVerdict::Slower)
    });
    let text = shown(&compared(rows.collect()));
    assert!(text.contains("3 more figures: slower."), "{text}");
    assert_eq!(text.matches(" slower\n").count(), ROWS_MAX);
    let at = |part: &str| text.find(part);
    assert!(at("part 14\n") < at("part 13\n"), "{text}");
    assert_eq!(at("part 2\n"), None, "{text}");
    let words: Vec<&str> = text.split_whitespace().collect();
    let certainty = "; all differences hold together with 95 % confidence.";
    assert_eq!(words.join(" ").matches(certainty).count(), 1, "{text}");
    // The verdict has left a terminal of 24 lines, so it is repeated at the end.
    let (_, end) = text.rsplit_once("\n\n").unwrap();
    let end = end.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(end.starts_with("B is slower than A: "), "{text}");
    assert!(end.ends_with(" in 15 of 15 figures."), "{text}");
    let screen = shown(&slower());
    assert_eq!(screen.matches("B is slower than A").count(), 1, "{screen}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

/// The verdict counts rows of both directions, and the table showed one.
#[test]
fn table_shows_rows_of_both_directions() {
    use ComparisonVerdict::{Faster, Slower};
    let slower = (0..ROWS_MAX + 3).map(|index| {
        let part = format!("slower {index}");
        row(
            &part,
            Measure::LatP99,
            [1e6, 1e6 * (2.0 + index as f64)],
            Slower,
        )
    });
    let faster = (0..4).map(|index| {
        let part = format!("faster {index}");
        row(
            &part,
            Measure::Iops,
            [1e5, 1e5 * (1.2 + 0.1 * f64::from(index))],
            Faster,
        )
    });
    let text = shown(&compared(slower.chain(faster).collect()));
    assert_eq!(
        text.matches(" slower\n").count(),
        ROWS_MAX - DIRECTION_ROWS_MIN
    );
    assert_eq!(text.matches(" faster\n").count(), DIRECTION_ROWS_MIN);
    assert!(
        text.contains("faster 3\n") && !text.contains("faster 0\n"),
        "{text}"
    );
    let hidden = "6 more figures: slower; 1 more figure: faster. `--details` prints all figures.";
    assert!(text.contains(hidden), "{text}");
}

#[test]
fn sides_without_difference_have_no_table() {
    use ComparisonVerdict::{NoDifferenceShown, Undecided};
    let equal = row("a", Measure::Iops, [1e5, 1e5], NoDifferenceShown);
    let text = shown(&compared(vec![equal.clone()]));
    assert!(
        text.starts_with("No difference shown in 1 figure.\n"),
        "{text}"
    );
    assert!(!text.contains("B / A"), "{text}");
    let unsure = row("b", Measure::Iops, [1e5, 1e5], Undecided);
    let text = shown(&compared(vec![equal, unsure]));
    assert!(
        text.starts_with("No difference shown: 1 of 2 figures undecided.\n"),
        "{text}"
    );
    let text = shown(&compared(Vec::new()));
    assert!(
        text.starts_with("A and B have no common figure.\n"),
        "{text}"
    );
    assert!(!text.contains("--details"), "{text}");
}

#[test]
fn undecided_rows_with_unlike_figures_name_the_apparent_difference() {
    use ComparisonVerdict::{NoDifferenceShown, Undecided};
    let start = |rows: Vec<ComparisonRow>| {
        let text = shown(&compared(rows));
        let sentence = text.split("\n\n").next().unwrap_or_default();
        let words: Vec<&str> = sentence.split_whitespace().collect();
        words.join(" ")
    };
    let slower = row("a", Measure::Iops, [763e3, 399.0], Undecided);
    assert_eq!(
        start(vec![slower.clone()]),
        "Undecided. B looks slower than A: A is 1912 times as fast in 1 of 1 figure, but their \
         intervals are missing or too wide."
    );
    let faster = row("b", Measure::LatP99, [3e6, 1e6], Undecided);
    let equal = row("c", Measure::Iops, [1e5, 1e5], NoDifferenceShown);
    let text = start(vec![faster.clone(), equal.clone()]);
    let expected = "Undecided. B looks faster than A: 3.00 times as fast in 1 of 2 figures, but";
    assert!(text.starts_with(expected), "{text}");
    let text = start(vec![slower, faster]);
    let expected =
        "Undecided. B looks 3.00 times as fast in 1 of 2 figures, A 1912 times in 1, but";
    assert!(text.starts_with(expected), "{text}");
    let alike = row("d", Measure::Iops, [1e5, 1.04e5], Undecided);
    let text = start(vec![equal, alike]);
    assert!(text.starts_with("No difference shown: 1 of 2"), "{text}");
}

#[test]
fn verdict_names_both_sides_if_each_is_faster_somewhere() {
    use ComparisonVerdict::{Faster, Slower};
    let rows = vec![
        row("a", Measure::Iops, [1e5, 2e5], Faster),
        row("b", Measure::Iops, [3e5, 1e5], Slower),
    ];
    let text = shown(&compared(rows));
    let start = "Neither is faster in all figures: B is 2.00 times as fast in 1 of 2 figures, A";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn colour_repeats_the_verdict_and_names_are_escaped() {
    let comparison = slower();
    let document = ComparisonDocument::new("\u{1b}[31mold", "new", &comparison);
    let style = TextStyle::for_locale("C", true);
    let text = document.short_text(style);
    assert!(
        text.starts_with("\u{1b}[31mB is slower\u{1b}[0m than A"),
        "{text}"
    );
    assert!(text.contains(" \u{1b}[31mslower\u{1b}[0m\n"), "{text}");
    assert!(text.contains("A  \\u001b[31mold\n"), "{text}");
}

#[test]
fn comparison_of_two_kinds_does_not_name_other_parts() {
    let mut comparison = slower();
    comparison.only_in_a = vec!["third".to_owned()];
    assert!(shown(&comparison).contains("Only A has: third."));
    let mut document = ComparisonDocument::new("old", "new", &comparison);
    document.is_of_two_kinds = true;
    assert!(!document.short_text(TextStyle::PLAIN).contains("third"));
}
