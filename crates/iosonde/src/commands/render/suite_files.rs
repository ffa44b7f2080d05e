//! The files and environment variables that a suite reads, for its pods.

use crate::failure::CommandError;
use iosonde_job::Env;
use iosonde_machine::system_env::SystemEnv;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Files by their paths, or variables by their names.
type Texts = BTreeMap<String, String>;

/// This machine, which records the files and variables that were read.
#[derive(Default)]
pub(super) struct SuiteFilesEnv {
    system: SystemEnv,
    files: RefCell<BTreeMap<String, Vec<u8>>>,
    variables: RefCell<Texts>,
}

impl SuiteFilesEnv {
    /// Returns the files by their paths relative to the directory of the suite, and the variables.
    pub(super) fn files_beside(self, suite: &str) -> Result<(Texts, Texts), CommandError> {
        let mut files = Texts::new();
        for (path, bytes) in self.files.into_inner() {
            let Some(relative) = path_beside(suite, &path) else {
                return Err(CommandError::usage(
                    format!("{path} is outside of the directory of the suite {suite}"),
                    "copy the file into the directory of the suite, and name it relative to the \
                     suite",
                ));
            };
            let text = String::from_utf8(bytes).map_err(|_| {
                CommandError::usage(
                    format!("{path} is not UTF-8"),
                    "write the file in UTF-8, as manifests are",
                )
            })?;
            files.insert(relative, text);
        }
        Ok((files, self.variables.into_inner()))
    }
}

impl Env for SuiteFilesEnv {
    fn var(&self, name: &str) -> Option<String> {
        let value = self.system.var(name)?;
        let mut variables = self.variables.borrow_mut();
        variables.insert(name.to_owned(), value.clone());
        Some(value)
    }

    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        let bytes = self.system.read_file(path)?;
        let mut files = self.files.borrow_mut();
        files.insert(path.to_owned(), bytes.clone());
        Ok(bytes)
    }

    fn read_start(&self, path: &str, most: usize) -> io::Result<Vec<u8>> {
        self.system.read_start(path, most)
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        self.system.read_stdin()
    }

    fn is_device(&self, path: &str) -> bool {
        self.system.is_device(path)
    }

    fn page_size(&self) -> u64 {
        self.system.page_size()
    }

    fn cpus(&self) -> u64 {
        self.system.cpus()
    }

    fn memory_mib(&self) -> u64 {
        self.system.memory_mib()
    }
}

/// Returns the path relative to the directory of the suite, or `None` if it is outside.
pub(super) fn path_beside(suite: &str, path: &str) -> Option<String> {
    let plain = |path: &Path| -> PathBuf {
        let parts = path.components();
        parts.filter(|part| *part != Component::CurDir).collect()
    };
    let directory = plain(Path::new(suite).parent()?);
    let path = plain(Path::new(path));
    let relative = path.strip_prefix(&directory).ok()?;
    let is_below = |part: Component<'_>| matches!(part, Component::Normal(_));
    let is_inside = relative.components().all(is_below);
    is_inside.then(|| relative.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_suite_or_outside() {
        let beside = |suite: &str, path: &str| path_beside(suite, path);
        assert_eq!(
            beside("suite.toml", "jobs/a.fio").as_deref(),
            Some("jobs/a.fio")
        );
        assert_eq!(beside("./suite.toml", "a.fio").as_deref(), Some("a.fio"));
        assert_eq!(
            beside("/s/suite.toml", "/s/a.fio").as_deref(),
            Some("a.fio")
        );
        assert_eq!(
            beside("s/suite.toml", "s/suite.toml").as_deref(),
            Some("suite.toml")
        );
        assert_eq!(beside("s/suite.toml", "s/../a.fio"), None);
        assert_eq!(beside("suite.toml", "/etc/passwd"), None);
        assert_eq!(beside("suite.toml", "../a.fio"), None);
    }

    #[test]
    fn files_that_were_read_are_recorded() {
        let name = format!("iosonde-suite-files-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let suite = directory.join("suite.toml");
        let suite = suite.to_str().unwrap();
        std::fs::write(suite, "about = \"x\"\n").unwrap();
        let env = SuiteFilesEnv::default();
        assert!(env.read_file(suite).is_ok());
        assert!(env.read_file("/nonexistent/a.fio").is_err());
        std::fs::remove_dir_all(&directory).unwrap();
        let (files, variables) = env.files_beside(suite).unwrap();
        let expected = [("suite.toml".to_owned(), "about = \"x\"\n".to_owned())];
        assert_eq!(files, Texts::from(expected));
        assert!(variables.is_empty());
    }

    #[test]
    fn file_that_no_manifest_can_hold_is_refused() {
        let env = SuiteFilesEnv::default();
        let mut files = env.files.borrow_mut();
        files.insert("suite.toml".to_owned(), vec![b'#', 0xff]);
        drop(files);
        let refused = env.files_beside("suite.toml").unwrap_err();
        assert_eq!(refused.usage_parts().0, "suite.toml is not UTF-8");
    }
}
