//! The private directory of a mapping: its mount point, and the record by which a later run finds
//! the mapping of a killed run.
//!
//! The record lies in /run, which a reboot empties, as it removes mappings. A live run holds the
//! lock of its directory.

use crate::commands::ceph::run_of;
use crate::commands::leftovers::lock::{claim, take_lock_within};
use iosonde_job::{TargetUri, quote_shell_word};
use iosonde_machine::mapped_images::mapped_images;
use iosonde_machine::mounts::mounts;
use iosonde_machine::proc_root::System;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest time of `rbd map` and of `rbd unmap`.
pub(super) const MAP_MAX: Duration = Duration::from_secs(120);
/// Directory of all mappings on this machine.
pub(super) const MAP_ROOT: &str = "/run/iosonde-map";
/// Name of the lock file.
const LOCK: &str = "in-use";
/// Name of the file with the image's URI and, once the image is mapped, its device.
const RECORD: &str = "image";
/// Name of the mount point.
const MOUNT: &str = "mount";

/// The directory of one mapping.
#[derive(Debug)]
pub(super) struct MapDirectory {
    path: PathBuf,
    uri: String,
    /// Shows other runs that this one goes on.
    _lock: File,
}

impl MapDirectory {
    /// Creates the directory, which only this user may enter.
    pub(super) fn create(root: &Path, name: &str, uri: &str) -> io::Result<MapDirectory> {
        match private_directory(root) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let path = root.join(name);
        private_directory(&path)?;
        let lock = File::create_new(path.join(LOCK))?;
        if !claim(&lock)? {
            return Err(io::Error::other("another process uses this directory"));
        }
        private_directory(&path.join(MOUNT))?;
        fs::write(path.join(RECORD), format!("{uri}\n"))?;
        Ok(MapDirectory {
            path,
            uri: uri.to_owned(),
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn mount_point(&self) -> PathBuf {
        self.path.join(MOUNT)
    }

    /// Directory of the measured files on the image.
    pub(super) fn files(&self) -> PathBuf {
        files_below(&self.path)
    }

    /// Records the device of the image.
    pub(super) fn record_device(&self, device: &Path) -> io::Result<()> {
        let record = format!("{}\n{}\n", self.uri, device.display());
        fs::write(self.path.join(RECORD), record)
    }

    /// Removes the directory, which holds no mount any more. A missing one is no error.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove_directory(&self.path)
    }
}

fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn files_below(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.join(MOUNT).join(format!("{name}-files"))
}

/// Removes the files of a mapping by name. Never removes contents of a file system that is mounted
/// there: a mount point cannot be removed.
fn remove_directory(path: &Path) -> io::Result<()> {
    let unless_missing = |removed: io::Result<()>| match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    // The record stays as long as the mount point.
    unless_missing(fs::remove_dir(path.join(MOUNT)))?;
    unless_missing(fs::remove_file(path.join(RECORD)))?;
    unless_missing(fs::remove_file(path.join(LOCK)))?;
    unless_missing(fs::remove_dir(path))
}

/// An image that a killed run left mapped on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KilledMapping {
    /// The image, as `rbd://POOL/[NAMESPACE/]IMAGE`.
    pub(super) uri: String,
    /// Commands that undo the mapping, in their order.
    commands: Vec<String>,
}

impl KilledMapping {
    /// One line with the commands.
    pub(super) fn note(&self) -> String {
        format!(
            "a killed run left {} mapped. If nothing uses it, run: {}",
            self.uri,
            self.commands.join(" && ")
        )
    }
}

/// The command that removes the image that a run made.
pub(super) fn clean_up_command(pool: &str, namespace: Option<&str>, run: &str) -> String {
    let pool = quote_shell_word(pool);
    let namespace = namespace.map(|name| format!(" -N {}", quote_shell_word(name)));
    let namespace = namespace.unwrap_or_default();
    format!("iosonde rados -p {pool}{namespace} cleanup --prefix {run}")
}

/// Finds the mappings of killed runs. Removes directories of mappings that are gone.
pub(super) fn killed_mappings(root: &Path, system: &System) -> Vec<KilledMapping> {
    let Ok(entries) = fs::read_dir(root) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let killed = paths.iter().filter_map(|path| {
        // A lock that is held, or missing because a run is about to create it.
        let _lock = take_lock_within(path, LOCK).ok().flatten()?;
        let found = killed_mapping(path, system);
        if found.is_none() && !may_be_mapping(path) {
            // Removing it is not the purpose of the command: the next run tries again.
            let _ = remove_directory(path);
        }
        found
    });
    killed.collect()
}

/// Whether `rbd map` may still run for a killed run: it outlives iosonde, and no device is
/// recorded.
fn may_be_mapping(path: &Path) -> bool {
    let record = path.join(RECORD);
    let has_device = fs::read_to_string(&record).is_ok_and(|text| text.lines().count() > 1);
    let modified = fs::metadata(&record).and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|time| time.elapsed().ok());
    !has_device && age.is_some_and(|age| age < MAP_MAX)
}

