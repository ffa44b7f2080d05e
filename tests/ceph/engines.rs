//! The engines `rados` and `rbd` of a job beside fio's own.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use iosonde_e2e::Scratch;
use iosonde_e2e::ceph::{Cluster, POOL};
use serde_json::Value;

/// Time between two polls. Most polls start a client, which takes CPU time from the cluster.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Time between two polls that start no process or must not come late.
const SHORT_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Objects of the pool with this prefix, and their sizes.
pub(crate) fn sizes(cluster: &Cluster, prefix: &str) -> Vec<(String, u64)> {
    sizes_of(cluster, |name| name.starts_with(prefix))
}

/// Objects of the pool with these names, and their sizes, each of which takes a client to find out.
pub(crate) fn sizes_of(cluster: &Cluster, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, u64)> {
    let all = cluster.objects(POOL);
    let names = all.iter().map(|name| name.trim_start_matches('/'));
    let sized = names.filter(|name| is_wanted(name)).filter_map(|name| {
        let name = name.to_owned();
        // An object that was removed meanwhile has no size.
        let output = Command::new("rados")
            .args(["-p", POOL, "stat", &name])
            .env("CEPH_CONF", cluster.conf())
            .output()
            .expect("rados starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (_, size) = text.trim().rsplit_once("size ")?;
        Some((name, size.parse().ok()?))
    });
    sized.collect()
}

/// Waits up to two minutes until a condition holds. For polls that start a client.
pub(crate) fn wait_for<T>(what: &str, poll: impl FnMut() -> Option<T>) -> T {
    poll_until(what, 240, POLL_INTERVAL, poll)
}

/// Waits up to a minute until a condition holds. For polls that start no process or must not come
/// late.
pub(crate) fn wait_closely_for<T>(what: &str, poll: impl FnMut() -> Option<T>) -> T {
    poll_until(what, 600, SHORT_POLL_INTERVAL, poll)
}

fn poll_until<T>(
    what: &str,
    polls: u32,
    interval: Duration,
    mut poll: impl FnMut() -> Option<T>,
) -> T {
    for _ in 0..polls {
        if let Some(found) = poll() {
            return found;
        }
        sleep(interval);
    }
    panic!("{what} has not come")
}

/// Starts a command and discards its output.
pub(crate) fn start(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("it starts")
}

/// Starts a command whose output the caller reads at its end.
pub(crate) fn start_piped(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

/// Starts a command with its output in a file, which never blocks it, and waits for words in it.
pub(crate) fn start_until_output(words: &str, mut command: Command, output: &Path) -> Child {
    let file = std::fs::File::create(output).expect("a file");
    command.stdout(file).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    wait_closely_for(words, || {
        assert_eq!(child.try_wait().expect("a child"), None, "it has ended");
        let text = std::fs::read_to_string(output).expect("a file");
        text.contains(words).then_some(())
    });
    child
}

fn json(text: &str) -> Value {
    let from = text.find('{').unwrap_or(0);
    serde_json::from_str(&text[from..]).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
#[ignore = "needs Ceph"]
fn objects_equal_those_of_fio_and_are_removed() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let job = format!(
        "--ioengine=rados --pool={POOL} --clientname=admin --name=alike --rw=write --bs=64k \
         --size=1m --nrfiles=2 --numjobs=2 --iodepth=4 --time_based --runtime=600 --thread \
         --rate_iops=200"
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
    // An interrupted fio does not always remove its objects.
    for (name, _) in sizes(&cluster, "alike.") {
        cluster.rados(&format!("-p {POOL} rm {name}"));
    }
}

#[test]
#[ignore = "needs Ceph"]
fn rados_objects_are_filled_before_reads() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let line = format!(
        "fio --ioengine=rados --pool={POOL} --name=reads --rw=randread --bs=4k --size=8m \
         --io_size=2m --iodepth=16 --output-format=json"
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
fn rados_writes_are_verified() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    for spread in ["", "--ceph_object_size=1m"] {
        let line = format!(
            "fio --ioengine=rados --pool={POOL} --name=checked --rw=randwrite --bs=12k --size=6m \
             --iodepth=32 --verify=crc32c {spread}"
        );
        let (status, stdout, stderr) = cluster.run(&line);
        assert_eq!(status, Some(0), "{stdout}{stderr}");
    }
    assert_eq!(sizes(&cluster, "checked."), []);
}

#[test]
#[ignore = "needs Ceph"]
fn image_is_filled_before_reads() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("create {POOL}/empty --size 16M"));
    assert_eq!(cluster.image_used_bytes("empty"), Some(0));
    let job = format!(
        "--ioengine=rbd --pool={POOL} --rbdname=empty --clientname=admin --name=a --bs=64k \
         --iodepth=8 --output-format=json --thread"
    );
    let (status, stdout, stderr) = cluster.run(&format!("fio {job} --rw=randread"));
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(cluster.image_used_bytes("empty"), Some(16 << 20));
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
