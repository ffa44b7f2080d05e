//! The suitability of a target, which the latency of a durable write decides.

use super::evidence::ClassEvidence;
use crate::words;
use iosonde_result::device_class::MEMORY_DATA_LOSS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const US: f64 = 1e3;
const MS: f64 = 1e6;

/// An fdatasync that returns sooner cannot have reached a medium.
const FLUSH_NS_MIN: f64 = 8.0 * US;

/// Smallest share of fdatasync's median from which on the write before it is named.
const WRITE_SHARE_MIN: f64 = 0.1;

/// Limits of the classes.
const LIMITS_NS: [f64; 3] = [MS, 10.0 * MS, 50.0 * MS];
/// Calls of fdatasync that put ten beyond the 99th percentile, and half as many again: its interval
/// then ends below the slowest calls.
const CALLS_FOR_P99: f64 = 1500.0;
/// Factor of the time that halves an interval whose width is not known.
const TIME_FACTOR_UNKNOWN: f64 = 4.0;
/// Smallest factor of the time that is worth another measurement.
const TIME_FACTOR_MIN: f64 = 2.0;
/// Longest runtime that is advised.
const RUNTIME_S_MAX: f64 = 3600.0;

/// Suitability by the latency of durable writes, the fastest class first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DurableWrites {
    /// fdatasync takes 1 ms or less at p99.
    BusyDatabase,
    /// 10 ms or less, as etcd requires.
    Database,
    /// 50 ms or less.
    LightDatabase,
    /// More than 50 ms.
    Files,
}

impl DurableWrites {
    /// The class in words that follow "it suits".
    pub fn words(self) -> &'static str {
        match self {
            DurableWrites::BusyDatabase => "a busy database's log",
            DurableWrites::Database => "databases and etcd, which requires 10 ms",
            DurableWrites::LightDatabase => {
                "files and lightly used databases, not etcd, which requires 10 ms"
            }
            DurableWrites::Files => "files, backups and streams, not a database's log",
        }
    }
}

/// The sentence for targets without measured durable writes.
pub const NOT_MEASURED: &str =
    "Durable writes were not measured, so suitability for databases is unknown";

/// The suitability in a sentence without its full stop.
pub(super) fn sentence(evidence: &ClassEvidence) -> String {
    if evidence.is_in_memory() {
        return format!("The target suits scratch data: its {MEMORY_DATA_LOSS}");
    }
    let (Some(p50), Some(p99)) = (evidence.sync_p50_ns, evidence.sync_p99_ns) else {
        if let Some(p99) = evidence.durable_write_p99_ns {
            let write = words::latency(p99);
            return format!("A durable write takes {write} at p99");
        }
        return match evidence.sync_p99_ns {
            Some(longest) => undecided(evidence, longest),
            None => NOT_MEASURED.to_owned(),
        };
    };
    if p50 < FLUSH_NS_MIN {
        return format!(
            "fdatasync returns in {}, faster than any medium, so acknowledged data may not survive \
             a power failure",
            words::latency(p50)
        );
    }
    let Some(durable) = durable_writes(evidence) else {
        return undecided(evidence, p99);
    };
    let suits = match durable {
        DurableWrites::Database if p50 > 3.0 * MS => {
            "files, streams and lightly used databases, and etcd, which requires 10 ms"
        }
        durable => durable.words(),
    };
    format!(
        "The target suits {suits} ({})",
        flush_in_words(evidence, p99)
    )
}

/// The class on which the whole confidence interval agrees; `None` if undecided. Interference only
/// slows a run down, so a noisy run can only show that a device is fast.
pub(super) fn durable_writes(evidence: &ClassEvidence) -> Option<DurableWrites> {
    let fit = |p99_ns: f64| match p99_ns {
        ns if ns <= MS => DurableWrites::BusyDatabase,
        ns if ns <= 10.0 * MS => DurableWrites::Database,
        ns if ns <= 50.0 * MS => DurableWrites::LightDatabase,
        _ => DurableWrites::Files,
    };
    let (low, high) = evidence.sync_p99_between_ns?;
    // Suitability for databases needs only the upper bound.
    let is_fast = fit(high) <= DurableWrites::Database;
    let is_known = is_fast || (fit(low) == fit(high) && !evidence.noisy);
    (is_known && !evidence.sync_is_few).then(|| fit(high))
}