/// The mapping of a directory whose run has ended. `None`: it was undone.
fn killed_mapping(path: &Path, system: &System) -> Option<KilledMapping> {
    let record = fs::read_to_string(path.join(RECORD)).unwrap_or_default();
    let mut lines = record.lines();
    let uri = lines.next().unwrap_or_default();
    let recorded = lines.next().map(Path::new);
    let mut mapped = mapped_images(system).into_iter();
    let device = mapped.find(|mapped| {
        format!("rbd://{}", mapped.image) == uri
            && recorded.is_none_or(|recorded| recorded == mapped.device)
    });
    let mount_point = path.join(MOUNT);
    let mut mounts = mounts(system).into_iter();
    let is_mounted = mounts.any(|mount| mount.mount_point == mount_point);
    let quoted = |path: &Path| quote_shell_word(&path.display().to_string());
    let target = uri.parse::<TargetUri>().ok();
    let made = target.as_ref().and_then(|target| match target {
        TargetUri::Rbd {
            pool,
            namespace,
            image,
        } => Some((pool.as_str(), namespace.as_deref(), run_of(image)?)),
        _ => None,
    });
    let mut commands = Vec::new();
    if is_mounted {
        // A made image is removed with its files.
        if made.is_none() {
            commands.push(format!("rm -rf {}", quoted(&files_below(path))));
        }
        commands.push(format!("umount {}", quoted(&mount_point)));
    }
    commands.extend(device.map(|mapped| format!("rbd unmap {}", quoted(&mapped.device))));
    if commands.is_empty() {
        return None;
    }
    commands.extend(made.map(|(pool, namespace, run)| clean_up_command(pool, namespace, run)));
    Some(KilledMapping {
        uri: uri.to_owned(),
        commands,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    /// A machine that maps the images to /dev/rbd0, /dev/rbd1, ... and has a mount.
    fn machine(root: &Path, images: &[&str], mount_point: Option<&Path>) -> System {
        for (number, image) in images.iter().enumerate() {
            let device = root.join(format!("sys/bus/rbd/devices/{number}"));
            fs::create_dir_all(&device).unwrap();
            fs::write(device.join("pool"), "fast\n").unwrap();
            fs::write(device.join("name"), format!("{image}\n")).unwrap();
            fs::write(device.join("current_snap"), "-\n").unwrap();
        }
        let process = root.join("proc/self");
        fs::create_dir_all(&process).unwrap();
        let mount = mount_point.map(|mount_point| {
            let mount_point = mount_point.display();
            format!("23 22 252:0 / {mount_point} rw - ext4 /dev/rbd0 rw\n")
        });
        fs::write(process.join("mountinfo"), mount.unwrap_or_default()).unwrap();
        System::captured(root)
    }

    fn scratch(name: &str) -> PathBuf {
        let name = format!("iosonde-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn mapping_of_a_live_run_is_no_leftover() {
        let scratch = scratch("live-map");
        let root = scratch.join("maps");
        let live = MapDirectory::create(&root, "iosonde-1", "rbd://fast/disk").unwrap();
        let system = machine(&scratch, &["disk"], Some(&live.mount_point()));
        assert_eq!(killed_mappings(&root, &system).len(), 0);
        assert!(live.path().exists());
        live.remove().unwrap();
        live.remove().unwrap();
        assert!(!live.path().exists());
        fs::remove_dir_all(&scratch).unwrap();
    }

    #[test]
    fn killed_mapping_names_commands_in_order() {
        let scratch = scratch("killed-map");
        let root = scratch.join("maps");
        let mount_point = {
            let killed = MapDirectory::create(&root, "iosonde-1", "rbd://fast/disk").unwrap();
            killed.record_device(Path::new("/dev/rbd0")).unwrap();
            killed.mount_point()
        };
        let made = "iosonde-00000000aa-image";
        drop(MapDirectory::create(&root, "iosonde-2", &format!("rbd://fast/{made}")).unwrap());
        drop(MapDirectory::create(&root, "iosonde-3", "rbd://fast/gone").unwrap());
        drop(MapDirectory::create(&root, "iosonde-4", "rbd://fast/mapped-soon").unwrap());
        let gone = File::options()
            .write(true)
            .open(root.join("iosonde-3").join(RECORD))
            .unwrap();
        gone.set_modified(SystemTime::now() - 2 * MAP_MAX).unwrap();
        let system = machine(&scratch, &["disk", made], Some(&mount_point));
        let notes: Vec<String> = killed_mappings(&root, &system)
            .iter()
            .map(KilledMapping::note)
            .collect();
        let mount = mount_point.display();
        assert_eq!(
            notes,
            [
                format!(
                    "a killed run left rbd://fast/disk mapped. If nothing uses it, run: rm -rf \
                     {mount}/iosonde-1-files && umount {mount} && rbd unmap /dev/rbd0"
                ),
                format!(
                    "a killed run left rbd://fast/{made} mapped. If nothing uses it, run: rbd \
                     unmap /dev/rbd1 && iosonde rados -p fast cleanup --prefix iosonde-00000000aa-"
                ),
            ]
        );
        assert!(root.join("iosonde-1").exists() && !root.join("iosonde-3").exists());
        assert!(root.join("iosonde-4").exists(), "`rbd map` may go on");
        fs::remove_dir_all(&scratch).unwrap();
    }

    #[test]
    fn image_made_in_a_namespace_is_removed_there() {
        let scratch = scratch("killed-map-namespace");
        let root = scratch.join("maps");
        let made = "iosonde-00000000aa-image";
        drop(MapDirectory::create(&root, "iosonde-1", &format!("rbd://fast/team/{made}")).unwrap());
        let system = machine(&scratch, &[made], None);
        let namespace = scratch.join("sys/bus/rbd/devices/0/pool_ns");
        fs::write(namespace, "team\n").unwrap();
        let notes = killed_mappings(&root, &system);
        let note = notes[0].note();
        let last = "iosonde rados -p fast -N team cleanup --prefix iosonde-00000000aa-";
        assert!(note.ends_with(last), "{note}");
        fs::remove_dir_all(&scratch).unwrap();
    }

    #[test]
    fn device_of_another_mapping_is_not_named() {
        let scratch = scratch("other-map");
        let root = scratch.join("maps");
        let killed = MapDirectory::create(&root, "iosonde-1", "rbd://fast/disk").unwrap();
        killed.record_device(Path::new("/dev/rbd7")).unwrap();
        drop(killed);
        let system = machine(&scratch, &["disk"], None);
        assert_eq!(killed_mappings(&root, &system).len(), 0);
        fs::remove_dir_all(&scratch).unwrap();
    }
}
