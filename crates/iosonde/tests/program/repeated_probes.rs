//! `iosonde probe --repeat` on simulated devices.

use crate::common::{Scratch, error, out};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// A device with noise, which is fast to simulate.
const DEVICE: &str = "sim:hdd";
const OTHER: &str = "sim:read_us=500,write_us=300,parallel=4,fsync_us=2ms,noise=0.05";

/// The words of a text, without line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The results that `list` prints, the oldest first.
fn listed(scratch: &Scratch) -> Vec<Value> {
    let list = scratch.done(&["list", "--format", "json"]);
    let mut list: Value = serde_json::from_str(&list).unwrap();
    let mut results: Vec<Value> = serde_json::from_value(list["results"].take()).unwrap();
    results.sort_by_key(|result| result["started_at_ms"].as_u64());
    results
}

fn probe_document(scratch: &Scratch, words: &[&str]) -> Value {
    let repeated = ["probe", "--quick", "--repeat", "4", "--format", "json"];
    let text = scratch.done(&[&repeated[..], words].concat());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn repeated_probe_stores_each_run_and_prints_one_table() {
    let scratch = Scratch::new("repeat-table");
    let text = scratch.done(&["probe", "--quick", "--repeat", "4", DEVICE]);
    let found = words(&text);
    assert!(found.contains("mean of 4 runs"), "{text}");
    assert_eq!(text.matches("4k fdatasync").count(), 1, "{text}");
    let results = listed(&scratch);
    assert_eq!(results.len(), 4);
    for result in &results {
        let id = result["id"].as_str().unwrap();
        assert!(found.contains(&id[..6]), "{id}: {text}");
        let together = &result["labels"]["together"];
        assert!(together.is_string() && *together == results[0]["labels"]["together"]);
    }
    let again = scratch.done(&["probe", "--quick", "--repeat", "4", DEVICE]);
    // Outliers have ids, which differ.
    let table = |text: &str| text.split("\nout").next().map(str::to_owned);
    let table = |text: &str| table(text.split("\nresults ").next().unwrap()).unwrap();
    assert_eq!(table(&again), table(&text), "the simulation is repeatable");
}

#[test]
fn repeated_runs_of_simulated_device_differ() {
    let scratch = Scratch::new("repeat-runs");
    let document = probe_document(&scratch, &["--no-save", DEVICE]);
    assert_eq!(document["probes"].as_array().unwrap().len(), 4);
    let repetitions = &document["repetitions"][0];
    assert_eq!(repetitions["planned"], 4);
    assert_eq!(
        repetitions["ids"],
        serde_json::json!([null, null, null, null])
    );
    let workloads = repetitions["workloads"].as_array().unwrap();
    let is_random_read = |workload: &&Value| workload["phase"] == "random_read";
    let workload = workloads.iter().find(is_random_read).unwrap();
    let rates = workload["rates"].as_array().unwrap().iter();
    let rates: BTreeSet<String> = rates.map(|rate| rate["iops"].to_string()).collect();
    assert_eq!(rates.len(), 4, "{workload}");
    let number = |value: &Value| value.as_f64().unwrap();
    let [low, high] = [0, 1].map(|end| number(&workload["interval"][end]));
    assert!(low < number(&workload["mean"]) && number(&workload["mean"]) < high);
}

#[test]
fn repeated_targets_alternate_and_are_compared() {
    let scratch = Scratch::new("repeat-targets");
    let document = probe_document(&scratch, &[DEVICE, OTHER]);
    assert_eq!(document["repetitions"].as_array().unwrap().len(), 2);
    assert_eq!(document["comparisons"].as_array().unwrap().len(), 1);
    assert_eq!(document["comparisons"][0]["rows"][0]["a"]["runs"], 4);
    let results = listed(&scratch);
    assert_eq!(results.len(), 8);
    for round in results.chunks(2) {
        let names: BTreeSet<&str> = round
            .iter()
            .map(|result| result["target"].as_str().unwrap())
            .collect();
        assert_eq!(names, BTreeSet::from([DEVICE, OTHER]));
    }
}

#[test]
fn repeat_refuses_equal_runs_and_numbers_outside_of_range() {
    let scratch = Scratch::new("repeat-refused");
    for refused in [
        "probe --repeat 3 sim:hdd,run=2",
        "probe --repeat 1 sim:hdd",
        "probe --repeat 21 sim:hdd",
        "probe --repeat 2 --render sc://fast",
    ] {
        let output = scratch.run(&refused.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{refused}");
        let text = error(&output);
        assert!(text.contains("--repeat"), "{refused}: {text}");
        assert_eq!(text.matches("\nhelp: ").count(), 1, "{refused}: {text}");
        assert!(out(&output).is_empty());
    }
}

/// A failed run ends the repetition. Its figures are printed.
#[test]
fn failed_run_ends_repetition_with_its_status() {
    let scratch = Scratch::new("repeat-failed");
    let device = "sim:nvme,error_at=300000";
    let text = scratch.text(1, &["probe", "--quick", "--repeat", "4", device]);
    assert!(words(&text).contains("mean of 1 run of 4"), "{text}");
    assert_eq!(listed(&scratch).len(), 1);
}

#[test]
fn interrupted_repetition_prints_runs_so_far() {
    let scratch = Scratch::new("repeat-interrupted");
    let mut command = scratch.command(&["probe", "--repeat", "20", "--quick", DEVICE]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut seen = String::new();
    let mut is_interrupted = false;
    // All lines are read: the program must be able to write them.
    for line in lines {
        seen.push_str(&line.unwrap());
        seen.push('\n');
        if !is_interrupted && words(&seen).contains("run 3 of 20;") {
            is_interrupted = true;
            let id = child.id().to_string();
            let sent = Command::new("kill").args(["-INT", &id]).status().unwrap();
            assert!(sent.success());
        }
    }
    let output = child.wait_with_output().unwrap();
    assert!(is_interrupted, "{seen}");
    assert_eq!(output.status.code(), Some(130), "{seen}");
    let text = words(&out(&output));
    let counts = (2..20).any(|count| text.contains(&format!("mean of {count} runs of 20")));
    assert!(counts, "{text}");
}
