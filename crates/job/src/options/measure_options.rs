//! Options for statistics and reports: latencies, percentiles, logs, errors.

use super::option_value::choice;
use super::{JobBuilder, OptionRow, OptionValue, ValueKind};
use crate::plan::*;
use crate::value::TimeUnit::Milliseconds;
use crate::value::{self, Bytes, ParsedValue, ValueError};

const U32: i64 = u32::MAX as i64;

/// Rows of the option table.
pub const ROWS: &[OptionRow] = &[
    OptionRow::new(
        "group_reporting",
        ValueKind::Flag,
        "0",
        "Report the jobs of a group as one.",
        |b, v| v.flag_to(&mut b.job.measure.group_reporting),
    ),
    OptionRow::new(
        "new_group",
        ValueKind::Flag,
        "0",
        "Start a new reporting group.",
        |b, v| v.flag_to(&mut b.new_group),
    ),
    OptionRow::new(
        "stats",
        ValueKind::Bool,
        "1",
        "Whether the job is part of the report.",
        |b, v| v.bool_to(&mut b.job.measure.stats),
    ),
    OptionRow::new(
        "gtod_reduce",
        ValueKind::Bool,
        "0",
        "Read the clock less often: no latencies, no bandwidth samples. In iosonde the saving is \
         small.",
        apply_gtod_reduce,
    ),
    OptionRow::new(
        "disable_lat",
        ValueKind::Bool,
        "0",
        "Do not record total latency.",
        |b, v| v.not_bool_to(&mut b.job.measure.lat),
    ),
    OptionRow::new(
        "disable_clat",
        ValueKind::Bool,
        "0",
        "Do not record completion latency.",
        |b, v| v.not_bool_to(&mut b.job.measure.clat),
    ),
    OptionRow::new(
        "disable_slat",
        ValueKind::Bool,
        "0",
        "Do not record submission latency.",
        |b, v| v.not_bool_to(&mut b.job.measure.slat),
    ),
    OptionRow::new(
        "disable_bw_measurement",
        ValueKind::Bool,
        "0",
        "Do not sample bandwidth.",
        |b, v| v.not_bool_to(&mut b.job.measure.bw),
    )
    .aliases(&["disable_bw"]),
    OptionRow::new(
        "clat_percentiles",
        ValueKind::Bool,
        "1",
        "Report percentiles of completion latency.",
        |b, v| v.bool_to(&mut b.job.measure.clat_percentiles),
    ),
    OptionRow::new(
        "lat_percentiles",
        ValueKind::Bool,
        "0",
        "Report percentiles of total latency.",
        |b, v| v.bool_to(&mut b.job.measure.lat_percentiles),
    ),
    OptionRow::new(
        "slat_percentiles",
        ValueKind::Bool,
        "0",
        "Report percentiles of submission latency.",
        |b, v| v.bool_to(&mut b.job.measure.slat_percentiles),
    ),
    OptionRow::new(
        "percentile_list",
        ValueKind::FloatList,
        "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99",
        "Percentiles to report, at most 20.",
        apply_percentile_list,
    ),
    OptionRow::new(
        "significant_figures",
        ValueKind::Int(1, 10),
        "4",
        "Digits of figures in the text report.",
        |b, v| {
            b.job.measure.significant_figures = v.int(1..=10)? as u32;
            Ok(())
        },
    ),
    OptionRow::new(
        "unified_rw_reporting",
        ValueKind::Choice(&["none", "mixed", "both", "0", "1", "2"]),
        "none",
        "Report directions separately, summed, or both.",
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
    OptionRow::new(
        "kb_base",
        ValueKind::Choice(&["1024", "1000"]),
        "1024",
        "How size suffixes are read: at 1024, k is 1024 and kib is 1000; at 1000 the other way \
         round. Applied before all other options of its section.",
        |b, v| {
            let choices = [
                ("1024", (Bytes::Binary, 1024)),
                ("1000", (Bytes::Decimal, 1000)),
            ];
            (b.bytes, b.job.measure.kb_base) = v.choice(&choices)?;
            Ok(())
        },
    ),
    OptionRow::new(
        "unit_base",
        ValueKind::Choice(&["0", "8", "1"]),
        "0",
        "Whether the text report counts bytes (8) or bits (1).",
        |b, v| {
            v.choice_to(
                &mut b.job.measure.unit_base,
                &[("0", 0), ("8", 8), ("1", 1)],
            )
        },
    ),
    OptionRow::new(
        "write_bw_log",
        ValueKind::OptionalText,
        "",
        "Log bandwidth over time. The value is the prefix of the file name; the default is the \
         job's name.",
        |b, v| v.text_to(&mut b.job.measure.logs.bw),
    ),
    OptionRow::new(
        "write_lat_log",
        ValueKind::OptionalText,
        "",
        "Log latencies over time.",
        |b, v| v.text_to(&mut b.job.measure.logs.lat),
    ),
    OptionRow::new(
        "write_iops_log",
        ValueKind::OptionalText,
        "",
        "Log IOPS over time.",
        |b, v| v.text_to(&mut b.job.measure.logs.iops),
    ),
    OptionRow::new(
        "write_hist_log",
        ValueKind::OptionalText,
        "",
        "Log histograms of completion latency over time; needs log_hist_msec.",
        |b, v| v.text_to(&mut b.job.measure.logs.hist),
    ),
    OptionRow::new(
        "per_job_logs",
        ValueKind::Bool,
        "1",
        "Add the clone's number to the names of logs.",
        |b, v| v.bool_to(&mut b.job.measure.logs.per_job),
    ),
    OptionRow::new(
        "log_avg_msec",
        ValueKind::Time(Milliseconds),
        "0",
        "Window in ms: log its mean instead of every I/O.",
        |b, v| {
            b.job.measure.logs.avg_ms = v.time(Milliseconds)? / 1_000_000;
            Ok(())
        },
    ),
    OptionRow::new(
        "log_hist_msec",
        ValueKind::Time(Milliseconds),
        "0",
        "Window in ms: log one histogram per window.",
        |b, v| {
            b.job.measure.logs.hist_ms = v.time(Milliseconds)? / 1_000_000;
            Ok(())
        },
    ),
    OptionRow::new(
        "log_hist_coarseness",
        ValueKind::Int(0, 6),
        "0",
        "Coarseness of logged histograms: each step halves the number of bins.",
        |b, v| {
            b.job.measure.logs.hist_coarseness = v.int(0..=6)? as u32;
            Ok(())
        },
    ),
    OptionRow::new(
        "log_max_value",
        ValueKind::Bool,
        "0",
        "Log each window's maximum instead of its mean.",
        |b, v| v.bool_to(&mut b.job.measure.logs.max_value),
    ),
    OptionRow::new(
        "log_window_value",
        ValueKind::Choice(&["average", "avg", "max"]),
        "average",
        "Whether each window's mean or maximum is logged: the name that later versions of fio give \
         log_max_value. Their value both is refused.",
        |b, v| {
            v.choice_to(
                &mut b.job.measure.logs.max_value,
                &[("average", false), ("avg", false), ("max", true)],
            )
        },
    ),
    OptionRow::new(
        "log_offset",
        ValueKind::Bool,
        "0",
        "Also log the offset of each I/O.",
        |b, v| v.bool_to(&mut b.job.measure.logs.offset),
    ),
    OptionRow::new(
        "log_prio",
        ValueKind::Bool,
        "0",
        "Also log the priority of each I/O.",
        |b, v| v.bool_to(&mut b.job.measure.logs.prio),
    ),
    OptionRow::new(
        "log_unix_epoch",
        ValueKind::Bool,
        "0",
        "Log the time since 1970 instead of the time since the start.",
        |b, v| v.bool_to(&mut b.job.measure.logs.unix_epoch),
    ),
    OptionRow::new(
        "log_alternate_epoch",
        ValueKind::Bool,
        "0",
        "Log the time of the clock log_alternate_epoch_clock_id.",
        |b, v| v.bool_to(&mut b.alternate_epoch),
    ),
    OptionRow::new(
        "log_alternate_epoch_clock_id",
        ValueKind::Int(0, U32),
        "0",
        "Clock of log_alternate_epoch; only 0, the time since 1970, is supported.",
        |b, v| {
            b.alternate_clock = v.int(0..=U32)?;
            Ok(())
        },
    ),
    OptionRow::new(
        "log_entries",
        ValueKind::Int(1024, 1 << 20),
        "1024",
        "Number of log entries to allocate at the start.",
        |_, v| v.int(1024..=1 << 20).map(|_| ()),
    )
    .accepted("Logs are written while the job runs, so they need no room in memory."),
    OptionRow::new(
        "log_compression",
        ValueKind::Size,
        "",
        "Compress logs in memory.",
        check_log_compression,
    )
    .accepted(
        "Logs are written during the job and not kept in memory, so compression in memory does not \
         apply.",
    ),
    OptionRow::new(
        "log_compression_cpus",
        ValueKind::Numbers,
        "",
        "CPUs that compress logs.",
        |_, v| value::cpu_list(v.str()).map(|_| ()),
    )
    .accepted("Nothing is compressed."),
    OptionRow::unsupported(
        "log_store_compressed",
        ValueKind::Bool,
        "0",
        "Store logs compressed.",
        "iosonde does not compress logs",
        "compress the files afterwards",
    ),
    OptionRow::unsupported(
        "block_error_percentiles",
        ValueKind::Bool,
        "0",
        "Report the number of trims until a block failed.",
        "errors are not counted for each block",
        "continue_on_error=all counts errors",
    ),
    OptionRow::new(
        "bwavgtime",
        ValueKind::Time(Milliseconds),
        "500",
        "Window of the bandwidth samples.",
        |b, v| window(&mut b.job.measure.bw_window_ns, v),
    ),
    OptionRow::new(
        "iopsavgtime",
        ValueKind::Time(Milliseconds),
        "500",
        "Window of the IOPS samples.",
        |b, v| window(&mut b.job.measure.iops_window_ns, v),
    ),
    OptionRow::new(
        "disk_util",
        ValueKind::Bool,
        "1",
        "Report the utilisation of the disks.",
        |b, v| v.bool_to(&mut b.job.measure.disk_util),
    ),
    OptionRow::new(
        "clocksource",
        ValueKind::Choice(&["gettimeofday", "clock_gettime", "cpu"]),
        "",
        "Clock to read.",
        |_, v| v.choice(&[("gettimeofday", ()), ("clock_gettime", ()), ("cpu", ())]),
    )
    .accepted("The clock is CLOCK_MONOTONIC by clock_gettime in any case."),
    OptionRow::new(
        "gtod_cpu",
        ValueKind::Int(0, U32),
        "",
        "Let a thread on this CPU read the clock for all jobs.",
        |_, v| v.int(0..=i64::from(u32::MAX)).map(|_| ()),
    )
    .accepted("Each job reads the clock itself, once for each batch of I/Os."),
    OptionRow::new(
        "continue_on_error",
        ValueKind::Choice(&["none", "read", "write", "io", "verify", "all", "0", "1"]),
        "none",
        "Errors that do not end the job.",
        apply_continue_on_error,
    ),
    OptionRow::new(
        "ignore_error",
        ValueKind::Text,
        "",
        "Errors that do not count: lists for reads, writes and verification, separated by commas; \
         in a list, names or numbers are separated by colons.",
        |b, v| {
            b.job.errors.ignore = crate::errno::errno_lists(v.str())?;
            Ok(())
        },
    ),
    OptionRow::new(
        "error_dump",
        ValueKind::Bool,
        "0",
        "Print each error, including ignored ones.",
        |b, v| v.bool_to(&mut b.job.errors.dump),
    ),
];

/// Checks the value as fio does. iosonde does not compress logs.
fn check_log_compression(b: &mut JobBuilder, v: &OptionValue<'_>) -> ParsedValue<()> {
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

fn window(target: &mut u64, v: &OptionValue<'_>) -> ParsedValue<()> {
    v.time_to(target, Milliseconds)?;
    *target = (*target).max(WINDOW_NS_MIN);
    Ok(())
}

fn apply_gtod_reduce(b: &mut JobBuilder, v: &OptionValue<'_>) -> ParsedValue<()> {
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

fn apply_percentile_list(b: &mut JobBuilder, v: &OptionValue<'_>) -> ParsedValue<()> {
    let text = v.str();
    let mut list = Vec::new();
    for part in text.split([':', ',']).filter(|part| !part.is_empty()) {
        let percentile = value::float(part).map_err(|error| error.within(text, part))?;
        if !(percentile > 0.0 && percentile <= 100.0) {
            let error = ValueError::new(format!("`{part}` must be above 0 and at most 100"));
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

fn apply_continue_on_error(b: &mut JobBuilder, v: &OptionValue<'_>) -> ParsedValue<()> {
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
