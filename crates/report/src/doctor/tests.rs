//! Reports on fixed machines.

use super::{json, samples, text};
use iosonde_result::doctor;

#[test]
fn doctor_report_of_server_without_problems() {
    insta::assert_snapshot!("server", text(&samples::server()));
}

#[test]
fn doctor_report_of_laptop_with_problems() {
    let text = text(&samples::laptop());
    let commands = |line: &&str| !line.trim_start().starts_with('$');
    for line in text.lines().filter(commands) {
        assert!(line.chars().count() <= 80, "{line:?} is too wide");
    }
    insta::assert_snapshot!("laptop", text);
}

#[test]
fn json_holds_all_and_follows_its_schema() {
    let document = json(&samples::laptop());
    let read: doctor::Examination = serde_json::from_str(&document).unwrap();
    assert_eq!(read, samples::laptop());
    insta::assert_snapshot!("server_json", json(&samples::server()));
}
