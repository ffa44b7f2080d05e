//! Reports from outside: the accepted inputs, and the errors of others.

use crate::common::{Scratch, error};
use std::fs;
use std::process::Stdio;

/// Returns the document in a page.
fn document(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"results\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

fn places(page: &str) -> Vec<String> {
    let studies = document(page)["studies"].clone();
    let target = |study: &serde_json::Value| study["target"].as_str().unwrap().to_owned();
    studies.as_array().unwrap().iter().map(target).collect()
}

#[test]
fn report_accepts_id_run_or_label() {
    let scratch = Scratch::new("report-stored");
    for (device, label) in [("sim:hdd", "disk=old"), ("sim:sata-ssd", "disk=new")] {
        scratch.done(&["probe", device, "--quick", "--label", label]);
    }
    let old = scratch.done(&["report", "disk=old"]);
    assert_eq!(places(&old), ["sim:hdd"]);
    let both = scratch.done(&["report", "disk=old", "disk=new"]);
    assert_eq!(places(&both), ["sim:hdd", "sim:sata-ssd"]);
    let listed = scratch.done(&["list", "--format", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let text = listed.to_string();
    let (_, id) = text.split_once("\"id\":\"").unwrap();
    let (id, _) = id.split_once('"').unwrap();
    assert_eq!(places(&scratch.done(&["report", id])).len(), 1);
    // A single run of a study has no findings.
    let one = document(&scratch.done(&["report", &format!("{id}.random_read")]));
    assert_eq!(one["runs"].as_array().unwrap().len(), 1);
    assert!(one["studies"].as_array().unwrap().is_empty());
}

#[test]
fn report_reads_piped_probe() {
    let scratch = Scratch::new("report-piped");
    let probe = scratch.done(&[
        "probe",
        "sim:hdd",
        "--quick",
        "--no-save",
        "--format",
        "json",
    ]);
    fs::write(scratch.0.join("probe.json"), &probe).unwrap();
    let output = scratch
        .command(&[
            "report",
            "-",
            "--output",
            "report.html",
            "--title",
            "A disk",
        ])
        .stdin(Stdio::from(
            fs::File::open(scratch.0.join("probe.json")).unwrap(),
        ))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", error(&output));
    assert!(output.stdout.is_empty());
    let piped = fs::read_to_string(scratch.0.join("report.html")).unwrap();
    assert_eq!(document(&piped)["title"], "A disk");
    let named = scratch.done(&["report", "probe.json", "--title", "A disk"]);
    assert_eq!(places(&named), places(&piped));
}

#[test]
fn report_of_invalid_input_exits_with_status_2() {
    let scratch = Scratch::new("report-wrong");
    fs::write(scratch.0.join("text"), "hello").unwrap();
    for (words, expected) in [
        (
            ["report", "nothing", "-o", "r.html"],
            "is not a file, a label or the ID",
        ),
        (["report", "text", "-o", "r.html"], "text: "),
        (
            ["report", "text", "--expect", "no-such-product"],
            "no limits for `no-such-product` are known",
        ),
    ] {
        let output = scratch.run(&words);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{words:?}: {}",
            error(&output)
        );
        assert!(error(&output).contains(expected), "{}", error(&output));
        assert!(output.stdout.is_empty() && !scratch.0.join("r.html").exists());
    }
}

#[test]
fn report_draws_stored_and_exported_sweeps_and_loads() {
    let scratch = Scratch::new("report-grid");
    let device = "sim:read_us=200,parallel=4";
    let sweep = "--rw randread --bs 4k,16k --iodepth 1,4 --exhaustive --runtime 1";
    let words: Vec<&str> = ["sweep", device]
        .into_iter()
        .chain(sweep.split(' '))
        .collect();
    scratch.done(&words);
    let load = ["load", device, "--rates", "1000,22000", "--runtime", "1"];
    scratch.done(&load);
    let ids: Vec<String> = scratch
        .listed()
        .iter()
        .map(|line| line[..10].to_owned())
        .collect();
    let stored = document(&scratch.done(&["report", &ids[0], &ids[1]]));
    let drawn = &stored["sweeps"][0];
    assert_eq!(
        drawn["axes"].as_array().unwrap().last().unwrap()["name"],
        "iodepth"
    );
    assert_eq!(drawn["curves"].as_array().unwrap().len(), 2);
    assert_eq!(drawn["curves"][0]["cells"][1]["basis"], "measured");
    let rate = drawn["curves"][0]["cells"][1]["iops"]["mean"]
        .as_f64()
        .unwrap();
    assert!((rate / 20_000.0 - 1.0).abs() < 0.01, "{rate}");
    let kept_up = |document: &serde_json::Value| {
        let points = document["loads"][0]["points"].as_array().unwrap().clone();
        points
            .iter()
            .map(|point| point["state"] == "sustained")
            .collect::<Vec<_>>()
    };
    assert_eq!(kept_up(&stored), [true, false]);
    // Runs of a grid are drawn as a whole, not as rows of the table of figures.
    let runs = stored["runs"].as_array().unwrap();
    assert!(runs.len() >= 6 && runs.iter().all(|run| run["of_grid"] == true));
    // The documents alone are results too, although they lack the runs.
    for (number, id) in ids.iter().enumerate() {
        let path = format!("{number}.json");
        scratch.done(&["export", id, "--format", "json", "-o", &path]);
        assert!(
            scratch
                .done(&["import", &path, "--store", "other.db"])
                .contains(device)
        );
    }
    let filed = document(&scratch.done(&["report", "0.json", "1.json"]));
    assert_eq!(filed["sweeps"][0]["curves"], drawn["curves"]);
    assert_eq!(kept_up(&filed), [true, false]);
    assert_eq!(
        scratch
            .run(&["import", "0.json", "--store", "other.db"])
            .status
            .code(),
        Some(0)
    );
}
