//! The test clusters themselves: they accept I/O and are removed completely.

use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::{Scratch, require};
use std::path::Path;

/// Processes with a path of this directory on their command line.
fn processes_of(dir: &Path) -> usize {
    let dir = dir.to_string_lossy().into_owned();
    let all = std::fs::read_dir("/proc").expect("/proc");
    all.flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|words| String::from_utf8_lossy(words).contains(&dir))
        .count()
}

#[test]
#[ignore = "needs Ceph"]
fn cluster_stores_objects_and_is_removed() {
    require!(Root);
    let scratch = Scratch::shared();
    let options = ["--store", "memstore", "--no-mgr", "--size", "1073741824"];
    let cluster = Cluster::up(&scratch, &options);
    let dir = cluster.conf().parent().expect("a directory").to_owned();
    assert_eq!(processes_of(&dir), 2, "a monitor and a storage daemon");
    cluster.rados(&format!("-p {POOL} create one"));
    assert_eq!(cluster.objects(POOL), ["one"]);
    drop(cluster);
    assert!(!dir.exists());
    assert_eq!(processes_of(&dir), 0);
}

#[test]
#[ignore = "needs Ceph"]
fn shared_cluster_requires_key() {
    let cluster = Cluster::shared();
    let stat: serde_json::Value =
        serde_json::from_str(&cluster.ceph("osd stat -f json")).expect("JSON");
    assert_eq!(stat["num_up_osds"], 3);
    let without = std::process::Command::new("timeout")
        .args(["20", "ceph", "--keyring", "/dev/null", "-s"])
        .env("CEPH_CONF", cluster.conf())
        .output()
        .expect("ceph starts");
    assert!(!without.status.success());
}
