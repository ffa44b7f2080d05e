//! `iosonde k8s in-pod`: runs a command in a pod of a rendered manifest, for `collect`.

use super::renamed_volume::rename_volume;
use crate::args::InPodArgs;
use crate::failure::CommandError;
use crate::last_signal;
use crate::output::Output;
use iosonde_job::errno::describe;
use iosonde_result::run_error::{RunError, SystemFailure, VolumeProblem};
use iosonde_result::wire::RenderedDocument;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Start of the name of a directory that rendered manifests name.
const SCRATCH_PREFIX: &str = ".iosonde-";

/// Runs the command on the volume, and writes its document to the log of the pod.
pub(super) fn run(args: &InPodArgs) -> Result<(), CommandError> {
    if let Some(scratch) = &args.scratch {
        refuse_foreign_directory(scratch)?;
        std::fs::create_dir_all(scratch).map_err(|error| {
            let failure = SystemFailure::from(&error);
            let cause = VolumeProblem::NoScratchDirectory { failure };
            RunError::unusable_target(scratch.display().to_string(), cause.into())
        })?;
        remove_on_panic(scratch.clone());
    }
    // The parser requires one of the two.
    let volume = args.scratch.as_ref().or(args.device.as_ref());
    let volume = volume.map_or(Path::new("."), PathBuf::as_path);
    let (rendered, ended) = measure(&args.command, volume.as_os_str(), &args.target);
    if let Some(scratch) = &args.scratch {
        remove_directory(scratch);
    }
    let Some(rendered) = rendered else {
        return ended;
    };
    let ended = match ended {
        // The cluster stops the other pods of a Job when one fails, but this pod has measured.
        Err(verdict) if is_verdict(&verdict) => {
            verdict.print();
            Ok(())
        }
        ended => ended,
    };
    Output::Standard.write(&rendered.log_lines())?;
    ended
}

/// Refuses a directory that no manifest names: it is removed at the end with all that it contains.
fn refuse_foreign_directory(scratch: &Path) -> Result<(), CommandError> {
    let name = scratch.file_name().map(OsStr::to_string_lossy);
    match name.is_some_and(|name| name.starts_with(SCRATCH_PREFIX)) {
        true => Ok(()),
        false => Err(CommandError::usage(
            format!("{} is not a directory of iosonde", scratch.display()),
            format!("name a directory whose name begins with {SCRATCH_PREFIX}"),
        )),
    }
}

/// Removes the directory if a thread panics, because the process then aborts.
fn remove_on_panic(scratch: PathBuf) {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        remove_directory(&scratch);
    }));
}

fn remove_directory(scratch: &Path) {
    if let Err(error) = std::fs::remove_dir_all(scratch)
        && error.kind() != ErrorKind::NotFound
    {
        eprintln!("{} is left behind: {}", scratch.display(), describe(&error));
    }
}

/// Whether the failure is a verdict on figures that were measured.
fn is_verdict(failure: &CommandError) -> bool {
    matches!(
        failure,
        CommandError::Broken(_) | CommandError::Missed(_) | CommandError::Undecided(_)
    )
}

/// Runs a command on a volume. Returns its document, which names the target instead of the volume,
/// and how it ended. A command that measured nothing has no document.
pub(super) fn measure(
    command: &[OsString],
    volume: &OsStr,
    target: &str,
) -> (Option<RenderedDocument>, Result<(), CommandError>) {
    let path = document_path(volume);
    let mut words = vec![OsString::from("iosonde")];
    words.extend_from_slice(command);
    words.extend(["--format=json", "--no-save", "--output"].map(OsString::from));
    words.extend([path.clone().into_os_string(), volume.to_owned()]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let started_at_ms = now.map_or(0, |since| since.as_millis() as u64);
    let ended = crate::commands::dispatch(&words);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    // The file is not read again, and it is in the temporary directory.
    let _ = std::fs::remove_file(&path);
    let rendered = (!text.is_empty()).then(|| RenderedDocument {
        started_at_ms,
        status: ended.as_ref().err().map_or(0, CommandError::status),
        error: ended.as_ref().err().map(problem),
        is_cut: last_signal::received_signal().is_some(),
        // A document that cannot be read stays as it is, and `collect` reports it.
        document: rename_volume(&text, &volume.to_string_lossy(), target).unwrap_or(text),
    });
    (rendered, ended)
}

/// Returns the path of the document, which differs between the volumes of one process.
fn document_path(volume: &OsStr) -> PathBuf {
    let volume = volume.to_string_lossy().replace(['/', ':'], "-");
    let process = std::process::id();
    std::env::temp_dir().join(format!("iosonde-document-{process}-{volume}"))
}

/// Returns the problem alone if a result stands for it, else the whole text of the failure.
fn problem(failure: &CommandError) -> String {
    match failure {
        CommandError::Io(problem)
        | CommandError::Broken(problem)
        | CommandError::Missed(problem)
        | CommandError::Undecided(problem) => problem.clone(),
        other => other.text(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_removed_after_a_command_that_fails() {
        let name = format!("iosonde-in-pod-{}", std::process::id());
        let scratch = std::env::temp_dir().join(name).join(".iosonde-own");
        let args = InPodArgs {
            target: "sc://fast".to_owned(),
            scratch: Some(scratch.clone()),
            device: None,
            command: ["probe", "--no-such-option"].map(OsString::from).to_vec(),
        };
        let failure = run(&args).unwrap_err();
        assert_eq!(failure.status(), 2);
        let parent = scratch.parent().unwrap();
        assert!(parent.exists() && !scratch.exists());
        std::fs::remove_dir(parent).unwrap();
    }

    #[test]
    fn directory_of_others_is_refused_and_stays() {
        let name = format!("iosonde-in-pod-others-{}", std::process::id());
        let scratch = std::env::temp_dir().join(name);
        std::fs::create_dir(&scratch).unwrap();
        for path in [scratch.clone(), scratch.join(".iosonde-a/..")] {
            let problem = format!("{} is not a directory of iosonde", path.display());
            let args = InPodArgs {
                target: "sc://fast".to_owned(),
                scratch: Some(path),
                device: None,
                command: ["probe", "--no-such-option"].map(OsString::from).to_vec(),
            };
            let refused = run(&args).unwrap_err();
            assert_eq!(refused.usage_parts().0, problem);
        }
        std::fs::remove_dir(&scratch).unwrap();
    }

    #[test]
    fn verdict_on_figures_does_not_fail_the_pod() {
        assert!(is_verdict(&CommandError::Missed(String::new())));
        assert!(is_verdict(&CommandError::Broken(String::new())));
        assert!(!is_verdict(&CommandError::Io(String::new())));
        assert!(!is_verdict(&CommandError::Interrupted(15)));
    }

    #[test]
    fn failed_expectations_are_reported_without_a_prefix() {
        let missed = CommandError::Missed("randread.p99: missed".to_owned());
        assert_eq!(problem(&missed), "randread.p99: missed");
        let usage = CommandError::usage("no size", "name one");
        assert!(problem(&usage).contains("name one"));
    }
}
