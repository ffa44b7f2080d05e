//! Options for the schedule of a job: time, order, rates, targets.

use super::option_value::choice;
use super::{JobBuilder, OptionRow, OptionValue, ValueKind};
use crate::plan::*;
use crate::value::TimeUnit::{Microseconds, Milliseconds, Seconds};
use crate::value::{self, ParsedValue, ValueError};

const U32: i64 = u32::MAX as i64;

/// Rows of the option table.
pub const ROWS: &[OptionRow] = &[
    OptionRow::new(
        "runtime",
        ValueKind::Time(Seconds),
        "0",
        "Maximum time of the job. 0: no limit.",
        |b, v| v.time_to(&mut b.job.schedule.runtime_ns, Seconds),
    )
    .aliases(&["timeout"]),
    OptionRow::new(
        "time_based",
        ValueKind::Flag,
        "0",
        "Repeat the job until runtime is over, even if the files are small.",
        |b, v| v.flag_to(&mut b.job.schedule.time_based),
    ),
    OptionRow::new(
        "ramp_time",
        ValueKind::Time(Seconds),
        "0",
        "Run this long before the measurement. Not part of runtime.",
        |b, v| v.time_to(&mut b.job.schedule.ramp_time_ns, Seconds),
    ),
    OptionRow::new(
        "startdelay",
        ValueKind::TimeRange(Seconds),
        "0",
        "Delay of the start; with a range, each clone has a random delay.",
        |b, v| {
            b.job.schedule.startdelay_ns =
                value::list::range(v.str(), |part| value::time_ns(part, Seconds))?;
            Ok(())
        },
    ),
    OptionRow::new(
        "loops",
        ValueKind::Int(0, U32),
        "1",
        "Number of times to run the job.",
        |b, v| {
            b.job.schedule.loops = v.int(0..=U32)?.max(1) as u32;
            Ok(())
        },
    ),
    OptionRow::new(
        "stonewall",
        ValueKind::Flag,
        "0",
        "Wait until all earlier jobs have ended. Starts a new reporting group.",
        |b, v| v.flag_to(&mut b.job.schedule.stonewall),
    )
    .aliases(&["wait_for_previous"]),
    OptionRow::new(
        "wait_for",
        ValueKind::Text,
        "",
        "Wait until all clones of the job of this name have ended. The job must be earlier, and \
         its name unique.",
        |b, v| v.text_to(&mut b.job.schedule.wait_for),
    ),
    OptionRow::new(
        "exitall",
        ValueKind::Flag,
        "0",
        "When a job ends, end the jobs that exit_what selects. One job with this option is enough.",
        |b, v| v.flag_to(&mut b.exitall),
    ),
    OptionRow::new(
        "exit_what",
        ValueKind::Choice(&["group", "stonewall", "all"]),
        "group",
        "Jobs that exitall ends: those of the group, running jobs, or all.",
        |b, v| {
            v.choice_to(
                &mut b.exit_what,
                &[
                    ("group", ExitWhat::Group),
                    ("stonewall", ExitWhat::Stonewall),
                    ("all", ExitWhat::All),
                ],
            )
        },
    ),
    OptionRow::new(
        "exitall_on_error",
        ValueKind::Flag,
        "0",
        "When this job fails, end all jobs.",
        |b, v| v.flag_to(&mut b.job.schedule.exitall_on_error),
    ),
    OptionRow::new(
        "thinktime",
        ValueKind::Time(Microseconds),
        "0",
        "Pause after each I/O, or after thinktime_blocks I/Os.",
        |b, v| v.time_to(&mut b.thinktime.pause_ns, Microseconds),
    ),
    OptionRow::new(
        "thinktime_spin",
        ValueKind::Time(Microseconds),
        "0",
        "Length of the first part of the pause, during which the job spins instead of sleeping.",
        |b, v| v.time_to(&mut b.thinktime.spin_ns, Microseconds),
    ),
    OptionRow::new(
        "thinktime_blocks",
        ValueKind::Int(0, U32),
        "1",
        "Number of blocks between two pauses.",
        |b, v| {
            b.thinktime.blocks = v.int(0..=U32)?.max(1) as u32;
            Ok(())
        },
    ),
    OptionRow::new(
        "thinktime_blocks_type",
        ValueKind::Choice(&["complete", "issue"]),
        "complete",
        "Whether thinktime_blocks counts completed or issued blocks.",
        |b, v| {
            v.choice_to(
                &mut b.thinktime.count_issued,
                &[("complete", false), ("issue", true)],
            )
        },
    ),
    OptionRow::new(
        "thinktime_iotime",
        ValueKind::Time(Seconds),
        "0",
        "Pause after each period of I/O of this length.",
        |b, v| v.time_to(&mut b.thinktime.iotime_ns, Seconds),
    ),
    OptionRow::new(
        "rate",
        ValueKind::SizeList,
        "",
        "Maximum bandwidth in bytes per second.",
        |b, v| v.rates_to(&mut b.job.schedule.rate_bytes, b.bytes),
    ),
    OptionRow::new(
        "rate_min",
        ValueKind::SizeList,
        "",
        "Minimum bandwidth in bytes per second; below it the job ends with an error.",
        |b, v| v.rates_to(&mut b.job.schedule.rate_min_bytes, b.bytes),
    )
    .aliases(&["ratemin"]),
    OptionRow::new(
        "rate_iops",
        ValueKind::IntList(0, i64::MAX),
        "",
        "Maximum IOPS.",
        |b, v| v.rates_to(&mut b.job.schedule.rate_iops, b.bytes),
    ),
    OptionRow::new(
        "rate_iops_min",
        ValueKind::IntList(0, i64::MAX),
        "",
        "Minimum IOPS; below it the job ends with an error.",
        |b, v| v.rates_to(&mut b.job.schedule.rate_iops_min, b.bytes),
    ),
    OptionRow::new(
        "rate_process",
        ValueKind::Choice(&["linear", "poisson"]),
        "linear",
        "Arrivals of a limited rate: linear (evenly spaced) or poisson (random, as from many \
         independent users).",
        |b, v| {
            v.choice_to(
                &mut b.job.schedule.rate_poisson,
                &[("linear", false), ("poisson", true)],
            )
        },
    ),
    OptionRow::new(
        "rate_ignore_thinktime",
        ValueKind::Bool,
        "0",
        "Do not catch up after a pause to keep the rate.",
        |b, v| v.bool_to(&mut b.job.schedule.rate_ignore_thinktime),
    ),
    OptionRow::new(
        "rate_cycle",
        ValueKind::Time(Milliseconds),
        "1000",
        "Window over which rate_min and rate_iops_min are checked.",
        |b, v| v.time_to(&mut b.job.schedule.rate_cycle_ns, Milliseconds),
    )
    .aliases(&["ratecycle"]),
    OptionRow::new(
        "max_latency",
        ValueKind::TimeList(Microseconds),
        "",
        "End the job with an error at the first I/O that takes longer.",
        |b, v| {
            value::directions(v.str(), &mut b.job.schedule.max_latency_ns, |part| {
                Ok(Some(value::time_ns(part, Microseconds)?).filter(|ns| *ns > 0))
            })
        },
    ),
    OptionRow::new(
        "latency_target",
        ValueKind::Time(Microseconds),
        "0",
        "Find the depth at which latency stays below this value.",
        |b, v| v.time_to(&mut b.latency.target_ns, Microseconds),
    ),
    OptionRow::new(
        "latency_window",
        ValueKind::Time(Microseconds),
        "0",
        "Time per depth for latency_target.",
        |b, v| v.time_to(&mut b.latency.window_ns, Microseconds),
    ),
    OptionRow::new(
        "latency_percentile",
        ValueKind::Float,
        "100",
        "Percentage of I/Os that must stay below latency_target.",
        |b, v| {
            let percentile = value::float(v.str())?;
            if !(0.0..=100.0).contains(&percentile) {
                return Err(ValueError::new(format!(
                    "`{}` is not between 0 and 100",
                    v.str()
                )));
            }
            b.latency.percentile = percentile;
            Ok(())
        },
    ),
    OptionRow::new(
        "latency_run",
        ValueKind::Bool,
        "0",
        "Continue after latency_target has found a depth, and keep adjusting it.",
        |b, v| v.bool_to(&mut b.latency.run),
    ),
    OptionRow::new(
        "steadystate",
        ValueKind::Text,
        "iops_slope:0.01%",
        "What must hold still for the job to end: iops, iops_slope, bw or bw_slope, and the limit \
         behind a colon, in per cent or absolute. Works with steadystate_duration.",
        apply_steady_state,
    )
    .aliases(&["ss"]),
    OptionRow::new(
        "steadystate_duration",
        ValueKind::Time(Seconds),
        "0",
        "Window in which the job must be steady. 0: no detection of steady state.",
        |b, v| v.time_to(&mut b.steady.duration_ns, Seconds),
    )
    .aliases(&["ss_dur"]),
    OptionRow::new(
        "steadystate_ramp_time",
        ValueKind::Time(Seconds),
        "0",
        "Run this long before the detection of steady state starts.",
        |b, v| v.time_to(&mut b.steady.ramp_ns, Seconds),
    )
    .aliases(&["ss_ramp"]),
    OptionRow::new(
        "steadystate_check_interval",
        ValueKind::Time(Seconds),
        "1",
        "Interval of checks for steady state.",
        |b, v| {
            v.time_to(&mut b.steady.interval_ns, Seconds)?;
            match b.steady.interval_ns {
                0 => Err(ValueError::new("the interval must be above 0")),
                _ => Ok(()),
            }
        },
    )
    .aliases(&["ss_interval"]),
    OptionRow::new(
        "flow",
        ValueKind::Int(-1000, 1000),
        "0",
        "Weight of the job among the jobs of its flow_id: their numbers of I/Os keep this \
         proportion. 0: not in a flow.",
        |b, v| {
            b.flow.weight = v.int(-1000..=1000)?;
            Ok(())
        },
    ),
    OptionRow::new(
        "flow_id",
        ValueKind::Int(0, U32),
        "0",
        "Identifier of the job's flow.",
        |b, v| v.u32_to(&mut b.flow.id, 0),
    ),
    OptionRow::new(
        "flow_sleep",
        ValueKind::Time(Microseconds),
        "0",
        "Sleep of a job that is ahead of its flow.",
        |b, v| v.time_to(&mut b.flow.sleep_ns, Microseconds),
    ),
];

