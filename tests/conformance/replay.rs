//! Traces recorded and replayed by both programs, checked against the target's own log.

use std::fs;
use std::path::PathBuf;

use iosonde_e2e::fuse::{Behaviour, FuseFile};
use iosonde_e2e::requests::Requests;
use iosonde_e2e::tree::number;
use iosonde_e2e::{Program, Scratch, require};

const TARGET_BYTES: u64 = 16 << 20;

/// Records a job's I/Os. Returns the trace and the requests that the target received.
fn record(scratch: &Scratch, program: Program, name: &str, job: &str) -> (PathBuf, Requests) {
    let target = FuseFile::serve(scratch, name, TARGET_BYTES, &Behaviour::plain());
    let trace = scratch.work().join(format!("{name}.trace"));
    let line = format!(
        "--name=job --filename={} --direct=1 {job} --write_iolog={}",
        target.path().display(),
        trace.display()
    );
    assert!(program.line(scratch, &line).ok().status.success(), "{line}");
    (trace, target.requests())
}

/// Replays a trace. Returns the requests that the target received, and the result.
fn replay(scratch: &Scratch, program: Program, options: &str) -> (Requests, serde_json::Value) {
    let name = if program.is_fio() { "by_fio" } else { "by_us" };
    let target = FuseFile::serve(scratch, name, TARGET_BYTES, &Behaviour::plain());
    let line = format!(
        "--name=r --direct=1 --replay_redirect={} {options}",
        target.path().display()
    );
    let document = program.line(scratch, &line).json();
    (target.requests(), document)
}

#[test]
fn recorded_trace_is_replayed_by_both_programs() {
    require!(Root, Nbdfuse);
    let scratch = Scratch::shared();
    let job = "--rw=randrw --bs=4k --bssplit=4k/60:16k/40 --size=1m --fdatasync=7";
    for recorder in Program::both() {
        let name = if recorder.is_fio() { "fios" } else { "ours" };
        let (trace, seen) = record(&scratch, recorder, name, job);
        let options = format!("--read_iolog={} --replay_no_stall=1", trace.display());
        for player in Program::both() {
            let (again, document) = replay(&scratch, player, &options);
            // The number of flushes depends on the engine and the file system.
            assert_eq!(again.reads, seen.reads, "{recorder:?} {player:?}");
            assert_eq!(again.writes, seen.writes, "{recorder:?} {player:?}");
            let claimed = |kind| number(&document, &format!("/jobs/0/{kind}/total_ios")) as usize;
            assert_eq!(
                (claimed("read"), claimed("write")),
                (seen.reads.len(), seen.writes.len())
            );
        }
    }
}

#[test]
fn trace_is_scaled_and_aligned_as_in_fio() {
    require!(Root, Nbdfuse);
    let scratch = Scratch::shared();
    let trace = scratch.work().join("t");
    let text = "fio version 3 iolog\n0 /x add\n0 /x open\n10 /x read 40960 4096\n\
                20 /x write 12288 8192\n\
                30 /x read 1048576 4096\n40 /x write 2097152 4096\n50 /x close\n";
    fs::write(&trace, text).expect("a trace");
    for options in [
        "--replay_scale=2 --replay_align=4096",
        "--replay_scale=3 --replay_align=16k",
    ] {
        let options = format!("--read_iolog={} {options}", trace.display());
        let [(by_fio, _), (ours, _)] =
            Program::both().map(|program| replay(&scratch, program, &options));
        assert_eq!(ours, by_fio, "{options}");
    }
}

#[test]
fn replay_skips_requested_directions() {
    require!(Root, Nbdfuse);
    // fio 3.33 skips nothing in a text trace.
    let scratch = Scratch::shared();
    let trace = scratch.work().join("t");
    let text = "fio version 3 iolog\n10 /x read 4096 4096\n20 /x write 12288 8192\n";
    fs::write(&trace, text).expect("a trace");
    for (options, reads, writes) in [
        ("--replay_skip=write", 1, 0),
        ("--replay_skip=read,trim", 0, 1),
        ("--readonly", 1, 0),
    ] {
        let options = format!("--read_iolog={} {options}", trace.display());
        let (seen, _) = replay(&scratch, Program::Iosonde, &options);
        assert_eq!(
            (seen.reads.len(), seen.writes.len()),
            (reads, writes),
            "{options}"
        );
    }
}

#[test]
fn invalid_trace_is_refused_with_line() {
    let scratch = Scratch::shared();
    fs::write(
        scratch.work().join("t"),
        "fio version 3 iolog\n1 x erase 0 1\n",
    )
    .expect("a trace");
    let run = Program::Iosonde
        .line(&scratch, "--name=r --read_iolog=t")
        .run();
    assert_eq!(run.status.code(), Some(3), "{}", run.stderr);
    assert!(
        run.stderr.contains("t: line 2: unknown action `erase`"),
        "{}",
        run.stderr
    );
}

/// The trace is read when its job starts, not before the run.
#[test]
fn job_replays_trace_of_earlier_job() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        let line = "--filename=file --size=64k --bs=4k --name=w --rw=randwrite --write_iolog=trace \
                    --name=r --stonewall --read_iolog=trace --numjobs=2";
        let document = program.line(&scratch, line).json();
        for job in 0..3 {
            let written = number(&document, &format!("/jobs/{job}/write/io_bytes"));
            assert_eq!(written, 65536.0, "{program:?} {job}: {document:#}");
        }
    }
}
