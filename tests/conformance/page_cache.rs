//! `invalidate`: system calls that drop the page cache of a job's files. Both programs must drop it
//! each time the job starts over, so that reads come from the device.

use iosonde_e2e::scratch::lay_out;
use iosonde_e2e::tree::number;
use iosonde_e2e::{Program, Scratch, ensure, one_good_try, ours, require, system_calls};
use std::fs;

const CALLS: &str = "trace=fadvise64,fsync,read,write,pread64,pwrite64";
const DROP: &str = "POSIX_FADV_DONTNEED";
const FILES: [&str; 2] = ["job.0.0", "job.0.1"];
const FILE_BYTES: usize = 256 << 10;

/// System calls of a run on existing files that concern these files, one per line.
fn calls_on_files(program: Program, scratch: &Scratch, options: &str) -> Vec<String> {
    for file in FILES {
        lay_out(&scratch.work().join(file), FILE_BYTES);
    }
    calls(program, scratch, options)
}

fn calls(program: Program, scratch: &Scratch, options: &str) -> Vec<String> {
    let seen = scratch.out().join("calls");
    let line = format!("--name=job --filesize=256k --bs=64k {options}");
    let _ = program.line(scratch, &line).traced(CALLS, &seen).ok();
    let mut calls = system_calls(&seen);
    calls.retain(|call| FILES.iter().any(|file| call.contains(file)));
    calls
}

fn drops(calls: &[String]) -> usize {
    calls.iter().filter(|call| call.contains(DROP)).count()
}

/// Both programs must drop the cache `expected` times.
fn dropped(options: &str, expected: usize) {
    for program in Program::both() {
        let calls = calls_on_files(program, &Scratch::shared(), options);
        assert_eq!(
            drops(&calls),
            expected,
            "{program:?}: {options}\n{calls:#?}"
        );
    }
}

macro_rules! cases {
    ($($name:ident $options:literal $expected:literal)+) => {
        $(
            #[test]
            fn $name() {
                require!(Strace);
                dropped($options, $expected);
            }
        )+
    };
}

cases! {
    page_cache_is_dropped_before_each_loop_of_reads "--rw=read --loops=4" 4
    page_cache_is_dropped_before_each_loop_of_random_reads "--rw=randread --loops=3" 3
    page_cache_is_dropped_before_each_loop_of_writes "--rw=write --loops=3" 3
    page_cache_is_dropped_before_each_loop_of_mix "--rw=randrw --loops=3" 3
    page_cache_is_dropped_for_each_pass_of_io_size "--rw=read --size=256k --io_size=768k" 3
    page_cache_of_each_file_is_dropped "--rw=read --nrfiles=2 --loops=2" 4
    page_cache_is_dropped_with_few_open_files "--rw=read --nrfiles=2 --openfiles=1 --loops=3" 6
    page_cache_is_dropped_with_mmap_engine "--rw=read --ioengine=mmap --loops=2" 2
    page_cache_is_dropped_before_each_verification "--rw=write --verify=crc32c --loops=2" 4
    page_cache_is_dropped_once_with_norandommap "--rw=randread --norandommap=1 --loops=2" 1
    page_cache_is_kept_without_invalidate "--rw=read --loops=3 --invalidate=0" 0
    page_cache_is_kept_after_pre_read "--rw=read --loops=3 --pre_read=1" 0
    page_cache_is_kept_for_verify_without_invalidate "--rw=write --verify=crc32c --invalidate=0" 0
}

/// As in fio, the cache is dropped after layout, for any `invalidate`, and when a job starts.
#[test]
fn page_cache_is_dropped_after_layout() {
    require!(Strace);
    for (found_bytes, options) in [
        (0, "--rw=read"),
        (0, "--rw=read --invalidate=0"),
        (0, "--rw=read --pre_read=1"),
        (0, "--rw=read --create_only=1"),
        (0, "--rw=read --direct=1 --nrfiles=2"),
        (0, "--rw=write"),
        (0, "--rw=write --fallocate=none --invalidate=0"),
        (0, "--rw=read --numjobs=2 --filename=job.0.0"),
        (128 << 10, "--rw=read"),
        (128 << 10, "--rw=write --invalidate=0"),
    ] {
        let [reference, subject] = Program::both().map(|program| {
            let scratch = Scratch::shared();
            if found_bytes > 0 {
                lay_out(&scratch.work().join(FILES[0]), found_bytes);
            }
            let calls = calls(program, &scratch, options);
            let mut ranges: Vec<String> = calls
                .iter()
                .filter_map(|call| dropped_range(call))
                .collect();
            ranges.sort();
            ranges
        });
        assert!(!reference.is_empty(), "{options}");
        assert_eq!(subject, reference, "{options} on {found_bytes} bytes");
    }
}

