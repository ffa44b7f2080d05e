//! Manifests that are applied without iosonde, and images that contain the agent.

use super::{
    CLUSTER_TIMEOUT, IMAGE, JOB, TestNamespace, kubectl, kubectl_with, run, status_and_output,
};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The last line in the log of a pod that runs a job on its own.
const LAST_WORD: &str = "iosonde: the result is in the line above";

/// The image that `run.sh` adds to the cluster's registry.
const AGENT_IMAGE: &str = "iosonde-agent:test";

/// The image of iosonde that `run.sh` adds to the cluster's registry.
const CLIENT_IMAGE: &str = "iosonde:test";

fn rendered(namespace: &TestNamespace, target: &str, words: &str) -> String {
    let line = format!(
        "fio --target {target} --image {AGENT_IMAGE} --namespace {} {words} {JOB}",
        namespace.name
    );
    let (status, stdout, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    stdout
}

/// The kubeconfig of a user with this role only.
fn with_role(namespace: &TestNamespace, role: &str) -> tempfile::TempDir {
    let user = format!("--serviceaccount={}:collector", namespace.name);
    let role = format!("--role={role}");
    namespace.kubectl(&["create", "rolebinding", "collector", &role, &user]);
    let scratch = tempfile::tempdir().expect("a directory");
    let name = format!("system:serviceaccount:{}:collector", namespace.name);
    std::fs::write(scratch.path().join("config"), super::acting_as(&name)).expect("a file");
    scratch
}

#[test]
#[ignore = "needs a cluster"]
fn rendered_manifests_run_and_results_are_collected() {
    let namespace = TestNamespace::new("render");
    for (target, words, pods, keyword) in [
        (
            "sc://local-path",
            "--claim-size 50m --pods 2 --render",
            2,
            "kind: Job",
        ),
        (
            "sc://loop-ext4",
            "--claim-size 50m --pods 2 --render statefulset",
            2,
            "kind: StatefulSet",
        ),
        (
            "sc://loop-ext4",
            "--claim-size 300m --volume-mode block --render=job",
            1,
            "volumeDevices",
        ),
        (
            "sc://loop-ext4",
            "--claim-size 50m --pods 2 --shared --access-mode rwo --placement pack --render",
            2,
            "kind: PersistentVolumeClaim",
        ),
    ] {
        let yaml = rendered(&namespace, target, words);
        assert!(yaml.contains(keyword), "{yaml}");
        kubectl_with(&["apply", "--dry-run=server", "-f", "-"], &yaml);
        kubectl_with(&["apply", "-f", "-"], &yaml);
        let (_, rest) = yaml.split_once("k8s collect ").expect("how to collect");
        let id = rest.split_whitespace().next().expect("an id");
        let user = with_role(&namespace, &format!("iosonde-{id}-collect"));
        let config = user.path().join("config");
        let line = format!(
            "k8s collect {id} -n {} --kubeconfig {} --output-format json",
            namespace.name,
            config.display()
        );
        let (status, stdout, stderr) = run(namespace.command(&line));
        assert_eq!(status, Some(0), "{words}: {stderr}");
        let json: Value = serde_json::from_str(&stdout).expect("fio's JSON");
        assert!(json["jobs"][0]["read"]["total_ios"].as_u64() > Some(0));
        let each = json["iosonde"]["pods"]["each"].as_array();
        assert_eq!(each.map_or(1, Vec::len), pods, "{words}: {stdout}");
        kubectl_with(&["delete", "--cascade=foreground", "-f", "-"], &yaml);
        namespace.kubectl(&["delete", "rolebinding", "collector"]);
        namespace.wait_until_gone("iosonde/rendered");
    }
    let line = format!("k8s collect -n {}", namespace.name);
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(
        stderr.contains("no rendered run is in the namespace"),
        "{stderr}"
    );
}

#[test]
#[ignore = "needs a cluster"]
fn rendered_commands_run_and_their_documents_are_collected() {
    let namespace = TestNamespace::new("rendercmd");
    for (command, kind, documents) in [
        ("probe sc://local-path --quick --size 16m", "probe", 1),
        (
            "sweep sc://local-path --pods 2 --rw randread --size 16m --iodepth 1,2 --runtime 1",
            "sweep",
            2,
        ),
        (
            "run etcd emptydir:// --beside none --var size=1m",
            "suite",
            1,
        ),
    ] {
        let line = format!(
            "{command} --claim-size 50m --image {CLIENT_IMAGE} -n {} --render",
            namespace.name
        );
        let (status, yaml, stderr) = run(namespace.command(&line));
        assert_eq!(status, Some(0), "{stderr}");
        kubectl_with(&["apply", "--dry-run=server", "-f", "-"], &yaml);
        kubectl_with(&["apply", "-f", "-"], &yaml);
        let (_, rest) = yaml.split_once("k8s collect ").expect("how to collect");
        let id = rest.split_whitespace().next().expect("an id");
        let user = with_role(&namespace, &format!("iosonde-{id}-collect"));
        let config = user.path().join("config");
        let history = user.path().join("history.db");
        let collect = format!(
            "k8s collect {id} -n {} --kubeconfig {}",
            namespace.name,
            config.display()
        );
        let json = format!(
            "{collect} --output-format json --store {}",
            history.display()
        );
        let (status, stdout, stderr) = run(namespace.command(&json));
        assert!(matches!(status, Some(0 | 11 | 12)), "{command}: {stderr}");
        let values: Vec<Value> = stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect("a document"))
            .collect();
        assert_eq!(values.len(), documents, "{command}: {stdout}");
        assert!(values.iter().all(|value| value["kind"] == kind), "{stdout}");
        let target = command.split(' ').find(|word| word.contains("://"));
        let target = format!("\"{}\"", target.expect("a target"));
        assert!(stdout.contains(&target), "{stdout}");
        let list = format!("list --format json --store {}", history.display());
        let (_, listed, _) = run(namespace.command(&list));
        assert_eq!(
            listed.matches("\"rendered\"").count(),
            documents,
            "{listed}"
        );
        let (_, table, _) = run(namespace.command(&collect));
        assert!(!table.is_empty(), "{command}");
        kubectl_with(&["delete", "--cascade=foreground", "-f", "-"], &yaml);
        namespace.kubectl(&["delete", "rolebinding", "collector"]);
        namespace.wait_until_gone("iosonde/rendered");
    }
}

