//! `iosonde rbd bench` beside `rbd bench`, snapshots, and the parts of objects of `rados bench`.

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL};
use serde_json::Value;

#[test]
#[ignore = "needs Ceph"]
fn rbd_bench_prints_the_lines_of_rbd_bench() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("create {POOL}/benched --size 64M"));
    for pattern in ["rand", "seq", "full-seq"] {
        let options = format!(
            "bench --io-type write --io-size 64K --io-threads 4 --io-total 64M --io-pattern \
             {pattern} {POOL}/benched"
        );
        let theirs = cluster.rbd(&options);
        let (status, ours, stderr) = cluster.run(&format!("rbd {options}"));
        assert_eq!(status, Some(0), "{ours}{stderr}");
        for lines in [&theirs, &ours] {
            assert!(lines.contains("ops: 1024   "), "{lines}");
        }
        let head = |text: &str| text.lines().take(2).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(head(&ours), head(&theirs));
    }
    let line = format!("rbd bench --io-type rw --io-total 16M -f json {POOL}/benched");
    let (status, stdout, stderr) = cluster.run(&line);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let result: Value = serde_json::from_str(&stdout).expect("JSON");
    let ops = |side: &str| result[side]["ops"].as_u64().expect("a count");
    assert_eq!(ops("read") + ops("write"), 4096);
    cluster.rbd(&format!("rm {POOL}/benched"));
}

#[test]
#[ignore = "needs Ceph"]
fn snapshot_is_read_and_never_written() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let image = format!("{POOL}/snapped");
    cluster.rbd(&format!("create {image} --size 16M"));
    cluster.rbd(&format!(
        "bench --io-type write --io-size 1M --io-total 16M --io-pattern full-seq {image}"
    ));
    cluster.rbd(&format!("snap create {image}@before"));
    let run = |rw: &str| {
        cluster.run(&format!(
            "fio --target=rbd://{image}@before --allow-overwrite=rbd://{image}@before --name=a \
             --rw={rw} --bs=64k"
        ))
    };
    let (status, stdout, stderr) = run("randread");
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let (status, _, stderr) = run("randwrite");
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("a snapshot is read-only"), "{stderr}");
    cluster.rbd(&format!("snap purge {image}"));
    cluster.rbd(&format!("rm {image}"));
}

#[test]
#[ignore = "needs Ceph"]
fn image_in_a_namespace_is_measured_by_its_target() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("namespace create {POOL}/inner"));
    let image = format!("{POOL}/inner/disk");
    cluster.rbd(&format!("create {image} --size 16M"));
    let (status, stdout, stderr) = cluster.run(&format!(
        "fio --target=rbd://{image} --name=a --rw=write --bs=1m --size=16m"
    ));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(cluster.rbd(&format!("diff {image}")).contains("data"));
    let (status, stdout, stderr) = cluster.run(&format!(
        "probe rbd://{image} --quick --runtime 1 --size 16m --no-save"
    ));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    cluster.rbd(&format!("rm --no-progress {image}"));
    cluster.rbd(&format!("namespace remove {POOL}/inner"));
}

#[test]
#[ignore = "needs Ceph"]
fn rados_bench_writes_object_maps_and_attributes() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let bench = format!(
        "rados -p {POOL} -N parts bench 60 write -b 4k --max-objects 8 --write-omap --write-xattr"
    );
    let (status, stdout, stderr) = cluster.run(&bench);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let all = format!("{bench} --write-object --no-cleanup --run-name parts");
    let (status, stdout, stderr) = cluster.run(&all);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let within = format!("-p {POOL} -N parts");
    let listed = cluster.rados(&format!("{within} ls"));
    let object = listed.lines().find(|name| name.ends_with("_object3"));
    let object = object.expect("an object");
    let keys = cluster.rados(&format!("{within} listomapkeys {object}"));
    assert_eq!(keys.trim(), "bench-omap-key-0");
    let attributes = cluster.rados(&format!("{within} listxattr {object}"));
    assert_eq!(attributes.trim(), "bench-xattr-key-0");
    let (status, _, stderr) = cluster.run(&format!("rados {within} cleanup --run-name parts"));
    assert_eq!(status, Some(0), "{stderr}");
}
