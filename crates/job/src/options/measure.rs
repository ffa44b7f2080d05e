//! Options for statistics and reports: latencies, percentiles, logs, errors.

use super::given::choice;
use super::{Builder, Given, Kind, Row};
use crate::plan::*;
use crate::value::TimeUnit::Milliseconds;
use crate::value::{self, Bytes, Parsed, ValueError};

const U32: i64 = u32::MAX as i64;

/// Rows of the option table.
pub const ROWS: &[Row] = &[
    Row::new(
        "group_reporting",
        Kind::Flag,
        "0",
        "Report the jobs of a group as one.",
        |b, v| v.flag_to(&mut b.job.measure.group_reporting),
    ),
    Row::new(
        "new_group",
        Kind::Flag,
        "0",
        "Begin a new reporting group.",
        |b, v| v.flag_to(&mut b.new_group),
    ),
    Row::new(
        "stats",
        Kind::Bool,
        "1",
        "Whether the job is part of the report.",
        |b, v| v.bool_to(&mut b.job.measure.stats),
    ),
    Row::new(
        "gtod_reduce",
        Kind::Bool,
        "0",
        "Look at the clock less: no latencies, no bandwidth samples. Ours costs so little that it is hardly needed.",
        apply_gtod_reduce,
    ),
    Row::new(
        "disable_lat",
        Kind::Bool,
        "0",
        "Do not record total latency.",
        |b, v| v.not_bool_to(&mut b.job.measure.lat),
    ),
    Row::new(
        "disable_clat",
        Kind::Bool,
        "0",
        "Do not record completion latency.",
        |b, v| v.not_bool_to(&mut b.job.measure.clat),
    ),
    Row::new(
        "disable_slat",
        Kind::Bool,
        "0",
        "Do not record submission latency.",
        |b, v| v.not_bool_to(&mut b.job.measure.slat),
    ),
    Row::new(
        "disable_bw_measurement",
        Kind::Bool,
        "0",
        "Do not sample bandwidth.",
        |b, v| v.not_bool_to(&mut b.job.measure.bw),
    )
    .aliases(&["disable_bw"]),
    Row::new(
        "clat_percentiles",
        Kind::Bool,
        "1",
        "Report percentiles of completion latency.",
        |b, v| v.bool_to(&mut b.job.measure.clat_percentiles),
    ),
    Row::new(
        "lat_percentiles",
        Kind::Bool,
        "0",
        "Report percentiles of total latency.",
        |b, v| v.bool_to(&mut b.job.measure.lat_percentiles),
    ),
    Row::new(
        "slat_percentiles",
        Kind::Bool,
        "0",
        "Report percentiles of submission latency.",
        |b, v| v.bool_to(&mut b.job.measure.slat_percentiles),
    ),
    Row::new(
        "percentile_list",
        Kind::FloatList,
        "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99",
        "Which percentiles are reported, at most 20.",
        apply_percentile_list,
    ),
    Row::new(
        "significant_figures",
        Kind::Int(1, 10),
        "4",
        "Digits of figures in the text report.",
        |b, v| {
            b.job.measure.significant_figures = v.int(1..=10)? as u32;
            Ok(())
        },
    ),
    Row::new(
        "unified_rw_reporting",
        Kind::Choice(&["none", "mixed", "both", "0", "1", "2"]),
        "none",
        "Report directions by themselves, summed, or both.",
        |b, v| {
            v.choice_to(
                &mut b.job.measure.unified,
                &[
                    ("none", UnifiedReporting::None),
                    ("mixed", UnifiedReporting::Mixed),
                    ("both", UnifiedReporting::Both),
                    ("0", UnifiedReporting::None),
                    ("1", UnifiedReporting::Mixed),
                    ("2", UnifiedReporting::Both),
                ],
            )
        },
    ),
    Row::new(
        "kb_base",
        Kind::Choice(&["1024", "1000"]),
        "1024",
        "How size suffixes are read: at 1024, k is 1024 and kib is 1000; at 1000 the other way round. Applied before \
         all other options of its section.",
        |b, v| {
            let choices = [
                ("1024", (Bytes::Binary, 1024)),
                ("1000", (Bytes::Decimal, 1000)),
            ];
            (b.bytes, b.job.measure.kb_base) = v.choice(&choices)?;
            Ok(())
        },
    ),
    Row::new(
        "unit_base",
        Kind::Choice(&["0", "8", "1"]),
        "0",
        "Whether the text report counts bytes (8) or bits (1).",
        |b, v| {
            v.choice_to(
                &mut b.job.measure.unit_base,
                &[("0", 0), ("8", 8), ("1", 1)],
            )
        },
    ),
    Row::new(
        "write_bw_log",
        Kind::OptionalText,
        "",
        "Log bandwidth over time; the value starts the file's name, the job's name if left out.",
        |b, v| v.text_to(&mut b.job.measure.logs.bw),
    ),
    Row::new(
        "write_lat_log",
        Kind::OptionalText,
        "",
        "Log latencies over time.",
        |b, v| v.text_to(&mut b.job.measure.logs.lat),
    ),
    Row::new(
        "write_iops_log",
        Kind::OptionalText,
        "",
        "Log I/Os a second over time.",
        |b, v| v.text_to(&mut b.job.measure.logs.iops),
    ),
    Row::new(
        "write_hist_log",
        Kind::OptionalText,
        "",
        "Log histograms of completion latency over time; needs log_hist_msec.",
        |b, v| v.text_to(&mut b.job.measure.logs.hist),
    ),
    Row::new(
        "per_job_logs",
        Kind::Bool,
        "1",
        "Put the clone's number into the names of logs.",
        |b, v| v.bool_to(&mut b.job.measure.logs.per_job),
    ),
    Row::new(
        "log_avg_msec",
        Kind::Time(Milliseconds),
        "0",
        "Log the mean of each such window instead of every I/O.",
        |b, v| {
            b.job.measure.logs.avg_ms = v.time(Milliseconds)? / 1_000_000;
            Ok(())
        },
    ),
    Row::new(
        "log_hist_msec",
        Kind::Time(Milliseconds),
        "0",
        "Log a histogram for each such window.",
        |b, v| {
            b.job.measure.logs.hist_ms = v.time(Milliseconds)? / 1_000_000;
            Ok(())
        },
    ),
    Row::new(
        "log_hist_coarseness",
        Kind::Int(0, 6),
        "0",
        "Each step halves the number of bins in logged histograms.",
        |b, v| {
            b.job.measure.logs.hist_coarseness = v.int(0..=6)? as u32;
            Ok(())
        },
    ),
    Row::new(
        "log_max_value",
        Kind::Bool,
        "0",
        "Log each window's maximum instead of its mean.",
        |b, v| v.bool_to(&mut b.job.measure.logs.max_value),
    ),
    Row::new(
        "log_window_value",
        Kind::Choice(&["average", "avg", "max"]),
        "average",
        "Whether each window's mean or maximum is logged: the name that later versions of fio give log_max_value. Their value \
         both is refused.",
        |b, v| {
            v.choice_to(
                &mut b.job.measure.logs.max_value,
                &[("average", false), ("avg", false), ("max", true)],
            )
        },
    ),
    Row::new(
        "log_offset",
        Kind::Bool,
        "0",
        "Log the offset of each I/O too.",
        |b, v| v.bool_to(&mut b.job.measure.logs.offset),
    ),
    Row::new(
        "log_prio",
        Kind::Bool,
        "0",
        "Log the priority of each I/O too.",
        |b, v| v.bool_to(&mut b.job.measure.logs.prio),
    ),
    Row::new(
        "log_unix_epoch",
        Kind::Bool,
        "0",
        "Log the time since 1970 instead of the time since the start.",
        |b, v| v.bool_to(&mut b.job.measure.logs.unix_epoch),
    ),
    Row::new(
        "log_alternate_epoch",
        Kind::Bool,
        "0",
        "Log the time of the clock log_alternate_epoch_clock_id.",
        |b, v| v.bool_to(&mut b.alternate_epoch),
    ),
    Row::new(
        "log_alternate_epoch_clock_id",
        Kind::Int(0, U32),
        "0",
        "The clock of log_alternate_epoch; only 0, the time since 1970, is possible.",
        |b, v| {
            b.alternate_clock = v.int(0..=U32)?;
            Ok(())
        },
    ),
    Row::new(
        "log_entries",
        Kind::Int(1024, 1 << 20),
        "1024",
        "Log entries to make room for at the start.",
        |_, v| v.int(1024..=1 << 20).map(|_| ()),
    )
    .accepted("Logs are written while the job runs, so they need no room in memory."),
    Row::new("log_compression", Kind::Size, "", "Compress logs in memory.", check_log_compression)
        .accepted("Logs are written while the job runs and are not held in memory, so that there is nothing to compress."),
    Row::new("log_compression_cpus", Kind::Numbers, "", "CPUs that compress logs.", |_, v| value::cpu_list(v.str()).map(|_| ()))
        .accepted("Nothing is compressed."),
    Row::unsupported(
        "log_store_compressed",
        Kind::Bool,
        "0",
        "Store logs compressed.",
        "logs are not compressed",
        "compress the files afterwards",
    ),
    Row::unsupported(
        "block_error_percentiles",
        Kind::Bool,
        "0",
        "Report how many trims it took until a block failed.",
        "errors are not counted for each block",
        "continue_on_error=all counts errors",
    ),
    Row::new(
        "bwavgtime",
        Kind::Time(Milliseconds),
        "500",
        "Window of the bandwidth samples.",
        |b, v| window(&mut b.job.measure.bw_window_ns, v),
    ),
    Row::new(
        "iopsavgtime",
        Kind::Time(Milliseconds),
        "500",
        "Window of the IOPS samples.",
        |b, v| window(&mut b.job.measure.iops_window_ns, v),
    ),
    Row::new(
        "disk_util",
        Kind::Bool,
        "1",
        "Report what the disks below did.",
        |b, v| v.bool_to(&mut b.job.measure.disk_util),
    ),
    Row::new(
        "clocksource",
        Kind::Choice(&["gettimeofday", "clock_gettime", "cpu"]),
        "",
        "Which clock is read.",
        |_, v| v.choice(&[("gettimeofday", ()), ("clock_gettime", ()), ("cpu", ())]),
    )
    .accepted("The clock is CLOCK_MONOTONIC by clock_gettime in any case."),
    Row::new("gtod_cpu", Kind::Int(0, U32), "", "Let a thread on this CPU read the clock for all jobs.", |_, v| v.int(0..=i64::from(u32::MAX)).map(|_| ()))
        .accepted("Each job reads the clock itself, once for each batch of I/Os."),
    Row::new(
        "continue_on_error",
        Kind::Choice(&["none", "read", "write", "io", "verify", "all", "0", "1"]),
        "none",
        "Which errors a job survives.",
        apply_continue_on_error,
    ),
    Row::new(
        "ignore_error",
        Kind::Text,
        "",
        "Errors that do not count: lists for reads, writes and verification, separated by commas; in a list, names \
         or numbers are separated by colons.",
        |b, v| {
            b.job.errors.ignore = crate::errno::errno_lists(v.str())?;
            Ok(())
        },
    ),
    Row::new(
        "error_dump",
        Kind::Bool,
        "0",
        "Print each error, also those that are survived.",
        |b, v| v.bool_to(&mut b.job.errors.dump),
    ),
];

