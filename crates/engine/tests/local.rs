//! Tests of plans on real files, with each engine that runs here.

use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::*;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use std::path::Path;

const ENGINES: [Engine; 10] = [
    Engine::Auto,
    Engine::IoUring,
    Engine::Libaio,
    Engine::Posixaio,
    Engine::Sync,
    Engine::Psync,
    Engine::Vsync,
    Engine::Pvsync,
    Engine::Pvsync2,
    Engine::Mmap,
];

fn job(directory: &Path, name: &str, mode: Mode, random: bool) -> Job {
    let mut job = Job::new(name);
    job.files.directories = vec![directory.display().to_string()];
    job.files.size = Some(Extent::Bytes(1 << 20));
    job.workload.rw = ReadWrite { mode, random };
    job
}

fn run(jobs: Vec<Job>) -> Result<RunResult, RunError> {
    let mut session = Box::new(
        LocalRunner {
            keep_files: true,
            ..LocalRunner::default()
        }
        .open(),
    );
    let result = session.run(
        &Plan {
            jobs,
            global_options: Vec::new(),
        },
        &mut (),
    );
    session.close()?;
    result
}

#[test]
fn every_engine_moves_each_block_once() {
    for engine in ENGINES {
        for (mode, random) in [
            (Mode::Write, false),
            (Mode::Write, true),
            (Mode::Read, true),
            (Mode::Read, false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let mut job = job(directory.path(), "each", mode, random);
            job.io.engine = engine;
            job.io.iodepth = 8;
            let result = run(vec![job]).unwrap();
            let worker = &result.workers[0];
            assert_eq!(worker.error, None, "{engine:?} {mode:?}");
            let direction = if mode == Mode::Read {
                Direction::Read
            } else {
                Direction::Write
            };
            let stats = &worker.directions[direction];
            assert_eq!(
                (stats.total_ios, stats.io_bytes),
                (256, 1 << 20),
                "{engine:?} {mode:?} {random}"
            );
            assert_eq!(stats.clat.moments.count, 256, "{engine:?}");
            assert!(stats.runtime_ns > 0 && stats.lat.moments.mean >= stats.clat.moments.mean);
        }
    }
}

#[test]
fn what_is_written_is_verified_and_damage_is_found() {
    for engine in ENGINES {
        let directory = tempfile::tempdir().unwrap();
        let mut write = job(directory.path(), "sealed", Mode::Write, true);
        write.files.filename_format = Some("file".to_owned());
        write.io.engine = engine;
        write.io.iodepth = 4;
        write.verify = Some(Verify::new(VerifyMethod::Crc32c));
        let result = run(vec![write.clone()]).unwrap();
        assert_eq!(result.workers[0].error, None, "{engine:?}");
        assert_eq!(
            result.workers[0].directions.read.total_ios, 256,
            "all blocks are read back"
        );

        let path = directory.path().join("file");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[123_456] ^= 0x10;
        std::fs::write(&path, &bytes).unwrap();
        let mut check = write.clone();
        check.verify.as_mut().unwrap().verify_only = true;
        let failure = run(vec![check]).unwrap().workers[0]
            .error
            .clone()
            .expect("the flipped bit is found");
        assert_eq!(
            (failure.errno, failure.offset),
            (84, Some(123_456)),
            "{engine:?}: {}",
            failure.message
        );
    }
}

fn verify() -> Verify {
    Verify::new(VerifyMethod::Md5)
}

#[test]
fn a_backlog_checks_each_block_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut write = job(directory.path(), "backlog", Mode::Write, true);
    write.io.engine = Engine::IoUring;
    write.io.iodepth = 16;
    write.verify = Some(Verify {
        backlog: 64,
        backlog_batch: 10,
        ..verify()
    });
    let result = run(vec![write]).unwrap();
    assert_eq!(result.workers[0].error, None);
    assert_eq!(result.workers[0].directions.read.total_ios, 256);
}

#[test]
fn clones_share_a_file_by_name_and_have_their_own_otherwise() {
    let directory = tempfile::tempdir().unwrap();
    let mut own = job(directory.path(), "own", Mode::Write, false);
    own.numjobs = 3;
    let mut shared = job(directory.path(), "shared", Mode::Read, false);
    shared.numjobs = 2;
    shared.files.filenames = vec!["one".to_owned()];
    let result = run(vec![own, shared]).unwrap();
    assert_eq!(result.workers.len(), 5);
    let mut names: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["one", "own.0.0", "own.1.0", "own.2.0"]);
}

