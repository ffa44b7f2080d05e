//! [`CutShort`]: the error that ended a study early.

use iosonde_result::run_error::RunError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Error of a run without a result that ended a study early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CutShort {
    /// Error message.
    pub message: String,
    /// Suggested action.
    pub remedy: String,
    /// The error as data, for the caller. It is not serialised.
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
    use iosonde_result::run_error::pod_failure::PodFailure;

    #[test]
    fn cut_short_serialises_without_its_cause() {
        let cut = CutShort::from(RunError::Lost(Box::new(PodFailure::from_texts(
            "the pod",
            "its node died",
            "look at the node",
        ))));
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
