//! Verdicts on bottlenecks, each provoked on a cluster of its own.

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL};
use serde_json::Value;

use crate::engines::wait_for;

fn bench(cluster: &Cluster, line: &str) -> Value {
    let (status, stdout, stderr) = cluster.run(&format!("rados -p {POOL} bench {line} -f json"));
    assert_eq!(status, Some(0), "{line}: {stderr}");
    serde_json::from_str(&stdout).expect("JSON")
}

/// Accepts the expected verdict, or a lack of CPU time of the client, which tests cannot exclude.
fn assert_verdict(result: &Value, words: &str) {
    let verdicts = result["verdicts"].to_string();
    let busy = verdicts.contains("the CPUs of the client");
    assert!(busy || verdicts.contains(words), "{words}: {result:#}");
}

#[test]
#[ignore = "needs Ceph"]
fn slow_osd_and_recovery_are_named() {
    let scratch = Scratch::shared();
    let cluster = Cluster::up(&scratch, &["--osds", "3", "--replicas", "2"]);
    // A number of objects that takes much longer to recover than the run below, on any machine.
    bench(
        &cluster,
        "60 write -b 64k -t 8 --max-objects 600 --no-cleanup",
    );

    cluster.daemon(
        "osd.1",
        "config set osd_debug_inject_dispatch_delay_duration 0.1",
    );
    cluster.daemon(
        "osd.1",
        "config set osd_debug_inject_dispatch_delay_probability 1",
    );
    // Long enough for tens of reads on each OSD, also on a busy machine.
    let slow = bench(&cluster, "10 rand");
    cluster.daemon(
        "osd.1",
        "config set osd_debug_inject_dispatch_delay_probability 0",
    );
    let osds = &slow["cluster"]["osd_latency"];
    assert_eq!(osds[0]["osd"], 1, "{osds:#}");
    assert!(
        osds[0]["op_ns"].as_f64() > Some(1e8),
        "at least the delay: {osds:#}"
    );
    assert_verdict(&slow, "one slow OSD: osd.1 took");

    // Slow enough to be observed in a pool of any size.
    for osd in 0..3 {
        let daemon = format!("osd.{osd}");
        cluster.daemon(&daemon, "config set osd_recovery_sleep 0.3");
        cluster.daemon(&daemon, "config set osd_recovery_max_active 1");
    }
    cluster.ceph("osd out 2");
    wait_for("recovery", || {
        let state = cluster.ceph("status");
        (state.contains("recovering") || state.contains("backfilling")).then_some(())
    });
    let recovering = bench(&cluster, "8 write -b 64k -t 4 --run-name other");
    let side = &recovering["cluster"];
    assert_eq!(
        (&side["osds"]["in"], &side["osds"]["up"]),
        (&2.into(), &3.into()),
        "{side:#}"
    );
    assert!(
        side["activity"]["recovering"].as_u64() > Some(0),
        "{side:#}"
    );
    // With another main verdict, recovery is still reported as a finding.
    let verdicts = recovering["verdicts"].to_string();
    assert!(
        verdicts.contains("the cluster was moving data"),
        "{verdicts}"
    );
}
