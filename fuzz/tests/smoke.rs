//! Every target on its corpus and on seeded mutations of it, without coverage, on any toolchain.
//!
//! `IOSONDE_FUZZ_RUNS` sets the number of mutations of each target, `IOSONDE_FUZZ_SEED` where they begin. An input that breaks
//! a promise is printed; add it to the corpus with the repair.

use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::{env, fs};

use iosonde_fuzz::mutate::Mutator;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    let mut files: Vec<_> = fs::read_dir(&dir)
        .expect("a corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let inputs: Vec<_> = files
        .iter()
        .map(|path| fs::read(path).expect("an input"))
        .collect();
    assert!(
        inputs.len() >= 3,
        "the corpus in {} is too small",
        dir.display()
    );
    inputs
}

fn number(variable: &str, default: u64) -> u64 {
    env::var(variable).ok().map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number"))
    })
}

fn check(target: &str, read: fn(&[u8])) {
    let known = corpus(target);
    for input in &known {
        read(input);
    }
    let mut mutator = Mutator::new(known, number("IOSONDE_FUZZ_SEED", 1));
    for _ in 0..number("IOSONDE_FUZZ_RUNS", 2_000) {
        let input = mutator.next_input();
        if let Err(reason) = panic::catch_unwind(AssertUnwindSafe(|| read(&input))) {
            eprintln!("{target} breaks on {:?}", String::from_utf8_lossy(&input));
            panic::resume_unwind(reason);
        }
    }
}

#[test]
fn job_files() {
    check("job_file", iosonde_fuzz::job_file);
}

#[test]
fn sections_of_job_files() {
    check("job_file", iosonde_fuzz::sections);
}

#[test]
fn command_lines() {
    check("command_line", iosonde_fuzz::command_line);
}

#[test]
fn values() {
    check("value", iosonde_fuzz::value);
}

#[test]
fn traces() {
    check("trace", iosonde_fuzz::trace);
}

#[test]
fn suites_as_toml() {
    check("suite_toml", iosonde_fuzz::documents::suite_toml);
}

#[test]
fn suites_as_yaml() {
    check("suite_yaml", iosonde_fuzz::documents::suite_yaml);
}

#[test]
fn files_of_limits() {
    check("limits", iosonde_fuzz::documents::limits);
}

#[test]
fn json_of_fio() {
    check("fio_json", iosonde_fuzz::documents::fio_json);
}

#[test]
fn results() {
    check("run_result", iosonde_fuzz::documents::run_result);
}

#[test]
fn messages_and_requests() {
    check("wire", iosonde_fuzz::documents::wire);
}

#[test]
fn targets() {
    check("target", iosonde_fuzz::words::target);
}

#[test]
fn simulated_devices() {
    check("sim", iosonde_fuzz::words::sim);
}

#[test]
fn expectations() {
    check("expectation", iosonde_fuzz::words::expectation);
}

#[test]
fn quantities() {
    check("quantity", iosonde_fuzz::words::quantity);
}

#[test]
fn files_of_proc() {
    check("proc", iosonde_fuzz::proc::proc);
}

#[test]
fn bounds_of_control_groups() {
    check("cgroup", iosonde_fuzz::proc::cgroup);
}
