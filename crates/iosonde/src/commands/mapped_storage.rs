//! `--map`: an image of Ceph is mapped through the kernel (krbd), formatted if it holds no file
//! system, and mounted. The command measures a directory there, and everything is undone after it.
//!
//! `rbd map` negotiates the features of the image and finds the client's key, so the programs are
//! run that a person would run.

#[cfg(test)]
mod fake_programs;
mod image_mapping;
mod map_directory;
mod program_runner;

pub(in crate::commands) use image_mapping::ImageMapping;

use super::ceph;
use super::requested_image::requested_image;
use crate::args::MapFormat;
use crate::failure::CommandError;
use crate::signals::StopSignal;
use image_mapping::{MadeFileSystem, MapPlan, find_device};
use iosonde_ceph::{ImageFacts, ImageName, read_image_facts};
use iosonde_job::plan::CephAccess;
use iosonde_job::target_scheme::is_image_name;
use iosonde_job::{TargetScheme, TargetUri};
use iosonde_machine::mapped_images::has_rbd_module;
use iosonde_machine::proc_root::System;
use iosonde_result::run_error::{ImageContent, MapProblem, RunError, WriteRefusal};
use map_directory::{KilledMapping, MAP_ROOT, killed_mappings};
use program_runner::{ProgramCall, ProgramRunner, SystemPrograms};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum time to load the kernel's module.
const LOAD_MAX: Duration = Duration::from_secs(60);
/// Programs of all mappings.
const PROGRAMS: [&str; 3] = ["rbd", "mount", "umount"];
/// File systems that are mounted as they are.
const MOUNTABLE: [&str; 6] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"];

/// Package of a program on Debian and Ubuntu.
fn package_of(program: &str) -> &'static str {
    match program {
        "rbd" => "ceph-common",
        "mkfs.ext4" => "e2fsprogs",
        "mkfs.xfs" => "xfsprogs",
        _ => "mount",
    }
}

/// Refuses what can be refused before a pool or an image is made, and loads the kernel's module.
pub(in crate::commands) fn check_machine(
    targets: &[String],
    format: MapFormat,
) -> Result<(), CommandError> {
    let stop = StopSignal::listen()?;
    let mut programs = SystemPrograms::stopped_by(stop.interrupt.clone());
    let is_root = rustix::process::geteuid().is_root();
    let checked = check(targets, format, is_root, (&mut programs, &System::live()));
    stop.check()?;
    checked
}

fn check(
    targets: &[String],
    format: MapFormat,
    is_root: bool,
    (runner, system): (&mut dyn ProgramRunner, &System),
) -> Result<(), CommandError> {
    let Some(first) = targets.iter().find(|target| is_image_name(target)) else {
        return Err(CommandError::usage(
            "--map needs an image as its target",
            "name the image to map: rbd://POOL/IMAGE, or rbd://POOL/?size=10g",
        ));
    };
    let refused = |problem: MapProblem| RunError::unusable_target(first, problem.into());
    if !is_root {
        return Err(refused(MapProblem::NotRoot).into());
    }
    for program in PROGRAMS {
        require_program(program, first, runner)?;
    }
    for target in targets {
        if requested_image(target)?.is_some() {
            require_program(made_by_default(format).program(), first, runner)?;
        }
    }
    if has_rbd_module(system) {
        return Ok(());
    }
    let load = ProgramCall {
        program: "modprobe",
        arguments: vec!["rbd".to_owned()],
        limit: LOAD_MAX,
        is_undo: false,
    };
    match runner.run(&load) {
        Ok(_) => Ok(()),
        Err(failure) => Err(refused(MapProblem::NoKernelModule {
            ending: failure.ending,
            said: failure.said,
        })
        .into()),
    }
}

fn require_program(
    program: &str,
    target: &str,
    runner: &dyn ProgramRunner,
) -> Result<(), RunError> {
    if runner.is_installed(program) {
        return Ok(());
    }
    let problem = MapProblem::NoProgram {
        program: program.to_owned(),
        package: package_of(program).to_owned(),
    };
    Err(RunError::unusable_target(target, problem.into()))
}

/// The file system for an image that holds none.
fn made_by_default(format: MapFormat) -> MadeFileSystem {
    match format {
        MapFormat::Auto | MapFormat::Ext4 => MadeFileSystem::Ext4,
        MapFormat::Xfs => MadeFileSystem::Xfs,
    }
}

