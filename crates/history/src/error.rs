//! Errors of the history and their remedies.

use super::write_obstacle;
use iosonde_job::diagnostic::nearest;
use iosonde_job::errno::describe;
use iosonde_job::quote_shell_word;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why an operation on the history failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No directory for the history is known.
    #[error("the history has no directory: neither HOME nor XDG_DATA_HOME is set")]
    NoPlace,
    /// A newer program wrote the history.
    #[error(
        "{path}: a newer iosonde wrote this history (version {found}; this iosonde reads versions \
         up to {known})"
    )]
    Newer {
        /// File of the history.
        path: PathBuf,
        /// Version of its schema.
        found: i64,
        /// Newest version that this program reads.
        known: i64,
    },
    /// The file is no history.
    #[error("{0}: not a history of iosonde")]
    NotAStore(PathBuf),
    /// The history is damaged.
    #[error("{path}: the history is damaged: {problem}")]
    Damaged {
        /// File of the history.
        path: PathBuf,
        /// Text of the error.
        problem: String,
    },
    /// The user or the file system has no write permission.
    #[error("{}: the history cannot be written: {}", .0.display(), describe(.1))]
    ReadOnly(PathBuf, std::io::Error),
    /// Read-only, with a log that must be merged before reading.
    #[error(
        "{0}: the history cannot be written, and results in {0}-wal are not merged into it yet"
    )]
    Unfinished(PathBuf),
    /// The file system is full.
    #[error("{0}: the history cannot be written: its file system is full")]
    Full(PathBuf),
    /// Any other error of SQLite.
    #[error("{path}: {problem}")]
    Sqlite {
        /// File of the history.
        path: PathBuf,
        /// Text of the error.
        problem: String,
    },
    /// An error of the operating system.
    #[error("{}: {}", .0.display(), describe(.1))]
    Io(PathBuf, std::io::Error),
    /// Another host writes the file of the study.
    #[error("{id} is in {path}, which belongs to another host")]
    OtherHost {
        /// Id of the study.
        id: String,
        /// File of the history.
        path: PathBuf,
    },
    /// A stored document cannot be parsed.
    #[error("{what}: the stored document cannot be read: {problem}")]
    Unreadable {
        /// The document.
        what: String,
        /// Text of the error.
        problem: String,
    },
    /// No result has this id.
    #[error("there is no result {name:?} in the history")]
    Unknown {
        /// Name that the user gave.
        name: String,
        /// Similar names that exist.
        near: Vec<String>,
    },
    /// The result has no such run.
    #[error("{study} has no run {run:?}: it has {}", run_count_text(*.count))]
    NoSuchRun {
        /// Short id of the result.
        study: String,
        /// Number or name that the user gave.
        run: String,
        /// Number of runs of the result.
        count: usize,
        /// Similar names that exist.
        near: Vec<String>,
    },
    /// The history has fewer results than `latest~N` counts back.
    #[error("there is no {name}: the history holds {}", results(*.has))]
    TooFew {
        /// Name that the user gave.
        name: String,
        /// Number of results in the history.
        has: usize,
    },
    /// Several ids begin with the prefix.
    #[error("the ID prefix {prefix:?} is ambiguous: {}", candidates.join(", "))]
    Ambiguous {
        /// Prefix that the user gave.
        prefix: String,
        /// Short ids that begin with it.
        candidates: Vec<String>,
    },
    /// No result has this label.
    #[error("no result has the label {label}")]
    UnknownLabel {
        /// Label that the user gave.
        label: String,
        /// Similar labels that exist.
        near: Vec<String>,
        /// Keys of all results, if none has the key of the label.
        keys: Vec<String>,
    },
    /// The history to import is the one that would import it.
    #[error("{0}: this file is the history itself")]
    Itself(PathBuf),
    /// There is no history yet.
    #[error("{0}: there is no history yet")]
    Empty(PathBuf),
}

/// Returns the error of a stored document that cannot be parsed.
pub(super) fn unreadable(what: &str, problem: &dyn fmt::Display) -> StoreError {
    StoreError::Unreadable {
        what: what.to_owned(),
        problem: problem.to_string(),
    }
}

