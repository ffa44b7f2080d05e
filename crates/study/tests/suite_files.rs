//! Suite files: the schema, the suites that come with the program, and what is told of files that are wrong.

use iosonde_job::env::FakeEnv;
use iosonde_study::TimeRange;
use iosonde_study::limits::Limits;
use iosonde_study::suite::{
    BUILTIN, Found, FoundKind, MOST_RUNS, StepResult, Suite, Verdict, What, judge, suite,
    suite_schema,
};
use std::collections::BTreeMap;

fn read(name: &str, text: &str, env: &FakeEnv) -> Result<Suite, String> {
    let limits = Limits::published();
    suite(name, text, &BTreeMap::new(), limits, MOST_RUNS, env).map_err(|all| all.render(false))
}

/// `UPDATE_SCHEMA=1 cargo test -p iosonde-study` writes the file anew.
#[test]
fn the_committed_schema_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/suite.json");
    let current = serde_json::to_string_pretty(&suite_schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == current,
        "docs/schema/suite.json is out of date: run UPDATE_SCHEMA=1 cargo test -p iosonde-study"
    );
}

#[test]
fn built_in_suites_are_right_and_follow_the_schema() {
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

/// The mistakes of a suite, without their places.
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
fn mistakes_of_all_parts_of_a_suite_are_told_at_once() {
    let text = "repititions = 2\nexpect = [\"disk-randread-1.iops >= 1\", \"snyc.p99 < 10ms\"]\n\
                [[workload]]\nname = \"disk\"\noptions = { size = \"1g\" }\n\
                axes = { rw = \"randread,randwrite\", iodpeth = \"1,8\" }\n";
    let told = mistakes(text);
    let expected = [
        "there is no `repititions` in the suite",
        "there is no option `iodpeth`",
        "nothing is called `snyc`",
    ];
    assert_eq!(told, expected);
    // The member without a name may be the workload that an expectation names: names are not checked then.
    let hidden = text.replace("[[workload]]", "[[wrokload]]");
    let hidden = hidden.replace("repititions = 2\n", "");
    assert_eq!(mistakes(&hidden), ["there is no `wrokload` in the suite"]);
    // An unknown key within a workload hides no other mistake of that workload.
    let text = text.replace("repititions = 2\n", "");
    let text = text.replace("name = \"disk\"\n", "name = \"disk\"\nrepititions = 2\n");
    let expected = [
        "there is no `repititions` in Workload",
        "there is no option `iodpeth`",
        "nothing is called `snyc`",
    ];
    let told = mistakes(&text);
    assert_eq!(told.len(), 3, "{told:?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(
            told.contains(expected.split(" in ").next().unwrap()),
            "{told}"
        );
    }
}

#[test]
fn mistakes_of_all_members_of_a_study_are_told_at_once() {
    let told = mistakes(
        "[[workload]]\nname = \"a\"\n\
         load = { rw = \"sideways\", bs = \"4y\", runtime = \"0\", slo = \"p99\", rates = [0.1] }\n",
    );
    assert_eq!(told.len(), 5, "{told:?}");
    let told = mistakes(
        "[[workload]]\nname = \"a\"\noptions = { rw = \"randraed\" }\n\
         sweep = { runtime = \"0\", size = \"4y\" }\n",
    );
    assert_eq!(told.len(), 3, "{told:?}");
}

#[test]
fn mistakes_that_follow_from_another_are_not_told() {
    // What a misspelt study would be is not known, nor are its parts.
    let told = mistakes(
        "expect = [\"a.iops >= 1\"]\n[[workload]]\nname = \"a\"\nsweeep = { runtime = 1 }\n\
         [[workload]]\nname = \"b\"\noptions = { rw = \"randraed\", size = \"1g\" }\n",
    );
    assert_eq!(told.len(), 2, "{told:?}");
    // A variable that nobody has set leaves an option without a value.
    let told = mistakes(
        "expect = [\"a.iops >= 1\"]\n[[workload]]\nname = \"a\"\n\
         options = { rw = \"randread\", size = \"${size}\", bs = \"4y\" }\n",
    );
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("no variable `size`"), "{told:?}");
    // What an include would bring is not known.
    let told = mistakes("include = [\"none.toml\"]\nexpect = [\"a.iops >= 1\"]\n");
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn an_axis_is_given_once_by_whatever_name() {
    let text = "[[workload]]\nname = \"a\"\noptions = { size = \"1g\" }\n\
                axes = { bs = \"4k,8k\", iodepth = \"1,2\", blocksize = \"16k\" }\n";
    let told = read("s.toml", text, &FakeEnv::new()).unwrap_err();
    assert!(told.contains("the axis `bs` is given twice"), "{told}");
    assert!(told.contains("s.toml:4:"), "{told}");
}

#[test]
fn axes_make_a_run_each_and_variables_reach_job_files() {
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
    let What::Jobs(plan) = &suite.steps[0].what else {
        panic!("not jobs");
    };
    let job = &plan.jobs[0];
    assert_eq!(
        (job.name.as_str(), job.workload.block_size.read.max()),
        ("a-1-1", 8192)
    );
    // One layout serves all depths.
    assert_eq!(
        job.files.filename_format.as_deref(),
        Some("a.$jobnum.$filenum")
    );
    assert_eq!(suite.steps[0].planned_time(), None);
    // It may end with its data.
    let known = TimeRange {
        least_ns: 0,
        most_ns: 5_000_000_000,
    };
    assert_eq!(suite.steps[6].planned_time(), Some(known));
    assert_eq!(suite.expectations[0].parts(&suite.parts).0.len(), 6);
}

