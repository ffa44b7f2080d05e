//! Stopped OSDs: a stall in the series, or an error after a configurable timeout.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::process_state::handles_signal;
use iosonde_e2e::{Scratch, ensure, is_full, one_good_try, require};
use rustix::process::Signal;

use crate::engines::{sizes, start_piped, start_until_output, wait_closely_for, wait_for};

const ONE_OSD: [&str; 5] = ["--store", "memstore", "--no-mgr", "--size", "1073741824"];
/// Capacity for writes at full speed until the test has seen them.
const LARGE_OSD: [&str; 5] = ["--store", "memstore", "--no-mgr", "--size", "4294967296"];

#[test]
#[ignore = "needs Ceph"]
fn stopped_osd_is_stall_then_error() {
    require!(Root);
    let scratch = Scratch::shared();
    let cluster = Cluster::up(&scratch, &ONE_OSD);
    let job = format!(
        "fio --ioengine=rados --pool={POOL} --name=stall --rw=randwrite --bs=4k --size=4m \
         --iodepth=4 --time_based --output-format=json"
    );
    // Paused: the longest latency covers the pause, and no error occurs. The rate is limited, since
    // an I/O every 2 ms suffices.
    let paced = format!("{job} --rate_iops=500 --runtime=10 --ceph_timeout=60");
    one_good_try(|| {
        let mut child = start_piped(cluster.iosonde(&paced));
        // On a busy machine the job may end before its object is seen or the OSD is paused.
        wait_for("the object, or the end", || {
            let has_ended = child.try_wait().expect("a child").is_some();
            (has_ended || !sizes(&cluster, "stall.").is_empty()).then_some(())
        });
        cluster.signal("osd.0", Signal::STOP);
        sleep(Duration::from_secs(2));
        cluster.signal("osd.0", Signal::CONT);
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        assert_eq!(sizes(&cluster, "stall."), []);
        let result: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let longest = result["jobs"][0]["write"]["lat_ns"]["max"].as_u64();
        ensure(longest > Some(1_500_000_000), || format!("{longest:?}"))
    });
    // Killed: an error with its cause after the timeout. Likewise if librados blocks submission at
    // its limit of 100 MiB in flight.
    let held_back = format!(
        "fio --ioengine=rados --pool={POOL} --name=deep --rw=write --bs=4m --size=256m \
         --ceph_object_size=4m --iodepth=32 --time_based"
    );
    let children = [("stall.", &job), ("deep.", &held_back)].map(|(object, job)| {
        let command = cluster.iosonde(&format!("{job} --runtime=600 --ceph_timeout=3"));
        let child = start_piped(command);
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

/// Sends SIGINT to a run that waits for a stopped OSD. Returns its output after its exit.
fn interrupted(mut child: std::process::Child) -> String {
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::INT).expect("it runs");
    // The cluster's timeout is ten times as long as this wait.
    let status = wait_closely_for("the end", || child.try_wait().expect("a child"));
    assert_eq!(status.code(), Some(130), "{status}");
    let output = child.wait_with_output().expect("it has ended");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Starts a run with its figures in a file, which never blocks the writer, and waits until the
/// figures show running I/O.
fn start_with_figures(cluster: &Cluster, line: &str, figures: &Path) -> std::process::Child {
    let command = cluster.iosonde(&format!("{line} --status-interval=1"));
    start_until_output("IOPS=", command, figures)
}

fn assert_contains_all(said: &str, expected: &[&str]) {
    for words in expected {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// Maximum number of SIGINT. The third one ends a run, but a run without CPU time takes several as
/// one.
const INTERRUPTS_MAX: u32 = 10;

/// Starts a run that waits for a stopped OSD while it opens an image, and sends SIGINT until it
/// ends. Opening an image cannot be cancelled: only the timeout or further Ctrl-C end the wait.
fn interrupt_opening(start: impl Fn() -> std::process::Child) {
    let mut pause = Duration::from_secs(1);
    one_good_try(|| {
        let mut opening = start();
        wait_closely_for("the handler of the signal", || {
            handles_signal(opening.id(), Signal::INT).then_some(())
        });
        // The client connects to the monitor first, which one Ctrl-C ends.
        sleep(pause);
        pause *= 2;
        let pid = rustix::process::Pid::from_child(&opening);
        let early = (0..INTERRUPTS_MAX).find_map(|_| {
            rustix::process::kill_process(pid, Signal::INT).expect("it runs");
            // Longer than the interval of a key repeat.
            sleep(Duration::from_millis(1200));
            opening.try_wait().expect("a child")
        });
        let status = early.unwrap_or_else(|| {
            wait_closely_for("the end", || opening.try_wait().expect("a child"))
        });
        let output = opening.wait_with_output().expect("it has ended");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(status.code(), Some(130), "{status}: {stderr}");
        ensure(stderr.contains("Press Ctrl-C again to quit"), || {
            stderr.to_string()
        })
    });
}

/// Removes a benchmark's objects with the command that the benchmark has printed.
fn remove_objects_of_benchmark(cluster: &Cluster) {
    let line = format!("rados -p {POOL} cleanup --prefix benchmark_data");
    let (status, stdout, stderr) = cluster.run(&line);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert_eq!(sizes(cluster, "benchmark_data"), []);
    let (status, _, stderr) = cluster.run(&format!("rados -p {POOL} cleanup --prefix rbd_data"));
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("removes no other objects"), "{stderr}");
}

#[test]
#[ignore = "needs Ceph"]
fn ctrl_c_does_not_wait_for_stopped_osd() {
    require!(Root);
    let scratch = Scratch::shared();
    let cluster = Cluster::up(&scratch, &LARGE_OSD);
    let fio = start_piped(cluster.iosonde(&format!(
        "fio --target=rados://{POOL} --name=silent --rw=randrw --bs=4k --size=4m --iodepth=4 \
         --time_based --runtime=600 --ceph-timeout=600"
    )));
    let ours = |cluster: &Cluster| sizes(cluster, "iosonde-");
    wait_for("the object", || {
        (ours(&cluster).iter().map(|(_, size)| size).sum::<u64>() == 4 << 20).then_some(())
    });
    cluster.rbd(&format!("create {POOL}/silent --size 16M"));
    let image = format!("rbd://{POOL}/silent");
    let on_image = format!(
        "fio --target={image} --name=i --rw=randrw --bs=4k --size=4m --iodepth=4 --time_based \
         --runtime=600 --ceph-timeout=600"
    );
    let figures = scratch.out().join("figures");
    let rbd = start_with_figures(&cluster, &on_image, &figures);
    // More data in flight than a socket holds, so librados still has some to send at the stop.
    let bench = start_piped(cluster.iosonde(&format!(
        "rados bench -p {POOL} 600 write -b 4M -t 16 --timeout 600"
    )));
    // The benchmark fills the pool meanwhile.
    wait_closely_for("a benchmark's object", || {
        let all = cluster.objects(POOL);
        let is_its = |name: &String| name.contains("benchmark_data");
        all.iter().any(is_its).then_some(())
    });
    cluster.signal("osd.0", Signal::STOP);
    sleep(Duration::from_secs(1));
    let command = format!("rados -p {POOL} rm iosonde-");
    let expected = [
        "I/Os in flight had no answer",
        "iosonde-",
        "cannot remove it",
        &command,
    ];
    assert_contains_all(&interrupted(fio), &expected);
    // I/Os in librbd cannot be cancelled: the image stays open until the process exits.
    let said = interrupted(rbd) + &std::fs::read_to_string(&figures).expect("a file");
    let expected = [
        "I/Os in flight had no answer",
        &format!("{image}: the cluster does not answer, so the image could not be closed"),
        &format!("rbd status {POOL}/silent"),
        "READ: bw=",
    ];
    assert_contains_all(&said, &expected);
    interrupt_opening(|| start_piped(cluster.iosonde(&on_image)));
    let command = format!("iosonde rados -p {POOL} cleanup --prefix benchmark_data");
    let expected = ["could not be removed (ECANCELED)", &command];
    assert_contains_all(&interrupted(bench), &expected);
    cluster.signal("osd.0", Signal::CONT);
    remove_objects_of_benchmark(&cluster);
    // The cluster drops the watcher of a dead client after about 30 s.
    if is_full() {
        wait_for("an image without watchers", || {
            let watchers = cluster.rbd(&format!("status {POOL}/silent"));
            watchers.contains("Watchers: none").then_some(())
        });
    }
}

#[test]
#[ignore = "needs Ceph"]
fn ctrl_c_ends_run_and_closes_image() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("create {POOL}/ended --size 16M"));
    let line = format!(
        "fio --target=rbd://{POOL}/ended --name=i --rw=randwrite --bs=4k --size=4m --iodepth=4 \
         --time_based --runtime=600 --ceph-timeout=600"
    );
    let figures = scratch.out().join("figures");
    let run = start_with_figures(&cluster, &line, &figures);
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
fn full_pool_is_error_without_leftovers() {
    require!(Root);
    let scratch = Scratch::shared();
    // Only the manager reports the usage of a pool.
    let cluster = Cluster::up(&scratch, &["--store", "memstore", "--size", "1073741824"]);
    cluster.rados(&format!(
        "-p {POOL} bench 60 write -b 4194304 --max-objects 12 --no-cleanup"
    ));
    cluster.rbd(&format!("create {POOL}/full --size 16M"));
    // An image of two objects, of which the first exists.
    cluster.rbd(&format!("create {POOL}/half --size 128K --object-size 64K"));
    let half = format!("fio --target=rbd://{POOL}/half --name=half --rw=randwrite --bs=64k");
    let first = cluster.run(&format!("{half} --size=64k"));
    assert_eq!(first.0, Some(0), "{first:?}");
    // Includes the metadata object of the benchmark.
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
        // The cache of librbd acknowledges all writes to the image: the last flush fails. It
        // succeeds if no write is in flight then, as after the think time.
        let (image_writes, image_reads) = (on_image(&writes), on_image(&reads));
        let one_write = image_writes.replace("size=8m", "size=64k") + " --thinktime=300ms";
        for (line, expected) in [
            (writes, 1),
            (reads, 3),
            (bench, 3),
            (image_writes, 1),
            (one_write, 1),
            (image_reads, 3),
        ] {
            let (status, stdout, stderr) = cluster.run(&line);
            let said = stdout + &stderr;
            assert_eq!(status, Some(expected), "{line}: {said}");
            assert!(said.contains("the pool is full"), "{line}: {said}");
            assert!(!said.contains("panicked"), "{line}: {said}");
        }
        lost_write_is_reported(cluster, &half);
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

/// Title of a job in the figures: `NAME: (groupid=0, jobs=1): err=28 (...)`.
fn title_of_job<'a>(figures: &'a str, job: &str) -> &'a str {
    let start = format!("{job}: (groupid=");
    let title = figures.lines().find(|line| line.starts_with(&start));
    title.unwrap_or_else(|| panic!("{start}: {figures}"))
}

/// Runs a job of two writes on a full pool, which accepts the second, as it replaces data: alone,
/// and before a job that ignores the error and whose only write is accepted.
fn lost_write_is_reported(cluster: &Cluster, job: &str) {
    let alone = format!("{job} --size=128k --iodepth=1 --thinktime=300ms --randseed=1");
    let before_another = format!(
        "{alone} --name=last --rw=randwrite --bs=64k --size=64k --startdelay=2 \
         --ignore_error=,ENOSPC:EDQUOT"
    );
    for (line, last) in [(alone, "half"), (before_another, "last")] {
        // The error of the first write is seen if the flush at the end overtakes a write, which it
        // does unless it is delayed.
        let is_reported = || {
            let (status, stdout, stderr) = cluster.run(&line);
            let said = stdout + &stderr;
            assert!(said.contains("total=0,2,0,0"), "{said}");
            let is_reported = status == Some(1) && said.contains("the pool is full");
            // Unless the flush of the first job returned the error, the last job holds it.
            if is_reported && title_of_job(&said, "half").contains("err= 0") {
                assert!(title_of_job(&said, last).contains("func=write"), "{said}");
            }
            is_reported
        };
        assert!((0..5).any(|_| is_reported()), "{line}");
    }
}
