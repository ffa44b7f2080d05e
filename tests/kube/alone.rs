//! Faults of the cluster itself: `run.sh` runs these tests last, one at a time in order.

use super::{
    CLUSTER_TIMEOUT, JOB, TestNamespace, begun, cluster, kubectl, run, signal, status_and_output,
};
use rustix::process::Signal;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
#[ignore = "needs a cluster"]
fn alone_1_run_survives_restart_of_api_server() {
    let namespace = TestNamespace::new("restart");
    let job = "--name=t --rw=randread --bs=4k --size=16m --runtime=30 --time_based \
               --output-format=json,normal";
    for pods in ["", "--pods 2"] {
        let words = format!("--claim-size 50m {pods} {job}");
        let child = begun(&namespace, namespace.fio("sc://local-path", &words));
        // One pod measures after 3 s. Several pods are still in preparation, and need no such wait.
        if pods.is_empty() {
            std::thread::sleep(std::time::Duration::from_secs(3));
        }
        let restarted = Command::new(cluster().join("restart-apiserver.sh")).status();
        assert!(restarted.expect("a script").success());
        let (status, stdout, stderr) =
            status_and_output(&child.wait_with_output().expect("it ends"));
        assert_eq!(status, Some(0), "{stderr}");
        assert!(stdout.contains("\"jobs\""), "{stdout}");
        let runtime = stdout.split("run=").nth(1).unwrap_or_default();
        let ms: u64 = runtime
            .split('-')
            .next()
            .and_then(|ms| ms.parse().ok())
            .expect("a runtime");
        assert!(ms >= 29_000, "all of the run is in its result: {ms} ms");
        namespace.assert_clean();
    }
}

/// Number of agent clients in each pod.
fn clients(namespace: &TestNamespace) -> Vec<usize> {
    let pods = namespace.kubectl(&["get", "pods", "-l", "iosonde/run", "-o", "name"]);
    let count_clients = |pod: &str| {
        let words = [
            "exec",
            pod,
            "--",
            "sh",
            "-c",
            "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' || true",
        ];
        let found = std::panic::catch_unwind(|| namespace.kubectl(&words));
        found.map_or(0, |found| found.matches("agent call --socket").count())
    };
    pods.lines().map(count_clients).collect()
}

#[test]
#[ignore = "needs a cluster"]
fn alone_1_waiting_pods_keep_their_client() {
    let namespace = TestNamespace::new("turns");
    let line = format!(
        "sweep sc://local-path sc://loop-ext4 --claim-size 100m --image {} --namespace {} --rw \
         randread --bs 4k --iodepth 1 --exhaustive --runtime 90 --seed {}",
        super::IMAGE,
        namespace.name,
        std::process::id()
    );
    let mut command = namespace.command(&line);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.expect("iosonde starts");
    let begun = Instant::now();
    while clients(&namespace) != [1, 1] {
        assert!(
            begun.elapsed() < CLUSTER_TIMEOUT,
            "{:?}",
            clients(&namespace)
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    let restarted = Command::new(cluster().join("restart-apiserver.sh")).status();
    assert!(restarted.expect("a script").success());
    // The measuring pod reconnects at once; the other pod's turn is more than a minute away.
    std::thread::sleep(Duration::from_secs(45));
    let there = clients(&namespace);
    signal(&child, Signal::INT);
    let (_, _, stderr) = status_and_output(&child.wait_with_output().expect("it ends"));
    assert_eq!(there, [1, 1], "{stderr}");
    namespace.assert_clean();
}

/// A change of all nodes, which the words of kubectl undo on drop.
struct ChangedNodes(&'static [&'static str]);

impl ChangedNodes {
    fn new(change: &[&str], undo: &'static [&'static str]) -> ChangedNodes {
        let changed = ChangedNodes(undo);
        kubectl(change);
        changed
    }
}

impl Drop for ChangedNodes {
    fn drop(&mut self) {
        kubectl(self.0);
    }
}

#[test]
#[ignore = "needs a cluster"]
fn alone_1_cordoned_nodes_are_named_with_their_remedy() {
    let namespace = TestNamespace::new("cordoned");
    let words = format!("--claim-size 50m {JOB}");
    let cordoned = ChangedNodes::new(&["cordon", "n1", "n2"], &["uncordon", "n1", "n2"]);
    let (status, _, stderr) = run(namespace.fio("emptydir://", &words));
    drop(cordoned);
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("nodes n1, n2 are cordoned"), "{stderr}");
    assert!(stderr.contains("kubectl uncordon n1 n2"), "{stderr}");
    namespace.assert_clean();
    let (status, _, stderr) = run(namespace.fio("emptydir://", &words));
    assert_eq!(status, Some(0), "{stderr}");
}

#[test]
#[ignore = "needs a cluster"]
fn alone_1_taint_of_all_nodes_is_explained_and_tolerated() {
    let namespace = TestNamespace::new("tainted");
    let taint = ["taint", "nodes", "--all", "bench=alone:NoSchedule"];
    let words = format!("--claim-size 50m {JOB}");
    let tainted = ChangedNodes::new(&taint, &["taint", "nodes", "--all", "bench:NoSchedule-"]);
    // On a busy machine, the scheduler learns of the taint after it has assigned the first pod.
    let mut tries = (0..3).map(|_| run(namespace.fio("emptydir://", &words)));
    let refused = tries.find(|(status, ..)| *status != Some(0));
    let (status, _, stderr) = refused.expect("a pod that waits for a node");
    let tolerating = format!("--toleration bench {words}");
    let (tolerated, _, said) = run(namespace.fio("emptydir://", &tolerating));
    drop(tainted);
    assert_eq!(status, Some(9), "{stderr}");
    assert!(stderr.contains("untolerated taint"), "{stderr}");
    // The scheduler names the taint before Kubernetes 1.34.2 only, so the list of nodes does.
    let option = "--toleration bench=alone:NoSchedule";
    assert!(stderr.contains(option), "{stderr}");
    assert_eq!(tolerated, Some(0), "{said}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn alone_2_dead_node_is_named_with_its_leftovers() {
    let namespace = TestNamespace::new("node");
    let words = format!(
        "--claim-size 50m --node-selector kubernetes.io/hostname=n2 {}",
        super::ENDLESS
    );
    let child = begun(&namespace, namespace.fio("emptydir://", &words));
    let pid = std::fs::read_to_string(cluster().join("run/n2/pid")).expect("a node");
    let killed = Command::new("kill").args(["-9", pid.trim()]).status();
    assert!(killed.expect("kill").success());
    let (status, _, stderr) = status_and_output(&child.wait_with_output().expect("it ends"));
    assert_eq!(status, Some(10), "{stderr}");
    assert!(stderr.contains("node n2 is not ready"), "{stderr}");
    let (_, command) = stderr.split_once("gone for good: kubectl ").expect(&stderr);
    let command = command.lines().next().expect("a command");
    assert!(!namespace.ours().is_empty(), "nothing is forced unasked");
    let mut words: Vec<&str> = command.split_whitespace().collect();
    words.retain(|word| *word != "kubectl");
    kubectl(&words);
    let begun = std::time::Instant::now();
    while !namespace.ours().is_empty() {
        assert!(
            begun.elapsed() < CLUSTER_TIMEOUT,
            "left: {}",
            namespace.ours()
        );
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    // A run that requires this node is refused before it starts.
    let words = format!("--node-selector kubernetes.io/hostname=n2 {JOB}");
    let (status, _, stderr) = run(namespace.fio("emptydir://", &words));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("no node can take a pod"), "{stderr}");
}
