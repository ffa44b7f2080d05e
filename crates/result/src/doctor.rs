//! Findings of `iosonde doctor`: conditions that distort a measurement, and their remedies. Pure.
//!
//! A rule reports nothing if a fact is unknown. `docs/doctor.md` lists the stable identifiers.

mod device_rules;
mod examination;
mod leftover_rules;
mod machine_rules;
mod target_rules;
#[cfg(test)]
mod tests;

pub use examination::*;

/// Smallest working set in bytes that gives a valid figure.
pub const WORKING_SET_BYTES_MIN: u64 = 16 << 20;

/// Returns all findings without duplicates, the most severe first.
pub fn findings(examined: &Examination) -> Vec<Finding> {
    let mut found = machine_rules::findings(&examined.host, &examined.conditions);
    for target in &examined.targets {
        found.extend(target_rules::findings(target));
        found.extend(device_rules::findings(&target.info, &examined.conditions));
    }
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

/// Creates a finding without a remedy.
fn found(
    severity: Severity,
    id: &str,
    subject: &str,
    evidence: impl Into<String>,
    effect: impl Into<String>,
) -> Finding {
    Finding {
        id: id.to_owned(),
        severity,
        subject: subject.to_owned(),
        evidence: evidence.into(),
        effect: effect.into(),
        remedy: String::new(),
        command: None,
    }
}

/// Adds remedies to findings.
trait Remedied {
    fn remedy(self, words: impl Into<String>) -> Self;
    /// Adds a command that is the remedy.
    fn command(self, line: impl Into<String>) -> Self;
}

impl Remedied for Finding {
    fn remedy(mut self, words: impl Into<String>) -> Self {
        self.remedy = words.into();
        self
    }

    fn command(mut self, line: impl Into<String>) -> Self {
        self.command = Some(line.into());
        self
    }
}
