//! Figures of a suite's workloads: one line per part and direction, each rate with its interval.

use crate::figures::{LegendMarks, UNSETTLED, UNSETTLED_LEGEND, needed_legends};
use crate::intervals;
use crate::known_digits::{
    LATENCY_UNITS, RATE_UNITS, bandwidth_of_rate, known_digits, lacks_interval, with_interval,
};
use crate::markdown_table::{markdown_legends, markdown_table};
use crate::text_table::{
    UNBROKEN_BLANK, aligned_columns, columns, fill_table, hide_columns, keep_whole, plain, render,
    wrapped,
};
use iosonde_job::plan::{ReadWrite, ReadWriteMode};
use iosonde_result::compare::{
    ComparedSide, Measure, MeasuredResult, ResultPart, Subject, figure_of,
};
use iosonde_suite::{SuiteResult, run_repetitions};

/// Headings of the table. The first two columns are aligned to the left.
const HEAD: [&str; 8] = [
    "",
    "rw",
    "bs",
    "IOPS",
    "bandwidth",
    "p50",
    "p99",
    "sync p99",
];
/// Number of columns that are aligned to the left.
const LEFT_COLUMNS: usize = 2;
/// Index of the first column of figures, the rate.
const RATE_COLUMN: usize = 3;
/// Columns that a narrow terminal does not show, the least important first: block size, bandwidth,
/// p50, pattern, p99 of syncs.
const LEAST_IMPORTANT: [usize; 5] = [2, 4, 5, 1, 7];
/// Cell of a figure that was not measured.
const NOT_MEASURED_CELL: &str = "-";

/// A line of figures with their marks: all repetitions of a part in one direction.
type FigureRow = ([String; HEAD.len()], LegendMarks);

/// Returns the table with its legend. Empty without figures. `plus_minus` stands before half an
/// interval.
pub(super) fn table(result: &SuiteResult, plus_minus: &str) -> String {
    let rows = figure_table_rows(result, plus_minus);
    if rows.is_empty() {
        return String::new();
    }
    let has_sync = rows
        .iter()
        .any(|(cells, _)| !cells[HEAD.len() - 1].is_empty());
    let count = HEAD.len() - usize::from(!has_sync);
    // A figure stays on one line.
    let unbroken = rows.iter().map(|(cells, _)| {
        let mut cells = cells.clone();
        keep_whole(&mut cells[RATE_COLUMN..]);
        cells
    });
    let head = HEAD.map(|title| title.replace(' ', UNBROKEN_BLANK));
    let head: Vec<&str> = head[..count].iter().map(String::as_str).collect();
    let columns = aligned_columns(&head, LEFT_COLUMNS);
    let mut table = fill_table(plain(), &columns, unbroken);
    let gap = column_gap(&rows, count);
    for column in table.column_iter_mut() {
        column.set_padding((1, gap - 1));
    }
    hide_columns(&mut table, &LEAST_IMPORTANT);
    let mut text = format!("\n{}", render(&table).replace(UNBROKEN_BLANK, " "));
    for legend in legends(&rows) {
        text.push_str(&wrapped(legend));
    }
    text
}

/// Explains the signs that the rows hold.
fn legends(rows: &[FigureRow]) -> Vec<&'static str> {
    needed_legends(rows.iter().map(|(_, marks)| *marks), UNSETTLED_LEGEND)
}

/// Returns the table as Markdown. Empty without figures.
pub(super) fn markdown(result: &SuiteResult) -> String {
    let rows = figure_table_rows(result, "±");
    if rows.is_empty() {
        return String::new();
    }
    let legends = markdown_legends(&legends(&rows));
    let cells = rows.into_iter().map(|(cells, _)| cells);
    markdown_table(&aligned_columns(&HEAD, LEFT_COLUMNS), cells) + &legends
}

