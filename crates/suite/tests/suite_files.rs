//! Suite files: the schema, the built-in suites, and the errors of wrong files.

use iosonde_job::env::FakeEnv;
use iosonde_limits::Limits;
use iosonde_study::TimeRange;
use iosonde_suite::{
    BUILTIN, ExpectationVerdict, FigureUnit, JudgedExpectation, MOST_RUNS, StepKind, StepResult,
    StudyFigure, StudyFigureKind, Suite, SuitePods, judge, suite, suite_schema,
};
use std::collections::BTreeMap;

fn read(name: &str, text: &str, env: &FakeEnv) -> Result<Suite, String> {
    let limits = Limits::published();
    suite(name, text, &BTreeMap::new(), limits, MOST_RUNS, env).map_err(|all| all.render(false))
}

/// `UPDATE_SCHEMA=1 cargo test -p iosonde-suite` rewrites the file.
#[test]
fn committed_schema_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/suite.json");
    let current = serde_json::to_string_pretty(&suite_schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == current,
        "docs/schema/suite.json is out of date: run UPDATE_SCHEMA=1 cargo test -p iosonde-suite"
    );
}

#[test]
fn built_in_suites_are_valid_and_match_schema() {
    let validator = jsonschema::validator_for(&suite_schema()).unwrap();
    for built_in in BUILTIN {
        let suite = read(&built_in.file_name(), built_in.text, &FakeEnv::new());
        let suite = suite.unwrap_or_else(|errors| panic!("{}: {errors}", built_in.name));
        assert_eq!(suite.name, built_in.name);
        assert!(suite.warnings.list.is_empty(), "{}", suite.warnings);
        assert!(
            suite.about.is_some() && !suite.parts.is_empty(),
            "{}",
            built_in.name
        );
        assert!(
            built_in.text.contains("Source"),
            "{} says no source",
            built_in.name
        );
        let value: toml::Value = toml::from_str(built_in.text).unwrap();
        let value = serde_json::to_value(value).unwrap();
        assert!(validator.is_valid(&value), "{}", built_in.name);
    }
}

/// The messages of all errors of a suite, without their positions.
fn mistakes(text: &str) -> Vec<String> {
    let limits = Limits::published();
    let read = suite(
        "s.toml",
        text,
        &BTreeMap::new(),
        limits,
        MOST_RUNS,
        &FakeEnv::new(),
    );
    let all = read.map_or_else(|all| all, |suite| suite.warnings);
    all.list.into_iter().map(|one| one.message).collect()
}

#[test]
fn errors_of_all_suite_parts_are_reported_together() {
    let text = "repititions = 2\nexpect = [\"disk-randread-1.iops >= 1\", \"snyc.p99 < 10ms\"]\n\
                [[workload]]\nname = \"disk\"\noptions = { size = \"1g\" }\n\
                axes = { rw = \"randread,randwrite\", iodpeth = \"1,8\" }\n";
    let reported = mistakes(text);
    let expected = [
        "unknown key `repititions` in the suite",
        "there is no option `iodpeth`",
        "no workload or figure is named `snyc`",
    ];
    assert_eq!(reported, expected);
    // The misspelt member may be the workload of an expectation, so names are not checked.
    let hidden = text.replace("[[workload]]", "[[wrokload]]");
    let hidden = hidden.replace("repititions = 2\n", "");
    assert_eq!(mistakes(&hidden), ["unknown key `wrokload` in the suite"]);
    // An unknown key within a workload hides no other error of that workload.
    let text = text.replace("repititions = 2\n", "");
    let text = text.replace("name = \"disk\"\n", "name = \"disk\"\nrepititions = 2\n");
    let expected = [
        "unknown key `repititions` in Workload",
        "there is no option `iodpeth`",
        "no workload or figure is named `snyc`",
    ];
    let reported = mistakes(&text);
    assert_eq!(reported.len(), 3, "{reported:?}");
    for (reported, expected) in reported.iter().zip(expected) {
        assert!(
            reported.contains(expected.split(" in ").next().unwrap()),
            "{reported}"
        );
    }
}

