//! Caches of OSDs that are dropped before the jobs start.

use std::time::{Duration, Instant};

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL};
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
#[ignore = "needs Ceph"]
fn osds_drop_their_caches_before_the_jobs() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let job = "--name=cold --rw=randread --bs=4k --size=4m --io_size=1m --output-format=json";
    let caches = |option: &str| {
        let line = format!("fio --target=rados://{POOL}/cold {option} {job}");
        let (status, stdout, stderr) = cluster.run(&line);
        assert_eq!(status, Some(0), "{line}: {stdout}{stderr}");
        let result: Value = serde_json::from_str(&stdout).expect("JSON");
        (result["iosonde"]["caches"].clone(), stderr)
    };
    let (unknown, _) = caches("");
    assert_eq!(unknown[1]["layer"], "osd");
    assert_eq!(unknown[1]["state"], "unknown");
    let (cold, said) = caches("--cold osd");
    assert_eq!(cold[1]["state"], "cold", "{cold}");
    assert!(
        cold[1]["evidence"]["dropped"]["count"].as_u64() > Some(0),
        "{cold}"
    );
    assert_eq!(cold[0]["evidence"], json!("no_library_cache"), "{cold}");
    assert!(said.contains("osd 'allow *'"), "{said}");
}

#[test]
#[ignore = "needs Ceph"]
fn node_layer_is_refused_for_a_pool() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let line = format!("fio --target=rados://{POOL}/cold --cold node --name=a --rw=read --size=1m");
    let (status, stdout, stderr) = cluster.run(&line);
    assert_eq!(status, Some(2), "{stdout}{stderr}");
    assert!(stderr.contains("not in a Kubernetes cluster"), "{stderr}");
}

#[test]
#[ignore = "needs Ceph"]
fn silent_osd_is_named_and_not_waited_for() {
    let scratch = Scratch::shared();
    let options = ["--store", "memstore", "--no-mgr", "--size", "1073741824"];
    let cluster = Cluster::up(&scratch, &options);
    // A single OSD has no peer that reports it, so it stays up.
    cluster.signal("osd.0", Signal::STOP);
    let began = Instant::now();
    let line = format!(
        "fio --cold osd --name=a --rw=write --size=64k --filename={}",
        scratch.out().join("cold-local").display()
    );
    let (status, stdout, stderr) = cluster.run(&line);
    cluster.signal("osd.0", Signal::CONT);
    assert_ne!(status, Some(0), "{stdout}{stderr}");
    assert!(
        stderr.contains("osd.0 cannot drop its caches"),
        "{stdout}{stderr}"
    );
    assert!(began.elapsed() < Duration::from_secs(90), "{stderr}");
}
