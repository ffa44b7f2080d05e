//! The output of fio for a result, in all formats that the user requests.

use crate::failure::CommandError;
use iosonde_result::fio::{Formats, write_so_far};
use iosonde_result::run::RunResult;

/// The result in all requested formats.
pub(crate) fn document(result: &RunResult, formats: &Formats) -> Result<Vec<u8>, CommandError> {
    document_so_far(result, formats, Some(0))
}

/// As [`document`], during the run. `left_ns`: the remaining time, if known.
pub(crate) fn document_so_far(
    result: &RunResult,
    formats: &Formats,
    left_ns: Option<u64>,
) -> Result<Vec<u8>, CommandError> {
    let mut document = Vec::new();
    write_so_far(&mut document, result, formats, left_ns).map_err(anyhow::Error::from)?;
    if !document.ends_with(b"\n") {
        document.push(b'\n');
    }
    Ok(document)
}
