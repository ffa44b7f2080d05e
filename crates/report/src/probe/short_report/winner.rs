//! Several targets: which wins, by how much, and whether that is certain.

use crate::comparison::advantage::{
    advantage, certainty_of, differs, doubt_of, is_certain, range, range_of_advantages,
};
use crate::hanging_lines::{HangingLines, fitted};
use crate::known_digits::{known_percentile, with_interval};
use crate::probe::{device, row, side_by_side};
use crate::text_style::TextStyle;
use crate::text_table::{column_widths, columns, is_narrow};
use iosonde_job::escape_control_characters;
use iosonde_result::compare::{Comparison, ComparisonRow, ComparisonVerdict, Measure};
use iosonde_study::probe::{PhaseFigure, ProbePhase, ProbeResult, most_of};
use iosonde_study::words;

/// Most lines of one comparison in words.
const SENTENCE_LINES: usize = 3;
/// Fewest columns for the faster side: `A 1.09 to 1.15 times`.
const FASTER_COLUMNS_MIN: usize = 20;
/// Stands before the faster side on a line of its own.
const FASTER: &str = "  faster: ";
/// Cells of a line: name, depth, both targets, and the faster one.
type PairCells = [String; 5];

/// Lines above the reports of several targets. None for a single target.
pub(super) fn lines(results: &[ProbeResult], style: TextStyle) -> Vec<String> {
    if results.len() < 2 {
        return Vec::new();
    }
    let width = columns();
    let named = |(index, result): (usize, &ProbeResult)| {
        fitted(
            &format!("{}  {}", target_letter(index), result.target),
            width,
        )
    };
    let mut lines: Vec<String> = results.iter().enumerate().map(named).collect();
    lines.push(String::new());
    lines.extend(verdict_lines(results, false));
    lines.extend(shared_device_lines(results));
    lines.push(String::new());
    if let [first, second] = results {
        for (_, comparison) in side_by_side::comparisons(results) {
            let headlines = side_by_side::of_headlines(first, comparison);
            lines.extend(table((first, second), &headlines, style));
        }
        return lines;
    }
    let table = side_by_side::headlines(results);
    let table = escape_control_characters(&table);
    lines.extend(table.lines().map(|line| line.trim_end().to_owned()));
    lines
}

/// The winner of two targets, or the faster side of each further target and the first. None for a
/// single target. Lines that repeat others have doubts, but no confidence.
pub(super) fn verdict_lines(results: &[ProbeResult], is_repeated: bool) -> Vec<String> {
    let is_pair = results.len() == 2;
    let mut lines = Vec::new();
    for (index, (_, comparison)) in side_by_side::comparisons(results).into_iter().enumerate() {
        let certainty = match is_repeated {
            true => doubt_of(&comparison),
            false => Some(certainty_of(&comparison)),
        };
        let headlines = side_by_side::of_headlines(&results[0], comparison);
        let second = target_letter(index + 1);
        let name = match is_pair {
            true => "winner".to_owned(),
            false => format!("A and {second}"),
        };
        let sentence = winner_in_words(&headlines, ["A", &second], certainty.as_deref());
        lines.extend(HangingLines::new(&name, &sentence, SENTENCE_LINES).lines);
    }
    lines
}

/// Names each device whose targets have different verdicts. Details name each shared device.
fn shared_device_lines(results: &[ProbeResult]) -> Vec<String> {
    let verdict = |index: &usize| results[*index].classification.durable_writes;
    let line = |mut group: Vec<usize>| -> Vec<String> {
        group.retain(|index| verdict(index).is_some());
        let is_same = |index: &usize| verdict(index) == verdict(&group[0]);
        if group.iter().all(is_same) {
            return Vec::new();
        }
        let letters: Vec<String> = group.iter().map(|index| target_letter(*index)).collect();
        let targets = match &letters[..] {
            [first, second] => format!("{first} and {second} are both"),
            all => format!("{} are all", all.join(", ")),
        };
        let devices = device::devices(&results[group[0]]).join(", ");
        let text = format!("{targets} on {devices}, but their verdicts differ");
        HangingLines::new("note", &text, SENTENCE_LINES).lines
    };
    let groups = device::shared_groups(results).into_iter();
    groups.flat_map(line).collect()
}

/// Short name of a target: `A`, or `T27` beyond the alphabet.
#[must_use]
pub fn target_letter(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index @ ..26) => char::from(b'A' + index).to_string(),
        _ => format!("T{}", index + 1),
    }
}

