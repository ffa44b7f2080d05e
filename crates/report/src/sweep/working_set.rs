//! Cache findings of sweeps over the working set: a row per size, and a sentence.

use super::several_values;
use crate::known_digits::{
    LATENCY_UNITS, RATE_UNITS, digits_beside_interval, known_digits, known_percentile,
};
use crate::markdown_table::markdown_table;
use crate::text_table::TableColumn;
use crate::text_table::wrapped;
use iosonde_result::compare::informative_interval;
use iosonde_study::probe::LatencySummary;
use iosonde_study::saturation::Warmup;
use iosonde_study::sweep::{
    Between, CacheAnswer, CacheFinding, CellRate, SweepCell, SweepResult, WORKING_SET,
};
use iosonde_study::words;

/// Width of the bar for 100 % of the I/Os.
const BAR: usize = 18;

/// Returns text of at most 80 columns.
pub(super) fn working_set_text(result: &SweepResult) -> String {
    let mut text = String::new();
    for finding in &result.caches {
        text.push('\n');
        let title = title(result, finding);
        if !title.is_empty() {
            text.push_str(&format!("{title}\n"));
        }
        text.push_str(" working set     IOPS   latency       p99   warm-up  from cache\n");
        for row in working_set_rows(result, finding) {
            let WorkingSetRow {
                size,
                figures: [iops, latency, p99, warmup],
                served,
            } = row;
            let bar = served.map_or(String::new(), |share| {
                let full = (share * BAR as f64).round() as usize;
                format!("{:>4.0} %  {}", share * 100.0, "#".repeat(full))
            });
            let line = format!("{size:>12} {iops:>8} {latency:>9} {p99:>9} {warmup:>9}  {bar:>6}");
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push_str(&wrapped(&sentence(&finding.answer)));
    }
    text.push_str(&format!("\n{}", wrapped(&legend(result))));
    text
}

/// Returns the findings as Markdown.
pub(super) fn markdown(result: &SweepResult) -> String {
    let mut text = String::new();
    for finding in &result.caches {
        let title = title(result, finding);
        if !title.is_empty() {
            text.push_str(&format!("\n### {title}\n"));
        }
        let columns = [
            "working set",
            "IOPS",
            "latency",
            "p99",
            "warm-up",
            "from cache",
        ];
        let rows = working_set_rows(result, finding).into_iter().map(|row| {
            let served = row
                .served
                .map_or(String::new(), |share| format!("{:.0} %", share * 100.0));
            let [iops, latency, p99, warmup] = row.figures;
            [row.size, iops, latency, p99, warmup, served]
        });
        let table = markdown_table(&columns.map(TableColumn::Right), rows);
        text.push_str(&format!("\n{table}"));
        text.push_str(&format!("\n{}\n", sentence(&finding.answer)));
    }
    text.push_str(&format!("\n{}\n", legend(result)));
    text
}

/// Describes each finding, with the values of its axes.
pub fn sentences(result: &SweepResult) -> Vec<String> {
    let describe = |finding: &CacheFinding| {
        let title = title(result, finding);
        let sentence = sentence(&finding.answer);
        match title.is_empty() {
            true => sentence,
            false => format!("{title}: {sentence}"),
        }
    };
    result.caches.iter().map(describe).collect()
}

/// Axis values that distinguish a finding from others.
fn title(result: &SweepResult, finding: &CacheFinding) -> String {
    let depth = finding.iodepth.to_string();
    let values = finding.values.iter().chain([&depth]);
    let pairs = result.axes.iter().zip(values);
    several_values(pairs.filter(|(axis, _)| axis.name != WORKING_SET))
}

/// A working set.
struct WorkingSetRow {
    size: String,
    figures: [String; 4],
    /// Share of the I/Os that the cache served, if there is a cache.
    served: Option<f64>,
}

fn working_set_rows(result: &SweepResult, finding: &CacheFinding) -> Vec<WorkingSetRow> {
    let Some(size) = result.axes.iter().position(|axis| axis.name == WORKING_SET) else {
        return Vec::new();
    };
    let is_of = |values: &[String]| {
        let mut pairs = values.iter().zip(&finding.values).enumerate();
        pairs.all(|(index, (one, other))| index == size || one == other)
    };
    let curves = result.curves.iter().filter(|curve| is_of(&curve.values));
    curves
        .filter_map(|curve| {
            let cell = curve
                .cells
                .iter()
                .find(|cell| cell.iodepth == finding.iodepth)?;
            Some(WorkingSetRow {
                size: curve.values[size].clone(),
                figures: figures(cell),
                served: served(&finding.answer, cell),
            })
        })
        .collect()
}

fn figures(cell: &SweepCell) -> [String; 4] {
    let dash = || "-".to_owned();
    let rate = |iops: CellRate| digits_beside_interval(iops.mean, iops.error, RATE_UNITS);
    let mean = |ns: f64| known_digits(ns, cell.mean_latency_error_ns(), LATENCY_UNITS);
    let p99 = |latency: LatencySummary| known_percentile(latency.p99_ns, latency.p99_between_ns);
    [
        cell.iops.map_or_else(dash, rate),
        cell.mean_latency_ns.map_or_else(dash, mean),
        cell.latency.map_or_else(dash, p99),
        cell.warmup.map_or_else(dash, warmup),
    ]
}

fn warmup(warmup: Warmup) -> String {
    let seconds = warmup.length_ns as f64 / 1e9;
    match warmup.complete {
        true if seconds < 10.0 => format!("{seconds:.1} s"),
        true => words::duration(seconds),
        false => "not warm".to_owned(),
    }
}

/// Estimates that share from the mean latency, which is between that of a hit and of a miss.
fn served(answer: &CacheAnswer, cell: &SweepCell) -> Option<f64> {
    let CacheAnswer::Found {
        hit_ns, miss_ns, ..
    } = answer
    else {
        return None;
    };
    let share = (miss_ns.mean - cell.mean_latency_ns?) / (miss_ns.mean - hit_ns.mean);
    Some(share.clamp(0.0, 1.0))
}

fn sentence(answer: &CacheAnswer) -> String {
    let bytes = |bytes: f64| words::bytes(bytes.round() as u64);
    match answer {
        CacheAnswer::Found {
            size_bytes,
            hit_ns,
            miss_ns,
            ..
        } => {
            let size = match (size_bytes.low, size_bytes.high) {
                (None, None) => {
                    "A cache serves a part of the reads; its size cannot be determined from these \
                     working sets"
                        .to_owned()
                }
                (None, Some(high)) => {
                    format!(
                        "A cache of at most {} serves a part of the reads",
                        bytes(high)
                    )
                }
                (Some(low), None) => {
                    format!(
                        "A cache of at least {} serves a part of the reads",
                        bytes(low)
                    )
                }
                (Some(low), Some(high)) => format!(
                    "The cache holds {} ({} to {})",
                    bytes(size_bytes.mean),
                    bytes(low),
                    bytes(high)
                ),
            };
            format!(
                "{size}. A hit takes {}, a miss {}.",
                latency_text(*hit_ns),
                latency_text(*miss_ns)
            )
        }
        CacheAnswer::Flat {
            from_bytes,
            to_bytes,
        } => format!(
            "From {} to {} the latency is the same: a cache serves all reads, or none.",
            words::bytes(*from_bytes),
            words::bytes(*to_bytes)
        ),
        CacheAnswer::Unknown { why } => format!("Cannot tell whether there is a cache: {why}."),
    }
}

fn latency_text(latency: Between) -> String {
    let mean = words::latency(latency.mean);
    let ends = latency.low.zip(latency.high);
    match ends.and_then(|ends| informative_interval(latency.mean, ends)) {
        Some((low, high)) => {
            let (low, high) = (words::latency(low), words::latency(high));
            if low == high {
                mean
            } else {
                format!("{mean} ({low} to {high})")
            }
        }
        None => format!("about {mean}"),
    }
}

fn legend(result: &SweepResult) -> String {
    let cells = || result.curves.iter().flat_map(|curve| &curve.cells);
    let mut parts = vec![
        "latencies are means after the warm-up, whose length is shown".to_owned(),
        "from cache: inferred from the latency".to_owned(),
        "in parentheses: 95 % confidence".to_owned(),
    ];
    if cells().any(|cell| cell.warmup.is_some_and(|warmup| !warmup.complete)) {
        parts.insert(
            1,
            "not warm: --warm-up was too short to read the working set once and become steady"
                .to_owned(),
        );
    }
    format!("{}.", parts.join("; "))
}
