//! fio's normal output after the jobs have ended.

use super::aggregate::{
    FioEntry, FioReport, GroupDirection, StatusGroup, per_second, runtime_ms, shares,
    shown_priorities,
};
use super::latency_lines::{write_latency, write_percentiles};
use super::levels::LatencyLevels;
use super::number::{Kilo, Units};
use super::{disks, steady, time};
use crate::run::{DirectionStats, PriorityLatency, RunResult};
use iosonde_job::plan::{Direction, IoPriority, MeasureOptions, UnifiedReporting};
use jiff::tz::TimeZone;
use std::io::{self, Write};

/// Writes fio's normal output at the end of a run: jobs, status groups, disks. Times are local.
pub(super) fn write_normal(out: &mut impl Write, result: &RunResult) -> io::Result<()> {
    write_normal_in(out, result, &TimeZone::system())
}

/// Writes the same as `write_normal`, with times in `zone`.
pub(super) fn write_normal_in(
    out: &mut impl Write,
    result: &RunResult,
    zone: &TimeZone,
) -> io::Result<()> {
    let report = FioReport::from_run(result);
    let ended_at_ms = result.started_at_ms + result.elapsed_ns / 1_000_000;
    writeln!(out)?;
    for entry in &report.entries {
        write_entry(
            out,
            entry,
            report.group(entry),
            &time::ctime(ended_at_ms, zone),
        )?;
    }
    for group in &report.groups {
        write_group(out, group)?;
    }
    disks::write_normal(out, &result.disks)
}

fn write_entry(
    out: &mut impl Write,
    entry: &FioEntry<'_>,
    group: &StatusGroup,
    now: &str,
) -> io::Result<()> {
    if entry.total_ios() == 0 && entry.directions.iter().all(|(_, d)| d.io_bytes == 0) {
        return Ok(());
    }
    write_title(out, entry, now)?;
    for (direction, stats) in entry.directions.iter() {
        if stats.io_bytes > 0 {
            let name = if entry.is_mixed() {
                "mixed"
            } else {
                direction.name()
            };
            write_direction(out, entry, group, Some(direction), name, stats)?;
        }
    }
    if let Some(mixed) = &entry.mixed {
        write_direction(out, entry, group, None, "mixed", mixed)?;
    }
    write_levels(out, &LatencyLevels::from_entry(entry))?;
    write_sync(out, entry)?;
    write_cpu(out, entry)?;
    write_depths(out, entry)?;
    write_counts(out, entry)?;
    write_steady_state(out, entry)
}

fn write_title(out: &mut impl Write, entry: &FioEntry<'_>, now: &str) -> io::Result<()> {
    let (name, groupid, members) = (&entry.job.name, entry.groupid, entry.members);
    write!(
        out,
        "{name}: (groupid={groupid}, jobs={members}): err={:2}",
        entry.errno
    )?;
    if entry.errno != 0 {
        write!(out, " ({})", failure_text(entry))?;
    }
    writeln!(out, ": pid={}: {now}", entry.tid)?;
    if let Some(description) = &entry.job.description {
        writeln!(out, "  Description  : [{description}]")?;
    }
    Ok(())
}

/// Returns the text of a failure: `file:/mnt/f, func=write, error=No space left on device`.
fn failure_text(entry: &FioEntry<'_>) -> String {
    let error = error_text(entry.errno);
    match &entry.failure {
        Some(failure) => {
            let operation = &failure.operation;
            match &failure.file {
                Some(file) => format!("file:{file}, func={operation}, error={error}"),
                None => format!("func={operation}, error={error}"),
            }
        }
        None => format!("error={error}"),
    }
}

/// Returns the text of an errno, as strerror(3) does.
pub(super) fn error_text(errno: i32) -> String {
    iosonde_job::errno::errno_words(errno)
}

fn write_direction(
    out: &mut impl Write,
    entry: &FioEntry<'_>,
    group: &StatusGroup,
    direction: Option<Direction>,
    name: &str,
    stats: &DirectionStats,
) -> io::Result<()> {
    let runtime = runtime_ms(stats.runtime_ns);
    if runtime == 0 {
        return Ok(());
    }
    let measure = &entry.job.measure;
    let units = Units::from_options(measure);
    writeln!(
        out,
        "  {name}: IOPS={}, BW={}({}/{runtime}msec){}",
        units.count(per_second(stats.total_ios, runtime)),
        units.both_rates(per_second(stats.io_bytes, runtime)),
        units.bytes(stats.io_bytes),
        if direction == Some(Direction::Write) {
            "; 0 zone resets"
        } else {
            ""
        }
    )?;
    write_latency(out, "slat", &stats.slat.moments)?;
    write_latency(out, "clat", &stats.clat.moments)?;
    write_latency(out, " lat", &stats.lat.moments)?;
    for (name, each) in named_priorities(stats, measure) {
        write_latency(out, &name, &each.latency.moments)?;
    }
    if measure.slat_percentiles {
        write_percentiles(out, "slat", &stats.slat, &measure.percentiles)?;
    }
    if measure.clat_percentiles {
        write_percentiles(out, "clat", &stats.clat, &measure.percentiles)?;
    }
    if measure.lat_percentiles {
        write_percentiles(out, "lat", &stats.lat, &measure.percentiles)?;
    }
    if measure.clat_percentiles || measure.lat_percentiles {
        write_priority_percentiles(out, stats, measure)?;
    }
    write_samples(out, group, direction, stats, units)
}

