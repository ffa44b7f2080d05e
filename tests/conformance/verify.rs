//! Verification finds corrupted blocks and reports no others.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use iosonde_e2e::{Program, Scratch};
use regex::Regex;

const METHODS: [&str; 11] = [
    "crc32c",
    "crc32",
    "crc16",
    "crc7",
    "md5",
    "sha1",
    "sha256",
    "sha512",
    "xxhash",
    "crc64",
    "crc32c-intel",
];

/// Flips one bit of a file.
fn flip(path: &Path, offset: u64) {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("a file to damage");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset)
        .expect("a byte to read");
    file.write_all_at(&[byte[0] ^ 0x10], offset)
        .expect("a byte to write");
}

fn write(scratch: &Scratch, program: Program, job: &str) {
    let run = program
        .line(
            scratch,
            &format!("--name=job --filename=data --size=1m {job} --do_verify=0"),
        )
        .run();
    assert!(run.status.success(), "{run}");
}

fn check(scratch: &Scratch, program: Program, job: &str) -> iosonde_e2e::Run {
    program
        .line(
            scratch,
            &format!("--name=job --filename=data --size=1m {job} --verify_only"),
        )
        .run()
}

/// fio rounds the blocks of an uneven split to multiples of the smallest, and verifies those.
#[test]
fn split_blocks_are_verified() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        let line = "--name=job --filename=data --size=1m --rw=write --bssplit=4k/30:6k/30:8k/40 \
                    --verify=crc32c";
        let _ = program.line(&scratch, line).ok();
    }
}

/// Whether an error names the offset of the block, as in fio, or a byte within it, as in iosonde.
fn names_a_byte_in_the_block(text: &str, offset: u64) -> bool {
    let block = offset / 4096 * 4096;
    let place = Regex::new(r"(?:offset|byte) (\d+)").expect("a valid pattern");
    place.captures_iter(text).any(|found| {
        let named: u64 = found[1].parse().expect("a number");
        (block..block + 4096).contains(&named)
    })
}

fn finds_a_flipped_bit(job: &str) {
    let program = Program::subject();
    for offset in [20, 4095, 4096 + 2000, 524_288 + 777, (1 << 20) - 1] {
        let scratch = Scratch::shared();
        write(&scratch, program, job);
        let untouched = check(&scratch, program, job);
        assert!(
            untouched.status.success(),
            "reports what is not there: {untouched}"
        );
        flip(&scratch.work().join("data"), offset);
        let damaged = check(&scratch, program, job);
        assert!(
            !damaged.status.success(),
            "does not see byte {offset} flipped: {job}: {damaged}"
        );
        damaged.refused_with(&["data"]);
        assert!(
            names_a_byte_in_the_block(&damaged.text(), offset),
            "does not say where byte {offset} is: {damaged}"
        );
    }
}

#[test]
fn flipped_bit_is_found_by_each_method() {
    for method in METHODS {
        // fio 3.33 misses some flipped bits with this method.
        if Program::subject().is_fio() && method == "sha512" {
            continue;
        }
        finds_a_flipped_bit(&format!("--rw=randwrite --bs=4k --verify={method}"));
    }
}

#[test]
fn flipped_bit_is_found_in_pattern() {
    finds_a_flipped_bit("--rw=write --bs=4k --verify=pattern --verify_pattern=0xdeadbeef");
}

#[test]
fn flipped_bit_is_found_with_header_offset() {
    finds_a_flipped_bit("--rw=randwrite --bs=4k --verify=crc32c --verify_offset=512");
}

#[test]
fn flipped_bit_is_found_at_depth() {
    finds_a_flipped_bit(
        "--rw=randwrite --bs=4k --verify=sha1 --ioengine=libaio --iodepth=16 --direct=1",
    );
}