/// Checks the value as fio does. iosonde does not compress logs.
fn check_log_compression(b: &mut Builder, v: &Given<'_>) -> Parsed<()> {
    const CHUNK_BYTES_MIN: u64 = 1024;
    match value::bytes(v.str(), b.bytes)? {
        bytes if bytes < CHUNK_BYTES_MIN => Err(ValueError::new(format!(
            "{bytes} bytes are less than {CHUNK_BYTES_MIN}"
        ))),
        _ => Ok(()),
    }
}

/// Shortest averaging window of samples. As in fio, 0 means this window.
const WINDOW_NS_MIN: u64 = 1_000_000;

fn window(target: &mut u64, v: &Given<'_>) -> Parsed<()> {
    v.time_to(target, Milliseconds)?;
    *target = (*target).max(WINDOW_NS_MIN);
    Ok(())
}

fn apply_gtod_reduce(b: &mut Builder, v: &Given<'_>) -> Parsed<()> {
    let on = v.bool()?;
    let measure = &mut b.job.measure;
    for recorded in [
        &mut measure.lat,
        &mut measure.clat,
        &mut measure.slat,
        &mut measure.bw,
    ] {
        *recorded = !on;
    }
    if on {
        measure.clat_percentiles = false;
        measure.lat_percentiles = false;
        measure.slat_percentiles = false;
    }
    Ok(())
}

