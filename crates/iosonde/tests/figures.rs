//! One figure has one source: whatever shows a stored result shows the figures of its document.

mod common;

use common::Scratch;
use iosonde_result::compare::parts;
use iosonde_result::run::RunResult;
use iosonde_result::words;
use iosonde_study::load::LoadResult;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;

/// Studies of each kind on a simulated device that stands still for a while now and then, so that figures differ from
/// sample to sample.
const STALLS: &str = "sim:read_us=500,write_us=300,parallel=4,read_dist=exp,noise=0.2,seed=3";

/// Every number of a document as any table may write it, and the ends of each interval.
fn written_forms(value: &Value, forms: &mut HashSet<String>) {
    match value {
        Value::Number(number) => add_forms(number.as_f64().unwrap_or(0.0), forms),
        Value::Array(values) => values.iter().for_each(|each| written_forms(each, forms)),
        Value::Object(members) => {
            let of = |name: &str| members.get(name).and_then(Value::as_f64);
            if let (Some(mean), Some(error)) = (of("mean"), of("error")) {
                add_forms(mean - error, forms);
                add_forms(mean + error, forms);
            }
            members.values().for_each(|each| written_forms(each, forms));
        }
        _ => {}
    }
}

fn add_forms(number: f64, forms: &mut HashSet<String>) {
    forms.insert(words::iops(number));
    forms.insert(format!("{} IOPS", words::iops(number)));
    forms.insert(words::bandwidth(number));
    forms.insert(words::latency(number));
}

/// Figures that are read from the histograms of a document.
fn add_forms_of_histograms(document: &Value, forms: &mut HashSet<String>) {
    if let Ok(load) = LoadResult::deserialize(&document["load"]) {
        let bytes = load.options.pattern.block_bytes as f64;
        for point in &load.points {
            add_forms(point.achieved_per_s() * bytes, forms);
            add_forms(point.max_ns(), forms);
            let percents = [50.0, 95.0, 99.0, 99.9].into_iter();
            percents
                .filter_map(|percent| point.percentile_ns(percent))
                .for_each(|ns| add_forms(ns, forms));
        }
    }
    if let Ok(run) = RunResult::deserialize(document) {
        let found = parts(&run).into_iter().flat_map(|part| part.figures);
        for figure in found {
            add_forms(figure.value, forms);
            let ends = figure.bounds.map(|bounds| [bounds.low, bounds.high]);
            ends.into_iter()
                .flatten()
                .for_each(|end| add_forms(end, forms));
        }
    }
}

/// The figures in a text: rates, bandwidths and latencies with their units, and rates in thousands.
fn figures(text: &str) -> Vec<String> {
    const UNITS: [&str; 8] = ["IOPS", "ns", "us", "ms", "B/s", "KiB/s", "MiB/s", "GiB/s"];
    let is_mark = |c: char| !c.is_alphanumeric();
    let spaced: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c == '|' || c == ',')
        .map(|word| word.trim_matches(is_mark))
        .filter(|word| !word.is_empty())
        .collect();
    let mut found = Vec::new();
    for (index, word) in spaced.iter().enumerate() {
        let digits = word.trim_end_matches(char::is_alphabetic);
        if digits.parse::<f64>().is_err() {
            continue;
        }
        let unit = &word[digits.len()..];
        let next = spaced.get(index + 1).copied().unwrap_or_default();
        // Block sizes such as 4k are no figures: those have three digits.
        let is_rate = matches!(unit, "k" | "M") && digits.contains('.');
        if UNITS.contains(&unit) {
            found.push(format!("{digits} {unit}"));
        } else if unit.is_empty()
            && UNITS.contains(&next)
            && (digits.contains('.') || next.ends_with("B/s"))
        {
            found.push(format!("{digits} {next}"));
        } else if is_rate {
            found.push((*word).to_owned());
        }
    }
    found
}

/// The figures of a text that no number of the document is written as.
fn strangers(text: &str, forms: &HashSet<String>) -> Vec<String> {
    let mut all = figures(text);
    all.retain(|figure| !forms.contains(figure));
    all.sort();
    all.dedup();
    all
}