#[test]
fn errors_of_all_study_members_are_reported_together() {
    let reported = mistakes(
        "[[workload]]\nname = \"a\"\n\
         load = { rw = \"sideways\", bs = \"4y\", runtime = \"0\", slo = \"p99\", rates = [0.1] \
         }\n",
    );
    assert_eq!(reported.len(), 5, "{reported:?}");
    let reported = mistakes(
        "[[workload]]\nname = \"a\"\noptions = { rw = \"randraed\" }\n\
         sweep = { runtime = \"0\", size = \"4y\" }\n",
    );
    assert_eq!(reported.len(), 3, "{reported:?}");
}

#[test]
fn errors_that_follow_from_another_are_not_reported() {
    // The parts of a misspelt study are unknown.
    let reported = mistakes(
        "expect = [\"a.iops >= 1\"]\n[[workload]]\nname = \"a\"\nsweeep = { runtime = 1 }\n\
         [[workload]]\nname = \"b\"\noptions = { rw = \"randraed\", size = \"1g\" }\n",
    );
    assert_eq!(reported.len(), 2, "{reported:?}");
    // An undefined variable leaves an option without a value.
    let reported = mistakes(
        "expect = [\"a.iops >= 1\"]\n[[workload]]\nname = \"a\"\n\
         options = { rw = \"randread\", size = \"${size}\", bs = \"4y\" }\n",
    );
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(reported[0].contains("no variable `size`"), "{reported:?}");
    // The members of a missing include are unknown.
    let reported = mistakes("include = [\"none.toml\"]\nexpect = [\"a.iops >= 1\"]\n");
    assert_eq!(reported.len(), 1, "{reported:?}");
}

#[test]
fn section_of_invalid_job_file_beside_suite_may_be_expected() {
    let env = FakeEnv::new().file("job.fio", "[reader]\nrw=randraed\nsize=1g\n");
    let text = "expect = [\"reader.iops >= 1\"]\n[[workload]]\nname = \"a\"\nfile = \"job.fio\"\n";
    for name in ["s.toml", "./s.toml"] {
        let reported = read(name, text, &env).unwrap_err();
        assert!(reported.contains("randraed"), "{reported}");
        assert!(!reported.contains("is named `reader`"), "{reported}");
    }
}

#[test]
fn axis_given_twice_by_synonym_is_refused() {
    let text = "[[workload]]\nname = \"a\"\noptions = { size = \"1g\" }\n\
                axes = { bs = \"4k,8k\", iodepth = \"1,2\", blocksize = \"16k\" }\n";
    let reported = read("s.toml", text, &FakeEnv::new()).unwrap_err();
    assert!(
        reported.contains("the axis `bs` is given twice"),
        "{reported}"
    );
    assert!(reported.contains("s.toml:4:"), "{reported}");
}

#[test]
fn axes_keep_section_that_file_names_contain() {
    let text = r#"
[[workload]]
name = "w"
axes = { bs = ["4k", "8k"] }
job = """
[plain]
size=1m
[renamed]
name=other
size=1m
[formatted]
filename_format=$jobname.$filenum
size=1m
[named]
filename=file
size=1m
"""
"#;
    let suite = read("s.toml", text, &FakeEnv::new()).unwrap();
    assert_eq!(suite.steps.len(), 2);
    for (step, value) in suite.steps.iter().zip(["4k", "8k"]) {
        let StepKind::Jobs(plan) = &step.what else {
            panic!("not jobs");
        };
        assert_eq!(plan.jobs[1].name, format!("other-{value}"));
        let sections = plan.jobs.iter().map(|job| job.files.section.as_deref());
        let sections: Vec<_> = sections.collect();
        let expected = [Some("plain"), Some("renamed"), Some("formatted"), None];
        assert_eq!(sections, expected, "{value}");
    }
}

