//! Report of a sweep, in each format.

mod advice;
mod announced;
pub(crate) mod cell_text;
mod filling_grid;
mod grid;
mod heat_table;
mod recommendation;
mod short_sweep;
mod sweep_csv;
mod working_set;

pub(crate) use advice::advice_text;
pub use advice::lines as advice_lines;
pub use announced::{announced, dry_run};
pub(crate) use cell_text::is_anything;
pub use filling_grid::FillingGrid;
pub(crate) use grid::curve_knee;
pub(crate) use recommendation::label;
pub use short_sweep::short;
pub use sweep_csv::sweep_cells_csv;
pub use working_set::sentences;

use crate::json_document::{PROGRAM, json_text};
use crate::known_digits::{
    APPROXIMATE_MARK, LATENCY_UNITS, PREDICTED_LEGEND, RATE_UNITS, bandwidth_of_rate,
    digits_beside_interval, known_digits,
};
use crate::markdown_table::markdown_paragraphs;
use crate::text_style::TextStyle;
use crate::text_table::{paragraphs, wrapped};
use crate::{early_ending, facts, unique};
use iosonde_result::ceph::CephSide;
use iosonde_result::device_class::memory_caution;
use iosonde_study::saturation::{CellRecord, Saturation};
use iosonde_study::sweep::{
    Axis, CellBasis, CurvePlan, CurveResult, CurveState, LARGE_BYTES, SweepCell, SweepDocument,
    SweepResult,
};
use iosonde_study::words;

/// Returns the report with all details as text of at most 80 columns.
pub fn table(result: &SweepResult) -> String {
    let mut text = wrapped(&headline(result));
    for line in storage(result) {
        text.push_str(&wrapped(&line));
    }
    match is_of_working_sets(result) {
        true => text.push_str(&working_set::working_set_text(result)),
        false => text.push_str(&curves(result)),
    }
    text + &paragraphs(&notes(result))
}

/// Whether the working set is an axis, so that each cell was measured after a warm-up.
fn is_of_working_sets(result: &SweepResult) -> bool {
    result.options.most_warmup_ns.is_some()
}

/// Tables over the depth, with the sentences and the advice that follow from them.
fn curves(result: &SweepResult) -> String {
    let mut text = String::new();
    for table in grid::tables(result) {
        text.push_str(&format!("\n{}", grid::sweep_grid_text(&table)));
        let sentences = curve_sentences(result, &table);
        text.extend(sentences.map(|sentence| wrapped(&sentence)));
    }
    text.push_str(&wrapped(&legend(result)));
    if let Some(what) = undecided(result) {
        text.push_str(&wrapped(what));
    }
    let advice = advice::advice_text(result);
    if !advice.is_empty() {
        text.push_str(&format!("\n{advice}"));
    }
    text
}

/// Returns Markdown tables for a report or an issue.
pub fn markdown(result: &SweepResult) -> String {
    let mut text = format!(
        "## Sweep of {}\n\n{}\n",
        sweep_name(result),
        headline(result)
    );
    text.push_str(&markdown_paragraphs(&storage(result)));
    match is_of_working_sets(result) {
        true => text.push_str(&working_set::markdown(result)),
        false => text.push_str(&markdown_of_curves(result)),
    }
    text + &markdown_paragraphs(&notes(result))
}

fn markdown_of_curves(result: &SweepResult) -> String {
    let mut text = String::new();
    for table in grid::tables(result) {
        text.push_str(&format!("\n{}\n", grid::markdown(&table)));
        let sentences = curve_sentences(result, &table);
        text.extend(sentences.map(|sentence| format!("- {sentence}\n")));
    }
    text.push_str(&format!("\n{}\n", legend(result)));
    if let Some(what) = undecided(result) {
        text.push_str(&format!("\n{what}\n"));
    }
    text.push_str(&advice::markdown(result));
    text
}

/// Returns the whole result as JSON.
pub fn sweep_json(result: &SweepResult) -> serde_json::Result<String> {
    json_text(&SweepDocument::from_result(result.clone(), PROGRAM))
}

fn sweep_name(result: &SweepResult) -> String {
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
pub(crate) fn sweep_target_text(result: &SweepResult) -> String {
    let axes = result.axes.iter().filter(|axis| axis.values.len() == 1);
    let fixed: String = axes
        .map(|axis| format!(" {}={}", axis.name, axis.values[0]))
        .collect();
    format!("{}{fixed}", sweep_name(result))
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
    format!("{}: {how}.", sweep_target_text(result))
}

/// Values that distinguish a curve from others, as text. Empty if there is one curve.
pub fn unit_name(axes: &[Axis], values: &[String]) -> String {
    several_values(axes.iter().zip(values))
}

/// Values of those axes that have several, as text.
fn several_values<'a>(pairs: impl Iterator<Item = (&'a Axis, &'a String)>) -> String {
    let several = pairs.filter(|(axis, _)| axis.values.len() > 1);
    let names = several.map(|(axis, value)| axis.value_text(value));
    names.collect::<Vec<String>>().join(" ")
}

/// Describes the result of a curve.
pub fn sentence(result: &SweepResult, curve: &CurveResult) -> Option<String> {
    let plus_minus = TextStyle::PLAIN.plus_minus();
    let found = curve
        .saturation
        .as_ref()
        .filter(|_| !is_of_working_sets(result) && curve.cells.len() > 1)?;
    let end = match curve.state {
        CurveState::Complete => "",
        _ => "; the search was cut off",
    };
    let is_bandwidth = curve.block_bytes >= LARGE_BYTES;
    let unit = (&result.axes[..], &curve.values[..]);
    let finding = finding(unit, found, is_bandwidth, plus_minus);
    Some(format!("{finding}{end}"))
}

