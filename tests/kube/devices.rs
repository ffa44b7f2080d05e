//! Block devices of claims that others use, or that carry something.

use super::{IMAGE, Lab, kubectl, kubectl_with, run};
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
