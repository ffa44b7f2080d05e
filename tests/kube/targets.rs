//! Each kind of target.

use super::{IMAGE, JOB, TestNamespace, kubectl_with, on_terminal, run};
use iosonde_e2e::Scratch;

fn read_ios(stdout: &str) -> u64 {
    let json: serde_json::Value = serde_json::from_str(stdout).expect("fio's JSON");
    json["jobs"][0]["read"]["total_ios"]
        .as_u64()
        .expect("a count")
}

#[test]
#[ignore = "needs a cluster"]
fn job_runs_on_each_kind_of_volume() {
    let namespace = TestNamespace::new("kinds");
    let block = "--claim-size 300m --volume-mode block";
    for (target, words) in [
        ("sc://local-path", "--claim-size 100m"),
        ("sc://loop-ext4", block),
        ("ephemeral://loop-ext4", "--claim-size 100m"),
        ("emptydir://", "--claim-size 100m"),
        ("hostpath:///var/lib/kubelet", ""),
    ] {
        let (status, stdout, stderr) = run(namespace.fio(target, &format!("{words} {JOB}")));
        assert_eq!(status, Some(0), "{target}: {stderr}");
        assert!(read_ios(&stdout) > 0, "{target}");
        namespace.assert_clean();
    }
}

#[test]
#[ignore = "needs a cluster"]
fn terminal_user_confirms_pod_that_runs_as_root() {
    let namespace = TestNamespace::new("root");
    let words = "--volume-mode block --claim-size 100m --name=t --rw=randread --size=8m";
    let (status, stdout, stderr) = run(namespace.fio("sc://loop-ext4", words));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        stdout.contains("the pod runs as root, without capabilities: block devices belong to root"),
        "{stdout}"
    );
    for (keys, expected) in [("\r", 3), ("\x03", 130), ("y\r", 0)] {
        let scratch = Scratch::shared();
        let mut terminal = on_terminal(&scratch, &namespace.fio("sc://loop-ext4", words));
        let is_asked = terminal.until(|screen| screen.contains("Continue? [y/N]"));
        assert!(is_asked, "{terminal:?}");
        assert_eq!(namespace.ours(), "", "nothing is made before the answer");
        terminal.types(keys);
        assert_eq!(terminal.wait().code(), Some(expected), "{terminal:?}");
        namespace.assert_clean();
    }
    let scratch = Scratch::shared();
    let agreed = format!("{words} --run-as 0");
    let mut terminal = on_terminal(&scratch, &namespace.fio("sc://loop-ext4", &agreed));
    assert!(terminal.wait().success(), "{terminal:?}");
    assert!(!terminal.sent().contains("Continue?"), "{terminal:?}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn claim_has_requested_access_mode() {
    let namespace = TestNamespace::new("modes");
    // Only one pod at a time may use a claim in this mode.
    for target in ["sc://local-path", "ephemeral://local-path"] {
        let words = format!("--claim-size 50m --access-mode rwop --pod-label mode=rwop {JOB}");
        let (status, stdout, stderr) = run(namespace.fio(target, &words));
        assert_eq!(status, Some(0), "{target}: {stderr}");
        assert!(read_ios(&stdout) > 0, "{target}");
        namespace.assert_clean();
    }
    // The error of a provisioner without ReadWriteMany names the option.
    let words = format!("--claim-size 50m --access-mode rwx {JOB}");
    let (status, _, stderr) = run(namespace.fio("sc://loop-ext4", &words));
    assert_eq!(status, Some(9), "{stderr}");
    assert!(
        stderr.contains("ReadWriteMany") && stderr.contains("--access-mode"),
        "{stderr}"
    );
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn shared_claim_takes_pods_of_two_nodes() {
    let namespace = TestNamespace::new("rwx");
    let words = "--pods 2 --shared --claim-size 50m --access-mode rwx --placement spread";
    let (status, stdout, stderr) = run(namespace.fio("sc://csi-shared", &format!("{words} {JOB}")));
    assert_eq!(status, Some(0), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let nodes = json["iosonde"]["pods"]["nodes"].as_array().expect("nodes");
    assert_eq!(nodes.len(), 2, "{nodes:?}");
    namespace.assert_clean();
    namespace.wait_until_volumes_are_gone();
    // The driver refuses the mode in a class of one node.
    let (status, _, stderr) = run(namespace.fio("sc://csi-loop", &format!("{words} {JOB}")));
    assert_eq!(status, Some(9), "{stderr}");
    assert!(
        stderr.contains("is not supported by this class"),
        "{stderr}"
    );
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn probe_of_class_has_all_figures() {
    let namespace = TestNamespace::new("probe");
    let line = format!(
        "probe sc://loop-ext4 --image {IMAGE} -n {} --claim-size 300m --quick --runtime 0.5 \
         --format json",
        namespace.name
    );
    let (status, stdout, stderr) = run(namespace.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let text = json.to_string();
    assert!(
        text.contains("\"sc://loop-ext4\""),
        "the target is named as it was given"
    );
    assert!(
        ["n1", "n2"]
            .iter()
            .any(|node| text.contains(&format!("\"node\":\"{node}\"")))
    );
    assert!(text.contains("\"provisioner\":\"example.com/loop\""));
    assert!(text.contains("\"node_os\":\""), "the system of the node");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn existing_claim_is_kept_and_other_files_untouched() {
    let namespace = TestNamespace::new("claim");
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: kept}\n\
        spec: {accessModes: [ReadWriteOnce], storageClassName: local-path, resources: {requests: \
        {storage: 100Mi}}}\n";
    kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], claim);
    let job = format!("{JOB} --filename=../escaped --directory=/elsewhere");
    let (status, stdout, stderr) = run(namespace.fio("pvc://kept", &job));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(read_ios(&stdout) > 0);
    assert_eq!(
        namespace.kubectl(&["get", "pvc", "-o", "name"]),
        "persistentvolumeclaim/kept"
    );
    namespace.assert_clean();
    let directory = |node| super::cluster().join(format!("run/{node}/kubelet/local-path"));
    let volumes = ["n1", "n2"]
        .into_iter()
        .filter_map(|node| std::fs::read_dir(directory(node)).ok());
    let suffix = format!("{}_kept", namespace.name);
    let ours = volumes
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().ends_with(&suffix));
    let left = std::fs::read_dir(ours.expect("the volume")).expect("a directory");
    assert_eq!(
        left.count(),
        0,
        "our files are gone, and none was made elsewhere"
    );
}

#[test]
#[ignore = "needs a cluster"]
fn existing_block_device_with_signature_is_refused() {
    let namespace = TestNamespace::new("raw");
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: raw}\n\
                 spec: {accessModes: [ReadWriteOnce], \
        volumeMode: Block, storageClassName: loop-ext4, resources: {requests: {storage: 300Mi}}}\n";
    kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], claim);
    let (status, _, stderr) = run(namespace.fio("pvc://raw", JOB));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("--volume-mode block"), "{stderr}");
    let words = "--volume-mode block --name=t --rw=write --bs=64k --size=16m --output-format=json";
    let (status, stdout, stderr) = run(namespace.fio("pvc://raw", words));
    assert_eq!(status, Some(0), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("fio's JSON");
    assert_eq!(json["jobs"][0]["write"]["io_bytes"], 16 << 20);
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: theirs}}\nspec:\n  restartPolicy: Never\n  \
         volumes: [{{name: raw, persistentVolumeClaim: {{claimName: raw}}}}]\n  containers:\n  - \
         name: c\n    image: {IMAGE}\n    command: [sh, -c, 'mkswap /dev/raw && sleep 5']\n    \
         volumeDevices: [{{name: raw, devicePath: /dev/raw}}]\n"
    );
    kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], &pod);
    let (status, _, stderr) = run(namespace.fio("pvc://raw", words));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("the pod theirs uses"), "{stderr}");
    let over = "--for=jsonpath={.status.phase}=Succeeded";
    namespace.kubectl(&["wait", over, "pod/theirs", "--timeout=60s"]);
    let (status, _, stderr) = run(namespace.fio("pvc://raw", words));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("carries swap"), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn pods_satisfy_restricted_standard_and_documented_role() {
    let namespace = TestNamespace::new("least");
    let level = "pod-security.kubernetes.io/enforce=restricted";
    super::kubectl(&["label", "namespace", &namespace.name, level]);
    let docs = include_str!("../../docs/kubernetes.md");
    let mut roles = docs
        .split("```yaml")
        .filter_map(|rest| rest.split("```").next());
    let role = roles.find(|role| role.contains("metadata: {name: iosonde}"));
    kubectl_with(
        &["-n", &namespace.name, "apply", "-f", "-"],
        role.expect("a role in the docs"),
    );
    namespace.kubectl(&[
        "create",
        "rolebinding",
        "least",
        "--role=iosonde",
        "--serviceaccount=x:least",
    ]);
    let least = super::acting_as("system:serviceaccount:x:least");
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("least.kubeconfig");
    std::fs::write(&path, least).expect("a file");
    let words = format!("--kubeconfig {} --claim-size 100m {JOB}", path.display());
    let (status, stdout, stderr) = run(namespace.fio("sc://local-path", &words));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(read_ios(&stdout) > 0);
    namespace.assert_clean();
    // A role that lacks one verb: no object is created.
    let fewer = role
        .expect("a role")
        .replacen("verbs: [create, get]", "verbs: [get]", 1);
    kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], &fewer);
    let (status, _, stderr) = run(namespace.fio("sc://local-path", &words));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("create pods/exec"), "{stderr}");
    namespace.assert_clean();
    // The role that the error prints is sufficient.
    let printed = super::printed_role(&stderr);
    kubectl_with(&["apply", "-f", "-"], &printed);
    let (status, _, stderr) = run(namespace.fio("sc://local-path", &words));
    assert_eq!(status, Some(0), "{printed}{stderr}");
    namespace.assert_clean();
}