impl StoreError {
    /// Converts an error of SQLite, and adds the file's path.
    pub(super) fn sqlite(path: &Path, error: &rusqlite::Error) -> StoreError {
        use rusqlite::ErrorCode::{CannotOpen, DiskFull, ReadOnly, SystemIoFailure};
        let code = error.sqlite_error_code();
        let problem = error.to_string();
        if is_damage(error) {
            let path = path.to_owned();
            return StoreError::Damaged { path, problem };
        }
        // SQLite's message does not name the cause.
        match code {
            Some(DiskFull) => return StoreError::Full(path.to_owned()),
            Some(SystemIoFailure) if write_obstacle::is_full(path) => {
                return StoreError::Full(path.to_owned());
            }
            Some(CannotOpen | ReadOnly) => {
                if let Some(reason) = write_obstacle::reason(path) {
                    return StoreError::ReadOnly(path.to_owned(), reason);
                }
            }
            _ => {}
        }
        let path = path.to_owned();
        StoreError::Sqlite { path, problem }
    }

    /// Whether the user asked for something that does not exist.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            StoreError::Unknown { .. }
                | StoreError::NoSuchRun { .. }
                | StoreError::TooFew { .. }
                | StoreError::Ambiguous { .. }
                | StoreError::UnknownLabel { .. }
                | StoreError::Itself(_)
                | StoreError::Empty(_)
        )
    }

    /// Returns the action that helps.
    pub fn remedy(&self) -> Option<String> {
        match self {
            StoreError::UnknownLabel { label, keys, .. } if !keys.is_empty() => {
                let key = label.split_once('=').map_or(label.as_str(), |(key, _)| key);
                Some(known_keys(key, keys.iter().map(String::as_str)))
            }
            StoreError::Unknown { near, .. } | StoreError::UnknownLabel { near, .. } => {
                Some(meant(near))
            }
            StoreError::NoSuchRun {
                study, count, near, ..
            } => Some(match (&near[..], count) {
                ([], 0) => format!("name the result without a run: {study}"),
                ([], 1) => format!("name its run: {study}.1"),
                ([], count) => format!("name one of {study}.1 to {study}.{count}"),
                (near, _) => format!("did you mean {}?", joined(near)),
            }),
            _ => self.plain_remedy().map(str::to_owned),
        }
    }

    fn plain_remedy(&self) -> Option<&'static str> {
        Some(match self {
            StoreError::NoPlace => "name a file with --store, or measure with --no-save",
            StoreError::Newer { .. } => {
                "use the newer iosonde, or name another file with --store; this file was not \
                 changed"
            }
            StoreError::NotAStore(_) => "name another file with --store; this file was not changed",
            StoreError::Damaged { .. } => {
                "the next stored run renames the damaged file and starts a new history; \
                 `sqlite3 FILE .recover` may recover most results"
            }
            StoreError::Unfinished(_) => {
                "copy both files to a writable directory, and name the copy with --store"
            }
            StoreError::Full(_) => {
                "free some space, name another file with --store, or measure with --no-save"
            }
            StoreError::ReadOnly(..) | StoreError::Sqlite { .. } | StoreError::Io(..) => {
                "name another file with --store, or measure with --no-save"
            }
            StoreError::OtherHost { .. } => {
                "remove the result on the host in the file's name; a file without a host in its \
                 name can be copied to a local disk and named with --store"
            }
            StoreError::Unreadable { .. } => "use the iosonde that stored it, or a newer one",
            StoreError::Unknown { .. }
            | StoreError::NoSuchRun { .. }
            | StoreError::UnknownLabel { .. }
            | StoreError::TooFew { .. } => LIST,
            StoreError::Ambiguous { .. } => "type more of the ID",
            StoreError::Itself(_) => "name the history of another machine",
            StoreError::Empty(_) => {
                "measure something first, e.g. `iosonde probe`, or import results"
            }
        })
    }
}

const LIST: &str = "`iosonde list` lists all results";

/// `did you mean a or b?`, and the command that lists all.
pub fn meant(near: &[String]) -> String {
    match near {
        [] => LIST.to_owned(),
        near => format!("did you mean {}? {LIST}", joined(near)),
    }
}

/// `a or b`, as a shell takes each.
fn joined(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| quote_shell_word(name)).collect();
    names.join(" or ")
}

/// Returns the help for a key that no result has: a similar key, and all keys.
pub fn known_keys<'a>(key: &str, keys: impl IntoIterator<Item = &'a str>) -> String {
    let keys: Vec<&str> = keys.into_iter().collect();
    let all = keys.join(", ");
    match nearest(key, keys.iter().copied()) {
        Some(similar) => format!("did you mean `{similar}`? The keys are {all}"),
        None => format!("the keys are {all}"),
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

/// `2 runs`.
fn run_count_text(count: usize) -> String {
    match count {
        0 => "no runs".to_owned(),
        1 => "1 run".to_owned(),
        _ => format!("{count} runs"),
    }
}

/// Whether SQLite found the file damaged, as opposed to busy, full or forbidden.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseCorrupt | NotADatabase)
    )
}
