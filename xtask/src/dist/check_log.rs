//! The outcome of a check: the parts that were checked, and those that this machine cannot check.

use std::fmt::{self, Display, Formatter};

/// Reason for which a part was not checked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum UncheckedReason {
    /// A program or library is missing. `remedy` is a command that installs it.
    MissingProgram {
        program: String,
        remedy: &'static str,
    },
    /// The check changes the root directory of a process.
    NeedsRoot,
    /// No selected client is for the architecture of this machine.
    NoNativeClient,
    /// No selected client is static.
    NoStaticClient,
    /// The agents of the build are no longer in the directory of the release.
    NoAgents,
}

/// A part that was not checked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct UncheckedPart {
    pub(crate) name: String,
    pub(crate) reason: UncheckedReason,
}

/// Parts in the order of their checks. Each is printed when it is added.
#[derive(Debug, Default)]
pub(crate) struct CheckLog {
    checked: usize,
    unchecked: Vec<UncheckedPart>,
}

impl CheckLog {
    /// Adds a part that passed its check.
    pub(crate) fn add_checked(&mut self, name: impl Display) {
        println!("checked: {name}");
        self.checked += 1;
    }

    /// Adds a part that was not checked.
    pub(crate) fn add_unchecked(&mut self, name: impl Display, reason: UncheckedReason) {
        let part = UncheckedPart {
            name: name.to_string(),
            reason,
        };
        println!("not checked: {part}");
        self.unchecked.push(part);
    }

    /// Whether every part was checked.
    pub(crate) fn is_complete(&self) -> bool {
        self.unchecked.is_empty()
    }

    /// Returns the counts, and each part that was not checked.
    pub(crate) fn summary(&self) -> String {
        let counts = format!(
            "{} checked, {} not checked\n",
            self.checked,
            self.unchecked.len()
        );
        let parts = self.unchecked.iter().map(|part| format!("  {part}\n"));
        std::iter::once(counts).chain(parts).collect()
    }
}

impl Display for UncheckedPart {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.name, self.reason)
    }
}

impl Display for UncheckedReason {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingProgram { program, remedy } => {
                write!(formatter, "{program} is not installed ({remedy})")
            }
            Self::NeedsRoot => formatter.write_str("the check needs root"),
            Self::NoNativeClient => {
                formatter.write_str("no selected client is for this machine's architecture")
            }
            Self::NoStaticClient => formatter.write_str("no selected client is static"),
            Self::NoAgents => {
                formatter.write_str("target/dist/work has no agents (run `cargo xtask dist`)")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_names_each_unchecked_part_with_its_reason() {
        let mut log = CheckLog::default();
        log.add_checked("a.tar.xz");
        assert!(log.is_complete());
        let reason = UncheckedReason::MissingProgram {
            program: "ruby".to_owned(),
            remedy: "Debian: apt-get install ruby",
        };
        log.add_unchecked("syntax of iosonde.rb", reason);
        log.add_unchecked("a.deb", UncheckedReason::NeedsRoot);
        assert!(!log.is_complete());
        assert_eq!(
            log.summary(),
            "1 checked, 2 not checked\n  \
             syntax of iosonde.rb: ruby is not installed (Debian: apt-get install ruby)\n  \
             a.deb: the check needs root\n"
        );
    }

    #[test]
    fn remaining_reasons_have_a_sentence_each() {
        let reasons = [
            UncheckedReason::NoNativeClient,
            UncheckedReason::NoStaticClient,
            UncheckedReason::NoAgents,
        ];
        assert_eq!(
            reasons.map(|reason| reason.to_string()),
            [
                "no selected client is for this machine's architecture",
                "no selected client is static",
                "target/dist/work has no agents (run `cargo xtask dist`)",
            ]
        );
    }
}
