//! Pools and images that iosonde makes: used, removed, found after SIGKILL, and no others.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL};
use rustix::process::{Pid, Signal, kill_process};

use crate::engines::wait_for;

fn pools(cluster: &Cluster) -> Vec<String> {
    let listed = cluster.ceph("osd pool ls");
    listed.lines().map(|line| line.trim().to_owned()).collect()
}

/// Images of the shared pool that iosonde has made with this size.
fn made_images(cluster: &Cluster, mib: u64) -> Vec<String> {
    // Fails if another test removes its image meanwhile.
    let listed = wait_for("a list", || cluster.try_rbd(&format!("ls -l {POOL}")));
    let size = format!("{mib} MiB");
    let ours = listed
        .lines()
        .filter(|line| line.starts_with("iosonde-") && line.contains(&size));
    ours.filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
        .collect()
}

/// Starts a job of ten minutes on an image of this length, and waits for the image.
fn start_on_made_image(cluster: &Cluster, mib: u64) -> Child {
    let mut command = cluster.iosonde(&format!(
        "fio --target=rbd://{POOL}/?size={mib}m --name=a --rw=write --bs=64k --time_based \
         --runtime=600 --rate_iops=200"
    ));
    let run = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_for("its image", || {
        (made_images(cluster, mib).len() == 1).then_some(())
    });
    run
}

#[test]
#[ignore = "needs Ceph"]
fn made_pool_and_image_are_used_and_removed() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let line = "fio --target=rbd://made-rbd/?size=16m --make-pool --name=a --rw=randrw --bs=64k \
                --size=16m";
    let (status, stdout, stderr) = cluster.run(line);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(
        stderr.contains("made the pool made-rbd, replicated"),
        "{stderr}"
    );
    assert!(
        stderr.contains("made the image made-rbd/iosonde-"),
        "{stderr}"
    );
    let (status, stdout, stderr) =
        cluster.run("rados -p made-rados bench 1 write -b 64k --make-pool=replicated");
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let left = pools(&cluster);
    // Another test makes pools with similar names meanwhile.
    let is_made_here = |pool: &String| ["made-rbd", "made-rados"].contains(&pool.as_str());
    assert!(!left.iter().any(is_made_here), "{left:?}");
}

#[test]
#[ignore = "needs Ceph"]
fn image_is_made_in_an_existing_namespace_only() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let namespace = format!("{POOL}/made-in");
    let line =
        format!("fio --target=rbd://{namespace}/?size=21m --name=a --rw=write --bs=64k --size=1m");
    let (status, _, stderr) = cluster.run(&line);
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("rbd namespace create"), "{stderr}");
    cluster.rbd(&format!("namespace create {namespace}"));
    let (status, stdout, stderr) = cluster.run(&line);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let made = format!("made the image {namespace}/iosonde-");
    assert!(stderr.contains(&made), "{stderr}");
    let left = cluster.rbd(&format!("ls {namespace}"));
    assert_eq!(left.trim(), "", "{stderr}");
    cluster.rbd(&format!("namespace remove {namespace}"));
}

#[test]
#[ignore = "needs Ceph"]
fn missing_data_pool_is_avoided_by_the_remedy() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let namespace = format!("{POOL}/data-pool");
    cluster.rbd(&format!("namespace create {namespace}"));
    let line =
        format!("fio --target=rbd://{namespace}/?size=23m --name=a --rw=write --bs=64k --size=1m");
    let run = || {
        let mut command = cluster.iosonde(&line);
        let ended = command.env("CEPH_ARGS", "--rbd_default_data_pool=absent");
        let ended = ended.output().expect("iosonde starts");
        let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
        (ended.status.code(), stderr)
    };
    let (status, stderr) = run();
    assert_eq!(status, Some(3), "{stderr}");
    let remedy = format!("config pool set {POOL} rbd_default_data_pool {POOL}");
    assert!(stderr.contains(&format!("rbd {remedy}")), "{stderr}");
    cluster.rbd(&remedy);
    let (status, stderr) = run();
    cluster.rbd(&format!("config pool remove {POOL} rbd_default_data_pool"));
    cluster.rbd(&format!("namespace remove {namespace}"));
    assert_eq!(status, Some(0), "{stderr}");
}

