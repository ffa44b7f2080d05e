//! The script of the GitHub Action with the built program: summary, outputs and exit status.

use crate::common::{NET, SUITE, Scratch, error};
use std::fs;
use std::process::{Command, Output};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/action/run.sh");

const URL_SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../packaging/action/release-url.sh"
);

/// Variables that a machine may have for other purposes.
const INPUTS: [&str; 7] = [
    "SUITE",
    "TARGETS",
    "BASELINE",
    "RESULT",
    "FAIL_IF_SLOWER",
    "ARGUMENTS",
    "STORE",
];

/// Runs the script with these inputs.
fn run_script(scratch: &Scratch, inputs: &[(&str, &str)]) -> Output {
    let mut command = Command::new("bash");
    command
        .arg(SCRIPT)
        .current_dir(&scratch.0)
        .env("IOSONDE", env!("CARGO_BIN_EXE_iosonde"))
        .env("OUTPUT", scratch.path("output"))
        .env("GITHUB_STEP_SUMMARY", scratch.path("summary.md"))
        .env("GITHUB_OUTPUT", scratch.path("outputs"))
        .env("HOME", &scratch.0)
        .env("XDG_DATA_HOME", scratch.path("data"))
        .env_remove("IOSONDE_NO_SAVE");
    for name in INPUTS {
        command.env_remove(name);
    }
    command.envs(inputs.iter().copied());
    command.output().unwrap()
}

fn read(scratch: &Scratch, name: &str) -> String {
    fs::read_to_string(scratch.path(name)).unwrap()
}

/// Stores the JSON of a job whose reads take this time.
fn measure_job(scratch: &Scratch, name: &str, read_us: u32) {
    let sim = format!("--sim=parallel=1,read_us={read_us},noise=0.01,seed={read_us}");
    let words = ["fio", "--name=j", "--ioengine=sim", &sim, "--rw=randread"];
    let more = ["--size=1m", "--runtime=60", "--time_based"];
    scratch.done(&[&words[..], &more[..]].concat());
    fs::write(scratch.path(name), scratch.done(&["export", "latest"])).unwrap();
}

#[test]
fn action_with_missed_suite_writes_summary_and_files() {
    let scratch = Scratch::new("action-suite");
    scratch.file("suite.toml", SUITE);
    let inputs = [
        ("SUITE", "suite.toml"),
        ("TARGETS", NET),
        ("ARGUMENTS", "--var\nruntime=4\n--label\nbuild=main\n"),
        ("STORE", "ci.db"),
    ];
    let output = run_script(&scratch, &inputs);
    assert_eq!(output.status.code(), Some(11), "{}", error(&output));
    let summary = read(&scratch, "summary.md");
    let wanted = "## iosonde run suite.toml\n\n**Failed:** an expectation is missed";
    assert!(summary.starts_with(wanted), "{summary}");
    assert!(summary.contains("\n| "), "{summary}");
    let outputs = read(&scratch, "outputs");
    let (report, junit) = (
        scratch.path("output/report.html"),
        scratch.path("output/junit.xml"),
    );
    let (shown_report, shown_junit) = (report.display(), junit.display());
    assert_eq!(
        outputs,
        format!("status=11\nreport={shown_report}\njunit={shown_junit}\n")
    );
    assert!(fs::read_to_string(report).unwrap().contains("</html>"));
    assert!(fs::read_to_string(junit).unwrap().contains("<testsuite"));
    let words = ["list", "build=main", "--store", "ci.db", "--format", "json"];
    let listed: serde_json::Value = serde_json::from_str(&scratch.done(&words)).unwrap();
    assert_eq!(listed["results"][0]["kind"], "suite");
}

#[test]
fn action_with_slower_result_fails_with_comparison() {
    let scratch = Scratch::new("action-compare");
    measure_job(&scratch, "before.json", 10_000);
    measure_job(&scratch, "after.json", 11_000);
    let inputs = [
        ("BASELINE", "before.json"),
        ("RESULT", "after.json"),
        ("FAIL_IF_SLOWER", "5%"),
    ];
    let output = run_script(&scratch, &inputs);
    assert_eq!(output.status.code(), Some(6), "{}", error(&output));
    let summary = read(&scratch, "summary.md");
    assert!(summary.contains("significantly slower"), "{summary}");
    assert!(scratch.path("output/report.html").is_file());
    assert!(read(&scratch, "outputs").ends_with("\njunit=\n"));
    let tolerant = run_script(&scratch, &[("FAIL_IF_SLOWER", "20%"), inputs[0], inputs[1]]);
    assert_eq!(tolerant.status.code(), Some(0), "{}", error(&tolerant));
    assert!(read(&scratch, "summary.md").contains("\nPassed.\n"));
}

#[test]
fn action_with_wrong_inputs_exits_with_status_2() {
    let scratch = Scratch::new("action-inputs");
    let wrong: [&[(&str, &str)]; 4] = [
        &[],
        &[("BASELINE", "a.json")],
        &[("SUITE", "etcd"), ("RESULT", "b.json")],
        &[("BASELINE", "a"), ("RESULT", "b"), ("TARGETS", "/mnt")],
    ];
    for inputs in wrong {
        let output = run_script(&scratch, inputs);
        assert_eq!(output.status.code(), Some(2), "{inputs:?}");
        assert!(error(&output).contains("::error::"), "{inputs:?}");
    }
    // An unknown suite is an error of iosonde, which the summary has too.
    let output = run_script(&scratch, &[("SUITE", "absent.toml")]);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
    assert!(read(&scratch, "summary.md").contains("iosonde ended with status 2"));
}

/// Runs the script that selects a release. Err is its exit status.
fn release_url(inputs: &[(&str, &str)]) -> Result<String, Option<i32>> {
    let mut command = Command::new("bash");
    command
        .arg(URL_SCRIPT)
        .env("REPOSITORY", "https://example.com/o/iosonde");
    for name in ["URL", "VERSION", "ACTION_REF"] {
        command.env_remove(name);
    }
    let output = command.envs(inputs.iter().copied()).output().unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned()),
        false => Err(output.status.code()),
    }
}

#[test]
fn action_installs_release_of_its_own_tag() {
    let releases = "https://example.com/o/iosonde/releases";
    let own = concat!("download/v", env!("CARGO_PKG_VERSION"));
    let cases: [(&[(&str, &str)], &str); 7] = [
        (&[("ACTION_REF", "v9.8.7")], "download/v9.8.7"),
        (&[("ACTION_REF", "v9.8.7-rc.1")], "download/v9.8.7-rc.1"),
        (
            &[("ACTION_REF", "v9.8.7"), ("VERSION", "9.8.6")],
            "download/v9.8.6",
        ),
        (&[("VERSION", "latest")], "latest/download"),
        // A branch, and a commit: the version of the checkout.
        (&[("ACTION_REF", "main")], own),
        (&[("ACTION_REF", "1b19c80")], own),
        (&[], own),
    ];
    for (inputs, wanted) in cases {
        let url = release_url(inputs);
        assert_eq!(url, Ok(format!("{releases}/{wanted}")), "{inputs:?}");
    }
    let given = [("URL", "file:///r"), ("VERSION", "9.8.6")];
    assert_eq!(release_url(&given), Ok("file:///r".to_owned()));
    assert_eq!(release_url(&[("VERSION", "main")]), Err(Some(2)));
}
