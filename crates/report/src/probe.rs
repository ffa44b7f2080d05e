//! Report of a probe, in each format.

mod conditions;
pub mod device;
mod json;
pub mod limits;
mod markdown;
pub mod maximum_depth;
mod number_ranges;
mod probe_csv;
pub mod repeated;
pub mod row;
pub mod short_report;
pub(crate) mod side_by_side;
pub mod table;

use crate::format::Format;
use iosonde_study::probe::ProbeResult;

/// Returns the output after all targets are probed. Tables of single targets are printed earlier.
pub fn remaining_output(results: &[ProbeResult], format: Format) -> serde_json::Result<String> {
    match format {
        Format::Table if results.len() > 1 => Ok(side_by_side::table(results)),
        Format::Table => Ok(String::new()),
        Format::Json => json::probe_json(results),
        Format::FioJson => json::probe_fio_json(results),
        Format::Csv => Ok(probe_csv::probe_csv_text(results)),
        Format::Markdown => Ok(markdown::probe_markdown(results)),
    }
}

#[cfg(test)]
pub(crate) mod simulated;
