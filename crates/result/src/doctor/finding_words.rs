//! The identifier and the words of one finding.

/// The identifier and the words of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FindingWords {
    pub(super) id: &'static str,
    pub(super) evidence: String,
    pub(super) effect: String,
    pub(super) remedy: String,
    pub(super) command: Option<String>,
}

impl FindingWords {
    /// Creates the words of a finding without a remedy.
    pub(super) fn new(
        id: &'static str,
        evidence: impl Into<String>,
        effect: impl Into<String>,
    ) -> FindingWords {
        FindingWords {
            id,
            evidence: evidence.into(),
            effect: effect.into(),
            remedy: String::new(),
            command: None,
        }
    }

    pub(super) fn remedy(mut self, words: impl Into<String>) -> FindingWords {
        self.remedy = words.into();
        self
    }

    /// Adds a command that is the remedy.
    pub(super) fn command(mut self, line: impl Into<String>) -> FindingWords {
        self.command = Some(line.into());
        self
    }
}
