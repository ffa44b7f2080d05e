//! Bounds and disturbances of a measurement on a cluster: quotas, erasure codes, recovery that is
//! stuck, caches of the client, monitors that do not answer.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::process_state::handles_signal;
use iosonde_e2e::{Scratch, ensure, one_good_try};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::engines::{start_piped, wait_closely_for, wait_for};

/// Number of runs with flushes, the fastest of which is compared.
const FLUSHED_RUNS: u32 = 3;

#[test]
#[ignore = "needs Ceph"]
fn erasure_coded_pool_is_refused_before_a_study_writes() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.ceph("osd erasure-code-profile set refused k=2 m=1 crush-failure-domain=osd");
    cluster.ceph("osd pool create refused 8 8 erasure refused");
    for line in [
        "probe rados://refused --quick",
        "sweep rados://refused --rw randread --iodepth 1 --runtime 1",
    ] {
        let (status, stdout, stderr) = cluster.run(line);
        assert_eq!(status, Some(3), "{line}: {stdout}{stderr}");
        assert!(stderr.contains("allow_ec_overwrites"), "{stderr}");
    }
    assert_eq!(cluster.objects("refused"), [""; 0]);
    cluster.ceph("osd pool delete refused refused --yes-i-really-really-mean-it");
    cluster.ceph("osd erasure-code-profile rm refused");
}

#[test]
#[ignore = "needs Ceph"]
fn quota_bounds_what_a_study_writes() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.ceph("osd pool create bounded 8 8");
    cluster.ceph("osd pool set-quota bounded max_bytes 104857600");
    let (status, stdout, stderr) = cluster.run("probe rados://bounded --quick --runtime 1");
    let said = stdout + &stderr;
    assert!(!said.contains("EDQUOT"), "{said}");
    assert_eq!(status, Some(0), "{said}");
    cluster.ceph("osd pool delete bounded bounded --yes-i-really-really-mean-it");
}

#[test]
#[ignore = "needs Ceph"]
fn ctrl_c_ends_a_connect_at_once() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let deaf = scratch.out().join("deaf-connect.conf");
    // No server listens on port 1.
    fs::write(&deaf, "[global]\nmon host = [v2:127.0.0.1:1]\n").expect("a file");
    let target = format!("--target=rados://{POOL} --ceph-conf={}", deaf.display());
    let line = format!("fio {target} --name=a --rw=randwrite --bs=4k --size=1m");
    let child = start_piped(cluster.iosonde(&line));
    wait_closely_for("the handler of the signal", || {
        handles_signal(child.id(), Signal::INT).then_some(())
    });
    sleep(Duration::from_secs(2));
    let began = Instant::now();
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    let done = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(began.elapsed() < Duration::from_secs(15), "{said}");
    assert_eq!(done.status.code(), Some(130), "{said}");
}

#[test]
#[ignore = "needs Ceph"]
fn writes_to_an_image_name_the_cache_that_acknowledged_them() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("create --size 64M {POOL}/acknowledged"));
    // Until the first flush, librbd writes through its cache. A job with O_DIRECT begins without
    // one.
    let line = format!(
        "fio --output-format=json --target=rbd://{POOL}/acknowledged --name=a --rw=randwrite \
         --bs=4k --size=16m"
    );
    let run = |arguments: &str, fsync: &str| -> Value {
        let mut command = cluster.iosonde(&format!("{line} {fsync}"));
        let done = command.env("CEPH_ARGS", arguments).output();
        let done = done.expect("iosonde starts");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
        serde_json::from_slice(&done.stdout).expect("JSON")
    };
    let words = "of this client acknowledged the writes";
    let cached = run("", "--fsync=1000");
    assert!(cached.to_string().contains(words), "{cached:#}");
    let flushed_at_start = run("", "");
    assert!(
        flushed_at_start.to_string().contains(words),
        "{flushed_at_start:#}"
    );
    let through = run("", "--direct=1");
    assert!(!through.to_string().contains(words), "{through:#}");
    let direct = run("--rbd-cache=false", "--fsync=1000");
    assert!(!direct.to_string().contains(words), "{direct:#}");
    cluster.rbd(&format!("rm --no-progress {POOL}/acknowledged"));
}

