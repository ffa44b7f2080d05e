//! Comparisons of sweeps and load studies, from outside.

use crate::common::{Scratch, error};
use std::fs;

/// Writes a sweep of a simulated device as JSON.
fn sweep(scratch: &Scratch, name: &str, device: &str) {
    let words = [
        "sweep",
        device,
        "--rw",
        "randread",
        "--bs",
        "4k,64k",
        "--iodepth",
        "1,4,32",
        "--exhaustive",
        "--runtime",
        "2",
        "--format",
        "json",
    ];
    fs::write(scratch.path(name), scratch.done(&words)).unwrap();
}

/// Returns the comparison below the names of its sides.
fn said(text: &str) -> String {
    let (_, rest) = text.split_once("\n\n").unwrap();
    rest.to_owned()
}

fn fits(text: &str) {
    let is_wide = |line: &&str| line.chars().count() > 80;
    assert_eq!(text.lines().find(is_wide), None);
}

#[test]
fn compare_matches_sweeps_by_cell() {
    let scratch = Scratch::new("curves-sweep");
    let device = "sim:read_us=200,read_dist=exp,parallel=8,read_bw=100m";
    sweep(&scratch, "a.json", device);
    sweep(&scratch, "b.json", &device.replace("us=200", "us=250"));
    let short = scratch.done(&["compare", "a.json", "b.json"]);
    fits(&short);
    assert!(short.starts_with("B is slower than A: A is "), "{short}");
    let words = short.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("6 more figures: undecided"), "{short}");
    let output = scratch.run(&["compare", "a.json", "b.json", "--details"]);
    assert!(output.status.success(), "{}", error(&output));
    let text = crate::common::out(&output);
    fits(&text);
    insta::assert_snapshot!("sweeps", said(&text));
    let csv = scratch.done(&["compare", "a.json", "b.json", "--format", "csv"]);
    assert!(csv.contains("\"randread 4k, maximum\",read,iops,"), "{csv}");
    assert!(
        csv.contains("\"randread 64k, iodepth 32\",read,iops,"),
        "{csv}"
    );
    let output = scratch.run(&["compare", "a.json", "b.json", "--fail-if-slower", "10%"]);
    assert_eq!(output.status.code(), Some(6), "{}", error(&output));
    let same = scratch.run(&["compare", "a.json", "a.json", "--fail-if-slower", "0%"]);
    assert!(same.status.success());
    // Stored sweeps have the runs of their cells, and so the intervals of percentiles.
    for number in ["1", "2"] {
        let words = [
            "sweep",
            device,
            "--rw",
            "randread",
            "--iodepth",
            "1,16",
            "--exhaustive",
            "--runtime",
            "8",
            "--seed",
            number,
        ];
        scratch.done(&words);
    }
    let csv = scratch.done(&["compare", "latest~1", "latest", "--format", "csv"]);
    let p99 = csv.lines().find(|line| line.contains("lat_p99")).unwrap();
    assert!(!p99.contains("undecided"), "{csv}");
}

/// A sweep to depth 16 has no maximum that compares with one to depth 64.
#[test]
fn sweeps_of_different_depths_compare_by_common_cells() {
    let scratch = Scratch::new("curves-depths");
    let device = "sim:read_us=200,read_dist=exp,parallel=64";
    for depths in ["1,4,16", "1,4,64"] {
        let words = ["sweep", device, "--iodepth", depths, "--exhaustive"];
        scratch.done(&[&words[..], &["--runtime", "4"]].concat());
    }
    let text = scratch.done(&["compare", "latest~1", "latest"]);
    let note = "A has depths up to 16, B up to 64: only cells that both measured are compared.";
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&text).contains(note), "{text}");
    assert!(!text.contains("B is faster"), "{text}");
    let csv = scratch.done(&["compare", "latest~1", "latest", "--format", "csv"]);
    assert!(csv.contains("iodepth 4\""), "{csv}");
    assert!(!csv.contains("maximum"), "{csv}");
}

