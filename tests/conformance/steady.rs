//! `steadystate`: the window in JSON, and whose rates are watched.

use iosonde_e2e::tree::number;
use iosonde_e2e::{Program, Scratch};
use serde_json::Value;

/// A steady rate that is never steady enough.
const UNSTEADY: &str = "--name=job --filename=file --size=1m --bs=4k --rw=randwrite --rate_iops=200 --time_based --runtime=2 \
     --ss=iops:0.0000001 --ss_dur=6";

fn list(document: &Value, path: &str) -> Vec<u64> {
    let values = document.pointer(path).and_then(Value::as_array);
    let values = values.unwrap_or_else(|| panic!("no list at {path} in {document:#}"));
    values.iter().filter_map(Value::as_u64).collect()
}

#[test]
fn window_that_was_never_full_is_padded() {
    for program in Program::both() {
        let document = program.line(&Scratch::shared(), UNSTEADY).json();
        let data = "/jobs/0/steadystate/data";
        for kind in ["iops", "bw"] {
            let window = list(&document, &format!("{data}/{kind}"));
            assert_eq!(window.len(), 6, "{program:?}: {document:#}");
            assert!(window[0] > 0 && window[5] == 0, "{program:?}: {window:?}");
            let mean = number(&document, &format!("{data}/{kind}_mean"));
            assert_eq!(mean as u64, window.iter().sum::<u64>() / 6, "{program:?}");
        }
    }
}

/// Each clone by itself, or all of a reporting group together. Both rates of 200 are 400.
#[test]
fn clones_are_watched_one_by_one_and_groups_together() {
    for program in Program::both() {
        for (group, most) in [("", 300), ("--group_reporting", 600)] {
            let line = format!("{UNSTEADY} --ss=iops:90% --ss_dur=1 --numjobs=2 {group}");
            let document = program.line(&Scratch::shared(), &line).json();
            let window = list(&document, "/jobs/0/steadystate/data/iops");
            assert_eq!(window.len(), 1, "{program:?}");
            assert!(
                window[0] > most - 300 && window[0] < most,
                "{program:?} {group}: {window:?}"
            );
        }
    }
}
