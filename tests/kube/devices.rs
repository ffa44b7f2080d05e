//! Block devices of claims that are in use or carry a signature.

use super::{IMAGE, TestNamespace, kubectl, kubectl_with, run};
use iosonde_e2e::Scratch;
use iosonde_e2e::device::{Loop, tool};
use rustix::fs::{Mode, OFlags};

/// Writes 16 MiB to the device of a claim.
const WRITE: &str =
    "--volume-mode block --name=t --rw=write --bs=64k --size=16m --output-format=json";

fn written_bytes(stdout: &str) -> u64 {
    let json: serde_json::Value = serde_json::from_str(stdout).expect("fio's JSON");
    json["jobs"][0]["write"]["io_bytes"]
        .as_u64()
        .expect("a count")
}

/// Creates a claim with a blank device.
fn claim(namespace: &TestNamespace, name: &str) {
    let claim = format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\n\
         spec: {{accessModes: [ReadWriteOnce], volumeMode: Block, storageClassName: loop-ext4, \
         resources: {{requests: {{storage: 300Mi}}}}}}\n"
    );
    kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], &claim);
}

/// Path of a claim's device once a pod has used the claim. All nodes share this machine's devices.
fn device_of(namespace: &TestNamespace, claim: &str) -> String {
    let volume = namespace.kubectl(&["get", "pvc", claim, "-o", "jsonpath={.spec.volumeName}"]);
    kubectl(&["get", "pv", &volume, "-o", "jsonpath={.spec.local.path}"])
}

#[test]
#[ignore = "needs a cluster"]
fn block_claim_of_running_pod_is_refused() {
    let namespace = TestNamespace::new("genericephemeral");
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: theirs}}\n\
         spec:\n  terminationGracePeriodSeconds: 0\n  volumes:\n  - name: raw\n    ephemeral: \
         {{volumeClaimTemplate: {{spec: {{accessModes: [ReadWriteOnce], \
         volumeMode: Block, storageClassName: loop-ext4, resources: {{requests: {{storage: \
         100Mi}}}}}}}}}}\n  containers:\n  - name: c\n    image: {IMAGE}\n    command: [sleep, \
         '600']\n    volumeDevices: [{{name: raw, devicePath: /dev/raw}}]\n"
    );
    kubectl_with(&["-n", &namespace.name, "apply", "-f", "-"], &pod);
    namespace.kubectl(&[
        "wait",
        "--for=condition=Ready",
        "pod/theirs",
        "--timeout=90s",
    ]);
    let (status, _, stderr) = run(namespace.fio("pvc://theirs-raw", WRITE));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("the pod theirs uses"), "{stderr}");
    assert_eq!(
        namespace.kubectl(&["get", "pods", "-o", "name"]),
        "pod/theirs"
    );
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn block_device_in_use_on_node_is_refused_in_pod() {
    let namespace = TestNamespace::new("inuse");
    claim(&namespace, "raw");
    let (status, stdout, stderr) = run(namespace.fio("pvc://raw", WRITE));
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(written_bytes(&stdout), 16 << 20);
    // Like a mount on the node: the cluster's API shows no such use.
    let exclusively = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    let device = device_of(&namespace, "raw");
    let held = rustix::fs::open(device.as_str(), exclusively, Mode::empty()).expect("the device");
    let agreed = format!("{WRITE} --allow-overwrite=pvc://raw");
    for words in [WRITE, agreed.as_str()] {
        let (status, _, stderr) = run(namespace.fio("pvc://raw", words));
        assert_eq!(status, Some(3), "{stderr}");
        assert!(
            stderr.contains("pvc://raw: this block device is in use"),
            "{stderr}"
        );
        assert!(!stderr.contains("--allow"), "{stderr}");
        namespace.assert_clean();
    }
    drop(held);
    let (status, _, stderr) = run(namespace.fio("pvc://raw", WRITE));
    assert_eq!(status, Some(0), "{stderr}");
    namespace.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn block_device_with_signature_is_written_with_consent() {
    let namespace = TestNamespace::new("agreed");
    claim(&namespace, "raw");
    let (status, _, stderr) = run(namespace.fio("pvc://raw", WRITE));
    assert_eq!(status, Some(0), "{stderr}");
    let device = device_of(&namespace, "raw");
    let made = std::process::Command::new("/usr/sbin/mkswap")
        .arg(&device)
        .output();
    assert!(made.expect("mkswap starts").status.success());
    let (status, _, stderr) = run(namespace.fio("pvc://raw", WRITE));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("carries swap"), "{stderr}");
    assert!(stderr.contains("--allow-overwrite=pvc://raw"), "{stderr}");
    let agreed = format!("{WRITE} --allow-overwrite=pvc://raw");
    let (status, stdout, stderr) = run(namespace.fio("pvc://raw", &agreed));
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(written_bytes(&stdout), 16 << 20);
    namespace.assert_clean();
}