#[test]
fn load_step_of_a_suite_plans_the_range_of_its_search() {
    let text = "[[workload]]\nname = \"l\"\nload = { slo = \"p99=2ms\", size = \"1g\", runtime = \"9\" }\n";
    let suite = read("s.toml", text, &FakeEnv::new()).unwrap();
    let What::Load(options) = &suite.steps[0].what else {
        panic!("not a load");
    };
    // The capacity, thirteen rates, and up to twelve steps of the search.
    let step_ns = options.ramp_ns + options.runtime_ns;
    let planned = TimeRange::of_steps(14, 26, step_ns);
    assert_eq!(suite.steps[0].planned_time(), Some(planned));
}

#[test]
fn includes_are_taken_first_and_yaml_says_the_same() {
    let env = FakeEnv::new().file(
        "dir/common.toml",
        "[variables]\nsize = \"1g\"\n[labels]\nteam = \"db\"\n[[workload]]\nname = \"a\"\noptions = { rw = \"read\", size = \"${size}\" }\n",
    );
    let text = "include: [common.toml, etcd]\nvariables: {size: 2g}\ntargets:\n  - path: /mnt/${size}\n    labels: {disk: new}\nexpect: ['a.iops >= 100']\n";
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
    assert_eq!(names, ["a", "wal"]);
    assert_eq!(suite.expectations.len(), 2);
}

#[test]
fn all_that_is_wrong_is_told_at_once_with_its_place() {
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
fn a_promise_takes_the_size_of_the_volume_where_none_is_said() {
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
    assert!(open.of_volume(limits, None).unwrap_err().lacks("size"));
    // What is said counts, whatever the volume's size; several volumes are not one.
    assert_eq!(sized.of_volume(limits, Some(1 << 40)).unwrap(), sized);
    let several = owed("gcp-pd-ssd:disks=2,machine=n1-standard-8");
    assert!(several.of_volume(limits, Some(100 << 30)).is_err());
    // What is wrong otherwise is told with the file.
    for (product, wrong) in [
        ("gcp-pd-sdd", "no limits of"),
        ("gcp-pd-ssd", "needs machine"),
    ] {
        let told = read("s.toml", &text(product), &FakeEnv::new()).unwrap_err();
        assert!(told.contains(wrong), "{told}");
    }
}

#[test]
fn expectations_of_what_is_not_measured_are_told_before_anything_runs() {
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

/// The rate of a load that is expected to be at least 1000, judged.
fn judge_rate(
    (value, interval): (f64, Option<(f64, f64)>),
    failure: Option<&str>,
    interrupted: bool,
) -> (Verdict, String) {
    let text = "[[workload]]\nname = \"l\"\nload = { slo = \"p99=2ms\", size = \"1g\" }\n\
                expect = [\"l.rate >= 1000\"]\n";
    let suite = read("s.toml", text, &FakeEnv::new()).unwrap();
    let step = StepResult {
        workload: "l".to_owned(),
        name: "l".to_owned(),
        repetition: 1,
        parts: Vec::new(),
        elapsed_ns: 0,
        found: vec![Found {
            part: "l".to_owned(),
            rw: String::new(),
            kind: FoundKind::Rate,
            value,
            interval,
        }],
        findings: Vec::new(),
        failure: failure.map(str::to_owned),
        interrupted,
        sweep: None,
    };
    let judged = judge(&suite, &suite.expectations, &[step], &Default::default());
    (judged[0].verdict, judged[0].evidence.clone())
}

#[test]
fn figure_without_interval_near_its_bound_is_undecided() {
    for (value, verdict) in [
        (99.0, Verdict::Missed),
        (200.0, Verdict::Undecided),
        (1_100.0, Verdict::Undecided),
        (10_001.0, Verdict::Met),
    ] {
        let judged = judge_rate((value, None), None, false).0;
        assert_eq!(judged, verdict, "{value}");
    }
    let known = (200.0, Some((190.0, 210.0)));
    assert_eq!(judge_rate(known, None, false).0, Verdict::Missed);
}

/// A rate is the highest of those that were tried. An error or an interrupt leaves none.
#[test]
fn a_rate_of_a_load_that_was_cut_short_is_not_judged() {
    let rate = (100.0, Some((95.0, 105.0)));
    assert_eq!(judge_rate(rate, None, false).0, Verdict::Missed);
    let (lost, why) = judge_rate(rate, Some("the pod was lost"), false);
    assert_eq!(lost, Verdict::NotMeasured);
    assert!(why.contains("the pod was lost"), "{why}");
    assert_eq!(judge_rate(rate, None, true).0, Verdict::NotMeasured);
}

#[test]
fn suite_with_more_runs_than_any_device_lives_is_refused_before_they_are_made() {
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
        error.contains("10000000 runs") && error.contains("more than 100000"),
        "{error}"
    );
    let error = read(&(workload("a", 10, 2) + &workload("b", 9999, 10))).unwrap_err();
    assert!(error.contains("100010 runs"), "{error}");
}

#[test]
fn includes_of_a_suite_have_bounds() {
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
    assert!(error.contains("there is no workload"), "{error}");
}
