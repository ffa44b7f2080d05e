//! Words of findings about targets.

use super::finding_cause::{DeviceIoLimits, TargetCause};
use super::finding_words::FindingWords;
use crate::host::PathKind;
use crate::words;
use iosonde_job::errno::EPERM;
use iosonde_job::quote_shell_word;

/// Returns the words of a finding about the target of this name.
pub(super) fn describe(cause: &TargetCause, target: &str) -> FindingWords {
    match cause {
        TargetCause::Unreadable {
            error,
            errno,
            path_kind,
        } => unreadable(error, *errno, *path_kind),
        TargetCause::ReadOnlyDevice { device } => read_only_device(device),
        TargetCause::Unwritable {
            error,
            path_kind,
            read_only_mount,
        } => unwritable(error, *path_kind, read_only_mount.as_deref()),
        TargetCause::InUse { obstacles, action } => in_use(obstacles, action.as_deref()),
        TargetCause::NoDirectIo => no_direct_io(),
        TargetCause::NoRoom {
            bytes,
            minimum_bytes,
            path_kind,
        } => no_room(*bytes, *minimum_bytes, *path_kind),
        TargetCause::NearlyFull {
            available_bytes,
            total_bytes,
            mount_point,
        } => nearly_full(*available_bytes, *total_bytes, mount_point.as_deref()),
        TargetCause::SparseFile {
            allocated_bytes,
            size_bytes,
        } => sparse_file(target, *allocated_bytes, *size_bytes),
        TargetCause::CgroupIo { cgroups, limits } => cgroup_io(cgroups, limits),
        TargetCause::PseudoFileSystem { fs_type } => pseudo_file_system(fs_type),
        TargetCause::MemoryFileSystem { fs_type } => memory_file_system(fs_type),
        TargetCause::NetworkFileSystem { fs_type, source } => network_file_system(fs_type, source),
        TargetCause::UserSpaceFileSystem { fs_type } => user_space_file_system(fs_type),
        TargetCause::Overlay { fs_type } => overlay(fs_type),
        TargetCause::SyncMount { mount_point } => sync_mount(mount_point),
        TargetCause::Compression {
            fs_type,
            mount_point,
            option,
        } => compression(fs_type, mount_point, option),
        TargetCause::OnlineDiscard { mount_point } => online_discard(mount_point),
    }
}

fn unreadable(error: &str, errno: Option<i32>, path_kind: PathKind) -> FindingWords {
    let remedy = match path_kind {
        // EPERM does not come from file permissions: even root gets it.
        PathKind::BlockDevice if errno == Some(EPERM) => {
            "a container or a devices control group denies access to the device: run outside of \
             it, or grant access (docker run --device, privileged: true)"
        }
        PathKind::BlockDevice => "run as root, or as a member of the group that owns the device",
        _ => "run as a user with read permission, or choose another target",
    };
    FindingWords::new(
        "unreadable",
        format!("the target cannot be read: {error}"),
        "nothing can be measured",
    )
    .remedy(remedy)
}

fn read_only_device(device: &str) -> FindingWords {
    FindingWords::new(
        "read-only",
        format!("the device {device} is read-only"),
        "only reads can be measured",
    )
    .remedy("make the device writable, if its data may be overwritten")
    .command(format!("sudo blockdev --setrw /dev/{device}"))
}

fn unwritable(error: &str, path_kind: PathKind, read_only_mount: Option<&str>) -> FindingWords {
    let (evidence, effect) = match path_kind {
        PathKind::Directory => (
            format!("no file can be created in the directory: {error}"),
            "no working file can be laid out",
        ),
        _ => (
            format!("the target cannot be written: {error}"),
            "at most reads can be measured",
        ),
    };
    match read_only_mount {
        Some(mount_point) => FindingWords::new("read-only", evidence, effect)
            .remedy("remount the file system read-write, or choose another target")
            .command(format!("sudo mount -o remount,rw {mount_point}")),
        None => FindingWords::new("unwritable", evidence, effect)
            .remedy("run as a user with write permission, or choose another target"),
    }
}

fn in_use(obstacles: &[String], action: Option<&str>) -> FindingWords {
    FindingWords::new(
        "in-use",
        obstacles.join("; "),
        "only reads are measured, unless you consent to losing its data",
    )
    .remedy(action.unwrap_or_default())
}

fn no_direct_io() -> FindingWords {
    FindingWords::new(
        "no-direct-io",
        "the file system refuses O_DIRECT (EINVAL)",
        "I/O goes through the page cache: this would measure memory, not the device",
    )
    .remedy("choose a file system that supports direct I/O, or the block device itself")
}

fn no_room(bytes: u64, minimum_bytes: u64, path_kind: PathKind) -> FindingWords {
    let evidence = match path_kind {
        PathKind::Directory => "free space is",
        _ => "the size is",
    };
    FindingWords::new(
        "no-room",
        format!(
            "{evidence} {}, but the smallest working set is {}",
            words::bytes(bytes),
            words::bytes(minimum_bytes)
        ),
        "`iosonde probe` and the other studies refuse this target",
    )
    .remedy("free some space, or choose another target")
}