fn apply_percentile_list(b: &mut Builder, v: &Given<'_>) -> Parsed<()> {
    let text = v.str();
    let mut list = Vec::new();
    for part in text.split([':', ',']).filter(|part| !part.is_empty()) {
        let percentile = value::float(part).map_err(|error| error.within(text, part))?;
        if !(percentile > 0.0 && percentile <= 100.0) {
            let error = ValueError::new(format!("`{part}` is not above 0 and up to 100"));
            return Err(error.within(text, part));
        }
        list.push(percentile);
    }
    if list.is_empty() || list.len() > 20 {
        return Err(ValueError::new("there must be 1 to 20 percentiles"));
    }
    list.sort_by(f64::total_cmp);
    b.job.measure.percentiles = list;
    Ok(())
}

fn apply_continue_on_error(b: &mut Builder, v: &Given<'_>) -> Parsed<()> {
    let text = v.str();
    let errors = &mut b.job.errors;
    (
        errors.continue_read,
        errors.continue_write,
        errors.continue_verify,
    ) = (false, false, false);
    for word in text.split(',') {
        let (read, write, verify) = choice(
            word,
            &[
                ("none", (false, false, false)),
                ("read", (true, false, false)),
                ("write", (false, true, false)),
                ("io", (true, true, false)),
                ("verify", (false, false, true)),
                ("all", (true, true, true)),
                ("0", (false, false, false)),
                ("1", (true, true, true)),
            ],
        )
        .map_err(|error| error.within(text, word))?;
        errors.continue_read |= read;
        errors.continue_write |= write;
        errors.continue_verify |= verify;
    }
    Ok(())
}
