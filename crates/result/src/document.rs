//! A [`RunResult`] as a JSON document: its schema, and reading with a check of the format version.

#[cfg(test)]
mod document_tests;

use crate::run::{FORMAT, RunResult};
use iosonde_job::read_json;
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Value;

/// Reason why a document is not a readable result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The document is not JSON, or has no `format`.
    #[error("not a result of iosonde: {0}")]
    NotAResult(#[source] serde_json::Error),
    /// The format is newer than this program.
    #[error("the result has format {found}; this version of iosonde reads formats up to {FORMAT}")]
    Newer {
        /// Format of the document.
        found: u32,
    },
    /// The format was never used.
    #[error("the result has the unknown format {found}; formats begin at 1")]
    Unknown {
        /// Format of the document.
        found: u32,
    },
    /// The document does not follow its format.
    #[error("the result is damaged: {0}")]
    Damaged(#[source] serde_json::Error),
}

/// Reads a result of any known format.
pub fn read_run_result(json: &str) -> Result<RunResult, ReadError> {
    #[derive(Deserialize)]
    struct FormatHeader {
        format: u32,
    }
    let FormatHeader { format: found } = read_json(json).map_err(ReadError::NotAResult)?;
    match found {
        0 => Err(ReadError::Unknown { found }),
        1..=FORMAT => {
            let run: RunResult = read_json(json).map_err(ReadError::Damaged)?;
            check_workers(&run).map_err(ReadError::Damaged)?;
            Ok(run)
        }
        _ => Err(ReadError::Newer { found }),
    }
}

/// Checks that each worker has a job in the plan, as all figures need it.
///
/// # Errors
/// Fails if there is no such job.
pub fn check_workers(run: &RunResult) -> serde_json::Result<()> {
    let of_pods = run.pods.iter().flat_map(|pod| &pod.workers);
    let mut workers = run.workers.iter().chain(&run.neighbours).chain(of_pods);
    let jobs = run.plan.jobs.len();
    match workers.find(|worker| worker.job >= jobs) {
        Some(worker) => Err(serde_json::Error::custom(format!(
            "a worker belongs to job {}, but the numbers of the jobs are below {jobs}",
            worker.job
        ))),
        None => Ok(()),
    }
}

/// Returns the JSON Schema (2020-12) of the documents, as in `docs/schema/run-result.json`.
pub fn schema() -> Value {
    schemars::schema_for!(RunResult).to_value()
}
