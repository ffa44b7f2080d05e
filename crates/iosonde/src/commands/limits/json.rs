//! JSON. docs/limits.md describes the members.

use crate::failure::CommandError;
use iosonde_limits::{Listed, Promise};
use iosonde_report::json_document::json_document;
use serde::Serialize;

#[derive(Serialize)]
struct LimitsContent<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    promise: Option<&'a Promise>,
    #[serde(skip_serializing_if = "Option::is_none")]
    products: Option<&'a [Listed]>,
}

pub(super) fn promise(promise: &Promise) -> Result<String, CommandError> {
    document("limits", Some(promise), None)
}

pub(super) fn products_json(products: &[Listed]) -> Result<String, CommandError> {
    document("limits-list", None, Some(products))
}

fn document(
    kind: &str,
    promise: Option<&Promise>,
    products: Option<&[Listed]>,
) -> Result<String, CommandError> {
    let content = LimitsContent { promise, products };
    Ok(json_document(kind, content).map_err(anyhow::Error::from)?)
}
