//! Local targets: checks before the measurement, and preparation.

mod simulated_target;
pub(super) mod working_file;

use super::ceph;
use crate::failure::CommandError;
use iosonde_engine::runner::{HeldPaths, check_build};
use iosonde_job::TargetScheme;
use iosonde_job::plan::CephAccess;
use iosonde_machine::space::{space, view_of_kernel};
use iosonde_result::run_error::{AccessPurpose, RunError, TargetProblem, UnsupportedFeature};
use iosonde_study::probe::{StudyTarget, StudyTargetKind};
use simulated_target::check_device;
use std::fs::{File, FileType};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use working_file::{WorkingFile, sweep};

/// Whether a directory may have leftovers of killed probes.
pub(super) fn has_leftovers(name: &str) -> bool {
    working_file::are_there(Path::new(name))
}

/// A prepared target. Its working file is removed when it is dropped.
pub(in crate::commands) struct PreparedTarget {
    /// The target of the study.
    pub(in crate::commands) target: StudyTarget,
    working_file: Option<WorkingFile>,
}

impl PreparedTarget {
    /// Registers the working file's descriptor, by which plans access it.
    pub(in crate::commands) fn note_in(&self, held: &HeldPaths) {
        if let Some(file) = &self.working_file {
            held.hold(file.path(), file.file());
        }
    }

    /// Creates the working file if the target is a directory. Removes those of killed runs.
    pub(in crate::commands) fn open(
        name: &str,
        consent: &[PathBuf],
        access: &CephAccess,
        report_note: &mut dyn FnMut(&str),
    ) -> Result<PreparedTarget, CommandError> {
        let kind = check(name, consent, access)?;
        if let Some(target) = ceph::target(name)? {
            return Ok(PreparedTarget {
                target: StudyTarget {
                    name: name.to_owned(),
                    path: ceph::working_file_uri(&target)?,
                    kind,
                },
                working_file: None,
            });
        }
        let mut working_file = None;
        let path = match &kind {
            StudyTargetKind::Directory { .. } => {
                let directory = Path::new(name)
                    .canonicalize()
                    .map_err(|error| unusable(name, &error))?;
                let directory = directory.as_path();
                for note in sweep(directory) {
                    report_note(&note);
                }
                let made =
                    WorkingFile::create(directory).map_err(|error| unusable(name, &error))?;
                let path = made.path().to_string_lossy().into_owned();
                working_file = Some(made);
                path
            }
            StudyTargetKind::Existing { .. } | StudyTargetKind::Pool { .. } => name.to_owned(),
            StudyTargetKind::Simulated { .. } => "sim".to_owned(),
        };
        // Space freed by the removal is available now.
        let kind = if working_file.is_some() {
            check(name, consent, access)?
        } else {
            kind
        };
        Ok(PreparedTarget {
            target: StudyTarget {
                name: name.to_owned(),
                path,
                kind,
            },
            working_file,
        })
    }
}

/// Determines the kind of a target without changing anything.
pub(in crate::commands) fn check(
    name: &str,
    consent: &[PathBuf],
    access: &CephAccess,
) -> Result<StudyTargetKind, CommandError> {
    if name.is_empty() {
        return Err(CommandError::usage(
            "the target is empty",
            "name a directory, a file, a device or a URI; `.` is this directory",
        ));
    }
    if let Some(options) = TargetScheme::Simulated.strip(name) {
        check_device(name, options)?;
        return Ok(StudyTargetKind::Simulated {
            options: options.to_owned(),
        });
    }
    check_build()?;
    let target = ceph::target(name);
    let target = target.map_err(|error| ceph::name_images(error, name, access))?;
    if let Some(target) = target {
        return ceph::inspect_target_kind(&target, access, consent);
    }
    if let Some(scheme) = TargetScheme::of_name(name) {
        return Err(unsupported(name, scheme.name()));
    }
    let path = Path::new(name);
    let file_type = std::fs::metadata(path)
        .map_err(|error| unusable(name, &error))?
        .file_type();
    if file_type.is_dir() {
        if let Some(fs_type) = view_of_kernel(path) {
            return Err(keeps_no_data(name, &fs_type));
        }
        let free_bytes = space(path)
            .map_err(|error| unusable(name, &error))?
            .available_bytes;
        return Ok(StudyTargetKind::Directory { free_bytes });
    }
    if !file_type.is_file() && !file_type.is_block_device() {
        return Err(wrong_kind(name, file_type));
    }
    let bytes = length(path).map_err(|error| unusable(name, &error))?;
    Ok(StudyTargetKind::Existing {
        bytes,
        device: file_type.is_block_device(),
        consent: consent.iter().any(|allowed| is_same(allowed, path)),
    })
}

