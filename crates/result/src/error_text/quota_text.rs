//! Words of limit ranges, quotas, and room on shares.

use super::describe_quantity;
use crate::run_error::{ClaimBound, QuotaShortage};
use std::fmt;

impl ClaimBound {
    /// Returns how the size of a claim misses this bound of the limit range.
    pub(super) fn problem(&self, limit_range: &str) -> String {
        match self {
            ClaimBound::MaximumBytes(bytes) => format!(
                "larger than the {} that the limit range {limit_range} allows",
                describe_quantity(*bytes)
            ),
            ClaimBound::MinimumBytes(bytes) => format!(
                "smaller than the {} that the limit range {limit_range} requires",
                describe_quantity(*bytes)
            ),
        }
    }
}

impl fmt::Display for QuotaShortage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuotaShortage::Bytes {
                needed_bytes,
                left_bytes,
            } => write!(
                formatter,
                "the run needs {}, but {} is left",
                describe_quantity(*needed_bytes),
                describe_quantity(*left_bytes)
            ),
            QuotaShortage::Claims => formatter.write_str("no further claim is allowed"),
            QuotaShortage::ClaimCount { needed, left } => {
                let claims = match needed {
                    1 => "claim",
                    _ => "claims",
                };
                let verb = match left {
                    1 => "is",
                    _ => "are",
                };
                write!(
                    formatter,
                    "the run needs {needed} {claims}, but {left} {verb} left"
                )
            }
            QuotaShortage::Amount {
                needed_milli,
                left_milli,
            } => write!(
                formatter,
                "the run needs {}, but {} is left",
                describe_milli(*needed_milli),
                describe_milli(*left_milli)
            ),
        }
    }
}

impl QuotaShortage {
    /// Returns the action to take.
    pub(super) fn remedy(self) -> &'static str {
        match self {
            QuotaShortage::Bytes { .. } => {
                "use a smaller --claim-size, remove what is not needed, or ask for more quota"
            }
            QuotaShortage::Claims | QuotaShortage::ClaimCount { .. } => {
                "remove claims that are not needed, use fewer --pods, or ask for more quota"
            }
            QuotaShortage::Amount { .. } => {
                "use smaller --requests and --limits, fewer --pods, or ask for more quota"
            }
        }
    }
}

/// Describes an amount in thousandths, like Kubernetes.
fn describe_milli(milli: u64) -> String {
    match milli % 1000 {
        0 => describe_quantity(milli / 1000),
        _ => format!("{milli}m"),
    }
}

/// Describes the lack of room on the share that holds the volumes.
pub(super) fn full_share_text(free_bytes: u64, needed_bytes: u64) -> String {
    format!(
        "the jobs write {}, but the file system of the volume has only {} left, whatever the size \
         of the claim",
        describe_quantity(needed_bytes),
        // Free room is rarely round, and has to be readable.
        describe_quantity(free_bytes >> 20 << 20)
    )
}

/// Returns the option that states the amount of a resource, by the name that a quota has for it.
pub(super) fn quota_amount_remedy(resource: &str) -> String {
    match resource.strip_prefix("limits.") {
        Some(name) => format!("state the amount with --limits {name}=AMOUNT"),
        None => {
            let name = resource.trim_start_matches("requests.");
            format!("state the amount with --requests {name}=AMOUNT")
        }
    }
}