fn apply_steady_state(b: &mut JobBuilder, v: &OptionValue<'_>) -> ParsedValue<()> {
    let text = v.str();
    let (word, limit) = match text.split_once(':') {
        Some((word, limit)) => (word, Some(limit)),
        None => (text, None),
    };
    let (metric, slope) = choice(
        word,
        &[
            ("iops", (SteadyMetric::Iops, false)),
            ("iops_slope", (SteadyMetric::Iops, true)),
            ("bw", (SteadyMetric::Bandwidth, false)),
            ("bw_slope", (SteadyMetric::Bandwidth, true)),
        ],
    )
    .map_err(|error| error.within(text, word))?;
    let limit = limit.ok_or_else(|| {
        ValueError::new("the limit is missing")
            .help(format!("write it behind a colon: `{word}:2%`"))
    })?;
    let wrong = |error: ValueError| error.within(text, limit);
    let (number, percent) = match value::before_percent_sign(limit) {
        Some(number) => (value::float(number).map_err(wrong)?, true),
        None if metric == SteadyMetric::Bandwidth => {
            // An absolute bandwidth may have a size suffix.
            (value::bytes(limit, b.bytes).map_err(wrong)? as f64, false)
        }
        None => (value::float(limit).map_err(wrong)?, false),
    };
    if number < 0.0 {
        return Err(wrong(ValueError::new("the limit must not be negative")));
    }
    b.steady = SteadyState {
        metric,
        slope,
        limit: number,
        percent,
        ..b.steady
    };
    Ok(())
}
