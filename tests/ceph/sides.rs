//! Cluster data in a result: of mounted file systems, several pools, erasure codes and scrubs.

use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::{Scratch, require};
use serde_json::Value;
use std::time::{Duration, Instant};

use crate::engines::wait_for;
use crate::mounted::flowing;

/// The cluster's part of fio's JSON, and standard error.
fn side(cluster: &Cluster, line: &str) -> (Value, String) {
    let mut command = cluster.iosonde(&format!("fio --output-format=json {line}"));
    let done = command.output().expect("iosonde starts");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{line}: {said}");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let found: Value = serde_json::from_str(&text).expect("JSON");
    (found["iosonde"].clone(), text)
}

#[test]
#[ignore = "needs Ceph"]
fn mounted_file_system_has_data_of_its_cluster() {
    require!(Root, Fuse);
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let mount = cluster.mount("sided");
    let dir = mount.dir().display();
    let fsid = cluster.ceph("fsid").trim().to_owned();
    let job = "--rw=randread --bs=64k --size=16m --direct=1 --runtime=3 --time_based --unlink=1";
    // Only the command line of the process that serves the mount names the cluster.
    let mut command = cluster.iosonde(&format!(
        "fio --output-format=json --directory={dir} --name=a {job}"
    ));
    let done = command.env_remove("CEPH_CONF").output();
    let done = done.expect("iosonde starts");
    let found: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let side = &found["iosonde"]["ceph"];
    assert_eq!(side["fsid"], fsid.as_str(), "{found:#}");
    // `16.2.15 pacific` of `ceph version 16.2.15 (...) pacific (stable)`.
    let version = cluster.ceph("version");
    let words: Vec<&str> = version.split_whitespace().collect();
    let release = format!("{} {}", words[2], words[4]);
    assert_eq!(side["version"], release.as_str(), "{side:#}");
    assert_eq!(side["pool"]["name"], "cephfs_data", "{side:#}");
    assert_eq!(side["pool"]["redundancy"]["replicated"]["size"], 2);
    let ops = |osd: &Value| osd["ops"].as_u64().unwrap_or(0);
    let osds = side["osd_latency"].as_array().expect("storage daemons");
    assert!(osds.iter().map(ops).sum::<u64>() > 10, "{side:#}");
    // A probe reports the pool like a run on a pool.
    let line = format!("probe {dir} --quick --size 16m --runtime 1 --details");
    let began = Instant::now();
    let (status, stdout, stderr) = cluster.run(&line);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let said = flowing(&stdout);
    assert!(said.contains("cephfs_data, size 2"), "{said}");
    // An unreachable cluster delays the run once, by a few seconds, and does not fail it.
    let deaf = scratch.write("none.conf", "[global]\nmon host = [v2:127.0.0.1:1]\n");
    let usual = began.elapsed();
    let started = Instant::now();
    let (status, stdout, stderr) = cluster.run(&format!("{line} --ceph-conf={}", deaf.display()));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let said = flowing(&stdout);
    assert!(!said.contains("cephfs_data, size"), "{said}");
    for words in [
        "not known the cluster of",
        "could not be queried: cannot connect to the Ceph cluster",
        "set --ceph-conf, --ceph-client and --ceph-keyring",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("0 of 0 OSDs"), "{said}");
    assert!(started.elapsed() < usual * 3 + Duration::from_secs(60));
}

#[test]
#[ignore = "needs Ceph"]
fn result_has_all_pools_of_run() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.ceph("osd pool create second 8 8");
    cluster.ceph("osd pool set second size 3");
    let job = "--rw=write --bs=64k --size=1m";
    let (ours, _) = side(
        &cluster,
        &format!(
            "--ioengine=rados --name=one --pool={POOL} {job} --name=two --ioengine=rados \
             --pool=second {job}"
        ),
    );
    let side = &ours["ceph"];
    assert_eq!(side["pool"]["name"], POOL, "{side:#}");
    assert_eq!(side["pool"]["redundancy"]["replicated"]["size"], 2);
    assert_eq!(side["more_pools"][0]["name"], "second", "{side:#}");
    assert_eq!(side["more_pools"][0]["redundancy"]["replicated"]["size"], 3);
    assert_eq!(side["more_pools"].as_array().map(Vec::len), Some(1));
    cluster.ceph("osd pool delete second second --yes-i-really-really-mean-it");
}

#[test]
#[ignore = "needs Ceph"]
fn erasure_code_is_named_and_unsupported_io_explained() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.ceph("osd erasure-code-profile set two-and-one k=2 m=1 crush-failure-domain=osd");
    cluster.ceph("osd pool create coded 8 8 erasure two-and-one");
    let target = "--target=rados://coded --name=a --bs=64k --size=8m";
    for rw in ["write", "randread"] {
        let (ours, _) = side(&cluster, &format!("{target} --rw={rw}"));
        let pool = &ours["ceph"]["pool"];
        let code = &pool["redundancy"]["erasure"];
        assert_eq!(pool["name"], "coded", "{pool:#}");
        assert_eq!(code["chunks"], serde_json::json!([2, 1]), "{pool:#}");
        assert_eq!(code["profile"], "two-and-one", "{pool:#}");
    }
    let (status, stdout, _) = cluster.run("rados bench -p coded 1 write -b 64k");
    assert_eq!(status, Some(0), "{stdout}");
    assert!(
        stdout.contains("coded, erasure code 2+1, 8 PGs"),
        "{stdout}"
    );
    let (status, stdout, stderr) = cluster.run(&format!("fio {target} --rw=randwrite"));
    let said = stdout + &stderr;
    assert_eq!(status, Some(1), "{said}");
    for words in ["EOPNOTSUPP", "allow_ec_overwrites"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(cluster.objects("coded"), [""; 0]);
    cluster.ceph("osd pool delete coded coded --yes-i-really-really-mean-it");
    cluster.ceph("osd erasure-code-profile rm two-and-one");
}

#[test]
#[ignore = "needs Ceph"]
fn scrub_during_run_is_reported() {
    require!(Root);
    let scratch = Scratch::shared();
    let cluster = Cluster::up(&scratch, &["--store", "memstore", "--size", "1073741824"]);
    cluster.rados(&format!(
        "-p {POOL} bench 60 write -b 4096 --max-objects 640 --no-cleanup"
    ));
    // Slow, object by object, as on a large cluster.
    for setting in [
        "osd_scrub_sleep 0.5",
        "osd_scrub_chunk_min 1",
        "osd_scrub_chunk_max 1",
        "osd_max_scrubs 4",
    ] {
        cluster.daemon("osd.0", &format!("config set {setting}"));
    }
    cluster.ceph("osd deep-scrub 0");
    wait_for("a scrub", || {
        cluster.ceph("-s").contains("scrubbing").then_some(())
    });
    let (ours, text) = side(
        &cluster,
        &format!(
            "--target=rados://{POOL} --name=a --rw=randwrite --bs=4k --size=1m --time_based \
             --runtime=7"
        ),
    );
    let activity = &ours["ceph"]["activity"];
    assert!(activity["scrubbing"].as_u64() > Some(0), "{activity:#}");
    assert!(activity["looks"].as_u64() >= activity["scrubbing"].as_u64());
    assert!(
        text.contains("the cluster scrubbed placement groups"),
        "{text}"
    );
}
