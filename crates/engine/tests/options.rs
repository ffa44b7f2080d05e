//! fio's options on real files: each does what it says.

use iosonde_engine::interrupt::Interrupt;
use iosonde_engine::local::LocalRunner;
use iosonde_job::env::FakeEnv;
use iosonde_job::plan::*;
use iosonde_result::observer::{Control, Observer, Progress, WorkerState};
use iosonde_result::run::{Event, RunResult};
use iosonde_result::session::{RunError, Session};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// A plan from a job file's options, one a line; `[name]` begins a job.
fn plan(directory: &Path, text: &str) -> Plan {
    let text = format!("[global]\ndirectory={}\n{text}", directory.display());
    let env = FakeEnv::new().file("job.fio", &text);
    let parsed = iosonde_job::parse(&["job.fio".into()], &env);
    parsed
        .unwrap_or_else(|diagnostics| panic!("{text}\n{diagnostics}"))
        .plan
}

fn run_watched(
    directory: &Path,
    text: &str,
    observer: &mut dyn Observer,
) -> Result<RunResult, RunError> {
    let mut session = runner(true).open();
    session.run(&plan(directory, text), observer)
}

fn runner(keep_files: bool) -> LocalRunner {
    LocalRunner {
        keep_files,
        ..LocalRunner::default()
    }
}

fn run(directory: &Path, text: &str) -> RunResult {
    let result = run_watched(directory, text, &mut ()).unwrap();
    for worker in &result.workers {
        assert_eq!(worker.error, None, "{text}");
    }
    result
}

