//! Words of a [`MapProblem`] and of a [`ProgramEnding`].

use super::write_refusal_text::consent_option;
use crate::run_error::{MapProblem, ProgramEnding};
use iosonde_job::errno::describe_errno;
use std::fmt;

const SNAPSHOT: &str = "--map makes files on the image, and a snapshot is read-only";
const UNKNOWN_CONTENTS: &str = "the image holds data, but no file system that is known";
const LIBRBD_REMEDY: &str = "leave out --map to measure the image through librbd";

impl fmt::Display for ProgramEnding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramEnding::NotStarted { errno } => {
                write!(formatter, "cannot be started: {}", describe_errno(*errno))
            }
            ProgramEnding::Status(status) => write!(formatter, "failed with status {status}"),
            ProgramEnding::Signal(signal) => write!(formatter, "was ended by signal {signal}"),
            ProgramEnding::TimedOut { limit_s } => {
                write!(formatter, "did not end within {limit_s} s")
            }
        }
    }
}

/// Describes a program that failed, with its message.
fn describe_failure(command: &str, ending: &ProgramEnding, said: &str) -> String {
    match said {
        "" => format!("`{command}` {ending}"),
        said => format!("`{command}` {ending}: {said}"),
    }
}

impl fmt::Display for MapProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapProblem::NotRoot => formatter.write_str("--map needs root: it mounts a file system"),
            MapProblem::NoKernelModule { ending, said } => {
                let failure = describe_failure("modprobe rbd", ending, said);
                write!(formatter, "this kernel has no rbd module: {failure}")
            }
            MapProblem::NoProgram { program, .. } => {
                write!(formatter, "--map needs {program}, which is not installed")
            }
            MapProblem::AlreadyMapped { device } => write!(
                formatter,
                "the image is mapped on this machine already, as {device}"
            ),
            MapProblem::Snapshot => formatter.write_str(SNAPSHOT),
            MapProblem::UnknownContents { .. } => formatter.write_str(UNKNOWN_CONTENTS),
            MapProblem::NoDevice { said } => write!(
                formatter,
                "`rbd map` printed {said:?}, which is no device of this image"
            ),
            MapProblem::StepFailed {
                command,
                ending,
                said,
            } => formatter.write_str(&describe_failure(command, ending, said)),
            MapProblem::NotUndone {
                command,
                ending,
                said,
                ..
            } => {
                let failure = describe_failure(command, ending, said);
                write!(formatter, "the image is still mapped: {failure}")
            }
        }
    }
}

impl MapProblem {
    /// Returns the action to take.
    pub(super) fn remedy(&self) -> String {
        match self {
            MapProblem::NotRoot => format!("run the command with sudo, or {LIBRBD_REMEDY}"),
            MapProblem::NoKernelModule { .. } => LIBRBD_REMEDY.to_owned(),
            MapProblem::NoProgram { package, .. } => {
                format!("install its package (Debian, Ubuntu: apt-get install {package})")
            }
            MapProblem::AlreadyMapped { device } => format!(
                "measure the directory where it is mounted, or unmap the image: rbd unmap {device}"
            ),
            MapProblem::Snapshot => "leave out --map to read the snapshot".to_owned(),
            MapProblem::UnknownContents { consent_name } => format!(
                "to format the image, which destroys its data, use {}",
                consent_option(consent_name)
            ),
            MapProblem::NoDevice { .. } => {
                "see the mapped images with `rbd device list`, and unmap this one".to_owned()
            }
            MapProblem::StepFailed { .. } => {
                format!("see the kernel's messages with `dmesg | tail`, or {LIBRBD_REMEDY}")
            }
            MapProblem::NotUndone { remaining, .. } => format!(
                "stop the programs that use the image, then run: {}",
                remaining.join(" && ")
            ),
        }
    }
}