/// Runs a study, and holds what each command shows of it against its document.
fn shown_alike(name: &str, words: &[&str]) {
    let scratch = Scratch::new(&format!("figures-{name}"));
    scratch.done(words);
    let document = scratch.done(&["export", "latest", "--format", "json"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    let mut forms = HashSet::new();
    written_forms(&document, &mut forms);
    add_forms_of_histograms(&document, &mut forms);
    let table = scratch.done(&["show", "latest"]);
    assert!(!figures(&table).is_empty(), "nothing is tested: {table}");
    let list = scratch.done(&["list"]);
    let row = list.lines().nth(1).unwrap_or_default();
    // The time of the day is no figure; the last three columns are.
    let columns: Vec<&str> = row.split_whitespace().collect();
    let listed = columns[columns.len().saturating_sub(4)..].join(" ");
    assert!(!figures(&listed).is_empty(), "nothing is listed: {row}");
    assert_eq!(strangers(&listed, &forms), [""; 0], "list\n{row}");
    for format in ["table", "markdown"] {
        let shown = scratch.done(&["show", "latest", "--format", format]);
        assert_eq!(
            strangers(&shown, &forms),
            [""; 0],
            "show as {format}\n{shown}"
        );
    }
    for format in ["json", "csv", "markdown"] {
        let shown = scratch.done(&["show", "latest", "--format", format]);
        let exported = scratch.done(&["export", "latest", "--format", format]);
        assert_eq!(shown, exported, "{format}");
    }
    let compared = scratch.done(&["compare", "latest", "latest", "--format", "json"]);
    let compared: Value = serde_json::from_str(&compared).unwrap();
    let rows = compared["rows"].as_array().unwrap();
    assert!(!rows.is_empty(), "nothing is compared");
    // The document of a pts test has no median.
    let is_kept = |row: &&Value| document["pts"].is_null() || row["measure"] != "lat_p50";
    for row in rows.iter().filter(is_kept) {
        let value = row["a"]["value"].as_f64().unwrap();
        let is_told = match row["measure"].as_str().unwrap() {
            "iops" => forms.contains(&words::iops(value)),
            "bytes_per_s" => forms.contains(&words::bandwidth(value)),
            measure => measure.starts_with("clat") || forms.contains(&words::latency(value)),
        };
        assert!(is_told, "compare: {row}");
        assert_eq!(row["a"]["value"], row["b"]["value"]);
    }
    scratch.done(&["report", "latest", "--output", "report.html"]);
    let page = std::fs::read_to_string(scratch.path("report.html")).unwrap();
    let data = page
        .split("type=\"application/json\"")
        .nth(1)
        .unwrap_or(&page);
    assert!(data.contains('{'), "the report has no data");
}

#[test]
fn figures_of_a_sweep_are_the_same_everywhere() {
    let words = [
        "sweep",
        STALLS,
        "--rw",
        "randread,randwrite",
        "--bs",
        "4k,64k",
    ];
    let rest = ["--iodepth", "1..32", "--runtime", "2s"];
    shown_alike("sweep", &[&words[..], &rest].concat());
}

#[test]
fn figures_of_a_probe_are_the_same_everywhere() {
    shown_alike("probe", &["probe", STALLS]);
}

#[test]
fn figures_of_a_quick_probe_are_the_same_everywhere() {
    shown_alike("quick", &["probe", STALLS, "--quick"]);
}

#[test]
fn figures_of_a_load_study_are_the_same_everywhere() {
    shown_alike("load", &["load", STALLS, "--runtime", "2s"]);
}

#[test]
fn figures_of_a_fio_job_are_the_same_everywhere() {
    shown_alike("fio", &common::JOB);
}

#[test]
fn figures_of_a_pts_test_are_the_same_everywhere() {
    let device = "sim:seed=1,capacity=64m,read_us=2ms,write_us=1ms,parallel=4,link_bw=40m";
    let words = ["pts", "throughput", device, "--size", "64m"];
    let rest = ["--time-scale", "0.01", "--purge", "discard"];
    shown_alike("pts", &[&words[..], &rest].concat());
}