fn counts(result: &RunResult) -> (u64, u64) {
    let sum = |direction| {
        let workers = result.workers.iter();
        workers
            .map(|worker| worker.directions[direction].total_ios)
            .sum()
    };
    (sum(Direction::Read), sum(Direction::Write))
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

// ---------------------------------------------------------------- where

#[test]
fn character_devices_are_as_large_as_the_job_says() {
    let result = run(
        Path::new("/dev"),
        "size=16k\n[w]\nfilename=null\nrw=write\n[r]\nfilename=zero\nrw=randread\n",
    );
    assert_eq!(counts(&result), (4, 4));
}

#[test]
fn standard_output_is_no_target() {
    let plan = Plan {
        jobs: vec![Job {
            files: Files {
                filenames: vec!["-".to_owned()],
                size: Some(Extent::Bytes(4096)),
                ..Job::new("x").files
            },
            ..Job::new("x")
        }],
        global_options: Vec::new(),
    };
    let error = runner(true).open().run(&plan, &mut ()).unwrap_err();
    assert!(
        error.to_string().starts_with("-: standard input"),
        "{error}"
    );
}

#[test]
fn file_append_works_behind_the_end() {
    let dir = directory();
    std::fs::write(dir.path().join("f"), [7; 8192]).unwrap();
    let text = "[x]\nfilename=f\nfile_append=1\nsize=64k\nrw=write\n";
    assert_eq!(counts(&run(dir.path(), text)), (0, 16));
    let data = std::fs::read(dir.path().join("f")).unwrap();
    assert_eq!(data.len(), 8192 + 65536);
    assert_eq!(data[..8192], [7; 8192], "what was there is left alone");
}

#[test]
fn directories_in_names_are_made_and_removed_again() {
    let dir = directory();
    let text = "[x]\nfilename=a/b/c:d/e\nsize=64k\nrw=write\n";
    let mut session = Box::new(runner(false).open());
    session.run(&plan(dir.path(), text), &mut ()).unwrap();
    assert!(dir.path().join("a/b/c").is_file() && dir.path().join("d/e").is_file());
    session.close().unwrap();
    assert_eq!(names(dir.path()), [] as [&str; 0]);
}

#[test]
fn a_directory_that_is_not_there_is_an_error() {
    let dir = directory();
    let error = run_watched(
        &dir.path().join("nope"),
        "[x]\nsize=64k\nrw=write\n",
        &mut (),
    )
    .unwrap_err();
    assert!(error.to_string().contains("(ENOENT)"), "{error}");
    assert_eq!(names(dir.path()), [] as [&str; 0]);
}

#[test]
fn sizes_and_offsets_in_per_cent() {
    // fio 3.33: 256 writes, from 256 KiB to 768 KiB of each file.
    let dir = directory();
    for name in ["f", "g"] {
        std::fs::write(dir.path().join(name), vec![0; 1 << 20]).unwrap();
    }
    let text = "[x]\nfilename=f:g\noffset=25%\nsize=50%\nrw=write\n";
    assert_eq!(counts(&run(dir.path(), text)), (0, 256));
    let data = std::fs::read(dir.path().join("g")).unwrap();
    let touched: Vec<bool> = data
        .chunks(4096)
        .map(|block| block.iter().any(|byte| *byte != 0))
        .collect();
    assert!((0..256).all(|block| touched[block] == (64..192).contains(&block)));
}

#[test]
fn opendir_takes_all_files_below() {
    let dir = directory();
    std::fs::create_dir_all(dir.path().join("d/sub")).unwrap();
    std::fs::write(dir.path().join("d/1"), vec![1; 65536]).unwrap();
    std::fs::write(dir.path().join("d/sub/2"), vec![1; 32768]).unwrap();
    let text = format!("[x]\nopendir={}/d\nrw=read\n", dir.path().display());
    assert_eq!(counts(&run(dir.path(), &text)), (24, 0));
}

#[test]
fn thousands_of_files_are_one_announcement() {
    let dir = directory();
    let mut seen = Seen::default();
    let text = "[x]\nnrfiles=3000\nsize=12000k\nrw=read\n";
    let result = run_watched(dir.path(), text, &mut seen).unwrap();
    assert_eq!(
        (result.workers[0].error.clone(), counts(&result)),
        (None, (3000, 0))
    );
    let lines: Vec<_> = seen
        .events
        .iter()
        .filter(|line| line.contains("Laying out"))
        .collect();
    assert_eq!(lines, ["x: Laying out IO files (3000 files / 11MiB)"]);
}

#[test]
fn allow_file_create_off_forbids_to_make_files() {
    let dir = directory();
    for extra in ["rw=write", "rw=read", "rw=write\ncreate_on_open=1"] {
        let text = format!("[x]\nallow_file_create=0\nsize=64k\n{extra}\n");
        let message = match run_watched(dir.path(), &text, &mut ()) {
            Err(error) => error.to_string(),
            Ok(result) => result.workers[0].error.clone().unwrap().message,
        };
        assert!(
            message.contains("allow_file_create=0"),
            "{extra}: {message}"
        );
        assert_eq!(names(dir.path()), [] as [&str; 0], "{extra}");
    }
}

/// Notes what an observer is told.
#[derive(Default)]
struct Seen {
    events: Vec<String>,
    states: BTreeSet<u8>,
    inodes: BTreeSet<u64>,
    most_open: usize,
    watched: Option<std::path::PathBuf>,
    interrupt: Option<Arc<Interrupt>>,
}

impl Observer for Seen {
    fn progress(&mut self, progress: &Progress<'_>) -> Control {
        for worker in progress.workers {
            self.states.insert(worker.state as u8);
            if let (WorkerState::Layout, Some(interrupt)) = (worker.state, &self.interrupt) {
                interrupt.request();
            }
        }
        if let Some(watched) = &self.watched {
            self.inodes
                .extend(std::fs::metadata(watched).map(|file| file.ino()));
            let open = std::fs::read_dir("/proc/self/fd").unwrap().filter(|entry| {
                let link = entry
                    .as_ref()
                    .ok()
                    .and_then(|entry| std::fs::read_link(entry.path()).ok());
                link.is_some_and(|link| link.starts_with(watched))
            });
            self.most_open = self.most_open.max(open.count());
        }
        Control::Continue
    }

    fn event(&mut self, event: &Event) {
        self.events.push(event.message.clone());
    }
}

#[test]
fn no_more_than_openfiles_are_open() {
    for engine in ["io_uring", "libaio", "psync", "vsync"] {
        let dir = directory();
        let mut seen = Seen {
            watched: Some(dir.path().to_owned()),
            ..Seen::default()
        };
        let text = format!(
            "[x]\nioengine={engine}\niodepth=4\nnrfiles=8\nopenfiles=3\nsize=256k\nrw=randwrite\nrate_iops=150\nend_fsync=1\n"
        );
        let result = run_watched(dir.path(), &text, &mut seen).unwrap();
        assert_eq!(result.workers[0].error, None, "{engine}");
        assert_eq!(counts(&result), (0, 64), "{engine}");
        assert!(
            (1..=3).contains(&seen.most_open),
            "{engine}: {} open",
            seen.most_open
        );
    }
}

#[test]
fn unlink_each_loop_begins_with_new_files() {
    let dir = directory();
    // Its other name keeps the first file alive, so that no later one can have its number.
    std::fs::write(dir.path().join("f"), vec![1; 65536]).unwrap();
    std::fs::hard_link(dir.path().join("f"), dir.path().join("old")).unwrap();
    let mut seen = Seen {
        watched: Some(dir.path().join("f")),
        ..Seen::default()
    };
    let text = "[x]\nfilename=f\nsize=64k\nrw=write\nloops=3\nunlink_each_loop=1\nrate_iops=40\n";
    let result = run_watched(dir.path(), text, &mut seen).unwrap();
    assert_eq!(
        (result.workers[0].error.clone(), counts(&result)),
        (None, (0, 48))
    );
    assert!(
        seen.inodes.len() >= 2,
        "a new file in each loop: {:?}",
        seen.inodes
    );
    assert_eq!(names(dir.path()), ["old"]);
}

// ---------------------------------------------------------------- layout

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
fn layout_is_seen_and_can_be_interrupted() {
    let dir = directory();
    let runner = LocalRunner {
        keep_files: true,
        ..LocalRunner::default()
    };
    let mut seen = Seen {
        interrupt: Some(runner.interrupt.clone()),
        ..Seen::default()
    };
    let text = "[x]\nfilename=sub/f:g\nsize=4g\nrw=read\ncreate_fsync=0\n";
    let outcome = runner.open().run(&plan(dir.path(), text), &mut seen);
    assert!(matches!(outcome, Err(RunError::Interrupted)), "{outcome:?}");
    assert!(seen.states.contains(&(WorkerState::Layout as u8)));
    assert_eq!(names(dir.path()), [] as [&str; 0]);
}

#[test]
fn what_a_failed_run_made_is_removed_and_what_it_found_is_left() {
    let dir = directory();
    std::fs::write(dir.path().join("found"), [1; 4096]).unwrap();
    let text = "[x]\nfilename=found:made\ncreate_on_open=1\nsize=64m\nrw=write\nmax_latency=1us\n";
    let result = run_watched(dir.path(), text, &mut ()).unwrap();
    let failure = result.workers[0]
        .error
        .clone()
        .expect("no write takes less than 1 us");
    assert_eq!((failure.errno, failure.operation.as_str()), (110, "write"));
    assert!(
        failure.message.contains("ETIMEDOUT") && failure.file.is_some(),
        "{}",
        failure.message
    );
    assert_eq!(names(dir.path()), ["found"]);
}

// ---------------------------------------------------------------- verification

#[test]
fn each_loop_is_verified() {
    // fio 3.33: 48 reads, 48 writes.
    for rw in ["write", "randwrite"] {
        let dir = directory();
        let text = format!("[x]\nsize=64k\nrw={rw}\nloops=3\nverify=crc32c\n");
        assert_eq!(counts(&run(dir.path(), &text)), (48, 48), "{rw}");
    }
}

#[test]
fn verification_with_few_open_files_and_a_backlog() {
    for extra in [
        "",
        "verify_backlog=8",
        "verify_backlog=8\nverify_backlog_batch=3",
    ] {
        let dir = directory();
        let text = format!(
            "[x]\nioengine=io_uring\niodepth=8\nnrfiles=8\nopenfiles=2\nsize=512k\nrw=randwrite\nverify=md5\n{extra}\n"
        );
        assert_eq!(counts(&run(dir.path(), &text)), (128, 128), "{extra}");
    }
}

#[test]
fn time_that_is_over_is_not_prolonged_by_verification() {
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
fn blocks_that_overlap_in_part_are_not_verified() {
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
                let said = error.to_string().contains("overlap in part");
                assert!(refused && said, "{extra}: {error}");
            }
        }
    }
}

