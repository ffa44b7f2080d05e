//! What would spoil a measurement here, and how to put it right: advice from an examined machine. Pure.
//!
//! Each rule looks at the facts of an [`Examination`] and finds nothing where a fact is not known. The identifiers of
//! findings are stable; `docs/doctor.md` lists them.

mod device;
mod left;
mod machine;
mod target;
#[cfg(test)]
mod tests;

use iosonde_result::doctor::{Examination, Finding, Severity};

/// All findings, the worst first, each once.
pub fn findings(examined: &Examination) -> Vec<Finding> {
    let mut found = machine::findings(&examined.host, &examined.conditions);
    for target in &examined.targets {
        found.extend(target::findings(target));
        found.extend(device::findings(&target.info, &examined.conditions));
    }
    found.extend(examined.leftovers.iter().map(left::finding));
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