/// Whether two names are of the same target.
pub(in crate::commands) fn are_same(one: &str, other: &str) -> bool {
    one == other || is_same(Path::new(one), Path::new(other))
}

/// Whether both paths resolve to the same file. Consent applies to the file, not the name.
fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// Length of a file or block device. Metadata has no length of block devices.
fn length(path: &Path) -> io::Result<u64> {
    File::open(path)?.seek(SeekFrom::End(0))
}

fn unusable(name: &str, error: &io::Error) -> CommandError {
    CommandError::Run(RunError::unusable_target(
        name.to_owned(),
        TargetProblem::NotAccessible {
            failure: error.into(),
            purpose: AccessPurpose::Measure {
                is_root: rustix::process::geteuid().is_root(),
            },
        },
    ))
}

fn keeps_no_data(name: &str, fs_type: &str) -> CommandError {
    let fs_type = fs_type.to_owned();
    CommandError::Run(RunError::unusable_target(
        name,
        TargetProblem::NoDataStored { fs_type },
    ))
}

fn wrong_kind(name: &str, file_type: FileType) -> CommandError {
    let problem = match file_type.is_char_device() {
        true => TargetProblem::CharacterDevice,
        false => TargetProblem::OtherFileType,
    };
    CommandError::Run(RunError::unusable_target(name, problem))
}

fn unsupported(name: &str, scheme: &str) -> CommandError {
    CommandError::Run(
        UnsupportedFeature::UnknownScheme {
            target: name.to_owned(),
            scheme: scheme.to_owned(),
        }
        .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::errno::ENOENT;
    use iosonde_result::run_error::SystemFailure;

    fn check(name: &str, consent: &[PathBuf]) -> Result<StudyTargetKind, CommandError> {
        super::check(name, consent, &CephAccess::default())
    }

    #[test]
    fn check_returns_kind_of_named_target() {
        let directory = std::env::temp_dir();
        let name = directory.to_str().unwrap();
        assert!(matches!(
            check(name, &[]),
            Ok(StudyTargetKind::Directory { .. })
        ));
        let simulated = StudyTargetKind::Simulated {
            options: "cap_iops=100".into(),
        };
        assert_eq!(check("sim:cap_iops=100", &[]).unwrap(), simulated);
        let file = directory.join(format!("iosonde-target-{}", std::process::id()));
        std::fs::write(&file, [0; 4096]).unwrap();
        let kind = |consent: &[PathBuf]| check(file.to_str().unwrap(), consent).unwrap();
        let expected = |consent| StudyTargetKind::Existing {
            bytes: 4096,
            device: false,
            consent,
        };
        assert_eq!(kind(&[]), expected(false));
        assert_eq!(kind(std::slice::from_ref(&file)), expected(true));
        assert_eq!(kind(std::slice::from_ref(&directory)), expected(false));
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn empty_target_error_says_so() {
        for (name, problem) in [
            ("", "error: the target is empty\n"),
            ("sim:", "error: sim: names no simulated device\n"),
        ] {
            let failure = check(name, &[]).unwrap_err();
            assert_eq!(failure.status(), 2, "{name}");
            assert!(failure.text(false).starts_with(problem), "{failure:?}");
        }
    }

    #[test]
    fn unusable_target_error_has_name_and_cause() {
        let refused = |name: &str| {
            let failure = check(name, &[]).unwrap_err();
            assert_eq!(failure.status(), 3);
            match failure {
                CommandError::Run(error) => error,
                other => panic!("{name}: {other:?}"),
            }
        };
        let missing = TargetProblem::NotAccessible {
            failure: SystemFailure::Errno(ENOENT),
            purpose: AccessPurpose::Measure {
                is_root: rustix::process::geteuid().is_root(),
            },
        };
        let view_of_kernel = TargetProblem::NoDataStored {
            fs_type: "proc".to_owned(),
        };
        for (name, problem) in [
            ("/proc/nonexistent", missing),
            ("/dev/null", TargetProblem::CharacterDevice),
            ("/proc", view_of_kernel),
        ] {
            assert_eq!(refused(name), RunError::unusable_target(name, problem));
        }
        let unknown_scheme = UnsupportedFeature::UnknownScheme {
            target: "sc://fast".to_owned(),
            scheme: "sc".to_owned(),
        };
        assert_eq!(refused("sc://fast"), RunError::from(unknown_scheme));
    }
}
