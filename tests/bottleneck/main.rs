//! Verdicts on targets whose bottleneck is known, `iosonde watch` beside sysstat's sar, and
//! findings of `iosonde doctor`.

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

/// A loop device over a tmpfs file: other disks and their load do not affect it.
fn quiet_disk(scratch: &Scratch, size_bytes: usize) -> (Mount, Loop) {
    let memory = Mount::tmpfs(scratch.work().join("memory"), 2 * size_bytes as u64);
    let disk = Loop::in_memory(&memory, size_bytes);
    (memory, disk)
}

/// Runs a job until its first verdict has this kind and its evidence these words. One of several
/// tries must succeed: other load on the machine can become the bottleneck.
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
fn cgroup_io_throttle_is_named() {
    require!(Root, Zram, Throttle);
    ours!();
    let scratch = Scratch::calm();
    let disk = Zram::new(64 * MIB);
    let throttle = Throttle::of_reads(&disk.path(), 500);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randread --bs=4k --ioengine=io_uring \
         --iodepth=16 --time_based --runtime=2",
        disk.path().display()
    );
    held_back_by("throttled", &["allows 500 reads/s"], || {
        Program::subject()
            .line(&scratch, &line)
            .throttled(&throttle)
            .urgent()
    });
}

/// As in a container with an I/O limit: the limit is unreadable, only its effect is measured.
#[test]
fn hidden_cgroup_throttle_is_named() {
    require!(Root, Zram, Throttle);
    ours!();
    let scratch = Scratch::calm();
    let disk = Zram::new(64 * MIB);
    let throttle = Throttle::of_reads(&disk.path(), 500);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randread --bs=4k --ioengine=io_uring \
         --iodepth=16 --time_based --runtime=2",
        disk.path().display()
    );
    held_back_by("throttled", &["queued above the device"], || {
        Program::subject()
            .line(&scratch, &line)
            .without_sight_of_groups()
            .throttled(&throttle)
            .urgent()
    });
}

/// As in a cloud: the guest's disk accepts all I/Os, and the host limits their rate.
#[test]
fn throttle_below_device_is_named() {
    require!(Root, Zram, Throttle, VirtualMachine);
    ours!();
    let scratch = Scratch::calm();
    let below = Zram::new(96 * MIB);
    let files = Mount::ext4(scratch.work().join("files"), &below.path());
    let disk = Loop::with_file(&files.dir().join("disk"), 64 * MIB);
    let throttle = Throttle::of_reads(&below.path(), 500);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randread --bs=4k --ioengine=io_uring \
         --iodepth=16 --ramp_time=1 --time_based --runtime=6",
        disk.path().display()
    );
    held_back_by(
        "allowance",
        &["IOPS, constant to", "latency rose to"],
        || {
            Program::subject()
                .line(&scratch, &line)
                .without_sight_of_groups()
                .throttled(&throttle)
                .urgent()
        },
    );
}

#[test]
fn cpu_quota_throttle_is_named() {
    require!(Root, Zram, CpuQuota);
    ours!();
    let scratch = Scratch::calm();
    let disk = Zram::new(64 * MIB);
    let quota = Throttle::of_processors(200);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randread --bs=4k --ioengine=io_uring --iodepth=4 \
         --time_based --runtime=2",
        disk.path().display()
    );
    held_back_by("generator", &["allows 0.200 CPUs"], || {
        Program::subject().line(&scratch, &line).throttled(&quota)
    });
}

#[test]
fn busy_generator_is_named() {
    ours!();
    let scratch = Scratch::alone();
    let line = "--name=job --ioengine=null --size=1t --rw=randread --bs=4k --iodepth=16 \
                --time_based --runtime=1";
    held_back_by("generator", &["on a CPU"], || {
        Program::subject().line(&scratch, line)
    });
}

#[test]
fn slow_fuse_server_is_named() {
    require!(Root, Nbdfuse);
    ours!();
    let scratch = Scratch::calm();
    let file = FuseFile::serve(
        &scratch,
        "slow",
        16 << 20,
        &Behaviour::plain().delayed(Duration::from_millis(10)),
    );
    let line = |path: &std::path::Path| {
        format!(
            "--name=job --filename={} --direct=1 --bs=4k --size=16m --rw=randread --ioengine=psync \
             --time_based --runtime=1",
            path.display()
        )
    };
    let served = ["each I/O took 1", " in flight", "the process that serves"];
    held_back_by("network", &served, || {
        Program::subject()
            .line(&scratch, &line(file.path()))
            .urgent()
    });
    // The same server below a block device.
    let disk = Loop::new(file.path());
    held_back_by("network", &served, || {
        Program::subject()
            .line(&scratch, &line(disk.path()))
            .urgent()
    });
}

