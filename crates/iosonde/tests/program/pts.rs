//! SNIA tests from outside.

use crate::common::{Scratch, error};
use serde_json::Value;
use std::fs;

/// A device in steady state from the first round.
const DEVICE: &str = "sim:seed=1,capacity=64m,read_us=2ms,write_us=1ms,parallel=4,link_bw=40m";

fn measured(scratch: &Scratch, words: &[&str]) -> Value {
    let common = [
        "pts",
        "throughput",
        DEVICE,
        "--size",
        "64m",
        "--time-scale",
        "0.01",
        "--purge",
        "discard",
        "--format",
        "json",
    ];
    let text = scratch.done(&[&common, words].concat());
    fs::write(scratch.path("pts.json"), &text).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn pts_without_test_lists_the_tests() {
    let scratch = Scratch::new("pts-arguments");
    let said = error(&scratch.run(&["pts"]));
    assert!(
        said.contains("<iops|throughput|latency|write-saturation>"),
        "{said}"
    );
}

#[test]
fn pts_preset_sets_iodepth_numjobs_and_series() {
    let scratch = Scratch::new("pts-presets");
    let of = |document: &Value| {
        let pts = &document["pts"];
        let number = |name: &str| pts["options"][name].as_u64().unwrap();
        let series = pts["series"].as_array().unwrap().len();
        (number("iodepth"), number("numjobs"), series)
    };
    assert_eq!(of(&measured(&scratch, &["--no-save"])), (32, 4, 2));
    let client = ["--preset", "client", "--no-save"];
    assert_eq!(of(&measured(&scratch, &client)), (16, 2, 1));
    let chosen = ["--preset", "client", "--iodepth", "8", "--no-save"];
    assert_eq!(of(&measured(&scratch, &chosen)), (8, 2, 1));
}

#[test]
fn pts_result_is_shown_exported_imported_and_reported() {
    let scratch = Scratch::new("pts-kept");
    let document = measured(&scratch, &["--preset", "client"]);
    let shown = scratch.done(&["show", "latest"]);
    for words in [
        "throughput test after SNIA PTS (client)",
        "Steady state in rounds",
    ] {
        assert!(shown.contains(words), "{shown}");
    }
    let exported = scratch.done(&["export", "latest", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&exported).unwrap(), document);
    let csv = scratch.done(&["export", "latest", "--format", "csv"]);
    assert!(csv.starts_with("series,round,in_window,"), "{csv}");
    let markdown = scratch.done(&["export", "latest", "--format", "markdown"]);
    assert!(
        markdown.starts_with("## SNIA PTS, throughput"),
        "{markdown}"
    );
    let output = scratch.run(&["export", "latest", "--format", "fio-json"]);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));

    // The other history has no runs, only the document.
    scratch.done(&["import", "pts.json", "--store", "other.db"]);
    let shown = scratch.done(&["show", "latest", "--store", "other.db"]);
    assert!(shown.contains("Steady state in rounds"), "{shown}");
    scratch.done(&["report", "pts.json", "--output", "report.html"]);
    let report = fs::read_to_string(scratch.path("report.html")).unwrap();
    for words in [
        "throughput test after SNIA PTS (client)",
        r#""name":"round""#,
    ] {
        assert!(report.contains(words), "the report lacks {words}");
    }
}
