//! Tests of devices and full file systems. They need root.

use super::*;

// Other tests use its other functions.
#[allow(dead_code)]
#[path = "../common/loop_device.rs"]
mod loop_device;

/// A file system in memory, unmounted in the drop.
struct Small(tempfile::TempDir);

impl Small {
    /// A file system of 8 MiB.
    fn mount() -> Small {
        Small::mount_with(&["-t", "tmpfs", "-o", "size=8m", "none"])
    }

    fn mount_with(arguments: &[&str]) -> Small {
        let dir = directory();
        let path = dir.path().to_str().unwrap();
        loop_device::run("mount", &[arguments, &[path]].concat());
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
    // fio 3.33: 129 writes, of which the last one moves no data; 128 reads.
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
fn ramfs_target_is_bounded_by_available_memory() {
    let ramfs = Small::mount_with(&["-t", "ramfs", "none"]);
    let result = run(ramfs.0.path(), "[x]\nsize=1m\nbs=64k\nrw=randread\n");
    assert_eq!(counts(&result), (16, 0));
    let space = iosonde_machine::space::space(ramfs.0.path()).unwrap();
    assert!(space.available_bytes > 1 << 20, "{space:?}");
    let fails = |text: &str| {
        let outcome = run_watched(ramfs.0.path(), text, &mut ());
        outcome.unwrap_err()
    };
    let error = fails("[x]\nsize=1m\ndirect=1\nrw=write\n");
    assert!(matches!(error, RunError::DirectRefused { .. }), "{error:?}");
    let error = fails("[x]\nfill_device=1\nrw=write\n");
    assert_eq!(target_problem(&error), &TargetProblem::FillOfRamfs);
    let error = fails("[x]\nsize=1000t\nrw=write\n");
    assert!(matches!(error, RunError::NoSpace { .. }), "{error:?}");
}

#[test]
#[ignore = "needs root"]
fn later_job_reads_the_file_that_fill_device_wrote() {
    // Like fio's example surface-scan.
    let small = Small::mount();
    let text = "[global]\nfilename=f\nbs=64k\nverify=crc32c\n[w]\nrw=write\nfill_device=1\n\
                do_verify=0\n\
                [r]\nstonewall\ncreate_serialize=0\nrw=read\n";
    let result = run(small.0.path(), text);
    assert!(result.workers.iter().all(|worker| worker.error.is_none()));
    assert_eq!(result.workers[1].directions.read.total_ios, 128);
}

#[test]
fn later_job_without_size_uses_the_grown_file() {
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
fn later_job_without_its_file_is_refused_before_the_run() {
    let scratch = tempfile::tempdir().unwrap();
    // The second job is refused before the space and the layout of the first file are checked.
    for first in ["rw=write\nsize=64k", "rw=read\nsize=1000t"] {
        let text =
            format!("[w]\nfilename=made\n{first}\n[r]\nstonewall\nfilename=other\nrw=read\n");
        let error = run_watched(scratch.path(), &text, &mut ()).unwrap_err();
        assert_eq!(target_problem(&error), &TargetProblem::NoSize);
        assert!(!scratch.path().join("made").exists());
    }
}

#[test]
#[ignore = "needs root"]
fn full_file_system_without_fill_device_is_an_error() {
    let small = Small::mount();
    let text = "[x]\nfilename=f\nfile_append=1\nsize=4m\nbs=64k\nrw=write\n";
    run(small.0.path(), text);
    let text = text.replace("size=4m", "size=5m");
    let outcome = run_watched(small.0.path(), &text, &mut ());
    let is_full = match &outcome {
        Err(error) => matches!(error, RunError::NoSpace { .. }),
        Ok(result) => result.workers[0].error.as_ref().unwrap().errno == libc::ENOSPC,
    };
    assert!(is_full, "{outcome:?}");
    let length = std::fs::metadata(small.0.path().join("f")).unwrap().len();
    assert_eq!(length, 4 << 20, "refused before anything is written");
}

#[test]
#[ignore = "needs root and loop devices"]
fn trims_reach_the_device() {
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
fn device_sizes_and_offsets_match_fio() {
    let device = loop_device::Loop::new(&[]);
    let count = |extra: &str| {
        let name = device.path().trim_start_matches("/dev/");
        let text = format!("[x]\nfilename={name}\nbs=64k\nrw=read\n{extra}\n");
        counts(&run(Path::new("/dev"), &text)).0
    };
    // Counts of fio 3.33 on a device of 16 MiB.
    assert_eq!(count("size=25%\noffset=50%"), 64);
    assert_eq!(count("offset=12m"), 64);
    assert_eq!(count("size=1g"), 256, "a device does not grow");
    assert_eq!(count("numjobs=4\noffset_increment=25%\nsize=25%"), 256);
}

#[test]
fn uncached_job_runs_or_is_refused_before_its_first_io() {
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for engine in ["io_uring", "pvsync2"] {
        let text = format!(
            "[x]\nfilename={engine}\nsize=1m\nbs=4k\nrw=write\nuncached=1\nioengine={engine}\n"
        );
        match run_watched(scratch.path(), &text, &mut ()) {
            Ok(result) => {
                assert_eq!(counts(&result), (0, 256), "{engine}");
                let flags = &result.workers[0].backend.flags;
                let is_named = flags.iter().any(|flag| flag == "uncached");
                assert!(is_named, "{engine}: {flags:?}");
            }
            Err(error) => {
                let problem = target_problem(&error);
                assert!(
                    matches!(problem, TargetProblem::UncachedRefused { .. }),
                    "{engine}: {problem:?}"
                );
            }
        }
    }
}

#[test]
fn atomic_job_without_support_leaves_its_file_unchanged() {
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = scratch.path().join("f");
    let before = vec![7; 1 << 20];
    std::fs::write(&path, &before).unwrap();
    // ext4 and XFS have no atomic writes below their block size.
    let text = "[x]\nfilename=f\nsize=1m\nbssplit=512/50:256k/50\nrw=write\ndirect=1\natomic=1\n\
                ioengine=io_uring\n";
    let error = run_watched(scratch.path(), text, &mut ()).unwrap_err();
    let problem = target_problem(&error);
    assert!(
        matches!(
            problem,
            TargetProblem::NoAtomicWrites { .. } | TargetProblem::AtomicBlockSize { .. }
        ),
        "{problem:?}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
