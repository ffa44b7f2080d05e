//! The result of a probe, in each format.

mod conditions;
mod csv;
mod device;
mod json;
pub(crate) mod limits;
mod markdown;
pub(crate) mod promise;
pub(crate) mod row;
mod side_by_side;
pub(crate) mod table;

use crate::args::Format;
use crate::failure::Failure;
use iosonde_study::probe::ProbeResult;

/// What is to be printed when all targets have been probed. A table of each has been printed by then.
pub(crate) fn rest(results: &[ProbeResult], format: Format) -> Result<String, Failure> {
    match format {
        Format::Table if results.len() > 1 => Ok(side_by_side::table(results)),
        Format::Table => Ok(String::new()),
        Format::Json => json::own(results),
        Format::FioJson => json::fio(results),
        Format::Csv => Ok(csv::text(results)),
        Format::Markdown => Ok(markdown::text(results)),
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod simulated;
