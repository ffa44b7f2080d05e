//! A job file that the agent runs by itself, as in the pods of rendered manifests.

mod job_on_device;

use iosonde_result::run::RunResult;
use iosonde_result::run_error::{RunError, UnsupportedFeature};
use iosonde_result::wire::{LOG_END_MARK, NOT_KEPT_STATUS, read_outcome};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const AGENT: &str = env!("CARGO_BIN_EXE_iosonde-agent");
const JOB: &str = "[t]\nrw=randwrite\nbs=4k\nsize=1m\nioengine=psync\ndirectory=/elsewhere\n";

fn job(directory: &Path, text: &str, more: &[&str]) -> Command {
    let file = directory.join("job.fio");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(AGENT);
    command
        .arg("job")
        .arg("--scratch")
        .arg(directory.join("scratch"))
        .args(more)
        .arg(file);
    command
}

fn outcome(output: &Output) -> Result<RunResult, RunError> {
    let log = String::from_utf8_lossy(&output.stdout);
    read_outcome(&log).unwrap_or_else(|| panic!("no result: {log}"))
}

#[test]
fn job_prints_fio_output_then_result_and_removes_files() {
    let directory = tempfile::tempdir().unwrap();
    let output = job(directory.path(), JOB, &[]).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    assert!(
        complaint.contains("directory=/elsewhere is the volume"),
        "{complaint}"
    );
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("write: IOPS="), "{printed}");
    let result = outcome(&output).unwrap();
    assert_eq!(result.workers[0].directions.write.total_ios, 256);
    assert!(!directory.path().join("scratch").exists());
}

#[test]
fn refused_job_writes_its_error_as_outcome() {
    let directory = tempfile::tempdir().unwrap();
    let text = JOB.replace("size=1m", "size=900t");
    let output = job(directory.path(), &text, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let error = outcome(&output).unwrap_err();
    assert!(matches!(error, RunError::NoSpace { .. }), "{error:?}");
    assert!(!directory.path().join("scratch").exists());
}

#[test]
fn job_with_stay_keeps_its_result_until_terminated() {
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("result");
    let more = ["--stay", "--keep", kept.to_str().unwrap()];
    let mut child = job(directory.path(), JOB, &more)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while line.trim_end() != LOG_END_MARK {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "it ended");
    }
    assert_eq!(child.try_wait().unwrap(), None, "it stays");
    // A node truncates logs: the result can be read again in the pod.
    let read = |more: &[&str], path: &Path| {
        let mut result = Command::new(AGENT);
        result.arg("result").args(more).arg(path).output().unwrap()
    };
    let kept_output = read(&[], &kept);
    let result = outcome(&kept_output).unwrap();
    assert_eq!(result.workers[0].directions.write.total_ios, 256);
    // A connection that broke behind 100 bytes.
    assert_eq!(
        read(&["--from", "100"], &kept).stdout,
        kept_output.stdout[100..]
    );
    let missing = read(&[], &directory.path().join("other"));
    assert_eq!(missing.status.code(), Some(i32::from(NOT_KEPT_STATUS)));
    let id = child.id().to_string();
    assert!(Command::new("kill").arg(id).status().unwrap().success());
    out.read_to_string(&mut line).unwrap();
    assert!(child.wait().unwrap().success());
}

/// The file of an applied manifest may have been changed by any user.
#[test]
fn job_that_leaves_its_volume_is_refused_before_start() {
    let directory = tempfile::tempdir().unwrap();
    let outside = directory.path().join("outside");
    let name = outside.to_str().unwrap();
    for option in [
        format!("exec_prerun=touch {name}"),
        format!("exec_postrun=touch {name}"),
        format!("mem=mmap:{name}"),
        format!("write_iolog={name}"),
        format!("write_bw_log={name}"),
    ] {
        let output = job(directory.path(), &format!("{JOB}{option}\n"), &[])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3), "{option}");
        let error = outcome(&output).unwrap_err();
        let (name, _) = option.split_once('=').unwrap();
        let RunError::NoFeature { cause } = &error else {
            panic!("{option}: {error:?}");
        };
        let is_named = matches!(
            &**cause,
            UnsupportedFeature::OutsideAccess { option, .. } if option == name
        );
        assert!(is_named, "{error:?}");
        let made = std::fs::read_dir(directory.path()).unwrap().flatten();
        let made: Vec<_> = made.map(|entry| entry.file_name()).collect();
        assert_eq!(made, ["job.fio"], "{option}");
    }
}

#[test]
fn control_characters_of_a_job_file_are_escaped_in_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let text = JOB.replace(
        "[t]",
        "[t\u{1b}]0;title\u{7}\u{9b}2J]\ndescription=\u{202e}lines",
    );
    let output = job(directory.path(), &text, &[]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(printed.contains("t\\u001b]0;title"), "{printed}");
    let is_raw = |c: char| c.is_control() && !"\n\t".contains(c) || c == '\u{202e}';
    assert!(!printed.contains(is_raw), "{printed:?}");
    // The result that `collect` reads has the name unchanged.
    let result = outcome(&output).unwrap();
    assert_eq!(result.plan.jobs[0].name, "t\u{1b}]0;title\u{7}\u{9b}2J");
}
