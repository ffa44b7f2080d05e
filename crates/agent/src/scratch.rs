//! Creates the directory of the volume for all files of an agent.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Creates the directory. A panic removes it, because it aborts the agent without running drops.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    remove_on_panic(path.to_owned());
    Ok(())
}

fn remove_on_panic(path: PathBuf) {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        say(panic);
        if let Err(error) = fs::remove_dir_all(&path) {
            eprintln!("{} is left behind: {error}", path.display());
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
    fn a_panic_of_any_thread_leaves_nothing() {
        if let Some(path) = std::env::var_os(CHILD).map(PathBuf::from) {
            make(&path).unwrap();
            fs::write(path.join("file"), "measured").unwrap();
            let ended = std::thread::spawn(|| panic!("by intention")).join();
            unreachable!("it goes on: {ended:?}");
        }
        let directory = tempfile::tempdir().unwrap();
        let scratch = directory.path().join("scratch");
        let program = std::env::current_exe().unwrap();
        let name = "scratch::tests::a_panic_of_any_thread_leaves_nothing";
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
