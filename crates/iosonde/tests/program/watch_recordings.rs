//! `iosonde watch`: recordings of this machine, and options that exclude each other.

use crate::common::{Scratch, error, out};

#[test]
fn watch_recording_is_replayed_with_other_columns() {
    let scratch = Scratch::new("watch-replay");
    let table = scratch.done(&["watch", "--record", "disks.jsonl", "0.1", "3"]);
    let recorded = std::fs::read_to_string(scratch.path("disks.jsonl")).unwrap();
    assert_eq!(recorded.lines().count(), 4, "a header and three intervals");
    assert!(recorded.starts_with("{\"iosonde_watch\":1,"), "{recorded}");
    assert_eq!(
        scratch.done(&["watch", "--replay", "disks.jsonl"]),
        table,
        "the same lines"
    );
    let words = [
        "watch",
        "--replay",
        "disks.jsonl",
        "--total",
        "--columns",
        "r,f",
    ];
    let total = scratch.done(&words);
    assert_eq!(
        total.lines().count(),
        5,
        "a head, three intervals, the averages: {total}"
    );
    assert!(
        total.lines().next().unwrap().contains("rareq-sz"),
        "{total}"
    );
    let json = scratch.done(&["watch", "--replay", "disks.jsonl", "--format", "json"]);
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert!(first["cpu"]["user"].is_number(), "{first}");
    assert!(first.get("network").is_some(), "{first}");

    let cut = &recorded[..recorded.len() - 3];
    std::fs::write(scratch.path("cut.jsonl"), cut).unwrap();
    let output = scratch.run(&["watch", "--replay", "cut.jsonl", "--format", "json"]);
    assert!(output.status.success(), "{}", error(&output));
    assert_eq!(
        out(&output).lines().count(),
        3,
        "two intervals, the averages"
    );
    assert!(error(&output).contains("was cut off"), "{}", error(&output));
}

#[test]
fn watch_refuses_unknown_columns_and_other_files() {
    let scratch = Scratch::new("watch-refused");
    scratch.file("notes.txt", "nothing\n");
    for (words, problem) in [
        (&["--columns", "svctm"][..], "no column has the name svctm"),
        (&["--sort", "svctm"][..], "no column has the name svctm"),
        (&["--replay", "notes.txt"][..], "is not a recording"),
        (&["--replay", "missing.jsonl"][..], "ENOENT"),
        (&["--replay", "notes.txt", "5"][..], "takes no INTERVAL"),
        (&["-x", "--format", "json"][..], "-x has no effect"),
        (&["--context", "lab"][..], "none is watched"),
    ] {
        let words: Vec<&str> = ["watch"].iter().chain(words).copied().collect();
        let output = scratch.run(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(error(&output).contains(problem), "{}", error(&output));
        assert!(error(&output).contains("help: "), "{}", error(&output));
    }
}
