//! Tables for a report or an issue.

use super::{conditions, device, limits, promise, row, side_by_side};
use iosonde_study::limits::Held;
use iosonde_study::probe::ProbeResult;
use iosonde_study::words;

pub(super) fn text(results: &[ProbeResult]) -> String {
    let each = results.iter().map(|result| one(result, results));
    let mut text = each.collect::<Vec<_>>().join("\n");
    if results.len() > 1 {
        text.push_str(&side_by_side::markdown(results));
    }
    text
}

fn one(result: &ProbeResult, results: &[ProbeResult]) -> String {
    let size = words::bytes(result.working_set.bytes);
    let mut text = format!("## {}\n\n", result.target);
    if !device::is_shared(result, results) {
        text.push_str(&format!("{}\n\n", result.classification.sentence));
    }
    text.push_str("| | per second | 95 % +- | bandwidth | p50 | p99 | p99.9 | |\n");
    text.push_str("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n");
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
            row::doubts(figure).join("; "),
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text.push_str(&intervals(result));
    let knees = limits::knees(result);
    let most = knees
        .into_iter()
        .map(|(name, value)| (format!("{}, {name}", limits::MOST), value));
    let held_back = limits::held_back(result).into_iter();
    let held_back = held_back.chain(limits::ceilings(result));
    let held_back = held_back.map(|(name, value)| (name.to_owned(), value));
    let lines: Vec<_> = most.chain(held_back).collect();
    if !lines.is_empty() {
        text.push('\n');
    }
    for (name, value) in lines {
        text.push_str(&format!("- {name}: {value}\n"));
    }
    text.push_str(&format!(
        "\n| condition | |\n| --- | --- |\n| working set | {size} |\n"
    ));
    for (name, value) in conditions::of(result) {
        text.push_str(&format!("| {name} | {} |\n", value.replace('|', "\\|")));
    }
    for held in &result.expected {
        text.push_str(&promised(held));
    }
    text
}

/// Between which values the percentiles of latency lie; empty where none is known.
fn intervals(result: &ProbeResult) -> String {
    let figures = row::ORDER.iter().filter_map(|phase| result.figure(*phase));
    let mut lines = String::new();
    for figure in figures {
        let all = row::intervals(figure);
        if all.iter().any(Option::is_some) {
            let cells = all.map(row::between).join(" | ");
            lines.push_str(&format!("| {} | {cells} |\n", row::label(figure)));
        }
    }
    if lines.is_empty() {
        return lines;
    }
    let head = "| 95 % intervals of latency | p50 | p99 | p99.9 |\n| --- | ---: | ---: | ---: |\n";
    format!("\n{head}{lines}")
}

fn promised(held: &Held) -> String {
    let mut text = format!(
        "\n### Promised: {}\n\n{}\n\n",
        promise::title(&held.promise),
        held.sentence()
    );
    if held.is_of_cache() {
        return text;
    }
    text.push_str("| | promised | measured | 95 % +- | of it | verdict |\n");
    text.push_str("| --- | ---: | ---: | ---: | ---: | --- |\n");
    for row in &held.rows {
        let mut verdict = vec![promise::word(row.judged.verdict)];
        verdict.extend(row.doubts.iter().map(|doubt| doubt.words()));
        let cells = [
            row.judged.metric.to_string(),
            promise::promised(&row.judged),
            promise::measured(&row.judged),
            promise::error(row),
            promise::share(&row.judged),
            verdict.join("; "),
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    if !held.conditions.is_empty() {
        text.push('\n');
    }
    for condition in &held.conditions {
        text.push_str(&format!("- {condition}\n"));
    }
    text
}
