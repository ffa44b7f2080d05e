//! Names of targets by their device, and whether a path is that of a temporary file. The page has
//! the same rules in `web/src/subjects.ts`.

use super::document::PageRun;
use iosonde_result::compare::WORKING_FILES;
use iosonde_result::host::TargetInfo;
use std::path::Path;

/// Most devices of a target that are named.
const DEVICES_MAX: usize = 3;

/// The path that the user chose: the directory of a working file or of a scratch directory,
/// otherwise the path itself.
pub(super) fn chosen_path(path: &str) -> &str {
    match path.find(&format!("/{WORKING_FILES}")) {
        Some(0) => "/",
        Some(end) => &path[..end],
        None => path,
    }
}

/// Devices and file system of a target: `nvme0n1, ext4`.
pub(crate) fn device_name(target: &TargetInfo) -> String {
    named_with_file_system(target, device_names(target))
}

/// As [`device_name`], with the model of the first device: `nvme0n1 (Samsung SSD 980), ext4`.
pub(super) fn device_with_model(target: &TargetInfo) -> String {
    let devices = device_names(target);
    let first = target.devices.first();
    match first.and_then(|device| device.model.as_deref()) {
        Some(model) => named_with_file_system(target, format!("{devices} ({})", model.trim())),
        None => named_with_file_system(target, devices),
    }
}

fn device_names(target: &TargetInfo) -> String {
    let names = target.devices.iter().map(|device| device.name.as_str());
    names.take(DEVICES_MAX).collect::<Vec<_>>().join(" and ")
}

/// The devices, or the source of the mount if there is none, with the file system.
fn named_with_file_system(target: &TargetInfo, devices: String) -> String {
    let mount = target.mount.as_ref();
    let source = match devices.is_empty() {
        true => mount.map_or("", |mount| mount.source.as_str()),
        false => devices.as_str(),
    };
    let parts = [source, mount.map_or("", |mount| mount.fs_type.as_str())];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

/// Whether a path is that of a file that a program made up for a while. A name without a slash is
/// one that the user has typed.
pub(crate) fn is_temporary(target: &str) -> bool {
    let is_temporary_name = |name: &str| {
        name == "tmp" || name == "temp" || name.starts_with(".tmp") || name.starts_with("tmp.")
    };
    let mut parts = Path::new(target).components();
    target.contains('/')
        && parts.any(|part| is_temporary_name(&part.as_os_str().to_string_lossy().to_lowercase()))
}

/// Whether the target of a run has no name that a reader knows: it is a temporary file, or only the
/// file of the result is known. The target of a study is a path that the user has chosen.
pub(crate) fn is_unnamed(run: &PageRun) -> bool {
    let is_of_study = run.study.is_some() || run.of_grid;
    run.place == run.source || (!is_of_study && is_temporary(&run.place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::host::Mount;

    #[test]
    fn target_without_devices_has_the_source_of_its_mount() {
        let mut target = TargetInfo::default();
        assert_eq!(device_name(&target), "");
        target.mount = Some(Mount {
            fs_type: "nfs4".to_owned(),
            source: "server:/export".to_owned(),
            ..Mount::default()
        });
        assert_eq!(device_name(&target), "server:/export, nfs4");
        assert_eq!(device_with_model(&target), device_name(&target));
    }

    #[test]
    fn working_file_has_the_name_of_its_directory() {
        for (path, chosen) in [
            ("/mnt/a/.iosonde-probe-db-1-0123456789ab-0", "/mnt/a"),
            ("/mnt/a/.iosonde-suite-1/step/file", "/mnt/a"),
            ("/.iosonde-probe-1-0", "/"),
            ("/data/.iosonde-3f2a9c-0/file", "/data"),
            ("/mnt/a/file", "/mnt/a/file"),
            ("sim:nvme", "sim:nvme"),
        ] {
            assert_eq!(chosen_path(path), chosen);
        }
    }

    #[test]
    fn temporary_paths_are_recognized_by_any_part() {
        for path in ["/tmp/x", "/srv/.tmpAb3/volume", "/srv/tmp.1/a", "/var/Temp"] {
            assert!(is_temporary(path), "{path}");
        }
        for path in ["/srv/data", "/mnt/tmpfs", "tmp", "/srv/temperature"] {
            assert!(!is_temporary(path), "{path}");
        }
    }
}
