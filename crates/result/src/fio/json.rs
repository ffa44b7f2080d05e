//! fio's JSON and JSON+ output.

use super::aggregate::{
    FioEntry, FioReport, StatusGroup, per_second, runtime_ms, shares, shown_priorities,
};
use super::disks::{self, mean_of_below};
use super::levels::LatencyLevels;
use super::{VERSION, bins, steady, time};
use crate::nodes::NodeResult;
use crate::pods;
use crate::run::{DirectionStats, DiskUtil, RunResult};
use crate::stats::{LatencyStats, Moments};
use crate::storage::StorageUsed;
use iosonde_job::plan::{Direction, GivenOption};
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Map, Value, json as value};
use std::io::{self, Write};

/// Returns the output of `--output-format=json`, or `json+` if `plus`, with keys in fio's order and
/// local times. The additional root member `iosonde` has the program, its verdicts and notes, and
/// the exact time of the run.
pub fn fio_json(result: &RunResult, plus: bool) -> Value {
    json_in(result, plus, &TimeZone::system())
}

/// Returns the same as [`fio_json`], with times in `zone`.
pub(super) fn json_in(result: &RunResult, plus: bool, zone: &TimeZone) -> Value {
    let report = FioReport::from_run(result);
    let ended_at_ms = result.started_at_ms + result.elapsed_ns / 1_000_000;
    let mut root = Map::new();
    root.insert("fio version".into(), VERSION.into());
    root.insert("timestamp".into(), (ended_at_ms / 1000).into());
    root.insert("timestamp_ms".into(), ended_at_ms.into());
    root.insert("time".into(), time::ctime(ended_at_ms, zone).into());
    insert_options(&mut root, "global options", &result.plan.global_options);
    let elapsed_s = result.elapsed_ns.div_ceil(1_000_000_000);
    let jobs = report.entries.iter();
    let jobs = jobs.map(|entry| job_json(entry, report.group(entry), elapsed_s, plus));
    root.insert("jobs".into(), jobs.collect());
    if !result.disks.is_empty() {
        let disks = disks::in_order(&result.disks).into_iter().map(disk_json);
        root.insert("disk_util".into(), disks.collect());
    }
    let mut ours =
        value!({"program": result.program, "verdicts": result.verdicts, "notes": result.notes});
    // A simulated run has no start. These identify any other run when the document is imported.
    if result.started_at_ms > 0 {
        ours["started_at_ms"] = value!(result.started_at_ms);
        ours["elapsed_ns"] = value!(result.elapsed_ns);
    }
    if let Some(used) = StorageUsed::from_run(result).filter(StorageUsed::is_service) {
        ours["storage"] = value!(used);
    }
    if let Some(side) = &result.ceph {
        ours["ceph"] = value!(side);
    }
    if !result.nfs.is_empty() {
        ours["nfs"] = value!(result.nfs);
    }
    if !result.caches.is_empty() {
        ours["caches"] = value!(result.caches);
    }
    if !result.pods.is_empty() {
        ours["pods"] = pods::summary(&result.pods);
    }
    if let Some(checked) = &result.shared_file {
        ours["shared_file"] = value!(checked);
    }
    if !result.nodes.is_empty() {
        let node = |node: &NodeResult| {
            let disks = node.averages();
            let mut shown = value!({"node": node.node, "why": node.why, "disks": disks});
            if let Some(rates) = node.network_average() {
                shown["network"] = value!(rates);
            }
            shown
        };
        ours["nodes"] = result.nodes.iter().map(node).collect();
    }
    root.insert("iosonde".into(), ours);
    Value::Object(root)
}

/// Writes `value` in fio's layout: two spaces per level, spaces around a colon, six decimals.
pub fn write_json(out: &mut impl Write, value: &Value) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, FioLayout { depth: 0 });
    value.serialize(&mut serializer)?;
    writeln!(out)
}

