//! Report of a sweep, in each format.

mod advice;
mod announced;
mod filling_grid;
mod grid;
mod heat_table;
mod recommendation;
mod short_sweep;
mod sweep_csv;
mod working_set;

pub(crate) use advice::listed;
pub use advice::{lines as advice_lines, text as advice_text};
pub use announced::{announced, dry_run};
pub use filling_grid::FillingGrid;
pub(crate) use grid::is_anything;
pub use grid::knee;
pub(crate) use recommendation::label;
pub use short_sweep::ShortSweep;
pub use sweep_csv::csv;
pub use working_set::sentences;

use crate::json_document::{PROGRAM, json_text};
use crate::text_table::wrapped;
use crate::{early_ending, facts};
use iosonde_result::ceph::CephSide;
use iosonde_study::saturation::{CellRecord, Saturation};
use iosonde_study::sweep::{
    Axis, CellBasis, CurvePlan, CurveResult, CurveState, LARGE_BYTES, SweepDocument, SweepResult,
};
use iosonde_study::words;

/// Returns the report with all details as text of at most 80 columns.
pub fn table(result: &SweepResult) -> String {
    let mut text = wrapped(&headline(result));
    for line in storage(result) {
        text.push_str(&wrapped(&line));
    }
    match is_of_working_sets(result) {
        true => text.push_str(&working_set::text(result)),
        false => text.push_str(&curves(result)),
    }
    for note in notes(result) {
        text.push_str(&format!("\n{}", wrapped(&note)));
    }
    text
}

/// Whether the working set is an axis, so that each cell was measured after a warm-up.
fn is_of_working_sets(result: &SweepResult) -> bool {
    result.options.most_warmup_ns.is_some()
}

/// Tables over the depth, with the sentences and the advice that follow from them.
fn curves(result: &SweepResult) -> String {
    let mut text = String::new();
    for table in grid::tables(result) {
        text.push_str(&format!("\n{}", grid::text(&table)));
        for sentence in table
            .curves
            .iter()
            .filter_map(|curve| sentence(result, curve))
        {
            text.push_str(&wrapped(&sentence));
        }
    }
    text.push_str(&wrapped(&legend(result)));
    if let Some(what) = undecided(result) {
        text.push_str(&wrapped(what));
    }
    let advice = advice::text(result);
    if !advice.is_empty() {
        text.push_str(&format!("\n{advice}"));
    }
    text
}

/// Returns Markdown tables for a report or an issue.
pub fn markdown(result: &SweepResult) -> String {
    let mut text = format!("## Sweep of {}\n\n{}\n", name(result), headline(result));
    for line in storage(result) {
        text.push_str(&format!("\n{line}\n"));
    }
    match is_of_working_sets(result) {
        true => text.push_str(&working_set::markdown(result)),
        false => text.push_str(&markdown_of_curves(result)),
    }
    for note in notes(result) {
        text.push_str(&format!("\n{note}\n"));
    }
    text
}

fn markdown_of_curves(result: &SweepResult) -> String {
    let mut text = String::new();
    for table in grid::tables(result) {
        text.push_str(&format!("\n{}\n", grid::markdown(&table)));
        for sentence in table
            .curves
            .iter()
            .filter_map(|curve| sentence(result, curve))
        {
            text.push_str(&format!("- {sentence}\n"));
        }
    }
    text.push_str(&format!("\n{}\n", legend(result)));
    if let Some(what) = undecided(result) {
        text.push_str(&format!("\n{what}\n"));
    }
    text.push_str(&advice::markdown(result));
    text
}

/// Returns the whole result as JSON.
pub fn json(result: &SweepResult) -> serde_json::Result<String> {
    json_text(&SweepDocument::from_result(result.clone(), PROGRAM))
}

fn name(result: &SweepResult) -> String {
    match &result.job_file {
        Some(file) => file.clone(),
        None => result.targets.join(", "),
    }
}

/// Access paths to storage, the caches on them, and the clusters that serve it.
pub fn storage(result: &SweepResult) -> Vec<String> {
    let used = result.storage().into_iter().filter(|used| used.is_news());
    let used = used.map(|used| format!("Storage: {}.", used.words()));
    used.chain(result.ceph().iter().map(facts::cluster))
        .collect()
}

/// Target and the values that are the same in all cells.
pub(crate) fn what(result: &SweepResult) -> String {
    let axes = result.axes.iter().filter(|axis| axis.values.len() == 1);
    let fixed: String = axes
        .map(|axis| format!(" {}={}", axis.name, axis.values[0]))
        .collect();
    format!("{}{fixed}", name(result))
}

/// Returns the first line of the report.
pub fn headline(result: &SweepResult) -> String {
    let (measured, all) = result.measured();
    let how = match result.options.exhaustive {
        _ if is_of_working_sets(result) => format!(
            "{measured} of {} measured for {} each, once warm",
            words::counted(all, "cell"),
            words::chosen(result.options.runtime_ns)
        ),
        true => format!(
            "{measured} of {} measured for {} each",
            words::counted(all, "cell"),
            words::chosen(result.options.runtime_ns)
        ),
        false if measured == all => format!(
            "{}, measured in {}",
            words::counted(all, "cell"),
            words::duration(result.spent_ns as f64 / 1e9)
        ),
        false => format!(
            "{}, {measured} of them measured in {}",
            words::counted(all, "cell"),
            words::duration(result.spent_ns as f64 / 1e9)
        ),
    };
    format!("{}: {how}.", what(result))
}