/// Blanks between two columns: two if the table has room for them, else one.
fn column_gap(rows: &[FigureRow], count: usize) -> u16 {
    let width = |index: usize| {
        let cells = rows.iter().map(|(cells, _)| cells[index].chars().count());
        cells.max().unwrap_or(0).max(HEAD[index].len())
    };
    let widths: usize = (0..count).map(width).sum();
    match widths + 2 * count <= columns() {
        true => 2,
        false => 1,
    }
}

fn figure_table_rows(result: &SuiteResult, plus_minus: &str) -> Vec<FigureRow> {
    let all = run_repetitions(result);
    let mut rows: Vec<FigureRow> = Vec::new();
    let mut met: Vec<&str> = Vec::new();
    for part in all.iter().flat_map(|measured| &measured.parts) {
        if met.contains(&part.name.as_str()) || part.name == "layout" {
            continue;
        }
        met.push(&part.name);
        rows.extend(rows_of(part, &all, plus_minus));
    }
    rows
}

fn rows_of(part: &ResultPart, all: &[MeasuredResult], plus_minus: &str) -> Vec<FigureRow> {
    let side_of = |subject, measure| figure_of(all, &part.name, subject, measure);
    // A result of fio may have only the completion latency.
    let latency = |subject: Subject, measure: Measure| {
        let completion = Measure::ALL
            .into_iter()
            .find(|each| each.of_total() == Some(measure));
        side_of(subject, measure).or_else(|| side_of(subject, completion?))
    };
    let sync = side_of(Subject::Sync, Measure::LatP99);
    let not_measured = || NOT_MEASURED_CELL.to_owned();
    let rw = ReadWrite::from_rw(&part.pattern.rw);
    let both = rw.is_some_and(|rw| rw.mode == ReadWriteMode::ReadWrite);
    let bs = part.pattern.block_bytes();
    let bs = bs.map_or(part.pattern.bs.clone(), iosonde_study::sweep::size_name);
    let mut rows: Vec<FigureRow> = Vec::new();
    for subject in [Subject::Read, Subject::Write, Subject::Trim, Subject::Mixed] {
        let Some(iops) = side_of(subject, Measure::Iops) else {
            continue;
        };
        let half = half_width(&iops);
        let mark = if iops.unsettled { UNSETTLED } else { "" };
        let bytes = side_of(subject, Measure::BytesPerS);
        let bandwidth = bytes.map(|bytes| bandwidth_of_rate(bytes.value, iops.value, half));
        let [p50, p99] = [Measure::LatP50, Measure::LatP99].map(|each| latency(subject, each));
        let sync = sync.as_ref().filter(|_| subject != Subject::Read);
        // The bandwidth has the interval of the rate.
        let mut figures = [Some(&iops), p50.as_ref(), p99.as_ref(), sync]
            .into_iter()
            .flatten();
        let marks = LegendMarks {
            is_unsettled: iops.unsettled,
            lacks_interval: figures.any(|side| lacks_interval(side.value, half_width(side))),
        };
        let cells = [
            match rows.is_empty() {
                true => part.name.clone(),
                false => String::new(),
            },
            match both {
                true => subject.name().to_owned(),
                false => part.pattern.rw.clone(),
            },
            bs.clone(),
            with_interval(iops.value, half, RATE_UNITS, plus_minus) + mark,
            bandwidth.unwrap_or_else(not_measured),
            p50.as_ref().map_or_else(not_measured, latency_cell),
            p99.as_ref().map_or_else(not_measured, latency_cell),
            sync.map_or_else(String::new, latency_cell),
        ];
        rows.push((cells, marks));
    }
    rows
}

fn latency_cell(side: &ComparedSide) -> String {
    known_digits(side.value, half_width(side), LATENCY_UNITS)
}