fn insert_options(object: &mut Map<String, Value>, key: &str, options: &[GivenOption]) {
    if options.is_empty() {
        return;
    }
    // fio leaves out options without a value.
    let options = options
        .iter()
        .filter(|option| !option.value.is_empty())
        .map(|option| (option.name.clone(), Value::from(option.value.clone())));
    object.insert(key.into(), Value::Object(options.collect()));
}

fn job_json(entry: &FioEntry<'_>, group: &StatusGroup, elapsed_s: u64, plus: bool) -> Value {
    let mut job = Map::new();
    job.insert("jobname".into(), entry.job.name.clone().into());
    job.insert("groupid".into(), entry.groupid.into());
    job.insert("error".into(), entry.errno.into());
    job.insert("eta".into(), 0.into());
    job.insert("elapsed".into(), elapsed_s.into());
    insert_options(&mut job, "job options", &entry.last.given);
    insert_directions(&mut job, entry, group, plus);
    insert_cpu(&mut job, entry);
    insert_distributions(&mut job, entry);
    if entry.continues_on_error() {
        job.insert("total_err".into(), entry.total_errors.into());
        job.insert("first_error".into(), entry.first_error.into());
    }
    let (target_ns, window_us, percentile) = entry.latency_target();
    // As in fio, there is no depth without I/O, with `create_only`, or with `verify_only` writes.
    let verify = entry.job.verify.as_ref();
    let is_dry = verify.is_some_and(|verify| verify.verify_only)
        && entry.job.workload.rw.has(Direction::Write);
    if entry.latency_depth > 0 && !entry.job.files.create_only && !is_dry {
        job.insert("latency_depth".into(), entry.latency_depth.into());
        job.insert("latency_target".into(), target_ns.into());
        job.insert("latency_percentile".into(), percentile.into());
        job.insert("latency_window".into(), window_us.into());
    }
    if let Some(description) = &entry.job.description {
        job.insert("desc".into(), description.clone().into());
    }
    insert_steady_state(&mut job, entry);
    Value::Object(job)
}

fn insert_directions(
    job: &mut Map<String, Value>,
    entry: &FioEntry<'_>,
    group: &StatusGroup,
    plus: bool,
) {
    let measure = &entry.job.measure;
    if entry.is_mixed() {
        // As in fio, the directions and sync are not shown in addition.
        let mixed = direction(entry, group, Some(Direction::Read), plus);
        job.insert("mixed".into(), mixed);
        return;
    }
    for each in Direction::ALL {
        job.insert(
            each.name().into(),
            direction(entry, group, Some(each), plus),
        );
    }
    let percentiles = measure.clat_percentiles || measure.lat_percentiles;
    let sync = latency(&entry.sync.lat, percentiles, &measure.percentiles, plus);
    let sync = value!({"total_ios": entry.sync.total_ios, "lat_ns": sync});
    job.insert("sync".into(), sync);
    if entry.mixed.is_some() {
        job.insert("mixed".into(), direction(entry, group, None, plus));
    }
}

