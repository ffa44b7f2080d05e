//! Faults of the cluster itself, which no other test may meet: `run.sh` runs these last, one at a time, in order.

use super::{JOB, Lab, PATIENCE, begun, cluster, ended, kubectl, run, signal};
use rustix::process::Signal;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
#[ignore = "needs a cluster"]
fn alone_1_a_run_survives_the_restart_of_the_api_server() {
    let lab = Lab::new("restart");
    let job = "--name=t --rw=randread --bs=4k --size=16m --runtime=30 --time_based --output-format=json,normal";
    for pods in ["", "--pods 2"] {
        let words = format!("--claim-size 50m {pods} {job}");
        let child = begun(&lab, lab.fio("sc://local-path", &words));
        // Alone it measures by then; several are met while they prepare, of which nothing is told.
        if pods.is_empty() {
            std::thread::sleep(std::time::Duration::from_secs(3));
        }
        let restarted = Command::new(cluster().join("restart-apiserver.sh")).status();
        assert!(restarted.expect("a script").success());
        let (status, stdout, stderr) = ended(&child.wait_with_output().expect("it ends"));
        assert_eq!(status, Some(0), "{stderr}");
        assert!(stdout.contains("\"jobs\""), "{stdout}");
        let runtime = stdout.split("run=").nth(1).unwrap_or_default();
        let ms: u64 = runtime
            .split('-')
            .next()
            .and_then(|ms| ms.parse().ok())
            .expect("a runtime");
        assert!(ms >= 29_000, "all of the run is in its result: {ms} ms");
        lab.assert_clean();
    }
}

/// Clients of the agent in each of these pods.
fn clients(lab: &Lab) -> Vec<usize> {
    let pods = lab.kubectl(&["get", "pods", "-l", "iosonde/run", "-o", "name"]);
    let of = |pod: &str| {
        let words = [
            "exec",
            pod,
            "--",
            "sh",
            "-c",
            "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' || true",
        ];
        let found = std::panic::catch_unwind(|| lab.kubectl(&words));
        found.map_or(0, |found| found.matches("agent call --socket").count())
    };
    pods.lines().map(of).collect()
}

#[test]
#[ignore = "needs a cluster"]
fn alone_1_pods_that_wait_for_their_turn_keep_their_client() {
    let lab = Lab::new("turns");
    let line = format!(
        "sweep sc://local-path sc://loop-ext4 --claim-size 100m --image {} --namespace {} --rw randread --bs 4k --iodepth 1 \
         --exhaustive --runtime 90 --seed {}",
        super::IMAGE,
        lab.namespace,
        std::process::id()
    );
    let mut command = lab.command(&line);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.expect("iosonde starts");
    let begun = Instant::now();
    while clients(&lab) != [1, 1] {
        assert!(begun.elapsed() < PATIENCE, "{:?}", clients(&lab));
        std::thread::sleep(Duration::from_millis(500));
    }
    let restarted = Command::new(cluster().join("restart-apiserver.sh")).status();
    assert!(restarted.expect("a script").success());
    // One measures, and connects again as soon as it misses the server; the turn of the other is more than a minute away.
    std::thread::sleep(Duration::from_secs(45));
    let there = clients(&lab);
    signal(&child, Signal::INT);
    let (_, _, stderr) = ended(&child.wait_with_output().expect("it ends"));
    assert_eq!(there, [1, 1], "{stderr}");
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn alone_2_a_node_that_dies_is_named_with_what_it_leaves() {
    let lab = Lab::new("node");
    let words = format!(
        "--claim-size 50m --node-selector kubernetes.io/hostname=n2 {}",
        super::ENDLESS
    );
    let child = begun(&lab, lab.fio("emptydir://", &words));
    let pid = std::fs::read_to_string(cluster().join("run/n2/pid")).expect("a node");
    let killed = Command::new("kill").args(["-9", pid.trim()]).status();
    assert!(killed.expect("kill").success());
    let (status, _, stderr) = ended(&child.wait_with_output().expect("it ends"));
    assert_eq!(status, Some(10), "{stderr}");
    assert!(stderr.contains("node n2 is not ready"), "{stderr}");
    let (_, command) = stderr.split_once("gone for good: kubectl ").expect(&stderr);
    let command = command.lines().next().expect("a command");
    assert!(!lab.ours().is_empty(), "nothing is forced unasked");
    let mut words: Vec<&str> = command.split_whitespace().collect();
    words.retain(|word| *word != "kubectl");
    kubectl(&words);
    let begun = std::time::Instant::now();
    while !lab.ours().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "left: {}", lab.ours());
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    // What needs that node is refused beforehand.
    let words = format!("--node-selector kubernetes.io/hostname=n2 {JOB}");
    let (status, _, stderr) = run(lab.fio("emptydir://", &words));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("no node can take a pod"), "{stderr}");
}
