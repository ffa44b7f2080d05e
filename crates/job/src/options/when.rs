//! Options for the schedule of a job: time, order, rates, targets.

use super::given::choice;
use super::{Builder, Given, Kind, Row};
use crate::plan::*;
use crate::value::TimeUnit::{Microseconds, Milliseconds, Seconds};
use crate::value::{self, Parsed, ValueError};

const U32: i64 = u32::MAX as i64;

/// Rows of the option table.
pub const ROWS: &[Row] = &[
    Row::new(
        "runtime",
        Kind::Time(Seconds),
        "0",
        "End the job after this time. 0 is no limit.",
        |b, v| v.time_to(&mut b.job.schedule.runtime_ns, Seconds),
    )
    .aliases(&["timeout"]),
    Row::new(
        "time_based",
        Kind::Flag,
        "0",
        "Begin again until runtime is over, however small the files.",
        |b, v| v.flag_to(&mut b.job.schedule.time_based),
    ),
    Row::new(
        "ramp_time",
        Kind::Time(Seconds),
        "0",
        "Run this long before anything is counted. It comes before runtime.",
        |b, v| v.time_to(&mut b.job.schedule.ramp_time_ns, Seconds),
    ),
    Row::new(
        "startdelay",
        Kind::TimeRange(Seconds),
        "0",
        "Start the job this much later; from a range, each clone draws its own delay.",
        |b, v| {
            b.job.schedule.startdelay_ns =
                value::list::range(v.str(), |part| value::time_ns(part, Seconds))?;
            Ok(())
        },
    ),
    Row::new(
        "loops",
        Kind::Int(0, U32),
        "1",
        "Run the job this many times.",
        |b, v| {
            b.job.schedule.loops = v.int(0..=U32)?.max(1) as u32;
            Ok(())
        },
    ),
    Row::new(
        "stonewall",
        Kind::Flag,
        "0",
        "Wait until all jobs before this one are done. Begins a new reporting group.",
        |b, v| v.flag_to(&mut b.job.schedule.stonewall),
    )
    .aliases(&["wait_for_previous"]),
    Row::new(
        "wait_for",
        Kind::Text,
        "",
        "Wait until all clones of the job of this name are done. It must come before, and be the only one of its name.",
        |b, v| v.text_to(&mut b.job.schedule.wait_for),
    ),
    Row::new(
        "exitall",
        Kind::Flag,
        "0",
        "When a job is done, end others too; exit_what says which. One job with it is enough.",
        |b, v| v.flag_to(&mut b.exitall),
    ),
    Row::new(
        "exit_what",
        Kind::Choice(&["group", "stonewall", "all"]),
        "group",
        "What exitall ends: jobs of the group, jobs that run now, or everything.",
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
    Row::new(
        "exitall_on_error",
        Kind::Flag,
        "0",
        "When this job fails, end the others too.",
        |b, v| v.flag_to(&mut b.job.schedule.exitall_on_error),
    ),
    Row::new(
        "thinktime",
        Kind::Time(Microseconds),
        "0",
        "Pause after an I/O, or after thinktime_blocks of them.",
        |b, v| v.time_to(&mut b.thinktime.pause_ns, Microseconds),
    ),
    Row::new(
        "thinktime_spin",
        Kind::Time(Microseconds),
        "0",
        "Spend the first part of the pause busy instead of asleep.",
        |b, v| v.time_to(&mut b.thinktime.spin_ns, Microseconds),
    ),
    Row::new(
        "thinktime_blocks",
        Kind::Int(0, U32),
        "1",
        "Blocks between two pauses.",
        |b, v| {
            b.thinktime.blocks = v.int(0..=U32)?.max(1) as u32;
            Ok(())
        },
    ),
    Row::new(
        "thinktime_blocks_type",
        Kind::Choice(&["complete", "issue"]),
        "complete",
        "Whether thinktime_blocks counts blocks that are done or blocks that are issued.",
        |b, v| {
            v.choice_to(
                &mut b.thinktime.count_issued,
                &[("complete", false), ("issue", true)],
            )
        },
    ),
    Row::new(
        "thinktime_iotime",
        Kind::Time(Seconds),
        "0",
        "Pause whenever I/O went on for this long.",
        |b, v| v.time_to(&mut b.thinktime.iotime_ns, Seconds),
    ),
    Row::new(
        "rate",
        Kind::SizeList,
        "",
        "Move no more than this many bytes a second.",
        |b, v| v.rates_to(&mut b.job.schedule.rate_bytes, b.bytes),
    ),
    Row::new(
        "rate_min",
        Kind::SizeList,
        "",
        "End the job with an error if it moves fewer bytes a second than this.",
        |b, v| v.rates_to(&mut b.job.schedule.rate_min_bytes, b.bytes),
    )
    .aliases(&["ratemin"]),
    Row::new(
        "rate_iops",
        Kind::IntList(0, i64::MAX),
        "",
        "Do no more than this many I/Os a second.",
        |b, v| v.rates_to(&mut b.job.schedule.rate_iops, b.bytes),
    ),
    Row::new(
        "rate_iops_min",
        Kind::IntList(0, i64::MAX),
        "",
        "End the job with an error if it does fewer I/Os a second than this.",
        |b, v| v.rates_to(&mut b.job.schedule.rate_iops_min, b.bytes),
    ),
    Row::new(
        "rate_process",
        Kind::Choice(&["linear", "poisson"]),
        "linear",
        "Whether a rate's I/Os come at even distances or at random ones, as from many independent users.",
        |b, v| {
            v.choice_to(
                &mut b.job.schedule.rate_poisson,
                &[("linear", false), ("poisson", true)],
            )
        },
    ),
    Row::new(
        "rate_ignore_thinktime",
        Kind::Bool,
        "0",
        "Do not catch up after a pause to keep the rate.",
        |b, v| v.bool_to(&mut b.job.schedule.rate_ignore_thinktime),
    ),
    Row::new(
        "rate_cycle",
        Kind::Time(Milliseconds),
        "1000",
        "Window over which rate_min and rate_iops_min are checked.",
        |b, v| v.time_to(&mut b.job.schedule.rate_cycle_ns, Milliseconds),
    )
    .aliases(&["ratecycle"]),
    Row::new(
        "max_latency",
        Kind::TimeList(Microseconds),
        "",
        "End the job with an error at the first I/O that takes longer.",
        |b, v| {
            value::directions(v.str(), &mut b.job.schedule.max_latency_ns, |part| {
                Ok(Some(value::time_ns(part, Microseconds)?).filter(|ns| *ns > 0))
            })
        },
    ),
    Row::new(
        "latency_target",
        Kind::Time(Microseconds),
        "0",
        "Find the depth at which latency stays below this.",
        |b, v| v.time_to(&mut b.latency.target_ns, Microseconds),
    ),
    Row::new(
        "latency_window",
        Kind::Time(Microseconds),
        "0",
        "How long each depth is tried for latency_target.",
        |b, v| v.time_to(&mut b.latency.window_ns, Microseconds),
    ),
    Row::new(
        "latency_percentile",
        Kind::Float,
        "100",
        "Per cent of I/Os that must stay below latency_target.",
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
    Row::new(
        "latency_run",
        Kind::Bool,
        "0",
        "Go on after the depth for latency_target is found, and keep adjusting it.",
        |b, v| v.bool_to(&mut b.latency.run),
    ),
    Row::new(
        "steadystate",
        Kind::Text,
        "iops_slope:0.01%",
        "What must hold still for the job to end: iops, iops_slope, bw or bw_slope, and the limit behind a colon, in \
         per cent or absolute. Works with steadystate_duration.",
        apply_steady_state,
    )
    .aliases(&["ss"]),
    Row::new(
        "steadystate_duration",
        Kind::Time(Seconds),
        "0",
        "Window in which the job must hold still. 0 looks for no steady state.",
        |b, v| v.time_to(&mut b.steady.duration_ns, Seconds),
    )
    .aliases(&["ss_dur"]),
    Row::new(
        "steadystate_ramp_time",
        Kind::Time(Seconds),
        "0",
        "Run this long before steady state is looked for.",
        |b, v| v.time_to(&mut b.steady.ramp_ns, Seconds),
    )
    .aliases(&["ss_ramp"]),
    Row::new(
        "steadystate_check_interval",
        Kind::Time(Seconds),
        "1",
        "How often steady state is looked for.",
        |b, v| {
            v.time_to(&mut b.steady.interval_ns, Seconds)?;
            match b.steady.interval_ns {
                0 => Err(ValueError::new("the interval must be above 0")),
                _ => Ok(()),
            }
        },
    )
    .aliases(&["ss_interval"]),
    Row::new(
        "flow",
        Kind::Int(-1000, 1000),
        "0",
        "Weight of the job among those with its flow_id: their numbers of I/Os keep this proportion. 0 takes no part.",
        |b, v| {
            b.flow.weight = v.int(-1000..=1000)?;
            Ok(())
        },
    ),
    Row::new(
        "flow_id",
        Kind::Int(0, U32),
        "0",
        "Which flow the job belongs to.",
        |b, v| v.u32_to(&mut b.flow.id, 0),
    ),
    Row::new(
        "flow_sleep",
        Kind::Time(Microseconds),
        "0",
        "How long a job sleeps when it is ahead of its flow.",
        |b, v| v.time_to(&mut b.flow.sleep_ns, Microseconds),
    ),
];

fn apply_steady_state(b: &mut Builder, v: &Given<'_>) -> Parsed<()> {
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
