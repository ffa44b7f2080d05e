//! Report of a test of SNIA's specification (PTS), in each format.

use crate::csv::csv_line;
use crate::early_ending;
use crate::json_document::{PROGRAM, json_text};
use crate::markdown_table::{markdown_paragraphs, markdown_table};
use crate::text_table::{self, aligned_columns, paragraphs, wrapped};
use crate::unique;
use iosonde_study::pts::{
    PtsCell, PtsDocument, PtsResult, PtsTest, PtsWorkload, SeriesResult, Tracked, WINDOW,
};
use iosonde_study::sweep::size_name;
use iosonde_study::words;

/// Maximum number of rows in the table of rounds. Of more rounds, some are left out.
const MOST_ROWS: usize = 30;
/// Width of a round's bar, in columns, unless the terminal is narrower. A wide one adds columns.
const BAR: usize = 30;
/// Columns before the bar of a round: number, mark, figure, and blanks.
const ROUND_COLUMNS: usize = 23;
/// Columns of a block size, and fewest columns of a figure.
const BLOCK_COLUMNS: usize = 7;
const FIGURE_COLUMNS_MIN: usize = 9;

/// Returns the report as text of at most 80 columns.
pub fn table(result: &PtsResult) -> String {
    let mut text = wrapped(&headline(result));
    for series in &result.series {
        text.push_str(&format!("\n{}", wrapped(&settled(result, series))));
        if series.rounds.is_empty() {
            continue;
        }
        if result.options.test != PtsTest::WriteSaturation {
            for (title, grid) in grids(result, series) {
                text.push_str(&format!("\n{}{}", wrapped(&title), columns(&grid)));
            }
        }
        text.push_str(&rounds(series));
    }
    text + &paragraphs(&notes(result))
}

/// Returns Markdown tables for a report or an issue.
pub fn markdown(result: &PtsResult) -> String {
    let mut text = format!(
        "## SNIA PTS, {}\n\n{}\n",
        result.options.test.name(),
        headline(result)
    );
    for series in &result.series {
        text.push_str(&format!("\n{}\n", settled(result, series)));
        if series.rounds.is_empty() {
            continue;
        }
        for (title, grid) in grids(result, series) {
            let Some((head, rows)) = grid.split_first() else {
                continue;
            };
            let head: Vec<&str> = head.iter().map(String::as_str).collect();
            let table = markdown_table(&aligned_columns(&head, 0), rows);
            text.push_str(&format!("\n### {title}\n\n{table}"));
        }
    }
    text + &markdown_paragraphs(&notes(result))
}

/// CSV with one line per workload of each round.
pub fn pts_csv(result: &PtsResult) -> String {
    let mut text =
        "series,round,in_window,read_percent,block_bytes,iops,bytes_per_s,mean_ns,p99_ns,\
                    p99_9_ns,max_ns,written_bytes\n"
            .to_owned();
    for (number, series) in result.series.iter().enumerate() {
        let window = series.window();
        for (index, round) in series.rounds.iter().enumerate() {
            for (workload, cell) in series.workloads.iter().zip(&round.cells) {
                let Some(cell) = cell else { continue };
                let optional = |ns: Option<u64>| ns.map_or(String::new(), |ns| ns.to_string());
                text.push_str(&csv_line([
                    (number + 1).to_string(),
                    (index + 1).to_string(),
                    window.contains(&index).to_string(),
                    workload.read_percent.to_string(),
                    workload.block_bytes.to_string(),
                    format!("{:.1}", cell.iops),
                    format!("{:.0}", cell.bytes_per_s),
                    format!("{:.0}", cell.mean_ns),
                    optional(cell.p99_ns),
                    optional(cell.p99_9_ns),
                    format!("{:.0}", cell.max_ns),
                    format!("{:.0}", round.written_bytes),
                ]));
            }
        }
    }
    text
}

/// Returns the whole result as JSON. `docs/schema/pts.json` is its schema.
pub fn pts_json(result: &PtsResult) -> serde_json::Result<String> {
    json_text(&PtsDocument::from_result(result.clone(), PROGRAM))
}