/// Jobs that write and verify in one run must not report an error.
#[test]
fn intact_data_passes_verification() {
    for program in Program::both() {
        for job in [
            "--rw=randwrite --bs=4k --verify=crc32c",
            "--rw=write --bs=16k --verify=md5 --verify_interval=512",
            "--rw=randrw --bs=4k --verify=crc32c",
            "--rw=randwrite --bs=4k --verify=crc32c --verify_backlog=16",
            "--rw=randwrite --bs=4k --verify=crc32c --verify_backlog=64 --verify_backlog_batch=8 \
             --ioengine=libaio --iodepth=8 --direct=1",
            "--rw=randwrite --bs=4k --verify=xxhash --verify_async=2",
            "--rw=randwrite --bsrange=4k-16k --verify=crc32c --ioengine=io_uring --iodepth=8 \
             --direct=1",
            "--rw=randwrite --bssplit=4k/50:8k/50 --verify=crc32c",
            "--rw=randwrite --bs=4k --norandommap --verify=crc32c",
            "--rw=write --bs=4k --verify=crc32c --loops=3",
            "--rw=write --bs=64k --verify=pattern --verify_pattern=%o",
            "--rw=write --bs=4k --verify=meta --verify_pattern=0xaa555aa5 --verify_interval=512",
            "--rw=randwrite --bs=4k --verify=crc32c --numjobs=2 --nrfiles=3",
            "--rw=write --bs=4k --verify=null",
        ] {
            let scratch = Scratch::shared();
            let run = program
                .line(&scratch, &format!("--name=job --size=1m {job}"))
                .run();
            assert!(run.status.success(), "{program:?}: {job}: {run}");
        }
    }
}

#[test]
fn result_counts_verify_errors() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        write(&scratch, program, "--rw=write --bs=4k --verify=crc32c");
        for offset in [1000, 9000, 500_000] {
            flip(&scratch.work().join("data"), offset);
        }
        let line = "--name=job --filename=data --size=1m --rw=read --bs=4k --verify=crc32c \
                    --continue_on_error=verify";
        let (document, run) = program.line(&scratch, line).json_and_run();
        let job = &document["jobs"][0];
        assert_eq!(
            (job["total_err"].as_u64(), job["first_error"].as_u64()),
            (Some(3), Some(84)),
            "{program:?}: {run}"
        );
        // With JSON output, iosonde prints no text.
        let run = program.line(&scratch, line).run();
        for offset in [1000, 9000, 500_000] {
            let names_offset = names_a_byte_in_the_block(&run.text(), offset);
            assert!(
                names_offset,
                "{program:?} does not say where {offset} is: {run}"
            );
        }
    }
}

#[test]
fn fatal_verify_error_ends_job_with_tolerance() {
    let count = |program: Program, options: &str| {
        let scratch = Scratch::shared();
        write(&scratch, program, "--rw=write --bs=4k --verify=crc32c");
        flip(&scratch.work().join("data"), 500_000);
        let line = format!(
            "--name=job --filename=data --size=1m --rw=read --bs=4k --verify=crc32c \
             --continue_on_error=verify {options}"
        );
        let (document, run) = program.line(&scratch, &line).json_and_run();
        let read = document["jobs"][0]["read"]["total_ios"].as_u64();
        read.unwrap_or_else(|| panic!("{program:?}: {run}"))
    };
    for program in Program::both() {
        assert_eq!(count(program, "--verify_fatal=0"), 256, "{program:?}");
        let fatal = count(program, "--verify_fatal=1");
        assert!((122..=124).contains(&fatal), "{program:?}: {fatal}");
    }
}

/// `--aux-path` applies to files of `verify_dump`, but not to data, logs and results.
#[test]
fn aux_path_holds_dump_files() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        std::fs::create_dir(scratch.work().join("aux")).expect("a directory");
        let job = "--name=job --filename=data --size=64k --verify=crc32c --verify_dump=1 \
                   --write_bw_log=b --output=out --aux-path=aux";
        let _ = program
            .line(&scratch, &format!("{job} --rw=write --do_verify=0"))
            .ok();
        let data = scratch.work().join("data");
        let mut bytes = std::fs::read(&data).expect("the data");
        bytes[5000] ^= 1;
        std::fs::write(&data, bytes).expect("other data");
        let run = program.line(&scratch, &format!("{job} --rw=read")).run();
        assert!(!run.status.success(), "{program:?}: {run}");
        let files = scratch.files();
        for name in [
            "aux/data.4096.expected",
            "aux/data.4096.received",
            "b_bw.1.log",
            "data",
            "out",
        ] {
            assert!(
                files.iter().any(|file| file == name),
                "{program:?}: {name} of {files:?}"
            );
        }
        assert!(
            !files.contains(&"data.4096.received".to_owned()),
            "{program:?}: {files:?}"
        );
    }
}
