//! The steps that map an image and mount its file system, and those that undo them in reverse
//! order.

use super::map_directory::{MAP_MAX, MapDirectory, clean_up_command};
use super::program_runner::{ProgramCall, ProgramFailure, ProgramRunner};
use crate::commands::ceph::run_of;
use iosonde_ceph::ImageName;
use iosonde_job::plan::CephAccess;
use iosonde_machine::mapped_images::{MappedDevice, mapped_images};
use iosonde_machine::mounts::mounts;
use iosonde_machine::proc_root::System;
use iosonde_result::run_error::{MapProblem, PathAction, ProgramEnding, RunError};
use std::fmt;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Limits of the programs.
const FORMAT_MAX: Duration = Duration::from_secs(900);
const MOUNT_MAX: Duration = Duration::from_secs(300);
/// Number of attempts to unmap. udev and blkid(8) open a device for a moment after it is closed.
const UNMAP_ATTEMPTS: u32 = 10;
/// Time between two attempts to unmap.
const UNMAP_PAUSE: Duration = Duration::from_millis(500);

/// A file system that iosonde makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MadeFileSystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
}

impl MadeFileSystem {
    /// Type of the file system, as mount(8) and blkid(8) name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            MadeFileSystem::Ext4 => "ext4",
            MadeFileSystem::Xfs => "xfs",
        }
    }

    /// The program that makes it.
    pub(super) fn program(self) -> &'static str {
        match self {
            MadeFileSystem::Ext4 => "mkfs.ext4",
            MadeFileSystem::Xfs => "mkfs.xfs",
        }
    }

    /// Arguments of the program before the device. Nothing is discarded, and ext4 initialises its
    /// tables now: later, the kernel would do that during the measurement.
    fn options(self) -> &'static [&'static str] {
        match self {
            MadeFileSystem::Ext4 => &[
                "-F",
                "-q",
                "-E",
                "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
            ],
            MadeFileSystem::Xfs => &["-f", "-q", "-K"],
        }
    }
}

/// An image to map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MapPlan {
    pub(super) image: ImageName,
    /// Identity of the cluster.
    pub(super) fsid: String,
    /// File system to make. `None`: the image has one.
    pub(super) format: Option<MadeFileSystem>,
    /// Type of the file system to mount.
    pub(super) fs_type: &'static str,
    pub(super) access: CephAccess,
}

impl MapPlan {
    pub(super) fn uri(&self) -> String {
        self.image.uri()
    }

    /// Options of `rbd` that select the cluster and the client.
    fn connection(&self) -> Vec<String> {
        let access = &self.access;
        let options = [
            ("--conf", &access.conf),
            ("--cluster", &access.cluster),
            ("--name", &access.client),
            ("--keyring", &access.keyring),
        ];
        let given = options
            .into_iter()
            .filter_map(|(option, value)| Some((option, value.as_ref()?)));
        let words = given.map(|(option, value)| match option {
            "--name" if !value.contains('.') => format!("{option}=client.{value}"),
            _ => format!("{option}={value}"),
        });
        words.collect()
    }

    fn map_call(&self) -> ProgramCall {
        let ImageName {
            pool,
            namespace,
            image,
        } = &self.image;
        let mut words = vec!["map".to_owned(), format!("--pool={pool}")];
        words.extend(namespace.iter().map(|name| format!("--namespace={name}")));
        words.push(format!("--image={image}"));
        words.extend(self.connection());
        program_call("rbd", words, MAP_MAX)
    }

    /// Whether a mapped device belongs to the image.
    fn is_mapped_by(&self, mapped: &MappedDevice) -> bool {
        let image = &mapped.image;
        let wanted = &self.image;
        (&image.pool, &image.namespace, &image.image)
            == (&wanted.pool, &wanted.namespace, &wanted.image)
            && image.snapshot.is_none()
            && image.fsid.as_ref().is_none_or(|fsid| *fsid == self.fsid)
    }
}

/// Describes the steps before they are taken.
impl fmt::Display for MapPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "will map the image {} (`rbd map`), ", self.image)?;
        match self.format {
            Some(format) => write!(formatter, "format it (`{}`), ", format.program())?,
            None => write!(formatter, "keep its {} file system, ", self.fs_type)?,
        }
        formatter.write_str("mount it, and undo this at the end")
    }
}

