//! A [`RunResult`] as a JSON document: its schema, and reading with a check of the format's version.

use crate::run::{FORMAT, RunResult};
use serde::Deserialize;
use serde_json::Value;

/// Why a document is not a result that this program can read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is not JSON, or has no `format`.
    #[error("not a result: {0}")]
    NotAResult(#[source] serde_json::Error),
    /// A newer program wrote it.
    #[error(
        "the result has format {found}, which is newer than {FORMAT}, the newest that this program reads"
    )]
    Newer {
        /// Its format.
        found: u32,
    },
    /// No program wrote such a format.
    #[error("the result has format {found}, which never existed; formats begin at 1")]
    Unknown {
        /// Its format.
        found: u32,
    },
    /// Its format is known, but it does not follow it.
    #[error("the result is damaged: {0}")]
    Damaged(#[source] serde_json::Error),
}

/// Reads a result, whatever program wrote it.
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

/// The JSON Schema (2020-12) of the documents that this program writes. `docs/schema/run-result.json` is its copy.
pub fn schema() -> Value {
    schemars::schema_for!(RunResult).to_value()
}
