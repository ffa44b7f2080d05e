//! Many results: the cost of each does not grow with their number.

#[path = "program/common.rs"]
mod common;

use common::Scratch;
use std::fs;

/// Creates a result with intervals, and copies that count as other measurements.
fn results(scratch: &Scratch, count: u64) -> Vec<String> {
    let job = [
        "fio",
        "--name=j",
        "--ioengine=sim",
        "--sim=parallel=2,read_us=10ms",
    ];
    let more = [
        "--rw=randread",
        "--size=1m",
        "--runtime=20",
        "--time_based",
        "--output-format=json",
    ];
    let words: Vec<&str> = job.into_iter().chain(more).collect();
    scratch.done(&words);
    let first: serde_json::Value =
        serde_json::from_str(&scratch.done(&["export", "latest"])).unwrap();
    let copy = |number: u64| {
        let mut copy = first.clone();
        let started_at_ms = first["started_at_ms"].as_u64().unwrap();
        copy["started_at_ms"] = (started_at_ms + 1000 * number).into();
        copy["plan"]["jobs"][0]["name"] = format!("j{number}").into();
        let name = format!("own{number}.json");
        fs::write(scratch.path(&name), copy.to_string()).unwrap();
        name
    };
    (1..=count).map(copy).collect()
}

/// Returns the CPU ticks of child processes in user mode.
fn user_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    // Field 16 of proc(5); the name of the process may contain spaces.
    rest.split(' ').nth(13).unwrap().parse().unwrap()
}

/// The only test of its program, since the ticks are of all child processes. Both figures are CPU
/// time of one run, so the load of the machine does not matter.
#[test]
fn cost_per_result_is_independent_of_count() {
    const FEW: usize = 50;
    const TIMES: usize = 8;
    let scratch = Scratch::new("many");
    let names = results(&scratch, (FEW * TIMES) as u64);
    let cost = |names: &[String], store: &str| {
        let before = user_ticks();
        let mut words = vec!["import", "--store", store, "--label", "all=1"];
        words.extend(names.iter().map(String::as_str));
        assert_eq!(scratch.done(&words).lines().count(), names.len());
        let imported = user_ticks() - before;
        let page = scratch.done(&["report", "all=1", "--store", store]);
        assert!(page.contains(&format!("j{}", names.len())));
        (imported, user_ticks() - before - imported)
    };
    let few = cost(&names[..FEW], "few.db");
    let many = cost(&names, "many.db");
    println!("ticks of import and report, {FEW} and {TIMES} times as many: {few:?} {many:?}");
    // Linear cost grows eightfold, quadratic cost sixty-fourfold.
    for (few, many) in [(few.0, many.0), (few.1, many.1)] {
        assert!(many <= 3 * TIMES as u64 * few.max(2), "{few} {many}");
    }
}
