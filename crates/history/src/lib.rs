//! The history: an SQLite file of all runs. `--no-save` and `IOSONDE_NO_SAVE` exclude a run.
//!
//! A *study* is what one command measured on one target: a probe, a fio job. Its runs are its
//! children. Each run is written when it ends, so that a killed program loses at most the run in
//! progress. Figures and labels are tables to query with SQL; documents and series are compressed
//! blobs. docs/store.md describes the same for users.
//!
//! The file survives a crash at any moment (write-ahead log, synchronous commits) and concurrent
//! programs (transactions wait for one another). On a file system that hosts share, each host
//! writes its own file (`hosts`). A damaged file is renamed, never overwritten.

mod aside;
mod blob;
mod connect;
mod earlier_runs;
mod error;
mod headline;
mod history_hook;
mod history_path;
mod history_writer;
mod host_file;
mod hosts;
mod id;
mod import_history;
mod incoming;
mod interval_blocks;
mod key_filter;
mod open;
mod open_run;
mod part_roles;
mod raw_run;
mod read;
mod record;
mod reference;
mod run_writer;
mod running;
mod schema;
mod study_facts;
mod target_name;
mod unwritable;
mod write;
mod write_obstacle;

pub use error::{StoreError, known_keys, meant};
pub use headline::{Headline, HeadlineDepths, HeadlineRate};
pub use history_hook::{HistoryHook, StoredRuns};
pub use history_path::HistoryPath;
pub use history_writer::{HistoryOptions, HistoryWriter};
pub use id::{DIGITS as ID_DIGITS, random_id};
pub use import_history::{HistoryCopy, ImportedStudies, ImportedStudy, is_history};
pub use incoming::read_documents;
pub use read::{Filter, Loaded, StudySummary};
pub use record::{RunDocument, RunRecord, StudyRecord, probe_document, split_label};
pub use reference::{LATEST, is_from_the_end};
pub use target_name::{absolute, target_here};
pub use write::Imported;

use rusqlite::Connection;

/// Key of the label that the results of one command on several targets share. Tables hide it.
pub const TOGETHER: &str = "together";

/// An open history.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    place: HistoryPath,
    /// Whether this is a merged copy of the files of several hosts, which is read-only.
    is_merged: bool,
    warnings: Vec<String>,
}

impl Store {
    /// Files of other hosts that could not be read, one text each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

#[cfg(test)]
mod csi_tests;
#[cfg(test)]
mod lifecycle_tests;
#[cfg(test)]
mod tests;
