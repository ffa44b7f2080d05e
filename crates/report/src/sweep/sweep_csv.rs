//! CSV with one line per cell.

use crate::csv::csv_line;
use iosonde_study::sweep::{CellBasis, SweepResult};

const FIGURES: [&str; 10] = [
    "basis",
    "iops",
    "iops_error",
    "bytes_per_s",
    "mean_ns",
    "p50_ns",
    "p99_ns",
    "p99_9_ns",
    "max_ns",
    "measured_ns",
];

/// Returns a column per axis, then the figures. Latencies are in nanoseconds.
pub fn sweep_cells_csv(result: &SweepResult) -> String {
    let mut names: Vec<&str> = result.axes.iter().map(|axis| axis.name.as_str()).collect();
    names.extend(FIGURES);
    let warm = result.options.most_warmup_ns.is_some();
    if warm {
        names.extend(["warmup_ns", "warm"]);
    }
    let mut text = csv_line(names);
    for curve in &result.curves {
        for cell in &curve.cells {
            let mut fields = curve.values.clone();
            fields.push(cell.iodepth.to_string());
            fields.push(basis(cell.basis).to_owned());
            fields.push(number(cell.iops.map(|iops| iops.mean), 1));
            fields.push(number(cell.iops.and_then(|iops| iops.error), 1));
            fields.push(number(cell.bytes_per_s, 0));
            fields.push(number(cell.mean_latency_ns, 0));
            let latency = cell.latency.as_ref();
            let percentiles = latency.map_or([None; 3], |l| [l.p50_ns, l.p99_ns, l.p99_9_ns]);
            fields.extend(percentiles.map(|ns| number(ns.map(|ns| ns as f64), 0)));
            fields.push(number(latency.map(|latency| latency.max_ns), 0));
            fields.push(cell.measured_ns.to_string());
            if warm {
                let length = cell.warmup.map(|warmup| warmup.length_ns as f64);
                fields.push(number(length, 0));
                fields.push(
                    cell.warmup
                        .map_or(String::new(), |warmup| warmup.complete.to_string()),
                );
            }
            text.push_str(&csv_line(fields));
        }
    }
    text
}

fn basis(basis: CellBasis) -> &'static str {
    match basis {
        CellBasis::Measured => "measured",
        CellBasis::Predicted => "predicted",
        CellBasis::Unknown => "unknown",
    }
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or(String::new(), |value| format!("{value:.digits$}"))
}
