//! `iosonde run` on a real directory: a built-in suite scaled down, and one that is stopped and gone on with.

use super::{json, run};
use iosonde_e2e::Scratch;
use iosonde_e2e::program::Invocation;
use rustix::process::Signal;
use std::fs;

/// Kept in the history, whatever the environment of the tests says.
fn kept(scratch: &Scratch, line: &str) -> Invocation {
    run(scratch, line).env("IOSONDE_NO_SAVE", "0")
}

#[test]
fn a_built_in_suite_judges_a_directory_and_leaves_it_as_it_was() {
    let scratch = Scratch::shared();
    scratch.write("mine.txt", "not yours");
    let junit = scratch.out().join("junit.xml");
    // A limit that any disk keeps: what is tested is not the machine.
    let line = format!(
        "run etcd . --var size=3m --var limit=60s --junit {}",
        junit.display()
    );
    let etcd = run(&scratch, &line).ok();
    assert!(etcd.stdout.contains("met  wal sync p99 latency"), "{etcd}");
    assert!(
        etcd.stdout.lines().all(|line| line.chars().count() <= 80),
        "{etcd}"
    );
    assert_eq!(scratch.files(), ["mine.txt"]);
    let junit = fs::read_to_string(junit).expect("a JUnit file");
    assert!(
        junit.contains("tests=\"1\" failures=\"0\" errors=\"0\""),
        "{junit}"
    );
    // One that none keeps.
    let line = "run etcd . --var size=3m --var limit=1ns --format json";
    let missed = run(&scratch, line).run();
    assert_eq!(missed.status.code(), Some(11), "{missed}");
    assert_eq!(
        json(&missed.stdout)["suites"][0]["judged"][0]["verdict"],
        "missed"
    );
}

#[test]
fn a_suite_that_is_stopped_goes_on_where_it_was() {
    let scratch = Scratch::shared();
    let suite = scratch.out().join("suite.toml");
    // What is left when the first run has ended lasts for long enough that the signal comes in time.
    let text = "[[workload]]\nname = \"w\"\naxes = { bs = [\"4k\", \"8k\", \"16k\", \"32k\"] }\n\
                options = { rw = \"randwrite\", size = \"4m\", time_based = 1, runtime = 3, rate_iops = 500 }\n";
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
    // One result with all runs as its children, not two.
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
