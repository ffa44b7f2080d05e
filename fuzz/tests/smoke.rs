//! Runs each target on its corpus and on seeded mutations, without coverage, on any toolchain.
//!
//! `IOSONDE_FUZZ_RUNS` sets the number of mutations, `IOSONDE_FUZZ_SEED` the seed. A target stops
//! earlier after `IOSONDE_FUZZ_SECONDS`, but not before its first mutations. A failing input is
//! printed: add it to the corpus together with the fix.

use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs, io};

use iosonde_fuzz::mutate::Mutator;

/// Mutations of each target that run in any time.
const FIRST_RUNS: u64 = 200;

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
    let time = Duration::from_secs(number("IOSONDE_FUZZ_SECONDS", u64::MAX));
    let (runs, begun) = (number("IOSONDE_FUZZ_RUNS", 2_000), Instant::now());
    for run in 0..runs {
        if run >= FIRST_RUNS && begun.elapsed() > time {
            // Not with `eprintln!`, whose output is lost if the test passes.
            let _ = writeln!(
                io::stderr(),
                "{target}: {run} of {runs} mutations in {} s",
                time.as_secs()
            );
            break;
        }
        let input = mutator.next_input();
        if let Err(reason) = panic::catch_unwind(AssertUnwindSafe(|| read(&input))) {
            eprintln!("{target} breaks on {:?}", String::from_utf8_lossy(&input));
            panic::resume_unwind(reason);
        }
    }
}

#[test]
fn job_file_mutations_keep_properties() {
    check("job_file", iosonde_fuzz::job_file);
}

#[test]
fn job_section_mutations_keep_properties() {
    check("job_file", iosonde_fuzz::sections);
}

#[test]
fn command_line_mutations_keep_properties() {
    check("command_line", iosonde_fuzz::command_line);
}

#[test]
fn option_value_mutations_keep_properties() {
    check("value", iosonde_fuzz::value);
}

#[test]
fn trace_file_mutations_keep_properties() {
    check("trace", iosonde_fuzz::trace);
}

#[test]
fn toml_suite_mutations_keep_properties() {
    check("suite_toml", iosonde_fuzz::documents::suite_toml);
}

#[test]
fn yaml_suite_mutations_keep_properties() {
    check("suite_yaml", iosonde_fuzz::documents::suite_yaml);
}

#[test]
fn limits_file_mutations_keep_properties() {
    check("limits", iosonde_fuzz::documents::limits);
}

#[test]
fn fio_json_mutations_keep_properties() {
    check("fio_json", iosonde_fuzz::documents::fio_json);
}

#[test]
fn run_result_mutations_keep_properties() {
    check("run_result", iosonde_fuzz::documents::run_result);
}

#[test]
fn wire_message_mutations_keep_properties() {
    check("wire", iosonde_fuzz::documents::wire);
}

#[test]
fn target_uri_mutations_keep_properties() {
    check("target", iosonde_fuzz::words::target);
}

#[test]
fn sim_device_mutations_keep_properties() {
    check("sim", iosonde_fuzz::words::sim);
}

#[test]
fn expectation_mutations_keep_properties() {
    check("expectation", iosonde_fuzz::words::expectation);
}

#[test]
fn quantity_mutations_keep_properties() {
    check("quantity", iosonde_fuzz::words::quantity);
}

#[test]
fn proc_file_mutations_keep_properties() {
    check("proc", iosonde_fuzz::proc::proc);
}

#[test]
fn cgroup_limit_mutations_keep_properties() {
    check("cgroup", iosonde_fuzz::proc::cgroup);
}
