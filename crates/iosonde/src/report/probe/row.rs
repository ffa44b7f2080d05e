//! One figure in words.

use iosonde_job::plan::Direction;
use iosonde_study::probe::{Figure, Latency, Phase};
use iosonde_study::words;

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
    let block = if figure.block_bytes >= 1 << 20 {
        format!("{}M", figure.block_bytes >> 20)
    } else {
        format!("{}k", figure.block_bytes >> 10)
    };
    let direction = match figure.phase.direction() {
        Direction::Read => "read",
        _ => "write",
    };
    let order = if figure.phase.is_random() {
        "random"
    } else {
        "sequential"
    };
    match figure.phase {
        Phase::SyncedWrite => format!("{block} write + fdatasync"),
        _ => format!("{block} {order} {direction}, depth {}", figure.iodepth),
    }
}

/// The latency that counts: where each write is made durable, that of making it durable.
pub(crate) fn latency(figure: &Figure) -> &Latency {
    figure.sync_latency.as_ref().unwrap_or(&figure.latency)
}

/// The rate's confidence interval: `0.4 %`; `-` where it is not known.
pub(crate) fn error(figure: &Figure) -> String {
    match figure.iops.relative_error() {
        Some(error) if error < 0.0995 => format!("{:.1} %", error * 100.0),
        Some(error) if error < 1.0 => format!("{:.0} %", error * 100.0),
        Some(_) => "> 100 %".to_owned(),
        None => "-".to_owned(),
    }
}

/// What keeps the figure from being believed as it stands: `not sure: +- 3.4 %`, `did not settle`.
pub(crate) fn doubts(figure: &Figure) -> Vec<String> {
    let mut doubts = Vec::new();
    if is_unsure(figure) {
        doubts.push(match figure.iops.error {
            Some(_) => format!("not sure: +- {}", error(figure)),
            None => "not sure: too short to tell".to_owned(),
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
    let mut details = Vec::new();
    if figure.iops.error.is_some() && !is_unsure(figure) {
        details.push(format!("+- {}", error(figure)));
    }
    details.extend(doubts(figure));
    if let Some(p99) = latency(figure).p99_ns {
        details.push(format!("p99 {}", words::latency(p99 as f64)));
    }
    let line = format!(
        "{:<28} {:<12} {}",
        label(figure),
        headline(figure),
        details.join(", ")
    );
    line.trim_end().to_owned()
}
