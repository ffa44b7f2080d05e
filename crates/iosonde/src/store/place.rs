//! Where the history is.

use super::{StoreError, hosts};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file.
    pub(crate) path: PathBuf,
    /// Whether the user named it. Such a file is only touched if it is a history.
    pub(crate) is_named: bool,
    /// Where several hosts share the file system: the name without this host's. The files of all hosts are beside it, and are
    /// read as one history.
    pub(crate) shared: Option<PathBuf>,
}

impl Place {
    /// The file that `--store` names, else `IOSONDE_STORE`, else one in the XDG data directory.
    /// On a file system that several hosts share it is the file of this host.
    pub(crate) fn find(named: Option<&Path>) -> Result<Place, StoreError> {
        let place = Place::from_env(named, |name| std::env::var_os(name))?;
        Ok(match hosts::is_on_shared_file_system(&place.path) {
            true => place.written_by(&hosts::this_host()),
            false => place,
        })
    }

    /// The file of a host beside a history that hosts share.
    pub(super) fn written_by(self, host: &str) -> Place {
        debug_assert!(self.shared.is_none());
        Place {
            path: hosts::file_of_host(&self.path, host),
            shared: Some(self.path),
            ..self
        }
    }

    fn from_env(
        named: Option<&Path>,
        var: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Place, StoreError> {
        let set = |name| {
            var(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let named = named.map(Path::to_owned).or_else(|| set("IOSONDE_STORE"));
        if let Some(path) = named {
            return Ok(Place {
                path,
                is_named: true,
                shared: None,
            });
        }
        // As the XDG base directory specification has it, a relative path does not count.
        let data = set("XDG_DATA_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| Some(set("HOME")?.join(".local/share")))
            .ok_or(StoreError::NoPlace)?;
        Ok(Place {
            path: data.join("iosonde/history.db"),
            is_named: false,
            shared: None,
        })
    }

    /// Why there is no file and none can be made: the nearest directory that exists cannot be written, or is none.
    pub(crate) fn obstacle(&self) -> Option<std::io::Error> {
        if self.path.exists() {
            return None;
        }
        // Only the default place has directories made for it.
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

    /// Makes its directory. The default one is for the user alone, as XDG asks for.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_of_a_history_is_told() {
        let obstacle = |path: &str| {
            let place = Place {
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
    fn the_first_place_that_is_named() {
        let env = |pairs: &'static [(&str, &str)]| {
            move |name: &str| {
                let found = pairs.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            }
        };
        let place = |named: Option<&str>, pairs| Place::from_env(named.map(Path::new), env(pairs));
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
