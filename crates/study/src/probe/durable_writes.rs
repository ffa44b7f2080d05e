//! The suitability of a target, which the latency of a durable write decides.

use super::evidence::ClassEvidence;
use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const US: f64 = 1e3;
const MS: f64 = 1e6;

/// An fdatasync that returns sooner cannot have reached a medium.
const FLUSH_NS_MIN: f64 = 8.0 * US;

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
        return "The target suits scratch data: its data does not survive a restart".to_owned();
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
    let what = match evidence.noisy {
        true => "measure again on an idle machine and device",
        false => "use a longer --runtime",
    };
    format!("Suitability for databases and etcd is undecided: {why}; {what}")
}

/// The latency of fdatasync at p99, or the longest if too few were measured.
pub(super) fn flush_in_words(evidence: &ClassEvidence, p99_ns: f64) -> String {
    let time = words::latency(p99_ns);
    match evidence.sync_is_few {
        true => format!("the longest fdatasync took {time}"),
        false => format!("fdatasync takes {time} at p99"),
    }
}
