//! A [`RunResult`] as a JSON document: its schema, and reading with a check of the format version.

use crate::run::{FORMAT, RunResult};
use serde::Deserialize;
use serde_json::Value;

/// Reason why a document is not a readable result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The document is not JSON, or has no `format`.
    #[error("not a result: {0}")]
    NotAResult(#[source] serde_json::Error),
    /// The format is newer than this program.
    #[error(
        "the result has format {found}, which is newer than {FORMAT}, the newest that this program reads"
    )]
    Newer {
        /// Format of the document.
        found: u32,
    },
    /// The format was never used.
    #[error("the result has format {found}, which never existed; formats begin at 1")]
    Unknown {
        /// Format of the document.
        found: u32,
    },
    /// The document does not follow its format.
    #[error("the result is damaged: {0}")]
    Damaged(#[source] serde_json::Error),
}

/// Reads a result of any known format.
pub fn read(json: &str) -> Result<RunResult, ReadError> {
    #[derive(Deserialize)]
    struct Versioned {
        format: u32,
    }
    let Versioned { format: found } = serde_json::from_str(json).map_err(ReadError::NotAResult)?;
    match found {
        0 => Err(ReadError::Unknown { found }),
        1..=FORMAT => serde_json::from_str(json).map_err(ReadError::Damaged),
        _ => Err(ReadError::Newer { found }),
    }
}

/// Returns the JSON Schema (2020-12) of the documents, as in `docs/schema/run-result.json`.
pub fn schema() -> Value {
    schemars::schema_for!(RunResult).to_value()
}