/// Names the winner of two targets with these names, how much faster it is, and how certain that
/// is. Only differences that hold together make a winner. `certainty` is that of all compared
/// figures. The maxima among the figures are counted: tables of main figures have none.
pub(crate) fn winner_in_words(
    headlines: &Comparison,
    [first, second]: [&str; 2],
    certainty: Option<&str>,
) -> String {
    let rows = &headlines.rows;
    let certain: Vec<&ComparisonRow> = rows.iter().filter(|row| is_certain(row)).collect();
    let wins = |verdict| certain.iter().filter(|row| row.verdict == verdict).count();
    let first_wins = wins(ComparisonVerdict::Slower);
    let second_wins = wins(ComparisonVerdict::Faster);
    let is_maximum =
        |row: &&ComparisonRow| row::ORDER.iter().any(|phase| row.part == most_of(*phase));
    let maxima = match rows.iter().filter(is_maximum).count() {
        0 => String::new(),
        1 => " (1 of them a maximum)".to_owned(),
        count => format!(" ({count} of them maxima)"),
    };
    let all = format!("{}{maxima}", words::counted(rows.len(), "figure"));
    let who = match (first_wins, second_wins) {
        (0, 0) => return without_winner(headlines),
        (wins, 0) => format!("{first} is faster in {wins} of {all}"),
        (0, wins) => format!("{second} is faster in {wins} of {all}"),
        _ => format!("none: {first} is faster in {first_wins} of {all}, {second} in {second_wins}"),
    };
    let by = range_of_advantages(certain.iter().copied());
    let certainty = certainty.map_or(String::new(), |certainty| format!("; {certainty}"));
    format!("{who}, {by} as fast{certainty}")
}

/// The reason why no target wins: no figure differs, or each difference may be chance.
fn without_winner(headlines: &Comparison) -> String {
    let rows = &headlines.rows;
    let all = words::counted(rows.len(), "figure");
    let differing = rows.iter().filter(|row| differs(row)).count();
    match (differing, headlines.count(ComparisonVerdict::Undecided)) {
        (0, 0) => format!("none: no difference shown in {all}"),
        (0, undecided) => format!("none: no difference shown, {undecided} of {all} undecided"),
        (1, _) => format!("none: the difference in 1 of {all} may be chance"),
        _ => format!("none: the differences in {differing} of {all} may be chance"),
    }
}

/// The main figure of each phase on both sides, and the faster side.
fn table(
    (first, second): (&ProbeResult, &ProbeResult),
    headlines: &Comparison,
    style: TextStyle,
) -> Vec<String> {
    let mut rows: Vec<PairCells> = vec![["", "depth", "A", "B", "faster"].map(str::to_owned)];
    let mut compared = Vec::new();
    for phase in row::ORDER {
        let row = headlines.rows.iter().find(|row| row.part == phase.key());
        let figures = first.figure(phase).zip(second.figure(phase));
        let Some((row, (a, b))) = row.zip(figures) else {
            continue;
        };
        let value = |figure| main_figure(figure, row.measure, style);
        rows.push([
            row::short_label(a),
            depths(phase, a, b),
            value(a),
            value(b),
            String::new(),
        ]);
        compared.push(row);
    }
    let widths = column_widths(&rows);
    // Five blanks stand between the columns.
    let used = widths[..4].iter().sum::<usize>() + 5;
    if is_narrow() && columns() < used + FASTER_COLUMNS_MIN {
        return blocks(&rows[1..], &compared);
    }
    let room = columns().saturating_sub(used);
    for (cells, row) in rows.iter_mut().skip(1).zip(compared) {
        cells[4] = faster_side_within(row, ["A", "B"], room);
    }
    let line = |[name, depth, a, b, faster]: &PairCells| {
        let [of_name, of_depth, of_a, of_b, _] = widths;
        let line = format!("{name:<of_name$} {depth:>of_depth$} {a:>of_a$} {b:>of_b$}  {faster}");
        fitted(&line, columns())
    };
    rows.iter().map(line).collect()
}

/// The rows of the table for a narrow terminal: the figures are on lines below the name.
fn blocks(rows: &[PairCells], compared: &[&ComparisonRow]) -> Vec<String> {
    let block = |([name, depth, a, b, _], row): (&PairCells, &&ComparisonRow)| {
        let room = columns().saturating_sub(FASTER.len());
        let faster = faster_side_within(row, ["A", "B"], room);
        [
            format!("{name}, depth {depth}"),
            format!("  A  {a}"),
            format!("  B  {b}"),
            format!("{FASTER}{faster}"),
        ]
    };
    rows.iter().zip(compared).flat_map(block).collect()
}

/// Depth of both sides, which differ on slow targets: `64`, `64, 8`.
fn depths(phase: ProbePhase, a: &PhaseFigure, b: &PhaseFigure) -> String {
    debug_assert!(a.phase == phase && b.phase == phase);
    match a.iodepth == b.iodepth {
        true => a.iodepth.to_string(),
        false => format!("{}, {}", a.iodepth, b.iodepth),
    }
}

fn main_figure(figure: &PhaseFigure, measure: Measure, style: TextStyle) -> String {
    let latency = row::latency(figure);
    if measure == Measure::LatP50 {
        let p50 = known_percentile(latency.p50_ns, latency.p50_between_ns);
        return format!("p50 {p50}");
    }
    let (rate, units) = row::main_rate(figure);
    with_interval(rate.mean, rate.error, units, style.plus_minus())
}

/// `A 1.09 to 1.15 times`: the name of the faster side and the interval of its advantage.
pub(crate) fn faster_side(row: &ComparisonRow, names: [&str; 2]) -> String {
    match faster_side_and_advantage(row, names) {
        Some((side, advantage)) => format!("{side} {advantage}"),
        None => row.verdict.words().to_owned(),
    }
}