/// Half the interval of a figure. `None` if the interval is not informative.
fn half_width(side: &ComparedSide) -> Option<f64> {
    let bounds = side.bounds?;
    intervals::half_width(side.value, Some((bounds.low, bounds.high)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::compare::{Bounds, Figure, IntervalBasis, IoPattern};
    use iosonde_suite::StepResult;

    fn figure(measure: Measure, value: f64, half: Option<f64>, settled: bool) -> Figure {
        let bounds = half.map(|half| Bounds {
            low: value - half,
            high: value + half,
            freedom: 20.0,
            repeat_factor: 1.0,
            basis: IntervalBasis::Series,
        });
        Figure {
            subject: Subject::Write,
            measure,
            value,
            bounds,
            settled: Some(settled),
        }
    }

    /// A suite with one workload, whose rate has this half of an interval.
    fn suite_of(half: Option<f64>, settled: bool) -> SuiteResult {
        let latency = |measure, ns: f64, half| figure(measure, ns, half, true);
        let part = ResultPart {
            name: "wal".to_owned(),
            pattern: IoPattern {
                rw: "write".to_owned(),
                bs: "2300".to_owned(),
                iodepth: 1,
                numjobs: 1,
            },
            figures: vec![
                figure(Measure::Iops, 3140.0, half, settled),
                figure(Measure::BytesPerS, 3140.0 * 2300.0, half, settled),
                latency(Measure::LatP50, 302_400.0, Some(2000.0)),
                latency(Measure::LatP99, 1_362_000.0, None),
            ],
            role: Default::default(),
        };
        let step = StepResult {
            parts: vec![part],
            ..StepResult::without_figures("wal", "wal", 1)
        };
        SuiteResult::from_steps("etcd", "/data", vec![step])
    }

    #[test]
    fn rate_has_its_interval_and_only_known_digits() {
        let text = table(&suite_of(Some(890.0), true), "±");
        let row = text.lines().nth(2).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        // Half the interval ends at its second digit, and the p99 has no interval.
        assert_eq!(
            cells,
            [
                "wal", "write", "2300", "3.14k", "±0.89k", "6.9", "MiB/s", "302", "us", "~1.4",
                "ms"
            ]
        );
        assert!(text.ends_with("\nA figure with ~ has no known interval.\n"));
        assert!(!text.contains("sync p99") && !text.contains('*'), "{text}");
        let ascii = table(&suite_of(Some(890.0), true), "+-");
        assert!(ascii.is_ascii() && ascii.contains("3.14k +-0.89k"));
    }

    #[test]
    fn rate_without_an_interval_has_two_digits() {
        for half in [None, Some(4000.0)] {
            let text = table(&suite_of(half, false), "±");
            assert!(text.contains(" ~3.1k* "), "{text}");
            assert!(text.contains(" ~6.9 MiB/s "), "{text}");
            assert!(text.contains(UNSETTLED_LEGEND), "{text}");
            let document = markdown(&suite_of(half, false));
            assert!(
                document.contains("| \\~3.1k* | \\~6.9 MiB/s |"),
                "{document}"
            );
            let legends = "\n\\* not steady: the rate drifted or jumped during the run.\n\n\
                           A figure with \\~ has no known interval.\n";
            assert!(document.ends_with(legends), "{document}");
        }
    }

    #[test]
    fn narrow_terminal_shows_rate_and_p99_of_a_suite() {
        crate::text_table::set_columns(40);
        let text = table(&suite_of(None, true), "±");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= 40, "{text}");
        assert!(!text.contains("bandwidth"), "{text}");
        assert!(text.contains("~3.1k"), "{text}");
        assert!(text.contains("~1.4 ms"), "{text}");
    }

    #[test]
    fn table_with_long_names_keeps_figures_whole() {
        let mut result = suite_of(Some(890.0), true);
        let part = &mut result.steps[0].parts[0];
        part.name = "disk-randwrite-8".to_owned();
        part.pattern.rw = "randwrite".to_owned();
        let mut sync = figure(Measure::LatP99, 2e6, Some(1e4), true);
        sync.subject = Subject::Sync;
        part.figures.push(sync);
        let text = table(&result, "±");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= 80, "{text}");
        let row = text.lines().find(|line| line.contains("randwrite-8"));
        let row = row.unwrap();
        assert!(row.contains("3.14k ±0.89k"), "{text}");
        assert!(
            row.contains("6.9 MiB/s") && row.ends_with("2.00 ms"),
            "{text}"
        );
    }
}
