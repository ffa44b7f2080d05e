//! What held a run back, on targets where the answer is known; what devices do, beside sysstat's sar; and
//! what `iosonde doctor` says beforehand.

mod doctor;
mod watch;

use std::time::Duration;

use iosonde_e2e::device::{Loop, Zram};
use iosonde_e2e::fuse::{Behaviour, FuseFile};
use iosonde_e2e::mount::Mount;
use iosonde_e2e::program::Invocation;
use iosonde_e2e::throttle::Throttle;
use iosonde_e2e::{Program, Scratch, ensure, one_good_try, ours, require};

const MIB: usize = 1 << 20;

/// A disk that nobody else uses, whatever goes on at the machine.
fn quiet_disk(scratch: &Scratch, size_bytes: usize) -> (Mount, Loop) {
    let memory = Mount::tmpfs(scratch.work().join("memory"), 2 * size_bytes as u64);
    let disk = Loop::in_memory(&memory, size_bytes);
    (memory, disk)
}

/// Runs a job until its first verdict is of this kind and has these words, as it must have in one of a few tries: whatever
/// else the machine does can become the bottleneck itself.
fn held_back_by(kind: &str, words: &[&str], mut job: impl FnMut() -> Invocation) {
    one_good_try(|| {
        let verdicts = job().json()["iosonde"]["verdicts"].take();
        let evidence = verdicts[0]["evidence"].as_str().unwrap_or_default();
        let found = verdicts[0]["kind"] == kind && words.iter().all(|word| evidence.contains(word));
        ensure(found, || {
            format!("not {kind} with {words:?}, but {verdicts:#}")
        })
    });
}

#[test]
fn a_throttle_of_a_control_group() {
    require!(Root, Zram, Throttle);
    ours!();
    let scratch = Scratch::alone();
    let disk = Zram::new(64 * MIB);
    let throttle = Throttle::of_reads(&disk.path(), 500);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randread --bs=4k --ioengine=io_uring --iodepth=16 --time_based --runtime=2",
        disk.path().display()
    );
    held_back_by("throttled", &["allows 500 reads/s"], || {
        Program::subject()
            .line(&scratch, &line)
            .throttled(&throttle)
            .urgent()
    });
}

/// As in a container whose pod is bounded: the bound cannot be read, what it does shows.
#[test]
fn a_throttle_that_cannot_be_seen() {
    require!(Root, Zram, Throttle);
    ours!();
    let scratch = Scratch::alone();
    let disk = Zram::new(64 * MIB);
    let throttle = Throttle::of_reads(&disk.path(), 500);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randread --bs=4k --ioengine=io_uring --iodepth=16 --time_based --runtime=2",
        disk.path().display()
    );
    held_back_by("throttled", &["held above the device"], || {
        Program::subject()
            .line(&scratch, &line)
            .without_sight_of_groups()
            .throttled(&throttle)
            .urgent()
    });
}

/// As a provider's: the disk that this machine sees has all I/Os, and completes no more than so many of them per second.
#[test]
fn a_throttle_below_the_device() {
    require!(Root, Zram, Throttle, VirtualMachine);
    ours!();
    let scratch = Scratch::alone();
    let below = Zram::new(96 * MIB);
    let files = Mount::ext4(scratch.work().join("files"), &below.path());
    let disk = Loop::with_file(&files.dir().join("disk"), 64 * MIB);
    let throttle = Throttle::of_reads(&below.path(), 500);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randread --bs=4k --ioengine=io_uring --iodepth=16 --ramp_time=1 --time_based --runtime=6",
        disk.path().display()
    );
    held_back_by("allowance", &["IOPS, even to", "latency rose to"], || {
        Program::subject()
            .line(&scratch, &line)
            .without_sight_of_groups()
            .throttled(&throttle)
            .urgent()
    });
}

