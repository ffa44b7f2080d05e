//! Findings about a target: access to it, and its file system.

use super::{Remedied, WORKING_SET_BYTES_MIN, found};
use crate::doctor::Severity::{Note, Problem, Warning};
use crate::doctor::{Access, ExaminedTarget, Finding};
use crate::host::{DeviceNumber, IoLimit, Locality, Mount, TargetInfo, TargetKind};
use crate::words;

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

fn unreadable(name: &str, info: &TargetInfo, access: &Access) -> Option<Finding> {
    let error = access.read_error.as_ref()?;
    let remedy = match info.kind {
        // EPERM does not come from file permissions: even root gets it.
        TargetKind::BlockDevice if error.ends_with("(EPERM)") => {
            "a container or a devices control group keeps this process from the device: run outside, or give it the device (docker run --device, privileged: true)"
        }
        TargetKind::BlockDevice => "run as root, or as a member of the group that owns the device",
        _ => "run as a user who may read it, or choose another target",
    };
    Some(
        found(
            Problem,
            "unreadable",
            name,
            format!("it cannot be read: {error}"),
            "nothing can be measured",
        )
        .remedy(remedy),
    )
}

fn unwritable(name: &str, info: &TargetInfo, access: &Access) -> Option<Finding> {
    let read_only = info
        .mount
        .as_ref()
        .is_some_and(|mount| mount.options.iter().any(|option| option == "ro"));
    let device = info
        .devices
        .first()
        .filter(|device| device.read_only && info.kind == TargetKind::BlockDevice);
    if let Some(device) = device {
        let evidence = format!("the device {} is read-only", device.name);
        let finding = found(
            Problem,
            "read-only",
            name,
            evidence,
            "it can be read, but not written",
        );
        return Some(
            finding
                .remedy("make it writable, if it may be written")
                .command(format!("sudo blockdev --setrw /dev/{}", device.name)),
        );
    }
    // Unreadable targets were reported above.
    let error = access
        .write_error
        .as_ref()
        .filter(|_| access.read_error.is_none())?;
    let (evidence, effect) = match info.kind {
        TargetKind::Directory => (
            format!("no file can be made in it: {error}"),
            "no working file can be laid out",
        ),
        _ => (
            format!("it cannot be written: {error}"),
            "it can be read at best",
        ),
    };
    let finding = found(
        Problem,
        if read_only { "read-only" } else { "unwritable" },
        name,
        evidence,
        effect,
    );
    Some(match info.mount.as_ref().filter(|_| read_only) {
        Some(mount) => finding
            .remedy("mount it for writing, or choose another target")
            .command(format!(
                "sudo mount -o remount,rw {}",
                mount.mount_point.display()
            )),
        None => finding.remedy("run as a user who may write it, or choose another target"),
    })
}

fn obstacles(name: &str, access: &Access) -> Option<Finding> {
    if access.obstacles.is_empty() {
        return None;
    }
    let finding = found(
        Note,
        "in-use",
        name,
        access.obstacles.join("; "),
        "it is only read, unless you consent to lose what is on it",
    );
    Some(match &access.remedy {
        Some(remedy) => finding.remedy(remedy.as_str()),
        None => finding,
    })
}

fn no_direct_io(name: &str, access: &Access) -> Option<Finding> {
    (access.direct == Some(false)).then(|| {
        found(
            Warning,
            "no-direct-io",
            name,
            "O_DIRECT is refused (EINVAL)",
            "I/O goes through the page cache: memory is measured where the device should be",
        )
        .remedy("choose a file system that has direct I/O, or the block device itself")
    })
}

/// Reports a lack of space that all studies refuse.
fn no_room(name: &str, info: &TargetInfo) -> Option<Finding> {
    let (bytes, evidence) = match info.kind {
        TargetKind::Directory => (info.space?.available_bytes?, "are free"),
        _ => (info.size_bytes?, "is its size"),
    };
    (bytes < WORKING_SET_BYTES_MIN).then(|| {
        let (bytes, least) = (words::bytes(bytes), words::bytes(WORKING_SET_BYTES_MIN));
        found(
            Problem,
            "no-room",
            name,
            format!("{bytes} {evidence}, and the smallest working set is {least}"),
            "`iosonde probe` and the other studies refuse it",
        )
        .remedy("free some space, or choose another target")
    })
}

fn nearly_full(name: &str, info: &TargetInfo) -> Option<Finding> {
    let space = info.space?;
    let available = space.available_bytes?;
    if space.total_bytes == 0 || available >= space.total_bytes / 10 {
        return None;
    }
    let (left, total) = (words::bytes(available), words::bytes(space.total_bytes));
    Some(
        found(
            Warning,
            "nearly-full",
            name,
            format!("{left} of {total} are free"),
            "the working file is small and in pieces, and a flash disk this full writes slowly",
        )
        .remedy("remove what is not needed, then tell the device")
        .command(match &info.mount {
            Some(mount) => format!("sudo fstrim -v {}", mount.mount_point.display()),
            None => "sudo fstrim -av".to_owned(),
        }),
    )
}

fn sparse(name: &str, info: &TargetInfo) -> Option<Finding> {
    let (size, allocated) = (info.size_bytes?, info.allocated_bytes?);
    // File servers and FUSE processes do not always count blocks.
    let local = |mount: &Mount| matches!(mount.locality, Locality::Block | Locality::Stacked);
    if !info.mount.as_ref().is_some_and(local) {
        return None;
    }
    // Some file systems store the end of a file elsewhere.
    if allocated.saturating_add(4096) >= size {
        return None;
    }
    Some(
        found(
            Warning,
            "sparse-file",
            name,
            format!(
                "{} of its {} have blocks",
                words::bytes(allocated),
                words::bytes(size)
            ),
            "reads of holes are answered without the device",
        )
        .remedy("write it in full first; what is in it is lost")
        .command(format!(
            "iosonde fio --name=fill --filename={name} --rw=write --bs=1m --direct=1 --size={size}"
        )),
    )
}

