//! Manifests that are applied without iosonde, and images that carry the agent.

use super::{IMAGE, JOB, Lab, PATIENCE, ended, kubectl, kubectl_with, run};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// What a pod that runs a job by itself says last.
const LAST_WORD: &str = "iosonde: the result is in the line above";

/// What `run.sh` has put into the cluster's registry.
const AGENT_IMAGE: &str = "iosonde-agent:test";

fn rendered(lab: &Lab, target: &str, words: &str) -> String {
    let line = format!(
        "fio --target {target} --image {AGENT_IMAGE} --namespace {} {words} {JOB}",
        lab.namespace
    );
    let (status, stdout, stderr) = run(lab.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    stdout
}

/// The kubeconfig of a user who has this role and nothing else.
fn with_role(lab: &Lab, role: &str) -> tempfile::TempDir {
    let user = format!("--serviceaccount={}:collector", lab.namespace);
    let role = format!("--role={role}");
    lab.kubectl(&["create", "rolebinding", "collector", &role, &user]);
    let scratch = tempfile::tempdir().expect("a directory");
    let name = format!("system:serviceaccount:{}:collector", lab.namespace);
    std::fs::write(scratch.path().join("config"), super::acting_as(&name)).expect("a file");
    scratch
}

#[test]
#[ignore = "needs a cluster"]
fn rendered_manifests_are_applied_and_their_results_collected() {
    let lab = Lab::new("render");
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
        let yaml = rendered(&lab, target, words);
        assert!(yaml.contains(keyword), "{yaml}");
        kubectl_with(&["apply", "--dry-run=server", "-f", "-"], &yaml);
        kubectl_with(&["apply", "-f", "-"], &yaml);
        let (_, rest) = yaml.split_once("k8s collect ").expect("how to collect");
        let id = rest.split_whitespace().next().expect("an id");
        let user = with_role(&lab, &format!("iosonde-{id}-collect"));
        let config = user.path().join("config");
        let line = format!(
            "k8s collect {id} -n {} --kubeconfig {} --output-format json",
            lab.namespace,
            config.display()
        );
        let (status, stdout, stderr) = run(lab.command(&line));
        assert_eq!(status, Some(0), "{words}: {stderr}");
        let json: Value = serde_json::from_str(&stdout).expect("fio's JSON");
        assert!(json["jobs"][0]["read"]["total_ios"].as_u64() > Some(0));
        let each = json["iosonde"]["pods"]["each"].as_array();
        assert_eq!(each.map_or(1, Vec::len), pods, "{words}: {stdout}");
        kubectl_with(&["delete", "--cascade=foreground", "-f", "-"], &yaml);
        lab.kubectl(&["delete", "rolebinding", "collector"]);
        lab.wait_until_gone("iosonde/rendered");
    }
    let line = format!("k8s collect -n {}", lab.namespace);
    let (status, _, stderr) = run(lab.command(&line));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(
        stderr.contains("no rendered run is in the namespace"),
        "{stderr}"
    );
}

#[test]
#[ignore = "needs a cluster"]
fn a_rendered_job_that_fails_says_why() {
    let lab = Lab::new("renderfail");
    let words = "--claim-size 50m --size=200m --render";
    let yaml = rendered(&lab, "sc://loop-ext4", words).replace("size=16m", "size=200m");
    kubectl_with(&["apply", "-f", "-"], &yaml);
    let (status, _, stderr) = run(lab.command(&format!("k8s collect -n {}", lab.namespace)));
    assert_eq!(status, Some(10), "{stderr}");
    assert!(stderr.contains("are available"), "{stderr}");
    kubectl_with(&["delete", "--cascade=foreground", "-f", "-"], &yaml);
    lab.wait_until_gone("iosonde/rendered");
    // The cluster ends it, and its pods are gone: nothing is waited for any more.
    let yaml = rendered(
        &lab,
        "emptydir://",
        "--claim-size 50m --deadline 10s --render",
    )
    .replace("runtime=1", "runtime=600");
    kubectl_with(&["apply", "-f", "-"], &yaml);
    let (status, stdout, stderr) = run(lab.command(&format!("k8s collect -n {}", lab.namespace)));
    assert!(stderr.contains("deadline has passed"), "{stderr}");
    // Its pod may be gone before its last words are read.
    match status {
        Some(10) => assert!(stdout.contains("read: IOPS="), "{stdout}"),
        other => assert_eq!(other, Some(9), "{stderr}"),
    }
    kubectl_with(&["delete", "--cascade=foreground", "-f", "-"], &yaml);
    lab.wait_until_gone("iosonde/rendered");
    // Its pods stay, so that nothing but their words tells that they have none.
    let words = "--claim-size 50m --render statefulset";
    let yaml = rendered(&lab, "sc://loop-ext4", words).replace("size=16m", "sise=16m");
    kubectl_with(&["apply", "-f", "-"], &yaml);
    let (status, _, stderr) = run(lab.command(&format!("k8s collect -n {}", lab.namespace)));
    assert_eq!(status, Some(10), "{stderr}");
    assert!(stderr.contains("sise"), "{stderr}");
    kubectl_with(&["delete", "--cascade=foreground", "-f", "-"], &yaml);
}

