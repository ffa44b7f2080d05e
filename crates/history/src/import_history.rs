//! Imports whole histories of other machines, with labels and facts, and exports this one.

use super::connect::connect;
use super::hosts::{CopyDirectory, ORIGIN, copy_new_studies};
use super::id::DIGITS;
use super::open::MAGIC;
use super::read::Filter;
use super::record::labelled_machine;
use super::{HistoryPath, Store, StoreError};
use iosonde_machine::bounded_read;
use rusqlite::{OpenFlags, Transaction, params};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Whether a foreign history has an id that iosonde cannot have made. Ids are cut to their first
/// digits, and are names of files.
const HAS_WRONG_IDS: &str = "SELECT EXISTS (SELECT 1 FROM study \
     WHERE length(CAST(id AS BLOB)) IS NOT ?1 OR id GLOB '*[^0-9a-f]*')";

/// Whether these are the first bytes of a history, or of another SQLite file.
pub fn is_history(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

/// An intact copy of a history, removed on drop.
pub struct HistoryCopy {
    path: PathBuf,
    /// Keeps the copy.
    _directory: CopyDirectory,
}

impl HistoryCopy {
    /// Copies the bytes of a history.
    pub fn from_bytes(bytes: &[u8]) -> Result<HistoryCopy, StoreError> {
        let io = |error| StoreError::Io(std::env::temp_dir(), error);
        let directory = CopyDirectory::create().map_err(io)?;
        let read = directory.path().join("standard-input.db");
        std::fs::write(&read, bytes).map_err(io)?;
        HistoryCopy::checked(&read)
    }

    fn checked(file: &Path) -> Result<HistoryCopy, StoreError> {
        let io = |error| StoreError::Io(std::env::temp_dir(), error);
        let directory = CopyDirectory::create().map_err(io)?;
        Ok(HistoryCopy {
            path: directory.copy(file)?,
            _directory: directory,
        })
    }
}

/// A study that was imported with a history.
#[derive(Debug, PartialEq, Eq)]
pub struct ImportedStudy {
    /// The id, as in the other history.
    pub id: String,
    /// `probe`, `fio`, ...
    pub kind: String,
    /// Target of the study.
    pub target: String,
    /// Machine that the study ran on, if known.
    pub machine: Option<String>,
}

/// The studies of an imported history.
#[derive(Debug, PartialEq, Eq)]
pub struct ImportedStudies {
    /// New studies, the oldest first.
    pub new: Vec<ImportedStudy>,
    /// Number of studies that this history already held.
    pub known: usize,
}

impl Store {
    /// Copies and checks a history to import. Fails for the file of this history. `None`: it is
    /// something else, or cannot be read.
    pub fn copy_history(&self, file: &Path) -> Option<Result<HistoryCopy, StoreError>> {
        // Reading the start of a pipe would take it from the document.
        if !file.is_file() {
            return None;
        }
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        // Closing a second descriptor of an open history would release its locks.
        if real(file).is_some_and(|file| Some(file) == real(&self.place.path)) {
            return Some(Err(StoreError::Itself(file.to_owned())));
        }
        let mut start = Vec::new();
        let opened = File::open(file).ok()?;
        opened
            .take(MAGIC.len() as u64)
            .read_to_end(&mut start)
            .ok()?;
        is_history(&start).then(|| HistoryCopy::checked(file))
    }

    /// Imports all studies of a history that are new, with `labels`. `from` names the history.
    pub fn import_history(
        &mut self,
        copy: &HistoryCopy,
        from: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<ImportedStudies, StoreError> {
        self.check_studies(copy, from)?;
        let path = copy.path.to_string_lossy();
        self.connection
            .execute_batch(ORIGIN)
            .and_then(|()| self.connection.execute("ATTACH ?1 AS host", [&*path]))
            .map_err(|error| self.wrong(&error))?;
        let imported = self.transaction(|transaction| add_studies(transaction, from, labels));
        let detached = self.connection.execute("DETACH host", []);
        let imported = imported?;
        detached.map_err(|error| self.wrong(&error))?;
        Ok(imported)
    }

    /// Fails if the studies of a history cannot be listed: no result could be listed after its
    /// import.
    fn check_studies(&self, copy: &HistoryCopy, from: &str) -> Result<(), StoreError> {
        let wrong = |error: rusqlite::Error| StoreError::sqlite(Path::new(from), &error);
        let connection = connect(&copy.path, OpenFlags::empty()).map_err(wrong)?;
        let has_wrong_ids: bool = connection
            .query_row(HAS_WRONG_IDS, [DIGITS as i64], |row| row.get(0))
            .map_err(wrong)?;
        if has_wrong_ids {
            return Err(StoreError::NotAStore(from.into()));
        }
        let theirs = Store {
            connection,
            place: HistoryPath {
                path: from.into(),
                ..self.place.clone()
            },
            is_merged: false,
            warnings: Vec::new(),
        };
        theirs.list(&Filter::default()).map(drop)
    }

    /// Returns this history as the bytes of one file, without a log beside it.
    pub fn exported(&self) -> Result<Vec<u8>, StoreError> {
        let io = |error| StoreError::Io(std::env::temp_dir(), error);
        let directory = CopyDirectory::create().map_err(io)?;
        let path = directory.path().join("history.db");
        self.connection
            .execute("VACUUM INTO ?1", [&*path.to_string_lossy()])
            .map_err(|error| StoreError::sqlite(&path, &error))?;
        bounded_read::read_file(&path, bounded_read::document_bytes_max()).map_err(io)
    }
}

/// Adds the studies of the attached history `host`.
fn add_studies(
    transaction: &Transaction<'_>,
    from: &str,
    labels: &BTreeMap<String, String>,
) -> rusqlite::Result<ImportedStudies> {
    // A study that was imported before its end is replaced.
    transaction.execute(
        "DELETE FROM main.study WHERE finished_at_ms IS NULL AND imported_from IS NOT NULL \
         AND id IN (SELECT id FROM host.study WHERE finished_at_ms IS NOT NULL)",
        [],
    )?;
    copy_new_studies(transaction, from)?;
    transaction.execute(
        "UPDATE main.study SET imported_from = coalesce(imported_from, ?1) \
         WHERE id IN (SELECT study FROM temp.origin)",
        [from],
    )?;
    for (key, value) in labels {
        transaction.execute(
            "INSERT OR REPLACE INTO main.label (study, key, value) \
             SELECT study, ?1, ?2 FROM temp.origin",
            params![key, value],
        )?;
    }
    if let Some(machine) = labelled_machine(labels) {
        transaction.execute(
            "UPDATE main.study SET machine = ?1 WHERE id IN (SELECT study FROM temp.origin)",
            [machine],
        )?;
    }
    let known: i64 = transaction.query_row(
        "SELECT count(*) FROM host.study WHERE id NOT IN (SELECT study FROM temp.origin)",
        [],
        |row| row.get(0),
    )?;
    let mut select = transaction.prepare(
        "SELECT id, kind, target, machine FROM main.study \
         WHERE id IN (SELECT study FROM temp.origin) ORDER BY started_at_ms, rowid",
    )?;
    let new = select.query_map([], |row| {
        Ok(ImportedStudy {
            id: row.get(0)?,
            kind: row.get(1)?,
            target: row.get(2)?,
            machine: row.get(3)?,
        })
    })?;
    let new = new.collect::<rusqlite::Result<Vec<ImportedStudy>>>()?;
    transaction.execute("DELETE FROM temp.origin", [])?;
    Ok(ImportedStudies {
        new,
        known: usize::try_from(known).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{TestHistory, run_on};

    fn import(ours: &TestHistory, theirs: &TestHistory) -> ImportedStudies {
        let mut store = Store::open_or_make(&ours.place).unwrap().store;
        let copy = store.copy_history(&theirs.place.path).unwrap().unwrap();
        let labels = [("region".to_owned(), "asia-east1".to_owned())].into();
        store.import_history(&copy, "n1.db", &labels).unwrap()
    }

    #[test]
    fn imported_history_keeps_runs_facts_and_labels() {
        let (ours, theirs) = (TestHistory::new("ours"), TestHistory::new("theirs"));
        ours.import(run_on("debian", "8", "4.7.0-0.bpo.1-amd64"));
        theirs.import(run_on("centos", "7", "3.10.0-327.36.2.el7"));
        let imported = import(&ours, &theirs);
        assert_eq!((imported.new.len(), imported.known), (1, 0));
        let [first, second] = &ours.list_studies()[..] else {
            panic!("not two studies");
        };
        assert_eq!(first.labels.get("region"), None);
        assert_eq!(second.id, imported.new[0].id);
        assert_eq!(second.facts["os"].to_string(), "centos 7");
        assert_eq!(second.labels["region"], "asia-east1");
        assert_eq!(second.parts[0].figures.len(), 1);
        let again = import(&ours, &theirs);
        assert_eq!((again.new.len(), again.known), (0, 1));
    }

    #[test]
    fn study_imported_before_its_end_is_replaced() {
        let (ours, theirs) = (
            TestHistory::new("ours-open"),
            TestHistory::new("theirs-open"),
        );
        theirs.import(run_on("debian", "8", "4.7.0"));
        let connection = rusqlite::Connection::open(&theirs.place.path).unwrap();
        let set = |end: Option<i64>| {
            connection
                .execute("UPDATE study SET finished_at_ms = ?1", [end])
                .unwrap();
        };
        set(None);
        assert_eq!(import(&ours, &theirs).new.len(), 1);
        assert_eq!(ours.list_studies()[0].finished_at_ms, None);
        set(Some(7));
        assert_eq!(import(&ours, &theirs).new.len(), 1);
        assert_eq!(ours.list_studies().len(), 1);
        assert_eq!(ours.list_studies()[0].finished_at_ms, Some(7));
    }

    #[test]
    fn exported_history_is_imported_from_its_bytes() {
        let (ours, theirs) = (
            TestHistory::new("ours-bytes"),
            TestHistory::new("theirs-bytes"),
        );
        theirs.import(run_on("debian", "8", "4.7.0"));
        let bytes = theirs.store().exported().unwrap();
        assert!(is_history(&bytes) && !is_history(b"{}"));
        let copy = HistoryCopy::from_bytes(&bytes).unwrap();
        let mut store = Store::open_or_make(&ours.place).unwrap().store;
        let imported = store.import_history(&copy, "-", &BTreeMap::new()).unwrap();
        assert_eq!(imported.new.len(), 1);
        // The file that the other machine imported the study from stays.
        assert_eq!(
            ours.list_studies()[0].imported_from.as_deref(),
            Some("file")
        );
        assert!(HistoryCopy::from_bytes(b"SQLite format 3\0").is_err());
    }

    #[test]
    fn history_that_could_not_be_listed_is_refused() {
        let (ours, theirs) = (TestHistory::new("ours-ids"), TestHistory::new("theirs-ids"));
        ours.import(run_on("debian", "8", "4.7.0"));
        theirs.import(run_on("centos", "7", "3.10.0"));
        let connection = rusqlite::Connection::open(&theirs.place.path).unwrap();
        connection
            .execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM label; DELETE FROM fact_value")
            .unwrap();
        for id in [
            "../../../etc",
            "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
            "f",
            "0123456789\0",
        ] {
            connection
                .execute("UPDATE study SET id = ?1", [id])
                .unwrap();
            let mut store = Store::open_or_make(&ours.place).unwrap().store;
            let copy = store.copy_history(&theirs.place.path).unwrap().unwrap();
            let error = store.import_history(&copy, "n1.db", &BTreeMap::new());
            assert!(matches!(error, Err(StoreError::NotAStore(_))), "{id:?}");
        }
        connection
            .execute_batch(
                "UPDATE study SET id = '0123456789'; UPDATE run SET study = '0123456789';
                 INSERT INTO part (run, number, name, rw, bs, iodepth, numjobs)
                 SELECT id, 99, 'x', 'read', '4k', -1, 1 FROM run",
            )
            .unwrap();
        let mut store = Store::open_or_make(&ours.place).unwrap().store;
        let copy = store.copy_history(&theirs.place.path).unwrap().unwrap();
        let error = store.import_history(&copy, "n1.db", &BTreeMap::new());
        assert!(error.unwrap_err().to_string().starts_with("n1.db: "));
        assert_eq!(ours.list_studies().len(), 1);
    }

    #[test]
    fn history_is_not_imported_into_itself() {
        let ours = TestHistory::new("itself");
        ours.import(run_on("debian", "8", "4.7.0"));
        let store = ours.store();
        let error = store.copy_history(&ours.place.path).unwrap().err().unwrap();
        assert!(matches!(error, StoreError::Itself(_)), "{error}");
        assert!(store.copy_history(Path::new("/dev/null")).is_none());
    }
}
