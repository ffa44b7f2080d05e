//! Measurements beside a neighbour.

use crate::common::{Scratch, error};

/// A device that serves one read at a time: a neighbour with one read in flight doubles latency.
const DEVICE: &str = "sim:read_us=100,parallel=1,read_dist=fixed";

const SUITE: &str = r#"
[[workload]]
name = "reads"
beside = "rw=randread direct=1"
expect = ["reads.p99 <= 150us"]
[workload.options]
rw = "randread"
bs = "4k"
direct = 1
size = "64m"
time_based = 1
runtime = 4
"#;

#[test]
fn suite_judges_alone_and_beside_a_neighbour() {
    let scratch = Scratch::new("neighbour-suite");
    scratch.file("s.toml", SUITE);
    let output = scratch.run(&["run", "s.toml", DEVICE, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let suite = &json["suites"][0];
    let judged = suite["judged"].as_array().unwrap();
    assert_eq!(judged.len(), 2, "{suite}");
    assert_ne!(judged[0]["verdict"], "missed", "{suite}");
    assert_ne!(judged[1]["verdict"], "met", "{suite}");
    let evidence = judged[1]["evidence"].as_str().unwrap();
    assert!(
        evidence.contains(" alone, ") && evidence.contains(" times"),
        "{evidence}"
    );
    let figures = suite["beside"].as_array().unwrap();
    let p99 = figures.iter().find(|figure| figure["measure"] == "lat_p99");
    let ratio = p99.unwrap()["ratio"].as_f64().unwrap();
    assert!((ratio - 2.0).abs() < 0.1, "{ratio}");
    let steps = suite["steps"].as_array().unwrap();
    assert!(steps[0].get("beside").is_none());
    assert_eq!(steps[1]["beside"], "rw=randread direct=1");
    let parts = steps[1]["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 2);
    let has = |index: usize, name: &str, role: &str| {
        assert_eq!(parts[index]["name"], name);
        assert_eq!(parts[index]["role"], role);
    };
    has(0, "reads beside", "beside");
    has(1, "neighbour of reads", "neighbour");
    assert!(steps[0]["parts"][0].get("role").is_none());
}

#[test]
fn option_replaces_the_neighbour_of_a_suite() {
    let scratch = Scratch::new("neighbour-option");
    scratch.file("s.toml", SUITE);
    let words = [
        "run",
        "s.toml",
        DEVICE,
        "--beside",
        "rw=randread bs=8k direct=1",
    ];
    let output = scratch.run(&words);
    let text = String::from_utf8_lossy(&output.stdout);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("beside a neighbour (rw=randread bs=8k direct=1)"),
        "{text}"
    );
    assert!(
        text.contains("reads beside") && text.contains("neighbour of reads"),
        "{text}"
    );
}

#[test]
fn wrong_option_of_a_neighbour_is_shown_with_its_position() {
    let scratch = Scratch::new("neighbour-wrong");
    scratch.file(
        "s.toml",
        &SUITE.replace("rw=randread direct=1", "rw=randread bz=4k"),
    );
    let output = scratch.run(&["run", "s.toml", DEVICE, "--check"]);
    assert_eq!(output.status.code(), Some(2));
    let text = error(&output);
    assert!(text.contains("s.toml:4") && text.contains("`bz`"), "{text}");
    let sweep = &["sweep", "--bs", "4k,8k"];
    for command in [&["probe"][..], &["load"], sweep, &["pts", "iops"]] {
        let words = [command, &[DEVICE, "--beside", "rw=write bs=64q"]].concat();
        let output = scratch.run(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let text = error(&output);
        assert!(
            text.contains("--beside:1:") && text.contains("64q"),
            "{text}"
        );
    }
}

#[test]
fn studies_report_the_neighbour_apart() {
    let scratch = Scratch::new("neighbour-studies");
    let probe = &["probe", "--quick", "--details"][..];
    for command in [probe, &["load", "--rates", "1k,2k", "--details"]] {
        let words = [command, &[DEVICE, "--beside", "rw=randread direct=1"]].concat();
        let text = scratch.done(&words);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("measured beside a neighbour"),
            "{words:?}: {text}"
        );
    }
}

#[test]
fn neighbour_that_may_not_write_is_refused_before_a_study() {
    let scratch = Scratch::new("neighbour-refused");
    scratch.file("data", &"x".repeat(1 << 20));
    let load = &["load", "--rates", "1k"];
    for command in [&["probe"][..], load, &["sweep", "--dry-run"]] {
        let words = [command, &["data", "--beside", "rw=write"]].concat();
        let output = scratch.run(&words);
        assert_eq!(
            output.status.code(),
            Some(3),
            "{words:?}: {}",
            error(&output)
        );
        let text = error(&output);
        assert!(text.contains("let the neighbour only read"), "{text}");
    }
}
