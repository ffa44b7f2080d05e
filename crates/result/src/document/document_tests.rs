//! Results as JSON documents: the committed schema, and reading.

use crate::doctor;
use crate::document::{self, ReadError};
use crate::run::{FORMAT, RunResult};
use crate::sample_run;
use iosonde_job::plan::{Job, PerDirection};
use serde_json::json;

fn sample() -> RunResult {
    let directions = PerDirection {
        read: sample_run::direction(1000, 80_000),
        ..PerDirection::default()
    };
    let worker = sample_run::worker(0, 0, directions);
    sample_run::result(vec![Job::new("a")], vec![worker])
}

/// `UPDATE_SCHEMA=1 cargo test -p iosonde-result` writes the files anew.
fn is_current(name: &str, schema: &serde_json::Value) {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema");
    let path = format!("{dir}/{name}.json");
    let current = serde_json::to_string_pretty(schema).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(&path, &current).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(
        committed == current,
        "docs/schema/{name}.json is out of date: run UPDATE_SCHEMA=1 cargo test -p iosonde-result"
    );
}

#[test]
fn committed_schemas_are_current() {
    is_current("run-result", &document::schema());
    is_current("doctor", &doctor::schema());
}

#[test]
fn results_follow_the_schema() {
    let validator = jsonschema::validator_for(&document::schema()).unwrap();
    let mut result = serde_json::to_value(sample()).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&result)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    result["workers"][0]["directions"]["read"]["io_bytes"] = json!("many");
    assert!(!validator.is_valid(&result), "the schema allows anything");
}

#[test]
fn document_round_trips_through_json() {
    let result = sample();
    let text = serde_json::to_string(&result).unwrap();
    assert_eq!(document::read_run_result(&text).unwrap(), result);
}

#[test]
fn read_errors_distinguish_versions_from_damage() {
    let mut value = serde_json::to_value(sample()).unwrap();
    value["format"] = json!(FORMAT + 1);
    value["workers"] = json!("what a newer program thinks of");
    let newer = document::read_run_result(&value.to_string()).unwrap_err();
    assert!(matches!(newer, ReadError::Newer { found } if found == FORMAT + 1));
    value["format"] = json!(FORMAT);
    let damaged = document::read_run_result(&value.to_string()).unwrap_err();
    assert!(matches!(damaged, ReadError::Damaged(_)), "{damaged}");
    value["format"] = json!(0);
    let unknown = document::read_run_result(&value.to_string()).unwrap_err();
    assert!(matches!(unknown, ReadError::Unknown { found: 0 }));
    for text in ["", "{}", "[]", "hello"] {
        let error = document::read_run_result(text).unwrap_err();
        assert!(matches!(error, ReadError::NotAResult(_)), "{text}: {error}");
    }
}
