//! Each figure has one source: all views of a stored result show the figures of its document.

use crate::common::Scratch;
use iosonde_result::compare::parts;
use iosonde_result::run::RunResult;
use iosonde_result::words;
use iosonde_study::load::LoadResult;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;

/// A simulated device with exponential latency and noise, so that figures differ between samples.
const STALLS: &str = "sim:read_us=500,write_us=300,parallel=4,read_dist=exp,noise=0.2,seed=3";

/// Collects each number of a document, and both ends of each interval, as any table may print it.
fn written_forms(value: &Value, forms: &mut HashSet<String>) {
    match value {
        Value::Number(number) => add_forms(number.as_f64().unwrap_or(0.0), forms),
        Value::Array(values) => values.iter().for_each(|each| written_forms(each, forms)),
        Value::Object(members) => {
            let of = |name: &str| members.get(name).and_then(Value::as_f64);
            if let (Some(mean), Some(error)) = (of("mean"), of("error")) {
                add_forms((mean - error).max(0.0), forms);
                add_forms(mean + error, forms);
            }
            members.values().for_each(|each| written_forms(each, forms));
        }
        _ => {}
    }
}

fn add_forms(number: f64, forms: &mut HashSet<String>) {
    forms.insert(words::iops_text(number));
    forms.insert(format!("{} IOPS", words::iops_text(number)));
    forms.insert(words::bandwidth(number));
    forms.insert(words::latency(number));
    for digits in [2, 3] {
        let rate = with_digits(number, digits, &RATE_UNITS);
        forms.insert(format!("{rate} IOPS"));
        forms.insert(rate);
        forms.insert(with_digits(number, digits, &BANDWIDTH_UNITS));
        forms.insert(with_digits(number, digits, &LATENCY_UNITS));
    }
}

const RATE_UNITS: [(f64, &str); 3] = [(1.0, ""), (1e3, "k"), (1e6, "M")];
const BANDWIDTH_UNITS: [(f64, &str); 4] = [
    (1.0, " B/s"),
    (1024.0, " KiB/s"),
    (1_048_576.0, " MiB/s"),
    (1_073_741_824.0, " GiB/s"),
];
const LATENCY_UNITS: [(f64, &str); 4] = [(1.0, " ns"), (1e3, " us"), (1e6, " ms"), (1e9, " s")];

/// Returns a figure of which only `digits` digits are known. An interval leaves two or three.
fn with_digits(number: f64, digits: i32, units: &[(f64, &str)]) -> String {
    let place = |value: f64| (value.log10() + 1e-9).floor() as i32;
    let mut index = 0;
    loop {
        let (size, unit) = units[index];
        let scaled = number / size;
        index += 1;
        if scaled <= 0.0 || !scaled.is_finite() {
            return format!("{scaled:.0}{unit}");
        }
        let step = 10f64.powi(place(scaled) - digits + 1);
        let rounded = (scaled / step).round() * step;
        if rounded < 999.5 || index >= units.len() {
            let decimals = (digits - 1 - place(rounded)).clamp(0, 2) as usize;
            return format!("{rounded:.decimals$}{unit}");
        }
    }
}

