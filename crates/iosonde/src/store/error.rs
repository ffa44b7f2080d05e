//! What can be wrong with the history, and what to do about it.

use super::unwritable;
use std::path::{Path, PathBuf};

/// Why the history cannot do what is asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// No directory is known in which the history could be.
    #[error("there is no place for the history: neither HOME nor XDG_DATA_HOME is set")]
    NoPlace,
    /// A newer program wrote it.
    #[error(
        "{path}: this history was written by a newer iosonde (its version is {found}; {known} is the newest that this one knows)"
    )]
    Newer {
        path: PathBuf,
        found: i64,
        known: i64,
    },
    /// A file that is something else.
    #[error("{0}: this is not a history of iosonde")]
    NotAStore(PathBuf),
    /// It is one, but damaged.
    #[error("{path}: the history is damaged: {problem}")]
    Damaged { path: PathBuf, problem: String },
    /// The user or the file system lets nobody write it.
    #[error("{0}: the history cannot be written: {1}")]
    ReadOnly(PathBuf, std::io::Error),
    /// It cannot be written, and must be before it can be read.
    #[error("{0}: the history cannot be written, and {0}-wal holds results that are not in it yet")]
    Unfinished(PathBuf),
    /// There is no room for more.
    #[error("{0}: the history cannot be written: no room is left on its file system")]
    Full(PathBuf),
    /// SQLite has an error.
    #[error("{path}: {problem}")]
    Sqlite { path: PathBuf, problem: String },
    /// The operating system has one.
    #[error("{0}: {1}")]
    Io(PathBuf, std::io::Error),
    /// Another host writes the file that it is in.
    #[error("{id} is in {path}, which this host does not write")]
    OtherHost { id: String, path: PathBuf },
    /// What is kept cannot be read.
    #[error("{what}: what is kept cannot be read: {problem}")]
    Unreadable { what: String, problem: String },
    /// No result has this id.
    #[error("there is no result {name:?} in the history")]
    Unknown {
        name: String,
        /// Names that are alike and are there.
        near: Vec<String>,
    },
    /// So many results from the end there is none.
    #[error("there is no {name}: the history holds {}", results(*.has))]
    TooFew { name: String, has: usize },
    /// Several have.
    #[error("{prefix:?} is the beginning of several ids: {}", candidates.join(", "))]
    Ambiguous {
        prefix: String,
        candidates: Vec<String>,
    },
    /// No result has this label.
    #[error("no result has the label {label}")]
    UnknownLabel {
        label: String,
        /// Labels that are alike and are there.
        near: Vec<String>,
    },
    /// Nothing has been kept yet.
    #[error("{0}: there is no history yet")]
    Empty(PathBuf),
}

impl StoreError {
    /// From SQLite, with the file's path.
    pub(super) fn sqlite(path: &Path, error: &rusqlite::Error) -> StoreError {
        use rusqlite::ErrorCode::{CannotOpen, DiskFull, ReadOnly, SystemIoFailure};
        let code = error.sqlite_error_code();
        let problem = error.to_string();
        if is_damage(error) {
            let path = path.to_owned();
            return StoreError::Damaged { path, problem };
        }
        // SQLite's words say no more than that it did not work.
        match code {
            Some(DiskFull) => return StoreError::Full(path.to_owned()),
            Some(SystemIoFailure) if unwritable::is_full(path) => {
                return StoreError::Full(path.to_owned());
            }
            Some(CannotOpen | ReadOnly) => {
                if let Some(reason) = unwritable::reason(path) {
                    return StoreError::ReadOnly(path.to_owned(), reason);
                }
            }
            _ => {}
        }
        let path = path.to_owned();
        StoreError::Sqlite { path, problem }
    }

    /// Whether the user asked for something that is not there.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(
            self,
            StoreError::Unknown { .. }
                | StoreError::TooFew { .. }
                | StoreError::Ambiguous { .. }
                | StoreError::UnknownLabel { .. }
                | StoreError::Empty(_)
        )
    }

    /// What to do about it.
    pub(crate) fn remedy(&self) -> Option<String> {
        match self {
            StoreError::Unknown { near, .. } | StoreError::UnknownLabel { near, .. } => {
                Some(meant(near))
            }
            _ => self.plain_remedy().map(str::to_owned),
        }
    }

    fn plain_remedy(&self) -> Option<&'static str> {
        Some(match self {
            StoreError::NoPlace => "name a file with --store, or measure with --no-save",
            StoreError::Newer { .. } => {
                "use the newer iosonde, or another file with --store; it has been left as it is"
            }
            StoreError::NotAStore(_) => {
                "name another file with --store; this one has been left as it is"
            }
            StoreError::Damaged { .. } => {
                "the next run that is kept puts it aside and begins a new one; `sqlite3 FILE .recover` may save most of it"
            }
            StoreError::Unfinished(_) => {
                "copy both files to where they can be written, and name the copy with --store"
            }
            StoreError::Full(_) => {
                "make room there, name another file with --store, or measure with --no-save"
            }
            StoreError::ReadOnly(..) | StoreError::Sqlite { .. } | StoreError::Io(..) => {
                "name another file with --store, or measure with --no-save"
            }
            StoreError::OtherHost { .. } => {
                "remove it on the host that the file is named after; a file without a host in its name can be copied to a local disk and named with --store"
            }
            StoreError::Unreadable { .. } => "use the iosonde that kept it, or a newer one",
            StoreError::Unknown { .. }
            | StoreError::UnknownLabel { .. }
            | StoreError::TooFew { .. } => LIST,
            StoreError::Ambiguous { .. } => "write more of it",
            StoreError::Empty(_) => {
                "measure something first, e.g. `iosonde probe`, or import results"
            }
        })
    }
}

const LIST: &str = "`iosonde list` shows all";

/// `did you mean a or b?`, and where all of them are.
pub(crate) fn meant(near: &[String]) -> String {
    match near {
        [] => LIST.to_owned(),
        near => format!("did you mean {}? {LIST}", near.join(" or ")),
    }
}

/// `2 results`.
fn results(count: usize) -> String {
    match count {
        0 => "no results".to_owned(),
        1 => "1 result".to_owned(),
        _ => format!("{count} results"),
    }
}

/// Whether SQLite found the file damaged, rather than busy, full or forbidden.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseCorrupt | NotADatabase)
    )
}
