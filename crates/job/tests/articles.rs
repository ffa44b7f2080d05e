//! The fio command lines and job files of five published articles, as printed there.

use iosonde_job::env::FakeEnv;
use iosonde_job::plan::*;
use iosonde_job::{ParsedCommand, parse};
use std::ffi::OsString;

fn command(line: &str, env: &FakeEnv) -> ParsedCommand {
    let args: Vec<OsString> = line
        .split_whitespace()
        .skip(1)
        .map(OsString::from)
        .collect();
    parse(&args, env).unwrap_or_else(|diagnostics| panic!("{line}\n{diagnostics}"))
}

const SECOND: u64 = 1_000_000_000;

/// 000: local SSDs under Kubernetes. $TEST_DIR is expanded by the shell.
#[test]
fn local_ssd_jobs_of_pods_are_parsed() {
    let env = FakeEnv::new();
    let lines = [
        "fio --name=write_throughput --directory=/d --numjobs=16 --size=10G --time_based \
         --runtime=60s --ramp_time=2s --ioengine=libaio --direct=1 --verify=0 --bs=1M --iodepth=64 \
         --rw=write --group_reporting=1 --iodepth_batch_submit=64 --iodepth_batch_complete_max=64",
        "fio --name=write_iops --directory=/d --size=10G --time_based --runtime=60s --ramp_time=2s \
         --ioengine=libaio --direct=1 --verify=0 --bs=4K --iodepth=256 --rw=randwrite \
         --group_reporting=1 --iodepth_batch_submit=256 --iodepth_batch_complete_max=256",
        "fio --name=read_throughput --directory=/d --numjobs=16 --size=10G --time_based \
         --runtime=60s --ramp_time=2s --ioengine=libaio --direct=1 --verify=0 --bs=1M --iodepth=64 \
         --rw=read --group_reporting=1 --iodepth_batch_submit=64 --iodepth_batch_complete_max=64",
        "fio --name=read_iops --directory=/d --size=10G --time_based --runtime=60s --ramp_time=2s \
         --ioengine=libaio --direct=1 --verify=0 --bs=4K --iodepth=256 --rw=randread \
         --group_reporting=1 --iodepth_batch_submit=256 --iodepth_batch_complete_max=256",
    ];
    let jobs: Vec<Job> = lines
        .iter()
        .map(|line| {
            let parsed = command(line, &env);
            assert!(parsed.warnings.list.is_empty(), "{}", parsed.warnings);
            parsed.plan.jobs.into_iter().next().unwrap()
        })
        .collect();
    let first = &jobs[0];
    assert_eq!(first.numjobs, 16);
    assert_eq!(first.io.engine, Engine::Libaio);
    assert_eq!(first.files.size, Some(BytesOrPercent::Bytes(10 << 30)));
    assert_eq!(first.workload.block_size.write, BlockSize::Fixed(1 << 20));
    assert_eq!(first.schedule.runtime_ns, 60 * SECOND);
    assert_eq!(first.schedule.ramp_time_ns, 2 * SECOND);
    assert_eq!(
        (first.io.batch_submit, first.io.batch_complete_max),
        (Some(64), Some(64))
    );
    assert!(first.io.direct && first.verify.is_none() && first.measure.group_reporting);
    assert_eq!(jobs[3].workload.rw.name(), "randread");
    assert_eq!(jobs[3].io.iodepth, 256);
}

