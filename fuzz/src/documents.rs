//! Files and messages: suites, limits, results, and the protocol between client and agent.

use std::collections::BTreeMap;
use std::fmt::Debug;

use iosonde_limits::Limits;
use iosonde_result::document;
use iosonde_result::fio::import::import;
use iosonde_result::wire::{AgentMessage, AgentRequest, json_line};
use iosonde_suite::suite;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A bound above the number of runs of any suite in the corpus.
const MOST_RUNS: usize = 10_000;

/// Reads a suite in TOML.
pub fn suite_toml(data: &[u8]) {
    read_suite("suite.toml", data);
}

/// Reads a suite in YAML.
pub fn suite_yaml(data: &[u8]) {
    read_suite("suite.yaml", data);
}

/// Checks that the result is the same each time, or that every error can be rendered.
fn read_suite(name: &str, data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let env = crate::world().file(name, &text);
    let limits = Limits::published();
    let read = || suite(name, &text, &BTreeMap::new(), limits, MOST_RUNS, &env);
    match (read(), read()) {
        (Ok(first), Ok(again)) => assert_eq!(format!("{first:?}"), format!("{again:?}")),
        (Err(diagnostics), Err(_)) => {
            assert!(diagnostics.has_errors(), "refused without an error");
            crate::readable(&diagnostics);
        }
        _ => panic!("read once only"),
    }
}

/// Reads a limits file, and checks that an error has a message.
pub fn limits(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(error) = Limits::published().with_file("limits.toml", &text) {
        assert!(!error.to_string().is_empty());
    }
}

/// Imports fio's JSON, and checks that an error has a message.
pub fn fio_json(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match import(&text) {
        Ok(document) => assert!(document.json.is_object()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Reads a result of iosonde, writes it, and checks that the text reads as the same result.
pub fn run_result(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match document::read_run_result(&text) {
        Ok(result) => {
            let written = serde_json::to_string(&result).expect("a result has a text");
            let again = document::read_run_result(&written).expect("what was written is read");
            assert_eq!(result, again);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Reads a line between client and agent, in both directions.
pub fn wire(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    comes_back::<AgentMessage>(&text);
    comes_back::<AgentRequest>(&text);
}

fn comes_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(text: &str) {
    let Ok(message) = serde_json::from_str::<T>(text) else {
        return;
    };
    let written = json_line(&message);
    assert_eq!(written.find('\n'), Some(written.len() - 1), "one line");
    let again = serde_json::from_str::<T>(&written).expect("what was written is read");
    assert_eq!(message, again);
}
