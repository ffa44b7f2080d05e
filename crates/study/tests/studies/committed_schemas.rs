//! The committed JSON Schemas of probes, sweeps, SNIA performance tests, life cycles and data
//! services.

use iosonde_study::{csi, lifecycle, probe, pts, sweep};
use serde_json::Value;

/// `UPDATE_SCHEMA=1 cargo test -p iosonde-study` rewrites the file.
fn assert_committed(name: &str, schema: &Value) {
    let path = format!("{}/../../docs/schema/{name}", env!("CARGO_MANIFEST_DIR"));
    let current = serde_json::to_string_pretty(schema).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == current,
        "docs/schema/{name} is out of date: run UPDATE_SCHEMA=1 cargo test -p iosonde-study"
    );
}

#[test]
fn probe_schema_is_current() {
    assert_committed("probe-result.json", &probe::schema());
}

#[test]
fn repetitions_schema_is_current() {
    assert_committed("probe-repetitions.json", &probe::repetitions::schema());
}

#[test]
fn pts_schema_is_current() {
    assert_committed("pts.json", &pts::schema());
}

#[test]
fn lifecycle_schema_is_current() {
    assert_committed("lifecycle.json", &lifecycle::schema());
}

#[test]
fn csi_schema_is_current() {
    assert_committed("csi.json", &csi::schema());
}

#[test]
fn sweep_schema_is_current() {
    assert_committed("sweep.json", &sweep::schema());
}
