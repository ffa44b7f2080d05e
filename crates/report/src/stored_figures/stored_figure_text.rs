//! Tables, CSV and Markdown of figures that were computed anew.

use super::{LatencyPercentiles, PercentileValue, RunFigures, StoredFigures, WindowRates};
use crate::csv::csv_line;
use crate::markdown_table::markdown_table;
use crate::text_table::TableColumn::{Left, Right};
use crate::text_table::{render_left, right, wrapped, wrapped_table};
use comfy_table::Cell;
use iosonde_result::time_window::seconds;
use iosonde_result::words;

/// Name and value of each figure of a run.
fn figure_rows(run: &RunFigures) -> Vec<[String; 2]> {
    let mut rows = Vec::new();
    let rates = run.window.iter().flat_map(|window| &window.directions);
    for rate in rates {
        let name = rate.direction.name();
        rows.push([format!("{name} IOPS"), words::iops_text(rate.iops)]);
        let bandwidth = words::bandwidth(rate.bytes_per_s);
        rows.push([format!("{name} bandwidth"), bandwidth]);
    }
    let has_many_parts = run.jobs.len() > 1;
    for latency in &run.latencies {
        let part = latency.part.as_ref().filter(|_| has_many_parts);
        let part = part.map_or(String::new(), |part| format!("{part} "));
        let LatencyPercentiles { subject, words, .. } = latency;
        for value in &latency.percentiles {
            let name = format!("{part}{subject} {words} p{}", value.percent);
            rows.push([name, shown(value, latency.count)]);
        }
    }
    rows
}

/// Formats a percentile. One with too few values is refused with their number.
fn shown(value: &PercentileValue, count: u64) -> String {
    match value.ns {
        Some(ns) => words::latency(ns as f64),
        None => format!("needs {} I/Os, has {count}", value.needed),
    }
}

fn title(run: &RunFigures) -> String {
    let jobs = run.jobs.join(", ");
    let when = run.window.as_ref().map_or(String::new(), window_words);
    format!("{} ({jobs}){when}", run.run)
}

fn window_words(window: &WindowRates) -> String {
    let ramp = match window.ramp_intervals {
        0 => String::new(),
        count => format!(
            ", {} of the ramp left out",
            words::counted(count, "interval")
        ),
    };
    format!(
        ", {} to {}, {}{ramp}",
        seconds(window.from_ns),
        seconds(window.to_ns),
        words::counted(window.intervals, "interval")
    )
}

pub(super) fn table(figures: &StoredFigures) -> String {
    let runs = figures.runs.iter().map(|run| {
        let mut table = wrapped_table();
        for [name, value] in figure_rows(run) {
            table.add_row([Cell::new(name), right(value)]);
        }
        let mut text = format!("{}\n", wrapped(&title(run)));
        text.push_str(&render_left(&mut table));
        for missing in &run.missing {
            text.push_str(&wrapped(&format!("not known: {missing}")));
        }
        text
    });
    runs.collect::<Vec<_>>().join("\n")
}

pub(super) fn markdown(figures: &StoredFigures) -> String {
    let runs = figures.runs.iter().map(|run| {
        let table = markdown_table(&[Left(""), Right("")], figure_rows(run));
        let missing = run.missing.iter();
        let missing: String = missing
            .map(|one| format!("\nNot known: {one}.\n"))
            .collect();
        format!("### {}\n\n{table}{missing}", title(run))
    });
    runs.collect::<Vec<_>>().join("\n")
}

const HEAD: &str = "run,from_ns,to_ns,part,subject,measure,percent,value,count\n";

/// One line per figure. A percentile with too few latencies has no value.
pub(super) fn stored_figures_csv(figures: &StoredFigures) -> String {
    let mut text = HEAD.to_owned();
    for run in &figures.runs {
        let bound = |bound: fn(&WindowRates) -> u64| {
            let window = run.window.as_ref();
            window.map_or(String::new(), |window| bound(window).to_string())
        };
        let (from, to) = (bound(|window| window.from_ns), bound(|window| window.to_ns));
        let mut line = |rest: [String; 6]| {
            let first = [run.run.clone(), from.clone(), to.clone()];
            text.push_str(&csv_line(first.into_iter().chain(rest)));
        };
        let rates = run.window.iter().flat_map(|window| &window.directions);
        for rate in rates {
            let measures = [
                ("iops", rate.iops, rate.ios),
                ("bytes_per_s", rate.bytes_per_s, rate.bytes),
            ];
            for (measure, value, count) in measures {
                line([
                    String::new(),
                    rate.direction.name().to_owned(),
                    measure.to_owned(),
                    String::new(),
                    format!("{value:.3}"),
                    count.to_string(),
                ]);
            }
        }
        for latency in &run.latencies {
            for value in &latency.percentiles {
                line([
                    latency.part.clone().unwrap_or_default(),
                    latency.subject.clone(),
                    latency.kind.to_owned(),
                    value.percent.to_string(),
                    value.ns.map_or(String::new(), |ns| ns.to_string()),
                    latency.count.to_string(),
                ]);
            }
        }
    }
    text
}
