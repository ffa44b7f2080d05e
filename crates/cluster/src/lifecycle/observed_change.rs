//! Facts about the volumes of a run, read from the objects of a watch.

use crate::quantity::quantity_bytes;
use crate::run_objects::{is_explaining_warning, sort_events};
use crate::volume_origin::is_provisioned_for_claim;
use k8s_openapi::api::core::v1::{Event, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The problem of an image whose programs do not measure the write.
const NO_CLOCK: &str = "the block was written, but neither `dd` nor the shell of the image reports \
                        a duration: use another --image, e.g. busybox or debian";

/// Name of the init container that writes the first block.
pub(super) const WRITER: &str = "first-write";
/// Annotation of a claim with the node that the scheduler has chosen.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Condition of a pod whose volumes are mounted and whose sandbox is ready.
const SANDBOX_READY: &str = "PodReadyToStartContainers";

/// The run whose objects are read. Other objects of the cluster are left out, so that only changes
/// of the run are reported.
#[derive(Debug, Clone)]
pub(super) struct WatchedRun {
    pub(super) namespace: String,
    /// Name of the Job, with which the names of all objects of the run begin.
    pub(super) job: String,
}

/// All objects of a kind after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ObservedChange {
    Claims(Vec<ObservedClaim>),
    Pods(Vec<ObservedVolumePod>),
    Volumes(Vec<ObservedVolume>),
    Attachments(Vec<ObservedAttachment>),
    Warnings(Vec<ObservedWarning>),
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ObservedClaim {
    pub(super) name: String,
    pub(super) has_node: bool,
    pub(super) is_bound: bool,
    pub(super) capacity_bytes: u64,
    /// Creation by the clock of the server, in whole seconds.
    pub(super) created_s: Option<i64>,
}

/// A pod that uses a volume.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ObservedVolumePod {
    pub(super) name: String,
    pub(super) is_scheduled: bool,
    pub(super) is_mounted: bool,
    pub(super) write: Option<WriteReport>,
}

/// End of the first write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteReport {
    /// Duration in nanoseconds.
    Took(u64),
    /// Output of the command that failed.
    Failed(String),
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ObservedVolume {
    pub(super) name: String,
    pub(super) claim_namespace: String,
    pub(super) claim: String,
    /// Whether the volume was provisioned for its claim and stays when the claim is deleted.
    pub(super) is_retained: bool,
    /// Creation by the clock of the server, in whole seconds.
    pub(super) created_s: Option<i64>,
}

/// An attachment of a volume to a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ObservedAttachment {
    pub(super) volume: String,
    pub(super) is_attached: bool,
}

/// A warning about an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct ObservedWarning {
    pub(super) object: String,
    pub(super) message: String,
    /// How often it was reported.
    pub(super) times: i32,
}

/// Reads claims.
pub(super) fn read_claims(claims: &[&PersistentVolumeClaim]) -> ObservedChange {
    let read = |claim: &&PersistentVolumeClaim| {
        let status = claim.status.as_ref();
        let capacity = status.and_then(|status| status.capacity.as_ref()?.get("storage"));
        let annotations = claim.metadata.annotations.as_ref();
        ObservedClaim {
            name: claim.metadata.name.clone().unwrap_or_default(),
            has_node: annotations.is_some_and(|all| all.contains_key(SELECTED_NODE)),
            is_bound: status.is_some_and(|status| status.phase.as_deref() == Some("Bound")),
            capacity_bytes: capacity.and_then(quantity_bytes).unwrap_or(0),
            created_s: created_s(&claim.metadata),
        }
    };
    ObservedChange::Claims(claims.iter().map(read).collect())
}

fn created_s(metadata: &ObjectMeta) -> Option<i64> {
    let created = metadata.creation_timestamp.as_ref();
    created.map(|created| created.0.as_second())
}

/// Reads pods.
pub(super) fn read_pods(pods: &[&Pod]) -> ObservedChange {
    ObservedChange::Pods(pods.iter().copied().map(read_pod).collect())
}

fn read_pod(pod: &Pod) -> ObservedVolumePod {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let is_true = |name: &str| {
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| condition.type_ == name && condition.status == "True")
    };
    let started = status.and_then(|status| status.init_container_statuses.as_ref());
    let mut started = started.into_iter().flatten();
    let writer = started.find(|container| container.name == WRITER);
    let state = writer.and_then(|container| container.state.as_ref());
    let ended = state.and_then(|state| state.terminated.as_ref());
    let write = ended.map(|ended| {
        let message = ended.message.clone().unwrap_or_default();
        match (ended.exit_code, write_duration_ns(&message)) {
            (0, Some(took_ns)) => WriteReport::Took(took_ns),
            (0, None) => WriteReport::Failed(NO_CLOCK.to_owned()),
            _ => WriteReport::Failed(write_problem(&message)),
        }
    });
    let is_running = state.is_some_and(|state| state.running.is_some());
    ObservedVolumePod {
        name: pod.metadata.name.clone().unwrap_or_default(),
        is_scheduled: is_true("PodScheduled"),
        // Clusters before 1.29 lack the condition.
        is_mounted: is_true(SANDBOX_READY) || is_running || write.is_some(),
        write,
    }
}

