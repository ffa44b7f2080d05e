//! Report of a probe as text, with all details.

use super::{conditions, device, limits, row};
use crate::figures::{UNSETTLED_LEGEND, settled_mark};
use crate::known_digits::{
    APPROXIMATE_MARK, known_percentile, lacks_interval, percentile_lacks_interval,
};
use crate::nodes;
use crate::promise;
use crate::text_table::TableColumn::{Left, Right};
use crate::text_table::{
    TableColumn, aligned_columns, columns, fill_table, hide_columns, pairs, render, set_gap,
    wrapped,
};
use comfy_table::{Table, presets};
use iosonde_job::target_scheme::is_image_name;
use iosonde_study::probe::{LatencySummary, PhaseFigure, ProbePhase, ProbeResult};
use iosonde_study::words;

/// Factor of a runtime that makes intervals about half as wide, and the shortest that is named.
const RUNTIME_FACTOR: u64 = 5;
const RUNTIME_S_MIN: u64 = 30;
/// Columns of the confidence intervals of latency percentiles.
pub(super) const INTERVAL_COLUMNS: [TableColumn<'_>; 4] = [
    Left("95 % intervals of latency"),
    Right("p50"),
    Right("p99"),
    Right("p99.9"),
];
/// Fewest columns of the table of intervals.
const INTERVALS_COLUMNS_MIN: usize = 52;
/// Index of the first of the three columns of percentiles.
const P50_COLUMN: usize = 4;
/// Columns of the figures that a narrow terminal does not show, the least important first:
/// bandwidth, p99.9, p50, interval, p99.
const LEAST_IMPORTANT: [usize; 5] = [3, 6, 4, 2, 5];

/// Returns the whole report on one target.
pub fn probe_table(result: &ProbeResult) -> String {
    text_among(result, std::slice::from_ref(result))
}

/// Returns the report on one of several targets. Facts about a shared device are below all reports.
pub fn text_among(result: &ProbeResult, results: &[ProbeResult]) -> String {
    let size = words::bytes(result.working_set.bytes);
    let mut text = format!("\n{}: working set {size}\n", result.target);
    if let Some(warning) = answered_instead(result) {
        text.push_str(&wrapped(&warning));
    }
    text.push('\n');
    let table = figures(result);
    text.push_str(&render(&table));
    text.push('\n');
    for remark in remarks(result, &table) {
        text.push_str(&wrapped(&remark));
    }
    text.push_str(&latencies(result));
    let blocks = [
        (limits::MOST, limits::knees(result)),
        ("", limits::bottlenecks(result)),
        ("", limits::ceilings(result)),
    ];
    for (head, block) in blocks.iter().filter(|(_, block)| !block.is_empty()) {
        text.push('\n');
        if !head.is_empty() {
            text.push_str(&format!("{head}\n"));
        }
        text.push_str(&pairs(block));
    }
    text.push('\n');
    text.push_str(&pairs(&conditions::list_conditions(result)));
    if !device::is_shared(result, results) {
        text.push('\n');
        text.push_str(&wrapped(&result.classification.sentence));
    }
    text.push_str(&nodes::of_phases(result));
    for held in &result.expected {
        text.push('\n');
        text.push_str(&promise::table(held));
    }
    text
}

/// Warns if a cache or unwritten blocks answered reads instead of the device.
pub(super) fn answered_instead(result: &ProbeResult) -> Option<String> {
    let who = result.classification.answered_instead()?;
    let comparison = match result.expected.is_empty() {
        true => "",
        false => " and cannot be compared with a promise",
    };
    Some(format!(
        "{who} served the reads: their figures are not those of the device{comparison}."
    ))
}

fn figures(result: &ProbeResult) -> Table {
    let head = ["", "per s", "95 %+-", "bandwidth", "p50", "p99", "p99.9"];
    let rows = row::figures(result).map(|figure| {
        let [label, mut rate, mut error, others @ ..] = row::figure_cells(figure);
        rate.push_str(settled_mark(figure.settled));
        error.push_str(if row::is_unsure(figure) { "!" } else { "" });
        [vec![label, rate, error], others.to_vec()].concat()
    });
    let mut table = fill_table(unlimited(), &aligned_columns(&head, 1), rows);
    set_gap(&mut table, 1);
    hide_columns(&mut table, &LEAST_IMPORTANT);
    table
}

/// Table of the confidence intervals of latency percentiles. Empty if none is known, or if the
/// terminal is too narrow.
fn latencies(result: &ProbeResult) -> String {
    let rows = interval_rows(result);
    if rows.is_empty() || columns() < INTERVALS_COLUMNS_MIN {
        return String::new();
    }
    let mut table = fill_table(unlimited(), &INTERVAL_COLUMNS, rows);
    set_gap(&mut table, 2);
    // The median is known best, and the rare I/Os worst.
    hide_columns(&mut table, &[1, 3]);
    format!("\n{}", render(&table))
}