#[test]
fn a_bound_on_processor_time() {
    require!(Root, Zram, CpuQuota);
    ours!();
    let scratch = Scratch::alone();
    let disk = Zram::new(64 * MIB);
    let quota = Throttle::of_processors(200);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randread --bs=4k --ioengine=io_uring --iodepth=4 --time_based --runtime=2",
        disk.path().display()
    );
    held_back_by("generator", &["allows 0.200 of a processor"], || {
        Program::subject().line(&scratch, &line).throttled(&quota)
    });
}

#[test]
fn a_generator_without_time_to_spare() {
    ours!();
    let scratch = Scratch::alone();
    let line = "--name=job --ioengine=null --size=1t --rw=randread --bs=4k --iodepth=16 --time_based --runtime=2";
    held_back_by("generator", &["on a processor"], || {
        Program::subject().line(&scratch, line)
    });
}

#[test]
fn a_process_that_serves_the_files_slowly() {
    require!(Root, Nbdfuse);
    ours!();
    let scratch = Scratch::alone();
    let file = FuseFile::serve(
        &scratch,
        "slow",
        16 << 20,
        &Behaviour::plain().delayed(Duration::from_millis(10)),
    );
    let line = |path: &std::path::Path| {
        format!(
            "--name=job --filename={} --direct=1 --bs=4k --size=16m --rw=randread --ioengine=psync --time_based --runtime=1",
            path.display()
        )
    };
    let served = ["waited 1", " ms for each I/O", "the process that serves"];
    held_back_by("network", &served, || {
        Program::subject()
            .line(&scratch, &line(file.path()))
            .urgent()
    });
    // The same below a block device.
    let disk = Loop::new(file.path());
    held_back_by("network", &served, || {
        Program::subject()
            .line(&scratch, &line(disk.path()))
            .urgent()
    });
}

#[test]
fn a_page_cache() {
    ours!();
    let scratch = Scratch::alone();
    let line = "--name=job --filename=cached --size=64m --pre_read=1 --invalidate=0 --rw=randread --bs=4k --ioengine=psync --time_based --runtime=1";
    // What is in memory has no device to be held against.
    let on_disk = scratch.work().starts_with("/tmp") || scratch.work().starts_with("/var");
    assert!(on_disk, "the scratch directory is in an unusual place");
    held_back_by("served_from_cache", &["a cache served the rest"], || {
        Program::subject().line(&scratch, line)
    });
}

#[test]
fn others_on_the_same_device() {
    require!(Root);
    ours!();
    let scratch = Scratch::alone();
    let (_memory, disk) = quiet_disk(&scratch, 64 * MIB);
    let line = |name: &str, job: &str| {
        format!(
            "--name={name} --filename={} --direct=1 --bs=64k --iodepth=8 --time_based {job}",
            disk.path().display()
        )
    };
    let neighbour = Program::Fio.line(
        &scratch,
        // As threads: a process of its own would outlive the one that is killed, and hold the device.
        &line(
            "other",
            "--rw=randwrite --ioengine=libaio --runtime=600 --thread",
        ),
    );
    let _neighbour = neighbour.urgent().start();
    held_back_by("interference", &["more than this job asked for"], || {
        let line = line(
            "job",
            "--rw=randread --ioengine=io_uring --runtime=2 --ramp_time=1",
        );
        Program::subject().line(&scratch, &line).urgent()
    });
}

#[test]
fn too_few_ios_in_flight() {
    require!(Root);
    ours!();
    let scratch = Scratch::alone();
    let (_memory, disk) = quiet_disk(&scratch, 64 * MIB);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randread --bs=4k --ioengine=psync --time_based --runtime=2",
        disk.path().display()
    );
    held_back_by("queue_depth", &["one I/O in flight at a time"], || {
        Program::subject().line(&scratch, &line).urgent()
    });
}

#[test]
fn a_device_that_does_all_it_can() {
    require!(Root);
    ours!();
    let scratch = Scratch::alone();
    let (_memory, disk) = quiet_disk(&scratch, 64 * MIB);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randrw --bs=1m --ioengine=libaio --iodepth=16 --time_based --runtime=2",
        disk.path().display()
    );
    held_back_by("device", &["was busy", "in flight"], || {
        Program::subject().line(&scratch, &line).urgent()
    });
}