fn bounds(name: &str, info: &TargetInfo) -> Option<Finding> {
    let mut devices: Vec<DeviceNumber> = info.limits.iter().map(|limit| limit.device).collect();
    devices.dedup();
    let mut groups: Vec<&str> = info
        .limits
        .iter()
        .map(|limit| limit.cgroup.as_str())
        .collect();
    groups.dedup();
    let known = info.all_devices();
    let each: Vec<String> = devices
        .into_iter()
        .map(|number| {
            let device = known.iter().find(|device| device.number == number);
            let device = device.map_or_else(|| number.to_string(), |device| device.name.clone());
            format!("{device}: {}", figures(&strictest(&info.limits, number)))
        })
        .collect();
    if each.is_empty() {
        return None;
    }
    Some(
        found(
            Warning,
            "cgroup-io",
            name,
            format!(
                "control group {} bounds I/O to {}",
                groups.join(" and "),
                each.join("; ")
            ),
            "the bound is measured, not the device",
        )
        .remedy("raise the bound (io.max, or blkio.throttle.* of the first generation), or run in another group, if the device is meant"),
    )
}

/// Returns the strictest limits on a device, as a group also has the limits of its parents.
fn strictest(limits: &[IoLimit], device: DeviceNumber) -> IoLimit {
    let least = |of: fn(&IoLimit) -> Option<u64>| {
        let of_device = limits.iter().filter(|limit| limit.device == device);
        of_device.filter_map(of).min()
    };
    IoLimit {
        device,
        cgroup: String::new(),
        read_bytes_per_s: least(|limit| limit.read_bytes_per_s),
        write_bytes_per_s: least(|limit| limit.write_bytes_per_s),
        read_iops: least(|limit| limit.read_iops),
        write_iops: least(|limit| limit.write_iops),
    }
}

fn figures(limit: &IoLimit) -> String {
    let rate = |bound: Option<u64>, noun: &str| bound.map(|bound| format!("{bound} {noun}/s"));
    let bytes = |bound: Option<u64>, noun: &str| {
        bound.map(|bound| format!("{noun} of {}", words::bandwidth(bound as f64)))
    };
    let all = [
        rate(limit.read_iops, "reads"),
        rate(limit.write_iops, "writes"),
        bytes(limit.read_bytes_per_s, "reads"),
        bytes(limit.write_bytes_per_s, "writes"),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Reports `/proc`, `/sys` and other pseudo file systems.
fn no_place(name: &str, mount: &Mount) -> Option<Finding> {
    (mount.locality == Locality::Pseudo).then(|| {
        found(
            Problem,
            "pseudo-file-system",
            name,
            format!("{} is the kernel's own: it keeps no data", mount.fs_type),
            "nothing can be measured",
        )
        .remedy("choose a directory on a disk")
    })
}

/// Reports file systems whose data are not on a device of this machine.
fn elsewhere(name: &str, mount: &Mount) -> Option<Finding> {
    let fs_type = mount.fs_type.as_str();
    let (severity, id, evidence, effect, remedy) = match mount.locality {
        Locality::Memory => (
            Warning,
            "memory-file-system",
            format!("{fs_type} keeps its data in memory"),
            "memory is measured",
            "choose a directory on a disk",
        ),
        Locality::Remote => (
            Note,
            "network-file-system",
            format!("the data is at {}, reached by {fs_type}", mount.source),
            "network, server and its cache are measured together; what the server's device does is out of sight",
            "let the working set be larger than the server's memory, with --size",
        ),
        Locality::UserSpace => (
            Note,
            "user-space-file-system",
            format!("a process of its own serves this file system ({fs_type})"),
            "that process is measured together with whatever it uses",
            "measure what is behind it too, and compare",
        ),
        Locality::Stacked => (
            Note,
            "overlay",
            format!("{fs_type}: new data goes to its upper layer"),
            "the first write to a file of a lower layer copies the whole file",
            "measure a volume, or the directory of the upper layer",
        ),
        Locality::Block | Locality::Pseudo => return None,
    };
    Some(found(severity, id, name, evidence, effect).remedy(remedy))
}

fn options(name: &str, mount: &Mount) -> Vec<Finding> {
    let has = |option: &str| mount.options.iter().any(|other| other == option);
    let compression = mount.options.iter().find(|option| {
        option.starts_with("compress") && !option.ends_with("=no") && !option.ends_with("=none")
    });
    let point = mount.mount_point.display();
    let mut found_here = Vec::new();
    if has("sync") {
        let effect = "each write waits until it is on the device, as with sync=1";
        found_here.push(
            found(
                Warning,
                "sync-mount",
                name,
                format!("{point} is mounted with sync"),
                effect,
            )
            .remedy("mount it without, unless your application's is mounted so too")
            .command(format!("sudo mount -o remount,async {point}")),
        );
    }
    if let Some(option) = compression {
        let evidence = format!("{} on {point} compresses data ({option})", mount.fs_type);
        let effect = "figures depend on the contents; iosonde writes data that do not compress, and compressing costs processor time";
        found_here.push(
            found(Note, "compression", name, evidence, effect)
                .remedy("say in the job what your data are like: buffer_compress_percentage="),
        );
    }
    if has("discard") {
        let effect = "removing the working file sends discards, which slow down what follows";
        found_here.push(
            found(
                Note,
                "online-discard",
                name,
                format!("{point} is mounted with discard"),
                effect,
            )
            .remedy("leave some seconds between runs, or mount it with nodiscard and use fstrim"),
        );
    }
    found_here
}
