//! For programs. docs/limits.md describes the members.

use crate::failure::Failure;
use iosonde_study::limits::{Listed, Promise};
use serde::Serialize;

/// Version of these documents; counts up when a member changes its meaning.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    kind: &'static str,
    program: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    promise: Option<&'a Promise>,
    #[serde(skip_serializing_if = "Option::is_none")]
    products: Option<&'a [Listed]>,
}

pub(super) fn promise(promise: &Promise) -> Result<String, Failure> {
    document("limits", Some(promise), None)
}

pub(super) fn list(products: &[Listed]) -> Result<String, Failure> {
    document("limits-list", None, Some(products))
}

fn document(
    kind: &'static str,
    promise: Option<&Promise>,
    products: Option<&[Listed]>,
) -> Result<String, Failure> {
    let document = Document {
        format: FORMAT,
        kind,
        program: concat!("iosonde ", env!("CARGO_PKG_VERSION")),
        promise,
        products,
    };
    let mut text = serde_json::to_string_pretty(&document).map_err(anyhow::Error::from)?;
    text.push('\n');
    Ok(text)
}
