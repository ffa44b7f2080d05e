//! Parses every example of Debian's fio package, or checks that the error names the missing
//! feature.
//!
//! The examples belong to fio and stay in its package; this test fails if they are not installed.

use iosonde_job::env::FakeEnv;
use iosonde_job::{Diagnostics, ParsedCommand, parse};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

const DIRECTORY: &str = "/usr/share/doc/fio/examples";

/// Environment variables of the examples.
const VARIABLES: &[(&str, &str)] = &[
    ("FIO_RW", "read"),
    ("FIO_BS", "4k"),
    ("FIO_IODEPTH", "1"),
    ("FIO_DIR", "/tmp"),
];

fn read(name: &str, text: &str) -> Result<ParsedCommand, Diagnostics> {
    let mut env = FakeEnv::new().file(name, text);
    for (variable, value) in VARIABLES {
        env = env.set(variable, value);
    }
    parse(&[OsString::from(name)], &env)
}

fn examples() -> BTreeMap<String, String> {
    assert!(
        Path::new(DIRECTORY).is_dir(),
        "REQUIRED: fio's examples are not in {DIRECTORY}; install them with `apt-get install fio \
         fio-examples`"
    );
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(DIRECTORY).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".fio") {
            let bytes = std::fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            found.insert(stem.to_owned(), text);
        }
    }
    found
}

/// Examples that need only files, block devices and common engines.
const READ: &[&str] = &[
    "1mbs_clients",
    "aio-read",
    "backwards-read",
    "basic-verify",
    "butterfly",
    "cmdprio-bssplit",
    "cmdprio-percentage",
    "cross-stripe-verify",
    "dedupe-global",
    "disk-zone-profile",
    "enospc-pressure",
    "exitwhat",
    "fio-rand-RW",
    "fio-rand-read",
    "fio-rand-write",
    "fio-seq-RW",
    "fio-seq-read",
    "fio-seq-write",
    "fixed-rate-submission",
    "flow",
    "fsx",
    "iometer-file-access-server",
    "jesd219",
    "latency-profile",
    "null",
    "numa",
    "poisson-rate-submission",
    "rados",
    "rand-zones",
    "rbd",
    "ssd-steadystate",
    "ssd-test",
    "steadystate",
    "surface-scan",
    "tiobench-example",
    "waitfor",
    "xnvme-compare",
    "zipf",
];

/// The feature that the error of each refused example names: an engine, or zoned devices.
fn need(name: &str, text: &str) -> String {
    let zoned = ["zbd-rand-write", "zbd-seq-read", "xnvme-zoned"];
    if zoned.contains(&name) {
        return "zoned block devices".to_owned();
    }
    let engine = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("ioengine="))
        .find(|engine| iosonde_job::options::engine_options::is_refused(engine));
    match engine {
        Some(engine) => format!("the engine `{engine}` is not supported"),
        None => panic!("{name} needs nothing special"),
    }
}

#[test]
fn fio_examples_are_read_or_refused_with_the_reason() {
    let examples = examples();
    for name in READ {
        assert!(
            examples.contains_key(*name),
            "REQUIRED: the example {name} is missing"
        );
    }
    for (name, text) in &examples {
        match read(name, text) {
            Ok(parsed) => {
                assert!(
                    READ.contains(&name.as_str()),
                    "{name} was not expected to be read"
                );
                assert!(!parsed.plan.jobs.is_empty(), "{name}");
            }
            Err(diagnostics) => {
                assert!(!READ.contains(&name.as_str()), "{name}:\n{diagnostics}");
                let need = need(name, text);
                assert!(
                    diagnostics.to_string().contains(&need),
                    "{name}:\n{diagnostics}"
                );
            }
        }
    }
}
