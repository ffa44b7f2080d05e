//! Objects of a life cycle run: the Job that owns all others, and the claim and pod of each volume.
//!
//! The Job has a short deadline, which the client extends until the run ends. If the client is
//! killed, the cluster ends the Job, then removes it with all that it owns.

use super::observed_change::WRITER;
use crate::manifest::{CONTAINER, DEVICE, MOUNT, RunSpec};
use crate::options::ClusterOptions;
use iosonde_result::run_error::RunError;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    Container, PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodSpec, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// Seconds from one extension of the Job's deadline to the end of the Job.
pub(super) const LEASE_S: i64 = 180;
/// Bytes of the first write.
const BLOCK_BYTES: u32 = 4096;
/// Command that waits until the pod is deleted. A shell ends its wait for a trapped signal.
const WAIT_SCRIPT: &str = "trap 'exit 0' TERM; sleep 1000000 & wait";

/// Returns the name of a volume's pod. Numbers count from 0 in a run.
pub(crate) fn pod_name(spec: &RunSpec<'_>, number: u32) -> String {
    format!("{}-{number}", spec.name())
}

/// Returns the name of a volume's claim, by which `doctor` recognises lost volumes.
pub(crate) fn claim_name(spec: &RunSpec<'_>, number: u32) -> String {
    format!("{}-data", pod_name(spec, number))
}

/// Returns the Job that owns all objects. Its pod has no volume and waits.
///
/// # Errors
/// If the user's patch does not fit a pod.
pub(super) fn owner_job(spec: &RunSpec<'_>) -> Result<Job, RunError> {
    let mut job = spec.job()?;
    let job_spec = job.spec.get_or_insert_default();
    job_spec.active_deadline_seconds = Some(LEASE_S);
    let pod = job_spec.template.spec.get_or_insert_default();
    for container in &mut pod.containers {
        wait_for_deletion(container);
    }
    Ok(job)
}

/// Returns the reference of an object to the Job that owns it.
pub(crate) fn owner_reference(job: &Job) -> OwnerReference {
    OwnerReference {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
        name: job.metadata.name.clone().unwrap_or_default(),
        uid: job.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    }
}

/// Returns the claim of a volume. `None` if the target is no class.
pub(crate) fn volume_claim(
    spec: &RunSpec<'_>,
    number: u32,
    owner: &OwnerReference,
) -> Option<PersistentVolumeClaim> {
    // A patch is for pods. With one, the cluster would make the claim of a run.
    let options = ClusterOptions {
        pod_patch: None,
        ..spec.options.clone()
    };
    let plain = RunSpec {
        options: &options,
        ..*spec
    };
    let mut claim = plain.only_claim(Some(&owner.uid))?;
    claim.metadata = metadata(spec, claim_name(spec, number), owner);
    Some(claim)
}

/// Returns the pod of a volume. Its init container writes one block and reports the duration, and
/// its container then keeps the volume mounted.
///
/// # Errors
/// If the user's patch does not fit a pod.
pub(super) fn volume_pod(
    spec: &RunSpec<'_>,
    number: u32,
    owner: &OwnerReference,
) -> Result<Pod, RunError> {
    let template = spec.template()?;
    let mut pod = template.spec.unwrap_or_default();
    use_claim(&mut pod, claim_name(spec, number));
    let mut writers = Vec::new();
    for container in &mut pod.containers {
        if container.name == CONTAINER {
            let mut writer = container.clone();
            writer.name = WRITER.to_owned();
            writer.command = Some(shell(&write_script(spec)));
            writers.push(writer);
            wait_for_deletion(container);
        }
    }
    pod.init_containers.get_or_insert_default().extend(writers);
    let of_template = template.metadata.unwrap_or_default();
    let mut metadata = metadata(spec, pod_name(spec, number), owner);
    let labels = metadata.labels.get_or_insert_default();
    for (key, value) in of_template.labels.unwrap_or_default() {
        labels.entry(key).or_insert(value);
    }
    metadata.annotations = of_template.annotations;
    Ok(Pod {
        metadata,
        spec: Some(pod),
        status: None,
    })
}

/// Returns the metadata of an object that belongs to the Job.
pub(crate) fn metadata(spec: &RunSpec<'_>, name: String, owner: &OwnerReference) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        owner_references: Some(vec![owner.clone()]),
        ..spec.metadata()
    }
}