#[test]
fn axes_multiply_runs_and_variables_reach_job_files() {
    let text = r#"
repetitions = 3
[variables]
bs = "8k"
[[workload]]
name = "a"
options = { rw = "randread", size = "1g", bs = "${bs}" }
axes = { iodepth = "1..4", numjobs = [1, 16] }
expect = ["iops >= 1k", "a-16-4.p99 <= 1ms"]
[[workload]]
name = "b"
repetitions = 1
job = """
[one]
rw=write
fdatasync=1
size=1g
bs=${bs}
runtime=5
"""
expect = ["one.sync.p99 <= 10ms"]
"#;
    let suite = read("x.toml", text, &FakeEnv::new()).unwrap();
    let names: Vec<&str> = suite.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names.len(), 7);
    assert_eq!((names[0], names[6]), ("a 1 1", "b"));
    assert_eq!(
        (suite.steps[0].repetitions, suite.steps[6].repetitions),
        (3, 1)
    );
    let StepKind::Jobs(plan) = &suite.steps[0].what else {
        panic!("not jobs");
    };
    let job = &plan.jobs[0];
    assert_eq!(
        (job.name.as_str(), job.workload.block_size.read.max()),
        ("a-1-1", 8192)
    );
    // One layout serves all depths: file names are made from the section.
    assert_eq!(job.files.section.as_deref(), Some("a"));
    assert_eq!(job.files.filename_format, None);
    assert_eq!(suite.steps[0].planned_time(), None);
    // A job that is not time based may end with its data.
    let known = TimeRange {
        least_ns: 0,
        most_ns: 5_000_000_000,
    };
    assert_eq!(suite.steps[6].planned_time(), Some(known));
    assert_eq!(suite.expectations[0].parts(&suite.parts).0.len(), 6);
}

#[test]
fn load_step_plans_time_of_its_search() {
    let text = "[[workload]]\nname = \"l\"\nload = { slo = \"p99=2ms\", size = \"1g\", runtime = \
                \"9\" }\n";
    let suite = read("s.toml", text, &FakeEnv::new()).unwrap();
    let StepKind::Load(options) = &suite.steps[0].what else {
        panic!("not a load");
    };
    // The capacity, thirteen rates, and up to twelve steps of the search.
    let step_ns = options.ramp_ns + options.runtime_ns;
    let planned = TimeRange::from_steps(14, 26, step_ns);
    assert_eq!(suite.steps[0].planned_time(), Some(planned));
}

#[test]
fn includes_are_overridden_by_including_yaml_file() {
    let env = FakeEnv::new().file(
        "dir/common.toml",
        "[variables]\nsize = \"1g\"\n[labels]\nteam = \"db\"\n[[workload]]\nname = \"a\"\noptions \
         = { rw = \"read\", size = \"${size}\" }\n",
    );
    let text = "include: [common.toml, etcd]\nvariables: {size: 2g}\ntargets:\n  - path: \
                /mnt/${size}\n    labels: {disk: new}\nexpect: ['a.iops >= 100']\n";
    let suite = read("dir/x.yaml", text, &env).unwrap();
    assert_eq!(suite.name, "x");
    assert_eq!(suite.targets[0].name, "/mnt/2g");
    assert_eq!(suite.targets[0].labels["disk"], "new");
    assert_eq!(suite.labels["team"], "db");
    let names: Vec<&str> = suite
        .steps
        .iter()
        .map(|step| step.workload.as_str())
        .collect();
    assert_eq!(names, ["a", "wal", "wal"]);
    let beside = suite.steps[2].beside.as_ref().unwrap();
    assert_eq!(beside.options, "rw=write bs=64k rate=50m");
    assert_eq!(suite.expectations.len(), 2);
}

#[test]
fn errors_are_reported_together_with_positions() {
    let text = r#"
targts = ["."]
repetitions = 0
[[workload]]
name = "a"
option = { rw = "read" }
expect = "iops >= 1"
"#;
    insta::assert_snapshot!(
        "shape",
        read("suite.toml", text, &FakeEnv::new()).unwrap_err()
    );
    let text = "include = [\"headlin\"]\n";
    insta::assert_snapshot!(
        "include",
        read("suite.toml", text, &FakeEnv::new()).unwrap_err()
    );
    let text = r#"
labels = { disk = "${disc}" }
[variables]
disk = "new"
[[workload]]
name = "a"
options = { rw = "randraed", size = "1g", iodept = 4 }
[[workload]]
name = "b"
axes = { bs = "4k,,8k", iodepth = "8..1" }
options = { rw = "read", size = "1g" }
[[workload]]
name = "c"
job = """
[c]
rw=read
bs=4y
"""
[[workload]]
name = "d"
probe = {}
options = { rw = "read" }
[[workload]]
name = "e"
[[workload]]
name = "f"
load = { rw = "sideways" }
"#;
    insta::assert_snapshot!(
        "meaning",
        read("suite.toml", text, &FakeEnv::new()).unwrap_err()
    );
}

