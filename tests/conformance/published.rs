//! Published command lines and job files, verbatim except for sizes, times and paths.

use std::fs;
use std::os::unix::fs::symlink;

use iosonde_e2e::mount::Mount;
use iosonde_e2e::program::{Invocation, iosonde};
use iosonde_e2e::tree::{job_names, number};
use iosonde_e2e::{Program, Scratch, ensure, is_full, one_good_try, ours, require};

/// Four commands of an article on local SSDs in GKE, with the backslashes of its shell.
const GKE_LOCAL_SSD: [&str; 4] = [
    "fio --name=write_throughput --directory=$TEST_DIR --numjobs=16 --size=10G --time_based \
     --runtime=60s --ramp_time=2s --ioengine=libaio --direct=1 --verify=0 --bs=1M --iodepth=64 \
     --rw=write --group_reporting=1 --iodepth_batch_submit=64 --iodepth_batch_complete_max=64",
    "fio --name=write_iops --directory=$TEST_DIR --size=10G \\
--time_based --runtime=60s --ramp_time=2s --ioengine=libaio --direct=1 \\
--verify=0 --bs=4K --iodepth=256 --rw=randwrite --group_reporting=1 \\
--iodepth_batch_submit=256 --iodepth_batch_complete_max=256",
    "fio --name=read_throughput --directory=$TEST_DIR --numjobs=16 \\
--size=10G --time_based --runtime=60s --ramp_time=2s --ioengine=libaio \\
--direct=1 --verify=0 --bs=1M --iodepth=64 --rw=read \\
--group_reporting=1 \\
--iodepth_batch_submit=64 --iodepth_batch_complete_max=64",
    "fio --name=read_iops --directory=$TEST_DIR --size=10G \\
--time_based --runtime=60s --ramp_time=2s --ioengine=libaio --direct=1 \\
--verify=0 --bs=4K --iodepth=256 --rw=randread --group_reporting=1 \\
--iodepth_batch_submit=256 --iodepth_batch_complete_max=256",
];

