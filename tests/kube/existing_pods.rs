//! Runs in pods of the user, which stay as they were, and logs that are fetched from pods.

use super::{
    CLUSTER_TIMEOUT, ENDLESS, IMAGE, JOB, TestNamespace, acting_as, kubectl_with, printed_role,
    run, signal,
};
use rustix::process::Signal;
use serde_json::Value;
use std::time::{Duration, Instant};

/// A StatefulSet like that of the article: a claim for each pod, and a job file in a config map.
fn apply_stateful_set(namespace: &TestNamespace, replicas: usize) {
    let yaml = format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: fio-job-config, namespace: {name}}}
data: {{fio.job: \"[a]\"}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: fio, namespace: {name}}}
spec:
  serviceName: fio
  replicas: {replicas}
  podManagementPolicy: Parallel
  selector: {{matchLabels: {{app: fio}}}}
  template:
    metadata: {{labels: {{app: fio}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: fio
        image: {IMAGE}
        command: [sh, -c, 'echo theirs > /scratch/theirs; while :; do sleep 1; done']
        volumeMounts:
        - {{name: data, mountPath: /scratch}}
        - {{name: jobs, mountPath: /configs}}
      volumes:
      - {{name: jobs, configMap: {{name: fio-job-config}}}}
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec:
      accessModes: [ReadWriteOnce]
      storageClassName: local-path
      resources: {{requests: {{storage: 50Mi}}}}
",
        name = namespace.name
    );
    kubectl_with(&["apply", "-f", "-"], &yaml);
    namespace.kubectl(&["rollout", "status", "statefulset/fio", "--timeout=90s"]);
}

/// Files and processes of iosonde in a pod, and whether the user's file is there.
fn assert_only_theirs(namespace: &TestNamespace, pod: &str) {
    let script = "ls -A /scratch; ls -Ad /tmp/.iosonde* /scratch/.iosonde* 2> /dev/null; \
                  grep -l 'foreign-containe[r]' /proc/[0-9]*/cmdline 2> /dev/null; true";
    let listed = namespace.kubectl(&["exec", pod, "--", "sh", "-c", script]);
    assert_eq!(listed.trim(), "theirs", "{pod}");
}

#[test]
#[ignore = "needs a cluster"]
fn standing_pods_run_one_job_after_the_other() {
    let namespace = TestNamespace::new("standing");
    apply_stateful_set(&namespace, 2);
    for direction in ["randread", "randwrite"] {
        let job = JOB.replace("randread", direction);
        let line = format!("fio --in pods/app=fio --namespace {} {job}", namespace.name);
        let (status, stdout, stderr) = run(namespace.command(&line));
        assert_eq!(status, Some(0), "{stderr}");
        let json: Value = serde_json::from_str(&stdout).expect("fio's JSON");
        let each = json["iosonde"]["pods"]["each"].as_array().expect("pods");
        let names: Vec<_> = each.iter().map(|pod| pod["name"].as_str()).collect();
        assert_eq!(names, [Some("fio-0"), Some("fio-1")], "{stdout}");
        for pod in ["fio-0", "fio-1"] {
            assert_only_theirs(&namespace, pod);
        }
    }
    let line = format!(
        "fio --in pods/app=none --namespace {} {JOB}",
        namespace.name
    );
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("has the labels app=none"), "{stderr}");
    let line = format!(
        "fio --in pods/app=fio --claim-size 1g --namespace {} {JOB}",
        namespace.name
    );
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("--claim-size has no effect"), "{stderr}");
    assert_role_is_printed(&namespace);
}

/// A user without rights gets a role, before anything is written to the pods.
fn assert_role_is_printed(namespace: &TestNamespace) {
    let scratch = tempfile::tempdir().expect("a directory");
    let kubeconfig = scratch.path().join("user.kubeconfig");
    std::fs::write(&kubeconfig, acting_as(&namespace.name)).expect("a kubeconfig");
    let line = format!(
        "fio --in pods/app=fio --kubeconfig {} --namespace {} {JOB}",
        kubeconfig.display(),
        namespace.name
    );
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("list pods, create pods/exec"), "{stderr}");
    kubectl_with(&["apply", "-f", "-"], &printed_role(&stderr));
    let user = format!("--user={}", namespace.name);
    let role = "--role=iosonde-pods";
    namespace.kubectl(&["create", "rolebinding", "iosonde-pods", role, &user]);
    let (status, _, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    namespace.kubectl(&["delete", "rolebinding", "iosonde-pods"]);
    assert_named_pods_suffice(namespace, &line);
}

/// A user may run commands in the selected pods only.
fn assert_named_pods_suffice(namespace: &TestNamespace, line: &str) {
    let names = namespace.kubectl(&[
        "get",
        "pods",
        "-l",
        "app=fio",
        "-o",
        "jsonpath={.items[*].metadata.name}",
    ]);
    let role = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: named}}\nrules:\n\
         - {{apiGroups: [\"\"], resources: [pods], verbs: [list]}}\n\
         - {{apiGroups: [\"\"], resources: [pods/exec], resourceNames: [{}], verbs: \
         [create, get]}}\n",
        names.trim().replace(' ', ", ")
    );
    kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], &role);
    let user = format!("--user={}", namespace.name);
    namespace.kubectl(&["create", "rolebinding", "named", "--role=named", &user]);
    let (status, _, stderr) = run(namespace.command(line));
    assert_eq!(status, Some(0), "{stderr}");
}

#[test]
#[ignore = "needs a cluster"]
fn interrupted_client_leaves_no_files_in_standing_pods() {
    let namespace = TestNamespace::new("standkill");
    apply_stateful_set(&namespace, 1);
    let line = format!(
        "fio --in pods/app=fio --namespace {} {ENDLESS}",
        namespace.name
    );
    let mut child = namespace.command(&line).spawn().expect("iosonde");
    let started = Instant::now();
    let words = ["exec", "fio-0", "--", "sh", "-c", "ls -A /scratch"];
    while !namespace.kubectl(&words).contains(".iosonde-") {
        assert!(started.elapsed() < CLUSTER_TIMEOUT, "no agent runs");
        std::thread::sleep(Duration::from_millis(500));
    }
    // The first interrupt ends the run, and everything is removed.
    signal(&child, Signal::INT);
    child.wait().expect("an exit status");
    assert_only_theirs(&namespace, "fio-0");
}

#[test]
#[ignore = "needs a cluster"]
fn logs_of_jobs_are_fetched_from_each_pod() {
    let namespace = TestNamespace::new("logs");
    let scratch = tempfile::tempdir().expect("a directory");
    let logs = scratch.path().display().to_string();
    let words = format!("--claim-size 30m --pods 2 --write_bw_log=b --aux-path={logs} {JOB}");
    let (status, _, stderr) = run(namespace.fio("sc://local-path", &words));
    assert_eq!(status, Some(0), "{stderr}");
    let directories = std::fs::read_dir(scratch.path()).expect("logs");
    let mut count = 0;
    for directory in directories {
        let path = directory.expect("a directory").path().join("b_bw.1.log");
        let text = std::fs::read_to_string(&path).expect("a log");
        assert!(text.lines().count() > 10, "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 2, "a directory for each pod");
    namespace.assert_clean();
}