// ---------------------------------------------------------------- logs

#[test]
fn without_per_job_logs_clones_share_a_file() {
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

// ---------------------------------------------------------------- how

#[test]
fn buffers_from_every_kind_of_memory() {
    for mem in ["malloc", "shm", "mmap", "mmapshared", "mmap:FILE"] {
        let dir = directory();
        let mem = mem.replace("FILE", dir.path().join("buffers").to_str().unwrap());
        let text = format!(
            "[x]\nnumjobs=2\nmem={mem}\nsize=1m\nrw=randwrite\nbs=16k\niomem_align=64k\nverify=crc32c\n"
        );
        assert_eq!(counts(&run(dir.path(), &text)), (128, 128), "{mem}");
        assert_eq!(
            names(dir.path()),
            ["x.0.0", "x.1.0"],
            "{mem}: the file behind the buffers is gone"
        );
    }
}

#[test]
fn memory_that_cannot_be_had_is_a_clear_error() {
    let dir = directory();
    std::fs::write(dir.path().join("precious"), "data").unwrap();
    let path = dir.path().join("precious");
    let text = format!("[x]\nmem=mmap:{}\nsize=1m\nrw=write\n", path.display());
    let message = refusal(dir.path(), &text);
    assert!(
        message.contains("precious") && message.contains("EEXIST"),
        "{message}"
    );
    assert_eq!(std::fs::read(path).unwrap(), b"data");
    // No machine has pages of 2^50 bytes.
    let text = "[x]\nmem=mmaphuge\nhugepage-size=1024t\nsize=1m\nrw=write\n";
    let message = refusal(dir.path(), text);
    assert!(message.contains("vm.nr_hugepages"), "{message}");
}

/// Why a job is not run.
fn refusal(directory: &Path, text: &str) -> String {
    let error = run_watched(directory, text, &mut ()).unwrap_err();
    format!("{error}; {}", error.remedy())
}

#[test]
fn mapped_files_have_their_size_however_they_are_made() {
    for extra in [
        "fallocate=none",
        "fallocate=keep",
        "create_on_open=1",
        "file_append=1",
    ] {
        let dir = directory();
        let text = format!("[x]\nioengine=mmap\nsize=256k\nrw=randwrite\n{extra}\n");
        assert_eq!(counts(&run(dir.path(), &text)), (0, 64), "{extra}");
    }
}

#[test]
fn fallocate_says_what_a_file_has_before_it_is_written() {
    for (kind, length, blocks) in [
        ("none", 4096, 8),
        ("native", 1 << 20, 2048),
        ("posix", 1 << 20, 2048),
        ("keep", 4096, 2048),
        ("truncate", 1 << 20, 8),
    ] {
        let dir = directory();
        let text = format!(
            "[x]\nfilename=f\nfallocate={kind}\nsize=1m\nrw=write\nnumber_ios=1\nend_fsync=1\n"
        );
        run(dir.path(), &text);
        let file = std::fs::metadata(dir.path().join("f")).unwrap();
        assert_eq!((file.len(), file.blocks()), (length, blocks), "{kind}");
    }
}

// ---------------------------------------------------------------- devices and file systems, as root

// Other tests use the rest of it.
#[allow(dead_code)]
#[path = "common/loop_device.rs"]
mod loop_device;

/// A file system of 8 MiB in memory; unmounted at the end.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Small {
        let dir = directory();
        let path = dir.path().to_str().unwrap();
        loop_device::run("mount", &["-t", "tmpfs", "-o", "size=8m", "none", path]);
        Small(dir)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        loop_device::run("umount", &[self.0.path().to_str().unwrap()]);
    }
}