fn program_call(
    program: &'static str,
    arguments: impl IntoIterator<Item = String>,
    limit: Duration,
) -> ProgramCall {
    ProgramCall {
        program,
        arguments: arguments.into_iter().collect(),
        limit,
        is_undo: false,
    }
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

/// The device of a plan's image, or `None` if the image is not mapped on this machine.
pub(super) fn find_device(plan: &MapPlan, system: &System) -> Option<PathBuf> {
    let mut mapped = mapped_images(system).into_iter();
    mapped
        .find(|mapped| plan.is_mapped_by(mapped))
        .map(|mapped| mapped.device)
}

/// An image that is mapped for one command, as far as the steps went.
#[derive(Debug)]
pub(in crate::commands) struct ImageMapping {
    plan: MapPlan,
    directory: MapDirectory,
    /// Whether `rbd map` was run. It may have mapped the image and failed later.
    is_map_tried: bool,
    device: Option<PathBuf>,
    /// Whether the directory of the measured files exists.
    has_files: bool,
}

impl ImageMapping {
    /// Prepares the directory of the mapping below `root`.
    pub(super) fn begin(plan: MapPlan, root: &Path, id: &str) -> Result<ImageMapping, RunError> {
        let made = MapDirectory::create(root, id, &plan.uri());
        Ok(ImageMapping {
            directory: made.map_err(|error| path_error(root, PathAction::Create, &error))?,
            plan,
            is_map_tried: false,
            device: None,
            has_files: false,
        })
    }

    /// Name of the image.
    pub(super) fn image(&self) -> &ImageName {
        &self.plan.image
    }

    /// The device, once the image is mapped.
    pub(super) fn device(&self) -> Option<&Path> {
        self.device.as_deref()
    }

    /// The directory to measure.
    pub(super) fn files(&self) -> PathBuf {
        self.directory.files()
    }

    /// Maps, formats and mounts the image, and makes the directory of its files. After an error,
    /// [`ImageMapping::undo`] undoes the steps that were taken.
    pub(super) fn take_steps(
        &mut self,
        runner: &mut dyn ProgramRunner,
        system: &System,
    ) -> Result<(), RunError> {
        let device = self.map(runner, system)?;
        if let Some(format) = self.plan.format {
            let options = format.options().iter().map(|&option| option.to_owned());
            let words = options.chain([path_text(&device)]);
            self.run_step(runner, &program_call(format.program(), words, FORMAT_MAX))?;
        }
        let words = [
            "-t".to_owned(),
            self.plan.fs_type.to_owned(),
            "-o".to_owned(),
            "nosuid,nodev".to_owned(),
            path_text(&device),
            path_text(&self.directory.mount_point()),
        ];
        self.run_step(runner, &program_call("mount", words, MOUNT_MAX))?;
        let files = self.files();
        let made = DirBuilder::new().mode(0o700).create(&files);
        made.map_err(|error| path_error(&files, PathAction::Create, &error))?;
        self.has_files = true;
        Ok(())
    }

    /// Maps the image, and checks that the device is that of the image.
    fn map(
        &mut self,
        runner: &mut dyn ProgramRunner,
        system: &System,
    ) -> Result<PathBuf, RunError> {
        self.is_map_tried = true;
        let printed = self.run_step(runner, &self.plan.map_call())?;
        let device = Path::new(printed.trim());
        let is_of_image =
            |mapped: &MappedDevice| mapped.device == device && self.plan.is_mapped_by(mapped);
        if !mapped_images(system).iter().any(is_of_image) {
            let problem = MapProblem::NoDevice {
                said: printed.trim().to_owned(),
            };
            return Err(self.error(problem));
        }
        self.device = Some(device.to_owned());
        let recorded = self.directory.record_device(device);
        recorded.map_err(|error| path_error(self.directory.path(), PathAction::Write, &error))?;
        Ok(device.to_owned())
    }

    /// Undoes the steps in reverse order. A failed step leaves the earlier ones as they are: the
    /// error names the commands that undo them. May be called again.
    pub(super) fn undo(
        &mut self,
        runner: &mut dyn ProgramRunner,
        system: &System,
    ) -> Result<(), RunError> {
        let files_removed = self.remove_files();
        if self.is_mounted(system) {
            let unmount = self.unmount_call();
            let unmounted = runner.run(&unmount);
            unmounted.map_err(|failure| self.not_undone(&unmount, failure, system))?;
        }
        if let Some(device) = self.mapped_device(system) {
            let unmap = unmap_call(&device);
            let unmapped = unmap_with_retries(runner, &unmap);
            // A program that was stopped may have unmapped the image nevertheless.
            if let Err(failure) = unmapped
                && self.is_mapped(system)
            {
                return Err(self.not_undone(&unmap, failure, system));
            }
        }
        self.is_map_tried = false;
        self.device = None;
        let path = self.directory.path().to_owned();
        let removed = self.directory.remove();
        removed.map_err(|error| path_error(&path, PathAction::Remove, &error))?;
        files_removed
    }

    /// Removes the directory of the measured files with its contents.
    fn remove_files(&mut self) -> Result<(), RunError> {
        if !std::mem::take(&mut self.has_files) {
            return Ok(());
        }
        let files = self.files();
        match fs::remove_dir_all(&files) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(path_error(&files, PathAction::Remove, &error))
            }
            _ => Ok(()),
        }
    }

    fn is_mounted(&self, system: &System) -> bool {
        let mount_point = self.directory.mount_point();
        let mut mounted = mounts(system).into_iter();
        mounted.any(|mount| mount.mount_point == mount_point)
    }

    /// The device of the mapping. After `rbd map` has failed, the image may be mapped nevertheless.
    /// If another program has unmapped the image, the device may be that of another image by now.
    fn mapped_device(&self, system: &System) -> Option<PathBuf> {
        if !self.is_map_tried {
            return None;
        }
        let mut mapped = mapped_images(system).into_iter();
        let is_ours = |mapped: &MappedDevice| {
            let is_device = |device: &PathBuf| *device == mapped.device;
            self.device.as_ref().is_none_or(is_device) && self.plan.is_mapped_by(mapped)
        };
        mapped.find(is_ours).map(|mapped| mapped.device)
    }

    /// Whether the image is mapped by this mapping.
    pub(super) fn is_mapped(&self, system: &System) -> bool {
        self.mapped_device(system).is_some()
    }

    fn unmount_call(&self) -> ProgramCall {
        ProgramCall {
            is_undo: true,
            ..program_call(
                "umount",
                [path_text(&self.directory.mount_point())],
                MOUNT_MAX,
            )
        }
    }

    /// Commands that undo the rest of the steps.
    fn remaining(&self, system: &System) -> Vec<String> {
        let unmount = self.is_mounted(system).then(|| self.unmount_call());
        let unmap = self.mapped_device(system);
        let unmap = unmap.map(|device| unmap_call(&device));
        let calls = unmount.into_iter().chain(unmap);
        let ImageName {
            pool,
            namespace,
            image,
        } = &self.plan.image;
        let removal = run_of(image).map(|run| clean_up_command(pool, namespace.as_deref(), run));
        calls.map(|call| call.to_string()).chain(removal).collect()
    }

    fn run_step(
        &self,
        runner: &mut dyn ProgramRunner,
        call: &ProgramCall,
    ) -> Result<String, RunError> {
        runner.run(call).map_err(|failure| {
            self.error(MapProblem::StepFailed {
                command: call.to_string(),
                ending: failure.ending,
                said: failure.said,
            })
        })
    }

    fn not_undone(&self, call: &ProgramCall, failure: ProgramFailure, system: &System) -> RunError {
        self.error(MapProblem::NotUndone {
            command: call.to_string(),
            ending: failure.ending,
            said: failure.said,
            remaining: self.remaining(system),
        })
    }

    fn error(&self, problem: MapProblem) -> RunError {
        RunError::unusable_target(self.plan.uri(), problem.into())
    }
}

fn unmap_call(device: &Path) -> ProgramCall {
    ProgramCall {
        is_undo: true,
        ..program_call("rbd", ["unmap".to_owned(), path_text(device)], MAP_MAX)
    }
}

/// Whether a program waited for a cluster that does not answer. Another attempt would wait again.
fn is_late(failure: &ProgramFailure) -> bool {
    matches!(failure.ending, ProgramEnding::TimedOut { .. })
}

fn unmap_with_retries(
    runner: &mut dyn ProgramRunner,
    unmap: &ProgramCall,
) -> Result<(), ProgramFailure> {
    let mut attempts = 1;
    loop {
        match runner.run(unmap) {
            Ok(_) => return Ok(()),
            Err(failure) if attempts >= UNMAP_ATTEMPTS || is_late(&failure) => return Err(failure),
            Err(_) => runner.pause(UNMAP_PAUSE),
        }
        attempts += 1;
    }
}

fn path_error(path: &Path, action: PathAction, error: &io::Error) -> RunError {
    RunError::PathAccess {
        path: path_text(path),
        action,
        failure: error.into(),
        is_root: rustix::process::geteuid().is_root(),
    }
}

#[cfg(test)]
mod tests;
