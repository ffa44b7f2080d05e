//! The result of a sweep, in each format.

mod advice;
mod announced;
mod csv;
mod grid;
mod working_set;

pub(crate) use advice::{lines as advice_lines, listed, text as advice_text};
pub(crate) use announced::{announced, dry_run};
pub(crate) use csv::csv;
pub(crate) use grid::{is_anything, knee};
pub(crate) use working_set::sentences;

use crate::failure::Failure;
use crate::report::facts;
use crate::report::probe::table::wrapped;
use iosonde_result::ceph::CephSide;
use iosonde_study::saturation::Saturation;
use iosonde_study::sweep::{
    Basis, CurvePlan, CurveResult, CurveState, Found, LARGE_BYTES, SweepDocument, SweepResult,
};
use iosonde_study::words;

/// For people, within 80 columns.
pub(crate) fn table(result: &SweepResult) -> String {
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

/// Whether the working set is an axis, and every cell was measured warm.
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

/// Tables for a report or an issue.
pub(crate) fn markdown(result: &SweepResult) -> String {
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

/// For programs: everything.
pub(crate) fn json(result: &SweepResult) -> Result<String, Failure> {
    let document = SweepDocument::of(
        result.clone(),
        concat!("iosonde ", env!("CARGO_PKG_VERSION")),
    );
    let mut text = serde_json::to_string_pretty(&document).map_err(anyhow::Error::from)?;
    text.push('\n');
    Ok(text)
}

fn name(result: &SweepResult) -> String {
    match &result.job_file {
        Some(file) => file.clone(),
        None => result.targets.join(", "),
    }
}

/// The ways to storage, the caches on them, and the clusters that serve it.
pub(crate) fn storage(result: &SweepResult) -> Vec<String> {
    let used = result.storage().into_iter().filter(|used| used.is_news());
    let used = used.map(|used| format!("Storage: {}.", used.words()));
    used.chain(result.ceph().iter().map(facts::cluster))
        .collect()
}

/// The target and what is the same in all cells.
fn what(result: &SweepResult) -> String {
    let axes = result.axes.iter().filter(|axis| axis.values.len() == 1);
    let fixed: String = axes
        .map(|axis| format!(" {}={}", axis.name, axis.values[0]))
        .collect();
    format!("{}{fixed}", name(result))
}

pub(crate) fn headline(result: &SweepResult) -> String {
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
        false => format!(
            "{}, {measured} of them measured in {}",
            words::counted(all, "cell"),
            words::duration(result.spent_ns as f64 / 1e9)
        ),
    };
    format!("{}: {how}.", what(result))
}

/// The values that tell curves apart, in words.
pub(crate) fn unit_name(values: &[String]) -> String {
    match values.is_empty() {
        true => "curve".to_owned(),
        false => values.join(" "),
    }
}

/// What a curve found, in a sentence.
pub(crate) fn sentence(result: &SweepResult, curve: &CurveResult) -> Option<String> {
    let found = curve
        .saturation
        .as_ref()
        .filter(|_| !is_of_working_sets(result) && curve.cells.len() > 1)?;
    let end = match curve.state {
        CurveState::Complete => "",
        _ => "; it was cut off",
    };
    let pairs = result.axes.iter().zip(&curve.values);
    let several = pairs.filter(|(axis, _)| axis.values.len() > 1);
    let name: Vec<String> = several
        .map(|(axis, value)| named(&axis.name, value))
        .collect();
    let subject = match name.is_empty() {
        true => "the rate ".to_owned(),
        false => format!("{}: ", name.join(" ")),
    };
    // The number of jobs is in the subject.
    let alone = Saturation {
        jobs: 1,
        ..found.clone()
    };
    let told = alone.sentence(curve.block_bytes >= LARGE_BYTES);
    Some(format!("{subject}{told}{end}"))
}

/// What would decide what is not known, once for all curves.
fn undecided(result: &SweepResult) -> Option<&'static str> {
    let several = result.curves.iter().filter(|curve| curve.cells.len() > 1);
    let claims = several.filter_map(|curve| Some(curve.saturation.as_ref()?.claims()));
    let mut open = claims.filter(|claims| !(claims.maximum && claims.knee));
    let is_open = !is_of_working_sets(result) && open.next().is_some();
    is_open.then_some("A longer --runtime decides what is not known here.")
}

/// A value as people say it.
fn named(axis: &str, value: &str) -> String {
    match (axis, value) {
        ("rw" | "bs" | "target" | "job", value) => value.to_owned(),
        ("numjobs", "1") => "1 job".to_owned(),
        ("numjobs", value) => format!("{value} jobs"),
        (axis, value) => format!("{axis}={value}"),
    }
}

/// One line about what a curve or a cell found, while the sweep goes on.
pub(crate) fn found_line(plan: &CurvePlan, found: &Found<'_>) -> String {
    let name = unit_name(&plan.values);
    match found {
        Found::Curve(found) => {
            let mut alone = (*found).clone();
            alone.jobs = 1;
            let block = found.maximum_bytes_per_s.mean / found.maximum.mean.max(1.0);
            format!("{name}: {}", alone.sentence(block >= LARGE_BYTES as f64))
        }
        Found::Cell(record) => {
            let cell = record.cell();
            format!(
                "{name} depth {}: {} IOPS, {}, mean latency {}",
                cell.iodepth,
                words::iops(cell.iops.mean),
                words::bandwidth(cell.bytes_per_s.mean),
                words::latency(cell.latency.mean_ns)
            )
        }
    }
}

fn legend(result: &SweepResult) -> String {
    let cells = || result.curves.iter().flat_map(|curve| &curve.cells);
    let mut parts = Vec::new();
    if result.curves.iter().any(|curve| knee(curve).is_some()) {
        parts.push("* the knee: the lowest depth that reaches the maximum".to_owned());
    }
    let doubts = cells()
        .filter(|cell| cell.basis == Basis::Predicted && !grid::is_anything(cell))
        .filter_map(|cell| cell.iops?.relative_error());
    if let Some(most) = doubts.max_by(f64::total_cmp) {
        parts.push(format!(
            "~ not measured but predicted, off by at most {:.0} % if the rate does not fall with the depth",
            (most * 100.0).ceil()
        ));
    }
    if cells().any(grid::is_anything) {
        parts.push("~? not measured, and a prediction could be off by more than 100 %".to_owned());
    }
    if cells().any(grid::is_unsure) {
        parts.push(format!(
            "? uncertain by more than {:.0} %, or measured too shortly to tell",
            grid::UNSURE * 100.0
        ));
    }
    if cells().any(|cell| cell.basis == Basis::Unknown) {
        parts.push("- neither measured nor to be predicted".to_owned());
    }
    parts.push("latencies are means".to_owned());
    format!("{}.", parts.join("; "))
}

pub(crate) fn notes(result: &SweepResult) -> Vec<String> {
    let mut notes = Vec::new();
    if result.interrupted {
        notes.push("interrupted: what ran until then".to_owned());
    }
    notes.extend(result.ceph().iter().flat_map(CephSide::marks));
    notes.extend(result.notes.iter().cloned());
    notes
}

#[cfg(test)]
mod tests;
