//! Promises and measurements side by side, from outside: `probe --expect`.

use crate::common::{Scratch, error, out};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const SLOW: &str = "sim:read_us=700,write_us=900,parallel=128,cap_iops=9k,cap_bw=420m";
const PD_SSD: &str = "gcp-pd-ssd:375GiB,machine=n1,vcpus=8";

#[test]
fn broken_promise_fails_with_option_and_is_stored() {
    let scratch = Scratch::new("promise-broken");
    let probe = ["probe", SLOW, "--runtime", "5", "--expect", PD_SSD];
    let reported = scratch.run(&probe);
    assert_eq!(reported.status.code(), Some(0), "{}", error(&reported));
    assert!(
        out(&reported).contains("The promise is broken: read IOPS at 60 %, write IOPS at 60 %")
    );
    let failed = scratch.run(&[&probe[..], &["--fail-if-broken", "--details"]].concat());
    assert_eq!(failed.status.code(), Some(7));
    assert!(error(&failed).contains("gcp-pd-ssd: The promise is broken"));
    assert!(out(&failed).contains("of it"), "the result comes first");

    let list = scratch.run(&["list", "--format", "csv"]);
    let line = out(&list).lines().nth(1).unwrap().to_owned();
    let id = line.split(',').next().unwrap();
    let shown = scratch.run(&["show", id]);
    assert!(out(&shown).contains("The promise is broken: read IOPS at 60 %"));
    let report = out(&scratch.run(&["report", id]));
    assert!(report.contains("The promise is broken: read IOPS at 60 %"));
    let exported = out(&scratch.run(&["export", id, "--format", "csv"]));
    assert!(exported.contains(",read_iops,15000.000,"), "{exported}");
}

#[test]
fn promise_from_user_limits_file_is_checked() {
    let scratch = Scratch::new("promise-own");
    let file = "schema = 1\n\n[[product]]\nname = \"acme\"\ntitle = \"Acme block storage\"\nfrom \
                = \"2026\"\n\
        origin = { source = \"offer\", as_of = \"2026\", evidence = \"own\", verified = true }\n\
        size = { min_gib = 1, max_gib = 1000 }\nlimit.iops = 9000\nlimit.mib_per_s = 420\n";
    fs::write(scratch.0.join("acme.toml"), file).unwrap();
    let words = |file: &'static str| {
        let expect = ["--expect", "acme:10", "--limits-file", file];
        [&["probe", SLOW, "--quick", "--fail-if-broken"][..], &expect].concat()
    };
    let kept = scratch.run(&words("acme.toml"));
    assert_eq!(kept.status.code(), Some(0), "{}", error(&kept));
    assert!(out(&kept).contains("The promise is kept"));
    // `limits` accepts the same name.
    let limits = scratch.run(&["limits", "acme:10", "--limits-file", "acme.toml"]);
    assert!(out(&limits).contains("9,000"), "{}", error(&limits));
    let report = scratch.run(&["probe", SLOW, "--quick", "--format", "json", "-o", "p.json"]);
    assert!(report.status.success());
    let expect = ["--expect", "acme:10", "--limits-file", "acme.toml"];
    let report = scratch.run(&[&["report", "p.json"][..], &expect].concat());
    assert!(out(&report).contains("Acme block storage"));
    let missing = scratch.run(&words("none.toml"));
    assert_eq!(missing.status.code(), Some(2));
    assert!(error(&missing).contains("none.toml"));
}

#[test]
fn stored_probe_is_compared_with_promise() {
    let scratch = Scratch::new("promise-later");
    let probe = scratch.run(&["probe", SLOW, "--runtime", "5"]);
    assert_eq!(probe.status.code(), Some(0), "{}", error(&probe));
    let listed = out(&scratch.run(&["list", "--format", "csv"]));
    let id = &listed.lines().nth(1).unwrap()[..10];
    assert!(!out(&scratch.run(&["show", id])).contains("promise"));
    let expect = ["--expect", PD_SSD];
    let reported = scratch.run(&[&["show", id][..], &expect].concat());
    assert!(
        out(&reported).contains("The promise is broken: read IOPS at 60 %, write IOPS at 60 %")
    );
    for (format, word) in [
        ("json", "gcp-pd-ssd"),
        ("csv", ",promised_per_s"),
        ("markdown", "The promise is broken"),
    ] {
        let words = [&["export", id, "--format", format][..], &expect].concat();
        let exported = out(&scratch.run(&words));
        assert!(exported.contains(word), "{format}: {exported}");
    }
    // The stored result is unchanged.
    assert!(!out(&scratch.run(&["show", id])).contains("promise"));
    let one = format!("{id}.random_read");
    let run = [&["show", &one][..], &expect].concat();
    let refused = scratch.run(&run);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        error(&refused).contains("iosonde report"),
        "{}",
        error(&refused)
    );
}