/// Returns latencies by priority with fio's names for them: `clat prio 2/3`.
fn named_priorities<'a>(
    stats: &'a DirectionStats,
    measure: &MeasureOptions,
) -> impl Iterator<Item = (String, &'a PriorityLatency)> {
    let kind = if measure.lat_percentiles {
        "lat"
    } else {
        "clat"
    };
    shown_priorities(stats).iter().map(move |each| {
        let IoPriority { class, level } = each.priority;
        (format!("{kind} prio {class}/{level}"), each)
    })
}

fn write_priority_percentiles(
    out: &mut impl Write,
    stats: &DirectionStats,
    measure: &MeasureOptions,
) -> io::Result<()> {
    let all = if measure.lat_percentiles {
        &stats.lat
    } else {
        &stats.clat
    };
    for (name, each) in named_priorities(stats, measure) {
        let share = each.latency.moments.count as f64 / all.moments.count as f64 * 100.0;
        let name = format!("{name} ({share:.2}% of IOs)");
        write_percentiles(out, &name, &each.latency, &measure.percentiles)?;
    }
    Ok(())
}

fn write_samples(
    out: &mut impl Write,
    group: &StatusGroup,
    direction: Option<Direction>,
    stats: &DirectionStats,
    units: Units,
) -> io::Result<()> {
    if stats.bw.count > 0 {
        let share = group.share_percent(direction, stats.bw.mean);
        let (divisor, unit) = sample_unit(stats.bw.mean, units);
        writeln!(
            out,
            "   bw ({unit:>5}/s): min={:5}, max={:5}, per={share:3.2}%, avg={:5.2}, stdev={:5.2}, \
             samples={}",
            (stats.bw.min / divisor) as u64,
            (stats.bw.max / divisor) as u64,
            stats.bw.mean / divisor,
            stats.bw.stddev() / divisor,
            stats.bw.count
        )?;
    }
    if stats.iops.count > 0 {
        writeln!(
            out,
            "   iops        : min={:5}, max={:5}, avg={:5.2}, stdev={:5.2}, samples={}",
            stats.iops.min as u64,
            stats.iops.max as u64,
            stats.iops.mean,
            stats.iops.stddev(),
            stats.iops.count
        )?;
    }
    Ok(())
}

/// Returns divisor and name of the unit for samples in KiB/s: kilo, or mega from a million on.
fn sample_unit(mean_kib: f64, units: Units) -> (f64, &'static str) {
    let (kilo, names) = match (units.kilo, units.bits) {
        (Kilo::Binary, false) => (1024.0, ["KiB", "MiB"]),
        (Kilo::Binary, true) => (1024.0, ["Kibit", "Mibit"]),
        (Kilo::Decimal, false) => (1000.0, ["kB", "MB"]),
        (Kilo::Decimal, true) => (1000.0, ["kbit", "Mbit"]),
    };
    let to_kilos = kilo / 1024.0 / if units.bits { 8.0 } else { 1.0 };
    if mean_kib / to_kilos > kilo * kilo {
        (to_kilos * kilo, names[1])
    } else {
        (to_kilos, names[0])
    }
}

const LEVEL_NAMES: [&str; 12] = [
    "2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000",
];

fn write_levels(out: &mut impl Write, levels: &LatencyLevels) -> io::Result<()> {
    for (unit, shares) in [
        ("nsec", &levels.ns[..]),
        ("usec", &levels.us),
        ("msec", &levels.ms),
    ] {
        let cells: Vec<String> = LEVEL_NAMES
            .iter()
            .zip(shares)
            .filter(|(_, share)| **share > 0.0)
            .map(|(name, share)| format!("{name}={share:3.2}%"))
            .collect();
        for line in cells.chunks(5) {
            writeln!(out, "  lat ({unit})   : {}", line.join(", "))?;
        }
    }
    Ok(())
}

fn write_sync(out: &mut impl Write, entry: &FioEntry<'_>) -> io::Result<()> {
    if entry.sync.lat.moments.count == 0 {
        return Ok(());
    }
    writeln!(out, "  fsync/fdatasync/sync_file_range:")?;
    write_latency(out, "sync", &entry.sync.lat.moments)?;
    write_percentiles(out, "sync", &entry.sync.lat, &entry.job.measure.percentiles)
}

