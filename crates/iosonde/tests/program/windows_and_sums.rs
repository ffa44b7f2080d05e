//! Stored runs afterwards: figures of a time window, further percentiles, and sums of runs.

use crate::common::{Scratch, error};

/// Ten simulated seconds.
fn measure(scratch: &Scratch, rw: &str) -> String {
    let words = [
        "fio",
        "--name=db",
        rw,
        "--runtime=10",
        "--size=64m",
        "--bs=4k",
        "--time_based",
        "--ioengine=sim",
        "--sim=cap_iops=2000",
    ];
    scratch.done(&words);
    scratch.listed().pop().unwrap()[..10].to_owned()
}

#[test]
fn window_and_percentiles_come_from_the_stored_run() {
    let scratch = Scratch::new("window");
    let id = measure(&scratch, "--rw=randread");
    let table = scratch.done(&["show", &id, "--from", "3s", "--to", "6s"]);
    assert!(
        table.contains("read IOPS") && table.contains("p99.9"),
        "{table}"
    );
    assert!(table.contains("not known"), "{table}");
    let json = scratch.done(&["show", &id, "--from", "3", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["kind"], "stored-figures");
    assert!(
        json["runs"][0]["window"]["intervals"].as_u64() >= Some(7),
        "{json}"
    );
    let words = ["show", &id, "--percentiles", "50:99.999", "--format", "csv"];
    let lines = scratch.done(&words);
    assert!(lines.contains(",db,read,lat,50,"), "{lines}");
    assert!(
        lines.contains(",db,read,lat,99.999,,"),
        "too few I/Os: {lines}"
    );
}

#[test]
fn window_outside_of_the_run_is_refused() {
    let scratch = Scratch::new("window-refused");
    let id = measure(&scratch, "--rw=randread");
    for (from, to, problem) in [
        ("6s", "3s", "not before its end"),
        ("60s", "90s", "outside of the run"),
        ("3s", "90s", "outside of the run"),
    ] {
        let output = scratch.run(&["show", &id, "--from", from, "--to", to]);
        assert_eq!(output.status.code(), Some(2), "{from} to {to}");
        assert!(error(&output).contains(problem), "{}", error(&output));
    }
    let output = scratch.run(&["show", &id, "--from", "3s", "--format", "html"]);
    assert_eq!(output.status.code(), Some(2));
}

/// The arguments of the commands of iosonde in a message.
fn named_commands(message: &str) -> Vec<Vec<&str>> {
    let quoted = message.split('`').skip(1).step_by(2);
    let commands = quoted.filter_map(|text| text.strip_prefix("iosonde "));
    commands.map(|text| text.split(' ').collect()).collect()
}

/// The remedies for a result of several runs have one line, and their commands succeed.
#[test]
fn remedies_for_several_runs_name_commands_that_succeed() {
    let scratch = Scratch::new("several-runs");
    scratch.done(&["probe", "sim:read_us=100,seed=1", "--quick"]);
    let id = scratch.listed()[0][..10].to_owned();
    for (words, commands) in [
        (vec!["show", &id, "--from", "0.1s"], 2),
        // No run is as long.
        (vec!["show", &id, "--from", "9000s"], 2),
        (vec!["merge", &id, &id], 1),
    ] {
        let output = scratch.run(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let message = error(&output);
        assert_eq!(message.trim_end().lines().count(), 2, "{message}");
        let named = named_commands(&message);
        assert_eq!(named.len(), commands, "{message}");
        for command in named {
            let shown = scratch.done(&command);
            assert!(shown.contains('.'), "{shown}");
        }
    }
}

/// The remedy names a result of the same kind, also if a result of another kind is later.
#[test]
fn comparison_without_common_figure_names_a_comparable_result() {
    let scratch = Scratch::new("comparable");
    let first = measure(&scratch, "--rw=randread");
    let without = measure(&scratch, "--rw=randwrite");
    let output = scratch.run(&["compare", &first, &without]);
    assert_eq!(output.status.code(), Some(2));
    let message = error(&output);
    assert_eq!(named_commands(&message), [["list"]], "{message}");
    measure(&scratch, "--rw=randread");
    let output = scratch.run(&["compare", &first, &without]);
    let message = error(&output);
    let commands = named_commands(&message);
    assert_eq!(commands.len(), 1, "{message}");
    assert_eq!(commands[0][0], "compare", "{message}");
    scratch.done(&commands[0]);
}

#[test]
fn sum_of_runs_is_stored_and_unlike_runs_are_refused() {
    let scratch = Scratch::new("sum");
    let first = measure(&scratch, "--rw=randread");
    // Both runs are equal, but they are two.
    let second = measure(&scratch, "--rw=randread");
    let other = measure(&scratch, "--rw=randwrite");
    let words = [
        "merge", &first, &second, "--timing", "parallel", "--name", "both",
    ];
    let table = scratch.done(&words);
    assert!(
        table.contains("numjobs 2") && table.contains("sum of 2 runs"),
        "{table}"
    );
    let listed = scratch.listed();
    let line = listed.iter().find(|line| line.contains(",merge,")).unwrap();
    assert!(line.contains("name=both"), "{line}");
    let shown = scratch.done(&["show", &line[..10]]);
    assert!(shown.contains("sum of 2 runs at the same time"), "{shown}");
    let words = ["merge", &first, &second, "--timing", "serial", "--no-save"];
    let json = scratch.done(&[&words[..], &["--format", "json"]].concat());
    let sum: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(sum["intervals"].as_array().unwrap().len() >= 20);
    let run_of_first = format!("{first}.1");
    for (words, problem) in [
        (
            vec!["merge", &first, &other],
            "rw is randread and randwrite",
        ),
        (vec!["merge", &first, &first], "named twice"),
        (vec!["merge", &first, &run_of_first], "same measurement"),
        (vec!["merge", &first], "at least two"),
    ] {
        let output = scratch.run(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(error(&output).contains(problem), "{}", error(&output));
    }
}
