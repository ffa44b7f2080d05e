//! Storage daemons that stop: a stall in the series, or an error after a time that can be set; never silence.

use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::{Scratch, is_full, require};
use rustix::process::Signal;

use crate::engines::{sizes, wait_for};

const ONE_OSD: [&str; 5] = ["--store", "memstore", "--no-mgr", "--size", "1073741824"];
/// Room for what is written at full speed until a test has seen it.
const LARGE_OSD: [&str; 5] = ["--store", "memstore", "--no-mgr", "--size", "4294967296"];

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
    let mut command = cluster.iosonde(&format!("{job} --runtime=15 --ceph_timeout=60"));
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
    // Killed: an error with its cause, once the time is over. So it is with one that librados holds back, as it has more in flight than
    // that lets through (100 MiB).
    let held_back = format!(
        "fio --ioengine=rados --pool={POOL} --name=deep --rw=write --bs=4m --size=256m --ceph_object_size=4m --iodepth=32 --time_based"
    );
    let children = [("stall.", &job), ("deep.", &held_back)].map(|(object, job)| {
        let mut command = cluster.iosonde(&format!("{job} --runtime=60 --ceph_timeout=3"));
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        wait_for("the object", || {
            (!sizes(&cluster, object).is_empty()).then_some(())
        });
        (object, child)
    });
    cluster.signal("osd.0", Signal::KILL);
    for (object, child) in children {
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{object}");
        let object = format!("{object}0.0");
        for words in ["ETIMEDOUT", "ceph_timeout", &object, "cannot remove it"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}

/// Ends a run that waits for a stopped daemon as Ctrl-C does. What it said, once it has ended of itself.
fn interrupted(mut child: std::process::Child) -> String {
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::INT).expect("it runs");
    // The cluster's time is ten times what this waits.
    let status = wait_for("the end", || child.try_wait().expect("a child"));
    assert_eq!(status.code(), Some(130), "{status}");
    let output = child.wait_with_output().expect("it has ended");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Starts a run whose figures go to a file, where they find room however long nobody reads, and waits until it shows how it stands: I/O
/// goes on.
fn under_way(cluster: &Cluster, line: &str, figures: &Path) -> std::process::Child {
    let mut command = cluster.iosonde(&format!("{line} --status-interval=1"));
    let file = std::fs::File::create(figures).expect("a file");
    let command = command.stdout(file).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    wait_for("figures", || {
        let text = std::fs::read_to_string(figures).expect("a file");
        text.contains("IOPS=").then_some(())
    });
    child
}

fn begun(cluster: &Cluster, line: &str) -> std::process::Child {
    let mut command = cluster.iosonde(line);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

#[test]
#[ignore = "needs Ceph"]
fn ctrl_c_does_not_wait_for_a_daemon_that_is_stopped() {
    require!(Root);
    let scratch = Scratch::shared();
    let cluster = Cluster::up(&scratch, &LARGE_OSD);
    let fio = begun(
        &cluster,
        &format!(
            "fio --target=rados://{POOL} --name=silent --rw=randrw --bs=4k --size=4m --iodepth=4 --time_based --runtime=600 \
             --ceph-timeout=600"
        ),
    );
    let ours = |cluster: &Cluster| sizes(cluster, "iosonde-");
    wait_for("the object", || {
        (ours(&cluster).iter().map(|(_, size)| size).sum::<u64>() == 4 << 20).then_some(())
    });
    cluster.rbd(&format!("create {POOL}/silent --size 16M"));
    let image = format!("rbd://{POOL}/silent");
    let on_image = format!(
        "fio --target={image} --name=i --rw=randrw --bs=4k --size=4m --iodepth=4 --time_based --runtime=600 --ceph-timeout=600"
    );
    let figures = scratch.out().join("figures");
    let rbd = under_way(&cluster, &on_image, &figures);
    let bench = begun(
        &cluster,
        // Lent to librados, which has more of it than a socket takes when it is given up.
        &format!("rados bench -p {POOL} 600 write -b 4M -t 16 --timeout 600"),
    );
    wait_for("a benchmark's object", || {
        // At once: it fills the pool meanwhile.
        let all = cluster.objects(POOL);
        let is_its = |name: &String| name.contains("benchmark_data");
        all.iter().any(is_its).then_some(())
    });
    cluster.signal("osd.0", Signal::STOP);
    sleep(Duration::from_secs(1));
    let said = interrupted(fio);
    for words in [
        "I/Os were in flight and not answered",
        "iosonde-",
        "cannot remove it",
        &format!("rados -p {POOL} rm iosonde-"),
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // What librbd has in flight cannot be cancelled: it is left to it, and the image stays open until the process ends.
    let said = interrupted(rbd) + &std::fs::read_to_string(&figures).expect("a file");
    for words in [
        "I/Os were in flight and not answered",
        &format!("{image}: the cluster does not answer, so that the image could not be closed"),
        &format!("rbd status {POOL}/silent"),
        "READ: bw=",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // Nor can opening it be ended, which the timeout does, or a user who insists.
    let mut opening = begun(&cluster, &on_image);
    sleep(Duration::from_secs(1));
    let pid = rustix::process::Pid::from_child(&opening);
    for _ in 0..3 {
        rustix::process::kill_process(pid, Signal::INT).expect("it runs");
        // Longer than a key repeats.
        sleep(Duration::from_millis(1200));
    }
    let status = wait_for("the end", || opening.try_wait().expect("a child"));
    let output = opening.wait_with_output().expect("it has ended");
    let told = String::from_utf8_lossy(&output.stderr);
    // A signal that comes before it listens ends it as any program.
    let by_signal = std::os::unix::process::ExitStatusExt::signal(&status).is_some();
    assert!(by_signal || status.code() == Some(130), "{status}: {told}");
    assert!(
        by_signal || told.contains("a third Ctrl-C ends it"),
        "{told}"
    );
    let said = interrupted(bench);
    let command = format!("iosonde rados -p {POOL} cleanup --prefix benchmark_data");
    for words in ["could not be removed (ECANCELED)", &command] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // The command that was named does it.
    cluster.signal("osd.0", Signal::CONT);
    let line = format!("rados -p {POOL} cleanup --prefix benchmark_data");
    let (status, stdout, stderr) = cluster.run(&line);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert_eq!(sizes(&cluster, "benchmark_data"), []);
    let (status, _, stderr) = cluster.run(&format!("rados -p {POOL} cleanup --prefix rbd_data"));
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("never removed"), "{stderr}");
    // The image is nobody's once the cluster has forgotten the client that is gone, which takes it half a minute.
    if is_full() {
        wait_for("an image without watchers", || {
            let watchers = cluster.rbd(&format!("status {POOL}/silent"));
            watchers.contains("Watchers: none").then_some(())
        });
    }
}

#[test]
#[ignore = "needs Ceph"]
fn ctrl_c_ends_a_run_on_an_image_and_closes_it() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("create {POOL}/ended --size 16M"));
    let line = format!(
        "fio --target=rbd://{POOL}/ended --name=i --rw=randwrite --bs=4k --size=4m --iodepth=4 --time_based --runtime=600 \
         --ceph-timeout=600"
    );
    let figures = scratch.out().join("figures");
    let run = under_way(&cluster, &line, &figures);
    assert!(
        !cluster
            .rbd(&format!("status {POOL}/ended"))
            .contains("none")
    );
    let said = interrupted(run) + &std::fs::read_to_string(&figures).expect("a file");
    assert!(said.contains("WRITE: bw="), "{said}");
    assert!(!said.contains("could not be closed"), "{said}");
    let status = cluster.rbd(&format!("status {POOL}/ended"));
    assert!(status.contains("Watchers: none"), "{status}");
    assert_eq!(cluster.rbd(&format!("lock ls {POOL}/ended")).trim(), "");
    cluster.rbd(&format!("rm --no-progress {POOL}/ended"));
}

#[test]
#[ignore = "needs Ceph"]
fn a_full_pool_is_an_error_that_leaves_nothing() {
    require!(Root);
    let scratch = Scratch::shared();
    // The manager is who counts what a pool holds.
    let cluster = Cluster::up(&scratch, &["--store", "memstore", "--size", "1073741824"]);
    cluster.rados(&format!(
        "-p {POOL} bench 60 write -b 4194304 --max-objects 12 --no-cleanup"
    ));
    cluster.rbd(&format!("create {POOL}/full --size 16M"));
    // With what describes them.
    let before = cluster.objects(POOL);
    let fails = |cluster: &Cluster| {
        let writes = format!(
            "fio --target=rados://{POOL} --name=full --rw=randwrite --bs=64k --size=8m --iodepth=4"
        );
        let reads = writes.replace("randwrite", "randread");
        let bench = format!("rados bench -p {POOL} 5 write -b 64k");
        let on_image = |line: &str| {
            line.replace(POOL, &format!("{POOL}/full"))
                .replace("rados:", "rbd:")
        };
        let (image_writes, image_reads) = (on_image(&writes), on_image(&reads));
        for (line, expected) in [
            (writes, 1),
            (reads, 3),
            (bench, 3),
            (image_writes, 1),
            (image_reads, 3),
        ] {
            let (status, stdout, stderr) = cluster.run(&line);
            let said = stdout + &stderr;
            assert_eq!(status, Some(expected), "{line}: {said}");
            assert!(said.contains("the pool is full"), "{line}: {said}");
            assert!(!said.contains("panicked"), "{line}: {said}");
        }
        assert_eq!(cluster.objects(POOL), before);
    };
    let wait_for_health = |words: &str| {
        wait_for(words, || {
            cluster.ceph("health detail").contains(words).then_some(())
        });
    };
    cluster.ceph(&format!("osd pool set-quota {POOL} max_bytes 1048576"));
    wait_for_health(&format!("pool '{POOL}' is full (running out of quota)"));
    fails(&cluster);
    cluster.ceph(&format!("osd pool set-quota {POOL} max_bytes 0"));
    for ratio in ["nearfull 0.005", "backfillfull 0.007", "full 0.01"] {
        let (kind, value) = ratio.split_once(' ').expect("two words");
        cluster.ceph(&format!("osd set-{kind}-ratio {value}"));
    }
    wait_for_health(&format!("pool '{POOL}' is full (no space)"));
    fails(&cluster);
}
