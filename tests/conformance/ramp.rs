//! `ramp_time` longer than the job: as in fio, I/O is counted, without latencies.

use iosonde_e2e::tree::number;
use iosonde_e2e::{Program, Scratch};

/// Counts that both programs must have in common.
const COUNTS: [&str; 8] = [
    "/read/io_bytes",
    "/read/total_ios",
    "/write/io_bytes",
    "/write/total_ios",
    "/read/clat_ns/N",
    "/write/lat_ns/N",
    "/read/iops_samples",
    "/error",
];

fn counts_in_ramp(options: &str) {
    let line = format!("--name=job --size=1m --bs=64k --ramp_time=60 {options}");
    let documents = Program::both().map(|program| program.line(&Scratch::shared(), &line).json());
    let moved = |document: &serde_json::Value, what: &str| {
        ["read", "write"]
            .map(|kind| number(document, &format!("/jobs/0/{kind}/{what}")))
            .iter()
            .sum::<f64>()
    };
    for path in COUNTS {
        let [reference, subject] = documents
            .each_ref()
            .map(|it| number(it, &format!("/jobs/0{path}")));
        assert_eq!(reference, subject, "{path}: {options}");
    }
    for document in &documents {
        for what in ["io_bytes", "bw", "runtime"] {
            assert!(
                moved(document, what) > 0.0,
                "{what}: {options}\n{document:#}"
            );
        }
    }
}

macro_rules! cases {
    ($($name:ident $options:literal)+) => {
        $(#[test] fn $name() { counts_in_ramp($options); })+
    };
}

cases! {
    ramp_longer_than_reads_counts_bytes "--rw=read"
    ramp_longer_than_writes_with_syncs_counts_bytes "--rw=write --fsync=4"
    ramp_longer_than_io_size_of_group_counts_bytes
        "--rw=randread --io_size=3m --numjobs=2 --group_reporting"
    ramp_longer_than_job_at_depth_counts_bytes
        "--rw=randread --ioengine=libaio --iodepth=4 --direct=1"
}

/// Logs have no lines from the ramp.
#[test]
fn ramp_longer_than_job_leaves_logs_empty() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        let line = "--name=job --size=1m --bs=64k --ramp_time=60 --rw=write --write_lat_log=log \
                    --write_bw_log=log";
        let _ = program.line(&scratch, line).ok();
        for log in ["log_lat.1.log", "log_clat.1.log", "log_bw.1.log"] {
            let text = std::fs::read_to_string(scratch.work().join(log)).expect(log);
            assert_eq!(text, "", "{program:?}: {log}");
        }
    }
}

/// One message per job, for any number of clones.
#[test]
fn ramp_longer_than_clones_prints_one_note() {
    let scratch = Scratch::shared();
    let line = "--name=job --size=64k --ramp_time=60 --rw=read --numjobs=3";
    let run = Program::Iosonde.line(&scratch, line).ok();
    let count = run.stdout.matches("ended within its ramp_time").count();
    assert_eq!(count, 1, "{run}");
}
