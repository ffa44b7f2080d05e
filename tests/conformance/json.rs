//! fio's JSON: the same paths and types for the same job, and the same reported options.

use iosonde_e2e::tree::{self, number};
use iosonde_e2e::{Program, Scratch, ensure, one_good_try};
use serde_json::Value;

/// Paths that iosonde's document may have in addition to fio 3.33's, including all below them.
const OURS: &[&str] = &[
    // Start time of each job, as in fio 3.36, where tools expect it.
    "/jobs[]/job_start",
    // iosonde's version, and its verdicts with evidence.
    "/iosonde",
    // With a rate: latency from the intended start of an I/O. fio's counts from the actual start.
    "/jobs[]/read/iosonde",
    "/jobs[]/write/iosonde",
    "/jobs[]/trim/iosonde",
    "/jobs[]/mixed/iosonde",
];

/// The result of a job file and a command line, in a new directory for each program.
fn result(program: Program, job_file: &str, line: &str) -> Value {
    let scratch = Scratch::shared();
    if job_file.is_empty() {
        return program.line(&scratch, line).json();
    }
    scratch.write("job.fio", job_file);
    program.line(&scratch, &format!("{line} job.fio")).json()
}

fn same_tree(job_file: &str, line: &str) -> (Value, Value) {
    let mut documents = [Value::Null, Value::Null];
    let mut attempt = || {
        documents = Program::both().map(|program| result(program, job_file, line));
        let [reference, subject] = &documents;
        let differences = tree::differences(reference, subject, OURS);
        ensure(differences.is_empty(), || {
            format!("{line}\n{job_file}\n{}", differences.join("\n"))
        })
    };
    // A job without CPU time may have no I/O or no sample within its time, whose paths are missing.
    // One line has an abbreviated option.
    match line.contains("--runtim") {
        true => one_good_try(attempt),
        false => attempt().unwrap_or_else(|differences| panic!("{differences}")),
    }
    let [reference, subject] = documents;
    for options in ["/global options", "/jobs/0/job options"] {
        assert_eq!(
            subject.pointer(options),
            reference.pointer(options),
            "{options} of {line}"
        );
    }
    (reference, subject)
}