#[test]
fn promise_without_size_uses_size_of_volume() {
    let text = |product: &str| {
        format!(
            "expect = [\"wal.iops >= 90% of limits:{product}\"]\n[[workload]]\nname = \"wal\"\n\
             options = {{ rw = \"randwrite\", size = \"1g\" }}\n"
        )
    };
    let owed = |product: &str| {
        let suite = read("s.toml", &text(product), &FakeEnv::new()).unwrap();
        suite.expectations[0].clone()
    };
    let (open, sized) = (
        owed("gcp-pd-ssd:machine=n1-standard-8"),
        owed("gcp-pd-ssd:100GiB,machine=n1-standard-8"),
    );
    let limits = Limits::published();
    let taken = open.of_volume(limits, Some(100 << 30)).unwrap();
    assert_eq!(taken.promise, sized.promise);
    let without_size = open.of_volume(limits, None).unwrap_err();
    assert!(without_size.lacks("size"));
    let remedy = "for example `wal.iops >= 90% of \
                  limits:gcp-pd-ssd:machine=n1-standard-8,size=375GiB`";
    assert_eq!(open.remedy(limits, &without_size), remedy);
    owed("gcp-pd-ssd:machine=n1-standard-8,size=375GiB");
    // A size in the suite overrides that of the volume. Several volumes have no single size.
    assert_eq!(sized.of_volume(limits, Some(1 << 40)).unwrap(), sized);
    let several = owed("gcp-pd-ssd:disks=2,machine=n1-standard-8");
    assert!(several.of_volume(limits, Some(100 << 30)).is_err());
    // Other errors of a promise are reported with the file.
    for (product, wrong) in [
        ("gcp-pd-sdd", "no limits for"),
        ("gcp-pd-ssd", "needs machine"),
        (
            "gcp-pd-ssd",
            "`wal.iops >= 90% of limits:gcp-pd-ssd:machine=n1-standard-8`",
        ),
        (
            "gcp-pd-ssd:375GiB,machine=n1",
            "`wal.iops >= 90% of limits:gcp-pd-ssd:375GiB,machine=n1,vcpus=8`",
        ),
    ] {
        let reported = read("s.toml", &text(product), &FakeEnv::new()).unwrap_err();
        assert!(reported.contains(wrong), "{reported}");
    }
}

#[test]
fn expectations_of_unmeasured_figures_fail_before_any_run() {
    let text = r#"
expect = [
    "wal.sync.p99 <= 10ms",
    "wla.iops >= 10",
    "wal.read.iops >= 10",
    "wal.knee <= 8",
    "wal.p99 <= 10",
    "wal.iops >= 90% of limits:gcp-pd-sdd:100GiB",
]
[[workload]]
name = "wal"
options = { rw = "write", size = "1g", fdatasync = 1, bs = "8k" }
"#;
    insta::assert_snapshot!(read("suite.toml", text, &FakeEnv::new()).unwrap_err());
}

/// Verdict and evidence of [`judged_rate`].
fn judge_rate(
    found: (f64, Option<(f64, f64)>),
    failure: Option<&str>,
    interrupted: bool,
) -> (ExpectationVerdict, String) {
    let judged = judged_rate(found, failure, interrupted);
    (judged.verdict, judged.evidence)
}

/// Judges a load study's rate that is expected to be at least 1000.
fn judged_rate(
    (value, interval): (f64, Option<(f64, f64)>),
    failure: Option<&str>,
    interrupted: bool,
) -> JudgedExpectation {
    let text = "[[workload]]\nname = \"l\"\nload = { slo = \"p99=2ms\", size = \"1g\" }\n\
                expect = [\"l.rate >= 1000\"]\n";
    let suite = read("s.toml", text, &FakeEnv::new()).unwrap();
    let step = StepResult {
        found: vec![StudyFigure {
            part: "l".to_owned(),
            rw: String::new(),
            kind: StudyFigureKind::Rate,
            value,
            interval,
        }],
        failure: failure.map(str::to_owned),
        interrupted,
        ..StepResult::without_figures("l", "l", 1)
    };
    let mut judged = judge(&suite, &suite.expectations, &[step], &Default::default());
    judged.remove(0)
}

#[test]
fn figure_without_interval_near_its_bound_is_undecided() {
    for (value, verdict) in [
        (99.0, ExpectationVerdict::Missed),
        (200.0, ExpectationVerdict::Undecided),
        (1_100.0, ExpectationVerdict::Undecided),
        (10_001.0, ExpectationVerdict::Met),
    ] {
        let judged = judge_rate((value, None), None, false).0;
        assert_eq!(judged, verdict, "{value}");
    }
    let known = (200.0, Some((190.0, 210.0)));
    assert_eq!(judge_rate(known, None, false).0, ExpectationVerdict::Missed);
}

