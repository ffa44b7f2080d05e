//! Handles a stop of the process during a run: Ctrl-Z (SIGSTOP), a frozen cgroup, a debugger.
//!
//! The session leaves the stopped time out, but the storage used it to write back caches and to
//! regain burst credits. A repeatable run therefore ends at the stop and is measured again.

use iosonde_result::run::RunResult;
use iosonde_result::words;

/// Most repetitions of one run.
pub(crate) const MOST_REPEATS: u32 = 2;

/// Returns the time in nanoseconds for which the process was stopped during a run.
pub(crate) fn stopped_ns(result: &RunResult) -> u64 {
    let each = result.intervals.iter();
    each.map(|interval| interval.stopped_ns).sum()
}

/// Returns the note about a stop. `is_again`: the run is measured again.
pub(crate) fn stop_note(what: &str, stopped_ns: u64, is_again: bool) -> String {
    let ending = match is_again {
        true => "measured again",
        false => "its figures exclude that time",
    };
    let length = words::latency(stopped_ns as f64);
    format!("{what}: the process was stopped for {length}; {ending}")
}