/// The probe's random reads at depth 1 and 64 have cells of the sweep as partners.
#[test]
fn compare_matches_probe_with_sweep_by_pattern() {
    let scratch = Scratch::new("curves-kinds");
    let device = "sim:read_us=200,write_us=200,read_dist=exp,parallel=8";
    scratch.done(&["probe", device, "--quick"]);
    scratch.done(&[
        "sweep",
        &device.replace("read_us=200", "read_us=400"),
        "--rw",
        "randread",
        "--bs",
        "4k",
        "--iodepth",
        "1,64",
        "--exhaustive",
        "--runtime",
        "8",
    ]);
    for (a, b, kinds, verdict) in [
        ("latest~1", "latest", "A is a probe, B a sweep", "slower"),
        ("latest", "latest~1", "A is a sweep, B a probe", "faster"),
    ] {
        let text = scratch.done(&["compare", a, b]);
        fits(&text);
        let start = format!("B is {verdict} than A: ");
        assert!(text.starts_with(&start), "{text}");
        let note = format!("{kinds}: only what both measured is compared.\n");
        assert!(text.contains(&note), "{text}");
        assert!(!text.contains("Only A has"), "{text}");
        // Names of other screens, not the keys of documents.
        assert!(text.contains("4k random read, depth"), "{text}");
        assert!(
            !text.contains("random_read") && !text.contains("read_latency"),
            "{text}"
        );
        assert!(!text.contains(" of A is compared with "), "{text}");
        let csv = scratch.done(&["compare", a, b, "--format", "csv"]);
        let rates = csv.lines().filter(|line| line.contains(",read,iops,"));
        assert!(rates.count() >= 2, "{csv}");
        assert!(!csv.contains("write"), "{csv}");
    }
}

#[test]
fn compare_matches_loads_by_rate() {
    let scratch = Scratch::new("curves-load");
    let device = "sim:read_us=200,read_dist=exp,parallel=4";
    for (device, rates) in [
        (device.to_owned(), "2000,6000,12000"),
        (device.replace("us=200", "us=220"), "1000,5000,9000,15000"),
    ] {
        scratch.done(&[
            "load",
            &device,
            "--rates",
            rates,
            "--runtime",
            "12",
            "--slo",
            "p99<=2ms",
        ]);
    }
    let text = scratch.done(&["compare", "latest~1", "latest", "--details"]);
    fits(&text);
    insta::assert_snapshot!("loads", said(&text));
    let alike = scratch.done(&["compare", "latest", "latest", "--format", "json"]);
    assert!(!alike.contains("slower\""), "{alike}");
}

#[test]
fn compare_shows_promise_beside_both_sides() {
    let scratch = Scratch::new("curves-expect");
    for iops in ["3000", "2000"] {
        let device =
            format!("sim:read_us=500,write_us=500,parallel=64,cap_iops={iops},cap_bw=125m");
        scratch.done(&["probe", &device, "--quick"]);
    }
    let words = [
        "compare",
        "latest~1",
        "latest",
        "--expect",
        "aws-gp3:100GiB",
    ];
    let text = scratch.done(&words);
    fits(&text);
    let (_, promised) = text.split_once("Promised: ").unwrap();
    insta::assert_snapshot!("promised", promised);
    let json = scratch.done(&[&words[..], &["--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let row = &json["expected"][0]["rows"][0];
    assert_eq!(row["a"]["verdict"]["kind"], "kept", "{row:#}");
    assert_eq!(row["b"]["verdict"]["kind"], "below", "{row:#}");
    let markdown = scratch.done(&[&words[..], &["--format", "markdown"]].concat());
    assert!(markdown.contains("| read IOPS | 3,000 |"), "{markdown}");
    let output = scratch.run(&[&words[..], &["--format", "csv"]].concat());
    assert_eq!(output.status.code(), Some(2));
}