/// Describes the last complete round in a line.
pub fn round_line(series: &SeriesResult) -> String {
    let Some(round) = series.rounds.last() else {
        return String::new();
    };
    let tracked = tracked(series);
    let value = round.cells[tracked].map_or("-".to_owned(), |cell| {
        tracked_value_text(&cell, series.value)
    });
    let steady = match &series.steady {
        Some(steady) => format!("; steady since round {}", steady.first_round),
        None => String::new(),
    };
    format!(
        "round {}: {} {value}{steady}",
        series.rounds.len(),
        called(series.workloads[tracked])
    )
}

/// Index of the workload shown per round: 4 KiB writes, otherwise the last workload.
fn tracked(series: &SeriesResult) -> usize {
    let is_small = |one: &PtsWorkload| one.read_percent == 0 && one.block_bytes == 4096;
    let last = series.workloads.len() - 1;
    series.workloads.iter().position(is_small).unwrap_or(last)
}

/// Returns the first line of the report.
pub fn headline(result: &PtsResult) -> String {
    let options = &result.options;
    let what = match options.test {
        PtsTest::Iops => "IOPS test",
        PtsTest::Throughput => "throughput test",
        PtsTest::Latency => "latency test",
        PtsTest::WriteSaturation => "write saturation test",
    };
    let flight = match options.test {
        PtsTest::Latency => "one I/O at a time".to_owned(),
        PtsTest::Throughput => format!("{} in flight", options.iodepth * options.numjobs),
        _ if options.numjobs == 1 => format!("{} in flight", options.iodepth),
        _ => format!(
            "{} jobs with {} in flight each",
            options.numjobs, options.iodepth
        ),
    };
    format!(
        "{}: {what} after SNIA PTS ({}), {}, {flight}.",
        result.target,
        options.preset.name(),
        words::bytes(result.bytes)
    )
}

/// Describes purge and fill before the rounds, and whether the rounds reached steady state.
pub fn settled(result: &PtsResult, series: &SeriesResult) -> String {
    let purge = match series.purged {
        true => "Purged",
        false => "Not purged",
    };
    let fill = match series.filled_bytes {
        0 => "not filled".to_owned(),
        bytes => format!("filled with {}", words::bytes(bytes)),
    };
    let rounds = series.rounds.len();
    let rest = match &series.steady {
        Some(steady) => {
            let each = steady.tracked.iter().map(|one| {
                format!(
                    "{}: range {:.1} % of 20, slope {:.1} % of 10",
                    called(one.workload),
                    one.range * 100.0,
                    one.excursion * 100.0
                )
            });
            format!(
                "Steady state in rounds {} to {} ({}).",
                steady.first_round,
                steady.last_round,
                each.collect::<Vec<_>>().join("; ")
            )
        }
        None if rounds == 0 => "Ended before the first round was complete.".to_owned(),
        None if result.interrupted || result.failure.is_some() || result.error.is_some() => {
            format!(
                "Ended after round {rounds}, before steady state: figures are of the last rounds."
            )
        }
        None if rounds == 1 => "Did not reach steady state in the only round.".to_owned(),
        None => format!(
            "Did not reach steady state in {rounds} rounds: figures are of the last {}.",
            WINDOW.min(rounds)
        ),
    };
    format!("{purge}, {fill}. {rest}")
}

type FigureGrid = Vec<Vec<String>>;

/// Means over the window: a row per block size, a column per share of reads.
fn grids(result: &PtsResult, series: &SeriesResult) -> Vec<(String, FigureGrid)> {
    let of = |title: &str, say: &dyn Fn(&PtsCell) -> String| {
        (title.to_owned(), series_grid(series, say))
    };
    let iops = |cell: &PtsCell| words::iops_text(cell.iops);
    let mean = |cell: &PtsCell| words::latency(cell.mean_ns);
    let most = |cell: &PtsCell| words::latency(cell.max_ns);
    match result.options.test {
        PtsTest::Iops | PtsTest::WriteSaturation => vec![of("IOPS by percentage of reads", &iops)],
        PtsTest::Throughput => vec![of("bandwidth by percentage of reads", &|cell| {
            words::bandwidth(cell.bytes_per_s)
        })],
        PtsTest::Latency => vec![
            of("mean latency by percentage of reads", &mean),
            of("maximum latency by percentage of reads", &most),
        ],
    }
}

