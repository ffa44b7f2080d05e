//! Output of fio 3.33, compared with iosonde's output for the same measurements.
//!
//! Each file in `tests/fio-3.33/` is the output of a real fio run with
//! `--output-format=normal,terse,json+`, with the command in its first line. The JSON+ is converted
//! to a `RunResult`, which is then written in all formats and compared with the rest of the file:
//! the text word by word, JSON by paths, order, types and values.

use super::json::{json_in, write_json};
use super::terse::{TerseVersion, write_terse};
use super::text::write_normal_in;
use crate::histogram::Histogram;
use crate::host::Host;
use crate::run::*;
use crate::stats::{LatencyStats, Moments};
use iosonde_job::plan::*;
use jiff::tz::TimeZone;
use serde_json::Value;
use std::collections::BTreeMap;

/// fio's output taken apart.
struct Recorded {
    header: String,
    terse: Vec<String>,
    json: Value,
    normal: String,
}

fn recorded(name: &str) -> Recorded {
    let path = format!("{}/tests/fio-3.33/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    let open = lines.iter().position(|line| *line == "{").unwrap();
    let close = lines.iter().position(|line| *line == "}").unwrap();
    let (before, json) = (&lines[..open], lines[open..=close].join("\n"));
    let is_terse = |line: &&&str| line.starts_with(['2', '3', '4', '5']) || line.starts_with(';');
    let is_header = |line: &&&str| {
        !is_terse(line) && !line.starts_with("fio: ") && !line.contains("Laying out")
    };
    let owned = |line: &&str| (*line).to_owned();
    Recorded {
        header: before
            .iter()
            .filter(is_header)
            .map(|l| format!("{l}\n"))
            .collect(),
        terse: before.iter().filter(is_terse).map(owned).collect(),
        json: serde_json::from_str(&json).unwrap(),
        normal: lines[close + 1..]
            .iter()
            .map(|l| format!("{l}\n"))
            .collect(),
    }
}

fn number(value: &Value, key: &str) -> f64 {
    value[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} in {value}"))
}

fn whole(value: &Value, key: &str) -> u64 {
    number(value, key) as u64
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn moments(value: &Value, prefix: &str, [deviation, count]: [&str; 2]) -> Moments {
    let count = whole(value, &format!("{prefix}{count}"));
    Moments {
        count,
        min: number(value, &format!("{prefix}min")),
        max: number(value, &format!("{prefix}max")),
        mean: number(value, &format!("{prefix}mean")),
        m2: number(value, &format!("{prefix}{deviation}")).powi(2) * count.saturating_sub(1) as f64,
    }
}

fn latency(value: &Value) -> LatencyStats {
    let mut histogram = Histogram::default();
    for (middle, count) in value["bins"].as_object().into_iter().flatten() {
        histogram.record_n(middle.parse().unwrap(), count.as_u64().unwrap());
    }
    LatencyStats {
        moments: moments(value, "", ["stddev", "N"]),
        histogram: Some(histogram),
    }
}

fn priority(value: &Value) -> PriorityLatency {
    PriorityLatency {
        priority: IoPriority {
            class: whole(value, "prioclass") as u8,
            level: whole(value, "prio") as u8,
        },
        latency: latency(&value["lat_ns"]),
    }
}

fn direction(value: &Value) -> DirectionStats {
    DirectionStats {
        io_bytes: whole(value, "io_bytes"),
        total_ios: whole(value, "total_ios"),
        short_ios: whole(value, "short_ios"),
        drop_ios: whole(value, "drop_ios"),
        runtime_ns: whole(value, "runtime") * 1_000_000,
        slat: latency(&value["slat_ns"]),
        clat: latency(&value["clat_ns"]),
        lat: latency(&value["lat_ns"]),
        started_lat: None,
        bw: moments(value, "bw_", ["dev", "samples"]),
        iops: moments(value, "iops_", ["stddev", "samples"]),
        by_priority: value["prios"]
            .as_array()
            .into_iter()
            .flatten()
            .map(priority)
            .collect(),
    }
}

/// Counts with the recorded shares. A share of 0.1 stands for any that is smaller.
fn counts(shares: &Value, total: f64) -> [u64; 7] {
    let shares: Vec<f64> = shares
        .as_object()
        .unwrap()
        .values()
        .filter_map(Value::as_f64)
        .collect();
    let counts = shares.iter().map(|share| match share {
        0.1 => 1,
        share => (share / 100.0 * total).round() as u64,
    });
    counts.collect::<Vec<_>>().try_into().unwrap()
}

fn worker(index: usize, job: &Value, tid: u32) -> WorkerResult {
    let directions = match job.get("mixed") {
        Some(mixed) => PerDirection {
            read: direction(mixed),
            ..PerDirection::default()
        },
        None => PerDirection::from_fn(|each| direction(&job[each.name()])),
    };
    let runtime_ms = whole(job, "job_runtime");
    let cpu_ns = |key| (number(job, key) / 100.0 * runtime_ms as f64 * 1e6) as u64;
    let total: u64 = directions.iter().map(|(_, d)| d.total_ios).sum();
    WorkerResult {
        job: index,
        clone: 0,
        groupid: whole(job, "groupid") as u32,
        tid,
        backend: BackendUsed {
            engine: Engine::Null,
            asked: Engine::Null,
            reason: None,
            direct: false,
            registered_files: false,
            fixed_buffers: false,
            flags: Vec::new(),
            ceph: None,
        },
        started_at_ms: 0,
        start_delay_ns: 0,
        runtime_ns: runtime_ms * 1_000_000,
        elapsed_ns: runtime_ms * 1_000_000,
        directions,
        sync: SyncStats {
            total_ios: job["sync"]["total_ios"].as_u64().unwrap_or(0),
            other_than_fsync: 0,
            lat: match job["sync"].get("lat_ns") {
                Some(sync) => latency(sync),
                None => LatencyStats::default(),
            },
        },
        cpu: CpuUse {
            user_ns: cpu_ns("usr_cpu"),
            system_ns: cpu_ns("sys_cpu"),
            queued_ns: 0,
            context_switches: whole(job, "ctx"),
            major_faults: whole(job, "majf"),
            minor_faults: whole(job, "minf"),
        },
        iodepth_level: counts(&job["iodepth_level"], total as f64),
        iodepth_submit: counts(&job["iodepth_submit"], 1e7),
        iodepth_complete: counts(&job["iodepth_complete"], 1e7),
        latency_depth: whole(job, "latency_depth") as u32,
        steady_state: job.get("steadystate").map(steady_state),
        error: None,
        total_errors: job["total_err"].as_u64().unwrap_or(0),
        first_error: job["first_error"].as_i64().unwrap_or(0) as i32,
        only_ramp: None,
    }
}

fn steady_state(value: &Value) -> SteadyStateResult {
    let list = |value: &Value| {
        value
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_u64)
            .collect()
    };
    let criterion = text(&value["criterion"]);
    SteadyStateResult {
        attained: value["attained"] == 1,
        criterion: criterion.trim_end_matches('%').parse().unwrap(),
        max_deviation: number(value, "max_deviation"),
        slope: number(value, "slope"),
        iops: list(&value["data"]["iops"]),
        bw_bytes: list(&value["data"]["bw"]),
        lat_ns: Vec::new(),
    }
}

fn disk(value: &Value) -> DiskUtil {
    let pair = |what: &str| ["read", "write"].map(|way| whole(value, &format!("{way}_{what}")));
    DiskUtil {
        name: text(&value["name"]),
        ios: pair("ios"),
        merges: pair("merges"),
        ticks_ms: pair("ticks"),
        in_queue_ms: whole(value, "in_queue"),
        sectors: [0, 0],
        util_percent: number(value, "util"),
        below: Vec::new(),
    }
}

fn options(value: Option<&Value>) -> Vec<GivenOption> {
    let options = value.and_then(Value::as_object).into_iter().flatten();
    let option = |(name, value): (&String, &Value)| GivenOption {
        name: name.clone(),
        value: text(value),
    };
    options.map(option).collect()
}

/// The result that fio's `recorded` output describes, of `jobs`.
fn result(recorded: &Recorded, mut jobs: Vec<Job>) -> RunResult {
    let json = &recorded.json;
    let tids = recorded.normal.lines().filter_map(|line| {
        let (_, tid) = line.split_once(": pid=")?;
        tid.split(':').next()?.parse().ok()
    });
    let mut workers = Vec::new();
    for (index, (value, tid)) in json["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .zip(tids)
        .enumerate()
    {
        jobs[index].given = options(value.get("job options"));
        workers.push(worker(index, value, tid));
    }
    assert_eq!(workers.len(), jobs.len(), "one worker for each job");
    let elapsed_s = whole(&json["jobs"][0], "elapsed");
    RunResult {
        format: FORMAT,
        program: "iosonde".into(),
        started_at_ms: whole(json, "timestamp_ms") - elapsed_s * 1000,
        elapsed_ns: elapsed_s * 1_000_000_000,
        plan: Plan {
            jobs,
            global_options: options(json.get("global options")),
        },
        host: Host::default(),
        targets: Vec::new(),
        labels: BTreeMap::new(),
        workers,
        neighbours: Vec::new(),
        disks: json["disk_util"]
            .as_array()
            .into_iter()
            .flatten()
            .map(disk)
            .collect(),
        intervals: Default::default(),
        series: Default::default(),
        pods: Vec::new(),
        shared_file: None,
        nodes: Vec::new(),
        ceph: None,
        nfs: Vec::new(),
        caches: Vec::new(),
        events: Vec::new(),
        verdicts: Vec::new(),
        notes: Vec::new(),
    }
}

/// Whether the member is a share that may differ from fio's. Latency levels are counted from
/// buckets, which the levels' bounds may cut, so that a share may be off by the contents of one
/// bucket. The shares of depths were converted to counts and back.
fn is_share(path: &str) -> bool {
    ["latency_ns", "latency_us", "latency_ms", "iodepth_"]
        .iter()
        .any(|name| path.contains(name))
}

fn compare(path: &str, fio: &Value, ours: &Value, differences: &mut Vec<String>) {
    match (fio, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            let keys: Vec<&String> = theirs.keys().collect();
            let our_keys: Vec<&String> = ours.keys().filter(|key| *key != "iosonde").collect();
            if keys != our_keys {
                differences.push(format!("{path}: keys {keys:?}, ours {our_keys:?}"));
            }
            for (key, value) in theirs {
                let ours = ours.get(key).unwrap_or(&Value::Null);
                compare(&format!("{path}/{key}"), value, ours, differences);
            }
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            for (index, (value, ours)) in theirs.iter().zip(ours).enumerate() {
                compare(&format!("{path}/{index}"), value, ours, differences);
            }
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() == b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            let tolerance = if is_share(path) {
                3.0
            } else {
                2e-6 * a.abs().max(1.0)
            };
            // The program itself did not know its ETA in runs shorter than a second.
            if (a - b).abs() > tolerance && !path.ends_with("/eta") {
                differences.push(format!("{path}: {a}, ours {b}"));
            }
        }
        (a, b) if a == b => {}
        (a, b) => differences.push(format!("{path}: {a}, ours {b}")),
    }
}

/// Returns the text without the intended differences: levels (counted from buckets), the place of
/// an error (fio names a line of its source), and the bandwidth of a steady state (fio divides by
/// 1024 for both of its units).
fn comparable(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("  lat ("));
    let masked = lines.map(|line| {
        if let Some((before, after)) = line.split_once("): err=28 (") {
            let (_, after) = after.split_once("): pid").unwrap();
            format!("{before}{after}")
        } else if let Some((before, after)) = line
            .split_once(", bw=")
            .filter(|(before, _)| before.contains("steadystate"))
        {
            let (_, after) = after.split_once(", iops=").unwrap();
            format!("{before}{after}")
        } else {
            line.to_owned()
        }
    });
    masked.collect()
}

/// Returns the fields of a terse line. Shares of latency levels (two decimals) are left out, and
/// long fractions are rounded: the JSON that they were recovered from lacks some of their digits.
fn comparable_terse(line: &str) -> Vec<String> {
    let fields = line.split(';').filter_map(|field| {
        let number = field.trim_end_matches('%');
        let decimals = number.split_once('.').map_or(0, |(_, text)| text.len());
        match (number.parse::<f64>(), decimals) {
            (Ok(_), 2) => None,
            (Ok(number), 6) => Some(format!("{number:.2}")),
            _ => Some(field.to_owned()),
        }
    });
    fields.collect()
}

fn check(name: &str, version: TerseVersion, jobs: Vec<Job>) {
    let recorded = recorded(name);
    let result = result(&recorded, jobs);

    assert_eq!(
        super::header(&result.plan),
        recorded.header,
        "{name}: header"
    );

    let mut differences = Vec::new();
    let ours = json_in(&result, true, &TimeZone::UTC);
    compare("", &recorded.json, &ours, &mut differences);
    assert!(differences.is_empty(), "{name}: {differences:#?}");
    let mut written = Vec::new();
    write_json(&mut written, &ours).unwrap();
    let read_back: Value = serde_json::from_slice(&written).unwrap();
    differences.clear();
    compare("", &recorded.json, &read_back, &mut differences);
    assert!(differences.is_empty(), "{name}, written: {differences:#?}");

    let mut normal = Vec::new();
    write_normal_in(&mut normal, &result, &TimeZone::UTC).unwrap();
    let normal = String::from_utf8(normal).unwrap();
    assert_eq!(
        comparable(&normal),
        comparable(&recorded.normal),
        "{name}: normal"
    );

    let mut terse = Vec::new();
    write_terse(&mut terse, &result, version).unwrap();
    let terse = String::from_utf8(terse).unwrap();
    let ours: Vec<_> = terse.lines().map(comparable_terse).collect();
    let theirs: Vec<_> = recorded
        .terse
        .iter()
        .map(|line| comparable_terse(line))
        .collect();
    assert_eq!(ours, theirs, "{name}: terse");
}

/// A job as the recorded commands have it: all percentiles, a thread.
fn job(name: &str, rw: ReadWrite, engine: Engine) -> Job {
    let mut job = Job::new(name);
    job.workload.rw = rw;
    job.io.engine = engine;
    job.measure.lat_percentiles = true;
    job.measure.slat_percentiles = true;
    job
}

const RANDREAD: ReadWrite = ReadWrite {
    mode: ReadWriteMode::Read,
    random: true,
};
const WRITE: ReadWrite = ReadWrite {
    mode: ReadWriteMode::Write,
    random: false,
};
const RANDRW: ReadWrite = ReadWrite {
    mode: ReadWriteMode::ReadWrite,
    random: true,
};

#[test]
fn mixed_directions_match_fio_formats() {
    let mut job = job("a", RANDRW, Engine::Libaio);
    job.io.iodepth = 8;
    check("mixed-directions", TerseVersion::V3, vec![job]);
}

#[test]
fn jobs_of_two_groups_match_fio_formats() {
    let mut first = job("first", RANDREAD, Engine::Null);
    first.description = Some("hello".into());
    let mut second = job("second", WRITE, Engine::Psync);
    second.groupid = 1;
    second.workload.block_size.write = BlockSize::Fixed(8192);
    second.workload.block_size.trim = BlockSize::Fixed(8192);
    second.io.engine = Engine::Null;
    check("two-jobs-two-groups", TerseVersion::V4, vec![first, second]);
}

#[test]
fn psync_writes_match_fio_formats() {
    check(
        "sync",
        TerseVersion::V5,
        vec![job("s", WRITE, Engine::Psync)],
    );
}

#[test]
fn unified_mixed_matches_fio_formats() {
    let mut job = job("m", RANDRW, Engine::Psync);
    job.measure.unified = UnifiedReporting::Mixed;
    job.measure.percentiles = vec![50.0, 99.5, 99.9999];
    check("unified-mixed", TerseVersion::V3, vec![job]);
}

#[test]
fn steady_state_matches_fio_formats() {
    let mut job = job("ss", RANDREAD, Engine::Null);
    job.schedule.steady_state = Some(SteadyState {
        metric: SteadyMetric::Iops,
        slope: false,
        limit: 50.0,
        percent: true,
        duration_ns: 3_000_000_000,
        ramp_ns: 0,
        interval_ns: 1_000_000_000,
    });
    check("steady-state", TerseVersion::V3, vec![job]);
}

#[test]
fn latency_target_matches_fio_formats() {
    let mut job = job("lt", RANDREAD, Engine::Libaio);
    job.io.iodepth = 16;
    job.schedule.latency_target = Some(LatencyTarget {
        target_ns: 500_000,
        window_ns: 500_000_000,
        percentile: 99.5,
        run: false,
    });
    check("latency-target", TerseVersion::V3, vec![job]);
}

#[test]
fn disabled_measures_match_fio_formats() {
    let mut job = job("r", RANDREAD, Engine::Null);
    job.measure = MeasureOptions {
        slat: false,
        clat: false,
        lat: false,
        bw: false,
        clat_percentiles: false,
        ..MeasureOptions::default()
    };
    check("little-measured", TerseVersion::V2, vec![job]);
}

#[test]
fn io_errors_match_fio_formats() {
    let mut job = job("full", WRITE, Engine::Psync);
    job.errors.continue_write = true;
    check("errors", TerseVersion::V3, vec![job]);
}

#[test]
fn io_priorities_match_fio_formats() {
    let mut job = job("x", RANDREAD, Engine::Libaio);
    job.io.iodepth = 4;
    check("priorities", TerseVersion::V3, vec![job]);
}