/// Replaces the volume of the template by a claim.
pub(crate) fn use_claim(pod: &mut PodSpec, claim_name: String) {
    let volumes = pod.volumes.get_or_insert_default();
    volumes.retain(|volume| volume.name != "data");
    volumes.push(Volume {
        name: "data".to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name,
            read_only: None,
        }),
        ..Volume::default()
    });
}

/// Has a container wait until its pod is deleted.
pub(crate) fn wait_for_deletion(container: &mut Container) {
    container.command = Some(shell(WAIT_SCRIPT));
}

/// Returns the command of a container that runs a script.
pub(crate) fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).into()
}

/// Returns the script of the first write. Its output becomes the message of the container. The last
/// duration in it is that of the write.
///
/// A block device gets its own first block again: a claim may be bound to a volume that existed
/// before, whose contents belong to others.
fn write_script(spec: &RunSpec<'_>) -> String {
    let copy = |from: &str, to: &str, options: &str| {
        format!("LC_ALL=C dd if={from} of={to} bs={BLOCK_BYTES} count=1{options} 2>&1")
    };
    let (write, remove) = match spec.is_block() {
        true => {
            let block = "\"$TMPDIR/block\"";
            let read = copy(DEVICE, block, "");
            let write = copy(block, DEVICE, " conv=fsync");
            (format!("{read} && {write}"), String::new())
        }
        false => {
            let path = spec.scratch(None);
            debug_assert!(path.starts_with(MOUNT), "{path}");
            let write = copy("/dev/zero", &path, " conv=fsync");
            (write, format!("rm -f {path}; "))
        }
    };
    // The `dd` of some images prints no duration. The shell's clock includes the start of `dd`.
    format!(
        "begun=$EPOCHREALTIME; out=$({write}); rc=$?; ended=$EPOCHREALTIME; \
         echo \"$out\" > /dev/termination-log; \
         [ -z \"$begun\" ] || echo \"clock $begun $ended\" >> /dev/termination-log; \
         {remove}exit $rc"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::VolumeMode;
    use crate::sample_spec::{self, owner};

    fn with_spec(target: &str, check: impl FnOnce(&RunSpec<'_>)) {
        let options = ClusterOptions::new(target.parse().unwrap());
        sample_spec::with_spec(&options, check);
    }

    #[test]
    fn volume_objects_belong_to_the_job_and_share_the_claim_name() {
        with_spec("sc://fast", |spec| {
            let claim = volume_claim(spec, 7, &owner()).unwrap();
            let name = "iosonde-3f2a9c00-7-data";
            assert_eq!(claim.metadata.name.as_deref(), Some(name));
            let pod = volume_pod(spec, 7, &owner()).unwrap();
            for metadata in [&claim.metadata, &pod.metadata] {
                let owners = metadata.owner_references.as_ref().unwrap();
                assert_eq!(owners[0].uid, "u-1");
                assert_eq!(metadata.labels.as_ref().unwrap()["iosonde/run"], "3f2a9c00");
            }
            let pod = pod.spec.unwrap();
            let volumes = pod.volumes.unwrap();
            let claims: Vec<_> = volumes
                .iter()
                .filter_map(|volume| volume.persistent_volume_claim.as_ref())
                .collect();
            assert_eq!(claims.len(), 1);
            assert_eq!(claims[0].claim_name, name);
            let writer = &pod.init_containers.unwrap()[0];
            let script = &writer.command.as_ref().unwrap()[2];
            let write = "of=/data/.iosonde-3f2a9c00 bs=4096 count=1 conv=fsync";
            assert!(script.contains(write), "{script}");
            assert!(script.contains("rm -f /data/.iosonde-3f2a9c00"), "{script}");
        });
    }

    #[test]
    fn block_device_keeps_the_contents_of_its_first_block() {
        let mut options = ClusterOptions::new("sc://fast".parse().unwrap());
        options.volume_mode = VolumeMode::Block;
        sample_spec::with_spec(&options, |spec| {
            let script = write_script(spec);
            assert!(!script.contains("/dev/zero"), "{script}");
            let write = format!("if=\"$TMPDIR/block\" of={DEVICE} bs=4096 count=1 conv=fsync");
            assert!(script.contains(&write), "{script}");
        });
    }

    #[test]
    fn job_of_a_client_that_is_gone_ends_by_its_deadline() {
        with_spec("emptydir://", |spec| {
            let job = owner_job(spec).unwrap().spec.unwrap();
            assert_eq!(job.active_deadline_seconds, Some(LEASE_S));
            assert!(job.ttl_seconds_after_finished.is_some());
        });
    }
}
