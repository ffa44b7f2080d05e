//! Tests of plans on real files, with each engine that runs here.

use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::*;
use iosonde_result::cache_state::{CacheTemperature, ColdLayers, describe_caches};
use iosonde_result::run::RunResult;
use iosonde_result::run_error::{FileHarm, RunError, TargetProblem};
use iosonde_result::session::Session;
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

fn job(directory: &Path, name: &str, mode: ReadWriteMode, random: bool) -> Job {
    let mut job = Job::new(name);
    job.files.directories = vec![directory.display().to_string()];
    job.files.size = Some(BytesOrPercent::Bytes(1 << 20));
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
fn engines_transfer_each_block_once() {
    for engine in ENGINES {
        for (mode, random) in [
            (ReadWriteMode::Write, false),
            (ReadWriteMode::Write, true),
            (ReadWriteMode::Read, true),
            (ReadWriteMode::Read, false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let mut job = job(directory.path(), "each", mode, random);
            job.io.engine = engine;
            job.io.iodepth = 8;
            let result = run(vec![job]).unwrap();
            let worker = &result.workers[0];
            assert_eq!(worker.error, None, "{engine:?} {mode:?}");
            let direction = if mode == ReadWriteMode::Read {
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
fn verification_passes_written_data_and_finds_damage() {
    for engine in ENGINES {
        let directory = tempfile::tempdir().unwrap();
        let mut write = job(directory.path(), "sealed", ReadWriteMode::Write, true);
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
fn verify_backlog_checks_each_block_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut write = job(directory.path(), "backlog", ReadWriteMode::Write, true);
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
fn clones_share_only_files_given_by_filename() {
    let directory = tempfile::tempdir().unwrap();
    let mut own = job(directory.path(), "own", ReadWriteMode::Write, false);
    own.numjobs = 3;
    let mut shared = job(directory.path(), "shared", ReadWriteMode::Read, false);
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
fn job_beyond_free_space_is_refused_before_layout() {
    let directory = tempfile::tempdir().unwrap();
    let mut large = job(directory.path(), "large", ReadWriteMode::Read, false);
    large.files.size = Some(BytesOrPercent::Bytes(1 << 50));
    assert!(matches!(
        run(vec![large]),
        Err(RunError::NoSpace { needed_bytes, .. }) if needed_bytes == 1 << 50
    ));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn stonewall_delays_the_next_group() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = job(directory.path(), "first", ReadWriteMode::Write, false);
    first.schedule.runtime_ns = 300_000_000;
    first.schedule.time_based = true;
    let mut second = job(directory.path(), "second", ReadWriteMode::Write, false);
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
fn rate_iops_limits_the_rate() {
    let directory = tempfile::tempdir().unwrap();
    let mut paced = job(directory.path(), "paced", ReadWriteMode::Read, true);
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

/// Runs workers with `sqthread_poll`. Returns how many use the kernel thread of another worker.
fn count_sharing_workers(numjobs: usize, thread_cpu: Option<u32>) -> usize {
    let directory = tempfile::tempdir().unwrap();
    let mut polled = job(directory.path(), "polled", ReadWriteMode::Read, true);
    polled.io.engine = Engine::IoUring;
    polled.io.iodepth = 8;
    polled.io.uring.sqthread_poll = true;
    polled.io.uring.sqthread_poll_cpu = thread_cpu;
    polled.numjobs = numjobs as u32;
    let result = run(vec![polled]).unwrap();
    assert_eq!(result.workers.len(), numjobs);
    let mut sharing = 0;
    for worker in &result.workers {
        assert_eq!(worker.error, None);
        assert_eq!(worker.directions.read.total_ios, 256);
        let has_flag = |name: &str| worker.backend.flags.iter().any(|flag| flag == name);
        assert!(has_flag("sqpoll"), "{:?}", worker.backend.flags);
        sharing += usize::from(has_flag("shared_sqpoll"));
    }
    sharing
}

/// Returns a CPU on which this process may run.
fn first_allowed_cpu() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = list.unwrap().trim().split([',', '-']).next();
    first.unwrap().parse().unwrap()
}

#[test]
fn workers_beyond_the_cpus_share_a_kernel_thread() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    // Older kernels run the threads outside of the affinity and cpuset, too.
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let is_cpu = |line: &&str| line.starts_with("processor");
    let online = cpuinfo.lines().filter(is_cpu).count();
    let many = (cpus.max(online) / 2 + 1).max(2);
    assert_eq!(count_sharing_workers(many, None), many - 1);
    assert_eq!(count_sharing_workers(2, Some(first_allowed_cpu())), 0);
    if cpus >= 4 {
        assert_eq!(count_sharing_workers(2, None), 0);
    }
}

/// Verification reads count in the phase that makes them: the job's I/O, or the read-back.
#[test]
fn verification_reads_count_in_the_runtime_of_their_phase() {
    let directory = tempfile::tempdir().unwrap();
    let mut backlog = job(directory.path(), "backlog", ReadWriteMode::Write, true);
    backlog.verify = Some(Verify {
        backlog: 64,
        ..verify()
    });
    let mut mix = job(directory.path(), "mix", ReadWriteMode::ReadWrite, true);
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

/// Returns how a job would have changed a file that is only read.
fn harm_of_read_only(error: &RunError) -> FileHarm {
    let RunError::UnusableTarget { cause, .. } = error else {
        panic!("{error:?}");
    };
    let TargetProblem::ReadOnly { harm, .. } = **cause else {
        panic!("{error:?}");
    };
    harm
}

/// Tests each option that could change the file. The job names it by a symbolic link.
#[test]
fn only_read_files_are_never_written_extended_or_removed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("precious");
    let content = vec![7; (1 << 20) + 3];
    std::fs::write(&file, &content).unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let reads = |change: fn(&mut Job)| {
        let mut job = job(directory.path(), "reads", ReadWriteMode::Read, true);
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
        outcome.map(drop)
    };
    assert_eq!(reads(|_| ()), Ok(()));
    assert_eq!(reads(|job| job.files.size = None), Ok(()));
    type JobChange = fn(&mut Job);
    type HarmCheck = fn(FileHarm) -> bool;
    let harm: [(JobChange, HarmCheck); 5] = [
        (
            |job| job.files.size = Some(BytesOrPercent::Bytes(2 << 20)),
            |harm| {
                let extended = FileHarm::Extend {
                    needed_bytes: 2 << 20,
                    file_bytes: 1_048_579,
                };
                harm == extended
            },
        ),
        (
            |job| job.files.offset = BytesOrPercent::Percent(50.0),
            |harm| {
                matches!(
                    harm,
                    FileHarm::Extend {
                        file_bytes: 1_048_579,
                        ..
                    }
                )
            },
        ),
        (
            |job| job.files.unlink = true,
            |harm| harm == FileHarm::Remove,
        ),
        (
            |job| job.workload.rw.mode = ReadWriteMode::Write,
            |harm| harm == FileHarm::Write,
        ),
        (
            |job| job.workload.rw.mode = ReadWriteMode::Trim,
            |harm| harm == FileHarm::Write,
        ),
    ];
    for (change, is_expected) in harm {
        let error = reads(change).unwrap_err();
        assert!(is_expected(harm_of_read_only(&error)), "{error:?}");
    }
}

/// Without the rights of root, the pages of the files are dropped.
#[test]
fn caches_of_the_client_are_dropped_before_each_group() {
    let directory = tempfile::tempdir().unwrap();
    let states = |cold: bool, invalidate: bool| {
        let mut jobs: Vec<Job> = ["first", "second"]
            .map(|name| job(directory.path(), name, ReadWriteMode::Read, true))
            .into();
        jobs[1].schedule.stonewall = true;
        jobs.iter_mut()
            .for_each(|job| job.files.invalidate = invalidate);
        let runner = LocalRunner {
            cold: ColdLayers {
                client: cold,
                ..ColdLayers::default()
            },
            ..LocalRunner::default()
        };
        let plan = Plan {
            jobs,
            global_options: Vec::new(),
        };
        let result = runner.open().run(&plan, &mut ()).unwrap();
        assert!(result.workers.iter().all(|worker| worker.error.is_none()));
        result.caches
    };
    let warm = states(false, false);
    assert_eq!(
        describe_caches(&warm).as_deref(),
        Some("client unknown (not dropped)")
    );
    let invalidated = states(false, true);
    let expected = Some("client cold (invalidate=1)");
    assert_eq!(describe_caches(&invalidated).as_deref(), expected);
    let dropped = states(true, false);
    assert_eq!(dropped[0].state, CacheTemperature::Cold);
    assert_ne!(dropped[0].evidence, invalidated[0].evidence);
}
