//! Files that a run creates, identified by device and inode.
//!
//! Another program can create a file between the check of a name and its use. So missing files are
//! created with `O_EXCL`, created ones are compared when reopened, and no other file is removed.

use super::file_errors::{target_error, unusable_target};
use iosonde_result::run_error::{PathAction, RunError, TargetProblem};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Maximum number of symbolic links followed, as in the kernel.
const LINKS_MAX: usize = 40;

/// Identity of a file, independent of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Identity of the file with this metadata.
    pub(super) fn from_metadata(metadata: &Metadata) -> FileId {
        FileId {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

#[derive(Debug, Clone)]
struct CreatedFile {
    id: FileId,
    /// Path after resolving symbolic links of the job's path.
    behind_links: PathBuf,
}

/// Files that a run has created, by their paths in the jobs. Clones share the list.
#[derive(Debug, Clone, Default)]
pub struct CreatedFiles {
    files: Arc<Mutex<BTreeMap<PathBuf, CreatedFile>>>,
    /// Files created for this run before it started. The run does not remove them.
    before: Arc<BTreeMap<PathBuf, FileId>>,
    /// Whether jobs run commands, which may create files of any name.
    has_commands: bool,
    held: HeldPaths,
}

/// Working files and scratch directories that the caller created and holds open. Clones share the
/// list. Where other users can replace these paths, they are opened by descriptor, not by name.
#[derive(Debug, Clone, Default)]
pub struct HeldPaths {
    held: Arc<Mutex<HeldFileList>>,
}

/// Paths, with the file that each named when the caller opened it.
type HeldFileList = Vec<(PathBuf, Weak<File>)>;

impl HeldPaths {
    /// While `opened` is open, `path` and all paths below it refer to it.
    pub fn hold(&self, path: &Path, opened: &Arc<File>) {
        let mut held = self.lock();
        held.retain(|(_, opened)| opened.strong_count() > 0);
        held.push((path.to_owned(), Arc::downgrade(opened)));
    }

    fn lock(&self) -> MutexGuard<'_, HeldFileList> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Path below /proc/self/fd if the caller holds this path, else the path itself.
    fn reach<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
        let held = self.lock();
        let mut found = held.iter().filter_map(|(name, opened)| {
            let rest = path.strip_prefix(name).ok()?;
            let opened = opened.upgrade()?;
            let descriptor = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
            // Without /proc, only the name is left.
            descriptor.try_exists().ok().filter(|is_there| *is_there)?;
            // Joining an empty path would append a slash.
            Some(match rest.as_os_str().is_empty() {
                true => descriptor,
                false => descriptor.join(rest),
            })
        });
        found.next().map_or(Cow::Borrowed(path), Cow::Owned)
    }

    fn has(&self, path: &Path) -> bool {
        let held = self.lock();
        let mut names = held.iter().filter(|(_, opened)| opened.strong_count() > 0);
        names.any(|(name, _)| name == path)
    }
}

impl CreatedFiles {
    /// An empty list for a run, with the files created before it.
    pub fn after(before: BTreeMap<PathBuf, FileId>) -> CreatedFiles {
        CreatedFiles {
            before: Arc::new(before),
            ..CreatedFiles::default()
        }
    }

    /// Adds the paths that the caller holds.
    pub(crate) fn with_held(self, held: HeldPaths) -> CreatedFiles {
        CreatedFiles { held, ..self }
    }

    /// Sets whether jobs run commands.
    pub(crate) fn with_commands(self, has_commands: bool) -> CreatedFiles {
        CreatedFiles {
            has_commands,
            ..self
        }
    }

    /// Identities of all files created for this run, by path.
    pub fn ids(&self) -> BTreeMap<PathBuf, FileId> {
        let mut ids = (*self.before).clone();
        let files = self.lock();
        ids.extend(files.iter().map(|(path, file)| (path.clone(), file.id)));
        ids
    }

    /// Opens a file that was missing at its check: creates it, or reopens the one this run created.
    /// Returns whether it was created now. `reopens`: `options` include flags that the kernel may
    /// refuse.
    ///
    /// # Errors
    /// Another program has created a file of this name, which is left alone.
    pub(super) fn open_missing(
        &self,
        path: &Path,
        options: &OpenOptions,
        reopens: bool,
    ) -> Result<(File, bool), FileOpenError> {
        if self.held.has(path) {
            return Ok((options.open(self.held.reach(path))?, false));
        }
        // Locked until the file is recorded, so that clones that start together create one file.
        let mut files = self.lock();
        if files.contains_key(path) {
            match self.open_known(&files, path, options) {
                Err(FileOpenError::Io(error)) if error.kind() == ErrorKind::NotFound => {}
                opened => return Ok((opened?, false)),
            }
        }
        let behind_links = behind_links(&self.held.reach(path));
        // Created without these flags: a refused open creates the file nevertheless.
        let made = match reopens {
            true => File::create_new(&behind_links),
            false => options.clone().create_new(true).open(&behind_links),
        };
        match made {
            Ok(file) => {
                let id = FileId::from_metadata(&file.metadata()?);
                files.insert(path.to_owned(), CreatedFile { id, behind_links });
                match reopens {
                    true => Ok((self.open_known(&files, path, options)?, true)),
                    false => Ok((file, true)),
                }
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Ok((self.open_known(&files, path, options)?, false))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file that existed at the check of its name.
    ///
    /// # Errors
    /// The path named a file created for this run, and names another one now.
    pub(super) fn open_existing(
        &self,
        path: &Path,
        options: &OpenOptions,
    ) -> Result<File, FileOpenError> {
        let files = self.lock();
        let is_known = files.contains_key(path) || self.before.contains_key(path);
        match is_known {
            true => self.open_known(&files, path, options),
            false => self.open_by_descriptor(path, options),
        }
    }

    /// Opens the file at a path, or the one that the caller holds for it.
    pub(super) fn open_by_descriptor(
        &self,
        path: &Path,
        options: &OpenOptions,
    ) -> Result<File, FileOpenError> {
        Ok(options.open(self.held.reach(path))?)
    }

    /// Opens a file that was created for this run, by any of its names.
    fn open_known(
        &self,
        files: &BTreeMap<PathBuf, CreatedFile>,
        path: &Path,
        options: &OpenOptions,
    ) -> Result<File, FileOpenError> {
        let is_known = |found: &Metadata| {
            let id = FileId::from_metadata(found);
            let by_name = files.get(path).map(|file| file.id);
            let by_name = by_name.or_else(|| self.before.get(path).copied());
            by_name == Some(id) || self.has_commands || self.is_among(files, id)
        };
        // Checked before the open, which would block on another program's FIFO.
        let reached = self.held.reach(path);
        if !is_known(&reached.metadata()?) {
            return Err(FileOpenError::MadeByOthers);
        }
        let file = options.open(reached)?;
        match is_known(&file.metadata()?) {
            true => Ok(file),
            false => Err(FileOpenError::MadeByOthers),
        }
    }

    /// Whether a file was created for this run.
    pub(super) fn has(&self, id: FileId) -> bool {
        self.is_among(&self.lock(), id)
    }

    fn is_among(&self, files: &BTreeMap<PathBuf, CreatedFile>, id: FileId) -> bool {
        let mut created = files.values();
        created.any(|file| file.id == id) || self.before.values().any(|before| *before == id)
    }

    /// Adds the files that another run has created.
    pub(super) fn extend(&self, other: &CreatedFiles) {
        if Arc::ptr_eq(&self.files, &other.files) {
            return;
        }
        let others = other.lock().clone();
        self.lock().extend(others);
    }

    /// Forgets a file that its job removed: its name and inode may be reused by another file.
    pub(crate) fn forget(&self, path: &Path) {
        self.lock().remove(path);
    }

    /// Removes a created file, if its path still names it.
    pub(super) fn remove(&self, path: &Path) {
        let Some(file) = self.lock().remove(path) else {
            return;
        };
        let found = file.behind_links.symlink_metadata();
        if found.is_ok_and(|found| FileId::from_metadata(&found) == file.id) {
            // An error means that the file is gone already.
            let _ = std::fs::remove_file(&file.behind_links);
        }
    }

    /// Removes all created files, as [`CreatedFiles::remove`] does.
    pub(super) fn remove_all(&self) {
        let paths: Vec<PathBuf> = self.lock().keys().cloned().collect();
        paths.iter().for_each(|path| self.remove(path));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, CreatedFile>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reason why a file of a run cannot be opened.
#[derive(Debug)]
pub(super) enum FileOpenError {
    /// Another program has replaced the file.
    MadeByOthers,
    Io(std::io::Error),
}

impl From<std::io::Error> for FileOpenError {
    fn from(error: std::io::Error) -> FileOpenError {
        FileOpenError::Io(error)
    }
}

impl FileOpenError {
    /// Error of a run that failed `doing` something with a file.
    pub(super) fn into_error(self, path: &Path, doing: PathAction) -> RunError {
        match self {
            FileOpenError::Io(error) => target_error(path, doing, &error),
            FileOpenError::MadeByOthers => unusable_target(path, TargetProblem::CreatedByOthers),
        }
    }
}

/// Resolves symbolic links. The target of the last one may be missing.
fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = path.read_link() else {
            break;
        };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn writing() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.write(true);
        options
    }

    #[test]
    fn dangling_link_stays_after_its_created_file_is_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let (link, data) = (scratch.path().join("link"), scratch.path().join("data"));
        std::os::unix::fs::symlink("data", &link).unwrap();
        let created = CreatedFiles::default();
        assert!(created.open_missing(&link, &writing(), false).unwrap().1);
        assert!(data.is_file());
        created.remove_all();
        assert!(!data.exists() && link.is_symlink());
        created.remove_all();
        assert!(link.is_symlink(), "no created file is left");
    }

    #[test]
    fn concurrently_created_file_is_not_opened_or_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a");
        std::fs::write(&path, "precious").unwrap();
        let created = CreatedFiles::default();
        let refused = created.open_missing(&path, &writing(), false).unwrap_err();
        assert!(
            matches!(refused, FileOpenError::MadeByOthers),
            "{refused:?}"
        );
        created.remove_all();
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
        let commands = created.with_commands(true);
        assert!(!commands.open_missing(&path, &writing(), false).unwrap().1);
    }

    #[test]
    fn held_paths_are_opened_by_descriptor_after_replacement() {
        let scratch = tempfile::tempdir().unwrap();
        let [file, directory, victim] =
            ["file", "directory", "victim"].map(|name| scratch.path().join(name));
        std::fs::create_dir(&directory).unwrap();
        std::fs::create_dir(&victim).unwrap();
        std::fs::write(victim.join("a"), "precious").unwrap();
        let held = HeldPaths::default();
        let opened = Arc::new(File::create_new(&file).unwrap());
        held.hold(&file, &opened);
        let opened_directory = Arc::new(File::open(&directory).unwrap());
        held.hold(&directory, &opened_directory);
        // Another program replaces both by symbolic links.
        let aside = scratch.path().join("aside");
        std::fs::rename(&directory, &aside).unwrap();
        std::os::unix::fs::symlink(&victim, &directory).unwrap();
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(victim.join("a"), &file).unwrap();
        let created = CreatedFiles::default().with_held(held);
        let (mut inner, is_new) = created
            .open_missing(&directory.join("a"), &writing(), false)
            .unwrap();
        inner.write_all(b"measured").unwrap();
        assert!(is_new && aside.join("a").exists());
        for mut outer in [
            created.open_existing(&file, &writing()).unwrap(),
            created.open_missing(&file, &writing(), false).unwrap().0,
        ] {
            outer.write_all(b"measured").unwrap();
        }
        assert_eq!(std::fs::read(victim.join("a")).unwrap(), b"precious");
        created.remove_all();
        assert!(!aside.join("a").exists() && victim.join("a").exists());
    }

    #[test]
    fn replacement_of_a_created_file_is_not_opened_or_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let [path, other, alias] = ["a", "b", "c"].map(|name| scratch.path().join(name));
        let created = CreatedFiles::default();
        created.open_missing(&path, &writing(), false).unwrap();
        std::fs::hard_link(&path, &alias).unwrap();
        assert!(
            !created.open_missing(&alias, &writing(), false).unwrap().1,
            "a file of this run by another name"
        );
        let later = CreatedFiles::after(created.ids());
        later.open_existing(&path, &writing()).unwrap();
        std::fs::write(&other, "precious").unwrap();
        std::fs::rename(&other, &path).unwrap();
        for refused in [
            created.open_existing(&path, &writing()).err(),
            created.open_missing(&path, &writing(), false).err(),
            later.open_existing(&path, &writing()).err(),
        ] {
            assert!(
                matches!(refused, Some(FileOpenError::MadeByOthers)),
                "{refused:?}"
            );
        }
        created.remove_all();
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }
}
