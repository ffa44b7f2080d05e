//! Report of `iosonde k8s fio`: kubestr's output per class, latencies, and a table of all classes.

use crate::json_document::json_text;
use crate::text_table::{
    UNBROKEN_BLANK, aligned_columns, fill_table, fit_lines, is_narrow, plain, render_left, wrapped,
};
use iosonde_result::words;
use serde_json::{Value, json};
use std::fmt::Write;

/// A storage class and its fio result.
#[derive(Debug, Clone)]
pub struct ClassRun {
    /// Storage class.
    pub class: String,
    /// Size of its claim.
    pub claim_bytes: u64,
    /// Elapsed time of the run.
    pub elapsed_ns: u64,
    /// Node of the pod.
    pub node: Option<String>,
    /// fio's JSON.
    pub fio: Value,
    /// Verdicts on the figures, for example reasons why they may be wrong.
    pub verdicts: Vec<String>,
    /// Activity of the disks of watched nodes, as text.
    pub nodes: String,
    /// Error of a job.
    pub error: Option<String>,
}

const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// Returns the report as text of at most 80 columns.
pub fn class_runs_text(runs: &[ClassRun]) -> String {
    let mut text = runs.iter().map(class).collect::<Vec<_>>().join("\n");
    if runs.len() > 1 {
        let title = wrapped("Side by side: IOPS, bandwidth, 99th percentile of the latency");
        let _ = write!(text, "\n{title}\n{}", side_by_side(runs));
    }
    text
}

/// Returns the report as JSON.
pub fn class_runs_json(runs: &[ClassRun]) -> String {
    let all: Vec<Value> = runs
        .iter()
        .map(|run| {
            json!({
                "storage_class": run.class,
                "claim_bytes": run.claim_bytes,
                "node": run.node,
                "verdicts": run.verdicts,
                "fio": run.fio,
            })
        })
        .collect();
    // Serialization of plain data cannot fail.
    json_text(&all).unwrap_or_default()
}

fn class(run: &ClassRun) -> String {
    let node = run
        .node
        .as_ref()
        .map_or(String::new(), |node| format!(", node {node}"));
    let claim = words::bytes(run.claim_bytes);
    let elapsed = words::duration(run.elapsed_ns as f64 / 1e9);
    let mut text = format!(
        "Storage class {}: claim of {claim}{node}, {elapsed}\n",
        run.class
    );
    let _ = writeln!(text, "FIO version - {}", string(&run.fio["fio version"]));
    let _ = writeln!(
        text,
        "Global options - {}",
        options(&run.fio["global options"])
    );
    for job in class_run_jobs(run) {
        let _ = writeln!(text, "\nJobName: {}", string(&job["jobname"]));
        let shape = shape(&job["job options"], &run.fio["global options"]);
        let _ = writeln!(text, "  {shape}");
        for direction in moved(job) {
            text.push_str(&direction_text(direction, &job[direction]));
        }
    }
    text.push_str(&disks(&run.fio["disk_util"]));
    text = fit_lines(&text);
    text.push_str(&run.nodes);
    for verdict in &run.verdicts {
        let _ = write!(text, "\n{}", wrapped(verdict));
    }
    if let Some(error) = &run.error {
        let _ = write!(
            text,
            "\n{}",
            wrapped(&format!("ended by an error: {error}"))
        );
    }
    text
}

fn class_run_jobs(run: &ClassRun) -> impl Iterator<Item = &Value> {
    run.fio["jobs"].as_array().into_iter().flatten()
}

fn moved(job: &Value) -> impl Iterator<Item = &'static str> {
    DIRECTIONS
        .into_iter()
        .filter(|direction| number(&job[*direction]["total_ios"]) > 0.0)
}