/// 001: the job that kubestr runs by default.
#[test]
fn kubestr_default_job_is_parsed() {
    let text = "[global]\nrandrepeat=0\nverify=0\nioengine=libaio\ndirect=1\ngtod_reduce=1\n\
                [job1]\nname=read_iops\nbs=4K\niodepth=64\nsize=2G\nreadwrite=randread\n\
                time_based\nramp_time=2s\nruntime=15s\n\
                [job2]\nname=write_iops\nbs=4K\niodepth=64\nsize=2G\nreadwrite=randwrite\n\
                time_based\nramp_time=2s\nruntime=15s\n\
                [job3]\nname=read_bw\nbs=128K\niodepth=64\nsize=2G\nreadwrite=randread\n\
                time_based\nramp_time=2s\nruntime=15s\n\
                [job4]\nname=write_bw\nbs=128k\niodepth=64\nsize=2G\nreadwrite=randwrite\n\
                time_based\nramp_time=2s\nruntime=15s\n";
    let env = FakeEnv::new().file("default-fio", text);
    let plan = command(
        "fio default-fio --directory /dataset --output-format=json",
        &env,
    )
    .plan;
    let names: Vec<_> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["read_iops", "write_iops", "read_bw", "write_bw"]);
    assert!(
        plan.jobs
            .iter()
            .all(|job| job.files.directories == ["/dataset"])
    );
    assert!(
        plan.jobs
            .iter()
            .all(|job| !job.measure.clat && !job.workload.randrepeat)
    );
}

/// 002: GCP disks. The article prints `bs=?` and `iodepth=?` with the values in a comment; this
/// test uses one of each.
#[test]
fn cloud_disk_job_is_parsed() {
    let text = "[job]\nbs=4k # 4k 16k 64k 256k\niodepth=1 # 1 2 4 8 16\n\
                filename=/dev/sdb # or /dev/nvme0n1\n\
                ioengine=libaio\ndirect=1\ninvalidate=1\nfsync=0\nend_fsync=1\n";
    let env = FakeEnv::new().file("gcp.fio", text);
    let job = &command("fio gcp.fio", &env).plan.jobs[0];
    assert_eq!(job.files.filenames, ["/dev/sdb"]);
    assert!(job.workload.end_fsync && job.workload.fsync_every == 0);
}

/// 003: StatefulSet. The article omits the job; the job is reconstructed from the printed output.
#[test]
fn statefulset_job_is_parsed() {
    let text = "[global]\nname=write\nrw=randrw\nrwmixread=0\nbs=4k\nioengine=libaio\niodepth=16\n\
                numjobs=16\nsize=5G\n\
                direct=1\ntime_based\nruntime=60\ngroup_reporting\n[write]\n";
    let env = FakeEnv::new().file("/configs/fio.job", text);
    for line in [
        "fio /configs/fio.job --output=randwrite.out",
        "fio /configs/fio.job --output randwrite.out",
    ] {
        let parsed = command(line, &env);
        assert_eq!(parsed.command.output.as_deref(), Some("randwrite.out"));
        assert_eq!(parsed.plan.jobs[0].numjobs, 16);
        assert_eq!(parsed.plan.jobs[0].workload.rwmix_read_percent, 0);
    }
}

/// 004: Ceph. Several jobs in sequence on RBD and CephFS; the lines end in blanks.
#[test]
fn ceph_jobs_are_parsed_in_sequence() {
    let text = "[global]\nioengine=libaio      \ndirect=1             \nsize=5g              \n\
                lockmem=1G           \n\
                runtime=30           \ngroup_reporting      \ndirectory=/mnt/rbd   \nnumjobs=1\n\
                iodepth=1\n\
                [4k_randwrite]\nstonewall\nrw=randwrite\nbs=4k\n[4k_randread]\nstonewall\n\
                rw=randread\nbs=4k\n\
                [64k_write]\nstonewall\nrw=write\nbs=64k\n[64k_read]\nstonewall\nrw=read\nbs=64k\n\
                [1M_write]\nstonewall\nrw=write\nbs=1M\n[1M_read]\nstonewall\nrw=read\nbs=1M\n";
    let env = FakeEnv::new().file("fio_rbd.conf", text);
    let plan = command("fio fio_rbd.conf", &env).plan;
    assert_eq!(plan.jobs.len(), 6);
    let groups: Vec<_> = plan.jobs.iter().map(|job| job.groupid).collect();
    assert_eq!(groups, [0, 1, 2, 3, 4, 5]);
    assert!(plan.jobs.iter().all(|job| job.schedule.stonewall));
    assert_eq!(plan.jobs[0].io.lockmem_bytes, 1 << 30);
}
