//! One line for each figure. Units are in the names of the columns; what is not known is empty.

use super::{promise, row};
use crate::report::csv::text_cell;
use iosonde_study::limits::Held;
use iosonde_study::probe::{Figure, ProbeResult};

const HEAD: &str = "target,phase,block_bytes,iodepth,engine,direct,iops,iops_error_95,bytes_per_s,bytes_per_s_error_95,\
latency_of,latency_mean_ns,p50_ns,p99_ns,p99_9_ns,max_ns,settled,sure,measured_ns,\
p50_low_95_ns,p50_high_95_ns,p99_low_95_ns,p99_high_95_ns,p99_9_low_95_ns,p99_9_high_95_ns";

/// Further columns, where something was expected. A figure that was held against several promises has a line for each.
const EXPECTED: &str = ",expected,promised_of,promised_per_s,burst_per_s,measured_of_promised,promise_verdict,promise_doubts";

pub(super) fn text(results: &[ProbeResult]) -> String {
    let expected = results.iter().any(|result| !result.expected.is_empty());
    let mut text = HEAD.to_owned();
    text.push_str(if expected { EXPECTED } else { "" });
    text.push('\n');
    for result in results {
        for figure in row::ORDER.iter().filter_map(|phase| result.figure(*phase)) {
            let line = line(&result.target, figure);
            let promised = promised(result, figure);
            if !expected {
                text.push_str(&format!("{line}\n"));
            } else if promised.is_empty() {
                text.push_str(&format!("{line},,,,,,,\n"));
            }
            for columns in promised {
                text.push_str(&format!("{line},{columns}\n"));
            }
        }
    }
    text
}

/// The columns of each promise that the figure was held against.
fn promised(result: &ProbeResult, figure: &Figure) -> Vec<String> {
    let number = |value: f64| format!("{value:.3}");
    let of = |held: &Held| -> Option<String> {
        let row = held.rows.iter().find(|row| row.phase == figure.phase)?;
        let judged = &row.judged;
        let doubts: Vec<&str> = row.doubts.iter().map(|doubt| doubt.words()).collect();
        let columns = [
            text_cell(&promise::title(&held.promise)),
            judged.metric.key().to_owned(),
            number(judged.promised_per_s),
            judged.burst_per_s.map_or(String::new(), number),
            number(judged.ratio),
            promise::word(judged.verdict).to_owned(),
            text_cell(&doubts.join("; ")),
        ];
        Some(columns.join(","))
    };
    result.expected.iter().filter_map(of).collect()
}

fn line(target: &str, figure: &Figure) -> String {
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
        format!("{},{}", whole(ends.0), whole(ends.1))
    };
    [
        text_cell(target),
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
        between(latency.p50_between_ns),
        between(latency.p99_between_ns),
        between(latency.p99_9_between_ns),
    ]
    .join(",")
}

fn truth(known: Option<bool>) -> String {
    known
        .map_or("", |yes| if yes { "1" } else { "0" })
        .to_owned()
}
