//! What is printed of fixed machines.

use super::{json, samples, text};
use iosonde_result::doctor;

#[test]
fn a_machine_on_which_nothing_is_wrong() {
    insta::assert_snapshot!("server", text(&samples::server()));
}

#[test]
fn a_machine_on_which_much_is_wrong() {
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
