//! The path of the history.

use super::{StoreError, host_file};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryPath {
    /// The file that this host reads and writes.
    pub path: PathBuf,
    /// Whether the user named the file. Such a file is changed only if it is a history.
    pub is_named: bool,
    /// On a file system that hosts share: the path without the host name. The files of all hosts
    /// are beside it, and are read as one history.
    pub shared: Option<PathBuf>,
}

impl HistoryPath {
    /// Returns the file that `--store` or `IOSONDE_STORE` names, else the default in the XDG data
    /// directory. On a file system that hosts share it is the file of this host.
    pub fn find(named: Option<&Path>) -> Result<HistoryPath, StoreError> {
        let place = HistoryPath::from_env(named, |name| std::env::var_os(name))?;
        Ok(match host_file::is_on_shared_file_system(&place.path) {
            true => place.written_by(&host_file::this_host()),
            false => place,
        })
    }

    /// Returns the file of a host beside a shared history.
    pub(super) fn written_by(self, host: &str) -> HistoryPath {
        debug_assert!(self.shared.is_none());
        HistoryPath {
            path: host_file::file_of_host(&self.path, host),
            shared: Some(self.path),
            ..self
        }
    }

    fn from_env(
        named: Option<&Path>,
        var: impl Fn(&str) -> Option<OsString>,
    ) -> Result<HistoryPath, StoreError> {
        let set = |name| {
            var(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let named = named.map(Path::to_owned).or_else(|| set("IOSONDE_STORE"));
        if let Some(path) = named {
            return Ok(HistoryPath {
                path,
                is_named: true,
                shared: None,
            });
        }
        // The XDG base directory specification ignores relative paths.
        let data = set("XDG_DATA_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| Some(set("HOME")?.join(".local/share")))
            .ok_or(StoreError::NoPlace)?;
        Ok(HistoryPath {
            path: data.join("iosonde/history.db"),
            is_named: false,
            shared: None,
        })
    }

    /// Returns why no file exists or can be created. `None`: the file exists or can be created.
    pub fn obstacle(&self) -> Option<std::io::Error> {
        if self.path.exists() {
            return None;
        }
        // Directories are created only for the default path.
        let made = self.path.ancestors().skip(1);
        let looked_at = if self.is_named { 1 } else { usize::MAX };
        for directory in made.take(looked_at) {
            let directory = match directory.as_os_str().is_empty() {
                true => Path::new("."),
                false => directory,
            };
            match std::fs::metadata(directory) {
                Ok(facts) if !facts.is_dir() => {
                    return Some(std::io::ErrorKind::NotADirectory.into());
                }
                Ok(_) => {
                    use rustix::fs::{Access, access};
                    let allowed = access(directory, Access::WRITE_OK | Access::EXEC_OK);
                    return allowed.err().map(std::io::Error::from);
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && !self.is_named => {}
                Err(error) => return Some(error),
            }
        }
        None
    }

    /// Creates the directory of the default path, for the user alone, as XDG requires.
    pub(super) fn make_directory(&self) -> Result<(), StoreError> {
        use std::os::unix::fs::DirBuilderExt;
        let Some(directory) = self.path.parent() else {
            return Ok(());
        };
        if self.is_named || directory.as_os_str().is_empty() {
            return Ok(());
        }
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|error| StoreError::Io(directory.to_owned(), error))
    }
}

/// Returns the path with a suffix on its last component.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obstacle_names_why_history_cannot_be_created() {
        let obstacle = |path: &str| {
            let place = HistoryPath {
                path: PathBuf::from(path),
                is_named: false,
                shared: None,
            };
            place.obstacle().map(|error| error.kind())
        };
        use std::io::ErrorKind;
        let file = std::env::temp_dir().join(format!("iosonde-place-{}", std::process::id()));
        std::fs::write(&file, "").unwrap();
        let below = file.join("iosonde/history.db");
        assert_eq!(
            obstacle(below.to_str().unwrap()),
            Some(ErrorKind::NotADirectory)
        );
        std::fs::remove_file(&file).unwrap();
        assert_eq!(obstacle(below.to_str().unwrap()), None);
    }

    #[test]
    fn history_path_follows_option_environment_and_xdg() {
        let env = |pairs: &'static [(&str, &str)]| {
            move |name: &str| {
                let found = pairs.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            }
        };
        let place =
            |named: Option<&str>, pairs| HistoryPath::from_env(named.map(Path::new), env(pairs));
        let path = |named, pairs| place(named, pairs).unwrap().path;
        let home = &[
            ("HOME", "/h"),
            ("XDG_DATA_HOME", "/x"),
            ("IOSONDE_STORE", "/s.db"),
        ];
        assert_eq!(path(Some("f.db"), home), Path::new("f.db"));
        assert_eq!(path(None, home), Path::new("/s.db"));
        assert_eq!(path(None, &home[..2]), Path::new("/x/iosonde/history.db"));
        let relative = &[
            ("HOME", "/h"),
            ("XDG_DATA_HOME", "x"),
            ("IOSONDE_STORE", ""),
        ];
        assert_eq!(
            path(None, relative),
            Path::new("/h/.local/share/iosonde/history.db")
        );
        assert!(!place(None, relative).unwrap().is_named);
        assert!(matches!(place(None, &[]), Err(StoreError::NoPlace)));
    }
}
