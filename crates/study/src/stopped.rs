//! What studies do about a process that was stopped in the middle of a run: Ctrl-Z, a frozen control group, a debugger.
//!
//! The session leaves that time out, but the storage had it: caches were written back, credits grew. So a run that a study can
//! repeat ends at the stop and is measured again, as long as the stops do not go on.

use iosonde_result::run::RunResult;
use iosonde_result::words;

/// So often one run is repeated at most.
pub(crate) const MOST_REPEATS: u32 = 2;

/// How long the process was stopped in a run.
pub(crate) fn stopped_ns(result: &RunResult) -> u64 {
    let each = result.intervals.iter();
    each.map(|interval| interval.stopped_ns).sum()
}

/// The note on a stop; `is_again`: the run is measured again.
pub(crate) fn note(what: &str, stopped_ns: u64, is_again: bool) -> String {
    let ending = match is_again {
        true => "measured again",
        false => "that time is left out of its figures",
    };
    let length = words::latency(stopped_ns as f64);
    format!("{what}: the process was stopped for {length} meanwhile; {ending}")
}
