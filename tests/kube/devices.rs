//! Block devices of claims that others use, or that carry something.

use super::{IMAGE, Lab, kubectl, kubectl_with, run};
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

/// A claim, and nothing on its device.
fn claim(lab: &Lab, name: &str) {
    let claim = format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec: {{accessModes: [ReadWriteOnce], \
         volumeMode: Block, storageClassName: loop-ext4, resources: {{requests: {{storage: 300Mi}}}}}}\n"
    );
    kubectl_with(&["-n", &lab.namespace, "apply", "-f", "-"], &claim);
}

/// The device on its node, once a pod has used the claim. All nodes have the devices of this machine.
fn device_of(lab: &Lab, claim: &str) -> String {
    let volume = lab.kubectl(&["get", "pvc", claim, "-o", "jsonpath={.spec.volumeName}"]);
    kubectl(&["get", "pv", &volume, "-o", "jsonpath={.spec.local.path}"])
}

#[test]
#[ignore = "needs a cluster"]
fn block_claim_of_an_ephemeral_volume_is_refused_while_its_pod_runs() {
    let lab = Lab::new("genericephemeral");
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: theirs}}\nspec:\n  terminationGracePeriodSeconds: 0\n  \
         volumes:\n  - name: raw\n    ephemeral: {{volumeClaimTemplate: {{spec: {{accessModes: [ReadWriteOnce], \
         volumeMode: Block, storageClassName: loop-ext4, resources: {{requests: {{storage: 100Mi}}}}}}}}}}\n  \
         containers:\n  - name: c\n    image: {IMAGE}\n    command: [sleep, '600']\n    \
         volumeDevices: [{{name: raw, devicePath: /dev/raw}}]\n"
    );
    kubectl_with(&["-n", &lab.namespace, "apply", "-f", "-"], &pod);
    lab.kubectl(&[
        "wait",
        "--for=condition=Ready",
        "pod/theirs",
        "--timeout=90s",
    ]);
    let (status, _, stderr) = run(lab.fio("pvc://theirs-raw", WRITE));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("the pod theirs uses"), "{stderr}");
    assert_eq!(lab.kubectl(&["get", "pods", "-o", "name"]), "pod/theirs");
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn block_device_that_its_node_uses_is_refused_by_a_look_in_the_pod() {
    let lab = Lab::new("inuse");
    claim(&lab, "raw");
    let (status, stdout, stderr) = run(lab.fio("pvc://raw", WRITE));
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(written_bytes(&stdout), 16 << 20);
    // As a mount on the node does, of which the cluster knows nothing.
    let exclusively = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    let device = device_of(&lab, "raw");
    let held = rustix::fs::open(device.as_str(), exclusively, Mode::empty()).expect("the device");
    let agreed = format!("{WRITE} --allow-overwrite=pvc://raw");
    for words in [WRITE, agreed.as_str()] {
        let (status, _, stderr) = run(lab.fio("pvc://raw", words));
        assert_eq!(status, Some(3), "{stderr}");
        assert!(
            stderr.contains("pvc://raw: this block device is in use"),
            "{stderr}"
        );
        assert!(!stderr.contains("--allow"), "{stderr}");
        lab.assert_clean();
    }
    drop(held);
    let (status, _, stderr) = run(lab.fio("pvc://raw", WRITE));
    assert_eq!(status, Some(0), "{stderr}");
    lab.assert_clean();
}

#[test]
#[ignore = "needs a cluster"]
fn block_device_with_a_signature_is_written_by_consent_to_its_claim() {
    let lab = Lab::new("agreed");
    claim(&lab, "raw");
    let (status, _, stderr) = run(lab.fio("pvc://raw", WRITE));
    assert_eq!(status, Some(0), "{stderr}");
    let device = device_of(&lab, "raw");
    let made = std::process::Command::new("/usr/sbin/mkswap")
        .arg(&device)
        .output();
    assert!(made.expect("mkswap starts").status.success());
    let (status, _, stderr) = run(lab.fio("pvc://raw", WRITE));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("carries swap"), "{stderr}");
    assert!(stderr.contains("--allow-overwrite=pvc://raw"), "{stderr}");
    let agreed = format!("{WRITE} --allow-overwrite=pvc://raw");
    let (status, stdout, stderr) = run(lab.fio("pvc://raw", &agreed));
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(written_bytes(&stdout), 16 << 20);
    lab.assert_clean();
}