fn options(given: &Value) -> String {
    let given = given.as_object().into_iter().flatten();
    let shown = given.map(|(name, value)| match string(value) {
        "" => name.clone(),
        value => format!("{name}={value}"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Options of a job in kubestr's names. The job's own options override the global ones.
fn shape(own: &Value, global: &Value) -> String {
    let names = [
        ("blocksize", ["bs", "blocksize"]),
        ("filesize", ["size", "filesize"]),
        ("iodepth", ["iodepth", "iodepth"]),
        ("rw", ["rw", "readwrite"]),
        ("rwmixread", ["rwmixread", "rwmixread"]),
    ];
    let said = names.iter().filter_map(|(shown, names)| {
        let mut given = [own, global].into_iter();
        let value =
            given.find_map(|given| names.iter().find_map(|name| given.get(name)?.as_str()))?;
        Some(format!("{shown}={value}"))
    });
    said.collect::<Vec<_>>().join(" ")
}

fn direction_text(direction: &str, side: &Value) -> String {
    let n = |name: &str| number(&side[name]);
    let mut text = format!(
        "{direction}:\n  IOPS={:.0} BW(KiB/s)={:.0}\n",
        n("iops"),
        n("bw")
    );
    let _ = writeln!(
        text,
        "  iops: min={:.0} max={:.0} avg={:.0}",
        n("iops_min"),
        n("iops_max"),
        n("iops_mean")
    );
    let _ = writeln!(
        text,
        "  bw(KiB/s): min={:.0} max={:.0} avg={:.0}",
        n("bw_min"),
        n("bw_max"),
        n("bw_mean")
    );
    let _ = writeln!(
        text,
        "  latency: avg={} p50={} p99={} p99.9={}",
        latency(number(&side["lat_ns"]["mean"])),
        latency(percentile(side, "50.000000")),
        latency(percentile(side, "99.000000")),
        latency(percentile(side, "99.900000")),
    );
    text
}

/// Formats a latency. No line of a narrow terminal breaks before its unit.
fn latency(ns: f64) -> String {
    unbroken(words::latency(ns))
}

/// Replaces the blanks of a text that [`fit_lines`] must not break.
fn unbroken(text: String) -> String {
    match is_narrow() {
        true => text.replace(' ', UNBROKEN_BLANK),
        false => text,
    }
}

fn percentile(side: &Value, percent: &str) -> f64 {
    number(&side["clat_ns"]["percentile"][percent])
}

fn disks(disks: &Value) -> String {
    let disks: Vec<String> = disks
        .as_array()
        .into_iter()
        .flatten()
        .map(disk_text)
        .collect();
    match disks.is_empty() {
        true => String::new(),
        false => format!("\nDisk stats (read/write):\n{}", disks.concat()),
    }
}

fn disk_text(disk: &Value) -> String {
    let n = |name: &str| number(&disk[name]);
    format!(
        "  {}: ios={:.0}/{:.0} merge={:.0}/{:.0} ticks={:.0}/{:.0} in_queue={:.0}, util={:.1}%\n",
        string(&disk["name"]),
        n("read_ios"),
        n("write_ios"),
        n("read_merges"),
        n("write_merges"),
        n("read_ticks"),
        n("write_ticks"),
        n("in_queue"),
        n("util"),
    )
}

/// Figures of all classes for each job and direction. On a narrow terminal, they are on lines below
/// the name of the job.
fn side_by_side(runs: &[ClassRun]) -> String {
    if !is_narrow() {
        return side_by_side_table(runs);
    }
    let mut text = String::new();
    for (name, figures) in job_figures(runs) {
        text.push_str(&format!("{name}\n"));
        for (run, figures) in runs.iter().zip(figures) {
            text.push_str(&format!("  {}: {}\n", run.class, unbroken(figures)));
        }
    }
    fit_lines(&text)
}

/// Table with a line per job and direction, and a column per class.
fn side_by_side_table(runs: &[ClassRun]) -> String {
    let classes = runs.iter().map(|run| run.class.as_str());
    let head: Vec<&str> = [""].into_iter().chain(classes).collect();
    let rows = job_figures(runs).into_iter();
    let rows = rows.map(|(name, figures)| [vec![name], figures].concat());
    render_left(&mut fill_table(plain(), &aligned_columns(&head, 1), rows))
}

/// Name of each job and direction, and its figures in each class.
fn job_figures(runs: &[ClassRun]) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for (index, job) in runs
        .first()
        .into_iter()
        .flat_map(class_run_jobs)
        .enumerate()
    {
        for direction in moved(job) {
            // A job with one direction is mostly named after the direction.
            let name = match moved(job).count() {
                1 => string(&job["jobname"]).to_owned(),
                _ => format!("{} {direction}", string(&job["jobname"])),
            };
            let sides = runs.iter();
            let sides = sides.map(|run| &run.fio["jobs"][index][direction]);
            all.push((name, sides.map(direction_cell).collect()));
        }
    }
    all
}

fn direction_cell(side: &Value) -> String {
    format!(
        "{}, {}, {}",
        words::iops_text(number(&side["iops"])),
        words::bandwidth(number(&side["bw_bytes"])),
        words::latency(percentile(side, "99.000000")),
    )
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
