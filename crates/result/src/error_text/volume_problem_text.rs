//! Words of a [`VolumeProblem`].

use super::describe_quantity;
use super::write_refusal_text::consent_option;
use crate::run_error::{DeviceVolume, VolumeProblem};
use std::fmt;

impl fmt::Display for VolumeProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VolumeProblem::RootForbidden { .. } => formatter.write_str(
                "the namespace's Pod Security level `restricted` forbids pods that run as root, \
                 as this one would",
            ),
            VolumeProblem::HostPathForbidden { level } => write!(
                formatter,
                "the namespace's Pod Security level `{level}` forbids hostPath volumes"
            ),
            VolumeProblem::NoClaim { name } => {
                write!(formatter, "there is no claim {name} in this namespace")
            }
            VolumeProblem::ClaimIsBlock => {
                formatter.write_str("this claim is a block device, not a file system")
            }
            VolumeProblem::ClaimIsFileSystem => {
                formatter.write_str("this claim is a file system, not a block device")
            }
            VolumeProblem::ClaimIsReadOnly => formatter.write_str("this claim can only be read"),
            VolumeProblem::UsedByPod { pod } => write!(
                formatter,
                "the pod {pod} uses this block device, on which every write would overwrite \
                 something of it"
            ),
            VolumeProblem::NoStorageClass { .. } => {
                formatter.write_str("there is no such storage class")
            }
            VolumeProblem::StaticClass => formatter.write_str(
                "the class has no provisioner: its volumes are made by hand, so that none can be \
                 made and removed here",
            ),
            VolumeProblem::NotAClass => formatter.write_str("this is not a storage class"),
            VolumeProblem::NoSnapshotApi
            | VolumeProblem::NoSnapshotClass { .. }
            | VolumeProblem::NoSuchSnapshotClass { .. }
            | VolumeProblem::SnapshotClassOfOtherDriver { .. }
            | VolumeProblem::SnapshotClassRetains { .. } => self.write_snapshot_problem(formatter),
            VolumeProblem::DriverFull {
                available_bytes,
                claim_bytes,
            } => write!(
                formatter,
                "its driver has room for volumes of {} at most, but the claim needs {}",
                describe_quantity(*available_bytes),
                describe_quantity(*claim_bytes)
            ),
            VolumeProblem::DirectoryAsBlock => {
                formatter.write_str("this target is a directory, not a block device")
            }
            VolumeProblem::DeviceInUse { used, .. }
            | VolumeProblem::RenderedDeviceInUse { used } => {
                write!(formatter, "this block device is in use: {used}")
            }
            VolumeProblem::DeviceHasData { carries, .. }
            | VolumeProblem::RenderedDeviceHasData { carries } => {
                write!(formatter, "this block device carries {carries}")
            }
            VolumeProblem::NoScratchDirectory { failure } => {
                write!(formatter, "it cannot be made in the volume: {failure}")
            }
            VolumeProblem::SharedFile(problem) => write!(formatter, "{problem}"),
        }
    }
}

