//! A study that an error cut short.

use iosonde_result::session::RunError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The error of a run without a result that ended a study early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CutShort {
    /// What went wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
    /// The error itself, for whoever ran the study: it is not in a document.
    #[serde(skip)]
    #[schemars(skip)]
    pub cause: Option<RunError>,
}

impl From<RunError> for CutShort {
    fn from(error: RunError) -> CutShort {
        CutShort {
            message: error.to_string(),
            remedy: error.remedy(),
            cause: Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_words_alone() {
        let cut = CutShort::from(RunError::Lost {
            what: "the pod".into(),
            cause: "its node died".into(),
            remedy: "look at the node".into(),
        });
        let document = serde_json::to_value(&cut).unwrap();
        let words = serde_json::json!({
            "message": "the pod was lost: its node died",
            "remedy": "look at the node",
        });
        assert_eq!(document, words);
        let read: CutShort = serde_json::from_value(document).unwrap();
        assert_eq!((read.message, read.cause), (cut.message, None));
    }
}
