//! Equal runs on this machine's disk: the share that `iosonde compare` calls different.

use std::env;
use std::time::Duration;

use iosonde_e2e::Scratch;
use iosonde_e2e::scratch::lay_out;
use serde_json::Value;

/// Runs of 4 s, alternating between two depths; `IOSONDE_EQUAL_RUNS` overrides their number.
const RUNS: usize = 40;
const DEPTHS: [u32; 2] = [1, 4];
const FILE_BYTES: usize = 256 << 20;
/// Maximum share of figures called different.
const CALLED_DIFFERENT_MAX: f64 = 0.06;

fn runs() -> usize {
    let asked = env::var("IOSONDE_EQUAL_RUNS").ok();
    asked.map_or(RUNS, |text| {
        text.parse().expect("IOSONDE_EQUAL_RUNS is a number")
    })
}

fn run(scratch: &Scratch, line: &str) -> String {
    let run = super::run(scratch, line).env("IOSONDE_NO_SAVE", "");
    run.within(Duration::from_secs(120)).ok().stdout
}

/// The ids of a history's results, oldest first.
fn ids(scratch: &Scratch) -> Vec<String> {
    let listed = run(scratch, "list --format csv --store h.db");
    let lines = listed.lines().skip(1);
    let mut started: Vec<(u64, String)> = lines
        .map(|line| {
            let mut cells = line.split(',');
            let id = cells.next().expect("an id").to_owned();
            let started = cells.next().and_then(|cell| cell.parse().ok());
            (started.expect("a start in milliseconds"), id)
        })
        .collect();
    started.sort();
    started.into_iter().map(|(_, id)| id).collect()
}

#[test]
#[ignore = "long"]
fn equal_runs_are_not_called_different() {
    let scratch = Scratch::alone();
    lay_out(&scratch.work().join("data"), FILE_BYTES);
    for index in 0..runs() {
        let depth = DEPTHS[index % DEPTHS.len()];
        run(
            &scratch,
            &format!(
                "--store h.db fio --name=read_{depth} --filename=data --size={FILE_BYTES} \
                 --rw=randread --bs=4k --direct=1 --ioengine=io_uring --iodepth={depth} \
                 --runtime=4 --time_based --randrepeat=0"
            ),
        );
    }
    let ids = ids(&scratch);
    assert_eq!(ids.len(), runs());
    let (mut called, mut figures, mut rates, mut decided_rates) = (0, 0, 0, 0);
    let pairs = ids.len() - DEPTHS.len();
    for (a, b) in ids.iter().zip(&ids[DEPTHS.len()..]) {
        let compared = run(
            &scratch,
            &format!("compare {a} {b} --format json --store h.db"),
        );
        let document: Value = serde_json::from_str(&compared).expect("JSON");
        for row in document["rows"].as_array().expect("rows") {
            let is_different = matches!(row["verdict"].as_str(), Some("faster" | "slower"));
            let is_decided = row["verdict"] != "undecided";
            if is_different {
                println!(
                    "{a} {b} {} {}: {}",
                    row["part"], row["measure"], row["ratio"]
                );
            }
            figures += 1;
            called += usize::from(is_different);
            if row["measure"] == "iops" {
                rates += 1;
                decided_rates += usize::from(is_decided);
            }
        }
    }
    println!(
        "{called} of {figures} figures of {pairs} pairs called different; {decided_rates} of \
         {rates} rates decided"
    );
    // The figures of one pair are correlated, so the standard error uses the number of pairs.
    let share = called as f64 / figures as f64;
    let stray = (CALLED_DIFFERENT_MAX * (1.0 - CALLED_DIFFERENT_MAX) / pairs as f64).sqrt();
    assert!(
        share <= CALLED_DIFFERENT_MAX + 3.0 * stray,
        "{called} of {figures} figures of {pairs} pairs"
    );
    // A figure without an interval is never called different, so half of the rates must have one.
    assert!(
        2 * decided_rates >= rates,
        "{decided_rates} of {rates} rates"
    );
}