/// Returns the messages of a failed write, without the line of the clock.
fn write_problem(output: &str) -> String {
    let lines = output.lines().filter(|line| !line.starts_with("clock "));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Reads the duration that `dd` prints, `copied, 0.000123 s` or `0.000123 seconds`, else that of
/// the shell's clock, `clock BEGIN END`.
fn write_duration_ns(output: &str) -> Option<u64> {
    let number = |text: Option<&str>| text?.parse::<f64>().ok();
    let by_dd = output.rsplit_once("copied, ");
    let seconds = match by_dd {
        Some((_, rest)) => number(rest.split_whitespace().next())?,
        None => {
            let (_, rest) = output.rsplit_once("clock ")?;
            let mut times = rest.split_whitespace();
            let begun = number(times.next())?;
            number(times.next())? - begun
        }
    };
    (0.0..1e9)
        .contains(&seconds)
        .then_some((seconds * 1e9).round() as u64)
}

/// Reads volumes that claims of the run use.
pub(super) fn read_volumes(volumes: &[&PersistentVolume], run: &WatchedRun) -> ObservedChange {
    let read = |volume: &&PersistentVolume| {
        let spec = volume.spec.as_ref()?;
        let claim = spec.claim_ref.as_ref()?;
        let is_of_run = claim.namespace.as_ref() == Some(&run.namespace)
            && claim
                .name
                .as_ref()
                .is_some_and(|name| name.starts_with(&run.job));
        if !is_of_run {
            return None;
        }
        let policy = spec.persistent_volume_reclaim_policy.as_deref();
        Some(ObservedVolume {
            name: volume.metadata.name.clone()?,
            claim_namespace: claim.namespace.clone().unwrap_or_default(),
            claim: claim.name.clone()?,
            is_retained: policy == Some("Retain") && is_provisioned_for_claim(volume),
            created_s: created_s(&volume.metadata),
        })
    };
    ObservedChange::Volumes(volumes.iter().filter_map(read).collect())
}

/// Reads attachments of volumes.
pub(super) fn read_attachments(attachments: &[&VolumeAttachment]) -> ObservedChange {
    let read = |attachment: &&VolumeAttachment| {
        let status = attachment.status.as_ref();
        Some(ObservedAttachment {
            volume: attachment.spec.source.persistent_volume_name.clone()?,
            is_attached: status.is_some_and(|status| status.attached),
        })
    };
    ObservedChange::Attachments(attachments.iter().filter_map(read).collect())
}

/// Reads warnings about objects of the run and about volumes, the oldest first. Those that delay
/// nothing are left out.
pub(super) fn read_warnings(events: &[&Event], run: &WatchedRun) -> ObservedChange {
    let is_of_run = |event: &Event| {
        let object = &event.involved_object;
        let name = object.name.as_deref().unwrap_or_default();
        name.starts_with(&run.job) || object.kind.as_deref() == Some("PersistentVolume")
    };
    let of_run = events.iter().filter(|event| is_of_run(event));
    let mut events: Vec<Event> = of_run.map(|event| (*event).clone()).collect();
    sort_events(&mut events);
    let read = |event: Event| {
        let is_explaining = is_explaining_warning(&event);
        let in_series = event.series.as_ref().and_then(|series| series.count);
        let times = event.count.or(in_series).unwrap_or(1);
        let reason = event.reason.unwrap_or_default();
        let message = event.message.unwrap_or_default();
        is_explaining.then(|| ObservedWarning {
            object: event.involved_object.name.unwrap_or_default(),
            message: format!("{reason}: {}", message.trim()),
            times,
        })
    };
    ObservedChange::Warnings(events.into_iter().filter_map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn write_duration_is_read_from_dd_or_the_clock() {
        let busybox = "1+0 records in\n1+0 records out\n4096 bytes (4.0KB) copied, 0.000123 \
                       seconds, 31.8MB/s\n";
        let coreutils = "4096 bytes (4.1 kB, 4.0 KiB) copied, 0.0052 s, 788 kB/s";
        assert_eq!(write_duration_ns(busybox), Some(123_000));
        assert_eq!(write_duration_ns(coreutils), Some(5_200_000));
        let by_clock =
            "1+0 records in\n1+0 records out\nclock 1795717467.001577 1795717467.003077\n";
        let by_clock = write_duration_ns(by_clock).unwrap();
        assert!(by_clock.abs_diff(1_500_000) < 1_000, "{by_clock}");
        let by_both = format!("{coreutils}\nclock 1.5 2.5\n");
        assert_eq!(write_duration_ns(&by_both), Some(5_200_000));
        for output in [
            "",
            "dd: writing: No space left on device",
            "copied, x s",
            "clock 2 1",
        ] {
            assert_eq!(write_duration_ns(output), None, "{output}");
        }
    }

    #[test]
    fn volumes_and_warnings_of_others_are_left_out() {
        let run = WatchedRun {
            namespace: "lab".to_owned(),
            job: "iosonde-1".to_owned(),
        };
        let volume = |name: &str, namespace: &str, claim: &str, made: &str| -> PersistentVolume {
            let volume = json!({
                "metadata": {"name": name, "annotations": {made: "x"}},
                "spec": {"persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": namespace, "name": claim}},
            });
            serde_json::from_value(volume).unwrap()
        };
        let provisioned = "pv.kubernetes.io/provisioned-by";
        let all = [
            volume("ours", "lab", "iosonde-1-0-data", provisioned),
            volume(
                "by-hand",
                "lab",
                "iosonde-1-1-data",
                "pv.kubernetes.io/bound-by-controller",
            ),
            volume("other", "lab", "shop-data", provisioned),
            volume("elsewhere", "shop", "iosonde-1-0-data", provisioned),
        ];
        let all: Vec<&PersistentVolume> = all.iter().collect();
        let ObservedChange::Volumes(read) = read_volumes(&all, &run) else {
            panic!("no volumes");
        };
        let read: Vec<_> = read
            .iter()
            .map(|one| (one.name.as_str(), one.is_retained))
            .collect();
        assert_eq!(
            read,
            [("ours", true), ("by-hand", false)],
            "an existing volume is not ours"
        );
        let event = |object: &str| -> Event {
            let event = json!({"metadata": {}, "type": "Warning", "reason": "Failed",
                "message": "no", "involvedObject": {"kind": "Pod", "name": object}});
            serde_json::from_value(event).unwrap()
        };
        let events = [event("shop-0"), event("iosonde-1-0")];
        let events: Vec<&Event> = events.iter().collect();
        let warning = ObservedWarning {
            object: "iosonde-1-0".to_owned(),
            message: "Failed: no".to_owned(),
            times: 1,
        };
        let expected = ObservedChange::Warnings(vec![warning]);
        assert_eq!(read_warnings(&events, &run), expected);
    }

    #[test]
    fn warning_about_name_servers_explains_no_volume() {
        let run = WatchedRun {
            namespace: "lab".to_owned(),
            job: "iosonde-1".to_owned(),
        };
        let event = |kind: &str, reason: &str| -> Event {
            let event = json!({"metadata": {}, "type": kind, "reason": reason, "message": "no",
                "involvedObject": {"kind": "Pod", "name": "iosonde-1-0"}});
            serde_json::from_value(event).unwrap()
        };
        let events = [
            event("Warning", "VolumeResizeFailed"),
            event("Warning", "MissingClusterDNS"),
            event("Normal", "FileSystemResizeRequired"),
        ];
        let events: Vec<&Event> = events.iter().collect();
        let ObservedChange::Warnings(read) = read_warnings(&events, &run) else {
            panic!("no warnings");
        };
        let messages: Vec<&str> = read.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(messages, ["VolumeResizeFailed: no"]);
    }

    #[test]
    fn pod_reports_mount_and_write_of_its_init_container() {
        let pod = |state: serde_json::Value| {
            let writer = json!({
                "name": WRITER, "image": "x", "imageID": "", "ready": false, "restartCount": 0,
                "state": state,
            });
            let status = json!({
                "conditions": [{"type": "PodScheduled", "status": "True"}],
                "initContainerStatuses": [writer],
            });
            let pod = json!({"metadata": {"name": "iosonde-1-0"}, "status": status});
            read_pod(&serde_json::from_value(pod).unwrap())
        };
        let waiting = pod(json!({"waiting": {"reason": "PodInitializing"}}));
        assert!(waiting.is_scheduled && !waiting.is_mounted && waiting.write.is_none());
        assert!(pod(json!({"running": {}})).is_mounted);
        let message = "4096 bytes (4.0KB) copied, 0.5 seconds, 8.0KB/s";
        let written = pod(json!({"terminated": {"exitCode": 0, "message": message}}));
        assert_eq!(written.write, Some(WriteReport::Took(500_000_000)));
        let silent = pod(json!({"terminated": {"exitCode": 0, "message": "1+0 records in"}}));
        assert_eq!(silent.write, Some(WriteReport::Failed(NO_CLOCK.to_owned())));
        let message = "dd: /data/x: Permission denied\nclock 1 2\n";
        let failed = pod(json!({"terminated": {"exitCode": 1, "message": message}}));
        let cause = "dd: /data/x: Permission denied".to_owned();
        assert_eq!(failed.write, Some(WriteReport::Failed(cause)));
    }
}