#[test]
#[ignore = "needs Ceph"]
fn made_erasure_coded_pool_is_overwritten_and_removed_with_its_rule() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.ceph("osd erasure-code-profile set made-code k=2 m=1 crush-failure-domain=osd");
    let line = "fio --target=rados://made-coded --make-pool=erasure:made-code --name=a \
                --rw=randrw --bs=64k --size=4m";
    let (status, stdout, stderr) = cluster.run(line);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains("made the pool made-coded"), "{stderr}");
    let left = pools(&cluster);
    assert!(!left.contains(&"made-coded".to_owned()), "{left:?}");
    let rules = cluster.ceph("osd crush rule ls");
    assert!(!rules.contains("iosonde-"), "{rules}");
    cluster.ceph("osd erasure-code-profile rm made-code");
}

#[test]
#[ignore = "needs Ceph"]
fn cluster_in_health_err_is_refused_before_anything_is_made() {
    let scratch = Scratch::shared();
    let cluster = Cluster::up(&scratch, &["--store", "memstore", "--size", "1073741824"]);
    // A full ratio below the others is an error of the cluster (OSD_OUT_OF_ORDER_FULL).
    cluster.ceph("osd set-full-ratio 0.5");
    wait_for("an error of the cluster", || {
        cluster
            .ceph("health detail")
            .contains("HEALTH_ERR")
            .then_some(())
    });
    let image = format!("probe rbd://{POOL}/?size=16m --quick");
    for line in ["probe rados://made-ill --make-pool --quick", image.as_str()] {
        let (status, _, stderr) = cluster.run(line);
        assert_eq!(status, Some(3), "{line}: {stderr}");
        assert!(stderr.contains("the cluster is in HEALTH_ERR"), "{stderr}");
    }
    // The manager may make a pool of its own meanwhile.
    let pools = pools(&cluster);
    let is_made = |pool: &String| pool.starts_with("made-") || pool.starts_with("iosonde-");
    assert!(!pools.iter().any(is_made), "{pools:?}");
    assert_eq!(cluster.rbd(&format!("ls {POOL}")).trim(), "");
}

#[test]
#[ignore = "needs Ceph"]
fn existing_and_foreign_pools_are_refused() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let (status, _, stderr) = cluster.run(&format!("probe rados://{POOL} --make-pool --quick"));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("but it exists"), "{stderr}");
    let (status, _, stderr) = cluster.run(&format!("rados -p {POOL} cleanup --made-pool"));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("did not make this pool"), "{stderr}");
    let (status, _, stderr) = cluster.run("probe rbd://no-such-pool/?size=1g --quick");
    assert_eq!(status, Some(3), "{stderr}");
    assert!(pools(&cluster).contains(&POOL.to_owned()));
}

/// Most kernels that run this test have no rbd module: then the command is refused before it makes
/// anything.
#[test]
#[ignore = "needs Ceph"]
fn mapped_image_is_measured_or_refused_and_removed() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let (status, _, stderr) = cluster.run(&format!(
        "fio --target=rbd://{POOL}/?size=19m --map --name=a --rw=write --bs=64k --size=4m"
    ));
    match status {
        Some(0) => assert!(stderr.contains("undo this at the end"), "{stderr}"),
        _ => {
            assert_eq!(status, Some(3), "{stderr}");
            let is_explained = stderr.contains("--map needs") || stderr.contains("no rbd module");
            assert!(is_explained, "{stderr}");
        }
    }
    assert_eq!(made_images(&cluster, 19), [""; 0]);
}

#[test]
#[ignore = "needs Ceph"]
fn made_image_is_removed_after_an_interrupt() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let mut run = start_on_made_image(&cluster, 17);
    kill_process(Pid::from_child(&run), Signal::INT).expect("it runs");
    run.wait().expect("it ends");
    assert_eq!(made_images(&cluster, 17), [""; 0]);
}