/// The faster side and the interval of its advantage. `None`: no side is known to be faster.
fn faster_side_and_advantage<'a>(
    row: &ComparisonRow,
    [first, second]: [&'a str; 2],
) -> Option<(&'a str, String)> {
    let side = match row.verdict {
        ComparisonVerdict::Slower => first,
        ComparisonVerdict::Faster => second,
        ComparisonVerdict::NoDifferenceShown | ComparisonVerdict::Undecided => return None,
    };
    let (low, high) = row
        .ratio
        .interval
        .unwrap_or((row.ratio.value, row.ratio.value));
    let [one, other] = [low, high].map(advantage);
    let (least, most) = (one.min(other), one.max(other));
    // Only the end that decides the side is known of a wide interval.
    let advantage = match most > 2.0 * advantage(row.ratio.value) {
        true => format!("over {} times", words::three_digits(least)),
        false => range(least, most),
    };
    Some((side, advantage))
}

/// Follows a faster side by intervals of its own that may not hold together with the others.
/// Otherwise empty.
pub(crate) fn reservation(row: &ComparisonRow) -> &'static str {
    match differs(row) && !is_certain(row) {
        true => ", may be chance",
        false => "",
    }
}

/// The faster side with its reservation in `room` columns. The interval gives way.
fn faster_side_within(row: &ComparisonRow, names: [&str; 2], room: usize) -> String {
    let (text, reservation) = (faster_side(row, names), reservation(row));
    let is_long = text.chars().count() + reservation.len() > room;
    match faster_side_and_advantage(row, names) {
        Some((side, _)) if is_long && !reservation.is_empty() => format!("{side}{reservation}"),
        _ => format!("{text}{reservation}"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use iosonde_result::compare::{ComparedSide, Ratio, Subject};

    #[test]
    fn letter_beyond_the_alphabet_is_a_number() {
        assert_eq!(target_letter(0), "A");
        assert_eq!(target_letter(25), "Z");
        assert_eq!(target_letter(26), "T27");
    }

    /// Both rows differ by their own intervals. `joint` are their intervals that hold together.
    pub(crate) fn two_rows(joint: [(f64, f64); 2]) -> Comparison {
        let side = ComparedSide::from_value(1.0);
        let ratio = |value, interval| Ratio {
            value,
            interval: Some(interval),
        };
        let rows = [1.2, 1.5].into_iter().zip(joint);
        let rows = rows.map(|(value, joint)| ComparisonRow {
            part: "a".to_owned(),
            subject: Subject::Read,
            measure: Measure::Iops,
            a: side.clone(),
            b: side.clone(),
            ratio: ratio(value, (1.1, 1.6)),
            joint: ratio(value, joint),
            paired: false,
            verdict: ComparisonVerdict::Faster,
        });
        Comparison {
            rows: rows.collect(),
            only_in_a: Vec::new(),
            only_in_b: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn winner_needs_a_difference_beyond_chance() {
        let words = |comparison: &Comparison| {
            let certainty = certainty_of(comparison);
            winner_in_words(comparison, ["A", "B"], Some(&certainty))
        };
        let mut comparison = two_rows([(0.9, 1.7), (0.9, 1.7)]);
        assert_eq!(
            words(&comparison),
            "none: the differences in 2 of 2 figures may be chance"
        );
        comparison.rows[1].verdict = ComparisonVerdict::NoDifferenceShown;
        assert_eq!(
            words(&comparison),
            "none: the difference in 1 of 2 figures may be chance"
        );
        assert_eq!(
            words(&two_rows([(0.9, 1.7), (1.05, 1.7)])),
            "B is faster in 1 of 2 figures, 1.50 times as fast; \
             not certain: 1 of 2 differences may be chance"
        );
        // The table of main figures has no row for a maximum.
        let mut with_maximum = two_rows([(1.05, 1.7), (1.05, 1.7)]);
        with_maximum.rows[0].part = most_of(ProbePhase::RandomRead);
        assert_eq!(
            winner_in_words(&with_maximum, ["A", "B"], None),
            "B is faster in 2 of 2 figures (1 of them a maximum), 1.20 to 1.50 times as fast"
        );
    }

    #[test]
    fn row_that_may_be_chance_says_so_in_each_width() {
        let comparison = two_rows([(0.9, 1.7), (1.05, 1.7)]);
        let shown = |index: usize, room| {
            let row: &ComparisonRow = &comparison.rows[index];
            faster_side_within(row, ["A", "B"], room)
        };
        assert_eq!(shown(0, 40), "B 1.10 to 1.60 times, may be chance");
        assert_eq!(shown(0, 22), "B, may be chance");
        assert_eq!(shown(1, 22), "B 1.10 to 1.60 times");
    }

    #[test]
    fn comparison_without_rows_has_no_winner() {
        let nothing = Comparison {
            rows: Vec::new(),
            only_in_a: Vec::new(),
            only_in_b: Vec::new(),
            notes: Vec::new(),
        };
        let words = winner_in_words(&nothing, ["A", "B"], None);
        assert_eq!(words, "none: no difference shown in 0 figures");
    }
}
