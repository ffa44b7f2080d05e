//! Tests of fio's options on real files.

use iosonde_engine::interrupt::Interrupt;
use iosonde_engine::runner::LocalRunner;
use iosonde_job::env::FakeEnv;
use iosonde_job::plan::*;
use iosonde_result::observer::{Control, Observer, RunProgress, WorkerState};
use iosonde_result::run::{RunEvent, RunResult};
use iosonde_result::run_error::{
    BufferMemory, PathAction, RunError, SystemFailure, TargetProblem, UnsupportedFeature,
};
use iosonde_result::session::Session;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

mod contents;
mod devices;

/// Plan from the options of a job file, one per line. `[name]` starts a job.
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

// -------------------------------------------------- options of target files

#[test]
fn character_device_takes_the_size_of_the_job() {
    let result = run(
        Path::new("/dev"),
        "size=16k\n[w]\nfilename=null\nrw=write\n[r]\nfilename=zero\nrw=randread\n",
    );
    assert_eq!(counts(&result), (4, 4));
}

#[test]
fn standard_output_target_is_refused() {
    let plan = Plan {
        jobs: vec![Job {
            files: JobFiles {
                filenames: vec!["-".to_owned()],
                size: Some(BytesOrPercent::Bytes(4096)),
                ..Job::new("x").files
            },
            ..Job::new("x")
        }],
        global_options: Vec::new(),
    };
    let error = runner(true).open().run(&plan, &mut ()).unwrap_err();
    let expected = RunError::unusable_target("-", TargetProblem::StandardStream);
    assert_eq!(error, expected);
}

#[test]
fn file_append_writes_after_the_end() {
    let dir = directory();
    std::fs::write(dir.path().join("f"), [7; 8192]).unwrap();
    let text = "[x]\nfilename=f\nfile_append=1\nsize=64k\nrw=write\n";
    assert_eq!(counts(&run(dir.path(), text)), (0, 16));
    let data = std::fs::read(dir.path().join("f")).unwrap();
    assert_eq!(data.len(), 8192 + 65536);
    assert_eq!(data[..8192], [7; 8192], "what was there is left alone");
}

#[test]
fn file_append_lays_out_what_is_read_behind_the_end() {
    let dir = directory();
    std::fs::write(dir.path().join("f"), [7; 8192]).unwrap();
    let text = "[x]\nfilename=f\nfile_append=1\nsize=64k\noffset=4k\nrw=read\n";
    assert_eq!(counts(&run(dir.path(), text)), (16, 0));
    let data = std::fs::read(dir.path().join("f")).unwrap();
    assert_eq!(data.len(), 8192 + 65536, "whatever the offset");
    assert_eq!(data[..8192], [7; 8192], "what was there is left alone");
}

#[test]
fn file_append_of_clones_begins_where_the_layout_ended() {
    for (extra, bytes) in [("", 2 * 65536), ("fallocate=none", 65536)] {
        let dir = directory();
        std::fs::write(dir.path().join("f"), [7; 8192]).unwrap();
        let text =
            format!("[x]\nfilename=f\nfile_append=1\nsize=64k\nrw=write\nnumjobs=2\n{extra}\n");
        run(dir.path(), &text);
        let file = std::fs::metadata(dir.path().join("f")).unwrap();
        assert_eq!(file.len(), 8192 + bytes, "{extra}");
    }
}

#[test]
fn file_append_with_filesize_ends_at_that_size() {
    let dir = directory();
    std::fs::write(dir.path().join("f"), [7; 8192]).unwrap();
    let text = "[x]\nfilename=f\nfile_append=1\nsize=64k\nfilesize=32k\nrw=write\n";
    assert_eq!(counts(&run(dir.path(), text)), (0, 6));
    let error = run_watched(dir.path(), &text.replace("32k", "16k"), &mut ()).unwrap_err();
    let cause = target_problem(&error);
    assert!(
        matches!(
            cause,
            TargetProblem::OffsetAfterFilesize {
                filesize: 16384,
                ..
            }
        ),
        "{cause:?}"
    );
}