/// Result of random writes of 4 KiB to an image, with further options.
fn write_image(cluster: &Cluster, image: &str, options: &str) -> (Option<i32>, Value, String) {
    let uri = format!("rbd://{POOL}/{image}");
    let line = format!(
        "fio --output-format=json --target={uri} --allow-overwrite={uri} --name=a --rw=randwrite \
         --bs=4k --iodepth=8 --size=16m {options}"
    );
    let (status, stdout, stderr) = cluster.run(&line);
    let result = serde_json::from_str(&stdout).unwrap_or(Value::Null);
    (status, result, stdout + &stderr)
}

#[test]
#[ignore = "needs Ceph"]
fn cached_write_rate_needs_no_flush_of_the_job() {
    let _scratch = Scratch::alone();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("create --size 64M {POOL}/flushed"));
    let rate = |options: &str| {
        let (status, result, said) = write_image(&cluster, "flushed", options);
        assert_eq!(status, Some(0), "{said}");
        let rate = &result["jobs"][0]["write"]["iops"];
        rate.as_f64().expect("a rate")
    };
    // The fastest runs of each kind: other load only slows a run. All runs with flushes come before
    // the first comparison, so that one slow run among them does not make the test pass.
    // A job with O_DIRECT begins without a flush. Its own flush turns the cache on after 512 of
    // 4096 writes.
    let with_flushes = || rate("--direct=1 --fsync=512");
    let with = (0..FLUSHED_RUNS).fold(0.0_f64, |fastest, _| fastest.max(with_flushes()));
    let mut without = 0.0_f64;
    one_good_try(|| {
        without = without.max(rate(""));
        ensure(without > 0.8 * with, || {
            format!("{without} without flushes, {with} with them")
        })
    });
    cluster.rbd(&format!("rm --no-progress {POOL}/flushed"));
}

#[test]
#[ignore = "needs Ceph"]
fn stuck_recovery_is_no_activity_and_hardware_is_in_the_result() {
    let scratch = Scratch::shared();
    let cluster = Cluster::up(&scratch, &["--osds", "3", "--replicas", "2"]);
    let bench = |line: &str| -> Value {
        let (status, stdout, stderr) =
            cluster.run(&format!("rados -p {POOL} bench {line} -f json"));
        assert_eq!(status, Some(0), "{line}: {stderr}");
        serde_json::from_str(&stdout).expect("JSON")
    };
    bench("2 write -b 64k -t 8 --no-cleanup");
    cluster.ceph("osd set norecover");
    cluster.ceph("osd set nobackfill");
    cluster.ceph("osd out 2");
    wait_for("placement groups that wait", || {
        // Without the flags, which `status` prints.
        let state = cluster.ceph("pg stat");
        let waits = ["recover", "backfill"]
            .iter()
            .any(|word| state.contains(word));
        waits.then_some(())
    });
    // The rates that the manager averages fall to 0.
    sleep(Duration::from_secs(10));
    wait_for("rates of recovery of 0", || {
        let status = cluster.ceph("status -f json");
        let status: Value = serde_json::from_str(&status).expect("JSON");
        let rate = |what: &str| status["pgmap"][format!("recovering_{what}_per_sec")].as_f64();
        let is_still = |what: &&str| rate(what).unwrap_or(0.0) == 0.0;
        let has_stopped = ["objects", "bytes", "keys"].iter().all(is_still);
        has_stopped.then_some(())
    });
    let result = bench("6 write -b 64k -t 4 --run-name other");
    let activity = &result["cluster"]["activity"];
    assert_eq!(activity["recovering"], 0, "{activity:#}");
    let verdicts = result["verdicts"].to_string();
    assert!(!verdicts.contains("moving data"), "{verdicts}");
    let hardware = &result["cluster"]["hardware"];
    assert!(hardware["networks"][0]["role"] == "public", "{hardware:#}");
    let hosts = hardware["shared_hosts"][0]["daemons"].to_string();
    assert!(hosts.contains("mon."), "{hardware:#}");
}
