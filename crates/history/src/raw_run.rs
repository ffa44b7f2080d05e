//! [`RawRun`]: a row of the table `run`, before its documents are unpacked.

use super::StoreError;
use super::blob;
use super::error::unreadable;
use super::record::{RunDocument, RunRecord};
use iosonde_result::compare::ResultPart;
use iosonde_result::document::check_workers;
use iosonde_result::run::RunResult;
use rusqlite::Row;

/// A row of the table `run`.
pub(super) struct RawRun {
    number: u32,
    name: String,
    started_at_ms: i64,
    elapsed_ns: i64,
    format: String,
    document: Vec<u8>,
    series: Option<Vec<u8>>,
}

impl RawRun {
    /// The number within the study, from 1.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Reads the columns `number, name, started_at_ms, elapsed_ns, format, document, series`.
    pub(super) fn from_row(row: &Row<'_>) -> rusqlite::Result<RawRun> {
        Ok(RawRun {
            number: row.get(0)?,
            name: row.get(1)?,
            started_at_ms: row.get(2)?,
            elapsed_ns: row.get(3)?,
            format: row.get(4)?,
            document: row.get(5)?,
            series: row.get(6)?,
        })
    }

    pub(super) fn unpacked(
        self,
        study: &str,
        parts: Vec<ResultPart>,
    ) -> Result<(u32, RunRecord), StoreError> {
        let what = format!("{study}.{}", self.number);
        let damaged = |error: serde_json::Error| unreadable(&what, &error);
        let document = match self.format.as_str() {
            "run-result" => {
                let mut result: RunResult = blob::unpacked(&self.document).map_err(damaged)?;
                check_workers(&result).map_err(damaged)?;
                if let Some(series) = &self.series {
                    result.intervals = blob::unpacked(series).map_err(damaged)?;
                }
                RunDocument::Run(Box::new(result))
            }
            "fio-json" => RunDocument::Fio(blob::unpacked(&self.document).map_err(damaged)?),
            other => return Err(unreadable(&what, &format!("unknown format {other}"))),
        };
        let run = RunRecord {
            name: self.name,
            started_at_ms: self.started_at_ms as u64,
            elapsed_ns: self.elapsed_ns as u64,
            document,
            parts,
        };
        Ok((self.number, run))
    }
}
