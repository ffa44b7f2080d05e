//! Findings about a target: access to it, and its file system.

use super::WORKING_SET_BYTES_MIN;
use super::finding_cause::{DeviceIoLimits, FindingCause, TargetCause};
use super::finding_text;
use crate::doctor::Severity::{Note, Problem, Warning};
use crate::doctor::{ExaminedTarget, Finding, Severity, TargetAccess};
use crate::host::{DeviceNumber, IoLimit, Locality, Mount, PathKind, TargetInfo};

fn found(severity: Severity, name: &str, cause: TargetCause) -> Finding {
    finding_text::finding(severity, name, FindingCause::Target(cause))
}

pub(super) fn findings(target: &ExaminedTarget) -> Vec<Finding> {
    let name = target.name.as_str();
    let (info, access) = (&target.info, &target.access);
    let mut found: Vec<Finding> = [
        unreadable(name, info, access),
        unwritable(name, info, access),
        obstacles(name, access),
        no_direct_io(name, access),
        no_room(name, info),
        nearly_full(name, info),
        sparse(name, info),
        bounds(name, info),
    ]
    .into_iter()
    .flatten()
    .collect();
    if let Some(mount) = &info.mount {
        found.extend(no_place(name, mount));
        found.extend(elsewhere(name, mount));
        found.extend(options(name, mount));
    }
    found
}

fn unreadable(name: &str, info: &TargetInfo, access: &TargetAccess) -> Option<Finding> {
    let cause = TargetCause::Unreadable {
        error: access.read_error.clone()?,
        errno: access.read_errno,
        path_kind: info.kind,
    };
    Some(found(Problem, name, cause))
}

fn unwritable(name: &str, info: &TargetInfo, access: &TargetAccess) -> Option<Finding> {
    let device = info
        .devices
        .first()
        .filter(|device| device.read_only && info.kind == PathKind::BlockDevice);
    if let Some(device) = device {
        let device = device.name.clone();
        return Some(found(Problem, name, TargetCause::ReadOnlyDevice { device }));
    }
    // Unreadable targets were reported above.
    let error = access
        .write_error
        .as_ref()
        .filter(|_| access.read_error.is_none())?;
    let is_read_only = |mount: &&Mount| mount.options.iter().any(|option| option == "ro");
    let cause = TargetCause::Unwritable {
        error: error.clone(),
        path_kind: info.kind,
        read_only_mount: info.mount.as_ref().filter(is_read_only).map(mount_point),
    };
    Some(found(Problem, name, cause))
}

fn mount_point(mount: &Mount) -> String {
    mount.mount_point.display().to_string()
}

fn obstacles(name: &str, access: &TargetAccess) -> Option<Finding> {
    (!access.obstacles.is_empty()).then(|| {
        let cause = TargetCause::InUse {
            obstacles: access.obstacles.clone(),
            action: access.remedy.clone(),
        };
        found(Note, name, cause)
    })
}

fn no_direct_io(name: &str, access: &TargetAccess) -> Option<Finding> {
    (access.direct == Some(false)).then(|| found(Warning, name, TargetCause::NoDirectIo))
}

/// Reports a lack of space that all studies refuse.
fn no_room(name: &str, info: &TargetInfo) -> Option<Finding> {
    let bytes = match info.kind {
        PathKind::Directory => info.space?.available_bytes?,
        _ => info.size_bytes?,
    };
    (bytes < WORKING_SET_BYTES_MIN).then(|| {
        let cause = TargetCause::NoRoom {
            bytes,
            minimum_bytes: WORKING_SET_BYTES_MIN,
            path_kind: info.kind,
        };
        found(Problem, name, cause)
    })
}

fn nearly_full(name: &str, info: &TargetInfo) -> Option<Finding> {
    let space = info.space?;
    let available_bytes = space.available_bytes?;
    if space.total_bytes == 0 || available_bytes >= space.total_bytes / 10 {
        return None;
    }
    let cause = TargetCause::NearlyFull {
        available_bytes,
        total_bytes: space.total_bytes,
        mount_point: info.mount.as_ref().map(mount_point),
    };
    Some(found(Warning, name, cause))
}