#[test]
fn page_cache_reads_are_named() {
    ours!();
    let scratch = Scratch::alone();
    let line = "--name=job --filename=cached --size=64m --pre_read=1 --invalidate=0 --rw=randread \
                --bs=4k --ioengine=psync --time_based --runtime=1";
    // Files on tmpfs have no device to compare with.
    let on_disk = scratch.work().starts_with("/tmp") || scratch.work().starts_with("/var");
    assert!(on_disk, "the scratch directory is in an unusual place");
    held_back_by("served_from_cache", &["a cache served"], || {
        Program::subject().line(&scratch, line)
    });
}

#[test]
fn interference_on_device_is_named() {
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
        // As threads: child processes would outlive a killed fio and hold the device.
        &line(
            "other",
            "--rw=randwrite --ioengine=libaio --runtime=600 --thread",
        ),
    );
    let _neighbour = neighbour.urgent().start();
    held_back_by("interference", &["more than this job requested"], || {
        let line = line(
            "job",
            "--rw=randread --ioengine=io_uring --runtime=2 --ramp_time=1",
        );
        Program::subject().line(&scratch, &line).urgent()
    });
}

#[test]
fn low_queue_depth_is_named() {
    require!(Root);
    ours!();
    let scratch = Scratch::alone();
    let (_memory, disk) = quiet_disk(&scratch, 64 * MIB);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randread --bs=4k --ioengine=psync --time_based \
         --runtime=1",
        disk.path().display()
    );
    held_back_by("queue_depth", &["one I/O in flight at a time"], || {
        Program::subject().line(&scratch, &line).urgent()
    });
}

#[test]
fn saturated_device_is_named() {
    require!(Root);
    ours!();
    let scratch = Scratch::alone();
    let (_memory, disk) = quiet_disk(&scratch, 64 * MIB);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randrw --bs=1m --ioengine=libaio --iodepth=16 \
         --time_based --runtime=1",
        disk.path().display()
    );
    held_back_by("device", &["was busy", "in flight"], || {
        Program::subject().line(&scratch, &line).urgent()
    });
}

/// No verdict may name a cause that is absent: this disk has no other user and no limit.
#[test]
fn quiet_disk_gets_no_false_verdict() {
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
        // CPU time that the host or other programs take may be reported.
        one_good_try(|| {
            let result = Program::subject().line(&scratch, &line).urgent().json();
            let verdicts = &result["iosonde"]["verdicts"];
            let blamed = ["interference", "throttled", "network", "lock_contention"];
            let is_blamed =
                |verdict: &serde_json::Value| blamed.iter().any(|kind| verdict["kind"] == *kind);
            let blames = verdicts
                .as_array()
                .is_some_and(|all| all.iter().any(is_blamed));
            ensure(!blames, || format!("{job}: {verdicts}"))
        });
    }
}

#[test]
fn file_lock_contention_is_named() {
    require!(Root);
    ours!();
    let scratch = Scratch::alone();
    let (_memory, disk) = quiet_disk(&scratch, 288 * MIB);
    let files = Mount::ext4(scratch.work().join("files"), disk.path());
    let file = files.dir().join("shared");
    // A first write changes the extent map of the file, which one writer at a time may do.
    let line = format!(
        "--name=job --filename={} --size=192m --direct=1 --rw=randwrite --bs=4k --ioengine=psync \
         --numjobs=8 --fallocate=none --runtime=2",
        file.display()
    );
    held_back_by("lock_contention", &["waited for locks in"], || {
        let _ = std::fs::remove_file(&file);
        Program::subject().line(&scratch, &line).urgent()
    });
    std::fs::remove_file(&file).expect("the file");
    // Buffered writes take the same lock. `invalidate=0` keeps the pages cached.
    let line = format!(
        "--name=job --filename={} --size=64m --rw=write --bs=256k --ioengine=psync --numjobs=8 \
         --invalidate=0 --time_based --runtime=1",
        files.dir().join("buffered").display()
    );
    held_back_by("lock_contention", &["while a cache took the data"], || {
        Program::subject().line(&scratch, &line).urgent()
    });
}

#[test]
fn fsync_time_is_named() {
    require!(Root);
    ours!();
    let scratch = Scratch::alone();
    let (_memory, disk) = quiet_disk(&scratch, 64 * MIB);
    let files = Mount::ext4(scratch.work().join("files"), disk.path());
    let line = format!(
        "--name=job --filename={} --size=32m --rw=write --bs=4k --ioengine=psync --fsync=1 \
         --time_based --runtime=1",
        files.dir().join("log").display()
    );
    held_back_by("queue_depth", &["of the time in fsync"], || {
        Program::subject().line(&scratch, &line).urgent()
    });
}

#[test]
fn rate_limited_job_is_named() {
    require!(Root);
    ours!();
    let scratch = Scratch::calm();
    let (_memory, disk) = quiet_disk(&scratch, 64 * MIB);
    let line = format!(
        "--name=job --filename={} --direct=1 --rw=randread --bs=4k --ioengine=io_uring --iodepth=8 \
         --rate_iops=300 --time_based --runtime=2",
        disk.path().display()
    );
    held_back_by("job_limit", &["rate_iops=300"], || {
        Program::subject().line(&scratch, &line).urgent()
    });
}