/// Adds figures that are computed from histograms of a document.
fn add_forms_of_histograms(document: &Value, forms: &mut HashSet<String>) {
    if let Ok(load) = LoadResult::deserialize(&document["load"]) {
        let bytes = load.options.pattern.block_bytes as f64;
        let capacity = load.capacity_iops;
        capacity
            .into_iter()
            .for_each(|iops| add_forms(iops * bytes, forms));
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
        for interval in &run.intervals {
            let rate = |count: u64| count as f64 * 1e9 / interval.length_ns as f64;
            for (_, counts) in interval.directions.iter() {
                add_forms(rate(counts.ios), forms);
                add_forms(rate(counts.bytes), forms);
            }
            let percentiles = [50.0, 99.0].map(|percent| interval.latency.percentile(percent));
            let known = percentiles.into_iter().flatten();
            known.for_each(|ns| add_forms(ns as f64, forms));
        }
        // Rates of a direction do not include flushes.
        for worker in &run.workers {
            let seconds = worker.runtime_ns as f64 / 1e9;
            add_forms(worker.sync.total_ios as f64 / seconds, forms);
        }
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

/// Returns the figures in a text: numbers with their units, and rates with suffix k or M. Half the
/// interval beside a figure is rounded up, so it is no figure of the document.
fn figures(text: &str) -> Vec<String> {
    const UNITS: [&str; 8] = ["IOPS", "ns", "us", "ms", "B/s", "KiB/s", "MiB/s", "GiB/s"];
    let is_mark = |c: char| !c.is_alphanumeric();
    let spaced: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c == '|' || c == ',')
        .filter(|word| !word.starts_with('±') && !word.starts_with("+-"))
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
        // Block sizes such as 4k have no decimal point, unlike rates.
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

/// Returns the figures of a text that are no number of the document.
fn strangers(text: &str, forms: &HashSet<String>) -> Vec<String> {
    let mut all = figures(text);
    all.retain(|figure| !forms.contains(figure));
    all.sort();
    all.dedup();
    all
}

/// Runs a study, and compares the output of each command with its document.
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
    // The first columns hold no figures, only the id and the time.
    let columns: Vec<&str> = row.split_whitespace().collect();
    let has_interval = row.contains('±') || row.contains("+-");
    let last = 3 + usize::from(has_interval);
    let listed = columns[columns.len().saturating_sub(last)..].join(" ");
    assert!(!figures(&listed).is_empty(), "nothing is listed: {row}");
    assert_eq!(strangers(&listed, &forms), [""; 0], "list\n{row}");
    if let Some(depth) = depth_of_highest_rate(&document) {
        let below = list.lines().nth(2).unwrap_or_default();
        let depth = format!("depth {depth}");
        let mut words = below.split([',', ' ']).collect::<Vec<_>>();
        words.retain(|word| !word.is_empty());
        let is_named = words.windows(2).any(|pair| pair.join(" ") == depth);
        assert!(is_named, "no {depth}: list\n{list}");
    }
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
    // The document of a SNIA test has no median.
    let is_kept = |row: &&Value| document["pts"].is_null() || row["measure"] != "lat_p50";
    for row in rows.iter().filter(is_kept) {
        let value = row["a"]["value"].as_f64().unwrap();
        let is_reported = match row["measure"].as_str().unwrap() {
            "iops" => forms.contains(&words::iops_text(value)),
            "bytes_per_s" => forms.contains(&words::bandwidth(value)),
            measure => measure.starts_with("clat") || forms.contains(&words::latency(value)),
        };
        assert!(is_reported, "compare: {row}");
        assert_eq!(row["a"]["value"], row["b"]["value"]);
    }
    scratch.done(&["report", "latest", "--output", "report.html"]);
    let page = std::fs::read_to_string(scratch.path("report.html")).unwrap();
    let drawn = document_of_page(&page);
    let mut shown = Vec::new();
    figures_of_page(&drawn, &mut shown);
    assert!(!shown.is_empty(), "the report has no figures");
    shown.retain(|(_, figure)| !forms.contains(figure));
    assert_eq!(shown, [], "report");
    let reported = words_of_page(&drawn);
    assert_eq!(strangers(&reported, &forms), [""; 0], "report: {reported}");
}

/// Returns the I/Os in flight of the highest rate of a probe, or of a sequential SNIA test, which
/// has one job.
fn depth_of_highest_rate(document: &Value) -> Option<u64> {
    let options = &document["pts"]["options"];
    if options["test"] == "throughput" {
        return Some(options["iodepth"].as_u64()? * options["numjobs"].as_u64()?);
    }
    let figures = document["probe"]["figures"].as_array()?;
    let rate = |figure: &Value| figure["iops"]["mean"].as_f64().unwrap_or(0.0);
    let highest = figures.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    highest["iodepth"].as_u64()
}

/// Returns the document that a page draws.
fn document_of_page(page: &str) -> Value {
    let (_, rest) = page.split_once("type=\"application/json\"").unwrap();
    let (_, rest) = rest.split_once('>').unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

/// Adds the figures in the tables of a page, each with its location, as the page prints them.
fn figures_of_page(document: &Value, shown: &mut Vec<(String, String)>) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    // Preparations and runs of grids have no row.
    let is_row = |run: &Value| run["preparation"] == false && run["of_grid"] == false;
    for run in list(&document["runs"]).iter().filter(|run| is_row(run)) {
        for figure in list(&run["figures"]) {
            let place = format!("{} {}", run["name"], figure["direction"]);
            add_rate(&place, &figure["iops"], words::iops_text, shown);
            add_rate(&place, &figure["bytes_per_s"], words::bandwidth, shown);
            let latency = &figure["latency"];
            let mut ns = vec![&latency["mean_ns"], &latency["max_ns"]];
            let marks = list(&latency["marks"]);
            ns.extend(marks.iter().map(|mark| &mark[1]));
            add_latencies(&place, &ns, shown);
            add_texts(&place, &figure, shown);
        }
    }
    for grid in ["sweeps", "knees"] {
        for sweep in list(&document[grid]) {
            for curve in list(&sweep["curves"]) {
                for cell in list(&curve["cells"]) {
                    let place = format!("{grid} {} depth {}", curve["values"], cell["iodepth"]);
                    add_rate(&place, &cell["iops"], words::iops_text, shown);
                    let bandwidth = cell["bytes_per_s"].as_f64().map(words::bandwidth);
                    shown.extend(bandwidth.map(|text| (place.clone(), text)));
                    let percentiles = list(&cell["percentiles_ns"]);
                    let mut ns = vec![&cell["mean_ns"], &cell["max_ns"]];
                    ns.extend(&percentiles);
                    add_latencies(&place, &ns, shown);
                }
            }
        }
    }
    for load in list(&document["loads"]) {
        for point in list(&load["points"]) {
            let place = format!("load {}", point["offered_per_s"]);
            let rate = point["achieved_per_s"].as_f64().map(words::iops_text);
            shown.extend(rate.map(|text| (place.clone(), text)));
            let percentiles = list(&point["percentiles_ns"]);
            let mut ns = vec![&point["max_ns"]];
            ns.extend(&percentiles);
            add_latencies(&place, &ns, shown);
        }
    }
}

/// Adds a rate with both ends of its interval.
fn add_rate(
    place: &str,
    rate: &Value,
    write: fn(f64) -> String,
    shown: &mut Vec<(String, String)>,
) {
    let Some(mean) = rate["mean"].as_f64().filter(|mean| *mean > 0.0) else {
        return;
    };
    let error = rate["error"].as_f64();
    let ends = error.map(|error| [(mean - error).max(0.0), mean + error]);
    let all = std::iter::once(mean).chain(ends.into_iter().flatten());
    shown.extend(all.map(|value| (place.to_owned(), write(value))));
}

/// Adds the texts of a figure: those of the rate, the bandwidth and the percentiles.
fn add_texts(place: &str, figure: &Value, shown: &mut Vec<(String, String)>) {
    let texts = &figure["shown"];
    let has_rate = |rate: &str| figure[rate]["mean"].as_f64() > Some(0.0);
    let rates = [("iops", "iops"), ("bytes_per_s", "bandwidth")].into_iter();
    let rates = rates.filter(|(rate, _)| has_rate(rate));
    let rates = rates.filter_map(|(_, text)| texts[text].as_str());
    let percentiles = texts["percentiles"].as_array().into_iter().flatten();
    let all = rates.chain(percentiles.filter_map(Value::as_str));
    let plain = |text: &str| text.trim_start_matches('~').replace('µ', "u");
    shown.extend(all.map(|text| (place.to_owned(), plain(text))));
}

fn add_latencies(place: &str, ns: &[&Value], shown: &mut Vec<(String, String)>) {
    let known = ns.iter().filter_map(|value| value.as_f64());
    let known = known.filter(|value| *value > 0.0);
    shown.extend(known.map(|value| (place.to_owned(), words::latency(value))));
}

/// Returns the sentences of a page.
fn words_of_page(document: &Value) -> String {
    let mut reported = String::new();
    for (list, keys) in [
        ("studies", &["sentence", "notes"][..]),
        ("sweeps", &["headline", "notes"]),
        ("loads", &["headline", "knee", "objectives", "notes"]),
    ] {
        for each in document[list].as_array().into_iter().flatten() {
            for key in keys {
                add_words(&each[key], &mut reported);
            }
            for curve in each["curves"].as_array().into_iter().flatten() {
                add_words(&curve["sentence"], &mut reported);
            }
        }
    }
    reported
}

fn add_words(value: &Value, reported: &mut String) {
    match value {
        Value::String(text) => {
            reported.push_str(&text.replace('µ', "u"));
            reported.push('\n');
        }
        Value::Array(values) => values.iter().for_each(|each| add_words(each, reported)),
        _ => {}
    }
}

#[test]
fn sweep_views_show_figures_of_document() {
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
fn probe_views_show_figures_of_document() {
    shown_alike("probe", &["probe", STALLS]);
}

#[test]
fn quick_probe_views_show_figures_of_document() {
    shown_alike("quick", &["probe", STALLS, "--quick"]);
}

#[test]
fn load_views_show_figures_of_document() {
    shown_alike("load", &["load", STALLS, "--runtime", "2s"]);
}

#[test]
fn fio_job_views_show_figures_of_document() {
    shown_alike("fio", &crate::common::JOB);
    let device = format!("--sim={}", STALLS.trim_start_matches("sim:"));
    let words = ["fio", "--name=r", "--ioengine=sim", &device, "--size=64m"];
    let rest = [
        "--rw=randrw",
        "--iodepth=8",
        "--runtime=6",
        "--time_based",
        "--name=w",
        "--stonewall",
        "--ioengine=sim",
        &device,
        "--size=64m",
        "--rw=write",
        "--fsync=8",
        "--runtime=6",
        "--time_based",
        "--output-format=json",
    ];
    shown_alike("fio-jobs", &[&words[..], &rest].concat());
}

#[test]
fn pts_views_show_figures_of_document() {
    let device = "sim:seed=1,capacity=64m,read_us=2ms,write_us=1ms,parallel=4,link_bw=40m";
    let words = ["pts", "throughput", device, "--size", "64m"];
    let rest = ["--time-scale", "0.01", "--purge", "discard"];
    shown_alike("pts", &[&words[..], &rest].concat());
}