/// Describes the results of the curves of a table.
fn curve_sentences(
    result: &SweepResult,
    table: &grid::SweepTable<'_>,
) -> impl Iterator<Item = String> {
    let curves = table.curves.iter();
    curves.filter_map(move |curve| sentence(result, curve))
}

/// Describes what the search of a curve has found, while the sweep runs and in its report.
/// `plus_minus` is the sign before half an interval.
fn finding(
    (axes, values): (&[Axis], &[String]),
    found: &Saturation,
    is_bandwidth: bool,
    plus_minus: &str,
) -> String {
    let name = unit_name(axes, values);
    let subject = match name.is_empty() {
        true => "the rate ".to_owned(),
        false => format!("{name}: "),
    };
    // The headline or the subject has the number of jobs if it is an axis.
    let names_jobs = !axes.iter().any(|axis| axis.name == "numjobs");
    let sentence = found.sentence(is_bandwidth, names_jobs, plus_minus);
    format!("{subject}{sentence}")
}

/// Advice for figures that are not known, once for all curves.
fn undecided(result: &SweepResult) -> Option<&'static str> {
    let several = result.curves.iter().filter(|curve| curve.cells.len() > 1);
    let claims = several.filter_map(|curve| Some(curve.saturation.as_ref()?.claims()));
    let mut open = claims.filter(|claims| !(claims.maximum && claims.knee));
    let is_open = !is_of_working_sets(result) && open.next().is_some();
    is_open.then_some("Use a longer --runtime to decide unknown values.")
}

/// One line about a complete curve. `is_again`: an earlier line has its result before some runs.
/// `plus_minus` is the sign before half an interval.
pub fn curve_line(
    axes: &[Axis],
    plan: &CurvePlan,
    (saturation, is_again): (&Saturation, bool),
    plus_minus: &str,
) -> String {
    let block = saturation.maximum_bytes_per_s.mean / saturation.maximum.mean.max(1.0);
    let is_bandwidth = block >= LARGE_BYTES as f64;
    let unit = (axes, &plan.values[..]);
    let line = finding(unit, saturation, is_bandwidth, plus_minus);
    match is_again {
        true => format!("after more runs, {line}"),
        false => line,
    }
}

/// One line about a measured cell.
pub fn cell_line(axes: &[Axis], plan: &CurvePlan, record: &CellRecord) -> String {
    let cell = record.cell();
    let depth = format!("depth {}", cell.iodepth);
    let name = [unit_name(axes, &plan.values), depth].join(" ");
    let (iops, latency_ns) = (cell.iops, cell.latency.mean_ns);
    // The number of I/Os in flight is fixed, so that the mean latency is as well known as the rate.
    let half_ns = iops.relative_error().map(|share| share * latency_ns);
    format!(
        "{}: {} IOPS, {}, mean latency {}",
        name.trim_start(),
        digits_beside_interval(iops.mean, iops.error, RATE_UNITS),
        bandwidth_of_rate(cell.bytes_per_s.mean, iops.mean, iops.error),
        known_digits(latency_ns, half_ns, LATENCY_UNITS)
    )
}

fn legend(result: &SweepResult) -> String {
    let cells = || result.curves.iter().flat_map(|curve| &curve.cells);
    let mut parts = Vec::new();
    // An interval that reaches zero is marked like an unknown one.
    let is_without_interval = |cell: &SweepCell| {
        cell.basis == CellBasis::Measured && cell.doubt().is_none_or(|share| share >= 1.0)
    };
    let has_predictions =
        cells().any(|cell| cell.basis == CellBasis::Predicted && !is_anything(cell));
    parts.extend(has_predictions.then(|| PREDICTED_LEGEND.to_owned()));
    if cells().any(is_without_interval) {
        parts.push(format!(
            "{APPROXIMATE_MARK} measured too shortly for an interval"
        ));
    }
    let doubts = cells()
        .filter(|cell| cell.basis == CellBasis::Predicted && !is_anything(cell))
        .filter_map(|cell| cell.iops?.relative_error());
    if let Some(most) = doubts.max_by(f64::total_cmp) {
        parts.push(format!(
            "predicted rates are off by at most {:.0} % if the rate does not fall with the depth",
            (most * 100.0).ceil()
        ));
    }
    if cells().any(|cell| cell.basis == CellBasis::Unknown || is_anything(cell)) {
        parts.push("- not measured, and a prediction could be off by more than 100 %".to_owned());
    }
    parts.push("latencies are means".to_owned());
    format!("{}.", parts.join("; "))
}

/// Cautions on targets in memory. Each names its target if there are several.
fn memory_cautions(result: &SweepResult) -> Vec<String> {
    let target_axis = result.axes.iter().position(|axis| axis.name == "target");
    let cautions = result.curves.iter().filter_map(|curve| {
        let caution = memory_caution(curve.in_memory.as_deref()?);
        Some(match target_axis.and_then(|axis| curve.values.get(axis)) {
            Some(target) if result.targets.len() > 1 => format!("{target}: {caution}"),
            _ => caution,
        })
    });
    unique(cautions)
}

/// Returns the notes below the table.
pub fn notes(result: &SweepResult) -> Vec<String> {
    let mut notes = memory_cautions(result);
    notes.extend(notes_of_step(result));
    notes
}

/// Returns the notes on a sweep that is a step of a suite, whose report has the caution on targets
/// in memory.
pub(crate) fn notes_of_step(result: &SweepResult) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(early_ending(result.interrupted, None));
    notes.extend(result.ceph().iter().flat_map(CephSide::marks));
    notes.extend(result.notes.iter().cloned());
    notes
}

#[cfg(test)]
pub(crate) mod tests;
