//! Files that results are written to.

use crate::common::{Scratch, error};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const DEVICE: &str = "sim:nvme";

/// A failed run leaves the previous result.
#[test]
fn failed_run_leaves_previous_result() {
    let scratch = Scratch::new("outputs-failed");
    scratch.file(
        "suite.toml",
        "format = 1\nname = \"s\"\n[[test]]\nname = \"t\"\nnonsense = 1\n",
    );
    let study = |words: &[&str]| {
        for name in ["result", "junit", "report"] {
            scratch.file(name, "old");
        }
        let output = scratch.run(words);
        assert!(!output.status.success(), "{words:?}");
        for name in ["result", "junit", "report"] {
            let text = fs::read_to_string(scratch.path(name)).unwrap();
            assert_eq!(text, "old", "{words:?}: {name}: {}", error(&output));
        }
    };
    study(&["probe", "-o", "result", "none/such"]);
    study(&["pts", "iops", "-o", "result", "none/such"]);
    study(&["load", "-o", "result", "none/such", "--rate", "1"]);
    study(&["sweep", "-o", "result", "none/such"]);
    let written = ["-o", "result", "--junit", "junit", "--report", "report"];
    study(&[&["run", "suite.toml", DEVICE], &written[..]].concat());
    study(&[
        "fio",
        "--output=result",
        "--name=a",
        "--rw=read",
        "--filename=none/such",
    ]);
    study(&["limits", "no-such-type", "-o", "result"]);
}

#[test]
fn screens_are_as_narrow_as_the_variable_columns_says() {
    let scratch = Scratch::new("outputs-narrow");
    let suite = "[[workload]]\nname = \"w\"\n\
                 options = { rw = \"write\", size = \"1m\", exec_prerun = \"touch x\" }\n";
    scratch.file("suite.toml", suite);
    fs::create_dir_all(scratch.path("target")).unwrap();
    for words in [
        "probe sim:hdd --quick",
        "probe sim:nvme --quick",
        "list",
        "run suite.toml target --logs logs --dry-run",
        "run suite.toml target --logs logs --check",
        "sweep sim:nvme --rw randwrite --bs 4k --iodepth 1..8 --dry-run",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let mut command = scratch.command(&words);
        let output = command.env("COLUMNS", "40").output().unwrap();
        assert!(output.status.success(), "{}", error(&output));
        let text = String::from_utf8_lossy(&output.stdout);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|columns| columns <= 40), "{text}");
    }
}

/// Help that could not be written ended with status 0.
#[test]
fn full_standard_output_fails_with_one_error() {
    let scratch = Scratch::new("outputs-full");
    for words in ["--help", "fio --help", "limits"] {
        let words: Vec<&str> = words.split(' ').collect();
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = scratch.command(&words).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{words:?}");
        assert_eq!(
            error(&output),
            "error: standard output: No space left on device (ENOSPC)\n\
             help: redirect the output to a file on a disk with free space\n",
            "{words:?}"
        );
    }
}

/// Starts the program with these arguments, split at spaces.
fn started(scratch: &Scratch, words: &str) -> Child {
    let words: Vec<&str> = words.split(' ').collect();
    let mut command = scratch.command(&words);
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// A killed run leaves the previous result.
#[test]
fn killed_run_leaves_previous_result() {
    let scratch = Scratch::new("outputs-killed");
    scratch.file("result", "old");
    let words = "fio --name=a --ioengine=null --size=1g --rw=read --time_based --runtime=600 \
                 --output=result --output-format=json";
    let mut child = started(&scratch, words);
    let begun = Instant::now();
    let tasks = format!("/proc/{}/task", child.id());
    // More threads than the main thread and the signal thread.
    let is_running = || fs::read_dir(&tasks).is_ok_and(|tasks| tasks.count() > 2);
    while !is_running() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "no worker has begun"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_to_string(scratch.path("result")).unwrap(), "old");
}

/// Status reports can be read before the run ends.
#[test]
fn status_reports_are_written_during_run() {
    let scratch = Scratch::new("outputs-status");
    scratch.file("result", "old");
    let words = "fio --name=a --ioengine=null --size=1g --rw=read --rate_iops=10 --time_based \
                 --runtime=600 --output=result --output-format=json --status-interval=1";
    let mut child = started(&scratch, words);
    let begun = Instant::now();
    let text = || fs::read_to_string(scratch.path("result")).unwrap();
    while !text().contains("\"jobs\"") {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "no report: {}",
            text()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Standard output is appended to, even if it is a file.
#[test]
fn redirected_stdout_is_appended_to() {
    let scratch = Scratch::new("outputs-stdout");
    scratch.file("log", "before\n");
    let program = env!("CARGO_BIN_EXE_iosonde");
    let line = format!("'{program}' doctor --format json -o /dev/stdout . >> log");
    let status = Command::new("sh")
        .args(["-c", &line])
        .current_dir(&scratch.0)
        .status();
    assert!(status.unwrap().success());
    let text = fs::read_to_string(scratch.path("log")).unwrap();
    assert!(
        text.starts_with("before\n{") && text.ends_with("}\n"),
        "{text}"
    );
}
