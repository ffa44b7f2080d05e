//! Counts, bytes and offsets that the job determines, checked against the target's own log.

use iosonde_e2e::fuse::{Behaviour, FuseFile};
use iosonde_e2e::requests::Requests;
use iosonde_e2e::tree::number;
use iosonde_e2e::{Program, Scratch, require};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// Runs a job on a file with a request log.
fn observe(program: Program, job: &str) -> (Value, Requests) {
    let scratch = Scratch::shared();
    let file = FuseFile::serve(&scratch, "target", 16 * MIB, &Behaviour::plain());
    let line = format!(
        "--name=job --filename={} --direct=1 {job}",
        file.path().display()
    );
    let document = program.line(&scratch, &line).json();
    (document, file.requests())
}

/// Counts and bytes in a result, for read, write and trim.
fn claimed(document: &Value) -> Vec<(f64, f64)> {
    ["read", "write", "trim"]
        .iter()
        .map(|kind| {
            (
                number(document, &format!("/jobs/0/{kind}/total_ios")),
                number(document, &format!("/jobs/0/{kind}/io_bytes")),
            )
        })
        .collect()
}

/// Both programs must send the same set of requests and report as many.
fn same_requests(job: &str) {
    require!(Root, Nbdfuse);
    let (reference, by_fio) = observe(Program::Fio, job);
    let (result, by_subject) = observe(Program::subject(), job);
    assert_eq!(by_subject.clone().sorted(), by_fio.sorted(), "{job}");
    assert_eq!(claimed(&result), claimed(&reference), "{job}");
    let reads: u64 = by_subject
        .reads
        .iter()
        .map(|request| request.length_bytes)
        .sum();
    assert_eq!(
        number(&result, "/jobs/0/read/io_bytes"),
        reads as f64,
        "{job}"
    );
    let writes: u64 = by_subject
        .writes
        .iter()
        .map(|request| request.length_bytes)
        .sum();
    assert_eq!(
        number(&result, "/jobs/0/write/io_bytes"),
        writes as f64,
        "{job}"
    );
}

/// As [`same_requests`], and in the same order; for depth 1 only.
fn same_sequence(job: &str) {
    require!(Root, Nbdfuse);
    let (_, by_fio) = observe(Program::Fio, job);
    let (_, by_subject) = observe(Program::subject(), job);
    assert_eq!(by_subject, by_fio, "{job}");
}

macro_rules! cases {
    ($check:ident: $($name:ident $job:literal)+) => {
        $(#[test] fn $name() { $check($job); })+
    };
}

cases! { same_sequence:
    sequential_read_of_file "--rw=read --bs=64k --size=4m"
    sequential_write_of_file "--rw=write --bs=64k --size=4m"
    default_engine_and_block_size "--rw=write --size=256k"
    offset_and_size "--rw=read --bs=4k --offset=1m --size=512k"
    size_not_multiple_of_block "--rw=read --bs=12k --size=100k"
    io_size_wraps_around "--rw=read --bs=16k --size=128k --io_size=320k"
    io_size_smaller_than_size "--rw=write --bs=16k --size=1m --io_size=320k"
    backward_read_with_offset "--rw=read:-8k --bs=4k --size=256k"
    write_with_holes "--rw=write:12k --bs=4k --size=256k"
    read_of_three_loops "--rw=read --bs=32k --size=256k --loops=3"
    number_ios_limits_reads "--rw=read --bs=4k --size=1m --number_ios=37"
    fsync_every_fourth "--rw=write --bs=4k --size=128k --fsync=4"
    fdatasync_every_third "--rw=write --bs=4k --size=128k --fdatasync=3"
    end_fsync_after_writes "--rw=write --bs=4k --size=64k --end_fsync=1"
    zonemode_strided_read
        "--rw=read --bs=16k --size=1m --zonemode=strided --zonesize=64k --zoneskip=64k"
    offset_align_of_offset "--rw=read --bs=4k --offset=70000 --offset_align=64k --size=256k"
    size_in_percent "--rw=read --bs=64k --size=25%"
    io_size_percent "--rw=read --bs=64k --size=1m --io_size=50%"
}

cases! { same_requests:
    random_read_covers_each_block_once "--rw=randread --bs=4k --size=2m"
    random_write_covers_each_block_once
        "--rw=randwrite --bs=8k --size=2m --ioengine=libaio --iodepth=8"
    random_read_at_depth "--rw=randread --bs=4k --size=2m --ioengine=io_uring --iodepth=16"
    sequential_at_depth "--rw=write --bs=16k --size=2m --ioengine=libaio --iodepth=4"
    random_with_lfsr "--rw=randread --bs=4k --size=1m --random_generator=lfsr"
    offset_increment_of_two_clones
        "--rw=write --bs=16k --size=1m --numjobs=2 --offset_increment=1m --group_reporting"
    rwmixread_of_100_percent "--rw=randrw --rwmixread=100 --bs=4k --size=1m"
    sync_engine_random_read "--rw=randread --bs=4k --size=1m --ioengine=sync"
    pvsync2_engine_random_read "--rw=randread --bs=4k --size=1m --ioengine=pvsync2"
}
