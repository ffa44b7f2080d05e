//! What a target suits, which the time of a durable write decides more than anything else.

use super::evidence::Evidence;
use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const US: f64 = 1e3;
const MS: f64 = 1e6;

/// An fdatasync that returns sooner than this cannot have reached a medium.
const FLUSH_NS_MIN: f64 = 8.0 * US;

/// What the time of durable writes is fit for, the fastest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DurableWrites {
    /// fdatasync takes 1 ms or less at p99.
    BusyDatabase,
    /// 10 ms or less, which etcd asks for.
    Database,
    /// 50 ms or less.
    LightDatabase,
    /// More.
    Files,
}

impl DurableWrites {
    /// What it suits, in words to follow "it suits".
    pub fn words(self) -> &'static str {
        match self {
            DurableWrites::BusyDatabase => "a busy database's log",
            DurableWrites::Database => "databases and etcd, which asks for 10 ms",
            DurableWrites::LightDatabase => {
                "files and lightly used databases, not etcd, which asks for 10 ms"
            }
            DurableWrites::Files => "files, backups and streams, not a database's log",
        }
    }
}

/// What a target suits where no durable write was measured.
pub const NOT_MEASURED: &str =
    "Durable writes were not measured, so suitability for databases is unknown";

/// What it suits, in a sentence without its full stop.
pub(super) fn sentence(evidence: &Evidence) -> String {
    if evidence.is_in_memory() {
        return "It suits scratch data: nothing on it survives a restart".to_owned();
    }
    let (Some(p50), Some(p99)) = (evidence.sync_p50_ns, evidence.sync_p99_ns) else {
        if let Some(p99) = evidence.durable_write_p99_ns {
            let write = words::latency(p99);
            return format!("A write, durable when it is acknowledged, takes {write} at p99");
        }
        return match evidence.sync_p99_ns {
            Some(longest) => undecided(evidence, longest),
            None => NOT_MEASURED.to_owned(),
        };
    };
    if p50 < FLUSH_NS_MIN {
        return format!(
            "An fdatasync returns in {}, before anything can have reached a medium, so what it acknowledges may not survive a power failure",
            words::latency(p50)
        );
    }
    let Some(durable) = durable_writes(evidence) else {
        return undecided(evidence, p99);
    };
    let suits = match durable {
        DurableWrites::Database if p50 > 3.0 * MS => {
            "files, streams and lightly used databases, and etcd, which asks for 10 ms"
        }
        durable => durable.words(),
    };
    format!("It suits {suits} ({})", flush_in_words(evidence, p99))
}

/// What the time of a durable write is fit for, where its whole interval says the same; `None` where that is undecided. What
/// disturbed a run made it slower: then only that it is fast is known of the device.
pub(super) fn durable_writes(evidence: &Evidence) -> Option<DurableWrites> {
    let fit = |p99_ns: f64| match p99_ns {
        ns if ns <= MS => DurableWrites::BusyDatabase,
        ns if ns <= 10.0 * MS => DurableWrites::Database,
        ns if ns <= 50.0 * MS => DurableWrites::LightDatabase,
        _ => DurableWrites::Files,
    };
    let (low, high) = evidence.sync_p99_between_ns?;
    // That it suits databases is carried by the upper end alone.
    let is_fast = fit(high) <= DurableWrites::Database;
    let is_known = is_fast || (fit(low) == fit(high) && !evidence.noisy);
    (is_known && !evidence.sync_is_few).then(|| fit(high))
}

/// That it is not known what it suits, and what would decide it.
fn undecided(evidence: &Evidence, p99_ns: f64) -> String {
    let time = words::latency(p99_ns);
    let why = match evidence.sync_p99_between_ns {
        _ if evidence.sync_is_few => {
            format!("too few fdatasync were measured, the longest took {time}")
        }
        Some((low, high)) if !evidence.noisy => format!(
            "fdatasync takes {time} at p99, which may be {} to {}",
            words::latency(low),
            words::latency(high)
        ),
        Some(_) => format!("fdatasync takes {time} at p99 beside what disturbed the run"),
        None => format!("fdatasync takes {time} at p99, and its interval is not known"),
    };
    let what = match evidence.noisy {
        true => "a quiet machine and device decide it",
        false => "a longer --runtime decides it",
    };
    format!("Whether it suits databases and etcd is undecided: {why}; {what}")
}

/// The time of nearly all flushes, or the longest where more cannot be said.
pub(super) fn flush_in_words(evidence: &Evidence, p99_ns: f64) -> String {
    let time = words::latency(p99_ns);
    match evidence.sync_is_few {
        true => format!("the longest fdatasync took {time}"),
        false => format!("fdatasync takes {time} at p99"),
    }
}