#[test]
#[ignore = "needs Ceph"]
fn image_of_a_killed_run_is_listed_and_removed_on_request() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let mut run = start_on_made_image(&cluster, 18);
    // `Child::kill` sends SIGKILL.
    run.kill().expect("it runs");
    run.wait().expect("it ends");
    let [image] = &made_images(&cluster, 18)[..] else {
        panic!("one image");
    };
    let run_prefix = image.strip_suffix("image").expect("its name");
    let (status, stdout, stderr) =
        cluster.run(&format!("rados -p {POOL} cleanup --prefix iosonde-"));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        stdout.contains(&format!("--prefix {run_prefix}")),
        "{stdout}"
    );
    assert_eq!(made_images(&cluster, 18).len(), 1, "listed, not removed");
    // The cluster lists a killed client for up to 30 s, and does not remove an image in use.
    wait_for("the removal", || {
        let line = format!("rados -p {POOL} cleanup --prefix {run_prefix}");
        (cluster.run(&line).0 == Some(0)).then_some(())
    });
    assert_eq!(made_images(&cluster, 18), [""; 0]);
}

#[test]
#[ignore = "needs Ceph"]
fn made_pool_is_removed_once_its_run_is_killed() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let exists = |pool: &str| pools(&cluster).iter().any(|listed| listed == pool);
    // Both runs wait without I/O.
    let start = |pool: &str| {
        let mut command = cluster.iosonde(&format!(
            "fio --target=rados://{pool} --make-pool --name=a --rw=write --bs=64k --size=64k \
             --startdelay=600"
        ));
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let run = command.spawn().expect("it starts");
        wait_for("its pool", || exists(pool).then_some(()));
        run
    };
    let mut killed = start("lease-killed");
    let mut living = start("lease-living");
    let (status, _, stderr) = cluster.run("rados -p lease-killed cleanup --made-pool");
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("its run goes on"), "{stderr}");
    // `Child::kill` sends SIGKILL.
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");
    wait_for("the removal", || {
        let (status, stdout, stderr) = cluster.run("rados cleanup --made-pool");
        // Pools that other tests remove meanwhile are skipped.
        assert_eq!(status, Some(0), "{stdout}{stderr}");
        assert!(
            stdout.contains("pool lease-living is in use and stays"),
            "{stdout}"
        );
        stdout
            .contains("Removed the pool lease-killed")
            .then_some(())
    });
    assert!(!exists("lease-killed") && exists("lease-living"));
    kill_process(Pid::from_child(&living), Signal::INT).expect("it runs");
    living.wait().expect("it ends");
    assert!(!exists("lease-living"));
}

#[test]
#[ignore = "needs Ceph"]
fn run_that_was_stopped_watches_its_pool_again() {
    let scratch = Scratch::shared();
    let cluster = Cluster::up(&scratch, &["--store", "memstore", "--size", "1073741824"]);
    let mut command = cluster.iosonde(
        "fio --target=rados://lease-paused --make-pool --name=a --rw=write --bs=64k --size=64k \
         --startdelay=600",
    );
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = command.spawn().expect("it starts");
    let pid = Pid::from_child(&run);
    wait_for("its pool", || {
        let listed = pools(&cluster);
        listed.contains(&"lease-paused".to_owned()).then_some(())
    });
    let is_watched = || {
        let listed = cluster.rados("-p lease-paused -N iosonde-owner listwatchers owner");
        listed.contains("watcher=")
    };
    assert!(is_watched());
    kill_process(pid, Signal::STOP).expect("it runs");
    wait_for("the end of its watch", || (!is_watched()).then_some(()));
    kill_process(pid, Signal::CONT).expect("it runs");
    wait_for("another watch", || is_watched().then_some(()));
    kill_process(pid, Signal::INT).expect("it runs");
    run.wait().expect("it ends");
    assert!(!pools(&cluster).contains(&"lease-paused".to_owned()));
}

#[test]
#[ignore = "needs Ceph"]
fn made_pool_does_not_wait_for_other_pools() {
    let scratch = Scratch::shared();
    let cluster = Cluster::up(&scratch, &["--store", "memstore", "--size", "1073741824"]);
    // The only OSD holds one of three copies, so these placement groups never become active.
    cluster.ceph("osd pool create stuck 8 8");
    cluster.ceph("osd pool set stuck size 3");
    cluster.ceph("osd pool set stuck min_size 3");
    wait_for("placement groups that wait", || {
        let state = cluster.ceph("pg ls-by-pool stuck");
        (!state.contains("active")).then_some(())
    });
    let began = Instant::now();
    let (status, stdout, stderr) =
        cluster.run("rados -p made-beside bench 1 write -b 64k --make-pool");
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(began.elapsed() < Duration::from_secs(100), "{stderr}");
}
