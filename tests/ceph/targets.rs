//! `rados://` and `rbd://` as targets of every command that measures.

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL};
use rustix::process::{Pid, Signal, kill_process};

use crate::engines::{sizes, start, wait_for};

#[test]
#[ignore = "needs Ceph"]
fn a_file_in_a_pool_is_spread_over_objects_of_ours_also_when_interrupted() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let line = format!(
        "fio --target=rados://{POOL} --name=spread --rw=randread --bs=4k --size=10m --time_based --runtime=60"
    );
    let mut child = start(cluster.iosonde(&line));
    let ours = |cluster: &Cluster| {
        let mut found = sizes(cluster, "iosonde-");
        found.retain(|(name, _)| name.contains("-spread.0.0."));
        found
    };
    let whole =
        |found: &[(String, u64)]| found.iter().map(|(_, size)| size).sum::<u64>() == 10 << 20;
    let found = wait_for("10 MiB in objects", || {
        Some(ours(&cluster)).filter(|found| whole(found))
    });
    let lengths: Vec<u64> = found.iter().map(|(_, size)| *size).collect();
    assert_eq!(lengths, [4 << 20, 4 << 20, 2 << 20]);
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(ours(&cluster), []);
}

#[test]
#[ignore = "needs Ceph"]
fn every_command_measures_a_pool_and_an_image() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("create {POOL}/target --size 16M"));
    let pool = format!("rados://{POOL}/studies");
    let image = format!("rbd://{POOL}/target");
    let fill = format!("fio --target={image} --name=fill --rw=write --bs=1m");
    let (status, stdout, stderr) = cluster.run(&fill);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    for line in [
        format!(
            "sweep {pool} --bs 4k --iodepth 1,4 --rw randread --size 16m --runtime 1 --format json"
        ),
        format!(
            "sweep {image} --bs 4k --iodepth 1,4 --rw randread --size 16m --runtime 1 --format json"
        ),
        format!("probe {pool} --quick --size 16m --runtime 1 --format json"),
        format!("probe {image} --quick --size 16m --runtime 1 --format json"),
        format!(
            "load {pool} --bs 4k --rw randread --size 16m --rates 20,40 --runtime 1 --format json"
        ),
        format!(
            "load {image} --bs 4k --rw randread --size 16m --rates 20,40 --runtime 1 --format json"
        ),
    ] {
        let (status, stdout, stderr) = cluster.run(&line);
        assert_eq!(status, Some(0), "{line}: {stdout}{stderr}");
        assert!(
            stdout.contains("rados") || stdout.contains("rbd"),
            "{line}: {stdout}"
        );
        assert!(
            stdout.contains("OSDs up") || stdout.contains("\"osds\""),
            "the cluster's side: {line}: {stdout}"
        );
    }
    // For people too, with what served it.
    let line = format!("sweep {pool} --bs 4k --iodepth 1,4 --rw randread --size 16m --runtime 1");
    let (status, stdout, stderr) = cluster.run(&line);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("Cluster: HEALTH_"), "{stdout}");
    cluster.rbd(&format!("rm --no-progress {POOL}/target"));
    assert!(
        !cluster
            .objects(POOL)
            .iter()
            .any(|name| name.contains("iosonde-"))
    );
}