#[test]
#[ignore = "needs a cluster"]
fn failed_rendered_command_is_explained() {
    let namespace = TestNamespace::new("rendercmdfail");
    // The volume of the pod is smaller than the working set.
    let line = format!(
        "probe sc://loop-ext4 --size 1g --claim-size 50m --image {CLIENT_IMAGE} -n {} --render",
        namespace.name
    );
    let (status, yaml, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    kubectl_with(&["apply", "-f", "-"], &yaml);
    let (status, _, stderr) = run(namespace.command(&format!("k8s collect -n {}", namespace.name)));
    assert_eq!(status, Some(10), "{stderr}");
    assert!(stderr.contains("exit status 4"), "{stderr}");
    kubectl_with(&["delete", "--cascade=foreground", "-f", "-"], &yaml);
}

#[test]
#[ignore = "needs a cluster"]
fn failed_rendered_job_is_explained() {
    let namespace = TestNamespace::new("renderfail");
    let words = "--claim-size 50m --size=200m --render";
    let yaml = rendered(&namespace, "sc://loop-ext4", words).replace("size=16m", "size=200m");
    kubectl_with(&["apply", "-f", "-"], &yaml);
    let (status, _, stderr) = run(namespace.command(&format!("k8s collect -n {}", namespace.name)));
    assert_eq!(status, Some(10), "{stderr}");
    assert!(stderr.contains("are available"), "{stderr}");
    kubectl_with(&["delete", "--cascade=foreground", "-f", "-"], &yaml);
    namespace.wait_until_gone("iosonde/rendered");
    // The deadline ends the job and removes its pods, so the wait for results stops.
    let yaml = rendered(
        &namespace,
        "emptydir://",
        "--claim-size 50m --deadline 10s --render",
    )
    .replace("runtime=1", "runtime=600");
    kubectl_with(&["apply", "-f", "-"], &yaml);
    let (status, stdout, stderr) = run(namespace.command(&format!(
        "k8s collect -n \
                                                                   {}",
        namespace.name
    )));
    assert!(stderr.contains("deadline has passed"), "{stderr}");
    // The pod may be gone before the end of its log is read.
    match status {
        Some(10) => assert!(stdout.contains("read: IOPS="), "{stdout}"),
        other => assert_eq!(other, Some(9), "{stderr}"),
    }
    kubectl_with(&["delete", "--cascade=foreground", "-f", "-"], &yaml);
    namespace.wait_until_gone("iosonde/rendered");
    // The pods of a stateful set keep running: only their logs report the failure.
    let words = "--claim-size 50m --render statefulset";
    let yaml = rendered(&namespace, "sc://loop-ext4", words).replace("size=16m", "sise=16m");
    kubectl_with(&["apply", "-f", "-"], &yaml);
    let (status, _, stderr) = run(namespace.command(&format!("k8s collect -n {}", namespace.name)));
    assert_eq!(status, Some(10), "{stderr}");
    assert!(stderr.contains("sise"), "{stderr}");
    kubectl_with(&["delete", "--cascade=foreground", "-f", "-"], &yaml);
}

/// Log files of all containers of a namespace, on the nodes.
fn logs_on_nodes(namespace: &TestNamespace) -> Vec<PathBuf> {
    let directories =
        ["n1", "n2"].map(|node| super::cluster().join("run").join(node).join("pods-log"));
    let pods = directories
        .iter()
        .filter_map(|path| fs::read_dir(path).ok());
    let own = format!("{}_", namespace.name);
    let pods = pods.flatten().flatten().map(|pod| pod.path());
    let is_own = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(&own))
    };
    pods.filter(is_own)
        .map(|pod| pod.join("iosonde/0.log"))
        .collect()
}

