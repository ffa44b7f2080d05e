//! Settings from several places: those of a job and its target, and those of a client, a pool and an image.

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL};

#[test]
#[ignore = "needs Ceph"]
fn the_cache_that_was_on_is_that_of_the_image() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    // Other tests look at the cache of images in the shared pool.
    cluster.ceph("osd pool create overridden 8 8");
    cluster.rbd("pool init overridden");
    cluster.rbd("create overridden/i --size 4M");
    let told = |expected: &str| {
        let line = "fio --target=rbd://overridden/i --name=a --rw=write --bs=1m";
        let (status, stdout, stderr) = cluster.run(line);
        let said = stdout + &stderr;
        assert_eq!(status, Some(0), "{said}");
        assert!(said.contains(expected), "{expected}: {said}");
    };
    told("rbd_cache is on (writearound)");
    cluster.rbd("config pool set overridden rbd_cache_policy writethrough");
    told("rbd_cache is on (writethrough)");
    cluster.rbd("config pool set overridden rbd_cache false");
    told("rbd_cache is off");
    cluster.rbd("config image set overridden/i rbd_cache true");
    cluster.rbd("config image set overridden/i rbd_cache_policy writeback");
    told("rbd_cache is on (writeback)");
    cluster.rbd("config image set overridden/i rbd_cache false");
    told("rbd_cache is off");
    cluster.ceph("osd pool delete overridden overridden --yes-i-really-really-mean-it");
}

#[test]
#[ignore = "needs Ceph"]
fn a_jobs_own_options_hold_on_its_target() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let names = scratch.out().join("names");
    let look = scratch.write(
        "look",
        format!("rados -p {POOL} -N own ls > {} 2>&1\n", names.display()),
    );
    let job = scratch.write(
        "own.fio",
        format!(
            "[global]\nioengine=rados\npool=none\nceph_namespace=own\nceph_object_size=1m\n[options]\nrw=read\nbs=64k\nsize=2m\n\
             exec_prerun=sh {}\n",
            look.display()
        ),
    );
    let line = format!("fio --target=rados://{POOL} {}", job.display());
    let done = cluster.iosonde(&line).current_dir(scratch.out()).output();
    let done = done.expect("iosonde starts");
    assert!(done.status.success(), "{done:?}");
    let names = std::fs::read_to_string(&names).expect("what was seen");
    let ours = names.lines().filter(|name| name.contains("-options."));
    assert_eq!(ours.count(), 2, "{names}");
    let (status, stdout, stderr) = cluster.run(&line.replace(POOL, &format!("{POOL}/other")));
    let said = stdout + &stderr;
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("ceph_namespace=own"), "{said}");
}
