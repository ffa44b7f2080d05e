//! The members that JSON documents of results have in common.

use serde::Serialize;

/// Name and version of this program, as documents name it.
pub const PROGRAM: &str = concat!("iosonde ", env!("CARGO_PKG_VERSION"));

/// Version of all documents. It is raised when the meaning of a member of one changes.
const FORMAT: u32 = 1;

/// Envelope of a JSON document: `format`, `kind` and `program`, then the members of its content.
#[derive(Serialize)]
struct DocumentEnvelope<'a, T> {
    format: u32,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<&'static str>,
    #[serde(flatten)]
    content: T,
}

/// Returns the document of results that this program measured.
pub fn json_document(kind: &str, content: impl Serialize) -> serde_json::Result<String> {
    json_text(&DocumentEnvelope {
        format: FORMAT,
        kind,
        program: Some(PROGRAM),
        content,
    })
}

/// Returns the document of lists and comparisons, whose results have programs of their own.
pub(crate) fn json_document_without_program(
    kind: &str,
    content: impl Serialize,
) -> serde_json::Result<String> {
    json_text(&DocumentEnvelope {
        format: FORMAT,
        kind,
        program: None,
        content,
    })
}

/// Returns a value as indented JSON that ends with a line feed.
pub fn json_text(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::{PROGRAM, json_document, json_document_without_program};
    use serde::Serialize;

    #[derive(Serialize)]
    struct Content {
        rows: [u32; 2],
    }

    #[test]
    fn envelope_precedes_the_content() {
        let text = json_document("list", Content { rows: [1, 2] }).unwrap();
        let head =
            format!("{{\n  \"format\": 1,\n  \"kind\": \"list\",\n  \"program\": \"{PROGRAM}\",\n");
        assert_eq!(text, head + "  \"rows\": [\n    1,\n    2\n  ]\n}\n");
    }

    #[test]
    fn document_without_program_has_no_such_member() {
        let text = json_document_without_program("list", Content { rows: [1, 2] }).unwrap();
        assert!(!text.contains("program"), "{text}");
        assert!(
            text.starts_with("{\n  \"format\": 1,\n  \"kind\": \"list\",\n  \"rows\""),
            "{text}"
        );
    }
}
