//! One line for each cell.

use crate::report::csv::text_cell;
use iosonde_study::sweep::{Basis, SweepResult};

/// For spreadsheets: a column for each axis, then the figures; latencies in nanoseconds.
pub(crate) fn csv(result: &SweepResult) -> String {
    let mut names: Vec<String> = result
        .axes
        .iter()
        .map(|axis| text_cell(&axis.name))
        .collect();
    let figures =
        "basis,iops,iops_error,bytes_per_s,mean_ns,p50_ns,p99_ns,p99_9_ns,max_ns,measured_ns";
    names.push(figures.to_owned());
    let warm = result.options.most_warmup_ns.is_some();
    names.extend(warm.then(|| "warmup_ns,warm".to_owned()));
    let mut text = names.join(",") + "\n";
    for curve in &result.curves {
        for cell in &curve.cells {
            let mut fields: Vec<String> =
                curve.values.iter().map(|value| text_cell(value)).collect();
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
            text.push_str(&(fields.join(",") + "\n"));
        }
    }
    text
}

fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Measured => "measured",
        Basis::Predicted => "predicted",
        Basis::Unknown => "unknown",
    }
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or(String::new(), |value| format!("{value:.digits$}"))
}