#[test]
fn evidence_of_a_failed_step_has_no_help() {
    let text = "[[workload]]\nname = \"l\"\nload = { slo = \"p99=2ms\", size = \"1g\" }\n\
                expect = [\"l.rate >= 1000\"]\n";
    let suite = read("s.toml", text, &FakeEnv::new()).unwrap();
    let step = StepResult {
        failure: Some("no space\nhelp: free some".to_owned()),
        problem: Some("no space".to_owned()),
        ..StepResult::without_figures("l", "l", 1)
    };
    let judged = judge(&suite, &suite.expectations, &[step], &Default::default());
    assert_eq!(judged[0].evidence, "the run failed: no space");
    assert_eq!(
        judged[0].failure.as_deref(),
        Some("no space\nhelp: free some")
    );
}

#[test]
fn judged_figure_has_its_interval_apart_from_the_evidence() {
    let judged = judged_rate((1_200.0, Some((1_100.0, 1_300.0))), None, false);
    assert_eq!(judged.evidence, "1.20k, expected >= 1.00k");
    let measured = judged.measured.as_deref().unwrap();
    assert_eq!(measured.interval, Some((1_100.0, 1_300.0)));
    assert_eq!(
        (measured.value, measured.unit, measured.claim.as_str()),
        (1_200.0, Some(FigureUnit::PerSecond), "expected >= 1.00k")
    );
    let lost = judged_rate((1_200.0, None), Some("the pod was lost"), false);
    assert_eq!(lost.measured, None);
}

/// The rate is the highest one that was tried, so an error or an interrupt leaves no valid rate.
#[test]
fn load_rate_of_interrupted_study_is_not_judged() {
    let rate = (100.0, Some((95.0, 105.0)));
    assert_eq!(judge_rate(rate, None, false).0, ExpectationVerdict::Missed);
    let (lost, why) = judge_rate(rate, Some("the pod was lost"), false);
    assert_eq!(lost, ExpectationVerdict::NotMeasured);
    assert!(why.contains("the pod was lost"), "{why}");
    assert_eq!(
        judge_rate(rate, None, true).0,
        ExpectationVerdict::NotMeasured
    );
}

#[test]
fn suite_with_too_many_runs_is_refused_before_planning() {
    let workload = |name: &str, depths: usize, jobs: usize| {
        format!(
            "[[workload]]\nname = \"{name}\"\noptions = {{ rw = \"read\", size = \"1g\" }}\n\
             axes = {{ iodepth = \"1..{depths}+1\", numjobs = \"1..{jobs}+1\" }}\n"
        )
    };
    let read = |text: &str| {
        let limits = Limits::published();
        let env = FakeEnv::new();
        suite("s.toml", text, &BTreeMap::new(), limits, usize::MAX, &env)
            .map_err(|all| all.render(false))
    };
    let error = read(&workload("a", 10_000, 1000)).unwrap_err();
    assert!(
        error.contains("10000000 runs") && error.contains("more than the limit of 100000"),
        "{error}"
    );
    let error = read(&(workload("a", 10, 2) + &workload("b", 9999, 10))).unwrap_err();
    assert!(error.contains("100010 runs"), "{error}");
}

#[test]
fn suite_includes_are_bounded() {
    let mut env = FakeEnv::new().file("a.toml", "include = [\"b.toml\"]\n");
    env = env.file("b.toml", "include = [\"a.toml\"]\n");
    let error = read("a.toml", "include = [\"b.toml\"]\n", &env).unwrap_err();
    assert!(error.contains("a.toml includes itself"), "{error}");
    for depth in 1..=16 {
        let text = format!("include = [\"{}.toml\"]\n", depth + 1);
        env = env.file(&format!("{depth}.toml"), &text);
    }
    let error = read("0.toml", "include = [\"1.toml\"]\n", &env).unwrap_err();
    assert!(error.contains("too deeply"), "{error}");
    env = env.file("leaf.toml", "about = \"x\"\n");
    let text = |count| format!("include = [{}]\n", "\"leaf.toml\", ".repeat(count));
    let error = read("x.toml", &text(257), &env).unwrap_err();
    assert!(error.contains("more than 256 includes"), "{error}");
    let error = read("x.toml", &text(256), &env).unwrap_err();
    assert!(error.contains("has no workload"), "{error}");
}

