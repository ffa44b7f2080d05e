//! `iosonde run` from outside, on simulated devices: output, history and exit status.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use crate::common::{NET, SLOWER, SUITE, Scratch};

/// UID and GID without permissions.
const UNPRIVILEGED_ID: u32 = 65534;
const BROKEN: &str = "sim:read_us=500,parallel=4,write_error=1";

#[test]
fn suite_verdicts_are_printed_exported_and_returned() {
    let scratch = Scratch::new("verdicts");
    scratch.file("suite.toml", SUITE);
    let words = [
        "run",
        "suite.toml",
        NET,
        "--junit",
        "out.xml",
        "--label",
        "ticket=42",
    ];
    let text = scratch.text(11, &words);
    let (table, stored) = text.split_once("\nresult ").unwrap();
    assert!(stored.contains(": iosonde report "), "{stored}");
    insta::assert_snapshot!("table", table);
    let junit = fs::read_to_string(scratch.0.join("out.xml")).unwrap();
    insta::assert_snapshot!("junit", without_time_and_place(&junit));
    keeps_the_strictest_schema(&junit);
    let words = ["run", "suite.toml", NET, "--format", "markdown"];
    insta::assert_snapshot!("markdown", scratch.text(11, &words));
    let json = scratch.text(11, &["run", "suite.toml", NET, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["suites"][0]["judged"][0]["verdict"], "met");
    let csv = scratch.text(11, &["run", "suite.toml", NET, "--format", "csv"]);
    assert!(
        csv.contains(",disk,1,disk-randread-8,randread,4096,8,1,read,iops,"),
        "{csv}"
    );
    // Every run of a suite is a child of one result, which `show` prints.
    let list = scratch.text(0, &["list", "--label", "team=db", "--format", "json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let first = &list["results"][0];
    assert_eq!(
        (first["kind"].as_str(), first["labels"]["suite"].as_str()),
        (Some("suite"), Some("suite"))
    );
    assert_eq!(first["parts"].as_array().unwrap().len(), 5);
    let shown = scratch.text(0, &["show", first["id"].as_str().unwrap()]);
    assert!(
        shown.contains("met           log sync p99 latency"),
        "{shown}"
    );
    let last = shown.split_once("\nverdicts   3 met, 1 missed, 1 not measured\nresult ");
    assert!(last.unwrap().1.contains(": iosonde report "), "{shown}");
}

/// The JUnit file has every failure, and `--resume` repeats only failed steps.
#[test]
fn failed_step_is_in_junit_and_repeated_on_resume() {
    let scratch = Scratch::new("failed");
    let workload = |rw: &str| {
        format!("[[workload]]\nname = \"{rw}\"\noptions = {{ rw = \"{rw}\", size = \"1m\" }}\n")
    };
    scratch.file("one.toml", &workload("randwrite"));
    scratch.file("two.toml", &(workload("randread") + &workload("randwrite")));
    let junit = |suite: &str, more: &[&str]| {
        let mut words = vec!["run", suite, BROKEN, "--junit", "out.xml"];
        words.extend(more);
        let output = scratch.run(&words);
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{reported}");
        let junit = fs::read_to_string(scratch.0.join("out.xml")).unwrap();
        keeps_the_strictest_schema(&junit);
        assert!(
            junit.contains("errors=\"1\"") && junit.contains("<error message=\""),
            "{junit}"
        );
        reported
    };
    let reported = junit("two.toml", &[]);
    assert!(reported.contains("with --resume"), "{reported}");
    let reported = junit("two.toml", &["--resume"]);
    assert!(
        reported.contains("[2/2]") && !reported.contains("[1/2]"),
        "{reported}"
    );
    // The history has the last result of each step, once.
    let list = scratch.text(0, &["list", "--format", "json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let latest = list["results"][0]["parts"].as_array().unwrap();
    let mut names: Vec<&str> = latest
        .iter()
        .filter_map(|part| part["name"].as_str())
        .collect();
    names.dedup();
    assert_eq!(names.len(), latest.len(), "{list}");
    // No step has a result.
    let reported = junit("one.toml", &[]);
    assert!(!reported.contains("with --resume"), "{reported}");
}

/// Checks attributes and order of elements, as the schema of Ant's JUnit task requires.
fn keeps_the_strictest_schema(junit: &str) {
    let has_all = |line: &str, names: &[&str]| {
        let is_there = |name: &&str| line.contains(&format!(" {name}=\""));
        assert!(names.iter().all(is_there), "{line}");
    };
    let mut order = Vec::new();
    for line in junit
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('<'))
    {
        let element = line[1..].split([' ', '>', '/']).next().unwrap_or_default();
        match element {
            "testsuite" => has_all(
                line,
                &[
                    "id",
                    "package",
                    "name",
                    "timestamp",
                    "hostname",
                    "tests",
                    "failures",
                    "errors",
                    "time",
                ],
            ),
            "testcase" => has_all(line, &["classname", "name", "time"]),
            _ => {}
        }
        for outcome in ["<failure", "<error"]
            .into_iter()
            .filter(|outcome| line.contains(outcome))
        {
            has_all(&line[line.find(outcome).unwrap()..], &["message", "type"]);
        }
        if ["properties", "testcase", "system-out", "system-err"].contains(&element) {
            order.push(element);
        }
    }
    order.dedup();
    assert_eq!(
        order,
        ["properties", "testcase", "system-out", "system-err"]
    );
}

/// Returns a JUnit file without the parts that differ between runs.
fn without_time_and_place(junit: &str) -> String {
    let mut text = junit.to_owned();
    for attribute in [" timestamp=\"", " hostname=\""] {
        let (before, rest) = text.split_once(attribute).expect("the attribute");
        let (value, after) = rest.split_once('"').expect("its value");
        assert!(!value.is_empty(), "{attribute} has no value");
        text = format!("{before}{attribute}…\"{after}");
    }
    text
}

#[test]
fn failure_of_only_run_is_printed_once() {
    let scratch = Scratch::new("once");
    let suite =
        "[[workload]]\nname = \"huge\"\noptions = { size = \"1000000t\", rw = \"write\" }\n";
    scratch.file("huge.toml", suite);
    let target = scratch.0.to_str().unwrap();
    let output = scratch.run(&["run", "huge.toml", target]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{said}");
    for once in ["are available", "help: "] {
        assert_eq!(said.matches(once).count(), 1, "{said}");
    }
}

/// A run of 0.3 s has no interval, so its figures do not decide the expectation.
#[test]
fn run_without_interval_is_undecided_with_status_12() {
    let scratch = Scratch::new("undecided");
    let suite = |runtime: &str, expect: &str| {
        format!(
            "[[workload]]\nname = \"a\"\nexpect = [\"{expect}\"]\n\
             options = {{ rw = \"randread\", size = \"1g\", time_based = 1, runtime \
             = \"{runtime}\", direct = 1 }}\n"
        )
    };
    scratch.file("short.toml", &suite("300ms", "iops >= 3000"));
    let said = scratch.text(12, &["run", "short.toml", NET]);
    assert!(said.contains("undecided"), "{said}");
    let words = ["run", "short.toml", NET, "--fail-if-unclear"];
    scratch.text(11, &words);
    // A difference by a factor of ten needs no interval.
    scratch.file("far.toml", &suite("300ms", "iops >= 1M"));
    scratch.text(11, &["run", "far.toml", NET]);
    scratch.file("long.toml", &suite("8s", "iops >= 3000"));
    let said = scratch.text(11, &["run", "long.toml", NET]);
    assert!(said.contains("missed"), "{said}");
}

#[test]
fn suite_with_repetitions_compares_with_baseline() {
    let scratch = Scratch::new("baseline");
    let suite = |expect: &str| {
        format!(
            "repetitions = 3\n[[workload]]\nname = \"a\"\nexpect = [\"{expect}\"]\n\
             options = {{ rw = \"randread\", size = \"1g\", time_based = 1, runtime = 8, direct = \
             1 }}\n"
        )
    };
    scratch.file("first.toml", &suite("iops >= 1"));
    scratch.file(
        "second.toml",
        &suite("iops not slower than label:build=main by 5%"),
    );
    // A missing baseline is reported before the first run.
    let output = scratch.run(&["run", "second.toml", NET]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    scratch.text(0, &["run", "first.toml", NET, "--label", "build=main"]);
    let same = scratch.text(0, &["run", "second.toml", NET]);
    let is_same = same.contains("met  a IOPS: 1.000 ") && same.contains("of the earlier value,");
    assert!(is_same, "{same}");
    let slower = scratch.text(11, &["run", "second.toml", SLOWER]);
    assert!(slower.contains("missed  a IOPS: 0."), "{slower}");
}

#[test]
fn suite_and_sweep_errors_are_reported_together() {
    let scratch = Scratch::new("at-once");
    scratch.file(
        "suite.toml",
        "[[workload]]\nname = \"a\"\noptions = { rw = \"randread\", size = \"1m\" }\n\
         expect = [\"iops not slower than label:build=main by 5%\", \"p99 not slower than \
         label:build=old by 5%\"]\n",
    );
    scratch.text(
        0,
        &[
            "fio",
            "--name=x",
            "--ioengine=sim",
            "--size=1m",
            "--rw=read",
        ],
    );
    for words in [
        &["run", "suite.toml", "/nowhere/a", "/nowhere/b"][..],
        &["run", "suite.toml", "/nowhere/a", "/nowhere/b", "--check"][..],
        &["sweep", "/nowhere/a", "/nowhere/b", "--iodepth", "1"][..],
    ] {
        let output = scratch.run(words);
        assert!(matches!(output.status.code(), Some(2 | 3)), "{output:?}");
        let reported = String::from_utf8(output.stderr).unwrap();
        for expected in ["/nowhere/a", "/nowhere/b"] {
            assert!(reported.contains(expected), "{words:?}: {reported}");
        }
        for expected in ["build=main", "build=old"]
            .iter()
            .filter(|_| words[0] == "run")
        {
            assert!(reported.contains(expected), "{words:?}: {reported}");
        }
    }
}

#[test]
fn suite_of_10200_runs_requires_yes_option() {
    let scratch = Scratch::new("suite-many");
    let suite = |sweep: &str| {
        format!(
            "[[workload]]\nname = \"many\"\n{sweep}\noptions = {{ rw = \"randread\", size = \"1m\" \
             }}\n\
             axes = {{ iodepth = \"1..200+1\", numjobs = \"1..51+1\" }}\n"
        )
    };
    for (sweep, what) in [("", "10200 runs"), ("sweep = {}", "10200 cells")] {
        scratch.file("suite.toml", &suite(sweep));
        let output = scratch.run(&["run", "suite.toml", "--check", NET]);
        let reported = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{reported}");
        assert!(
            reported.contains(what) && reported.contains("--yes"),
            "{reported}"
        );
        scratch.text(0, &["run", "suite.toml", "--check", "--yes", NET]);
    }
}

#[test]
fn suite_dry_run_prints_plan_without_runs() {
    let scratch = Scratch::new("dry");
    scratch.file("suite.toml", SUITE);
    let targets = [NET, "sim:hdd"];
    let words = [&["run", "suite.toml", "--dry-run"], &targets[..]].concat();
    insta::assert_snapshot!("plan", scratch.text(0, &words));
    assert_eq!(
        scratch.text(0, &["run", "suite.toml", "--check"]),
        "suite: no problems found\n"
    );
    assert!(!scratch.store().exists());
    insta::assert_snapshot!("list", scratch.text(0, &["run", "--list"]));
    let shown = scratch.text(0, &["run", "--show", "etcd"]);
    assert_eq!(shown, include_str!("../../../../data/suites/etcd.toml"));
    let output = scratch.run(&["run", "etdc"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("did you mean `etcd`?"), "{error}");
    let output = scratch.run(&["run", "suite.toml", "--var", "runtim=3"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("did you mean `runtime`?"), "{error}");
}

#[test]
fn directory_as_include_fails_with_eisdir() {
    let scratch = Scratch::new("include-directory");
    scratch.file("suite.toml", "include = [\".\"]\n");
    let output = scratch.run(&["run", "suite.toml"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains(".: Is a directory (EISDIR)"), "{error}");
}

#[test]
fn complete_suite_is_not_resumed_and_failures_are_listed() {
    let scratch = Scratch::new("resume");
    scratch.file("suite.toml", SUITE);
    let lines = |words: &[&str]| {
        let output = scratch.run(words);
        String::from_utf8(output.stderr).unwrap()
    };
    let target = NET;
    let all = lines(&["run", "suite.toml", target]);
    assert!(all.contains(": [5/5] log"), "{all}");
    // A complete suite cannot be resumed.
    let complete = lines(&["run", "suite.toml", target, "--resume"]);
    assert!(
        complete.contains("no stopped suite has these targets and options"),
        "{complete}"
    );
    let failing = scratch.text(1, &["run", "suite.toml", BROKEN]);
    assert!(
        failing.contains("disk-randread-8") && failing.contains("failed:"),
        "{failing}"
    );
}

/// The text of an error, without the warnings before it.
fn error_text(output: &Output, options: &str) -> String {
    let all = String::from_utf8_lossy(&output.stderr).into_owned();
    let error = all.split_once("error: ").map(|(_, error)| error.to_owned());
    error.unwrap_or_else(|| panic!("{options}: {all}"))
}

/// The remedy without digits: free room may differ between two calls.
fn help_line(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let line = lines.find(|line| line.starts_with("help"))?;
    Some(line.replace(|digit: char| digit.is_ascii_digit(), ""))
}

/// `--check` reports the errors of a run, in the same words.
#[test]
fn suite_check_reports_consent_space_and_unusable_devices() {
    let scratch = Scratch::new("check");
    let suite = |options: &str| format!("[[workload]]\nname = \"w\"\n{options}\n");
    fs::write(scratch.0.join("precious"), vec![7; 1 << 20]).unwrap();
    let here = scratch.0.to_str().unwrap();
    for (options, target, status, expected) in [
        (
            r#"options = { rw = "randwrite", size = "1m" }"#,
            "precious",
            3,
            "--allow-overwrite",
        ),
        (
            r#"options = { rw = "write", size = "1000000t" }"#,
            here,
            4,
            "are available",
        ),
        (
            r#"load = { rw = "randwrite", size = "16m" }"#,
            "precious",
            3,
            "--allow-overwrite",
        ),
        (
            r#"load = { rw = "randread", size = "1000t" }"#,
            here,
            4,
            "are available",
        ),
        (r#"probe = { size = "1000t" }"#, here, 4, "are available"),
        (
            "sweep = { size = \"16m\" }\naxes = { rw = \"randwrite\" }",
            "precious",
            4,
            "are available",
        ),
        (
            r#"options = { size = "1m" }"#,
            "sim:read_su=5",
            2,
            "read_su",
        ),
    ] {
        scratch.file("suite.toml", &suite(options));
        let words = ["run", "suite.toml", target];
        let ran = scratch.run(&words);
        let checked = scratch.run(&[&words[..], &["--check"]].concat());
        let said = |output: &Output| error_text(output, options);
        assert_eq!(checked.status.code(), Some(status), "{}", said(&checked));
        assert_eq!(ran.status.code(), Some(status), "{}", said(&ran));
        assert!(said(&checked).contains(expected), "{}", said(&checked));
        assert_eq!(help_line(&said(&checked)), help_line(&said(&ran)));
    }
    let mut left: Vec<_> = fs::read_dir(&scratch.0)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    left.retain(|name| name.to_string_lossy().starts_with(".iosonde"));
    assert!(left.is_empty(), "{left:?}");
    assert!(
        fs::read(scratch.0.join("precious"))
            .unwrap()
            .iter()
            .all(|byte| *byte == 7)
    );
}

#[test]
fn suite_sweep_rejects_iodepth_of_synchronous_engine() {
    let scratch = Scratch::new("synchronous");
    let suite = "[[workload]]\nname = \"w\"\noptions = { size = \"1m\" }\nsweep = { runtime = 1 }\n\
                 axes = { iodepth = \"1,2\" }\n";
    scratch.file("suite.toml", suite);
    let refused = scratch.run(&["run", "suite.toml", ".", "--check"]);
    let reported = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{reported}");
    assert!(reported.contains("`w`: ioengine=psync"), "{reported}");
    scratch.text(0, &["run", "suite.toml", NET, "--check"]);
    // An unusable target is reported first.
    let lost = scratch.run(&["run", "suite.toml", "nowhere", "--check"]);
    assert_eq!(lost.status.code(), Some(3));
    // Without an iodepth axis, the synchronous engine is valid.
    let usual = "[[workload]]\nname = \"w\"\noptions = { size = \"1m\" }\nsweep = { runtime = 1 }\n\
                 axes = { bs = \"4k,8k\" }\n";
    scratch.file("suite.toml", usual);
    scratch.text(0, &["run", "suite.toml", ".", "--check"]);
}

/// A stopped sweep resumes within its step, and its cells are shown and stored.
#[test]
fn stopped_suite_sweep_resumes_within_step() {
    let scratch = Scratch::new("within");
    let suite = "[[workload]]\nname = \"s\"\n\
                 sweep = { runtime = \"300ms\", exhaustive = true, size = \"16m\" }\n\
                 axes = { rw = \"randread\", bs = \"4k,8k,16k\", iodepth = \"1,2\" }\n\
                 expect = [\"max_iops >= 1\"]\n";
    scratch.file("suite.toml", suite);
    fs::create_dir(scratch.0.join("target")).unwrap();
    let words = ["run", "suite.toml", "target"];
    let mut child = scratch
        .command(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let is_cell = |line: String| line.contains("depth") && line.contains("IOPS");
    assert!(lines.by_ref().any(is_cell));
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let reported: Vec<String> = lines.collect();
    let stopped = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&stopped.stdout);
    assert_eq!(stopped.status.code(), Some(130), "{reported:?}");
    assert!(text.contains("highest IOPS"), "{text}");
    assert!(
        text.contains("s: interrupted: figures up to the interruption"),
        "{text}"
    );
    assert!(
        text.contains("not measured") && !text.contains("met "),
        "{text}"
    );
    let shown = scratch.text(0, &["show", "latest"]);
    assert!(
        shown.contains("s: interrupted: figures up to the interruption"),
        "{shown}"
    );
    let resumed = scratch.run(&[&words[..], &["--resume"]].concat());
    let reported = String::from_utf8_lossy(&resumed.stderr);
    // On a shared disk the maximum may be undecided.
    assert!(matches!(resumed.status.code(), Some(0 | 12)), "{reported}");
    // Measured cells are not repeated.
    let known = reported
        .lines()
        .find_map(|line| line.split_once(" of them from an earlier run"));
    let (known, _) = known.unwrap();
    let known: usize = known.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((1..6).contains(&known), "{reported}");
    let cells = reported.lines().filter(|line| is_cell((*line).to_owned()));
    assert_eq!(cells.count(), 6 - known, "{reported}");
    // The history has one result, although no step had ended.
    let list = scratch.text(0, &["list", "--format", "json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["results"].as_array().unwrap().len(), 1, "{list}");
    assert!(list["results"][0]["finished_at_ms"].is_u64(), "{list}");
    assert!(scratch.is_empty("data/iosonde/sweeps") && scratch.is_empty("data/iosonde/suites"));
}

/// A stopped study is measured again as a whole, and replaces its runs in the history.
#[test]
fn interrupted_suite_study_is_stored_once() {
    let load =
        r#"load = { rw = "randread", size = "16m", runtime = "300ms", rates = [100, 200, 300] }"#;
    let probe = r#"probe = { quick = true, runtime = "300ms", size = "16m" }"#;
    std::thread::scope(|scope| {
        scope.spawn(|| check_interrupted_study("load", load, "offered 100 reads/s"));
        scope.spawn(|| check_interrupted_study("probe", probe, "random read, depth 1 "));
    });
}

/// Interrupts a study after the line with `first`, resumes it, and compares it with a whole one.
fn check_interrupted_study(name: &str, study: &str, first: &str) {
    let scratch = Scratch::new(&format!("twice-{name}"));
    let text = format!(
        "[[workload]]\nname = \"w\"\noptions = {{ rw = \"write\", size = \"1m\" }}\n\
         [[workload]]\nname = \"s\"\n{study}\n"
    );
    scratch.file("suite.toml", &text);
    fs::create_dir(scratch.0.join("target")).unwrap();
    let words = ["run", "suite.toml", "target"];
    // Names of the runs of each result.
    let kept = || -> Vec<Vec<String>> {
        let list = scratch.text(0, &["list", "--format", "json"]);
        let list: serde_json::Value = serde_json::from_str(&list).unwrap();
        let of = |result: &serde_json::Value| {
            let parts = result["parts"].as_array().unwrap().iter();
            let names = parts.map(|part| part["name"].as_str().unwrap().to_owned());
            names.collect()
        };
        list["results"].as_array().unwrap().iter().map(of).collect()
    };
    let mut child = scratch
        .command(&words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    assert!(lines.by_ref().any(|line| line.contains(first)), "{name}");
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.unwrap().success());
    let reported: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{reported:?}");
    let stopped = kept();
    assert!(
        stopped[0].len() > 2,
        "nothing of {name} was kept: {stopped:?}"
    );
    let resumed = scratch.run(&[&words[..], &["--resume"]].concat());
    let reported = String::from_utf8_lossy(&resumed.stderr);
    assert_eq!(resumed.status.code(), Some(0), "{reported}");
    scratch.text(0, &words);
    let [resumed, at_once] = &kept()[..] else {
        panic!("not two results");
    };
    assert_eq!(resumed, at_once);
    assert!(
        reported.contains("s was interrupted: it is measured again"),
        "{reported}"
    );
}

/// A sweep that cannot be resumed leaves no journal.
#[test]
fn failed_suite_sweep_leaves_no_journal() {
    let scratch = Scratch::new("no-journal");
    let suite = "[[workload]]\nname = \"s\"\nsweep = { runtime = 1 }\n\
                 axes = { rw = \"randwrite\", iodepth = \"1,2\" }\n\
                 [[workload]]\nname = \"w\"\noptions = { rw = \"randread\", size = \"1m\" }\n";
    scratch.file("suite.toml", suite);
    let ran = scratch.run(&["run", "suite.toml", BROKEN]);
    let reported = String::from_utf8_lossy(&ran.stderr);
    assert!(reported.contains("s: "), "{reported}");
    assert!(scratch.is_empty("data/iosonde/sweeps"), "{reported}");
}

/// `--check` must not reject a valid suite: files persist between steps.
#[test]
fn suite_check_considers_files_of_earlier_steps() {
    let scratch = Scratch::new("carried");
    let suite = r#"
[[workload]]
name = "made"
options = { rw = "write", size = "1m", filename = "data", write_iolog = "trace" }
[[workload]]
name = "found"
options = { rw = "randread", filename = "data" }
[[workload]]
name = "half"
options = { rw = "read", filename = "data", offset = "50%" }
[[workload]]
name = "replayed"
options = { read_iolog = "trace" }
"#;
    scratch.file("suite.toml", suite);
    fs::create_dir(scratch.0.join("target")).unwrap();
    let text = scratch.text(0, &["run", "suite.toml", "target", "--check"]);
    assert!(text.contains("no problems found"), "{text}");
    assert!(scratch.is_empty("target"));
    scratch.text(0, &["run", "suite.toml", "target"]);
    // A file that no earlier step creates is still an error.
    let suite =
        "[[workload]]\nname = \"w\"\noptions = { rw = \"randread\", filename = \"data\" }\n";
    scratch.file("suite.toml", suite);
    for words in [&["--check"][..], &[]] {
        scratch.text(3, &[&["run", "suite.toml", "target"], words].concat());
    }
}

#[test]
fn suite_check_reports_unwritable_directory() {
    let scratch = Scratch::new("suite-unwritable");
    let suite = "[[workload]]\nname = \"w\"\noptions = { rw = \"write\", size = \"1m\" }\n";
    scratch.file("suite.toml", suite);
    let directory = scratch.0.join("target");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o555)).unwrap();
    for check in [&["--check"][..], &[]] {
        let mut command = scratch.command(&[&["run", "suite.toml", "target"], check].concat());
        command
            .env("IOSONDE_NO_SAVE", "1")
            .env_remove("IOSONDE_STORE");
        // Root may write everywhere.
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(UNPRIVILEGED_ID).gid(UNPRIVILEGED_ID);
        }
        let output = command.output().unwrap();
        let reported = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{reported}");
        assert!(reported.contains("name a writable directory"), "{reported}");
    }
}

#[test]
fn suite_label_sets_limits_of_target() {
    let scratch = Scratch::new("limits");
    let suite = format!(
        "targets = [{{ path = \"{NET}\", labels = {{ disk = \"a\", limits \
         = \"gcp-pd-ssd:500GiB,as-of=2016\" }} }},\n\
         {{ path = \"{SLOWER}\", labels = {{ disk = \"b\", limits = \"no-such-disk\" }} }}]\n\
         [[workload]]\nname = \"r\"\noptions = {{ rw = \"randread\", bs = \"4k\", size = \"1g\", \
         iodepth = 4, time_based = 1, runtime = 2 }}\n"
    );
    scratch.file("suite.toml", &suite);
    scratch.text(0, &["run", "suite.toml"]);
    let output = scratch.run(&["show", "--pivot", "disk x kind", "--value", "r.iops"]);
    let (table, notes) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && table.contains("8.00k 53%"),
        "{table}{notes}"
    );
    assert!(
        notes.contains("note: label limits=no-such-disk: "),
        "{notes}"
    );
    assert!(
        !table
            .lines()
            .any(|line| line.contains(" b ") && line.contains('%')),
        "{table}"
    );
}