#[test]
#[ignore = "needs root"]
fn fill_device_ends_when_the_file_system_is_full() {
    // fio 3.33: 129 writes, of which the last one moves nothing; 128 reads.
    for (text, expected) in [
        ("rw=write", (0, 129)),
        ("rw=read", (128, 0)),
        ("rw=write\nsize=1m", (0, 16)),
    ] {
        let small = Small::mount();
        let text = format!("[x]\nbs=64k\nfill_device=1\n{text}\n");
        let result = run(small.0.path(), &text);
        assert_eq!(counts(&result), expected, "{text}");
        let bytes = result.workers[0].directions.write.io_bytes;
        assert!(expected.1 != 129 || bytes == 8 << 20, "{bytes}");
    }
}

#[test]
#[ignore = "needs root"]
fn a_later_job_reads_what_an_earlier_one_has_filled() {
    // fio's example surface-scan.
    let small = Small::mount();
    let text = "[global]\nfilename=f\nbs=64k\nverify=crc32c\n[w]\nrw=write\nfill_device=1\ndo_verify=0\n\
                [r]\nstonewall\ncreate_serialize=0\nrw=read\n";
    let result = run(small.0.path(), text);
    assert!(result.workers.iter().all(|worker| worker.error.is_none()));
    assert_eq!(result.workers[1].directions.read.total_ios, 128);
}