#[test]
fn more_than_there_is_room_for_is_refused_before_anything_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let mut large = job(directory.path(), "large", Mode::Read, false);
    large.files.size = Some(Extent::Bytes(1 << 50));
    assert!(
        matches!(run(vec![large]), Err(RunError::NoSpace { needed_bytes, .. }) if needed_bytes == 1 << 50)
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn stonewalls_keep_jobs_apart() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = job(directory.path(), "first", Mode::Write, false);
    first.schedule.runtime_ns = 300_000_000;
    first.schedule.time_based = true;
    let mut second = job(directory.path(), "second", Mode::Write, false);
    second.schedule.stonewall = true;
    second.groupid = 1;
    let result = run(vec![first, second]).unwrap();
    let [first, second] = &result.workers[..] else {
        panic!("two workers")
    };
    assert!(
        second.started_at_ms >= first.started_at_ms + 290,
        "{} {}",
        first.started_at_ms,
        second.started_at_ms
    );
}

#[test]
fn rates_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut paced = job(directory.path(), "paced", Mode::Read, true);
    paced.io.engine = Engine::IoUring;
    paced.schedule.rate_iops.read = Some(200);
    let worker = run(vec![paced]).unwrap().workers.remove(0);
    // 256 I/Os at 200/s: the last is due 1.275 s after the first, later on a busy machine.
    assert!(
        worker.directions.read.runtime_ns >= 1_275_000_000,
        "{}",
        worker.directions.read.runtime_ns
    );
}

/// Verification reads count in the phase that makes them: the job's I/O, or the read-back.
#[test]
fn the_runtime_of_reads_that_verify_is_that_of_the_phases_they_were_in() {
    let directory = tempfile::tempdir().unwrap();
    let mut backlog = job(directory.path(), "backlog", Mode::Write, true);
    backlog.verify = Some(Verify {
        backlog: 64,
        ..verify()
    });
    let mut mix = job(directory.path(), "mix", Mode::ReadWrite, true);
    mix.verify = Some(verify());
    for job in [backlog, mix] {
        let result = run(vec![job]).unwrap();
        let worker = &result.workers[0];
        assert_eq!(worker.error, None);
        let (read, write) = (&worker.directions.read, &worker.directions.write);
        assert!(
            write.runtime_ns > 0 && read.runtime_ns >= write.runtime_ns,
            "{}: {} and {}",
            worker.job,
            read.runtime_ns,
            write.runtime_ns
        );
        assert!(read.runtime_ns <= worker.elapsed_ns);
    }
}

/// For all options and for all names of the file.
#[test]
fn what_is_only_read_is_neither_written_nor_made_longer_nor_removed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("precious");
    let content = vec![7; (1 << 20) + 3];
    std::fs::write(&file, &content).unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let reads = |change: fn(&mut Job)| {
        let mut job = job(directory.path(), "reads", Mode::Read, true);
        job.files.directories.clear();
        job.files.filenames = vec![link.display().to_string()];
        change(&mut job);
        let runner = LocalRunner {
            only_read: vec![file.clone()],
            ..LocalRunner::default()
        };
        let mut session = runner.open();
        let plan = Plan {
            jobs: vec![job],
            global_options: Vec::new(),
        };
        let outcome = session.run(&plan, &mut ());
        assert!(std::fs::read(&file).unwrap() == content);
        outcome.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(reads(|_| ()), Ok(()));
    assert_eq!(reads(|job| job.files.size = None), Ok(()));
    type Change = fn(&mut Job);
    let harm: [(Change, &str); 5] = [
        (
            |job| job.files.size = Some(Extent::Bytes(2 << 20)),
            "needs 2097152 bytes of it, which has 1048579",
        ),
        (
            |job| job.files.offset = Extent::Percent(50.0),
            "bytes of it, which has 1048579",
        ),
        (|job| job.files.unlink = true, "would remove it"),
        (
            |job| job.workload.rw.mode = Mode::Write,
            "would write to it",
        ),
        (|job| job.workload.rw.mode = Mode::Trim, "would write to it"),
    ];
    for (change, told) in harm {
        let refused = reads(change).unwrap_err();
        assert!(refused.contains(told), "{refused}");
    }
}