/// What is not so must not be said: nobody else is on this disk, and nothing bounds it.
#[test]
fn nobody_is_blamed_on_a_quiet_disk() {
    require!(Root);
    ours!();
    let scratch = Scratch::alone();
    let (_memory, disk) = quiet_disk(&scratch, 64 * MIB);
    for job in [
        "--rw=randread --bs=4k --ioengine=psync",
        "--rw=randread --bs=4k --ioengine=io_uring --iodepth=32",
        "--rw=write --bs=1m --ioengine=libaio --iodepth=4",
        "--rw=randrw --bs=16k --ioengine=psync --numjobs=4",
        "--rw=randwrite --bs=4k --ioengine=psync --fsync=1",
    ] {
        let line = format!(
            "--name=job --filename={} --direct=1 --time_based --runtime=1 {job}",
            disk.path().display()
        );
        // Whoever takes the machine's processors away for a while (its host, for one) is a fact that may be told.
        one_good_try(|| {
            let result = Program::subject().line(&scratch, &line).urgent().json();
            let verdicts = result["iosonde"]["verdicts"].to_string();
            let blamed = ["interference", "throttled", "network", "lock_contention"];
            let blames = blamed.into_iter().any(|kind| verdicts.contains(kind));
            ensure(!blames, || format!("{job}: {verdicts}"))
        });
    }
}

#[test]
fn locks_in_the_file_system() {
    require!(Root);
    ours!();
    let scratch = Scratch::alone();
    let (_memory, disk) = quiet_disk(&scratch, 288 * MIB);
    let files = Mount::ext4(scratch.work().join("files"), disk.path());
    let file = files.dir().join("shared");
    // Each block is written for the first time: the file's map changes, which one writer at a time may do.
    let line = format!(
        "--name=job --filename={} --size=192m --direct=1 --rw=randwrite --bs=4k --ioengine=psync --numjobs=8 --fallocate=none --runtime=2",
        file.display()
    );
    held_back_by("lock_contention", &["waited for each other in"], || {
        let _ = std::fs::remove_file(&file);
        Program::subject().line(&scratch, &line).urgent()
    });
    std::fs::remove_file(&file).expect("the file");
    // Over the page cache: one write at a time as well. Each time the file starts over, its pages stay in the cache.
    let line = format!(
        "--name=job --filename={} --size=64m --rw=write --bs=256k --ioengine=psync --numjobs=8 --invalidate=0 --time_based --runtime=1",
        files.dir().join("buffered").display()
    );
    held_back_by("lock_contention", &["while a cache took the data"], || {
        Program::subject().line(&scratch, &line).urgent()
    });
}

#[test]
fn data_that_must_last() {
    require!(Root);
    ours!();
    let scratch = Scratch::alone();
    let (_memory, disk) = quiet_disk(&scratch, 64 * MIB);
    let files = Mount::ext4(scratch.work().join("files"), disk.path());
    let line = format!(
        "--name=job --filename={} --size=32m --rw=write --bs=4k --ioengine=psync --fsync=1 --time_based --runtime=1",
        files.dir().join("log").display()
    );
    held_back_by("queue_depth", &["of the time in fsync"], || {
        Program::subject().line(&scratch, &line).urgent()
    });
}

#[test]
fn a_job_that_asks_for_no_more() {
    require!(Root);
    ours!();
    let scratch = Scratch::alone();
    let (_memory, disk) = quiet_disk(&scratch, 64 * MIB);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randread --bs=4k --ioengine=io_uring --iodepth=8 --rate_iops=300 --time_based --runtime=2",
        disk.path().display()
    );
    held_back_by("job_limit", &["rate_iops=300"], || {
        Program::subject().line(&scratch, &line).urgent()
    });
}
