//! Remedies of failures: one action each.

use super::CommandError;
use iosonde_job::quote_shell_word;
use iosonde_job::target_scheme::is_path_name;
use iosonde_machine::write_obstacles::lasting_name;
use iosonde_result::doctor::WORKING_SET_BYTES_MIN;
use iosonde_result::run_error::RunError;
use iosonde_study::StudyError;
use iosonde_study::probe::WorkingSetError;
use std::path::Path;

const MIB: u64 = 1 << 20;

/// Returns targets as arguments of `--allow-overwrite` in a shell, devices by their persistent
/// names.
fn lasting_names(targets: &[String]) -> String {
    let name = |target: &String| match is_path_name(target) {
        true => quote_shell_word(&lasting_name(Path::new(target)).to_string_lossy()),
        false => quote_shell_word(target),
    };
    let names: Vec<String> = targets.iter().map(name).collect();
    names.join(" --allow-overwrite ")
}

/// A size that fits, if there is one.
fn working_set_remedy(error: &WorkingSetError) -> String {
    let least_mib = WORKING_SET_BYTES_MIN / MIB;
    match error {
        WorkingSetError::NoSpace {
            available_bytes, ..
        } if *available_bytes >= WORKING_SET_BYTES_MIN => format!(
            "choose --size {}m or less, or another target",
            available_bytes / MIB
        ),
        WorkingSetError::NoSpace { .. } => {
            format!("choose a target with at least {least_mib} MiB")
        }
        WorkingSetError::TooSmall { .. } => format!("choose --size {least_mib}m or more"),
    }
}

impl CommandError {
    /// Returns the action that mends the failure. `None`: the problem says all.
    pub(super) fn remedy(&self) -> Option<String> {
        match self {
            CommandError::Usage { help, .. } => Some(help.clone()),
            CommandError::Step(failure) => Some(failure.remedy.clone()),
            CommandError::Study(StudyError::Run(RunError::NoSpace { .. })) => {
                Some("use a smaller --size, or a target with more free space".to_owned())
            }
            CommandError::Run(error) | CommandError::Study(StudyError::Run(error)) => {
                Some(error.remedy())
            }
            CommandError::Study(StudyError::WriteRefused { targets, writer }) => Some(format!(
                "{}, or permit overwriting its data with --allow-overwrite {}",
                writer.alternative(),
                lasting_names(targets)
            )),
            CommandError::Study(StudyError::WorkingSet { source, .. }) => {
                Some(working_set_remedy(source))
            }
            CommandError::Study(StudyError::Relocation(misplaced)) => {
                Some(misplaced.remedy().to_owned())
            }
            CommandError::Undecided(_) => Some(
                "measure longer (`--runtime`, in a suite `runtime`), repeat more often, or reduce \
                 the other load on the machine"
                    .to_owned(),
            ),
            CommandError::Store(error) => error.remedy(),
            CommandError::Command(failure) => Some(failure.remedy().to_owned()),
            CommandError::Output(..) => {
                Some("name a writable file in an existing directory".to_owned())
            }
            CommandError::StandardOutput(_) => {
                Some("redirect the output to a file on a disk with free space".to_owned())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remedy(source: WorkingSetError) -> String {
        let target = "/data/file".to_owned();
        let failure = CommandError::Study(StudyError::WorkingSet { target, source });
        failure.remedy().unwrap()
    }

    #[test]
    fn working_set_remedy_fits_the_target() {
        let no_space = |available_bytes| WorkingSetError::NoSpace {
            asked_bytes: 1 << 40,
            available_bytes,
        };
        assert_eq!(
            remedy(no_space((100 << 20) + 1)),
            "choose --size 100m or less, or another target"
        );
        // A file of 1412 bytes has no size that could be chosen.
        assert_eq!(
            remedy(no_space(1412)),
            "choose a target with at least 16 MiB"
        );
        assert_eq!(
            remedy(WorkingSetError::TooSmall { asked_bytes: 1 }),
            "choose --size 16m or more"
        );
    }

    /// Only fio's jobs have `size=`.
    #[test]
    fn full_target_of_a_study_names_its_option() {
        let error = || RunError::NoSpace {
            path: "/data".into(),
            needed_bytes: 2,
            available_bytes: 1,
        };
        let study = CommandError::Study(StudyError::Run(error()));
        assert_eq!(
            study.remedy().unwrap(),
            "use a smaller --size, or a target with more free space"
        );
        let fio = CommandError::Run(error()).remedy();
        assert_eq!(fio, Some(error().remedy()));
    }

    #[test]
    fn consent_to_targets_with_blanks_is_quoted() {
        let targets = ["/my disk", "rbd://p/my image", "/data"].map(str::to_owned);
        assert_eq!(
            lasting_names(&targets),
            "'/my disk' --allow-overwrite 'rbd://p/my image' --allow-overwrite /data"
        );
    }

    #[test]
    fn full_standard_output_has_its_own_remedy() {
        let full = CommandError::StandardOutput(std::io::Error::from_raw_os_error(28));
        assert_eq!(full.status(), 5);
        assert_eq!(
            full.text(false),
            "error: standard output: No space left on device (ENOSPC)\n\
             help: redirect the output to a file on a disk with free space"
        );
    }
}