#[test]
fn directories_of_filenames_are_created_and_removed() {
    let dir = directory();
    let text = "[x]\nfilename=a/b/c:d/e\nsize=64k\nrw=write\n";
    let mut session = Box::new(runner(false).open());
    session.run(&plan(dir.path(), text), &mut ()).unwrap();
    assert!(dir.path().join("a/b/c").is_file() && dir.path().join("d/e").is_file());
    session.close().unwrap();
    assert_eq!(names(dir.path()), [] as [&str; 0]);
}

#[test]
fn missing_directory_is_an_enoent_error() {
    let dir = directory();
    let error = run_watched(
        &dir.path().join("nope"),
        "[x]\nsize=64k\nrw=write\n",
        &mut (),
    )
    .unwrap_err();
    assert_eq!(error.errno(), Some(libc::ENOENT), "{error:?}");
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
fn opendir_uses_all_files_below() {
    let dir = directory();
    std::fs::create_dir_all(dir.path().join("d/sub")).unwrap();
    std::fs::write(dir.path().join("d/1"), vec![1; 65536]).unwrap();
    std::fs::write(dir.path().join("d/sub/2"), vec![1; 32768]).unwrap();
    let text = format!("[x]\nopendir={}/d\nrw=read\n", dir.path().display());
    assert_eq!(counts(&run(dir.path(), &text)), (24, 0));
    std::fs::write(dir.path().join("named"), vec![1; 16384]).unwrap();
    let text = format!(
        "[x]\nopendir={0}/d/sub\nopendir={0}/d/sub\nfilename=named\nrw=read\n",
        dir.path().display()
    );
    assert_eq!(counts(&run(dir.path(), &text)), (8 + 8 + 4, 0));
}

#[test]
fn layout_of_many_files_is_announced_once() {
    let dir = directory();
    let mut seen = RecordingObserver::default();
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
    assert_eq!(lines, ["x: Laying out IO files (3000 files / total 11MiB)"]);
}

#[test]
fn allow_file_create_0_prevents_file_creation() {
    let dir = directory();
    for extra in ["rw=write", "rw=read", "rw=write\ncreate_on_open=1"] {
        let text = format!("[x]\nallow_file_create=0\nsize=64k\n{extra}\n");
        match run_watched(dir.path(), &text, &mut ()) {
            Err(error) => {
                let problem = target_problem(&error);
                assert_eq!(problem, &TargetProblem::CreationForbidden, "{extra}");
            }
            // Of the error of a worker, only the text is kept.
            Ok(result) => {
                let message = result.workers[0].error.clone().unwrap().message;
                assert!(
                    message.contains("allow_file_create=0"),
                    "{extra}: {message}"
                );
            }
        }
        assert_eq!(names(dir.path()), [] as [&str; 0], "{extra}");
    }
}

/// Records the calls of an observer.
#[derive(Default)]
struct RecordingObserver {
    events: Vec<String>,
    states: BTreeSet<u8>,
    inodes: BTreeSet<u64>,
    most_open: usize,
    watched: Option<std::path::PathBuf>,
    interrupt: Option<Arc<Interrupt>>,
}

impl Observer for RecordingObserver {
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
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

    fn event(&mut self, event: &RunEvent) {
        self.events.push(event.message.clone());
    }
}

#[test]
fn openfiles_bounds_the_open_files() {
    for engine in ["io_uring", "libaio", "psync", "vsync"] {
        let dir = directory();
        let mut seen = RecordingObserver {
            watched: Some(dir.path().to_owned()),
            ..RecordingObserver::default()
        };
        let text = format!(
            "[x]\nioengine={engine}\niodepth=4\nnrfiles=8\nopenfiles=3\nsize=256k\n\
             rw=randwrite\nrate_iops=60\nend_fsync=1\n"
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
fn overwrite_lays_a_file_out_before_it_is_written() {
    for (overwrite, least) in [(0, 0), (1, 256 << 10)] {
        let dir = directory();
        let text = format!(
            "[x]\nfilename=f\nsize=256k\nfallocate=none\nrw=randwrite\nnumber_ios=1\n\
             overwrite={overwrite}\n"
        );
        run(dir.path(), &text);
        let metadata = std::fs::metadata(dir.path().join("f")).unwrap();
        let allocated = metadata.blocks() * 512;
        let range = least..=(least + (64 << 10));
        assert!(
            range.contains(&allocated),
            "overwrite={overwrite}: {allocated}"
        );
    }
}

#[test]
fn unlink_removes_files_when_the_job_is_done() {
    let dir = directory();
    let text = "[x]\nfilename=f\nsize=64k\nrw=write\nunlink=";
    run(dir.path(), &format!("{text}0\n"));
    assert_eq!(names(dir.path()), ["f"]);
    run(dir.path(), &format!("{text}1\n"));
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn unlink_each_loop_begins_with_new_files() {
    let dir = directory();
    // A second name keeps the first file, so that no later file reuses its inode.
    std::fs::write(dir.path().join("f"), vec![1; 65536]).unwrap();
    std::fs::hard_link(dir.path().join("f"), dir.path().join("old")).unwrap();
    let mut seen = RecordingObserver {
        watched: Some(dir.path().join("f")),
        ..RecordingObserver::default()
    };
    let text = "[x]\nfilename=f\nsize=64k\nrw=write\nloops=3\nunlink_each_loop=1\nrate_iops=20\n";
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
    assert_eq!(names(dir.path()), ["f", "old"], "the last file stays");
}

// -------------------------------------------------- options of I/O methods

#[test]
fn buffers_of_each_mem_kind_work() {
    for mem in ["malloc", "shm", "mmap", "mmapshared", "mmap:FILE"] {
        let dir = directory();
        let mem = mem.replace("FILE", dir.path().join("buffers").to_str().unwrap());
        let text = format!(
            "[x]\nnumjobs=2\nmem={mem}\nsize=1m\nrw=randwrite\nbs=16k\n\
             iomem_align=64k\nverify=crc32c\n"
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
fn unavailable_buffer_memory_is_a_clear_error() {
    let dir = directory();
    std::fs::write(dir.path().join("precious"), "data").unwrap();
    let path = dir.path().join("precious");
    let text = format!("[x]\nmem=mmap:{}\nsize=1m\nrw=write\n", path.display());
    let error = run_watched(dir.path(), &text, &mut ()).unwrap_err();
    assert_eq!(error.path(), path.to_str());
    let is_there = matches!(
        error,
        RunError::PathAccess {
            action: PathAction::Create,
            failure: SystemFailure::Errno(libc::EEXIST),
            ..
        }
    );
    assert!(is_there, "{error:?}");
    assert_eq!(std::fs::read(path).unwrap(), b"data");
    // No machine has pages of 2^50 bytes.
    let text = "[x]\nmem=mmaphuge\nhugepage-size=1024t\nsize=1m\nrw=write\n";
    let error = run_watched(dir.path(), text, &mut ()).unwrap_err();
    let RunError::NoFeature { cause } = &error else {
        panic!("{error:?}");
    };
    assert!(
        matches!(
            **cause,
            UnsupportedFeature::NoBufferMemory {
                memory: BufferMemory::HugePages,
                ..
            }
        ),
        "{cause:?}"
    );
}

/// Error with which a job is refused.
/// Returns the reason why a path cannot be used.
fn target_problem(error: &RunError) -> &TargetProblem {
    match error {
        RunError::UnusableTarget { cause, .. } => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn mmap_files_have_their_full_size() {
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
fn fallocate_mode_sets_length_and_blocks() {
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
