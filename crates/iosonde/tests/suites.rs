//! `iosonde run` from outside, on simulated devices: what is printed, kept and returned.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use common::{NET, SLOWER, SUITE, Scratch};

/// A user who may do little.
const NOBODY: u32 = 65534;
const BROKEN: &str = "sim:read_us=500,parallel=4,write_error=1";

#[test]
fn verdicts_are_printed_written_for_ci_and_returned() {
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
    insta::assert_snapshot!("table", scratch.text(11, &words));
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
    // Every run of a suite is a child of one result, which can be shown again.
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
}

/// Pipelines see every failure, and `--resume` measures what failed once more, not what is known.
#[test]
fn what_failed_is_told_to_ci_and_measured_again() {
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
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}");
        let junit = fs::read_to_string(scratch.0.join("out.xml")).unwrap();
        keeps_the_strictest_schema(&junit);
        assert!(
            junit.contains("errors=\"1\"") && junit.contains("<error message=\""),
            "{junit}"
        );
        told
    };
    let told = junit("two.toml", &[]);
    assert!(told.contains("--resume goes on there"), "{told}");
    let told = junit("two.toml", &["--resume"]);
    assert!(told.contains("[2/2]") && !told.contains("[1/2]"), "{told}");
    // The history has the last result of each, once.
    let list = scratch.text(0, &["list", "--format", "json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let latest = list["results"][0]["parts"].as_array().unwrap();
    let mut names: Vec<&str> = latest
        .iter()
        .filter_map(|part| part["name"].as_str())
        .collect();
    names.dedup();
    assert_eq!(names.len(), latest.len(), "{list}");
    // Nothing was measured at all.
    let told = junit("one.toml", &[]);
    assert!(!told.contains("--resume goes on there"), "{told}");
}

/// What the schema of Ant's JUnit task asks for: attributes and order of elements.
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

/// A JUnit file without what differs from run to run.
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
fn why_the_only_run_fails_is_said_once() {
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

/// A run of 0.3 s has no interval: neither that its figures are as expected is shown, nor that they are not.
#[test]
fn expectation_of_a_run_without_interval_is_undecided_with_status_12() {
    let scratch = Scratch::new("undecided");
    let suite = |runtime: &str, expect: &str| {
        format!(
            "[[workload]]\nname = \"a\"\nexpect = [\"{expect}\"]\n\
             options = {{ rw = \"randread\", size = \"1g\", time_based = 1, runtime = \"{runtime}\", direct = 1 }}\n"
        )
    };
    scratch.file("short.toml", &suite("300ms", "iops >= 3000"));
    let said = scratch.text(12, &["run", "short.toml", NET]);
    assert!(said.contains("undecided"), "{said}");
    let words = ["run", "short.toml", NET, "--fail-if-unclear"];
    scratch.text(11, &words);
    // Ten times as far away, no interval is needed.
    scratch.file("far.toml", &suite("300ms", "iops >= 1M"));
    scratch.text(11, &["run", "far.toml", NET]);
    scratch.file("long.toml", &suite("8s", "iops >= 3000"));
    let said = scratch.text(11, &["run", "long.toml", NET]);
    assert!(said.contains("missed"), "{said}");
}

#[test]
fn repetitions_give_an_interval_and_a_baseline_is_kept() {
    let scratch = Scratch::new("baseline");
    let suite = |expect: &str| {
        format!(
            "repetitions = 3\n[[workload]]\nname = \"a\"\nexpect = [\"{expect}\"]\n\
             options = {{ rw = \"randread\", size = \"1g\", time_based = 1, runtime = 8, direct = 1 }}\n"
        )
    };
    scratch.file("first.toml", &suite("iops >= 1"));
    scratch.file(
        "second.toml",
        &suite("iops not slower than label:build=main by 5%"),
    );
    // What it is held against is looked for before anything runs.
    let output = scratch.run(&["run", "second.toml", NET]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    scratch.text(0, &["run", "first.toml", NET, "--label", "build=main"]);
    let same = scratch.text(0, &["run", "second.toml", NET]);
    assert!(same.contains("met  a IOPS: 1.000 of before"), "{same}");
    let slower = scratch.text(11, &["run", "second.toml", SLOWER]);
    assert!(slower.contains("missed  a IOPS: 0."), "{slower}");
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let scratch = Scratch::new("at-once");
    scratch.file(
        "suite.toml",
        "[[workload]]\nname = \"a\"\noptions = { rw = \"randread\", size = \"1m\" }\n\
         expect = [\"iops not slower than label:build=main by 5%\", \"p99 not slower than label:build=old by 5%\"]\n",
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
        let told = String::from_utf8(output.stderr).unwrap();
        for expected in ["/nowhere/a", "/nowhere/b"] {
            assert!(told.contains(expected), "{words:?}: {told}");
        }
        for expected in ["build=main", "build=old"]
            .iter()
            .filter(|_| words[0] == "run")
        {
            assert!(told.contains(expected), "{words:?}: {told}");
        }
    }
}

#[test]
fn more_runs_than_anybody_means_need_a_word() {
    let scratch = Scratch::new("many");
    let suite = |sweep: &str| {
        format!(
            "[[workload]]\nname = \"many\"\n{sweep}\noptions = {{ rw = \"randread\", size = \"1m\" }}\n\
             axes = {{ iodepth = \"1..200+1\", numjobs = \"1..51+1\" }}\n"
        )
    };
    for (sweep, what) in [("", "10200 runs"), ("sweep = {}", "10200 cells")] {
        scratch.file("suite.toml", &suite(sweep));
        let output = scratch.run(&["run", "suite.toml", "--check", NET]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(what) && told.contains("--yes"), "{told}");
        scratch.text(0, &["run", "suite.toml", "--check", "--yes", NET]);
    }
}

#[test]
fn what_would_run_is_shown_and_nothing_is_done() {
    let scratch = Scratch::new("dry");
    scratch.file("suite.toml", SUITE);
    let targets = [NET, "sim:hdd"];
    let words = [&["run", "suite.toml", "--dry-run"], &targets[..]].concat();
    insta::assert_snapshot!("plan", scratch.text(0, &words));
    assert_eq!(
        scratch.text(0, &["run", "suite.toml", "--check"]),
        "suite: all is well\n"
    );
    assert!(!scratch.store().exists());
    insta::assert_snapshot!("list", scratch.text(0, &["run", "--list"]));
    let shown = scratch.text(0, &["run", "--show", "etcd"]);
    assert_eq!(shown, include_str!("../../../data/suites/etcd.toml"));
    let output = scratch.run(&["run", "etdc"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("did you mean `etcd`?"), "{error}");
    let output = scratch.run(&["run", "suite.toml", "--var", "runtim=3"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("did you mean `runtime`?"), "{error}");
}

#[test]
fn a_run_that_fails_leaves_the_others_and_a_stopped_suite_goes_on() {
    let scratch = Scratch::new("resume");
    scratch.file("suite.toml", SUITE);
    let lines = |words: &[&str]| {
        let output = scratch.run(words);
        String::from_utf8(output.stderr).unwrap()
    };
    let target = NET;
    let all = lines(&["run", "suite.toml", target]);
    assert!(all.contains("[5/5] log on"), "{all}");
    // It is complete: there is nothing to resume.
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

/// A look refuses what the run would, in the same words.
#[test]
fn a_check_tells_of_consent_space_and_devices_that_cannot_be() {
    let scratch = Scratch::new("check");
    let suite = |options: &str| format!("[[workload]]\nname = \"w\"\n{options}\n");
    fs::write(scratch.0.join("precious"), vec![7; 1 << 20]).unwrap();
    let here = scratch.0.to_str().unwrap();
    for (options, target, status, told) in [
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
            3,
            "read_su",
        ),
    ] {
        scratch.file("suite.toml", &suite(options));
        let words = ["run", "suite.toml", target];
        let ran = scratch.run(&words);
        let checked = scratch.run(&[&words[..], &["--check"]].concat());
        let said = |output: &Output| {
            let all = String::from_utf8_lossy(&output.stderr).into_owned();
            let error = all.split_once("error: ").map(|(_, error)| error.to_owned());
            error.unwrap_or_else(|| panic!("{options}: {all}"))
        };
        assert_eq!(checked.status.code(), Some(status), "{}", said(&checked));
        assert_eq!(ran.status.code(), Some(status), "{}", said(&ran));
        assert!(said(&checked).contains(told), "{}", said(&checked));
        let help = |text: &str| {
            text.lines()
                .find(|line| line.starts_with("help"))
                .map(str::to_owned)
        };
        assert_eq!(help(&said(&checked)), help(&said(&ran)));
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
fn depths_of_a_synchronous_engine_are_refused_in_a_sweep() {
    let scratch = Scratch::new("synchronous");
    let suite = "[[workload]]\nname = \"w\"\noptions = { size = \"1m\" }\nsweep = { runtime = 1 }\n\
                 axes = { iodepth = \"1,2\" }\n";
    scratch.file("suite.toml", suite);
    let refused = scratch.run(&["run", "suite.toml", ".", "--check"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains("`w`: ioengine=psync"), "{told}");
    scratch.text(0, &["run", "suite.toml", NET, "--check"]);
    // A target that cannot be used is told before.
    let lost = scratch.run(&["run", "suite.toml", "nowhere", "--check"]);
    assert_eq!(lost.status.code(), Some(3));
    // Nobody asks for depths here.
    let usual = "[[workload]]\nname = \"w\"\noptions = { size = \"1m\" }\nsweep = { runtime = 1 }\n\
                 axes = { bs = \"4k,8k\" }\n";
    scratch.file("suite.toml", usual);
    scratch.text(0, &["run", "suite.toml", ".", "--check"]);
}

/// A sweep of a suite goes on within its step, and what it had found is shown and kept.
#[test]
fn a_sweep_that_was_stopped_in_a_suite_goes_on_within_it() {
    let scratch = Scratch::new("within");
    let suite = "[[workload]]\nname = \"s\"\nsweep = { runtime = 1, exhaustive = true, size = \"16m\" }\n\
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
    let told: Vec<String> = lines.collect();
    let stopped = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&stopped.stdout);
    assert_eq!(stopped.status.code(), Some(130), "{told:?}");
    assert!(text.contains("highest IOPS"), "{text}");
    assert!(
        text.contains("s: interrupted: what ran until then"),
        "{text}"
    );
    assert!(
        text.contains("not measured") && !text.contains("met "),
        "{text}"
    );
    let shown = scratch.text(0, &["show", "latest"]);
    assert!(
        shown.contains("s: interrupted: what ran until then"),
        "{shown}"
    );
    let resumed = scratch.run(&[&words[..], &["--resume"]].concat());
    let told = String::from_utf8_lossy(&resumed.stderr);
    // On a disk that others use the maximum may be undecided.
    assert!(matches!(resumed.status.code(), Some(0 | 12)), "{told}");
    // What was known is not measured again.
    let known = told
        .lines()
        .find_map(|line| line.split_once(" of them known from before"));
    let (known, _) = known.unwrap();
    let known: usize = known.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((1..6).contains(&known), "{told}");
    let cells = told.lines().filter(|line| is_cell((*line).to_owned()));
    assert_eq!(cells.count(), 6 - known, "{told}");
    // It is one result, although no step had ended.
    let list = scratch.text(0, &["list", "--format", "json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["results"].as_array().unwrap().len(), 1, "{list}");
    assert!(list["results"][0]["finished_at_ms"].is_u64(), "{list}");
    assert!(scratch.is_empty("data/iosonde/sweeps") && scratch.is_empty("data/iosonde/suites"));
}

/// A study in a suite that was stopped is measured again as a whole: what it had put into the history is not there twice.
#[test]
fn the_runs_of_an_interrupted_study_are_not_in_the_history_twice() {
    let load = r#"load = { rw = "randread", size = "16m", runtime = 1, rates = [100, 200, 300] }"#;
    let probe = r#"probe = { quick = true, runtime = 1, size = "16m" }"#;
    for (name, study, first) in [
        ("load", load, "offered 100 reads/s"),
        ("probe", probe, "random read, depth 1 "),
    ] {
        let scratch = Scratch::new(&format!("twice-{name}"));
        let text = format!(
            "[[workload]]\nname = \"w\"\noptions = {{ rw = \"write\", size = \"1m\" }}\n\
             [[workload]]\nname = \"s\"\n{study}\n"
        );
        scratch.file("suite.toml", &text);
        fs::create_dir(scratch.0.join("target")).unwrap();
        let words = ["run", "suite.toml", "target"];
        // The names of the runs of each result.
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
        let told: Vec<String> = lines.collect();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{told:?}");
        let stopped = kept();
        assert!(
            stopped[0].len() > 2,
            "nothing of {name} was kept: {stopped:?}"
        );
        let resumed = scratch.run(&[&words[..], &["--resume"]].concat());
        let told = String::from_utf8_lossy(&resumed.stderr);
        assert_eq!(resumed.status.code(), Some(0), "{told}");
        scratch.text(0, &words);
        let [resumed, at_once] = &kept()[..] else {
            panic!("not two results");
        };
        assert_eq!(resumed, at_once);
        assert!(
            told.contains("s was interrupted: it is measured again"),
            "{told}"
        );
    }
}

/// What cannot be gone on with leaves nothing to go on from.
#[test]
fn a_sweep_that_measured_nothing_leaves_no_journal() {
    let scratch = Scratch::new("no-journal");
    let suite = "[[workload]]\nname = \"s\"\nsweep = { runtime = 1 }\n\
                 axes = { rw = \"randwrite\", iodepth = \"1,2\" }\n\
                 [[workload]]\nname = \"w\"\noptions = { rw = \"randread\", size = \"1m\" }\n";
    scratch.file("suite.toml", suite);
    let ran = scratch.run(&["run", "suite.toml", BROKEN]);
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(told.contains("s: "), "{told}");
    assert!(scratch.is_empty("data/iosonde/sweeps"), "{told}");
}

/// A look must not refuse what runs: files live on from step to step.
#[test]
fn a_check_knows_of_what_earlier_steps_leave() {
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
    assert!(text.contains("all is well"), "{text}");
    assert!(scratch.is_empty("target"));
    scratch.text(0, &["run", "suite.toml", "target"]);
    // What no step before has made is still missed.
    let suite =
        "[[workload]]\nname = \"w\"\noptions = { rw = \"randread\", filename = \"data\" }\n";
    scratch.file("suite.toml", suite);
    for words in [&["--check"][..], &[]] {
        scratch.text(3, &[&["run", "suite.toml", "target"], words].concat());
    }
}

#[test]
fn a_check_tells_of_a_directory_that_cannot_be_written() {
    let scratch = Scratch::new("unwritable");
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
        // Nothing is forbidden to root.
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{told}");
        assert!(
            told.contains("name a directory that can be written"),
            "{told}"
        );
    }
}

#[test]
fn the_product_of_a_target_may_stand_in_the_suite() {
    let scratch = Scratch::new("limits");
    let suite = format!(
        "targets = [{{ path = \"{NET}\", labels = {{ disk = \"a\", limits = \"gcp-pd-ssd:500GiB,as-of=2016\" }} }},\n\
         {{ path = \"{SLOWER}\", labels = {{ disk = \"b\", limits = \"no-such-disk\" }} }}]\n\
         [[workload]]\nname = \"r\"\noptions = {{ rw = \"randread\", bs = \"4k\", size = \"1g\", iodepth = 4, time_based = 1, runtime = 2 }}\n"
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