#[test]
fn a_later_job_without_a_size_takes_files_as_they_have_become() {
    let scratch = tempfile::tempdir().unwrap();
    let read = |text: &str| {
        std::fs::write(scratch.path().join("f"), vec![1; 64 << 10]).unwrap();
        let result = run(scratch.path(), &format!("[global]\nbs=4k\n{text}"));
        result.workers.last().unwrap().directions.read.total_ios
    };
    let append = "[w]\nfilename=f\nrw=write\nfile_append=1\nsize=64k\n";
    assert_eq!(
        read(&format!("{append}[r]\nstonewall\nfilename=f\nrw=read\n")),
        32
    );
    let waits = "[r]\nwait_for=w\nfilename=f\nrw=read\nsize=50%\n";
    assert_eq!(read(&format!("{append}{waits}")), 16);
    let says = "[r]\nstonewall\nfilename=f\nrw=read\nsize=32k\n";
    assert_eq!(read(&format!("{append}{says}")), 8);
}

#[test]
fn a_later_job_whose_file_nobody_makes_is_refused_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    let text = "[w]\nfilename=made\nrw=write\nsize=64k\n[r]\nstonewall\nfilename=other\nrw=read\n";
    let error = run_watched(scratch.path(), text, &mut ()).unwrap_err();
    assert!(error.to_string().contains("says no size"), "{error}");
    assert!(!scratch.path().join("made").exists());
}

#[test]
#[ignore = "needs root"]
fn a_full_file_system_is_an_error_otherwise() {
    let small = Small::mount();
    let text = "[x]\nfilename=f\nfile_append=1\nsize=4m\nbs=64k\nrw=write\n";
    run(small.0.path(), text);
    let text = text.replace("size=4m", "size=5m");
    let outcome = run_watched(small.0.path(), &text, &mut ());
    let message = match outcome {
        Err(error) => error.to_string(),
        Ok(result) => result.workers[0].error.clone().unwrap().message,
    };
    assert!(
        message.contains("available") || message.contains("ENOSPC"),
        "{message}"
    );
    let length = std::fs::metadata(small.0.path().join("f")).unwrap().len();
    assert_eq!(length, 4 << 20, "refused before anything is written");
}

#[test]
#[ignore = "needs root and loop devices"]
fn trims_of_a_device_reach_it() {
    for (mode, engine, expected) in [
        ("trim", "psync", (0, 256)),
        ("randtrim", "libaio", (0, 256)),
        ("trimwrite", "io_uring", (256, 256)),
        ("randtrimwrite", "psync", (256, 256)),
    ] {
        let device = loop_device::Loop::new(&[]);
        std::fs::write(device.file(), vec![1; 16 << 20]).unwrap();
        let text = format!(
            "[x]\nfilename={}\nioengine={engine}\nbs=64k\nrw={mode}\n",
            device.path().trim_start_matches("/dev/")
        );
        let result = run(Path::new("/dev"), &text);
        let directions = &result.workers[0].directions;
        let found = (directions.write.total_ios, directions.trim.total_ios);
        assert_eq!(found, expected, "{mode}");
        if mode.ends_with("trim") {
            let blocks = std::fs::metadata(device.file()).unwrap().blocks();
            assert_eq!(blocks, 0, "{mode}: the file behind the device has holes");
        }
    }
}

#[test]
#[ignore = "needs root and loop devices"]
fn sizes_and_offsets_of_a_device() {
    let device = loop_device::Loop::new(&[]);
    let count = |extra: &str| {
        let name = device.path().trim_start_matches("/dev/");
        let text = format!("[x]\nfilename={name}\nbs=64k\nrw=read\n{extra}\n");
        counts(&run(Path::new("/dev"), &text)).0
    };
    // As fio 3.33 counts them on a device of 16 MiB.
    assert_eq!(count("size=25%\noffset=50%"), 64);
    assert_eq!(count("offset=12m"), 64);
    assert_eq!(count("size=1g"), 256, "a device does not grow");
    assert_eq!(count("numjobs=4\noffset_increment=25%\nsize=25%"), 256);
}