/// kubelet rotates a log at 10 MiB, which a running container reaches within hours. The test
/// truncates the log instead.
#[test]
#[ignore = "needs a cluster"]
fn stateful_set_result_is_collected_after_log_rotation() {
    let namespace = TestNamespace::new("rotated");
    let yaml = rendered(
        &namespace,
        "sc://local-path",
        "--claim-size 50m --render statefulset",
    );
    kubectl_with(&["apply", "-f", "-"], &yaml);
    let (_, rest) = yaml.split_once("k8s collect ").expect("how to collect");
    let id = rest.split_whitespace().next().expect("an id");
    let pod = format!("iosonde-{id}-0");
    namespace.kubectl(&[
        "wait",
        "--for=create",
        &format!("pod/{pod}"),
        "--timeout=60s",
    ]);
    namespace.kubectl(&[
        "wait",
        "--for=condition=Ready",
        &format!("pod/{pod}"),
        "--timeout=90s",
    ]);
    let begun = Instant::now();
    while !namespace.kubectl(&["logs", &pod]).contains(LAST_WORD) {
        assert!(begun.elapsed() < CLUSTER_TIMEOUT, "no result");
        std::thread::sleep(Duration::from_millis(200));
    }
    let logs = logs_on_nodes(&namespace);
    assert_eq!(logs.len(), 1, "{logs:?}");
    fs::write(&logs[0], "").expect("an empty log");
    let user = with_role(&namespace, &format!("iosonde-{id}-collect"));
    let line = format!(
        "k8s collect {id} -n {} --kubeconfig {} --output-format json",
        namespace.name,
        user.path().join("config").display()
    );
    let mut command = namespace.command(&line);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("iosonde starts");
    let begun = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if begun.elapsed() > 2 * CLUSTER_TIMEOUT {
            child.kill().expect("it runs");
            panic!("the result is not collected");
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let (status, stdout, stderr) = status_and_output(&child.wait_with_output().expect("it ends"));
    assert_eq!(status, Some(0), "{stderr}");
    let json: Value = serde_json::from_str(&stdout).expect("fio's JSON");
    assert!(json["jobs"][0]["read"]["total_ios"].as_u64() > Some(0));
    kubectl_with(&["delete", "--cascade=foreground", "-f", "-"], &yaml);
    namespace.wait_until_gone("iosonde/rendered");
}

#[test]
#[ignore = "needs a cluster"]
fn image_with_agent_receives_no_agent() {
    let namespace = TestNamespace::new("carries");
    for (target, words) in [
        ("sc://local-path", "--claim-size 50m"),
        ("emptydir://", "--claim-size 50m --pods 2"),
    ] {
        let line = format!(
            "fio --target {target} --image {AGENT_IMAGE} --namespace {} {words} {JOB}",
            namespace.name
        );
        let mut command = namespace.command(&line);
        // An executable that is not an agent, so that sending one would fail.
        command.env("IOSONDE_AGENT", "/bin/false");
        let (status, stdout, stderr) = run(command);
        assert_eq!(status, Some(0), "{stderr}");
        let json: Value = serde_json::from_str(&stdout).expect("fio's JSON");
        assert!(json["jobs"][0]["read"]["total_ios"].as_u64() > Some(0));
        namespace.assert_clean();
    }
}

/// Two contexts of one API server, in place of two clusters.
#[test]
#[ignore = "needs a cluster"]
fn contexts_of_clusters_are_compared() {
    let namespace = TestNamespace::new("contexts");
    let admin = std::fs::read_to_string(super::cluster().join("cfg/admin.kubeconfig"));
    let two = admin.expect("a kubeconfig").replace(
        "contexts: [",
        "contexts: [{name: other, context: {cluster: iosonde-kube, user: admin}}, ",
    );
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("two.kubeconfig");
    std::fs::write(&path, two).expect("a file");
    let place = format!(
        "--context iosonde-kube,other --kubeconfig {} --image {IMAGE} -n {}",
        path.display(),
        namespace.name
    );
    let line = format!(
        "probe sc://local-path {place} --claim-size 64m --quick --runtime 0.3 --format json"
    );
    let (status, stdout, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    for words in [
        "\"sc://local-path@iosonde-kube\"",
        "\"sc://local-path@other\"",
        "\"context\":\"other\"",
    ] {
        let found = stdout.replace("\": \"", "\":\"").contains(words);
        assert!(found, "{words}: {stdout}");
    }
    namespace.assert_clean();
    let (status, _, stderr) = run(namespace.command(&format!(
        "fio --target emptydir:// {} {JOB}",
        place.replace(" -n ", " --namespace ")
    )));
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("names 2 clusters"), "{stderr}");
    let nodes = kubectl(&["get", "nodes", "-o", "name"]);
    assert!(!nodes.is_empty());
}
