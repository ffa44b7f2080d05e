//! Storage daemons that stop: a stall in the series, or an error after a time that can be set; never silence.

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::{Scratch, require};
use rustix::process::Signal;

use crate::engines::{sizes, wait_for};

const ONE_OSD: [&str; 5] = ["--store", "memstore", "--no-mgr", "--size", "1073741824"];

#[test]
#[ignore = "needs Ceph"]
fn a_daemon_that_stops_is_a_stall_and_then_an_error() {
    require!(Root);
    let scratch = Scratch::shared();
    let cluster = Cluster::up(&scratch, &ONE_OSD);
    let job = format!(
        "fio --ioengine=rados --pool={POOL} --name=stall --rw=randwrite --bs=4k --size=4m --iodepth=4 --time_based \
         --output-format=json"
    );
    // Stopped for a while: the longest latency is at least as long, and nothing else happens.
    let mut command = cluster.iosonde(&format!("{job} --runtime=8 --ceph_timeout=60"));
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    wait_for("the object", || {
        (!sizes(&cluster, "stall.").is_empty()).then_some(())
    });
    cluster.signal("osd.0", Signal::STOP);
    sleep(Duration::from_secs(2));
    cluster.signal("osd.0", Signal::CONT);
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let result: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let longest = result["jobs"][0]["write"]["lat_ns"]["max"].as_u64();
    assert!(longest > Some(1_500_000_000), "{longest:?}");
    assert_eq!(sizes(&cluster, "stall."), []);
    // Killed: an error with its cause, once the time is over.
    let mut command = cluster.iosonde(&format!("{job} --runtime=60 --ceph_timeout=3"));
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    wait_for("the object", || {
        (!sizes(&cluster, "stall.").is_empty()).then_some(())
    });
    cluster.signal("osd.0", Signal::KILL);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    for words in ["ETIMEDOUT", "ceph_timeout", "stall.0.0", "cannot remove it"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}
