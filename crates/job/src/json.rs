//! Reads values from JSON with one reader.
//!
//! serde generates the code that reads a type once per reader: for text, for bytes, and for
//! [`Value`]. All crates call these functions, or `serde_json::from_slice` for bytes, so a program
//! contains that code once per type.

use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

/// Reads a value from the text of a JSON document.
///
/// # Errors
/// If the text is not JSON or does not describe a `T`. The error names line and column.
pub fn read_json<T: DeserializeOwned>(text: impl AsRef<[u8]>) -> serde_json::Result<T> {
    serde_json::from_slice(text.as_ref())
}

/// Reads a value from a parsed document, through its text. Each number keeps its value.
///
/// # Errors
/// If the document does not describe a `T`. The error has no line and column.
pub fn read_json_value<T: DeserializeOwned>(value: &Value) -> serde_json::Result<T> {
    read_json(compact_text(value)?).map_err(json_error_without_position)
}

/// Not generic, so that it is compiled once.
fn compact_text(value: &Value) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(value)
}

/// Removes line and column of a text that the user has not written.
pub fn json_error_without_position(error: serde_json::Error) -> serde_json::Error {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&position) {
        Some(problem) => serde_json::Error::custom(problem),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::{read_json, read_json_value};
    use crate::plan::{Job, Plan};
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    #[test]
    fn text_bytes_and_parsed_document_give_equal_values() {
        let mut plan = Plan::default();
        plan.jobs.push(Job::new("ä \"quoted\"\n"));
        let text = serde_json::to_string(&plan).unwrap();
        let value = serde_json::to_value(&plan).unwrap();
        assert_eq!(read_json::<Plan>(&text).unwrap(), plan);
        assert_eq!(read_json::<Plan>(text.as_bytes()).unwrap(), plan);
        assert_eq!(read_json_value::<Plan>(&value).unwrap(), plan);
    }

    #[test]
    fn errors_are_those_of_serde_json_for_text() {
        for text in [
            "{\n \"a\": true}",
            "{\"a\": 1,\n",
            "[1]",
            "",
            "{\"a\": 1} 2",
        ] {
            let expected = serde_json::from_str::<BTreeMap<String, u8>>(text).unwrap_err();
            let found = read_json::<BTreeMap<String, u8>>(text).unwrap_err();
            assert_eq!(found.to_string(), expected.to_string());
        }
        let error = read_json_value::<u8>(&json!("x")).unwrap_err();
        let expected = serde_json::from_value::<u8>(json!("x")).unwrap_err();
        assert_eq!(error.to_string(), expected.to_string());
        assert!(read_json::<String>(b"\"\xff\"").is_err(), "not UTF-8");
    }

    #[test]
    fn integers_beyond_float_precision_keep_their_value() {
        for number in [u64::MAX, (1 << 53) + 1] {
            assert_eq!(read_json_value::<u64>(&json!(number)).unwrap(), number);
        }
        assert_eq!(read_json_value::<i64>(&json!(i64::MIN)).unwrap(), i64::MIN);
        let value = json!([null, false, -0.0, {"b": 1, "a": [2.5]}]);
        assert_eq!(read_json_value::<Value>(&value).unwrap(), value);
    }

    proptest! {
        #[test]
        fn floats_keep_their_value(number in any::<f64>()) {
            prop_assume!(number.is_finite());
            let read: f64 = read_json_value(&json!(number)).unwrap();
            prop_assert_eq!(read.to_bits(), number.to_bits());
        }
    }
}
