//! Journals of sweeps and suites, from which a stopped study is resumed.

pub(crate) mod journal_file;
pub(crate) mod journal_key;
mod resumable;
pub(crate) mod sweep_journal;
