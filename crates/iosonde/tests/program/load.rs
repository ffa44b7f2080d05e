//! `iosonde load` from outside: on a real directory, and interrupted.

use crate::common::Scratch;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A study of a small file, without history.
fn load(scratch: &Scratch, words: &[&str]) -> Command {
    let mut command = scratch.command(&["load", "--size", "16m", "--no-save"]);
    command.args(words);
    command
}

fn is_empty(scratch: &Scratch) -> bool {
    fs::read_dir(&scratch.0).unwrap().next().is_none()
}

#[test]
fn load_at_low_rate_achieves_rate_and_removes_file() {
    let scratch = Scratch::new("load-light");
    let words = "--rw randrw --rates 40 --runtime 1 --ramp 1 --format json --slo max=1m";
    let words: Vec<&str> = words.split(' ').collect();
    let output = load(&scratch, &words).output().unwrap();
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{reported}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let point = &document["load"]["points"][0];
    for side in ["read", "write"] {
        assert_eq!(point[side]["offered_per_s"], 20.0, "{point}");
        assert!(
            point[side]["latency"]["count"].as_u64().unwrap() > 0,
            "{point}"
        );
    }
    assert!(is_empty(&scratch));
}

/// Interrupts a study some time after its file exists. Returns its output.
fn interrupted_load(after: Duration) -> String {
    let scratch = Scratch::new("load-interrupt");
    let mut child = load(
        &scratch,
        &["--rates", "100,200", "--runtime", "60", "--ramp", "1"],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    while is_empty(&scratch) && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(after);
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let output = child.wait_with_output().unwrap();
    assert!(is_empty(&scratch));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn load_interrupt_prints_points_and_removes_file() {
    // The layout and the ramp come first, which take longer on a busy machine.
    let has_figures = [2500, 10_000, 30_000].into_iter().any(|after_ms| {
        let text = interrupted_load(Duration::from_millis(after_ms));
        eprintln!("interrupted after {after_ms} ms: {text}");
        text.contains("interrupted: figures up to the interruption")
    });
    assert!(has_figures);
}

/// Points of a study may have taken hours.
#[test]
fn lost_load_target_keeps_earlier_points() {
    // A busy machine may remove the target after the last point.
    assert!((0..5).any(|_| check_lost_target()), "always ended first");
}

/// Removes the target of a study after its first point, and checks the result. Returns false if the
/// study ended before.
fn check_lost_target() -> bool {
    let scratch = Scratch::new("load-lost");
    let target = scratch.path("target");
    fs::create_dir(&target).unwrap();
    let words = "load target --size 16m --rates 40,50,60 --runtime 1 --ramp 1 --details";
    let words: Vec<&str> = words.split(' ').collect();
    let mut child = scratch
        .command(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let is_point = |line: &String| line.contains("40 reads/s");
    assert!(
        lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| is_point(&line))
    );
    // A missing directory would be created again, as in fio. It may reappear meanwhile.
    while fs::write(&target, "").is_err() {
        let _ = fs::remove_dir_all(&target);
    }
    let reported: Vec<String> = lines.map_while(Result::ok).collect();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        return false;
    }
    assert_eq!(output.status.code(), Some(3), "{reported:?} {text}");
    assert!(text.contains("ended by an error:"), "{text}");
    assert!(
        text.contains("  40  ") && !text.contains("  60  "),
        "{text}"
    );
    // The history has the points too.
    let list = scratch.done(&["list", "--format", "json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["results"][0]["kind"], "load", "{list}");
    assert!(list["results"][0]["finished_at_ms"].is_null(), "{list}");
    let shown = scratch.done(&["show", "latest"]);
    assert!(shown.contains("ended by an error:"), "{shown}");
    true
}

#[test]
fn load_without_consent_does_not_write_file() {
    let scratch = Scratch::new("load-consent");
    let file = scratch.0.join("precious");
    fs::write(&file, vec![7; 16 << 20]).unwrap();
    let words = ["precious", "--rw", "randwrite", "--rates", "10"];
    let output = load(&scratch, &words).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let reported = String::from_utf8_lossy(&output.stderr);
    let named = format!("--allow-overwrite {}", file.display());
    assert!(reported.contains(&named), "{reported}");
    assert!(fs::read(&file).unwrap().iter().all(|byte| *byte == 7));
}