macro_rules! lines {
    ($($name:ident $line:literal)+) => {
        $(#[test] fn $name() { same_tree("", $line); })+
    };
}

lines! {
    json_of_default_job "--name=job --size=1m"
    json_of_read_write_mix
        "--name=job --size=4m --rw=randrw --ioengine=libaio --iodepth=8 --direct=1"
    json_with_bandwidth_samples
        "--name=job --size=4m --rw=randrw --ioengine=io_uring --iodepth=4 --direct=1 --time_based \
         --runtime=2"
    json_with_ramp_time
        "--name=job --size=4m --rw=randread --direct=1 --time_based --runtime=3 --ramp_time=1"
    json_with_group_reporting "--name=job --size=1m --rw=randrw --numjobs=3 --group_reporting"
    json_of_each_clone "--name=job --size=1m --rw=write --numjobs=2 --thread"
    json_with_fsync "--name=job --size=256k --rw=write --fsync=4"
    json_with_fdatasync "--name=job --size=256k --rw=write --fdatasync=1"
    json_with_unified_reporting "--name=job --size=1m --rw=randrw --unified_rw_reporting=1"
    json_with_unified_rw_reporting_both
        "--name=job --size=1m --rw=randrw --unified_rw_reporting=both"
    json_with_lat_percentiles "--name=job --size=1m --rw=randread --lat_percentiles=1"
    json_with_all_percentiles
        "--name=job --size=1m --rw=randread --lat_percentiles=1 --clat_percentiles=1 \
         --slat_percentiles=1 --ioengine=libaio --direct=1"
    json_without_percentiles "--name=job --size=1m --rw=randread --clat_percentiles=0"
    json_with_percentile_list "--name=job --size=1m --rw=randread --percentile_list=50:90:99:99.99"
    json_with_gtod_reduce "--name=job --size=1m --rw=randread --gtod_reduce=1"
    json_without_clat "--name=job --size=1m --rw=randread --disable_clat=1"
    json_without_slat_and_lat
        "--name=job --size=1m --rw=randread --disable_slat=1 --disable_lat=1 --ioengine=libaio \
         --direct=1"
    json_without_bandwidth "--name=job --size=1m --rw=randread --disable_bw_measurement=1"
    json_with_continue_on_error "--name=job --size=1m --rw=randread --continue_on_error=all"
    json_of_null_engine "--name=job --size=64m --rw=randread --ioengine=null"
    json_of_null_engine_with_filesize "--name=job --filesize=64m --rw=randread --ioengine=null"
    json_with_system_idle_profile
        "--name=job --ioengine=null --size=1m --time_based --runtime=1 --rate_iops=1000 \
         --idle-prof=system"
    json_with_percpu_idle_profile
        "--name=job --ioengine=null --size=1m --time_based --runtime=1 --rate_iops=1000 \
         --idle-prof=percpu"
    json_with_create_only "--name=job --size=1m --create_only=1"
    json_after_failed_exec_prerun "--name=job --size=1m --rw=write --exec_prerun=false"
    json_with_description "--name=job --size=1m --description=abc"
    json_of_mmap_engine "--name=job --size=1m --rw=randread --ioengine=mmap"
    json_with_steadystate
        "--name=job --size=1m --rw=randread --time_based --runtime=8 --steadystate=iops:50% \
         --steadystate_duration=2 --thinktime=1000"
    json_with_steadystate_slope
        "--name=job --size=1m --rw=randread --time_based --runtime=5 --ss=bw_slope:50% --ss_dur=2 \
         --ss_ramp=1 --thinktime=1000"
    json_with_latency_target
        "--name=job --size=1m --rw=randread --direct=1 --ioengine=libaio --iodepth=4 --time_based \
         --runtime=2 --latency_target=50ms --latency_window=500ms --latency_percentile=95"
    json_with_verify "--name=job --size=256k --rw=randwrite --verify=crc32c"
    json_with_rate_iops "--name=job --size=1m --rw=read --rate_iops=500"
    json_with_abbreviated_options
        "--name job --size 1m --readwrite randread --blocksize 8k --runtim=2"
}

/// The numbers at these paths must be equal.
fn same_numbers(line: &str, places: &[&str]) {
    let [reference, subject] = Program::both().map(|program| result(program, "", line));
    let at = |document: &Value| -> Vec<f64> {
        let numbers = places.iter().map(|place| number(document, place));
        numbers.collect()
    };
    assert_eq!(at(&subject), at(&reference), "{places:?} of {line}");
}

/// As in fio, fdatasync and sync_file_range have latencies but do not count in `total_ios`.
#[test]
fn sync_total_ios_counts_only_fsync() {
    for options in [
        "--fsync=4",
        "--fdatasync=4",
        "--sync_file_range=write:4",
        "--fsync=4 --fdatasync=8 --ioengine=libaio --iodepth=4",
        "--fdatasync=4 --ioengine=null",
        "--fsync=4 --fdatasync=8 --ramp_time=60",
    ] {
        let line = format!("--name=job --size=256k --rw=write {options}");
        same_numbers(&line, &["/jobs/0/sync/total_ios"]);
        // In a ramp that never ends fio records no latencies.
        if !options.contains("ramp_time") {
            same_numbers(&line, &["/jobs/0/sync/lat_ns/N"]);
        }
    }
}

/// The system call of a vectored engine is part of the completion latency.
#[test]
fn vsync_has_no_submission_latency() {
    for depth in [1, 8] {
        let line = format!("--name=job --size=4m --rw=write --ioengine=vsync --iodepth={depth}");
        same_numbers(&line, &["/jobs/0/write/slat_ns/N"]);
        let line = format!("{line} --lat_percentiles=1 --clat_percentiles=1");
        let document = result(Program::subject(), "", &line);
        let write = &document["jobs"][0]["write"];
        // Medians: one write that loses the CPU outside of its system call would raise the mean.
        let median = |kind: &str| number(write, &format!("/{kind}/percentile/50.000000"));
        let (clat, lat) = (median("clat_ns"), median("lat_ns"));
        assert!(clat > lat / 2.0, "clat {clat} of lat {lat}");
    }
}

const TWO_SECTIONS: &str = "\
[global]
size=1m
ioengine=libaio
direct=1
group_reporting

[reader] ; comment
rw=randread
iodepth=4
numjobs=2

[writer]
stonewall
rw=write
bs=64k
fsync=8
";

#[test]
fn sections_of_job_file_are_jobs() {
    let (reference, subject) = same_tree(TWO_SECTIONS, "");
    let names = |document: &Value| -> Vec<String> {
        let jobs = document["jobs"].as_array().expect("jobs");
        jobs.iter()
            .map(|job| format!("{} {}", job["jobname"], job["groupid"]))
            .collect()
    };
    assert_eq!(names(&subject), names(&reference));
    assert_eq!(
        subject["jobs"][1]["job options"],
        reference["jobs"][1]["job options"]
    );
}

#[test]
fn section_option_selects_job() {
    let (_, subject) = same_tree(TWO_SECTIONS, "--section=writer");
    assert_eq!(subject["jobs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn json_plus_has_latency_bins() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        let run = program
            .line(
                &scratch,
                "--name=job --size=1m --rw=randrw --output-format=json+ --output=plus.json",
            )
            .ok();
        let text = std::fs::read_to_string(scratch.work().join("plus.json")).expect("a result");
        let document: Value = serde_json::from_str(&text[text.find('{').expect("JSON")..])
            .unwrap_or_else(|error| panic!("{error}: {run}"));
        for kind in ["read", "write"] {
            let clat = &document["jobs"][0][kind]["clat_ns"];
            let bins = clat["bins"]
                .as_object()
                .unwrap_or_else(|| panic!("{program:?} has no bins for {kind}"));
            let sum: f64 = bins.values().filter_map(Value::as_f64).sum();
            assert_eq!(
                sum,
                number(clat, "/N"),
                "{program:?}: bins of {kind} must add up to N"
            );
            assert!(
                bins.keys().all(|name| name.parse::<u64>().is_ok()),
                "{program:?}: bins are named by nanoseconds"
            );
        }
    }
}

/// Members of one result that must be consistent at any speed.
#[test]
fn members_of_result_agree() {
    for program in Program::both() {
        let document = result(
            program,
            "",
            "--name=job --size=16m --rw=randread --bs=4k --ioengine=libaio --iodepth=8 --direct=1",
        );
        let read = &document["jobs"][0]["read"];
        assert_eq!(number(read, "/total_ios"), 4096.0);
        assert_eq!(
            number(read, "/io_bytes"),
            number(read, "/io_kbytes") * 1024.0
        );
        assert_eq!(number(read, "/clat_ns/N"), number(read, "/lat_ns/N"));
        let means = number(read, "/slat_ns/mean") + number(read, "/clat_ns/mean");
        let lat = number(read, "/lat_ns/mean");
        assert!(
            (lat - means).abs() <= lat * 0.05 + 500.0,
            "{program:?}: lat {lat} is not slat + clat {means}"
        );
        let by_time = number(read, "/total_ios") * 1000.0 / number(read, "/runtime");
        assert!(
            (number(read, "/iops") - by_time).abs() <= by_time * 0.01,
            "{program:?}: iops {} and {by_time}",
            number(read, "/iops")
        );
        let job = &document["jobs"][0];
        let buckets = ["latency_ns", "latency_us", "latency_ms"].map(|name| sum(&job[name]));
        assert!(
            (buckets.iter().sum::<f64>() - 100.0).abs() < 0.5,
            "{program:?}: latency buckets add up to {buckets:?}"
        );
        let depth = sum(&job["iodepth_level"]);
        assert!(
            (99.0..101.0).contains(&depth),
            "{program:?}: depth levels add up to {depth}"
        );
    }
}

fn sum(members: &Value) -> f64 {
    members
        .as_object()
        .expect("an object")
        .values()
        .filter_map(Value::as_f64)
        .sum()
}

/// A document that a program printed during its first job. `Err`: without CPU time, it printed too
/// few, the first of them too late, or all of them before an I/O completed.
fn document_on_the_way(program: Program, line: &str) -> Result<Value, String> {
    let scratch = Scratch::shared();
    let run = program.line(&scratch, line).ok();
    let text = std::fs::read_to_string(scratch.work().join("all.json")).expect("results");
    let found = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let documents: Vec<Value> = found
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{error}: {run}"));
    ensure(documents.len() >= 3, || format!("{program:?}: {run}"))?;
    let is_second_idle = documents[0]["jobs"][1]["read"]["total_ios"] == 0;
    ensure(is_second_idle, || format!("{program:?}: {run}"))?;
    let has_begun = |document: &&Value| {
        let ios = |kind: &str| number(document, &format!("/jobs/0/{kind}/total_ios"));
        ios("read") > 0.0 && ios("write") > 0.0
    };
    // The last document is final.
    let on_the_way = &documents[..documents.len() - 1];
    let document = on_the_way.iter().find(has_begun);
    document
        .cloned()
        .ok_or_else(|| format!("{program:?}: no I/Os on the way: {run}"))
}

/// Documents of `--status-interval` are complete: they have the paths of the last one and of fio's.
#[test]
fn status_interval_documents_are_complete() {
    let display = "--output=all.json --output-format=json --eta=never --status-interval=1";
    let options = "--size=4m --rw=randrw --time_based --runtime=2 --ioengine=libaio --iodepth=2";
    let line = format!("{display} {options} --name=a --name=b --stonewall");
    let begun = Program::both().map(|program| {
        let mut document = Value::Null;
        one_good_try(|| {
            document = document_on_the_way(program, &line)?;
            Ok(())
        });
        document
    });
    // The paths of the second job depend on its progress.
    let [reference, subject] = [0, 1].map(|at| without_second_job(&begun[at]));
    let differences = tree::differences(&reference, &subject, OURS);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    // fio copies its counters while its thread counts on, so some of its latencies may be missing.
    let [_, subject] = begun;
    for kind in ["read", "write"] {
        let first = &subject["jobs"][0];
        let (ios, latencies) = (
            number(first, &format!("/{kind}/total_ios")),
            number(first, &format!("/{kind}/clat_ns/N")),
        );
        assert!(ios - latencies <= 2.0, "{kind}: {ios} {latencies}");
    }
}

fn without_second_job(document: &Value) -> Value {
    let mut document = document.clone();
    document["jobs"].as_array_mut().expect("jobs").truncate(1);
    document
}

#[test]
fn iodepth_is_kept_for_any_completion_pattern() {
    for rw in ["randread", "randwrite"] {
        let line = format!(
            "--name=deep --filename=deep --direct=1 --rw={rw} --bs=4k --size=32m --iodepth=16 \
             --ioengine=libaio --output-format=json"
        );
        for program in Program::both() {
            let scratch = Scratch::shared();
            scratch.write("deep", vec![7u8; 32 << 20]);
            // The queue runs empty whenever the program loses the CPU.
            one_good_try(|| {
                let document = program.line(&scratch, &line).json();
                let full = number(&document, "/jobs/0/iodepth_level/16");
                ensure(full >= 99.0, || {
                    let levels = &document["jobs"][0]["iodepth_level"];
                    format!("{program:?}: {rw}: {levels}")
                })
            });
        }
    }
}