/// Returns one direction of `entry`. `None` selects the sum of all.
fn direction(
    entry: &FioEntry<'_>,
    group: &StatusGroup,
    which: Option<Direction>,
    plus: bool,
) -> Value {
    let none = DirectionStats::default();
    let stats = match which {
        Some(which) => &entry.directions[which],
        None => entry.mixed.as_ref().unwrap_or(&none),
    };
    let runtime = runtime_ms(stats.runtime_ns);
    let bw_bytes = per_second(stats.io_bytes, runtime);
    let iops = match runtime {
        0 => 0.0,
        ms => stats.total_ios as f64 * 1000.0 / ms as f64,
    };
    let measure = &entry.job.measure;
    let latency = |stats, percentiles| latency(stats, percentiles, &measure.percentiles, plus);
    let mut direction = value!({
        "io_bytes": stats.io_bytes,
        "io_kbytes": stats.io_bytes / 1024,
        "bw_bytes": bw_bytes,
        "bw": bw_bytes / 1024,
        "iops": iops,
        "runtime": runtime,
        "total_ios": stats.total_ios,
        "short_ios": stats.short_ios,
        "drop_ios": stats.drop_ios,
        "slat_ns": latency(&stats.slat, measure.slat_percentiles),
        "clat_ns": latency(&stats.clat, measure.clat_percentiles),
        "lat_ns": latency(&stats.lat, measure.lat_percentiles),
    });
    let priorities = shown_priorities(stats).iter().map(|each| {
        let name = if measure.lat_percentiles {
            "lat_ns"
        } else {
            "clat_ns"
        };
        let percentiles = measure.lat_percentiles || measure.clat_percentiles;
        value!({
            "prioclass": each.priority.class,
            "prio": each.priority.level,
            name: latency(&each.latency, percentiles),
        })
    });
    let priorities: Vec<Value> = priorities.collect();
    if !priorities.is_empty() {
        direction["prios"] = priorities.into();
    }
    if let Some(due) = &stats.started_lat {
        let due = latency(due, measure.lat_percentiles);
        direction["iosonde"] = value!({"lat_from_due_ns": due});
    }
    insert_samples(&mut direction, group, which, stats);
    direction
}

fn insert_samples(
    direction: &mut Value,
    group: &StatusGroup,
    which: Option<Direction>,
    stats: &DirectionStats,
) {
    let bw_agg = match stats.bw.count {
        0 => 0.0,
        _ => group.share_percent(which, stats.bw.mean),
    };
    let samples = value!({
        "bw_min": stats.bw.min as u64,
        "bw_max": stats.bw.max as u64,
        "bw_agg": bw_agg,
        "bw_mean": stats.bw.mean,
        "bw_dev": stats.bw.stddev(),
        "bw_samples": stats.bw.count,
        "iops_min": stats.iops.min as u64,
        "iops_max": stats.iops.max as u64,
        "iops_mean": stats.iops.mean,
        "iops_stddev": stats.iops.stddev(),
        "iops_samples": stats.iops.count,
    });
    if let (Value::Object(direction), Value::Object(samples)) = (direction, samples) {
        direction.extend(samples);
    }
}

fn latency(stats: &LatencyStats, percentiles: bool, percents: &[f64], plus: bool) -> Value {
    let moments: &Moments = &stats.moments;
    let mut latency = Map::new();
    latency.insert("min".into(), (moments.min as u64).into());
    latency.insert("max".into(), (moments.max as u64).into());
    latency.insert("mean".into(), moments.mean.into());
    latency.insert("stddev".into(), moments.stddev().into());
    latency.insert("N".into(), moments.count.into());
    let histogram = stats.histogram.as_ref();
    let shown = histogram.filter(|histogram| percentiles && histogram.total() > 0);
    if let Some(histogram) = shown {
        let percents = bins::ascending(percents);
        let values = bins::percentiles(histogram, &percents);
        let keys = percents.iter().map(|percent| format!("{percent:.6}"));
        let pairs = keys.zip(values.into_iter().map(Value::from));
        latency.insert("percentile".into(), Value::Object(pairs.collect()));
        if plus {
            let bins = bins::histogram_bins(histogram).into_iter();
            let pairs = bins.map(|(bin, count)| (bins::middle(bin).to_string(), count.into()));
            latency.insert("bins".into(), Value::Object(pairs.collect()));
        }
    }
    Value::Object(latency)
}

fn insert_cpu(job: &mut Map<String, Value>, entry: &FioEntry<'_>) {
    let (user, system) = entry.cpu_percent();
    job.insert("job_runtime".into(), entry.job_runtime_ms.into());
    job.insert("usr_cpu".into(), user.into());
    job.insert("sys_cpu".into(), system.into());
    job.insert("ctx".into(), entry.cpu.context_switches.into());
    job.insert("majf".into(), entry.cpu.major_faults.into());
    job.insert("minf".into(), entry.cpu.minor_faults.into());
}

