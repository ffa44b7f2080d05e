//! `iosonde run` on a directory: a built-in suite at small scale, and a suite that is resumed.

use super::{json, run};
use iosonde_e2e::mount::Mount;
use iosonde_e2e::program::Invocation;
use iosonde_e2e::{Scratch, require};
use rustix::process::Signal;
use std::fs;

/// Stores results whatever the environment of the tests says.
fn kept(scratch: &Scratch, line: &str) -> Invocation {
    run(scratch, line).env("IOSONDE_NO_SAVE", "0")
}

#[test]
fn built_in_suite_judges_directory_and_leaves_it_unchanged() {
    let scratch = Scratch::shared();
    scratch.write("mine.txt", "not yours");
    let junit = scratch.out().join("junit.xml");
    // A limit that each disk meets: the test does not judge the machine.
    let line = format!(
        "run etcd . --var size=3m --var limit=60s --junit {}",
        junit.display()
    );
    let etcd = run(&scratch, &line).ok();
    assert!(etcd.stdout.contains("met  wal sync p99 latency"), "{etcd}");
    assert!(etcd.stdout.contains("neighbour of wal"), "{etcd}");
    assert!(
        etcd.stdout.lines().all(|line| line.chars().count() <= 80),
        "{etcd}"
    );
    assert_eq!(scratch.files(), ["mine.txt"]);
    let junit = fs::read_to_string(junit).expect("a JUnit file");
    assert!(
        junit.contains("tests=\"2\" failures=\"0\" errors=\"0\""),
        "{junit}"
    );
    // A limit that no disk meets.
    let line = "run etcd . --var size=3m --var limit=1ns --format json";
    let missed = run(&scratch, line).run();
    assert_eq!(missed.status.code(), Some(11), "{missed}");
    assert_eq!(
        json(&missed.stdout)["suites"][0]["judged"][0]["verdict"],
        "missed"
    );
}

#[test]
fn interrupted_suite_is_resumed() {
    let scratch = Scratch::shared();
    let suite = scratch.out().join("suite.toml");
    // The remaining runs last long enough for the signal to arrive in time.
    let text = "[[workload]]\nname = \"w\"\naxes = { bs = [\"4k\", \"8k\", \"16k\", \"32k\"] }\n\
                options = { rw = \"randwrite\", size = \"4m\", time_based = 1, runtime = 3, \
                rate_iops = 500 }\n";
    fs::write(&suite, text).expect("a suite");
    let line = format!("run {} .", suite.display());
    let mut running = kept(&scratch, &line).start();
    let journals = scratch.out().join("suites");
    let has_measured = running.until(|_| super::holds_something(&journals));
    running.signal(Signal::INT);
    let stopped = running.wait();
    assert!(has_measured, "{stopped}");
    assert_eq!(stopped.status.code(), Some(130), "{stopped}");
    assert!(stopped.stdout.contains("w-4k"), "{stopped}");
    assert!(scratch.files().is_empty(), "{:?}", scratch.files());
    let resumed = kept(&scratch, &format!("{line} --resume")).ok();
    assert!(
        !resumed.stderr.contains("[1/4]") && resumed.stderr.contains("[4/4]"),
        "{resumed}"
    );
    for part in ["w-4k", "w-8k", "w-16k", "w-32k"] {
        assert!(resumed.stdout.contains(part), "{resumed}");
    }
    // One result with all runs as its children.
    let list = json(&kept(&scratch, "list --format json").ok().stdout);
    let results = list["results"].as_array().expect("results");
    assert_eq!(results.len(), 1, "{list}");
    assert_eq!(
        results[0]["parts"].as_array().map(Vec::len),
        Some(4),
        "{list}"
    );
    assert!(results[0]["finished_at_ms"].is_u64(), "{list}");
}

/// Targets alternate step by step, and each has its own result.
#[test]
fn suite_alternates_between_targets() {
    let scratch = Scratch::shared();
    for name in ["a", "b"] {
        fs::create_dir(scratch.work().join(name)).expect("a target");
    }
    let suite = scratch.out().join("suite.toml");
    let text = "targets = [\"a\", { path = \"b\", labels = { disk = \"second\" } }]\n\
                [[workload]]\nname = \"w\"\n\
                options = { rw = \"randwrite\", size = \"4m\", time_based = 1, runtime = 1 }\n\
                [[workload]]\nname = \"s\"\nsweep = { runtime = 1, exhaustive = true, size = \
                \"16m\" }\n\
                axes = { rw = \"randread\", iodepth = \"1,2\" }\n";
    fs::write(&suite, text).expect("a suite");
    let ran = kept(&scratch, &format!("run {} --format json", suite.display())).ok();
    let names = ["a", "b"].map(|name| scratch.work().join(name).display().to_string());
    // A line with the result of a step has its figures behind two blanks.
    let is_start = |line: &&str| line.contains(": [") && !line.contains("  ");
    let turns: Vec<&str> = ran.stderr.lines().filter(is_start).collect();
    let expected: Vec<String> = [("w", 0), ("w", 1), ("s", 0), ("s", 1)]
        .iter()
        .enumerate()
        .map(|(index, (step, target))| format!("{}: [{}/4] {step}", names[*target], index + 1))
        .collect();
    assert_eq!(turns, expected, "{ran}");
    let document = json(&ran.stdout);
    let suites = document["suites"].as_array().expect("suites");
    for (suite, name) in suites.iter().zip(&names) {
        assert_eq!(suite["target"], name.as_str(), "{ran}");
        let steps = suite["steps"].as_array().expect("steps");
        assert!(
            steps[0]["parts"][0]["figures"][0]["value"].as_f64() > Some(0.0),
            "{ran}"
        );
        let found = steps[1]["found"].as_array().expect("what the sweep found");
        assert!(
            found.iter().any(|found| found["kind"] == "max_iops"),
            "{ran}"
        );
    }
    assert_eq!(suites[1]["labels"]["disk"], "second", "{ran}");
    let list = json(&kept(&scratch, "list --format json").ok().stdout);
    let results = list["results"].as_array().expect("results");
    let targets: Vec<&str> = results
        .iter()
        .filter_map(|result| result["target"].as_str())
        .collect();
    assert_eq!(targets, names, "{list}");
    let together = |index: usize| &results[index]["labels"]["together"];
    assert!(
        together(0).is_string() && together(0) == together(1),
        "{list}"
    );
    assert!(scratch.files().is_empty(), "{:?}", scratch.files());
}

