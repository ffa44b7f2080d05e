//! Facts that results hold, as keys of lists, comparisons, reports and pivot tables, and histories
//! that several machines have contributed to.

use crate::common::{JOB, Scratch, error, out};
use serde_json::{Value, json};
use std::fs::{self, File};

/// Machines with their systems: host name, `ID` and `VERSION_ID` of os-release, kernel.
const MACHINES: [[&str; 4]; 3] = [
    ["vm-1", "debian", "8", "4.7.0-0.bpo.1-amd64"],
    ["vm-2", "debian", "9", "4.9.0-19-amd64"],
    ["vm-3", "centos", "7", "3.10.0-327.36.2.el7.x86_64"],
];

/// Imports the result of one simulated job as if each machine had measured it.
fn import_from_machines(scratch: &Scratch) {
    scratch.done(&[&["--store", "base.db"][..], &JOB[..]].concat());
    let text = scratch.done(&["export", "latest", "--store", "base.db"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    for (number, [hostname, os_id, os_version, kernel]) in MACHINES.into_iter().enumerate() {
        let mut of_machine = document.clone();
        of_machine["started_at_ms"] = json!(1_476_000_000_000_u64 + number as u64);
        let host = &mut of_machine["host"];
        host["hostname"] = json!(hostname);
        host["os_id"] = json!(os_id);
        host["os_version"] = json!(os_version);
        host["kernel"] = json!(kernel);
        let name = format!("{hostname}.json");
        scratch.file(&name, &of_machine.to_string());
        scratch.done(&["import", &name]);
    }
}

/// The machines of listed results.
fn machines(scratch: &Scratch, conditions: &[&str]) -> Vec<String> {
    let words = [&["list", "--format", "json"][..], conditions].concat();
    let list: Value = serde_json::from_str(&scratch.done(&words)).unwrap();
    let results = list["results"].as_array().unwrap().iter();
    let machine = |result: &Value| result["machine"].as_str().unwrap().to_owned();
    results.map(machine).collect()
}

#[test]
fn facts_select_results_like_given_labels() {
    let scratch = Scratch::new("facts-select");
    import_from_machines(&scratch);
    assert_eq!(machines(&scratch, &["os=debian"]), ["vm-1", "vm-2"]);
    assert_eq!(machines(&scratch, &["kernel=3.10*"]), ["vm-3"]);
    let both = ["os=debian", "--label", "kernel=4.9*"];
    assert_eq!(machines(&scratch, &both), ["vm-2"]);
    // A given label wins over a fact.
    let first = [
        "import",
        "vm-1.json",
        "--store",
        "labelled.db",
        "--label",
        "os=own",
    ];
    scratch.done(&first);
    let listed = |condition: &str| machines(&scratch, &[condition, "--store", "labelled.db"]);
    assert_eq!(listed("os=own"), ["vm-1"]);
    assert_eq!(listed("os=debian"), [""; 0]);
    let compared = scratch.done(&["compare", "os=debian", "os=centos"]);
    assert!(
        compared.contains("os=debian") && compared.contains("os=centos"),
        "{compared}"
    );
    scratch.done(&["report", "kernel=4.*", "-o", "report.html"]);
    assert!(scratch.path("report.html").exists());
    let missing = scratch.run(&["list", "kernl=4*"]);
    assert!(missing.status.success());
    assert!(
        error(&missing).contains("did you mean `kernel`? The keys are "),
        "{missing:?}"
    );
}

#[test]
fn pivot_tabulates_results_by_facts() {
    let scratch = Scratch::new("facts-pivot");
    import_from_machines(&scratch);
    let pivot = |axes: &str, more: &[&str]| {
        let words = ["show", "--pivot", axes, "--value", "j.iops"];
        scratch.run(&[&words[..], more].concat())
    };
    let csv = out(&pivot("kernel x os", &["--format", "csv"]));
    let pairs: Vec<&str> = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(1).unwrap())
        .collect();
    assert_eq!(pairs, ["centos 7", "debian 8", "debian 9"], "{csv}");
    let page = pivot("os x node", &["-o", "pivot.html"]);
    assert!(page.status.success(), "{page:?}");
    assert!(
        fs::read_to_string(scratch.path("pivot.html"))
            .unwrap()
            .contains("centos 7")
    );
    let unknown = pivot("kernl x os", &[]);
    assert_eq!(unknown.status.code(), Some(2));
    let text = error(&unknown);
    assert!(
        text.contains("--pivot: no result has the key `kernl`"),
        "{text}"
    );
    assert!(
        text.contains("kernel, kind, machine, node, os, target"),
        "{text}"
    );
}

#[test]
fn history_of_another_machine_is_imported_whole() {
    let scratch = Scratch::new("facts-history");
    import_from_machines(&scratch);
    scratch.done(&["export", "--history", "-o", "theirs.db"]);
    let words = [
        "import",
        "theirs.db",
        "--store",
        "all.db",
        "--label",
        "zone=a",
    ];
    assert_eq!(scratch.done(&words).lines().count(), MACHINES.len());
    let known = scratch.done(&words);
    assert_eq!(known, "theirs.db: 3 results already in the history\n");
    let listed = machines(&scratch, &["zone=a", "os=centos", "--store", "all.db"]);
    assert_eq!(listed, ["vm-3"]);
    // The same through a pipe, as from `ssh`.
    let output = scratch
        .command(&["import", "-", "--store", "piped.db"])
        .stdin(File::open(scratch.path("theirs.db")).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        machines(&scratch, &["--store", "piped.db"]).len(),
        MACHINES.len()
    );
}

#[test]
fn unusable_histories_are_not_imported() {
    let scratch = Scratch::new("facts-unusable");
    import_from_machines(&scratch);
    scratch.file("broken.db", "SQLite format 3\0 and nothing else");
    let own = scratch.store();
    for (words, expected) in [
        (
            ["import", own.to_str().unwrap()],
            "this file is the history itself",
        ),
        (["import", "broken.db"], "broken.db"),
    ] {
        let output = scratch.run(&words);
        assert!(!output.status.success(), "{words:?}");
        assert!(
            error(&output).contains(expected),
            "{words:?}: {}",
            error(&output)
        );
    }
    let history = scratch.run(&["compare", "base.db", "latest"]);
    assert!(error(&history).contains("iosonde import"), "{history:?}");
    let onto_itself = scratch.run(&["export", "--history", "-o", own.to_str().unwrap()]);
    assert_eq!(onto_itself.status.code(), Some(2), "{onto_itself:?}");
    assert_eq!(machines(&scratch, &[]).len(), MACHINES.len());
}
