//! What a target's name stands for on this machine, and what must be true of it before it is measured.

pub(super) mod working_file;

use super::ceph;
use crate::failure::Failure;
use iosonde_engine::runner::HeldPaths;
use iosonde_engine::worker::io_failure::remedy_for_forbidden;
use iosonde_job::plan::CephAccess;
use iosonde_machine::space::{space, view_of_kernel};
use iosonde_result::session::RunError;
use iosonde_study::probe::{ProbeTarget, TargetKind};
use std::fs::{File, FileType};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use working_file::{WorkingFile, sweep};

/// Whether killed probes may have left something in a directory.
pub(super) fn has_leftovers(name: &str) -> bool {
    working_file::are_there(Path::new(name))
}

/// A target that is ready to be measured; what was made for it is removed when it is dropped.
pub(in crate::commands) struct Opened {
    /// For the study.
    pub(in crate::commands) target: ProbeTarget,
    working_file: Option<WorkingFile>,
}

impl Opened {
    /// Has plans reach the working file by its descriptor.
    pub(in crate::commands) fn note_in(&self, held: &HeldPaths) {
        if let Some(file) = &self.working_file {
            held.hold(file.path(), file.file());
        }
    }

    /// Makes the working file, if the target is a directory, and removes those that killed runs have left.
    pub(in crate::commands) fn open(
        name: &str,
        consent: &[PathBuf],
        access: &CephAccess,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Opened, Failure> {
        let kind = check(name, consent, access)?;
        if let Some(target) = ceph::target(name)? {
            return Ok(Opened {
                target: ProbeTarget {
                    name: name.to_owned(),
                    path: ceph::path(&target)?,
                    kind,
                },
                working_file: None,
            });
        }
        let mut working_file = None;
        let path = match &kind {
            TargetKind::Directory { .. } => {
                let directory = Path::new(name)
                    .canonicalize()
                    .map_err(|error| unusable(name, &error))?;
                let directory = directory.as_path();
                for note in sweep(directory) {
                    tell(&note);
                }
                let made =
                    WorkingFile::create(directory).map_err(|error| unusable(name, &error))?;
                let path = made.path().to_string_lossy().into_owned();
                working_file = Some(made);
                path
            }
            TargetKind::Existing { .. } | TargetKind::Pool { .. } => name.to_owned(),
            TargetKind::Simulated { .. } => "sim".to_owned(),
        };
        // What sweeping has freed may be used.
        let kind = if working_file.is_some() {
            check(name, consent, access)?
        } else {
            kind
        };
        Ok(Opened {
            target: ProbeTarget {
                name: name.to_owned(),
                path,
                kind,
            },
            working_file,
        })
    }
}

/// Says what a name stands for, without changing anything.
pub(in crate::commands) fn check(
    name: &str,
    consent: &[PathBuf],
    access: &CephAccess,
) -> Result<TargetKind, Failure> {
    if let Some(options) = name.strip_prefix("sim:") {
        return Ok(TargetKind::Simulated {
            options: options.to_owned(),
        });
    }
    if let Some(target) = ceph::target(name)? {
        return ceph::kind(&target, access, consent);
    }
    if let Some((scheme, _)) = name.split_once("://") {
        return Err(unsupported(name, scheme));
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
        return Ok(TargetKind::Directory { free_bytes });
    }
    if !file_type.is_file() && !file_type.is_block_device() {
        return Err(wrong_kind(name, file_type));
    }
    let bytes = length(path).map_err(|error| unusable(name, &error))?;
    Ok(TargetKind::Existing {
        bytes,
        device: file_type.is_block_device(),
        consent: consent.iter().any(|allowed| is_same(allowed, path)),
    })
}

/// Whether two names stand for the same target.
pub(in crate::commands) fn are_same(one: &str, other: &str) -> bool {
    one == other || is_same(Path::new(one), Path::new(other))
}

/// Consent is for the thing, by whatever name.
fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// Length of a file or block device, whose metadata does not tell.
fn length(path: &Path) -> io::Result<u64> {
    File::open(path)?.seek(SeekFrom::End(0))
}

fn unusable(name: &str, error: &io::Error) -> Failure {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "name a directory, file or block device that exists",
        io::ErrorKind::PermissionDenied => remedy_for_forbidden(),
        io::ErrorKind::ReadOnlyFilesystem => {
            "name a directory that can be written, or a file on this file system"
        }
        _ => "choose another target",
    };
    Failure::Run(RunError::Target {
        path: name.to_owned(),
        problem: error.to_string(),
        remedy: remedy.to_owned(),
    })
}

fn keeps_no_data(name: &str, fs_type: &str) -> Failure {
    Failure::Run(RunError::Target {
        path: name.to_owned(),
        problem: format!("{fs_type} keeps no data, it shows the kernel's state"),
        remedy: "name a directory on a disk, e.g. /var/tmp".to_owned(),
    })
}

fn wrong_kind(name: &str, file_type: FileType) -> Failure {
    let what = if file_type.is_char_device() {
        "a character device"
    } else {
        "neither a directory nor a file nor a block device"
    };
    Failure::Run(RunError::Target {
        path: name.to_owned(),
        problem: format!("this is {what}"),
        remedy: "name a directory, a file or a block device".to_owned(),
    })
}

fn unsupported(name: &str, scheme: &str) -> Failure {
    Failure::Run(RunError::Unsupported {
        problem: format!("{name}: targets of the kind {scheme}:// are not supported"),
        remedy: "name a directory, a file or a block device".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, consent: &[PathBuf]) -> Result<TargetKind, Failure> {
        super::check(name, consent, &CephAccess::default())
    }

    #[test]
    fn names_stand_for_what_they_are() {
        let directory = std::env::temp_dir();
        let name = directory.to_str().unwrap();
        assert!(matches!(check(name, &[]), Ok(TargetKind::Directory { .. })));
        let simulated = TargetKind::Simulated {
            options: "iops=100".into(),
        };
        assert_eq!(check("sim:iops=100", &[]).unwrap(), simulated);
        let file = directory.join(format!("iosonde-target-{}", std::process::id()));
        std::fs::write(&file, [0; 4096]).unwrap();
        let kind = |consent: &[PathBuf]| check(file.to_str().unwrap(), consent).unwrap();
        let expected = |consent| TargetKind::Existing {
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
    fn what_cannot_be_probed_is_named_with_a_remedy() {
        for name in ["/proc/nonexistent", "/dev/null", "sc://fast"] {
            let failure = check(name, &[]).unwrap_err();
            assert_eq!(failure.status(), 3);
            let text = failure.text(false);
            assert!(text.contains(name) && text.contains("help: "), "{text}");
        }
        let text = check("/proc", &[]).unwrap_err().text(false);
        assert!(text.contains("/proc: proc keeps no data"), "{text}");
    }
}