fn write_cpu(out: &mut impl Write, entry: &FioEntry<'_>) -> io::Result<()> {
    let (user, system) = entry.cpu_percent();
    writeln!(
        out,
        "  cpu          : usr={user:3.2}%, sys={system:3.2}%, ctx={}, majf={}, minf={}",
        entry.cpu.context_switches, entry.cpu.major_faults, entry.cpu.minor_faults
    )
}

fn write_depths(out: &mut impl Write, entry: &FioEntry<'_>) -> io::Result<()> {
    const LOWER: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
    const UPPER: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
    let sum = |counts: &[u64; 7]| counts.iter().sum::<u64>();
    let rows = [
        (
            "  IO depths    : ",
            LOWER,
            &entry.iodepth_level,
            entry.total_ios(),
        ),
        (
            "     submit    : ",
            UPPER,
            &entry.iodepth_submit,
            sum(&entry.iodepth_submit),
        ),
        (
            "     complete  : ",
            UPPER,
            &entry.iodepth_complete,
            sum(&entry.iodepth_complete),
        ),
    ];
    for (title, names, counts, total) in rows {
        let cells: Vec<String> = names
            .iter()
            .zip(shares(counts, total, 0.1))
            .map(|(name, share)| format!("{name}={share:3.1}%"))
            .collect();
        writeln!(out, "{title}{}", cells.join(", "))?;
    }
    Ok(())
}

fn write_counts(out: &mut impl Write, entry: &FioEntry<'_>) -> io::Result<()> {
    let list = |count: fn(&DirectionStats) -> u64| {
        let counts: Vec<String> = entry
            .directions
            .iter()
            .map(|(_, d)| count(d).to_string())
            .collect();
        counts.join(",")
    };
    writeln!(
        out,
        "     issued rwts: total={},{} short={},0 dropped={},0",
        list(|d| d.total_ios),
        entry.sync.total_ios,
        list(|d| d.short_ios),
        list(|d| d.drop_ios)
    )?;
    if entry.continues_on_error() {
        writeln!(
            out,
            "     errors    : total={}, first_error={}/<{}>",
            entry.total_errors,
            entry.first_error,
            error_text(entry.first_error)
        )?;
    }
    let (target_ns, window_us, percentile) = entry.latency_target();
    writeln!(
        out,
        "     latency   : target={target_ns}, window={window_us}, percentile={percentile:.2}%, \
         depth={}",
        entry.latency_depth
    )
}

fn write_steady_state(out: &mut impl Write, entry: &FioEntry<'_>) -> io::Result<()> {
    let (Some(asked), Some(found)) = (&entry.job.schedule.steady_state, &entry.steady_state) else {
        return Ok(());
    };
    let units = Units::from_options(&entry.job.measure);
    let (bandwidth, iops) = steady::means(asked, found);
    writeln!(
        out,
        "  steadystate  : attained={}, bw={}, iops={}, {}{}={:.3}{}",
        if found.attained { "yes" } else { "no" },
        units.both_rates(bandwidth),
        units.count(iops),
        steady::metric(asked),
        if asked.slope { " slope" } else { " mean dev" },
        found.criterion,
        steady::percent_sign(asked)
    )
}

fn write_group(out: &mut impl Write, group: &StatusGroup) -> io::Result<()> {
    writeln!(out, "\nRun status group {} (all jobs):", group.groupid)?;
    for (direction, moved) in group.directions.iter() {
        let name = match (group.unified, direction) {
            (UnifiedReporting::Mixed, _) => "  MIXED",
            (_, Direction::Read) => "   READ",
            (_, Direction::Write) => "  WRITE",
            (_, Direction::Trim) => "   TRIM",
        };
        if let Some(moved) = moved {
            write_group_direction(out, name, moved, group.units)?;
        }
    }
    match (group.unified, group.mixed()) {
        (UnifiedReporting::Both, Some(moved)) => {
            write_group_direction(out, "  MIXED", &moved, group.units)
        }
        _ => Ok(()),
    }
}

fn write_group_direction(
    out: &mut impl Write,
    name: &str,
    moved: &GroupDirection,
    units: Units,
) -> io::Result<()> {
    let (slowest, fastest) = moved.bytes_per_second;
    let range = |units: Units| format!("{}-{}", units.rate(slowest), units.rate(fastest));
    let other = units.alternative();
    writeln!(
        out,
        "{name}: bw={}, {} ({}), io={} ({}), run={}-{}msec",
        units.both_rates(moved.aggregate_bytes_per_second),
        range(units),
        range(other),
        units.bytes(moved.io_bytes),
        other.bytes(moved.io_bytes),
        moved.runtime_ms.0,
        moved.runtime_ms.1
    )
}
