//! One figure in words.

use crate::report::intervals::NOT_KNOWN;
use iosonde_job::plan::Direction;
use iosonde_study::probe::{Figure, Knee, Latency, Phase, ProbeResult, most_of};
use iosonde_study::words;
use std::collections::BTreeMap;

/// Of blocks from this size on people ask for bandwidth.
const LARGE_BYTES: u64 = 1 << 20;

/// The order in which people look for figures: throughput first.
pub(crate) const ORDER: [Phase; 7] = [
    Phase::RandomRead,
    Phase::RandomWrite,
    Phase::SequentialRead,
    Phase::SequentialWrite,
    Phase::ReadLatency,
    Phase::WriteLatency,
    Phase::SyncedWrite,
];

/// What was measured: `4k random read, depth 64`.
pub(crate) fn label(figure: &Figure) -> String {
    pattern(figure.phase, figure.block_bytes, figure.iodepth)
}

/// The same of a phase to come.
pub(crate) fn planned(phase: Phase) -> String {
    pattern(phase, phase.block_bytes(), phase.iodepth())
}

/// What people call the parts of a probe: `random_read` is a `4k random read, depth 64`.
pub(crate) fn titles(probe: &ProbeResult) -> BTreeMap<String, String> {
    let of_figures = probe
        .figures
        .iter()
        .map(|figure| (figure.phase.key().to_owned(), label(figure)));
    let of_most = probe.knees.iter().filter_map(|knee| {
        let pattern = planned(knee.phase);
        let (pattern, _) = pattern.split_once(',')?;
        Some((
            most_of(knee.phase),
            format!("{pattern}, the most at any depth"),
        ))
    });
    of_figures.chain(of_most).collect()
}

fn pattern(phase: Phase, block_bytes: u64, iodepth: u32) -> String {
    let block = if block_bytes >= 1 << 20 {
        format!("{}M", block_bytes >> 20)
    } else {
        format!("{}k", block_bytes >> 10)
    };
    let direction = match phase.direction() {
        Direction::Read => "read",
        _ => "write",
    };
    let order = if phase.is_random() {
        "random"
    } else {
        "sequential"
    };
    match phase {
        Phase::SyncedWrite => format!("{block} write + fdatasync"),
        _ => format!("{block} {order} {direction}, depth {iodepth}"),
    }
}

/// The latency that counts: where each write is made durable, that of making it durable.
pub(crate) fn latency(figure: &Figure) -> &Latency {
    figure.sync_latency.as_ref().unwrap_or(&figure.latency)
}

/// The confidence intervals of its median, 99th and 99.9th percentile.
pub(crate) fn intervals(figure: &Figure) -> [Option<(u64, u64)>; 3] {
    let latency = latency(figure);
    [
        latency.p50_between_ns,
        latency.p99_between_ns,
        latency.p99_9_between_ns,
    ]
}

/// The rate's confidence interval: `0.4 %`; `-` where it is not known.
pub(crate) fn error(figure: &Figure) -> String {
    let telling = figure.iops.if_telling();
    telling.relative_error().map_or("-".to_owned(), share)
}

/// Half an interval around what it is a share of: `+- 0.4 %`, or `not known` where it reaches zero.
pub(crate) fn within(error: f64) -> String {
    match error {
        error if error < 1.0 => format!("+- {}", share(error)),
        _ => NOT_KNOWN.to_owned(),
    }
}

/// An error as a share of what it is of: `0.4 %`.
pub(crate) fn share(error: f64) -> String {
    match error {
        error if error < 0.0995 => format!("{:.1} %", error * 100.0),
        error if error < 1.0 => format!("{:.0} %", error * 100.0),
        _ => ">100 %".to_owned(),
    }
}

/// What keeps the figure from being believed as it stands: `not sure: +- 3.4 %`, `did not settle`.
pub(crate) fn doubts(figure: &Figure) -> Vec<String> {
    let mut doubts = Vec::new();
    if is_unsure(figure) {
        doubts.push(match figure.iops.if_telling().error {
            Some(_) => format!("not sure: +- {}", error(figure)),
            None => "not sure: interval not known".to_owned(),
        });
    }
    if figure.settled == Some(false) {
        doubts.push("did not settle".to_owned());
    }
    doubts
}

/// Whether its time was over before its rate was known as well as was asked for.
pub(crate) fn is_unsure(figure: &Figure) -> bool {
    figure.sure == Some(false)
}

/// A percentile: `-` where too few were measured.
pub(crate) fn percentile(ns: Option<u64>) -> String {
    ns.map_or("-".to_owned(), |ns| words::latency(ns as f64))
}

