//! Report as one self-contained HTML file: the page built from `web/` and the results.
//!
//! The page holds one JSON document, `document::PageReport`, and draws it. `web/dist/report.html`
//! is committed, so a build needs no Node. `web/check.sh` proves that it matches its source.

mod build;
mod comparison_text;
pub(crate) mod curve;
pub(crate) mod document;
mod figure_texts;
mod foreign;
mod knees;
mod page_csi;
mod page_figure_texts;
mod page_figures;
mod page_header;
mod page_lifecycle;
mod page_load;
mod page_machine;
mod page_network;
mod page_pivot;
mod page_promises;
mod page_pts;
pub(crate) mod page_quantity;
mod page_rate;
mod page_series;
mod page_spread;
mod page_study;
mod page_suite;
mod page_sweep;
pub(crate) mod page_target;
mod page_text;
mod page_title;
mod page_winner;
mod sentence_signs;
mod slice_groups;
pub(crate) mod subject_names;
mod text_elements;

pub use build::HtmlReportBuilder;

use document::PageReport;
use serde::ser::Error as _;

/// The page without results. It is not compressed: the archive of a release packs it better.
static EMPTY_PAGE: &str = include_str!("../../../web/dist/report.html");

/// Placeholder of the document.
const PLACE: &str = "\"the results are put here\"";

/// Title of the page without results.
const EMPTY_TITLE: &str = "<title>iosonde report</title>";

/// Placeholder of the text for browsers whose scripts are off.
const TEXT_PLACE: &str = "<!--the text is put here-->";

/// Returns the HTML file.
fn html_page(report: &PageReport) -> serde_json::Result<String> {
    let json = serde_json::to_string(report)?;
    let has_no = |what: &str| {
        serde_json::Error::custom(format!("web/dist/report.html has no place for the {what}"))
    };
    let (before, after) = (EMPTY_PAGE.split_once(PLACE)).ok_or_else(|| has_no("results"))?;
    let (head, between) = before
        .split_once(TEXT_PLACE)
        .ok_or_else(|| has_no("text"))?;
    let (start, body) = head
        .split_once(EMPTY_TITLE)
        .ok_or_else(|| has_no("title"))?;
    let title = text_elements::element("title", &report.title);
    let text = page_text::page_text(report);
    // In a script element, only `<` can end the element or start a comment.
    let json = json.replace('<', "\\u003c");
    Ok([start, &title, body, &text, between, &json, after].concat())
}

#[cfg(test)]
mod tests;