fn series_grid(series: &SeriesResult, say: &dyn Fn(&PtsCell) -> String) -> FigureGrid {
    let workloads = series.workloads.iter();
    let mixes = unique(workloads.clone().map(|one| one.read_percent));
    let blocks = unique(workloads.map(|one| one.block_bytes));
    let head =
        std::iter::once("block".to_owned()).chain(mixes.iter().map(|mix| format!("{mix} %")));
    let row = |block: &u64| {
        let cells = mixes.iter().map(|mix| {
            let is_it = |one: &PtsWorkload| one.read_percent == *mix && one.block_bytes == *block;
            let index = series.workloads.iter().position(is_it);
            let figure = index.and_then(|index| series.figure(index));
            figure.map_or("-".to_owned(), |cell| say(&cell))
        });
        std::iter::once(size_name(*block)).chain(cells).collect()
    };
    std::iter::once(head.collect())
        .chain(blocks.iter().map(row))
        .collect()
}

/// Aligns all columns to the right. A narrow terminal shows those that do not fit below the others.
fn columns(grid: &FigureGrid) -> String {
    let cells = grid.iter().flat_map(|row| &row[1..]);
    let longest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
    let width = longest.max(FIGURE_COLUMNS_MIN) + 1;
    let beside = ((text_table::columns() - BLOCK_COLUMNS) / width).max(1);
    let mixes = grid.first().map_or(0, |head| head.len() - 1);
    let mut text = String::new();
    for first in (1..=mixes).step_by(beside) {
        let last = mixes.min(first + beside - 1);
        for row in grid {
            let cells = row[first..=last].iter();
            let cells: String = cells
                .map(|cell| format!(" {cell:>FIGURE_COLUMNS_MIN$}"))
                .collect();
            text.push_str(format!("{:>BLOCK_COLUMNS$}{cells}", row[0]).trim_end());
            text.push('\n');
        }
    }
    text
}

/// Table of the tracked figure over the rounds.
fn rounds(series: &SeriesResult) -> String {
    let shown = tracked(series);
    let value = |index: usize| {
        series.rounds[index].cells[shown].map(|cell| (cell, cell.value(series.value)))
    };
    let most = (0..series.rounds.len())
        .filter_map(value)
        .map(|(_, value)| value)
        .fold(0.0, f64::max);
    let title = format!(
        "{} by round, * in the window",
        called(series.workloads[shown])
    );
    let mut text = format!("\n{}", wrapped(&title));
    let most_columns = BAR + text_table::added_columns();
    let longest_bar = most_columns.min(text_table::wide_columns() - ROUND_COLUMNS) as f64;
    let step = series.rounds.len().div_ceil(MOST_ROWS).max(1);
    let window = series.window();
    for index in (0..series.rounds.len()).step_by(step) {
        let Some((cell, value)) = value(index) else {
            continue;
        };
        let mark = if window.contains(&index) { "*" } else { "" };
        let bar = "#".repeat((value / most.max(f64::MIN_POSITIVE) * longest_bar).round() as usize);
        text.push_str(&format!(
            "{:>7}{mark:1} {:>12}  {bar}\n",
            index + 1,
            tracked_value_text(&cell, series.value)
        ));
    }
    text
}

fn tracked_value_text(cell: &PtsCell, tracked: Tracked) -> String {
    match tracked {
        Tracked::Iops => format!("{} IOPS", words::iops_text(cell.iops)),
        Tracked::Bandwidth => words::bandwidth(cell.bytes_per_s),
        Tracked::Latency => words::latency(cell.mean_ns),
    }
}

fn called(workload: PtsWorkload) -> String {
    let size = size_name(workload.block_bytes);
    match workload.read_percent {
        0 => format!("{size} writes"),
        100 => format!("{size} reads"),
        percent => format!("{size} with {percent} % reads"),
    }
}

/// Returns the notes below the table.
pub fn notes(result: &PtsResult) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(early_ending(result.interrupted, result.error.as_ref()));
    let failure = result.failure.as_ref();
    notes.extend(failure.map(|failure| format!("ended by an error: {}", failure.message)));
    notes.extend(result.notes.iter().cloned());
    if !result.deviations.is_empty() {
        notes.push(format!(
            "Deviations from the specification: {}.",
            result.deviations.join("; ")
        ));
    }
    notes
}

#[cfg(test)]
mod tests;
