//! Runs programs of any architecture: those of another one with qemu.

use super::architecture::{Architecture, Flavour};
use super::check_log::UncheckedReason;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

const QEMU_REMEDY: &str = "Debian: apt-get install qemu-user-static";
const LIBRARIES_REMEDY: &str = "Debian: apt-get install libc6-arm64-cross";

/// The words before the name of a program: none on its own architecture, else qemu and its options.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ReleaseRunner {
    words: Vec<OsString>,
}

impl ReleaseRunner {
    /// Returns how programs of this architecture run here. A program that is linked dynamically
    /// needs the C library of its architecture.
    ///
    /// # Errors
    /// If qemu or the C library is not installed.
    pub(crate) fn new(
        architecture: Architecture,
        flavour: Flavour,
    ) -> Result<Self, UncheckedReason> {
        if Architecture::native() == Some(architecture) {
            return Ok(Self { words: Vec::new() });
        }
        let missing = |program: &str, remedy| UncheckedReason::MissingProgram {
            program: program.to_owned(),
            remedy,
        };
        let qemu = format!("/usr/bin/qemu-{}-static", architecture.rust());
        if !Path::new(&qemu).is_file() {
            return Err(missing(&qemu, QEMU_REMEDY));
        }
        let mut words = vec![OsString::from(qemu)];
        if flavour == Flavour::Gnu {
            // Debian's libc6-arm64-cross and libgcc-s1-arm64-cross.
            let libraries = format!("/usr/{}-linux-gnu", architecture.rust());
            if !Path::new(&libraries).is_dir() {
                return Err(missing(&libraries, LIBRARIES_REMEDY));
            }
            words.push("-L".into());
            words.push(libraries.into());
        }
        Ok(Self { words })
    }

    /// Returns a command that runs the program.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let program = program.as_os_str();
        let all: Vec<&OsStr> = (self.words.iter().map(OsString::as_os_str))
            .chain([program])
            .collect();
        let mut command = Command::new(all[0]);
        command.args(&all[1..]);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_program_runs_without_other_words() {
        let native = Architecture::native().unwrap();
        let runner = ReleaseRunner::new(native, Flavour::Gnu).unwrap();
        let command = runner.command(Path::new("/bin/true"));
        assert_eq!(command.get_program(), "/bin/true");
        assert_eq!(command.get_args().count(), 0);
    }

    #[test]
    fn foreign_program_follows_the_words_of_qemu() {
        let runner = ReleaseRunner {
            words: ["qemu", "-L", "/libraries"].map(OsString::from).to_vec(),
        };
        let command = runner.command(Path::new("/program"));
        assert_eq!(command.get_program(), "qemu");
        let arguments: Vec<&OsStr> = command.get_args().collect();
        assert_eq!(arguments, ["-L", "/libraries", "/program"]);
    }
}
