//! The files in which Linux describes itself (`/proc`, `/sys`, ...), under a root directory that
//! tests can replace with a captured tree.

use iosonde_result::host::DeviceNumber;
use rustix::fs::Dev;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

/// The `/proc`, `/sys`, `/dev` and `/etc` of a system: this machine's, or captured ones.
#[derive(Debug, Clone)]
pub struct System {
    root: PathBuf,
    live: bool,
}

impl Default for System {
    fn default() -> Self {
        Self::live()
    }
}

impl System {
    /// This machine.
    pub fn live() -> Self {
        Self {
            root: PathBuf::from("/"),
            live: true,
        }
    }

    /// A captured tree with `proc`, `sys`, ... under `root`. Its symbolic links must be relative.
    pub fn captured(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            live: false,
        }
    }

    /// Whether this is the running machine, so that system calls give answers too.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// The real path of an absolute path of the system.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let inside = path
            .as_ref()
            .components()
            .filter(|part| *part != Component::RootDir);
        self.root.join(inside.collect::<PathBuf>())
    }

    /// The absolute path in the system of a path from [`System::at`].
    pub fn inside(&self, found: &Path) -> PathBuf {
        let relative = found.strip_prefix(&self.root).unwrap_or(found);
        Path::new("/").join(relative)
    }

    /// A file's text without surrounding white space; `None` if it cannot be read or is empty.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.at(path)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A file's text parsed as a number or another simple value.
    pub fn value<T: FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The value of a file that holds 0 or 1.
    pub fn flag(&self, path: impl AsRef<Path>) -> Option<bool> {
        self.value::<u64>(path).map(|value| value != 0)
    }

    /// Names in a directory, sorted; empty if it cannot be read.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.at(path)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_by_key(|name| natural_order(name));
        names
    }

    /// Whether the path exists.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.at(path).exists()
    }

    /// The absolute path after symbolic links are resolved.
    pub fn follow(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let root = fs::canonicalize(&self.root).ok()?;
        let target = fs::canonicalize(self.at(path)).ok()?;
        Some(Path::new("/").join(target.strip_prefix(root).ok()?))
    }

    /// The last component of the path after symbolic links are resolved.
    pub(crate) fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        Some(self.follow(path)?.file_name()?.to_str()?.to_owned())
    }

    /// The block device number of a node in `/dev`: from its inode, or its name in a captured tree.
    pub(crate) fn device_of_node(&self, node: &Path) -> Option<DeviceNumber> {
        if self.live {
            let stat = rustix::fs::stat(node).ok()?;
            let is_block = rustix::fs::FileType::from_raw_mode(stat.st_mode)
                == rustix::fs::FileType::BlockDevice;
            return is_block.then(|| device_number(stat.st_rdev));
        }
        let name = self.follow(node).unwrap_or_else(|| node.to_owned());
        let name = name.strip_prefix("/dev").ok()?.to_str()?.replace('/', "!");
        self.value(format!("/sys/class/block/{name}/dev"))
    }
}

/// Splits a raw `dev_t`.
pub fn device_number(raw: Dev) -> DeviceNumber {
    DeviceNumber {
        major: rustix::fs::major(raw),
        minor: rustix::fs::minor(raw),
    }
}

// A sort key that puts sda2 before sda10.
fn natural_order(name: &str) -> (String, u64, String) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (
        stem.to_owned(),
        name[stem.len()..].parse().unwrap_or(0),
        name.to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_under_the_root_and_back() {
        let system = System::captured("/tmp/captured");
        assert_eq!(
            system.at("/sys/block"),
            Path::new("/tmp/captured/sys/block")
        );
        assert_eq!(
            system.inside(Path::new("/tmp/captured/sys/block")),
            Path::new("/sys/block")
        );
        assert_eq!(System::live().at("/proc/stat"), Path::new("/proc/stat"));
    }

    #[test]
    fn numbered_names_sort_as_numbers() {
        let mut names = ["sda10", "sda2", "sda", "nvme0n1"];
        names.sort_by_key(|name| natural_order(name));
        assert_eq!(names, ["nvme0n1", "sda", "sda2", "sda10"]);
    }

    #[test]
    fn dev_null_is_not_a_block_device() {
        assert_eq!(System::live().device_of_node(Path::new("/dev/null")), None);
    }
}
