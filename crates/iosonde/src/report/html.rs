//! The report as one HTML file that needs nothing else: the page that `web/` is built into, with the results put in.
//!
//! The page has a place for one JSON document, [`document::Report`], and draws everything from it. `web/dist/report.html`
//! is committed, so that building this program needs no Node; `web/check.sh` proves that it matches its source.

mod build;
mod curve;
mod document;
mod figures;
mod foreign;
mod knees;
mod load;
mod machine;
mod pivot;
mod promised;
mod pts;
mod series;
mod spread;
mod sweep;

pub(crate) use build::Builder;

use crate::failure::Failure;
use document::Report;

const PAGE: &str = include_str!("../../../../web/dist/report.html");

/// Where the document goes.
const PLACE: &str = "\"the results are put here\"";

/// The file.
fn page(report: &Report) -> Result<String, Failure> {
    let json = serde_json::to_string(report).map_err(anyhow::Error::from)?;
    let (before, after) = PAGE
        .split_once(PLACE)
        .ok_or_else(|| anyhow::anyhow!("web/dist/report.html has no place for the results"))?;
    // Inside a script element only `<` can end it or begin a comment.
    Ok([before, &json.replace('<', "\\u003c"), after].concat())
}

#[cfg(test)]
mod tests;
