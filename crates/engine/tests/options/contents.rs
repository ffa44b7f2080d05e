//! Tests of layout, verification and logs.

use super::*;

#[test]
fn create_only_lays_out_and_stops() {
    let dir = directory();
    let text =
        "[x]\nfilename=f\ncreate_only=1\nsize=64k\nrw=read\n[y]\nfilename=g\nsize=64k\nrw=write\n";
    let result = run(dir.path(), text);
    assert_eq!((result.workers.len(), counts(&result)), (2, (0, 16)));
    let data = std::fs::read(dir.path().join("f")).unwrap();
    assert_eq!(data.len(), 65536);
    assert!(
        data.chunks(512)
            .all(|sector| sector.iter().any(|byte| *byte != 0))
    );
}

#[test]
fn laid_out_data_differ_and_do_not_repeat() {
    let dir = directory();
    run(
        dir.path(),
        "[x]\nnrfiles=2\nsize=20m\nrw=read\nnumber_ios=1\n",
    );
    let mut sectors = BTreeSet::new();
    for name in names(dir.path()) {
        let data = std::fs::read(dir.path().join(name)).unwrap();
        sectors.extend(data.chunks(512).map(<[u8]>::to_vec));
    }
    assert_eq!(sectors.len(), (20 << 20) / 512);
}

#[test]
fn layout_is_reported_and_can_be_interrupted() {
    let first_of_two = "[x]\nfilename=sub/f:g\nsize=4g\nrw=read\ncreate_fsync=0\n";
    let last = "[w]\nfilename=a/whole\nsize=64k\nrw=write\n\
                [x]\nfilename=sub/f\nsize=4g\nrw=read\ncreate_fsync=0\n";
    for (text, keep_files, left) in [
        (first_of_two, true, &[] as &[&str]),
        (last, false, &[]),
        (last, true, &["a"]),
    ] {
        let dir = directory();
        let runner = runner(keep_files);
        let mut seen = RecordingObserver {
            interrupt: Some(runner.interrupt.clone()),
            ..RecordingObserver::default()
        };
        let outcome = runner.open().run(&plan(dir.path(), text), &mut seen);
        assert!(matches!(outcome, Err(RunError::Interrupted)), "{outcome:?}");
        assert!(seen.states.contains(&(WorkerState::Layout as u8)));
        assert_eq!(names(dir.path()), left, "{text}");
    }
}

/// Interrupts a run when its jobs start.
struct InterruptsRun(Arc<Interrupt>);

impl Observer for InterruptsRun {
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
        let mut workers = progress.workers.iter();
        if workers.any(|worker| worker.state == WorkerState::Running) {
            self.0.request();
        }
        Control::Continue
    }
}

#[test]
fn interrupted_run_keeps_files_only_on_request() {
    for (keep_files, left) in [(true, &["x.0.0"] as &[&str]), (false, &[])] {
        let dir = directory();
        let runner = runner(keep_files);
        let text = "[x]\nsize=64k\nrw=write\ntime_based\nruntime=600\n";
        let mut observer = InterruptsRun(runner.interrupt.clone());
        let mut session = Box::new(runner.open());
        let outcome = session.run(&plan(dir.path(), text), &mut observer);
        assert!(outcome.is_ok(), "{outcome:?}");
        session.close().unwrap();
        assert_eq!(names(dir.path()), left);
    }
}

#[test]
fn failed_run_removes_only_the_files_it_created() {
    let dir = directory();
    std::fs::write(dir.path().join("found"), [1; 4096]).unwrap();
    let text = "[x]\nfilename=found:made\ncreate_on_open=1\nsize=64m\nrw=write\nmax_latency=1us\n";
    let result = run_watched(dir.path(), text, &mut ()).unwrap();
    let failure = result.workers[0]
        .error
        .clone()
        .expect("no write takes less than 1 us");
    assert_eq!((failure.errno, failure.operation.as_str()), (110, "write"));
    assert!(failure.file.is_some(), "{failure:?}");
    assert_eq!(names(dir.path()), ["found"]);
}

#[test]
fn loops_are_each_verified() {
    // fio 3.33: 48 reads, 48 writes.
    for rw in ["write", "randwrite"] {
        let dir = directory();
        let text = format!("[x]\nsize=64k\nrw={rw}\nloops=3\nverify=crc32c\n");
        assert_eq!(counts(&run(dir.path(), &text)), (48, 48), "{rw}");
    }
}

#[test]
fn verification_works_with_openfiles_and_backlog() {
    for extra in [
        "",
        "verify_backlog=8",
        "verify_backlog=8\nverify_backlog_batch=3",
    ] {
        let dir = directory();
        let text = format!(
            "[x]\nioengine=io_uring\niodepth=8\nnrfiles=8\nopenfiles=2\nsize=512k\n\
             rw=randwrite\nverify=md5\n{extra}\n"
        );
        assert_eq!(counts(&run(dir.path(), &text)), (128, 128), "{extra}");
    }
}

#[test]
fn verification_does_not_extend_the_runtime() {
    let dir = directory();
    let text = "[x]\nsize=64m\nrw=randwrite\nverify=crc32c\ntime_based\nruntime=200ms\n";
    let result = run(dir.path(), text);
    assert_eq!(
        counts(&result).0,
        0,
        "as in fio, writing uses all of the time"
    );
}

#[test]
fn partly_overlapping_blocks_refuse_verification() {
    for (extra, refused) in [
        (
            "rw=randwrite\nbsrange=512-4k\nbs_unaligned=1\nnorandommap=1",
            true,
        ),
        ("rw=randwrite\nbs=4k\nblockalign=512", true),
        ("rw=randwrite\nbs=4k\nblockalign=8k", false),
        ("rw=randwrite\nbsrange=512-4k\nnorandommap=1", false),
        ("rw=randwrite\nbsrange=512-4k\nbs_unaligned=1", false),
    ] {
        let dir = directory();
        let text = format!("[x]\nsize=256k\nverify=crc32c\n{extra}\n");
        match run_watched(dir.path(), &text, &mut ()) {
            Ok(result) => {
                let error = result.workers[0].error.as_ref();
                assert_eq!((refused, error), (false, None), "{extra}");
            }
            Err(error) => {
                let is_misfit = matches!(
                    &error,
                    RunError::NoFeature { cause }
                        if matches!(**cause, UnsupportedFeature::SizesMismatch { .. })
                );
                assert!(refused && is_misfit, "{extra}: {error}");
            }
        }
    }
}

#[test]
fn clones_share_a_log_file_without_per_job_logs() {
    let dir = directory();
    let prefix = dir.path().join("log");
    for _ in 0..2 {
        let text = format!(
            "[x]\nnumjobs=4\nsize=4m\nrw=write\nper_job_logs=0\nwrite_lat_log={}\n",
            prefix.display()
        );
        run(dir.path(), &text);
        let text = std::fs::read_to_string(dir.path().join("log_clat.log")).unwrap();
        assert_eq!(text.lines().count(), 4096);
        let whole = text.lines().all(|line| line.split(", ").count() == 5);
        assert!(whole, "lines of several workers never mix");
    }
}