/// Puts the program under test into PATH as `fio` and runs a shell script.
fn shell(scratch: &Scratch, script: &str) -> Invocation {
    let bin = scratch.out().join("bin");
    fs::create_dir_all(&bin).expect("a directory");
    if !Program::subject().is_fio() && !bin.join("fio").exists() {
        symlink(iosonde(), bin.join("fio")).expect("a symbolic link");
    }
    let path = format!(
        "{}:{}",
        bin.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    Invocation::new(
        scratch,
        ["bash", "-euo", "pipefail", "-c", script]
            .map(Into::into)
            .into(),
    )
    .env("PATH", path)
}

#[test]
fn gke_local_ssd_commands_run() {
    for command in GKE_LOCAL_SSD {
        let scratch = Scratch::shared();
        let command = command
            .replace("--size=10G", "--size=16M")
            .replace("60s", "2s")
            .replace("ramp_time=2s", "ramp_time=1s");
        let script = format!("{command} --output-format=normal,json --output=result");
        let run = shell(&scratch, &script).env("TEST_DIR", ".").ok();
        let text = fs::read_to_string(scratch.work().join("result")).expect("a result");
        let json = &text[text.find("\n{").expect("JSON")..];
        let json: serde_json::Value = serde_json::Deserializer::from_str(json)
            .into_iter()
            .next()
            .expect("JSON")
            .unwrap_or_else(|error| panic!("{error}: {run}"));
        let jobs = json["jobs"].as_array().expect("jobs");
        assert_eq!(
            jobs.len(),
            1,
            "group_reporting makes one of all jobs: {text}"
        );
        let kind = if command.contains("write") {
            "write"
        } else {
            "read"
        };
        let runtime = number(&json, &format!("/jobs/0/{kind}/runtime"));
        // No upper bound: I/O on a shared disk may wait in the kernel for a long time.
        assert!(runtime >= 1900.0, "ran for {runtime} ms: {command}");
        assert!(text.contains("Run status group 0 (all jobs):"), "{text}");
    }
}

#[test]
fn gke_local_ssd_fails_without_space() {
    require!(Root);
    ours!();
    let scratch = Scratch::shared();
    let mount = Mount::tmpfs(scratch.work().join("ssd"), 64 << 20);
    let run = shell(&scratch, GKE_LOCAL_SSD[0])
        .env("TEST_DIR", "ssd")
        .run();
    // As in fio, the job fails when its disk is full.
    run.refused_with(&["ssd/write_throughput.", "ENOSPC", "is full"]);
    assert_eq!(
        fs::read_dir(mount.dir()).expect("a directory").count(),
        0,
        "{run}"
    );
}

/// The jobs of `kubestr fio`, reconstructed from the options in the article's results.
const KUBESTR_RECONSTRUCTED: &str = "\
[global]
randrepeat=0
verify=0
ioengine=libaio
direct=1
gtod_reduce=1
[job1]
name=read_iops
bs=4K
iodepth=64
size=2G
readwrite=randread
time_based
ramp_time=2s
runtime=15s
[job2]
name=write_iops
bs=4K
iodepth=64
size=2G
readwrite=randwrite
time_based
ramp_time=2s
runtime=15s
[job3]
name=read_bw
bs=128K
iodepth=64
size=2G
readwrite=randread
time_based
ramp_time=2s
runtime=15s
[job4]
name=write_bw
bs=128k
iodepth=64
size=2G
readwrite=randwrite
time_based
ramp_time=2s
runtime=15s
";

#[test]
fn kubestr_jobs_run_as_published() {
    let scratch = Scratch::shared();
    let job = KUBESTR_RECONSTRUCTED
        .replace("2G", "16M")
        .replace("15s", "2s")
        .replace("ramp_time=2s", "ramp_time=1s");
    scratch.write("ssd.fio", job);
    one_good_try(|| {
        let document = Program::subject()
            .line(&scratch, "--directory=. ssd.fio")
            .json();
        let names = ["read_iops", "write_iops", "read_bw", "write_bw"];
        assert_eq!(job_names(&document), names);
        for (index, kind) in ["read", "write", "read", "write"].iter().enumerate() {
            let figure =
                |member: &str| number(&document, &format!("/jobs/{index}/{kind}/{member}"));
            // A shared disk may complete no I/O for half a second, the length of a sample.
            for member in ["iops", "bw", "iops_max", "iops_mean", "bw_max", "bw_mean"] {
                ensure(figure(member) > 0.0, || format!("{member} of job {index}"))?;
            }
            for (least, most) in [("iops_min", "iops_max"), ("bw_min", "bw_max")] {
                assert!(
                    (0.0..=figure(most)).contains(&figure(least)),
                    "{least} of job {index}"
                );
            }
        }
        Ok(())
    });
}

/// Disks of GCP. The article leaves `bs` and `iodepth` open (`?`), with their values in comments;
/// the sections are reconstructed from its charts.
const GCP_DISKS: &str = "\
bs=? # 4k 16k 64k 256k
iodepth=? # 1 2 4 8 16 32 64 128 256 512
filename=? # /dev/sdb or /dev/nvme0n1
ioengine=libaio
direct=1
invalidate=1
fsync=0
end_fsync=1
";

#[test]
fn gcp_disk_jobs_run() {
    for (bs, iodepth) in [("4k", "1"), ("256k", "512")] {
        let scratch = Scratch::shared();
        let global = GCP_DISKS.replacen("bs=?", &format!("bs={bs}"), 1).replacen(
            "iodepth=?",
            &format!("iodepth={iodepth}"),
            1,
        );
        let global = global.replacen("filename=?", "filename=disk", 1);
        let sections: String = ["read", "write", "randread", "randwrite"]
            .iter()
            .map(|rw| format!("[{rw}]\nstonewall\nrw={rw}\n"))
            .collect();
        scratch.write(
            "disk.fio",
            format!("[global]\n{global}size=16m\n{sections}"),
        );
        let document = Program::subject().line(&scratch, "disk.fio").json();
        for (index, kind) in ["read", "write", "read", "write"].iter().enumerate() {
            assert_eq!(
                number(&document, &format!("/jobs/{index}/{kind}/io_bytes")),
                f64::from(16 << 20),
                "job {index}"
            );
        }
    }
}

/// Pods of a StatefulSet: the job is reconstructed from the output in the article.
const STATEFULSET_RECONSTRUCTED: &str = "\
[global]
ioengine=libaio
direct=1
group_reporting
size=5G
runtime=120
time_based
[write]
rw=randrw
rwmixread=0
bs=4k
iodepth=16
numjobs=16
";

#[test]
fn statefulset_job_runs() {
    // The article uses both forms.
    for output in ["--output=randwrite.out", "--output randwrite.out"] {
        let scratch = Scratch::shared();
        scratch.write(
            "fio.job",
            STATEFULSET_RECONSTRUCTED
                .replace("5G", "8M")
                .replace("120", "2"),
        );
        let run = shell(&scratch, &format!("fio fio.job {output}")).ok();
        let text = fs::read_to_string(scratch.work().join("randwrite.out")).expect("a result");
        let first = "write: (g=0): rw=randrw, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) \
                     4096B-4096B, ioengine=libaio, iodepth=16";
        assert!(
            text.contains(first) && text.contains("jobs=16): err= 0"),
            "{run}{text}"
        );
        assert!(
            text.contains("  write: IOPS=") && !text.contains("  read: IOPS="),
            "{text}"
        );
    }
}

/// Ceph under Proxmox: the job file as printed, with trailing blanks.
const CEPH_RBD: &str = "\
[global]
ioengine=libaio      
direct=1             
size=5g              
lockmem=1G           
runtime=30           
group_reporting      
directory=/mnt/rbd   
numjobs=1
iodepth=1
[4k_randwrite]
stonewall
rw=randwrite
bs=4k
[4k_randread]
stonewall
rw=randread
bs=4k
[64k_write]
stonewall
rw=write
bs=64k
[64k_read]
stonewall
rw=read
bs=64k
[1M_write]
stonewall
rw=write
bs=1M
[1M_read]
stonewall
rw=read
bs=1M
";

/// The article's loop over depths; its two job files differ only in the directory.
const CEPH_LOOP: &str = r#"
for iodepth in 1 2 4 8 16 32; do 
    sed -i "/^iodepth/c iodepth=${iodepth}" fio_rbd.conf && fio fio_rbd.conf | tee rbd_i$(printf "%02d" ${iodepth}).log && sleep 20s
done
"#;

#[test]
fn ceph_rbd_and_cephfs_jobs_run() {
    require!(Root);
    let all = ["numjobs=1\n", "numjobs=16\n"];
    let some = if is_full() { &all[..] } else { &all[1..] };
    for jobs in some {
        let scratch = Scratch::shared();
        fs::create_dir(scratch.work().join("rbd")).expect("a directory");
        let job = CEPH_RBD
            .replace("/mnt/rbd", "rbd")
            .replace("size=5g", "size=4m")
            .replace("runtime=30", "runtime=1");
        let job = job
            .replace("lockmem=1G", "lockmem=16M")
            .replace("numjobs=1\n", jobs);
        scratch.write("fio_rbd.conf", job);
        let run = shell(&scratch, &CEPH_LOOP.replace("sleep 20s", "sleep 0s")).ok();
        for depth in ["01", "02", "04", "08", "16", "32"] {
            let text = fs::read_to_string(scratch.work().join(format!("rbd_i{depth}.log")))
                .expect("a log");
            let groups = (0..6)
                .filter(|group| text.contains(&format!("Run status group {group} (all jobs):")))
                .count();
            assert_eq!(groups, 6, "{run}");
            assert!(
                text.contains(&format!(
                    "ioengine=libaio, iodepth={}",
                    depth.trim_start_matches('0')
                )),
                "{text}"
            );
        }
    }
}