/// Offset and length of a call that drops the cache.
fn dropped_range(call: &str) -> Option<String> {
    let (_, arguments) = call.split_once("fadvise64(")?;
    let (range, _) = arguments.split_once(&format!(", {DROP}"))?;
    let (_, range) = range.split_once(", ")?;
    Some(range.to_owned())
}

/// Each pass over 4 blocks begins with a drop. One more may begin after the time limit.
#[test]
fn page_cache_is_dropped_before_each_pass_of_time_based_job() {
    require!(Strace);
    for options in ["--rw=read", "--rw=randread"] {
        for program in Program::both() {
            one_good_try(|| dropped_before_each_pass(program, options));
        }
    }
}

fn dropped_before_each_pass(program: Program, options: &str) -> Result<(), String> {
    let scratch = Scratch::shared();
    let json = scratch.out().join("result.json");
    let line = format!(
        "{options} --time_based --runtime=1 --rate_iops=30 --output-format=json --output={}",
        json.display()
    );
    let calls = calls_on_files(program, &scratch, &line);
    let document = fs::read_to_string(json).expect("the result");
    let document = serde_json::from_str(&document).expect("JSON");
    let ios = number(&document, "/jobs/0/read/total_ios") as usize;
    let rounds = ios.div_ceil(4);
    let found = drops(&calls);
    let counts = format!("{program:?}: {options}: {ios} I/Os, {found} drops");
    assert!(found == rounds || found == rounds + 1, "{counts}");
    // Without CPU time, fewer passes complete within a second.
    ensure(ios > 8, || counts)
}

/// A trace that closes and reopens a file drops the cache at that point.
#[test]
fn page_cache_is_dropped_when_trace_reopens_file() {
    require!(Strace);
    for program in Program::both() {
        let scratch = Scratch::shared();
        let file = scratch.work().join(FILES[0]);
        let name = file.display();
        let trace = scratch.write(
            "trace",
            format!(
                "fio version 2 iolog\n{name} add\n{name} open\n{name} read 0 65536\n{name} close\n\
                 {name} open\n{name} read 0 65536\n{name} close\n"
            ),
        );
        let options = format!("--rw=read --read_iolog={}", trace.display());
        let calls = calls_on_files(program, &scratch, &options);
        assert_eq!(drops(&calls), 2, "{program:?}\n{calls:#?}");
    }
}

/// Written data is flushed and dropped from the page cache before it is read back.
#[test]
fn verification_begins_after_flush_and_drop() {
    require!(Strace);
    ours!();
    let scratch = Scratch::shared();
    let options = "--rw=write --verify=crc32c";
    let calls = calls_on_files(Program::Iosonde, &scratch, options);
    let is_read = |call: &String| call.contains("read64(") || call.contains(" read(");
    let first_read = calls.iter().position(is_read).expect("it reads back");
    let is_write = |call: &String| call.contains("write64(") || call.contains(" write(");
    let last_write = calls.iter().rposition(is_write).expect("it writes");
    let between = &calls[last_write + 1..first_read];
    let flush = between.iter().position(|call| call.contains("fsync("));
    let drop = between.iter().rposition(|call| call.contains(DROP));
    assert!(flush.is_some() && flush < drop, "{calls:#?}");
}

/// As in fio, each pass is flushed, within the runtime of the job.
#[test]
fn end_fsync_flushes_each_loop_within_runtime() {
    require!(Strace);
    for program in Program::both() {
        for option in ["--end_fsync=1", "--fsync_on_close=1"] {
            let scratch = Scratch::shared();
            let json = scratch.out().join("result.json");
            let line = format!(
                "--name=job --filesize=256k --bs=64k --rw=write --loops=3 {option} \
                 --output-format=json --output={}",
                json.display()
            );
            lay_out(&scratch.work().join(FILES[0]), FILE_BYTES);
            let seen = scratch.out().join("calls");
            let delayed = "inject=fsync:delay_enter=100000";
            let _ = program.line(&scratch, &line).traced(delayed, &seen).ok();
            let seen = system_calls(&seen);
            let of_file = |call: &&String| call.contains("fsync(") && call.contains(FILES[0]);
            let flushes = seen.iter().filter(of_file).count();
            // Closing the file flushes it once more.
            assert!(
                flushes >= 3,
                "{program:?} {option}: {flushes} flushes\n{seen:#?}"
            );
            let document = fs::read_to_string(json).expect("the result");
            let document = serde_json::from_str(&document).expect("JSON");
            let runtime_ms = number(&document, "/jobs/0/write/runtime");
            assert!(runtime_ms >= 300.0, "{program:?} {option}: {runtime_ms} ms");
        }
    }
}
