//! The history: every run is kept in an SQLite file, unless the user does not want it.
//!
//! A *study* is what one command measured on one target: a probe, a fio job. It is kept with its runs as children, and each
//! run is kept when it ends, not when the study does: whatever ends the program takes at most the run that was going on.
//! Figures and labels are tables that SQL can be asked; documents and series are compressed blobs. docs/store.md is the same
//! for users.
//!
//! The file is safe against a crash at any moment (write-ahead log, every commit synchronised) and against several programs
//! at once (transactions that wait for one another). On file systems that several hosts share, each host has a file of its own
//! (`hosts`). A file that is damaged is put aside under another name, never
//! overwritten.

mod aside;
mod blob;
mod earlier_runs;
mod error;
mod headline;
mod hosts;
mod id;
mod incoming;
mod keeper;
mod open;
mod open_run;
mod place;
mod read;
mod record;
mod reference;
mod run_writer;
mod running;
mod schema;
mod unwritable;
mod whereabouts;
mod write;

pub(crate) use error::{StoreError, meant};
pub(crate) use id::{DIGITS as ID_DIGITS, new as random_id};
pub(crate) use incoming::read_documents;
pub(crate) use keeper::{Keeper, KeepingSession};
pub(crate) use place::Place;
pub(crate) use read::{Filter, Loaded, Summary};
pub(crate) use record::{Document, KeptRun, KeptStudy, probe_document, split_label};
pub(crate) use reference::{LATEST, is_from_the_end};
pub(crate) use whereabouts::{absolute, target_here};
pub(crate) use write::Imported;

use rusqlite::Connection;

/// An open history.
#[derive(Debug)]
pub(crate) struct Store {
    connection: Connection,
    place: Place,
    /// Whether it is a copy of the files of several hosts, which nothing can be written to.
    is_merged: bool,
}

#[cfg(test)]
mod tests;
