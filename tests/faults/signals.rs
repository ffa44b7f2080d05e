//! Faults of the process itself and of its clock.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iosonde_e2e::program::Invocation;
use iosonde_e2e::throttle::Throttle;
use rustix::process::Signal;

use crate::fault_fixture::{FaultFixture, Outcome, died_at_once, hit_in_time, is_explained};
use crate::table::{Cell, Fault, Subcommand};

const MEMORY_BYTES: u64 = 160 << 20;
/// Size of the clock step.
const STEP_S: f64 = 3600.0;

/// Returns `None` if the fault is of another kind.
pub(crate) fn hit(cell: Cell, number: u32) -> Option<Outcome> {
    Some(match cell.fault {
        Fault::Sigkill => hit_in_time(|| killed(cell, number)),
        Fault::Sigterm => hit_in_time(|| ended(cell, number, Signal::TERM, 143)),
        Fault::Sighup => hit_in_time(|| ended(cell, number, Signal::HUP, 129)),
        Fault::Sigstop => stopped(cell, number),
        Fault::OutOfMemory => hit_in_time(|| out_of_memory(cell)),
        Fault::ClockStep => clock_step(cell, number),
        _ => return None,
    })
}

/// Returns `None` if the command ended before the signal.
fn killed(cell: Cell, number: u32) -> Option<Outcome> {
    let fixture = FaultFixture::new();
    let command = |words: &str| fixture.command(cell, "target", words);
    let running = fixture.until_random_point(|| command(""), cell, number);
    running.signal(Signal::KILL);
    let killed = running.wait();
    if killed.status.success() {
        return None;
    }
    if killed.status.signal().is_none() {
        return Some(Err(format!("was not killed: {killed}")));
    }
    Some(is_recovered(&fixture, cell, command))
}

/// After SIGKILL: foreign data is unchanged, and the resumed work removes leftovers.
fn is_recovered(fixture: &FaultFixture, cell: Cell, again: impl Fn(&str) -> Invocation) -> Outcome {
    fixture.is_unchanged()?;
    fixture.is_history_whole()?;
    fixture.is_taken_up(cell, again)?;
    fixture.is_nothing_left(&[])?;
    fixture.is_unchanged()
}

/// Returns `None` if the command ended before the signal, except in its last third, in which the
/// figures may be complete before the signal.
fn ended(cell: Cell, number: u32, signal: Signal, status: i32) -> Option<Outcome> {
    let fixture = FaultFixture::new();
    // One hit in each third of the duration.
    let point = number * 3 + 1;
    let start = || fixture.command(cell, "target", "");
    let running = fixture.until_random_point(start, cell, point);
    running.signal(signal);
    let run = running.wait();
    if number < 2 && run.status.success() {
        return None;
    }
    let is_clean = || {
        fixture.is_unchanged()?;
        fixture.is_history_whole()?;
        fixture.is_nothing_left(&[])
    };
    let explained = || match died_at_once(&run, signal) {
        true => Ok(()),
        false => is_explained(&run, &[status, 0], &["interrupted", "ended"]),
    };
    Some(is_clean().and_then(|()| explained()))
}

fn stopped(cell: Cell, number: u32) -> Outcome {
    let fixture = FaultFixture::new();
    let start = || fixture.command(cell, "target", "");
    let running = fixture.until_random_point(start, cell, number + 4);
    running.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(1));
    running.signal(Signal::CONT);
    let run = running.wait();
    fixture.is_unchanged()?;
    fixture.is_history_whole()?;
    fixture.is_nothing_left(&[])?;
    is_explained(&run, &[0], &[])
}

/// Another program exhausts the group's memory, and the OOM killer selects iosonde first.
/// Returns `None` if the command ended before that.
fn out_of_memory(cell: Cell) -> Option<Outcome> {
    let fixture = FaultFixture::new();
    let bound = Throttle::of_memory(MEMORY_BYTES);
    let first = r#"echo 1000 > /proc/self/oom_score_adj && exec "$0" "$@""#;
    let again = |words: &str| fixture.command(cell, "target", words);
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let start = || {
        again("")
            .behind(words(&["sh", "-c", first]))
            .throttled(&bound)
    };
    let running = fixture.until_random_point(start, cell, 4);
    // It grows until the OOM killer ends it, too.
    let hog = Invocation::new(&fixture.scratch, words(&["tail", "/dev/zero"]));
    let hog = hog.throttled(&bound).start();
    let run = running.wait();
    let _ = hog.wait();
    match run.status.signal() {
        Some(9) => Some(is_recovered(&fixture, cell, again)),
        _ if run.status.success() => None,
        _ => Some(Err(format!("the kernel did not kill it: {run}"))),
    }
}

/// libfaketime steps the wall clock; the monotonic clock is unaffected.
fn clock_step(cell: Cell, number: u32) -> Outcome {
    let library = faketime().ok_or("needs the package faketime")?;
    let fixture = FaultFixture::new();
    let clock = fixture.scratch.out().join("clock");
    fs::write(&clock, "+0").expect("a file for the clock");
    let json = match cell.subcommand {
        Subcommand::Fio | Subcommand::FioForHours => "--output-format=json",
        _ => "--format json",
    };
    let start = || {
        fixture
            .command(cell, "target", json)
            .env("LD_PRELOAD", &library)
            .env("FAKETIME_TIMESTAMP_FILE", &clock)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    };
    let running = fixture.until_random_point(start, cell, 4);
    let sign = if number.is_multiple_of(2) { '+' } else { '-' };
    fs::write(&clock, format!("{sign}{STEP_S}")).expect("a file for the clock");
    let run = running.wait();
    fixture.is_unchanged()?;
    fixture.is_history_whole()?;
    fixture.is_nothing_left(&[])?;
    is_explained(&run, &[0], &[])?;
    let longest_s = match cell.subcommand {
        Subcommand::FioForHours => 6.0 * 3600.0,
        _ => 0.0,
    };
    are_durations_sane(&run.stdout, longest_s + STEP_S / 2.0)
}

/// Ends of the names of rates, which are no durations.
const RATES: [&str; 3] = ["per_s", "kib_s", "bytes_s"];

/// Checks that no duration in a result is near the clock step.
fn are_durations_sane(result: &str, longest_s: f64) -> Outcome {
    let result: serde_json::Value =
        serde_json::from_str(result).map_err(|error| format!("no JSON: {error}: {result}"))?;
    let mut pending = vec![(String::new(), &result)];
    while let Some((name, value)) = pending.pop() {
        match value {
            serde_json::Value::Object(members) => {
                pending.extend(members.iter().map(|(name, value)| (name.clone(), value)));
            }
            serde_json::Value::Array(items) => {
                pending.extend(items.iter().map(|value| (name.clone(), value)));
            }
            serde_json::Value::Number(number) => {
                let number = number.as_f64().unwrap_or(0.0);
                let per_second = match name.as_str() {
                    name if RATES.iter().any(|unit| name.ends_with(unit)) => continue,
                    name if name.ends_with("_ns") => 1e9,
                    name if name.ends_with("runtime") || name.ends_with("_ms") => 1e3,
                    name if name.ends_with("_s") => 1.0,
                    _ => continue,
                };
                let is_point = ["start", "time", "at_", "epoch", "began", "ended", "clock"];
                let is_point = is_point.iter().any(|word| name.contains(word)) && name != "runtime";
                if !is_point && (number < 0.0 || number / per_second > longest_s) {
                    return Err(format!("{name} is {number}"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn faketime() -> Option<PathBuf> {
    let directories = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut found = directories.map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"));
    found.find(|path: &PathBuf| Path::new(path).exists())
}