#[test]
fn command_is_a_step_with_its_figure_and_expectation() {
    let text = r#"
[[workload]]
name = "tpcb"
expect = ["figure >= 400"]
[workload.command]
run = "pgbench -c 8 -T 60 -P 1 bench"
figure = 'tps = ([0-9.]+)'
series = 'progress: .* ([0-9.]+) tps'
unit = "tps"
timeout = "2m"
"#;
    let suite = read("s.toml", text, &FakeEnv::new()).unwrap();
    let StepKind::Command(command) = &suite.steps[0].what else {
        panic!("{:?}", suite.steps);
    };
    assert_eq!(command.run, "pgbench -c 8 -T 60 -P 1 bench");
    assert_eq!(command.timeout_ns, 120_000_000_000);
    assert_eq!(suite.steps[0].planned_time(), None);
    let (parts, subject) = suite.expectations[0].parts(&suite.parts);
    assert_eq!((parts.len(), subject), (1, None));
}

#[test]
fn wrong_command_is_reported_at_its_members() {
    let errors = |members: &str| {
        let text = format!("[[workload]]\nname = \"tpcb\"\n[workload.command]\n{members}\n");
        read("s.toml", &text, &FakeEnv::new()).unwrap_err()
    };
    let all = [
        errors("figure = 'tps = (.*)'"),
        errors("run = 'pgbench'"),
        errors("run = 'pgbench'\nfigure = 'tps'"),
        errors("run = 'pgbench'\nfigure = 'tps = (.*'"),
        errors("run = 'pgbench'\nfigure = '(.*)'\ntimeout = 'soon'"),
        errors("run = 'pgbench'\nfigure = '(.*)'\nallow_commands = true"),
    ];
    insta::assert_snapshot!(all.join("\n"), @r#"
    error: the command has no command line
     --> s.toml:3:1
      |
    3 | [workload.command]
      | ^^^^^^^^^^^^^^^^^^
      |
      = help: add run = "...", e.g. run = "pgbench -P 1 -T 60 bench"
    error: `figure` is no pattern of a figure: it is empty
     --> s.toml:3:1
      |
    3 | [workload.command]
      | ^^^^^^^^^^^^^^^^^^
      |
      = help: use a regular expression with a group ( ) for the number, e.g. 'tps = ([0-9.]+)'
    error: `figure` is no pattern of a figure: the pattern has no group ( ) for the number
     --> s.toml:5:10
      |
    5 | figure = 'tps'
      |          ^^^^^
      |
      = help: use a regular expression with a group ( ) for the number, e.g. 'tps = ([0-9.]+)'
    error: `figure` is no pattern of a figure: unclosed group
     --> s.toml:5:10
      |
    5 | figure = 'tps = (.*'
      |          ^^^^^^^^^^^
      |
      = help: use a regular expression with a group ( ) for the number, e.g. 'tps = ([0-9.]+)'
    error: `soon` is not a time
     --> s.toml:3:1
      |
    3 | [workload.command]
      | ^^^^^^^^^^^^^^^^^^
      |
      = help: use seconds, or a unit, e.g. 2m
    error: unknown key `allow_commands` in command
     --> s.toml:6:1
      |
    6 | allow_commands = true
      | ^^^^^^^^^^^^^^
      |
      = help: valid keys: run, figure, series, unit, timeout
    "#);
}

#[test]
fn pods_of_a_suite_are_a_number_or_one_per_node() {
    let workload = "[[workload]]\nname = \"w\"\noptions = { rw = \"read\", size = \"1m\" }\n";
    let pods = |head: &str| {
        let text = format!("{head}\n{workload}");
        read("s.toml", &text, &FakeEnv::new()).map(|suite| suite.pods)
    };
    assert_eq!(pods("").unwrap(), None);
    assert_eq!(pods("pods = 4").unwrap(), Some(SuitePods::Count(4)));
    assert_eq!(pods("per_node = true").unwrap(), Some(SuitePods::PerNode));
    let both = pods("pods = 4\nper_node = true").unwrap_err();
    assert!(both.contains("both `pods` and `per_node`"), "{both}");
    let none = pods("pods = 0").unwrap_err();
    assert!(none.contains("at least 1"), "{none}");
    let word = pods("pods = \"many\"").unwrap_err();
    assert!(word.contains("`pods`"), "{word}");
}