fn nearly_full(available_bytes: u64, total_bytes: u64, mount_point: Option<&str>) -> FindingWords {
    FindingWords::new(
        "nearly-full",
        format!(
            "{} of {} are free",
            words::bytes(available_bytes),
            words::bytes(total_bytes)
        ),
        "the working file is small and fragmented, and a nearly full flash disk writes slowly",
    )
    .remedy("remove files that are not needed, then discard the free blocks")
    .command(match mount_point {
        Some(mount_point) => format!("sudo fstrim -v {}", quote_shell_word(mount_point)),
        None => "sudo fstrim -av".to_owned(),
    })
}

fn sparse_file(target: &str, allocated_bytes: u64, size_bytes: u64) -> FindingWords {
    FindingWords::new(
        "sparse-file",
        format!(
            "{} of {} are allocated",
            words::bytes(allocated_bytes),
            words::bytes(size_bytes)
        ),
        "reads of holes do not reach the device",
    )
    .remedy("write the whole file first, which overwrites its data")
    .command(format!(
        "iosonde fio --name=fill {} --rw=write --bs=1m --direct=1 --size={size_bytes}",
        quote_shell_word(&format!("--filename={target}"))
    ))
}

fn cgroup_io(cgroups: &[String], limits: &[DeviceIoLimits]) -> FindingWords {
    let each: Vec<String> = limits
        .iter()
        .map(|limits| format!("{}: {}", limits.device, figures(limits)))
        .collect();
    FindingWords::new(
        "cgroup-io",
        format!(
            "control group {} limits I/O to {}",
            cgroups.join(" and "),
            each.join("; ")
        ),
        "this would measure the limit, not the device",
    )
    .remedy(
        "to measure the device, raise the limit (io.max, or blkio.throttle.* of cgroup v1) or run \
         in another group",
    )
}

fn figures(limits: &DeviceIoLimits) -> String {
    let rate = |bound: Option<u64>, noun: &str| bound.map(|bound| format!("{bound} {noun}/s"));
    let bytes = |bound: Option<u64>, noun: &str| {
        bound.map(|bound| format!("{noun} of {}", words::bandwidth(bound as f64)))
    };
    let all = [
        rate(limits.read_iops, "reads"),
        rate(limits.write_iops, "writes"),
        bytes(limits.read_bytes_per_s, "reads"),
        bytes(limits.write_bytes_per_s, "writes"),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn pseudo_file_system(fs_type: &str) -> FindingWords {
    FindingWords::new(
        "pseudo-file-system",
        format!("{fs_type} is a pseudo file system: it stores no data"),
        "nothing can be measured",
    )
    .remedy("choose a directory on a disk")
}

fn memory_file_system(fs_type: &str) -> FindingWords {
    FindingWords::new(
        "memory-file-system",
        format!("{fs_type} stores its data in memory"),
        "this would measure memory",
    )
    .remedy("choose a directory on a disk")
}

fn network_file_system(fs_type: &str, source: &str) -> FindingWords {
    FindingWords::new(
        "network-file-system",
        format!("the data is on {source}, accessed through {fs_type}"),
        "figures include the network, the server and its cache; the server's device is not visible",
    )
    .remedy("use --size to make the working set larger than the server's memory")
}

fn user_space_file_system(fs_type: &str) -> FindingWords {
    FindingWords::new(
        "user-space-file-system",
        format!("a user-space process serves this file system ({fs_type})"),
        "figures include that process and the storage behind it",
    )
    .remedy("also measure the storage behind it, and compare")
}

fn overlay(fs_type: &str) -> FindingWords {
    FindingWords::new(
        "overlay",
        format!("{fs_type} writes new data to its upper layer"),
        "the first write to a file of a lower layer copies the whole file",
    )
    .remedy("measure a volume, or the directory of the upper layer")
}

fn sync_mount(mount_point: &str) -> FindingWords {
    FindingWords::new(
        "sync-mount",
        format!("{mount_point} is mounted with sync"),
        "each write waits until its data is on the device, as with sync=1",
    )
    .remedy(
        "remount it without sync, unless your application's file system is also mounted with sync",
    )
    .command(format!("sudo mount -o remount,async {mount_point}"))
}

fn compression(fs_type: &str, mount_point: &str, option: &str) -> FindingWords {
    FindingWords::new(
        "compression",
        format!("{fs_type} on {mount_point} compresses data ({option})"),
        "figures depend on the data; iosonde writes incompressible data, and compression costs CPU \
         time",
    )
    .remedy("set buffer_compress_percentage= in the job to match your data")
}

fn online_discard(mount_point: &str) -> FindingWords {
    FindingWords::new(
        "online-discard",
        format!("{mount_point} is mounted with discard"),
        "removing the working file sends discards, which slow down the I/O after it",
    )
    .remedy("wait some seconds between runs, or mount it with nodiscard and use fstrim")
}