impl VolumeProblem {
    fn write_snapshot_problem(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VolumeProblem::NoSnapshotClass { driver, .. } => {
                write!(
                    formatter,
                    "no snapshot class belongs to its driver {driver}"
                )
            }
            VolumeProblem::NoSuchSnapshotClass { class, .. } => {
                write!(formatter, "there is no snapshot class {class}")
            }
            VolumeProblem::SnapshotClassOfOtherDriver {
                class,
                class_driver,
                driver,
            } => write!(
                formatter,
                "the snapshot class {class} belongs to the driver {class_driver}, but the volumes \
                 are of {driver}"
            ),
            VolumeProblem::SnapshotClassRetains { class } => write!(
                formatter,
                "the snapshot class {class} keeps the data of deleted snapshots"
            ),
            _ => formatter.write_str(
                "the cluster has no snapshots: the resource volumesnapshotclasses of \
                 snapshot.storage.k8s.io/v1 does not exist",
            ),
        }
    }

    fn snapshot_remedy(&self) -> String {
        let remedy = match self {
            VolumeProblem::NoSnapshotClass { known, .. } if !known.is_empty() => {
                let known = known.join(", ");
                return format!(
                    "create a VolumeSnapshotClass for it, or leave snapshots out: --services \
                     clone,expand; there are snapshot classes for {known}"
                );
            }
            VolumeProblem::NoSnapshotClass { .. } => {
                "create a VolumeSnapshotClass for it, or leave snapshots out: --services \
                 clone,expand"
            }
            VolumeProblem::NoSuchSnapshotClass { known, .. } => match known.as_slice() {
                [] => "this cluster has no snapshot classes",
                known => return format!("there are {}", known.join(", ")),
            },
            VolumeProblem::SnapshotClassOfOtherDriver { .. } => {
                "leave out --snapshot-class: a class of the driver is then used"
            }
            VolumeProblem::SnapshotClassRetains { .. } => {
                "name a snapshot class with the deletion policy Delete: --snapshot-class"
            }
            _ => {
                "install the snapshot controller with its custom resource definitions, or leave \
                 snapshots out: --services clone,expand"
            }
        };
        remedy.to_owned()
    }

    /// Returns the action to take.
    pub(super) fn remedy(&self) -> String {
        let remedy = match self {
            VolumeProblem::RootForbidden { is_block: true } => {
                "choose a namespace with the level `baseline` with -n, or name the user that the \
                 node gives devices to with --run-as"
            }
            VolumeProblem::RootForbidden { is_block: false } => "leave out --run-as 0",
            VolumeProblem::HostPathForbidden { .. } => {
                "choose a namespace with the level `privileged` with -n"
            }
            VolumeProblem::NoClaim { .. } => {
                "see `kubectl get pvc`, or choose another namespace with -n"
            }
            VolumeProblem::ClaimIsBlock => {
                "add --volume-mode block: the device is then written, unless it carries something"
            }
            VolumeProblem::ClaimIsFileSystem => "leave out --volume-mode",
            VolumeProblem::ClaimIsReadOnly => {
                "use a claim that can be written: a file is made in it and removed"
            }
            VolumeProblem::UsedByPod { .. } => {
                "measure a claim of your own: sc://CLASS with --volume-mode block"
            }
            VolumeProblem::NoStorageClass { similar, known } => match (similar, known.as_slice()) {
                (Some(similar), _) => return format!("did you mean sc://{similar}?"),
                (None, []) => "this cluster has no storage classes",
                (None, known) => return format!("there are {}", known.join(", ")),
            },
            VolumeProblem::StaticClass => {
                "name a class with a provisioner: `iosonde doctor --cluster` lists them"
            }
            VolumeProblem::NotAClass => "name a storage class: sc://CLASS",
            VolumeProblem::NoSnapshotApi
            | VolumeProblem::NoSnapshotClass { .. }
            | VolumeProblem::NoSuchSnapshotClass { .. }
            | VolumeProblem::SnapshotClassOfOtherDriver { .. }
            | VolumeProblem::SnapshotClassRetains { .. } => return self.snapshot_remedy(),
            VolumeProblem::DriverFull { .. } => {
                "use a smaller --claim-size, or remove what is not needed"
            }
            VolumeProblem::DirectoryAsBlock => {
                "leave out --volume-mode, or measure a claim: sc://CLASS"
            }
            VolumeProblem::DeviceInUse { volume, .. } => volume.use_remedy(),
            VolumeProblem::DeviceHasData {
                volume,
                consent_name,
                ..
            } => return volume.data_remedy(consent_name),
            VolumeProblem::RenderedDeviceInUse { .. } => {
                "end what uses it on the node: lsblk shows mounts and devices made of it"
            }
            VolumeProblem::RenderedDeviceHasData { .. } => {
                "measure a class whose volumes are new; to destroy what is on this one, render \
                 the manifest with --allow-overwrite=TARGET, and name the target as it is in \
                 --target"
            }
            VolumeProblem::NoScratchDirectory { .. } => {
                "let the pod's user write to the volume: --run-as"
            }
            VolumeProblem::SharedFile(problem) => return problem.remedy(),
        };
        remedy.to_owned()
    }
}

impl DeviceVolume {
    /// Returns the action for a device that a process uses.
    pub(super) fn use_remedy(self) -> &'static str {
        match self {
            DeviceVolume::UnknownOfClass | DeviceVolume::OfClass => {
                "end what uses it on the node: lsblk shows mounts and devices made of it"
            }
            DeviceVolume::ExistingClaim => {
                "end what uses it on the node, or measure a claim of your own: sc://CLASS with \
                 --volume-mode block"
            }
        }
    }

    /// Returns the action for a device that holds data.
    pub(super) fn data_remedy(self, consent_name: &str) -> String {
        let other = match self {
            DeviceVolume::ExistingClaim => {
                "measure a claim of your own (sc://CLASS with --volume-mode block)"
            }
            DeviceVolume::UnknownOfClass => {
                "whether it is new cannot be seen: ask for the right to `list` \
                 persistentvolumeclaims and to `get` persistentvolumes"
            }
            DeviceVolume::OfClass => {
                "the class has handed out a volume that was there before: measure one whose \
                 provisioner makes new ones"
            }
        };
        let option = consent_option(consent_name);
        format!("{other}; to destroy what is on this one, say so: {option}")
    }
}
