//! The engines `rados` and `rbd` of a job beside fio's own.

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL};
use serde_json::Value;

/// Objects of a pool that begin like this, with their sizes.
pub(crate) fn sizes(cluster: &Cluster, prefix: &str) -> Vec<(String, u64)> {
    let all = cluster.objects(POOL);
    let ours = all
        .iter()
        .filter(|name| name.trim_start_matches('/').starts_with(prefix));
    let sized = ours.filter_map(|name| {
        let name = name.trim_start_matches('/').to_owned();
        // What has been removed meanwhile has no size.
        let told = Command::new("rados")
            .args(["-p", POOL, "stat", &name])
            .env("CEPH_CONF", cluster.conf())
            .output()
            .expect("rados starts");
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        let (_, size) = told.trim().rsplit_once("size ")?;
        Some((name, size.parse().ok()?))
    });
    sized.collect()
}

/// Waits until something holds, with patience for a busy machine.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(found) = look() {
            return found;
        }
        sleep(Duration::from_millis(100));
    }
    panic!("{what} has not come")
}

/// Starts a command, whose words go nowhere.
pub(crate) fn start(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("it starts")
}

fn json(text: &str) -> Value {
    let from = text.find('{').unwrap_or(0);
    serde_json::from_str(&text[from..]).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
#[ignore = "needs Ceph"]
fn objects_are_those_of_fio_and_go_with_the_run() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let job = format!(
        "--ioengine=rados --pool={POOL} --clientname=admin --name=alike --rw=write --bs=64k --size=1m --nrfiles=2 \
         --numjobs=2 --iodepth=4 --time_based --runtime=60 --thread"
    );
    let full = |cluster: &Cluster| {
        let found = sizes(cluster, "alike.");
        (found.len() == 4 && found.iter().all(|(_, size)| *size == 512 << 10)).then_some(found)
    };
    let run = |command: Command| {
        let mut child = start(command);
        let found = wait_for("four objects of 512 KiB", || full(&cluster));
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
        child.wait().expect("it ends");
        found
    };
    let ours = run(cluster.iosonde(&format!("fio {job}")));
    assert_eq!(sizes(&cluster, "alike."), []);
    let theirs = run(cluster.fio(&format!("{job} --conf={}", cluster.conf().display())));
    assert_eq!(ours, theirs);
    // fio does not always remove its objects when it is interrupted.
    for (name, _) in sizes(&cluster, "alike.") {
        cluster.rados(&format!("-p {POOL} rm {name}"));
    }
}

#[test]
#[ignore = "needs Ceph"]
fn what_is_read_was_written_before() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let line = format!(
        "fio --ioengine=rados --pool={POOL} --name=reads --rw=randread --bs=4k --size=8m --io_size=2m --iodepth=16 \
         --output-format=json"
    );
    let (status, stdout, stderr) = cluster.run(&line);
    assert_eq!(status, Some(0), "{stderr}");
    let job = &json(&stdout)["jobs"][0];
    assert_eq!(job["read"]["total_ios"], 512);
    assert_eq!(job["error"], 0);
    assert_eq!(sizes(&cluster, "reads."), []);
}

#[test]
#[ignore = "needs Ceph"]
fn what_was_written_is_verified() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    for spread in ["", "--ceph_object_size=1m"] {
        let line = format!(
            "fio --ioengine=rados --pool={POOL} --name=checked --rw=randwrite --bs=12k --size=6m --iodepth=32 --verify=crc32c \
             {spread}"
        );
        let (status, stdout, stderr) = cluster.run(&line);
        assert_eq!(status, Some(0), "{stdout}{stderr}");
    }
    assert_eq!(sizes(&cluster, "checked."), []);
}

#[test]
#[ignore = "needs Ceph"]
fn an_image_is_filled_before_it_is_read() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("create {POOL}/empty --size 16M"));
    let used = |cluster: &Cluster| {
        let told = json(&cluster.rbd(&format!("du {POOL}/empty --format json")));
        told["images"][0]["used_size"].as_u64()
    };
    assert_eq!(used(&cluster), Some(0));
    let job = format!(
        "--ioengine=rbd --pool={POOL} --rbdname=empty --clientname=admin --name=a --bs=64k --iodepth=8 \
         --output-format=json --thread"
    );
    let (status, stdout, stderr) = cluster.run(&format!("fio {job} --rw=randread"));
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(used(&cluster), Some(16 << 20));
    let ours = json(&stdout);
    let theirs = cluster
        .fio(&format!("{job} --rw=randread"))
        .output()
        .expect("fio starts");
    let theirs = json(&String::from_utf8_lossy(&theirs.stdout));
    for figure in ["total_ios", "io_bytes"] {
        assert_eq!(
            ours["jobs"][0]["read"][figure],
            theirs["jobs"][0]["read"][figure]
        );
    }
    let normal = job.replace("--output-format=json", "");
    let (status, stdout, stderr) =
        cluster.run(&format!("fio {normal} --rw=randwrite --verify=crc32c"));
    assert_eq!(status, Some(0), "{stderr}");
    assert!((stdout + &stderr).contains("rbd_cache is on"), "{stderr}");
    cluster.rbd(&format!("rm --no-progress {POOL}/empty"));
}
