//! The committed schema of tests after SNIA's specification.

use iosonde_study::pts::schema;

/// `UPDATE_SCHEMA=1 cargo test -p iosonde-study` writes the file anew.
#[test]
fn the_committed_schema_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/pts.json");
    let current = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == current,
        "docs/schema/pts.json is out of date: run UPDATE_SCHEMA=1 cargo test -p iosonde-study"
    );
}