#[test]
fn probe_of_two_targets_alternates_and_stores_both() {
    let scratch = Scratch::new("promise-turns");
    let other = SLOW.replace("9k", "6k");
    let output = scratch.run(&["probe", SLOW, &other, "--runtime", "5", "--details"]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let reported = out(&output);
    let (_, beside) = reported.split_once("Side by side").unwrap();
    assert!(beside.contains("read IOPS"), "{beside}");
    assert!(beside.contains("0.667"), "{beside}");
    assert!(beside.contains("slower"), "{beside}");
    // Rounds alternate their first target. Lines of a phase begin with their target's number.
    let figures: Vec<String> = error(&output)
        .lines()
        .filter(|line| line.contains("k random ") && line.contains(" IOPS"))
        .map(|line| line[..2].to_owned())
        .collect();
    assert_eq!(figures.len(), 8, "{}", error(&output));
    let pairs: Vec<&[String]> = figures.chunks(2).collect();
    assert!(pairs.iter().all(|pair| pair[0] != pair[1]), "{figures:?}");
    assert_eq!(pairs[0][1], pairs[1][0], "{figures:?}");
    let table = out(&scratch.run(&["list"]));
    assert!(!table.contains("together="), "{table}");
    let listed = out(&scratch.run(&["list", "--format", "csv"]));
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let label = listed.split("together=").nth(1).unwrap();
    let label = format!("together={}", &label[..10]);
    let both = out(&scratch.run(&["list", "--label", &label, "--format", "csv"]));
    assert_eq!(both.lines().count(), 3, "{both}");
}

#[test]
fn interrupt_ends_both_probes_without_leftovers() {
    let scratch = Scratch::new("promise-interrupt");
    for name in ["a", "b"] {
        fs::create_dir(scratch.0.join(name)).unwrap();
    }
    let words = ["probe", "a", "b", "--size", "16M", "--runtime", "10s"];
    let mut child = scratch
        .command(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let both = |line: &String| line.starts_with("B: 7 phases");
    lines.by_ref().map(Result::unwrap).find(both).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130), "{rest:?}");
    for name in ["a", "b"] {
        let left: Vec<_> = fs::read_dir(scratch.0.join(name)).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn same_target_twice_is_a_a_test() {
    let scratch = Scratch::new("promise-again");
    fs::create_dir(scratch.0.join("data-dir")).unwrap();
    let words = [
        "probe",
        "data-dir",
        "./data-dir",
        "--size",
        "16M",
        "--details",
    ];
    let output = scratch.run(&[&words[..], &["--quick", "--runtime", "50ms"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let reported = out(&output);
    let reported = reported.split_whitespace().collect::<Vec<_>>().join(" ");
    let again = "data-dir is given twice: in this A/A test";
    assert!(reported.contains(again), "{reported}");
    assert!(!error(&output).contains("another probe is running"));
    let left = fs::read_dir(scratch.0.join("data-dir")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn mistyped_promise_is_reported_before_first_run() {
    let scratch = Scratch::new("promise-mistyped");
    for (expect, said) in [
        ("gcp-pd-sdd:375GiB", "did you mean `gcp-pd-ssd`?"),
        ("gcp-pd-ssd:siez=375", "did you mean `size`?"),
        ("gcp-pd-ssd", "gcp-pd-ssd needs size"),
        (
            "gcp-pd-ssd:large",
            "`large` is neither KEY=VALUE nor a size",
        ),
    ] {
        let output = scratch.run(&["probe", SLOW, "--quick", "--expect", expect]);
        assert_eq!(output.status.code(), Some(2), "{expect}");
        let reported = error(&output);
        assert!(reported.contains(said), "{expect}: {reported}");
        assert!(reported.contains("error: --expect"), "{reported}");
        assert!(out(&output).is_empty());
    }
    let output = scratch.run(&["probe", SLOW, "--fail-if-broken"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("--expect"));
}
