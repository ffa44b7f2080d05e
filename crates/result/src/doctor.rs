//! What would spoil a measurement here, and how to put it right: advice from an examined machine. Pure.
//!
//! Each rule looks at the facts of an [`Examination`] and finds nothing where a fact is not known. The identifiers of
//! findings are stable; `docs/doctor.md` lists them.

mod device_rules;
mod examination;
mod leftover_rules;
mod machine_rules;
mod target_rules;
#[cfg(test)]
mod tests;

pub use examination::*;

/// Bytes of the smallest working set that a figure can be taken from.
pub const WORKING_SET_BYTES_MIN: u64 = 16 << 20;

/// All findings, the worst first, each once.
pub fn findings(examined: &Examination) -> Vec<Finding> {
    let mut found = machine_rules::findings(&examined.host, &examined.conditions);
    for target in &examined.targets {
        found.extend(target_rules::findings(target));
        found.extend(device_rules::findings(&target.info, &examined.conditions));
    }
    found.extend(examined.leftovers.iter().map(leftover_rules::finding));
    let mut each: Vec<Finding> = Vec::new();
    for finding in found {
        // Two targets may have one device.
        if !each.contains(&finding) {
            each.push(finding);
        }
    }
    each.sort_by_key(|finding| finding.severity);
    each
}

/// A finding without a remedy.
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
    /// In words.
    fn remedy(self, words: impl Into<String>) -> Self;
    /// As a command.
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
