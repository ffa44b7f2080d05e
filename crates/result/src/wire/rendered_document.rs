//! The result of a command that a pod of a rendered manifest runs by itself.

use super::{LOG_END_MARK, json_line, lines_before_end_mark};
use iosonde_job::read_json;
use serde::{Deserialize, Serialize};

/// The JSON document of a command, and how the command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderedDocument {
    /// Start of the command in milliseconds since the Unix epoch, by the clock of its node.
    pub started_at_ms: u64,
    /// Exit status of the command.
    pub status: u8,
    /// Error of the command, if the status is not 0.
    pub error: Option<String>,
    /// Whether a signal ended the command early.
    pub is_cut: bool,
    /// The document, as the command writes it with `--format json`.
    pub document: String,
}

impl RenderedDocument {
    /// Returns the last lines that the pod writes: the document and the end mark.
    #[must_use]
    pub fn log_lines(&self) -> String {
        format!("{}{LOG_END_MARK}\n", json_line(self))
    }

    /// Returns the document from the log of a pod. `None` if it is missing or truncated, or if the
    /// pod ran a fio job.
    #[must_use]
    pub fn from_log(log: &str) -> Option<RenderedDocument> {
        read_json(lines_before_end_mark(log).next()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_error::RunError;
    use crate::wire::{read_outcome, render_outcome};

    #[test]
    fn document_is_read_from_the_end_of_a_log() {
        let written = RenderedDocument {
            started_at_ms: 1_700_000_000_000,
            status: 7,
            error: Some("broken\nagain".to_owned()),
            is_cut: false,
            document: "{\n  \"kind\": \"probe\"\n}\n".to_owned(),
        };
        let log = format!("progress\n{}{LOG_END_MARK}\n", written.log_lines());
        assert_eq!(RenderedDocument::from_log(&log), Some(written.clone()));
        assert_eq!(read_outcome(&log), None, "it is no result of a fio job");
        let lines = written.log_lines();
        let (truncated, _) = lines.split_once(LOG_END_MARK).unwrap();
        assert_eq!(RenderedDocument::from_log(truncated), None);
    }

    #[test]
    fn outcome_of_a_fio_job_is_no_document() {
        let log = render_outcome(Err(RunError::Interrupted));
        assert_eq!(RenderedDocument::from_log(&log), None);
    }
}