fn sparse(name: &str, info: &TargetInfo) -> Option<Finding> {
    let (size_bytes, allocated_bytes) = (info.size_bytes?, info.allocated_bytes?);
    // File servers and FUSE processes do not always count blocks.
    let local = |mount: &Mount| matches!(mount.locality, Locality::Block | Locality::Stacked);
    if !info.mount.as_ref().is_some_and(local) {
        return None;
    }
    // Some file systems store the end of a file elsewhere.
    if allocated_bytes.saturating_add(4096) >= size_bytes {
        return None;
    }
    let cause = TargetCause::SparseFile {
        allocated_bytes,
        size_bytes,
    };
    Some(found(Warning, name, cause))
}

fn bounds(name: &str, info: &TargetInfo) -> Option<Finding> {
    let mut devices: Vec<DeviceNumber> = info.limits.iter().map(|limit| limit.device).collect();
    devices.dedup();
    let mut cgroups: Vec<String> = info
        .limits
        .iter()
        .map(|limit| limit.cgroup.clone())
        .collect();
    cgroups.dedup();
    let known = info.all_devices();
    let limits: Vec<DeviceIoLimits> = devices
        .into_iter()
        .map(|number| {
            let device = known.iter().find(|device| device.number == number);
            let device = device.map_or_else(|| number.to_string(), |device| device.name.clone());
            strictest(&info.limits, number, device)
        })
        .collect();
    (!limits.is_empty()).then(|| found(Warning, name, TargetCause::CgroupIo { cgroups, limits }))
}

/// Returns the strictest limits on a device, as a group also has the limits of its parents.
fn strictest(limits: &[IoLimit], number: DeviceNumber, device: String) -> DeviceIoLimits {
    let least = |of: fn(&IoLimit) -> Option<u64>| {
        let of_device = limits.iter().filter(|limit| limit.device == number);
        of_device.filter_map(of).min()
    };
    DeviceIoLimits {
        device,
        read_iops: least(|limit| limit.read_iops),
        write_iops: least(|limit| limit.write_iops),
        read_bytes_per_s: least(|limit| limit.read_bytes_per_s),
        write_bytes_per_s: least(|limit| limit.write_bytes_per_s),
    }
}

/// Reports `/proc`, `/sys` and other pseudo file systems.
fn no_place(name: &str, mount: &Mount) -> Option<Finding> {
    (mount.locality == Locality::Pseudo).then(|| {
        let fs_type = mount.fs_type.clone();
        found(Problem, name, TargetCause::PseudoFileSystem { fs_type })
    })
}

/// Reports file systems whose data are not on a device of this machine.
fn elsewhere(name: &str, mount: &Mount) -> Option<Finding> {
    let fs_type = mount.fs_type.clone();
    let (severity, cause) = match mount.locality {
        Locality::Memory => (Warning, TargetCause::MemoryFileSystem { fs_type }),
        Locality::Remote => {
            let source = mount.source.clone();
            (Note, TargetCause::NetworkFileSystem { fs_type, source })
        }
        Locality::UserSpace => (Note, TargetCause::UserSpaceFileSystem { fs_type }),
        Locality::Stacked => (Note, TargetCause::Overlay { fs_type }),
        Locality::Block | Locality::Pseudo => return None,
    };
    Some(found(severity, name, cause))
}

fn options(name: &str, mount: &Mount) -> Vec<Finding> {
    let has = |option: &str| mount.options.iter().any(|other| other == option);
    let compression = mount.options.iter().find(|option| {
        option.starts_with("compress") && !option.ends_with("=no") && !option.ends_with("=none")
    });
    let mount_point = mount_point(mount);
    let mut found_here = Vec::new();
    if has("sync") {
        let mount_point = mount_point.clone();
        found_here.push(found(Warning, name, TargetCause::SyncMount { mount_point }));
    }
    if let Some(option) = compression {
        let cause = TargetCause::Compression {
            fs_type: mount.fs_type.clone(),
            mount_point: mount_point.clone(),
            option: option.clone(),
        };
        found_here.push(found(Note, name, cause));
    }
    if has("discard") {
        found_here.push(found(
            Note,
            name,
            TargetCause::OnlineDiscard { mount_point },
        ));
    }
    found_here
}
