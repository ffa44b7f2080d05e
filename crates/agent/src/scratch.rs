//! Creates the directory of the volume for all files of an agent.

use iosonde_job::errno::describe;
use iosonde_result::run_error::{RunError, VolumeProblem};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Creates the directory. A panic removes it, because it aborts the agent without running drops.
pub(crate) fn create_scratch(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    remove_on_panic(path.to_owned());
    Ok(())
}

/// Creates the directory in a container of other programs: its parent must exist, because it would
/// stay there.
pub(crate) fn make_in_existing(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    remove_on_panic(path.to_owned());
    Ok(())
}

/// Returns the error of a directory that cannot be created, as data for the client.
pub(crate) fn creation_error(path: &Path, error: &io::Error) -> RunError {
    let failure = error.into();
    let cause = VolumeProblem::NoScratchDirectory { failure };
    RunError::unusable_target(path.display().to_string(), cause.into())
}

fn remove_on_panic(path: PathBuf) {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        say(panic);
        if let Err(error) = fs::remove_dir_all(&path) {
            eprintln!("{} is left behind: {}", path.display(), describe(&error));
        }
        // Other threads would continue without their files.
        std::process::abort();
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const CHILD: &str = "IOSONDE_TEST_SCRATCH";

    #[test]
    fn directory_of_others_must_exist() {
        let directory = tempfile::tempdir().unwrap();
        let error = make_in_existing(&directory.path().join("typo/scratch")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!directory.path().join("typo").exists());
    }

    #[test]
    fn panic_of_any_thread_removes_the_scratch_directory() {
        if let Some(path) = std::env::var_os(CHILD).map(PathBuf::from) {
            create_scratch(&path).unwrap();
            fs::write(path.join("file"), "measured").unwrap();
            let ended = std::thread::spawn(|| panic!("by intention")).join();
            unreachable!("it goes on: {ended:?}");
        }
        let directory = tempfile::tempdir().unwrap();
        let scratch = directory.path().join("scratch");
        let program = std::env::current_exe().unwrap();
        let name = "scratch::tests::panic_of_any_thread_removes_the_scratch_directory";
        let child = Command::new(program)
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, &scratch)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(
            said.contains("by intention") && !said.contains("goes on"),
            "{said}"
        );
        assert!(!child.status.success() && !scratch.exists(), "{said}");
    }
}
