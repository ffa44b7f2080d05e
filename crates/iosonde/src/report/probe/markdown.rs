//! Tables for a report or an issue.

use super::{conditions, row};
use iosonde_study::probe::ProbeResult;
use iosonde_study::words;

pub(super) fn text(results: &[ProbeResult]) -> String {
    results.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn one(result: &ProbeResult) -> String {
    let size = words::bytes(result.working_set.bytes);
    let mut text = format!(
        "## {}\n\n{}\n\n",
        result.target, result.classification.sentence
    );
    text.push_str("| | per second | 95 % +- | bandwidth | p50 | p99 | p99.9 |\n");
    text.push_str("| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for figure in row::ORDER.iter().filter_map(|phase| result.figure(*phase)) {
        let latency = row::latency(figure);
        let cells = [
            row::label(figure),
            words::iops(figure.iops.mean),
            row::error(figure),
            words::bandwidth(figure.bytes_per_s.mean),
            row::percentile(latency.p50_ns),
            row::percentile(latency.p99_ns),
            row::percentile(latency.p99_9_ns),
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text.push_str(&format!(
        "\n| condition | |\n| --- | --- |\n| working set | {size} |\n"
    ));
    for (name, value) in conditions::of(result) {
        text.push_str(&format!("| {name} | {} |\n", value.replace('|', "\\|")));
    }
    text
}