/// The logs of all containers of a namespace, as the nodes have them.
fn logs_on_nodes(lab: &Lab) -> Vec<PathBuf> {
    let directories =
        ["n1", "n2"].map(|node| super::cluster().join("run").join(node).join("pods-log"));
    let pods = directories
        .iter()
        .filter_map(|path| fs::read_dir(path).ok());
    let own = format!("{}_", lab.namespace);
    let pods = pods.flatten().flatten().map(|pod| pod.path());
    let is_own = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(&own))
    };
    pods.filter(is_own)
        .map(|pod| pod.join("iosonde/0.log"))
        .collect()
}

/// A kubelet cuts the log of a container that runs on when it has 10 MiB, which is the result of some hours. Here the log is
/// emptied.
#[test]
#[ignore = "needs a cluster"]
fn result_of_a_stateful_set_is_collected_after_its_log_was_cut() {
    let lab = Lab::new("rotated");
    let yaml = rendered(
        &lab,
        "sc://local-path",
        "--claim-size 50m --render statefulset",
    );
    kubectl_with(&["apply", "-f", "-"], &yaml);
    let (_, rest) = yaml.split_once("k8s collect ").expect("how to collect");
    let id = rest.split_whitespace().next().expect("an id");
    let pod = format!("iosonde-{id}-0");
    lab.kubectl(&[
        "wait",
        "--for=create",
        &format!("pod/{pod}"),
        "--timeout=60s",
    ]);
    lab.kubectl(&[
        "wait",
        "--for=condition=Ready",
        &format!("pod/{pod}"),
        "--timeout=90s",
    ]);
    let begun = Instant::now();
    while !lab.kubectl(&["logs", &pod]).contains(LAST_WORD) {
        assert!(begun.elapsed() < PATIENCE, "no result");
        std::thread::sleep(Duration::from_millis(200));
    }
    let logs = logs_on_nodes(&lab);
    assert_eq!(logs.len(), 1, "{logs:?}");
    fs::write(&logs[0], "").expect("an empty log");
    let user = with_role(&lab, &format!("iosonde-{id}-collect"));
    let line = format!(
        "k8s collect {id} -n {} --kubeconfig {} --output-format json",
        lab.namespace,
        user.path().join("config").display()
    );
    let mut command = lab.command(&line);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("iosonde starts");
    let begun = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if begun.elapsed() > 2 * PATIENCE {
            child.kill().expect("it runs");
            panic!("the result is not collected");
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let (status, stdout, stderr) = ended(&child.wait_with_output().expect("it ends"));
    assert_eq!(status, Some(0), "{stderr}");
    let json: Value = serde_json::from_str(&stdout).expect("fio's JSON");
    assert!(json["jobs"][0]["read"]["total_ios"].as_u64() > Some(0));
    kubectl_with(&["delete", "--cascade=foreground", "-f", "-"], &yaml);
    lab.wait_until_gone("iosonde/rendered");
}

#[test]
#[ignore = "needs a cluster"]
fn an_image_that_carries_the_agent_is_sent_nothing() {
    let lab = Lab::new("carries");
    for (target, words) in [
        ("sc://local-path", "--claim-size 50m"),
        ("emptydir://", "--claim-size 50m --pods 2"),
    ] {
        let line = format!(
            "fio --target {target} --image {AGENT_IMAGE} --namespace {} {words} {JOB}",
            lab.namespace
        );
        let mut command = lab.command(&line);
        // No agent that could be sent.
        command.env("IOSONDE_AGENT", "/bin/false");
        let (status, stdout, stderr) = run(command);
        assert_eq!(status, Some(0), "{stderr}");
        let json: Value = serde_json::from_str(&stdout).expect("fio's JSON");
        assert!(json["jobs"][0]["read"]["total_ios"].as_u64() > Some(0));
        lab.assert_clean();
    }
}

/// Two contexts of the same API server stand for two clusters.
#[test]
#[ignore = "needs a cluster"]
fn clusters_are_compared_by_their_contexts() {
    let lab = Lab::new("contexts");
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
        lab.namespace
    );
    let line = format!(
        "probe sc://local-path {place} --claim-size 64m --quick --runtime 0.3 --format json"
    );
    let (status, stdout, stderr) = run(lab.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    for words in [
        "\"sc://local-path@iosonde-kube\"",
        "\"sc://local-path@other\"",
        "\"context\":\"other\"",
    ] {
        let found = stdout.replace("\": \"", "\":\"").contains(words);
        assert!(found, "{words}: {stdout}");
    }
    lab.assert_clean();
    let (status, _, stderr) = run(lab.command(&format!(
        "fio --target emptydir:// {} {JOB}",
        place.replace(" -n ", " --namespace ")
    )));
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("names 2 clusters"), "{stderr}");
    let nodes = kubectl(&["get", "nodes", "-o", "name"]);
    assert!(!nodes.is_empty());
}
