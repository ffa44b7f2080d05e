//! CSV with one line per figure. Columns name their units. Unknown values are empty.

use super::row;
use crate::csv::csv_line;
use crate::promise;
use iosonde_study::probe::{PhaseFigure, ProbeResult};
use iosonde_study::promise_check::PromiseCheck;

const HEAD: &str = "target,phase,block_bytes,iodepth,engine,direct,iops,iops_error_95,\
bytes_per_s,bytes_per_s_error_95,\
latency_of,latency_mean_ns,p50_ns,p99_ns,p99_9_ns,max_ns,settled,sure,measured_ns,\
p50_low_95_ns,p50_high_95_ns,p99_low_95_ns,p99_high_95_ns,p99_9_low_95_ns,p99_9_high_95_ns";

/// Further columns if promises were given. A figure has one line per promise.
const EXPECTED: &str = ",expected,promised_of,promised_per_s,burst_per_s,measured_of_promised,\
promise_verdict,promise_doubts";

/// Further column of `--repeat`: the number of the run, from 1.
const RUN: &str = ",run";

pub(super) fn probe_csv_text(results: &[ProbeResult]) -> String {
    let results = results.iter().map(|result| (result, None));
    text_of_runs(&results.collect::<Vec<_>>())
}

/// Each result, and the number of its run if the probe was repeated.
pub(super) fn text_of_runs(results: &[(&ProbeResult, Option<usize>)]) -> String {
    let expected = results
        .iter()
        .any(|(result, _)| !result.expected.is_empty());
    let is_repeated = results.iter().any(|(_, run)| run.is_some());
    let mut text = HEAD.to_owned();
    text.push_str(if is_repeated { RUN } else { "" });
    text.push_str(if expected { EXPECTED } else { "" });
    text.push('\n');
    for (result, run) in results {
        for figure in row::figures(result) {
            let mut cells = figure_cells(&result.target, figure);
            cells.extend(run.map(|run| run.to_string()));
            let promised = promised_cells(result, figure);
            if !expected {
                text.push_str(&csv_line(&cells));
            } else if promised.is_empty() {
                let empty: [String; 7] = Default::default();
                text.push_str(&csv_line(cells.iter().chain(&empty)));
            }
            for columns in promised {
                text.push_str(&csv_line(cells.iter().chain(&columns)));
            }
        }
    }
    text
}

/// Columns of each promise that the figure was compared with.
fn promised_cells(result: &ProbeResult, figure: &PhaseFigure) -> Vec<[String; 7]> {
    let number = |value: f64| format!("{value:.3}");
    let of = |held: &PromiseCheck| -> Option<[String; 7]> {
        let row = held.rows.iter().find(|row| row.phase == figure.phase)?;
        let judged = &row.judged;
        let doubts: Vec<&str> = row.doubts.iter().map(|doubt| doubt.words()).collect();
        Some([
            promise::title(&held.promise),
            judged.metric.key().to_owned(),
            number(judged.promised_per_s),
            judged.burst_per_s.map_or(String::new(), number),
            number(judged.ratio),
            promise::verdict_keyword(judged.verdict).to_owned(),
            doubts.join("; "),
        ])
    };
    result.expected.iter().filter_map(of).collect()
}

fn figure_cells(target: &str, figure: &PhaseFigure) -> Vec<String> {
    let latency = row::latency(figure);
    let latency_of = if figure.sync_latency.is_some() {
        "fdatasync"
    } else {
        "io"
    };
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
    let whole = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let between = |ends: Option<(u64, u64)>| {
        let ends = ends.unzip();
        [whole(ends.0), whole(ends.1)]
    };
    let mut cells = vec![
        target.to_owned(),
        figure.phase.key().to_owned(),
        figure.block_bytes.to_string(),
        figure.iodepth.to_string(),
        figure.engine.name().to_owned(),
        u8::from(figure.direct).to_string(),
        number(Some(figure.iops.mean)),
        number(figure.iops.error),
        number(Some(figure.bytes_per_s.mean)),
        number(figure.bytes_per_s.error),
        latency_of.to_owned(),
        number(Some(latency.mean_ns)),
        whole(latency.p50_ns),
        whole(latency.p99_ns),
        whole(latency.p99_9_ns),
        number(Some(latency.max_ns)),
        truth(figure.settled),
        truth(figure.sure),
        figure.measured_ns.to_string(),
    ];
    cells.extend(between(latency.p50_between_ns));
    cells.extend(between(latency.p99_between_ns));
    cells.extend(between(latency.p99_9_between_ns));
    cells
}

fn truth(known: Option<bool>) -> String {
    known
        .map_or("", |yes| if yes { "1" } else { "0" })
        .to_owned()
}