/// A volume of a class without provisioner, on a loop device; deleted on drop.
struct ManualVolume {
    name: String,
    device: Loop,
}

impl ManualVolume {
    fn new(namespace: &TestNamespace, device: Loop) -> ManualVolume {
        let name = namespace.name.clone();
        let class = format!(
            "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {name}}}\n\
             provisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n"
        );
        kubectl_with(&["apply", "-f", "-"], &class);
        let volume = ManualVolume { name, device };
        volume.make();
        volume
    }

    /// Creates the volume anew: one whose claim was deleted is not bound again.
    fn make(&self) {
        let (name, device) = (&self.name, self.device.path().display());
        kubectl(&["delete", "pv", name, "--ignore-not-found"]);
        let volume = format!(
            "apiVersion: v1\nkind: PersistentVolume\nmetadata:\n  name: {name}\n  annotations: \
             {{pv.kubernetes.io/provisioned-by: restored}}\nspec:\n  accessModes: \
             [ReadWriteOnce]\n  volumeMode: Block\n  storageClassName: {name}\n  \
             capacity: {{storage: 32Mi}}\n  persistentVolumeReclaimPolicy: Retain\n  local: \
             {{path: {device}}}\n  nodeAffinity: {{required: {{nodeSelectorTerms: \
             [{{matchExpressions: [{{key: kubernetes.io/hostname, operator: Exists}}]}}]}}}}\n"
        );
        kubectl_with(&["apply", "-f", "-"], &volume);
    }
}

impl Drop for ManualVolume {
    fn drop(&mut self) {
        for kind in ["pv", "storageclass"] {
            kubectl(&[
                "delete",
                kind,
                &self.name,
                "--ignore-not-found",
                "--wait=false",
            ]);
        }
    }
}

/// A claim can be bound to an existing volume, with the data of its last user.
#[test]
#[ignore = "needs a cluster"]
fn manual_volume_of_class_is_written_with_consent() {
    let namespace = TestNamespace::new("byhand");
    let scratch = Scratch::shared();
    let file = scratch.out().join("disk");
    let volume = ManualVolume::new(&namespace, Loop::with_file(&file, 32 << 20));
    let device = volume.device.path().to_str().expect("a path");
    tool(&["mkswap", device]);
    let before = std::fs::read(device).expect("the device");
    let target = format!("sc://{}", volume.name);
    let words = format!("--claim-size 32m {WRITE}");
    let (status, _, stderr) = run(namespace.fio(&target, &words));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("carries swap"), "{stderr}");
    let consent = format!("--allow-overwrite={target}");
    assert!(stderr.contains(&consent), "{stderr}");
    assert!(std::fs::read(device).expect("the device") == before);
    namespace.assert_clean();
    volume.make();
    let (status, stdout, stderr) = run(namespace.fio(&target, &format!("{words} {consent}")));
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(written_bytes(&stdout), 16 << 20);
    namespace.assert_clean();
}

/// The first workload writes a swap signature, which the second finds.
const MARKING_SUITE: &str = r#"
[[workload]]
name = "mark"
options = { rw = "write", bs = "4k", size = "1m", buffer_pattern = '"SPACE2SWAP"' }
[[workload]]
name = "next"
options = { rw = "write", bs = "4k", size = "1m" }
"#;

/// A provisioned volume is new: no signature on it requires consent.
#[test]
#[ignore = "needs a cluster"]
fn provisioned_volume_is_written_without_consent() {
    let namespace = TestNamespace::new("provisioned");
    claim(&namespace, "raw");
    let scratch = Scratch::shared();
    let suite = scratch.out().join("suite.toml");
    std::fs::write(&suite, MARKING_SUITE).expect("a suite");
    let on = |target: &str| {
        run(namespace.command(&format!(
            "run {} {target} --image {IMAGE} -n {} --volume-mode block --claim-size 300m",
            suite.display(),
            namespace.name
        )))
    };
    let (status, _, stderr) = on("sc://loop-ext4");
    assert_eq!(status, Some(0), "{stderr}");
    let (status, _, stderr) = on("pvc://raw");
    assert_ne!(status, Some(0), "{stderr}");
    assert!(stderr.contains("carries swap"), "{stderr}");
    namespace.assert_clean();
}