/// Maps and mounts the image of a target, and pushes the mapping to `mapped` before its first step.
/// Returns the directory to measure. `None`: the target is no image.
pub(in crate::commands) fn map_target(
    target: &str,
    (format, has_consent): (MapFormat, bool),
    access: &CephAccess,
    stop: &StopSignal,
    mapped: &mut Vec<ImageMapping>,
) -> Result<Option<PathBuf>, CommandError> {
    let Some(TargetUri::Rbd {
        pool,
        namespace,
        image,
    }) = ceph::target(target)?
    else {
        return Ok(None);
    };
    let image = ImageName {
        pool,
        namespace,
        image,
    };
    let system = System::live();
    let mut programs = SystemPrograms::stopped_by(stop.interrupt.clone());
    if image.image.contains('@') {
        return Err(RunError::unusable_target(target, MapProblem::Snapshot.into()).into());
    }
    let facts = read_image_facts(&image, access)?;
    let (made, fs_type) = choose_file_system(target, format, has_consent, &facts)?;
    if let Some(made) = made {
        require_program(made.program(), target, &programs)?;
    }
    let plan = MapPlan {
        image,
        fsid: facts.fsid,
        format: made,
        fs_type,
        access: access.clone(),
    };
    if let Some(device) = find_device(&plan, &system) {
        let device = device.display().to_string();
        let problem = MapProblem::AlreadyMapped { device };
        return Err(RunError::unusable_target(target, problem.into()).into());
    }
    eprintln!("{plan}");
    let id = ceph::prefix()?;
    let mapping = ImageMapping::begin(plan, Path::new(MAP_ROOT), id.trim_end_matches('-'))?;
    mapped.push(mapping);
    let Some(mapping) = mapped.last_mut() else {
        return Ok(None);
    };
    let taken = mapping.take_steps(&mut programs, &system);
    stop.check()?;
    taken?;
    if let Some(device) = mapping.device() {
        eprintln!("mapped the image to {}", device.display());
    }
    Ok(Some(mapping.files()))
}

/// The file system to make, if one is made, and the type to mount. An image in use is refused
/// whatever the consent: two clients that mount one file system destroy it.
fn choose_file_system(
    uri: &str,
    format: MapFormat,
    has_consent: bool,
    facts: &ImageFacts,
) -> Result<(Option<MadeFileSystem>, &'static str), RunError> {
    let refused = |users, contents| {
        let cause = WriteRefusal::ImageInUse {
            image: TargetScheme::Rbd.strip(uri).unwrap_or(uri).to_owned(),
            users,
            contents,
            consent_name: uri.to_owned(),
        };
        Err(RunError::write_refused(uri, cause))
    };
    if !facts.users.is_empty() {
        return refused(facts.users.clone(), Vec::new());
    }
    let made = made_by_default(format);
    let formatted = Ok((Some(made), made.name()));
    match facts.signatures.as_slice() {
        [one] if MOUNTABLE.contains(&one.kind) => {
            let is_replaced = format != MapFormat::Auto && made.name() != one.kind;
            match has_consent && is_replaced {
                true => formatted,
                false => Ok((None, one.kind)),
            }
        }
        _ if has_consent => formatted,
        [] if facts.is_empty => formatted,
        [] => {
            let problem = MapProblem::UnknownContents {
                consent_name: uri.to_owned(),
            };
            Err(RunError::unusable_target(uri, problem.into()))
        }
        signatures => {
            let contents = signatures.iter().map(|signature| ImageContent::Signature {
                description: signature.to_string(),
            });
            refused(Vec::new(), contents.collect())
        }
    }
}

/// Undoes mappings, the last one first. Returns the failures, and the images that stay mapped.
pub(in crate::commands) fn undo_all(
    mapped: &mut Vec<ImageMapping>,
) -> (Vec<CommandError>, Vec<ImageName>) {
    let (mut failures, mut left) = (Vec::new(), Vec::new());
    if mapped.is_empty() {
        return (failures, left);
    }
    let system = System::live();
    let mut programs = SystemPrograms::default();
    while let Some(mut mapping) = mapped.pop() {
        let undone = mapping.undo(&mut programs, &system);
        failures.extend(undone.err().map(CommandError::from));
        if mapping.is_mapped(&system) {
            left.push(mapping.image().clone());
        }
    }
    (failures, left)
}

/// Lines about what killed runs left mapped on this machine: of one pool, or of all pools.
pub(in crate::commands) fn killed_notes(pool: Option<&str>) -> Vec<String> {
    let killed = killed_mappings(Path::new(MAP_ROOT), &System::live());
    let is_meant = |uri: &str| pool.is_none_or(|pool| uri.starts_with(&format!("rbd://{pool}/")));
    let of_pool = killed.iter().filter(|killed| is_meant(&killed.uri));
    of_pool.map(KilledMapping::note).collect()
}

#[cfg(test)]
mod tests;