fn insert_distributions(job: &mut Map<String, Value>, entry: &FioEntry<'_>) {
    const LOWER: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
    const UPPER: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
    const LEVELS: [&str; 12] = [
        "2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000",
    ];
    let mut insert = |key: &str, names: &[&str], shares: &[f64]| {
        let pairs = names.iter().zip(shares);
        let pairs = pairs.map(|(name, share)| ((*name).to_owned(), Value::from(*share)));
        job.insert(key.into(), Value::Object(pairs.collect()));
    };
    let of_sum = |counts: &[u64; 7]| shares(counts, counts.iter().sum(), 0.1);
    let level = shares(&entry.iodepth_level, entry.total_ios(), 0.1);
    insert("iodepth_level", &LOWER, &level);
    insert("iodepth_submit", &UPPER, &of_sum(&entry.iodepth_submit));
    insert("iodepth_complete", &UPPER, &of_sum(&entry.iodepth_complete));
    let levels = LatencyLevels::from_entry(entry);
    insert("latency_ns", &LEVELS[..10], &levels.ns);
    insert("latency_us", &LEVELS[..10], &levels.us);
    insert("latency_ms", &LEVELS, &levels.ms);
}

fn insert_steady_state(job: &mut Map<String, Value>, entry: &FioEntry<'_>) {
    let (Some(asked), Some(found)) = (&entry.job.schedule.steady_state, &entry.steady_state) else {
        return;
    };
    let (bw_mean, iops_mean) = steady::means(asked, found);
    let (bw, iops) = steady::window(asked, found);
    let percent = steady::percent_sign(asked);
    // fio computes only one of the two.
    let (max_deviation, slope) = match asked.slope {
        true => (0.0, found.slope),
        false => (found.max_deviation, 0.0),
    };
    let steady = value!({
        "ss": steady::option(asked),
        "duration": asked.duration_ns / 1_000_000_000,
        "attained": u8::from(found.attained),
        "criterion": format!("{:.6}{percent}", found.criterion),
        "max_deviation": max_deviation,
        "slope": slope,
        "data": {
            "bw_mean": bw_mean,
            "iops_mean": iops_mean,
            "iops": iops,
            "bw": bw,
        },
    });
    job.insert("steadystate".into(), steady);
}

fn disk_json(disk: &DiskUtil) -> Value {
    let mut object = Map::new();
    object.insert("name".into(), disk.name.clone().into());
    insert_disk_counts(&mut object, "", disk);
    if let Some(below) = mean_of_below(disk) {
        insert_disk_counts(&mut object, "aggr_", &below);
    }
    Value::Object(object)
}

fn insert_disk_counts(object: &mut Map<String, Value>, prefix: &str, disk: &DiskUtil) {
    // fio 3.33 writes "aggr_write_merge", without the s.
    let write_merges = if prefix.is_empty() {
        "write_merges"
    } else {
        "write_merge"
    };
    let counts = [
        ("read_ios", disk.ios[0]),
        ("write_ios", disk.ios[1]),
        ("read_merges", disk.merges[0]),
        (write_merges, disk.merges[1]),
        ("read_ticks", disk.ticks_ms[0]),
        ("write_ticks", disk.ticks_ms[1]),
        ("in_queue", disk.in_queue_ms),
    ];
    for (name, count) in counts {
        object.insert(format!("{prefix}{name}"), count.into());
    }
    let util = disk.util_percent.min(100.0);
    object.insert(format!("{prefix}util"), util.into());
}

struct FioLayout {
    depth: usize,
}

impl FioLayout {
    fn new_line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        write!(out, "\n{:width$}", "", width = self.depth * 2)
    }

    fn separator<W: ?Sized + Write>(&self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        self.new_line(out)
    }

    fn close<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        self.new_line(out)?;
        out.write_all(bracket)
    }
}

impl Formatter for FioLayout {
    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        write!(out, "{value:.6}")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.separator(out, first)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.separator(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b" : ")
    }
}