/// Confidence intervals of the latency percentiles of each figure that has any.
pub(super) fn interval_rows(result: &ProbeResult) -> Vec<[String; 4]> {
    let rows = row::figures(result).filter_map(|figure| {
        let all = row::intervals(figure);
        let [p50, p99, p99_9] = all.map(row::between);
        let is_known = all.iter().any(Option::is_some);
        is_known.then(|| [row::label(figure), p50, p99, p99_9])
    });
    rows.collect()
}

/// Returns an empty table of any width without borders.
fn unlimited() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// Remarks that explain the table.
fn remarks(result: &ProbeResult, table: &Table) -> Vec<String> {
    let mut remarks = Vec::new();
    if result.interrupted {
        remarks.push("Interrupted: figures up to the interruption.".to_owned());
    }
    if result
        .figures
        .iter()
        .any(|figure| figure.settled == Some(false))
    {
        remarks.push(UNSETTLED_LEGEND.to_owned());
    }
    if result.figures.iter().any(row::is_unsure) {
        let asked = 100.0 * result.options.budget.width;
        remarks.push(match result.interrupted {
            // A longer runtime is no advice after an interruption.
            true => format!("! wider than +-{asked} % when it ended."),
            false => format!(
                "! wider than +-{asked} % when time ran out{}.",
                longer_runtime(result)
            ),
        });
    }
    if shows_unknown_interval(result, table) {
        remarks.push(format!("{APPROXIMATE_MARK} the interval is not known."));
    }
    let percentiles = |latency: &LatencySummary| [latency.p50_ns, latency.p99_ns, latency.p99_9_ns];
    let is_missing = |figure: &PhaseFigure| percentiles(row::latency(figure)).contains(&None);
    if result.figures.iter().any(is_missing) {
        remarks.push("- not shown: fewer than ten I/Os were slower.".to_owned());
    }
    let is_unbounded = |figure: &PhaseFigure| {
        let (known, between) = (percentiles(row::latency(figure)), row::intervals(figure));
        let mut pairs = known.iter().zip(&between);
        between.iter().any(Option::is_some)
            && pairs.any(|(known, between)| known.is_some() && between.is_none())
    };
    if result.figures.iter().any(is_unbounded) {
        remarks.push("- no interval: too few slow I/Os, or latency varied too much.".to_owned());
    }
    if let Some(write) = result
        .figures
        .iter()
        .find(|figure| figure.sync_latency.is_some())
    {
        let p50 = known_percentile(write.latency.p50_ns, write.latency.p50_between_ns);
        // librbd has no page cache.
        let cache = match is_image_name(&result.target) {
            true => "",
            false => ", through the page cache",
        };
        remarks.push(format!(
            "fdatasync: sequential writes{cache}, each made durable, like a database log; latency \
             is that of fdatasync (the preceding write: p50 {p50}).",
        ));
    }
    remarks.extend(failures(result));
    remarks.extend(result.error.as_ref().map(crate::ended_by));
    remarks
}

/// Whether the table shows the mark of an unknown interval.
fn shows_unknown_interval(result: &ProbeResult, table: &Table) -> bool {
    let is_shown = table.column_iter().map(|column| !column.is_hidden());
    let is_shown: Vec<bool> = is_shown.skip(P50_COLUMN).collect();
    row::figures(result).any(|figure| {
        let latency = row::latency(figure);
        let known = [latency.p50_ns, latency.p99_ns, latency.p99_9_ns].into_iter();
        let mut cells = known.zip(row::intervals(figure)).zip(&is_shown);
        // The rate is always shown, and the bandwidth has its interval.
        lacks_interval(figure.iops.mean, figure.iops.error)
            || cells.any(|((ns, interval), is_shown)| {
                *is_shown && percentile_lacks_interval(ns, interval)
            })
    })
}

/// Names a runtime that makes intervals about half as wide. Empty if the verdict is undecided: it
/// has its own remedy, and two pieces of advice could contradict each other.
fn longer_runtime(result: &ProbeResult) -> String {
    let is_decided = result.classification.durable_writes.is_some();
    let has_writes = result.figure(ProbePhase::SyncedWrite).is_some();
    if has_writes && !is_decided {
        return String::new();
    }
    let seconds = result.options.budget.runtime_ns.div_ceil(1_000_000_000);
    let longer = (RUNTIME_FACTOR * seconds).max(RUNTIME_S_MIN);
    format!("; --runtime {longer} measures longer")
}

/// Errors that ended phases, with those that left no figure.
pub(super) fn failures(result: &ProbeResult) -> Vec<String> {
    let mut failures = Vec::new();
    for run in &result.runs {
        let mut workers = run.result.workers.iter();
        if let Some(failure) = workers.find_map(|worker| worker.error.as_ref()) {
            failures.push(format!(
                "{}: ended by an error: {}",
                row::planned(run.phase),
                failure.message
            ));
        }
    }
    failures
}