/// Work of a suite's steps, the suite, its targets, and the first step without space, if any.
type SpaceCase = (&'static str, String, &'static str, Option<&'static str>);

fn write_workload(name: &str, more: &str) -> String {
    format!(
        "[[workload]]\nname = \"{name}\"\noptions = {{ rw = \"write\", bs = \"1m\", {more} }}\n"
    )
}

/// A workload that writes more than half of the disk.
fn write_sized(name: &str, more: &str) -> String {
    write_workload(name, &format!("size = \"40m\"{more}"))
}

fn study_workload(what: &str) -> String {
    format!("[[workload]]\nname = \"s\"\n{what}\n")
}

/// Workloads on one target, whose files add up, are shared or are removed.
fn space_cases_of_workload_files() -> Vec<SpaceCase> {
    vec![
        (
            "each has files of its own",
            write_sized("x", "") + &write_sized("y", ""),
            "a",
            Some("y"),
        ),
        (
            "what is removed frees its room",
            write_sized("x", ", unlink = 1") + &write_sized("y", ""),
            "a",
            None,
        ),
        (
            "what is removed by a later step is there before",
            write_sized("x", ", filename = \"f\"")
                + &write_sized("y", ", filename = \"f\", unlink = 1")
                + &write_sized("z", ""),
            "a",
            None,
        ),
        (
            "both have the same file",
            write_sized("x", ", filename = \"f\"") + &write_sized("y", ", filename = \"f\""),
            "a",
            None,
        ),
        (
            "a larger one of the same name needs the difference",
            write_sized("x", ", filename = \"f\"")
                + &write_workload("y", "size = \"60m\", filename = \"f\""),
            "a",
            None,
        ),
        (
            "what is appended comes on top",
            write_sized("x", ", filename = \"f\"")
                + &write_sized("y", ", filename = \"f\", file_append = 1"),
            "a",
            Some("y"),
        ),
    ]
}

/// Targets on one disk, full disks and studies.
fn space_cases_of_targets_and_studies() -> Vec<SpaceCase> {
    vec![
        (
            "targets share their disk",
            write_sized("x", ""),
            "a b",
            Some("x"),
        ),
        (
            "of targets that share it each removes what it wrote",
            write_sized("x", ", unlink = 1"),
            "a b",
            None,
        ),
        (
            "a full disk has room for no other step",
            write_workload("x", "fill_device = 1") + &write_sized("y", ", filename = \"z\""),
            "a",
            Some("y"),
        ),
        (
            "a full disk does not stop a step that reads",
            write_workload("x", "fill_device = 1, filename = \"f\"")
                + &study_workload(
                    "options = { rw = \"read\", bs = \"1m\", filename = \"f\", size = \"8m\" }",
                ),
            "a",
            None,
        ),
        (
            "a study has what steps before it leave",
            write_sized("x", "")
                + &study_workload("load = { size = \"40m\", runtime = 1, rates = [100] }"),
            "a",
            Some("s"),
        ),
        (
            "a study removes its own file",
            study_workload("load = { size = \"40m\", runtime = 1, rates = [100] }")
                + &write_sized("x", ""),
            "a",
            None,
        ),
    ]
}

/// `--check` and a run refuse the same steps for lack of space, with the same figures except for a
/// few blocks of the run's own directory.
#[test]
fn check_adds_space_of_earlier_steps() {
    require!(Root);
    let scratch = Scratch::shared();
    let mount = Mount::tmpfs(scratch.work().join("small"), 64 << 20);
    for name in ["a", "b"] {
        fs::create_dir(mount.dir().join(name)).expect("a target");
    }
    let mut cases = space_cases_of_workload_files();
    cases.extend(space_cases_of_targets_and_studies());
    let file = scratch.out().join("suite.toml");
    for (case, suite, targets, short) in cases {
        fs::write(&file, suite).expect("a suite");
        let targets: Vec<String> = targets
            .split(' ')
            .map(|name| mount.dir().join(name).display().to_string())
            .collect();
        let line = format!("run {} {}", file.display(), targets.join(" "));
        let checked = run(&scratch, &format!("{line} --check")).run();
        let ran = run(&scratch, &format!("{line} --format json")).run();
        assert_eq!(
            checked.status.success(),
            short.is_none(),
            "{case}: {checked}"
        );
        if short.is_some() {
            assert_eq!(checked.status.code(), Some(4), "{case}: {checked}");
            assert!(
                checked.stderr.contains("are available"),
                "{case}: {checked}"
            );
        }
        // Each failed step prints its own error.
        let of_step = |line: &'_ str| {
            let (step, problem) = line.split_once(": ")?;
            (step.len() == 1 && problem.contains("are available")).then(|| step.to_owned())
        };
        let failed: Vec<String> = ran.stderr.lines().filter_map(of_step).collect();
        let expected: Vec<&str> = short.into_iter().collect();
        assert_eq!(failed, expected, "{case}: {ran}");
    }
}
