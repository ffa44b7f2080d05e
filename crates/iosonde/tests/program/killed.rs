//! Long runs that are killed: the history has their measurements so far.

use crate::common::{Scratch, integrity};
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A simulated week that reports its progress each minute.
const WEEK: &str = "fio --name=a --ioengine=sim --size=1g --rw=randread --rate_iops=20 \
                    --time_based --runtime=7d \
                    --output-format=terse --status-interval=60";
/// Minutes that a simulated run may be ahead of its history: queued, being written, and open.
const MINUTES_AHEAD_MAX: usize = 20;
const ROUNDS: u32 = 3;
const MINUTE_NS: u64 = 60_000_000_000;

/// Returns a time below the bound, different on each call.
fn random_ms(bound: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::from(now.subsec_micros()) % bound
}

/// Number of minutes that a run has reported.
fn reported_minutes(output: &Path) -> usize {
    fs::read_to_string(output).unwrap().lines().count()
}

/// Starts a run of a week and waits until its first minutes are in the history.
fn begun(scratch: &Scratch, output: &Path) -> Child {
    let words: Vec<&str> = WEEK.split_whitespace().collect();
    let mut command = scratch.command(&words);
    command
        .stdout(File::create(output).unwrap())
        .stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let begun = Instant::now();
    while reported_minutes(output) <= MINUTES_AHEAD_MAX {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "no minute was reported"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

/// Returns the results that `list` prints.
fn listed(scratch: &Scratch) -> Vec<Value> {
    let list = scratch.done(&["list", "--format", "json"]);
    let mut list: Value = serde_json::from_str(&list).unwrap();
    serde_json::from_value(list["results"].take()).unwrap()
}

/// Waits until the only result has reached some minutes, and returns its time. `None`: the program
/// has ended.
fn reached_ns(scratch: &Scratch, child: &mut Child) -> Option<u64> {
    let begun = Instant::now();
    loop {
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        let all = listed(scratch);
        let reached_ns = all.first().and_then(|listed| listed["reached_ns"].as_u64());
        if let Some(reached_ns) = reached_ns.filter(|reached_ns| *reached_ns > 5 * MINUTE_NS) {
            return Some(reached_ns);
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "no minutes are in the history"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a command, and kills it once its result has reached some minutes, which it returns.
/// `None`: it ended first, as on a busy machine, and its result is removed.
fn killed_after(scratch: &Scratch, words: &[&str]) -> Option<u64> {
    let mut command = scratch.command(words);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let seen_ns = reached_ns(scratch, &mut child);
    let _ = child.kill();
    if child.wait().unwrap().success() {
        fs::remove_dir_all(scratch.path("data")).unwrap();
        return None;
    }
    seen_ns
}

#[test]
fn killed_suite_keeps_whole_minutes_until_resume() {
    const HOURS: usize = 4;
    let scratch = Scratch::new("killed-suite");
    let steady = "rw = \"randread\", size = \"16m\", rate_iops = 20, time_based = true";
    let step = |name: &str, runtime: &str| {
        format!(
            "[[workload]]\nname = \"{name}\"\noptions = {{ {steady}, runtime = \"{runtime}\" }}\n"
        )
    };
    let text = step("short", "1s") + &step("long", &format!("{HOURS}h"));
    scratch.file("suite.toml", &text);
    let words = ["run", "suite.toml", "sim:read_us=100"];
    let seen_ns = (0..5).find_map(|_| killed_after(&scratch, &words));
    let seen_ns = seen_ns.expect("a suite that was killed");
    let all = listed(&scratch);
    let [killed] = &all[..] else {
        panic!("{all:?}");
    };
    assert!(killed["finished_at_ms"].is_null(), "{killed}");
    assert!(killed["reached_ns"].as_u64().unwrap() >= seen_ns);
    let run = scratch.done(&["export", "latest.2"]);
    let run: Value = serde_json::from_str(&run).unwrap();
    let intervals = run["intervals"].as_array().unwrap().len();
    assert!(
        intervals >= 300 && intervals.is_multiple_of(60),
        "{intervals}"
    );
    // The step is measured again.
    scratch.done(&[&words[..], &["--resume"]].concat());
    let all = listed(&scratch);
    let [resumed] = &all[..] else {
        panic!("{all:?}");
    };
    assert!(resumed["finished_at_ms"].is_u64(), "{resumed}");
    assert_eq!(resumed["parts"].as_array().unwrap().len(), 2, "{resumed}");
    let run = scratch.done(&["export", "latest.2"]);
    let run: Value = serde_json::from_str(&run).unwrap();
    assert_eq!(run["intervals"].as_array().unwrap().len(), HOURS * 3600);
}

#[test]
fn running_run_is_not_removed() {
    let scratch = Scratch::new("measured");
    let mut child = begun(&scratch, &scratch.path("minutes"));
    let refused = scratch.run(&["rm", "latest"]);
    child.kill().unwrap();
    child.wait().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("its measurement is not finished"), "{said}");
    // After the kill no process measures the run.
    scratch.done(&["rm", "latest", "--yes"]);
}

#[test]
fn killed_run_keeps_whole_minutes() {
    let scratch = Scratch::new("killed");
    for round in 0..ROUNDS {
        let output = scratch.path("minutes");
        let mut child = begun(&scratch, &output);
        std::thread::sleep(Duration::from_millis(random_ms(300)));
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success());
        let reported = reported_minutes(&output);
        assert_eq!(integrity(&scratch.store()), "ok");
        let list: Value =
            serde_json::from_str(&scratch.done(&["list", "--format", "json"])).unwrap();
        let listed = &list["results"][round as usize];
        assert!(
            listed["finished_at_ms"].is_null() && listed["running"] == false,
            "{listed}"
        );
        let reached_ns = listed["reached_ns"].as_u64().unwrap();
        let minutes = (reached_ns / MINUTE_NS) as usize;
        assert!(
            minutes + MINUTES_AHEAD_MAX >= reported,
            "{minutes} of {reported}"
        );
        assert_eq!(reached_ns % MINUTE_NS, 0, "{reached_ns}");
        let run: Value = serde_json::from_str(&scratch.done(&["export", "latest"])).unwrap();
        let intervals = run["intervals"].as_array().unwrap();
        assert_eq!(intervals.len(), 60 * minutes);
        for (second, interval) in intervals.iter().enumerate() {
            assert_eq!(
                interval["start_ns"].as_u64(),
                Some(second as u64 * 1_000_000_000)
            );
            assert_eq!(interval["length_ns"], 1_000_000_000);
        }
        assert_eq!(run["elapsed_ns"].as_u64(), Some(reached_ns));
        let shown = scratch.done(&["show"]);
        for word in ["cut off after", "read IOPS", "over time"] {
            assert!(shown.contains(word), "{word}: {shown}");
        }
        assert!(scratch.done(&["list"]).contains("cut off after"));
    }
}