/// The confidence interval of a percentile: `388-396 us`, `980 us-1.20 ms`; `-` where it is not known.
pub(crate) fn between(ns: Option<(u64, u64)>) -> String {
    let Some((low, high)) = ns else {
        return "-".to_owned();
    };
    let [low, high] = [low, high].map(|ns| words::latency(ns as f64));
    if low == high {
        return low;
    }
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}-{high}"),
        _ => format!("{low}-{high}"),
    }
}

/// The figure that a phase is about: IOPS, or the bandwidth of large blocks.
pub(crate) fn headline(figure: &Figure) -> String {
    if figure.block_bytes >= 1 << 20 {
        words::bandwidth(figure.bytes_per_s.mean)
    } else {
        format!("{} IOPS", words::iops(figure.iops.mean))
    }
}

/// The figure in one line, for the display.
pub(crate) fn one_line(figure: &Figure) -> String {
    let line = format!(
        "{:<28} {:<12} {}",
        label(figure),
        headline(figure),
        details(figure)
    );
    line.trim_end().to_owned()
}

/// What is known of a figure besides: how sure it is, and its latency, or what speaks against believing it.
pub(crate) fn details(figure: &Figure) -> String {
    let mut details = doubts(figure);
    if !is_unsure(figure) && figure.iops.if_telling().error.is_some() {
        details.insert(0, format!("+- {}", error(figure)));
    }
    let p99 = latency(figure).p99_ns.filter(|_| details.len() < 2);
    details.extend(p99.map(|ns| format!("p99 {}", words::latency(ns as f64))));
    details.join(", ")
}

/// The most that a pattern gives, and where: `412k IOPS` and `+- 0.4 % from depth 24 on`; `not known` where the figures
/// carry no maximum.
pub(crate) fn knee_in_short(knee: &Knee) -> (String, String) {
    let found = &knee.saturation;
    let claims = found.claims();
    if !claims.maximum {
        let (most, known, _) = found.most_in_words(knee.phase.block_bytes() >= LARGE_BYTES);
        return ("not known".to_owned(), format!("{most} {known}"));
    }
    let error = found.maximum.relative_error().map_or(String::new(), share);
    let at = cell(found.jobs, found.knee.iodepth);
    let from = match claims.knee {
        true => at,
        false => format!("{at} or lower"),
    };
    let most = rate(knee.phase, found.maximum.mean);
    (most, format!("+- {error} from {from} on"))
}

/// The maximum and its knee in a cell of a table: `412k IOPS at 24`; `not known` where the figures carry no maximum.
pub(crate) fn most_and_knee(knee: &Knee) -> String {
    let found = &knee.saturation;
    let Some(maximum) = found.known_maximum() else {
        return "not known".to_owned();
    };
    let or_lower = if found.claims().knee { "" } else { " or lower" };
    let at = cell(found.jobs, found.knee.iodepth);
    format!("{}, {at}{or_lower}", rate(knee.phase, maximum.mean))
}

/// A rate of I/Os in the unit of its phase: IOPS, or the bandwidth of large blocks.
pub(crate) fn rate(phase: Phase, iops: f64) -> String {
    match phase.block_bytes() {
        bytes @ LARGE_BYTES.. => words::bandwidth(iops * bytes as f64),
        _ => format!("{} IOPS", words::iops(iops)),
    }
}

/// A cell of a search: `depth 32`, `2 jobs x depth 32`.
pub(crate) fn cell(jobs: u32, iodepth: u32) -> String {
    match jobs {
        1 => format!("depth {iodepth}"),
        jobs => format!("{jobs} jobs x depth {iodepth}"),
    }
}

/// Where a pattern bends: `412k IOPS +- 0.4 % from depth 24 on; past 64 only latency grows`. Nothing is said that the
/// intervals do not carry.
pub(crate) fn knee(knee: &Knee) -> String {
    let found = &knee.saturation;
    let claims = found.claims();
    if !claims.maximum {
        let (most, known, at) = found.most_in_words(knee.phase.block_bytes() >= LARGE_BYTES);
        return format!("not known; the fastest was {at} with {most} {known}");
    }
    let (most, at) = knee_in_short(knee);
    let beyond = match found.latency_only {
        None if claims.rises => format!("it still rises at depth {}", deepest(knee)),
        None => "deeper was not tried".to_owned(),
        Some(_) if !claims.plateau => "whether deeper gives more is not known".to_owned(),
        Some(point) if point.iodepth <= found.knee.iodepth => "deeper only adds latency".to_owned(),
        Some(point) => format!("past {} only latency grows", point.iodepth),
    };
    format!("{most} {at}; {beyond}")
}

/// The deepest queue that was tried.
fn deepest(knee: &Knee) -> u32 {
    let cells = knee.saturation.cells.iter();
    cells.map(|cell| cell.iodepth).max().unwrap_or(1)
}
