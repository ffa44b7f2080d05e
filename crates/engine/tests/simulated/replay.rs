//! Tests of trace replay on a simulated device, with exact times.

use super::{job, run};
use iosonde_job::plan::{Job, Replay};
use iosonde_result::run::WorkerResult;
use std::io::Write;

const MS: u64 = 1_000_000;

/// Replays a trace on a device with one server of 1 ms.
fn replay(text: &str, shape: impl FnOnce(&mut Replay, &mut Job)) -> WorkerResult {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{text}").unwrap();
    let device = "read_us=1000,write_us=1000,parallel=1,read_dist=fixed,write_dist=fixed";
    let mut job = job(device, 1);
    job.schedule.time_based = false;
    job.schedule.runtime_ns = 0;
    let mut replay = Replay {
        traces: vec![file.path().display().to_string()],
        speed_percent: 100,
        ..Replay::default()
    };
    shape(&mut replay, &mut job);
    job.replay = Some(replay);
    let worker = run(vec![job]).workers.remove(0);
    assert!(worker.error.is_none(), "{:?}", worker.error);
    worker
}

const STAMPED: &str = "fio version 3 iolog\n100000 f read 0 4096\n110000 f write 8192 16384\n\
                       120000 f read 4096 4096\n120000 f read 0 512\n";

#[test]
fn replay_starts_ios_at_trace_times() {
    let worker = replay(STAMPED, |_, _| {});
    let (read, write) = (&worker.directions.read, &worker.directions.write);
    assert_eq!((read.total_ios, write.total_ios), (3, 1));
    assert_eq!((read.io_bytes, write.io_bytes), (8704, 16_384));
    // The first I/O is due at the start. The last two are due at 20 ms and run one after the other.
    assert_eq!(read.runtime_ns, 22 * MS);
    assert_eq!(read.clat.moments.max, MS as f64);
    assert_eq!(
        read.lat.moments.max,
        (2 * MS) as f64,
        "from the moment at which it was due"
    );
}

#[test]
fn replay_time_is_scaled_or_ignored() {
    let runtime =
        |shape: fn(&mut Replay, &mut Job)| replay(STAMPED, shape).directions.read.runtime_ns;
    assert_eq!(runtime(|replay, _| replay.speed_percent = 200), 12 * MS);
    assert_eq!(runtime(|replay, _| replay.speed_percent = 50), 42 * MS);
    assert_eq!(runtime(|replay, _| replay.no_stall = true), 4 * MS);
    assert_eq!(runtime(|_, job| job.schedule.runtime_ns = 5 * MS), 5 * MS);
}

#[test]
fn replay_pause_starts_after_the_previous_io() {
    let text = "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf wait 10000 0\n\
                f read 4096 4096\n\
                f read 8192 4096\nf close\n";
    let worker = replay(text, |_, _| {});
    assert_eq!(worker.directions.read.runtime_ns, 13 * MS);
    assert_eq!(worker.directions.read.lat.moments.max, MS as f64);
}

#[test]
fn replay_clones_take_traces_in_turn() {
    let mut other = tempfile::NamedTempFile::new().unwrap();
    write!(other, "fio version 2 iolog\ng write 0 65536\n").unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{STAMPED}").unwrap();
    let mut job = job("nvme", 8);
    job.schedule.time_based = false;
    job.numjobs = 3;
    job.replay = Some(Replay {
        traces: [&file, &other]
            .map(|file| file.path().display().to_string())
            .to_vec(),
        speed_percent: 100,
        ..Replay::default()
    });
    let moved = |worker: &WorkerResult| {
        let directions = &worker.directions;
        (directions.read.io_bytes, directions.write.io_bytes)
    };
    let moved: Vec<_> = run(vec![job]).workers.iter().map(moved).collect();
    assert_eq!(moved, [(8704, 16_384), (0, 65_536), (8704, 16_384)]);
}