/// States that the suitability is unknown, and what measurement would decide it.
fn undecided(evidence: &ClassEvidence, p99_ns: f64) -> String {
    let time = words::latency(p99_ns);
    let why = match evidence.sync_p99_between_ns {
        _ if evidence.sync_is_few => {
            format!("too few fdatasync calls were measured, the longest took {time}")
        }
        Some((low, high)) if !evidence.noisy => format!(
            "fdatasync takes {time} at p99, with an interval of {} to {}",
            words::latency(low),
            words::latency(high)
        ),
        Some(_) => format!("fdatasync takes {time} at p99 in a disturbed run"),
        None => format!("fdatasync takes {time} at p99, with an unknown interval"),
    };
    let remedy = match evidence.noisy {
        true => "measure again on an idle machine and device".to_owned(),
        false => longer_probe(evidence),
    };
    format!("Suitability for databases and etcd is undecided: {why}; {remedy}")
}

/// The command that measures long enough. A phase must not end early: a steady rate says nothing
/// about the 99th percentile.
fn longer_probe(evidence: &ClassEvidence) -> String {
    match runtime_needed_s(evidence) {
        Some(seconds) if seconds > RUNTIME_S_MAX => {
            "more than an hour of --runtime would decide it".to_owned()
        }
        Some(seconds) => {
            let target = match evidence.target_arguments.as_str() {
                "" => String::new(),
                target => format!(" {target}"),
            };
            format!("run `iosonde probe{target} --precision 0 --runtime {seconds:.0}`")
        }
        None => "use a longer --runtime".to_owned(),
    }
}

/// Measured time in seconds after which the class is probably known: enough calls for a 99th
/// percentile, whose interval shrinks with the square root of their number. `None` without calls.
fn runtime_needed_s(evidence: &ClassEvidence) -> Option<f64> {
    let (calls, measured_ns) = evidence.sync_calls.filter(|(calls, _)| *calls > 0)?;
    let by_count = CALLS_FOR_P99 / calls as f64;
    let by_interval = match evidence.sync_p99_between_ns {
        Some((low, high)) => {
            let p99_ns = evidence.sync_p99_ns?;
            let inside = LIMITS_NS
                .iter()
                .filter(|limit| (low..=high).contains(*limit));
            let distances = inside.map(|limit| (limit - p99_ns).abs());
            let nearest = distances
                .fold(f64::INFINITY, f64::min)
                .max(f64::MIN_POSITIVE);
            ((high - low) / 2.0 / nearest).powi(2)
        }
        None if evidence.sync_is_few => 1.0,
        None => TIME_FACTOR_UNKNOWN,
    };
    let factor = by_count.max(by_interval).max(TIME_FACTOR_MIN);
    Some((measured_ns as f64 / 1e9 * factor).ceil())
}

/// The latency of fdatasync at p99, or the longest if too few were measured. A write before it that
/// takes long, as without a page cache, is named: a commit waits for both.
pub(super) fn flush_in_words(evidence: &ClassEvidence, p99_ns: f64) -> String {
    let time = words::latency(p99_ns);
    match evidence.sync_is_few {
        true => format!("the longest fdatasync took {time}"),
        false => format!("fdatasync takes {time} at p99{}", write_in_words(evidence)),
    }
}

/// Formats `, after a write of 2.32 ms at p50`. Empty if the write is short beside its fdatasync.
fn write_in_words(evidence: &ClassEvidence) -> String {
    let is_long = |(write, sync): &(f64, f64)| *write >= WRITE_SHARE_MIN * *sync;
    let medians = evidence.sync_write_p50_ns.zip(evidence.sync_p50_ns);
    let long = medians.filter(is_long);
    long.map_or(String::new(), |(write, _)| {
        format!(", after a write of {} at p50", words::latency(write))
    })
}