/// Values that distinguish a curve from others, as text. Empty if there is one curve.
pub fn unit_name(axes: &[Axis], values: &[String]) -> String {
    let several = axes
        .iter()
        .zip(values)
        .filter(|(axis, _)| axis.values.len() > 1);
    let names: Vec<String> = several
        .map(|(axis, value)| named(&axis.name, value))
        .collect();
    names.join(" ")
}

/// Describes the result of a curve.
pub fn sentence(result: &SweepResult, curve: &CurveResult) -> Option<String> {
    let found = curve
        .saturation
        .as_ref()
        .filter(|_| !is_of_working_sets(result) && curve.cells.len() > 1)?;
    let end = match curve.state {
        CurveState::Complete => "",
        _ => "; the search was cut off",
    };
    let is_bandwidth = curve.block_bytes >= LARGE_BYTES;
    let finding = finding(&result.axes, &curve.values, found, is_bandwidth);
    Some(format!("{finding}{end}"))
}

/// Describes what the search of a curve has found, while the sweep runs and in its report.
fn finding(axes: &[Axis], values: &[String], found: &Saturation, is_bandwidth: bool) -> String {
    let name = unit_name(axes, values);
    let subject = match name.is_empty() {
        true => "the rate ".to_owned(),
        false => format!("{name}: "),
    };
    // The subject names the number of jobs.
    let alone = Saturation {
        jobs: 1,
        ..found.clone()
    };
    format!("{subject}{}", alone.sentence(is_bandwidth))
}

/// Advice for figures that are not known, once for all curves.
fn undecided(result: &SweepResult) -> Option<&'static str> {
    let several = result.curves.iter().filter(|curve| curve.cells.len() > 1);
    let claims = several.filter_map(|curve| Some(curve.saturation.as_ref()?.claims()));
    let mut open = claims.filter(|claims| !(claims.maximum && claims.knee));
    let is_open = !is_of_working_sets(result) && open.next().is_some();
    is_open.then_some("Use a longer --runtime to decide unknown values.")
}

/// Text of an axis value.
fn named(axis: &str, value: &str) -> String {
    match (axis, value) {
        ("rw" | "bs" | "target" | "job", value) => value.to_owned(),
        ("numjobs", "1") => "1 job".to_owned(),
        ("numjobs", value) => format!("{value} jobs"),
        (axis, value) => format!("{axis}={value}"),
    }
}

/// One line about a complete curve.
pub fn curve_line(axes: &[Axis], plan: &CurvePlan, saturation: &Saturation) -> String {
    let block = saturation.maximum_bytes_per_s.mean / saturation.maximum.mean.max(1.0);
    finding(axes, &plan.values, saturation, block >= LARGE_BYTES as f64)
}

/// One line about a measured cell.
pub fn cell_line(axes: &[Axis], plan: &CurvePlan, record: &CellRecord) -> String {
    let cell = record.cell();
    let depth = format!("depth {}", cell.iodepth);
    let name = [unit_name(axes, &plan.values), depth].join(" ");
    format!(
        "{}: {} IOPS, {}, mean latency {}",
        name.trim_start(),
        words::iops(cell.iops.mean),
        words::bandwidth(cell.bytes_per_s.mean),
        words::latency(cell.latency.mean_ns)
    )
}

fn legend(result: &SweepResult) -> String {
    let cells = || result.curves.iter().flat_map(|curve| &curve.cells);
    let mut parts = Vec::new();
    let doubts = cells()
        .filter(|cell| cell.basis == CellBasis::Predicted && !grid::is_anything(cell))
        .filter_map(|cell| cell.iops?.relative_error());
    if let Some(most) = doubts.max_by(f64::total_cmp) {
        parts.push(format!(
            "~ predicted, not measured: off by at most {:.0} % if the rate does not fall with the \
             depth",
            (most * 100.0).ceil()
        ));
    }
    if cells().any(grid::is_anything) {
        parts.push("~? not measured: a prediction could be off by more than 100 %".to_owned());
    }
    if cells().any(grid::is_unsure) {
        parts.push(format!(
            "? uncertain by more than {:.0} %, or measured too shortly for an interval",
            grid::UNSURE * 100.0
        ));
    }
    if cells().any(|cell| cell.basis == CellBasis::Unknown) {
        parts.push("- neither measured nor predictable".to_owned());
    }
    parts.push("latencies are means".to_owned());
    format!("{}.", parts.join("; "))
}

/// Returns the notes below the table.
pub fn notes(result: &SweepResult) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(early_ending(result.interrupted, None));
    notes.extend(result.ceph().iter().flat_map(CephSide::marks));
    notes.extend(result.notes.iter().cloned());
    notes
}

#[cfg(test)]
mod tests;
