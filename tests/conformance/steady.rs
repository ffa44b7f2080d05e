//! `steadystate`: the window in JSON, and the clones whose rates it covers.

use iosonde_e2e::tree::number;
use iosonde_e2e::{Program, Scratch, ensure, one_good_try};
use serde_json::Value;

/// A job that never reaches steady state.
const UNSTEADY: &str = "--name=job --filename=file --size=1m --bs=4k --rw=randwrite \
                        --rate_iops=200 --time_based --runtime=2 --ss=iops:0.0000001 --ss_dur=6";

fn list(document: &Value, path: &str) -> Vec<u64> {
    let values = document.pointer(path).and_then(Value::as_array);
    let values = values.unwrap_or_else(|| panic!("no list at {path} in {document:#}"));
    values.iter().filter_map(Value::as_u64).collect()
}

#[test]
fn incomplete_window_is_padded() {
    let check = |program: Program| -> Result<(), String> {
        let document = program.line(&Scratch::shared(), UNSTEADY).json();
        let data = "/jobs/0/steadystate/data";
        for kind in ["iops", "bw"] {
            let window = list(&document, &format!("{data}/{kind}"));
            assert_eq!(window.len(), 6, "{program:?}: {document:#}");
            let mean = number(&document, &format!("{data}/{kind}_mean"));
            assert_eq!(mean as u64, window.iter().sum::<u64>() / 6, "{program:?}");
            // Without CPU time, no I/O completes in the first second.
            ensure(window[0] > 0 && window[5] == 0, || {
                format!("{program:?}: {window:?}")
            })?;
        }
        Ok(())
    };
    for program in Program::both() {
        one_good_try(|| check(program));
    }
}

/// The window covers each clone, or all of a reporting group: two rates of 200 give 400.
#[test]
fn steadystate_covers_clones_or_whole_group() {
    for program in Program::both() {
        for (group, most) in [("", 300), ("--group_reporting", 600)] {
            let line = format!("{UNSTEADY} --ss=iops:90% --ss_dur=1 --numjobs=2 {group}");
            // A job without CPU time falls behind its rate, and then catches up.
            one_good_try(|| {
                let document = program.line(&Scratch::shared(), &line).json();
                let window = list(&document, "/jobs/0/steadystate/data/iops");
                assert_eq!(window.len(), 1, "{program:?}");
                ensure(window[0] > most - 300 && window[0] < most, || {
                    format!("{program:?} {group}: {window:?}")
                })
            });
        }
    }
}
