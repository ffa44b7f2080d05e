//! Report of a probe as text, with all details.

use super::{conditions, device, limits, row};
use crate::figures::{UNSETTLED, UNSETTLED_LEGEND};
use crate::known_digits::{
    APPROXIMATE_MARK, RATE_UNITS, bandwidth_of_rate, digits_beside_interval, known_percentile,
};
use crate::nodes;
use crate::promise;
use crate::text_table::{columns, hide_columns, pairs, render, right, wrapped};
use comfy_table::{Cell, Table, presets};
use iosonde_study::probe::{LatencySummary, PhaseFigure, ProbePhase, ProbeResult};
use iosonde_study::words;

/// Factor of a runtime that makes intervals about half as wide, and the shortest that is named.
const RUNTIME_FACTOR: u64 = 5;
const RUNTIME_S_MIN: u64 = 30;
/// Fewest columns of the table of intervals.
const INTERVALS_COLUMNS_MIN: usize = 52;
/// Columns of the figures that a narrow terminal does not show, the least important first:
/// bandwidth, p99.9, p50, interval, p99.
const LEAST_IMPORTANT: [usize; 5] = [3, 6, 4, 2, 5];

/// Returns the whole report on one target.
pub fn text(result: &ProbeResult) -> String {
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
    text.push_str(&figures(result));
    text.push('\n');
    for remark in remarks(result) {
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

fn figures(result: &ProbeResult) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let head = ["", "per s", "95 %+-", "bandwidth", "p50", "p99", "p99.9"];
    table.set_header(head.map(right));
    for figure in row::ORDER.iter().filter_map(|phase| result.figure(*phase)) {
        let latency = row::latency(figure);
        let (iops, bytes) = (figure.iops, figure.bytes_per_s);
        let [p50, p99, p99_9] = row::intervals(figure);
        let mut cells = vec![Cell::new(row::label(figure))];
        cells.push(right(format!(
            "{}{}",
            digits_beside_interval(iops.mean, iops.error, RATE_UNITS),
            mark(figure)
        )));
        let unsure = if row::is_unsure(figure) { "!" } else { "" };
        cells.push(right(format!("{}{unsure}", row::error(figure))));
        let bandwidth = bandwidth_of_rate(bytes.mean, iops.mean, iops.error);
        cells.push(right(bandwidth));
        cells.push(right(known_percentile(latency.p50_ns, p50)));
        cells.push(right(known_percentile(latency.p99_ns, p99)));
        cells.push(right(known_percentile(latency.p99_9_ns, p99_9)));
        table.add_row(cells);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    hide_columns(&mut table, &LEAST_IMPORTANT);
    render(&table)
}

/// Table of the confidence intervals of latency percentiles. Empty if none is known, or if the
/// terminal is too narrow.
fn latencies(result: &ProbeResult) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let head = ["95 % intervals of latency", "p50", "p99", "p99.9"];
    table.set_header([
        Cell::new(head[0]),
        right(head[1]),
        right(head[2]),
        right(head[3]),
    ]);
    for figure in row::ORDER.iter().filter_map(|phase| result.figure(*phase)) {
        let all = row::intervals(figure);
        if all.iter().any(Option::is_some) {
            let mut cells = vec![Cell::new(row::label(figure))];
            cells.extend(all.map(|between| right(row::between(between))));
            table.add_row(cells);
        }
    }
    if table.is_empty() || columns() < INTERVALS_COLUMNS_MIN {
        return String::new();
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    // The median is known best, and the rare I/Os worst.
    hide_columns(&mut table, &[1, 3]);
    format!("\n{}", render(&table))
}

fn mark(figure: &PhaseFigure) -> &'static str {
    match figure.settled {
        Some(false) => UNSETTLED,
        _ => "",
    }
}

/// Remarks that explain the table.
fn remarks(result: &ProbeResult) -> Vec<String> {
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
    if figures(result).contains(APPROXIMATE_MARK) {
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
        let cache = match result.target.starts_with("rbd://") {
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
