//! Findings of `iosonde doctor`: conditions that distort a measurement, and their remedies. Pure.
//!
//! A rule reports nothing if a fact is unknown. `docs/doctor.md` lists the stable identifiers.

mod cluster_cause;
mod cluster_text;
mod device_rules;
mod device_text;
mod examination;
mod finding_cause;
mod finding_text;
#[cfg(test)]
mod finding_text_tests;
mod finding_words;
mod io_path_cause;
mod io_path_rules;
mod io_path_settings;
#[cfg(test)]
mod io_path_tests;
mod io_path_text;
mod leftover_rules;
mod leftover_text;
mod machine_rules;
mod machine_text;
mod target_rules;
mod target_text;
#[cfg(test)]
mod tests;

pub use cluster_cause::{CleanUp, ClusterCause};
pub(crate) use cluster_text::ways_to_share;
pub use examination::*;
pub use finding_cause::*;
pub use io_path_cause::{IoPathCause, IoUringRefusal};
pub use io_path_settings::*;

/// Smallest working set in bytes that gives a valid figure.
pub const WORKING_SET_BYTES_MIN: u64 = 16 << 20;

/// Returns all findings without duplicates, the most severe first.
pub fn findings(examined: &Examination) -> Vec<Finding> {
    let mut found = machine_rules::findings(&examined.host, &examined.conditions);
    for target in &examined.targets {
        found.extend(target_rules::findings(target));
        found.extend(device_rules::findings(&target.info, &examined.conditions));
    }
    found.extend(io_path_rules::findings(examined));
    found.extend(examined.leftovers.iter().map(leftover_rules::finding));
    let mut each: Vec<Finding> = Vec::new();
    for finding in found {
        // Two targets may be on the same device.
        if !each.contains(&finding) {
            each.push(finding);
        }
    }
    each.sort_by_key(|finding| finding.severity);
    each
}