/// A volume of a class without a provisioner, on a device of this machine; gone when it is dropped.
struct MadeByHand {
    name: String,
    device: Loop,
}

impl MadeByHand {
    fn new(lab: &Lab, device: Loop) -> MadeByHand {
        let name = lab.namespace.clone();
        let class = format!(
            "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {name}}}\n\
             provisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n"
        );
        kubectl_with(&["apply", "-f", "-"], &class);
        let volume = MadeByHand { name, device };
        volume.make();
        volume
    }

    /// A claim that was deleted leaves a volume that no other one gets.
    fn make(&self) {
        let (name, device) = (&self.name, self.device.path().display());
        kubectl(&["delete", "pv", name, "--ignore-not-found"]);
        let volume = format!(
            "apiVersion: v1\nkind: PersistentVolume\nmetadata:\n  name: {name}\n  annotations: {{pv.kubernetes.io/provisioned-by: \
             restored}}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeMode: Block\n  storageClassName: {name}\n  \
             capacity: {{storage: 32Mi}}\n  persistentVolumeReclaimPolicy: Retain\n  local: {{path: {device}}}\n  nodeAffinity: \
             {{required: {{nodeSelectorTerms: [{{matchExpressions: [{{key: kubernetes.io/hostname, operator: Exists}}]}}]}}}}\n"
        );
        kubectl_with(&["apply", "-f", "-"], &volume);
    }
}

impl Drop for MadeByHand {
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

/// A claim of a class may get a volume that was there before, with what somebody has on it.
#[test]
#[ignore = "needs a cluster"]
fn volume_of_a_class_that_was_made_by_hand_is_written_by_consent() {
    let lab = Lab::new("byhand");
    let scratch = Scratch::shared();
    let file = scratch.out().join("disk");
    let volume = MadeByHand::new(&lab, Loop::with_file(&file, 32 << 20));
    let device = volume.device.path().to_str().expect("a path");
    tool(&["mkswap", device]);
    let before = std::fs::read(device).expect("the device");
    let target = format!("sc://{}", volume.name);
    let words = format!("--claim-size 32m {WRITE}");
    let (status, _, stderr) = run(lab.fio(&target, &words));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("carries swap"), "{stderr}");
    let consent = format!("--allow-overwrite={target}");
    assert!(stderr.contains(&consent), "{stderr}");
    assert!(std::fs::read(device).expect("the device") == before);
    lab.assert_clean();
    volume.make();
    let (status, stdout, stderr) = run(lab.fio(&target, &format!("{words} {consent}")));
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(written_bytes(&stdout), 16 << 20);
    lab.assert_clean();
}

/// The first workload leaves what looks like swap space to the second.
const MARKING_SUITE: &str = r#"
[[workload]]
name = "mark"
options = { rw = "write", bs = "4k", size = "1m", buffer_pattern = '"SPACE2SWAP"' }
[[workload]]
name = "next"
options = { rw = "write", bs = "4k", size = "1m" }
"#;

/// What a provisioner has made is new, and is written whatever is on it.
#[test]
#[ignore = "needs a cluster"]
fn volume_that_a_provisioner_has_made_is_written_unasked() {
    let lab = Lab::new("provisioned");
    claim(&lab, "raw");
    let scratch = Scratch::shared();
    let suite = scratch.out().join("suite.toml");
    std::fs::write(&suite, MARKING_SUITE).expect("a suite");
    let on = |target: &str| {
        run(lab.command(&format!(
            "run {} {target} --image {IMAGE} -n {} --volume-mode block --claim-size 300m",
            suite.display(),
            lab.namespace
        )))
    };
    let (status, _, stderr) = on("sc://loop-ext4");
    assert_eq!(status, Some(0), "{stderr}");
    let (status, _, stderr) = on("pvc://raw");
    assert_ne!(status, Some(0), "{stderr}");
    assert!(stderr.contains("carries swap"), "{stderr}");
    lab.assert_clean();
}
