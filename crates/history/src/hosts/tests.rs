use super::*;
use crate::connect::WITHOUT_LOCKS;
use crate::tests::study;
use crate::{Filter, Imported, StudySummary};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A directory that two hosts share, removed on drop.
struct SharedDirectory(PathBuf);

impl SharedDirectory {
    fn new(name: &str) -> SharedDirectory {
        let path =
            std::env::temp_dir().join(format!("iosonde-hosts-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        SharedDirectory(path)
    }

    /// The history without a host name.
    fn place(&self) -> HistoryPath {
        HistoryPath {
            path: self.0.join("history.db"),
            is_named: true,
            shared: None,
        }
    }

    fn host(&self, name: &str) -> HistoryPath {
        self.place().written_by(name)
    }
}

impl Drop for SharedDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn keep(place: &HistoryPath, starts: impl IntoIterator<Item = u64>) {
    let mut store = Store::open_or_make(place).unwrap().store;
    for start in starts {
        let imported = store.import(&[(study(start), "f".to_owned())]).unwrap();
        assert!(matches!(imported[..], [Imported::New(_)]));
    }
}

fn list(place: &HistoryPath) -> Vec<StudySummary> {
    Store::open(place)
        .unwrap()
        .list(&Filter::default())
        .unwrap()
}

fn starts(place: &HistoryPath) -> Vec<u64> {
    list(place).iter().map(|one| one.started_at_ms).collect()
}

/// Two hosts write while a third one reads. Each result has its own start time.
fn two_hosts_write(shared: &SharedDirectory, has_locks: bool) {
    const EACH: u64 = 15;
    // Where locks work within a host, two programs of each host write.
    let programs: &[(&str, u64)] = match has_locks {
        true => &[("a", 0), ("b", 1), ("a", 2), ("b", 3)],
        false => &[("a", 0), ("b", 1)],
    };
    let is_over = AtomicBool::new(false);
    let reader = || {
        WITHOUT_LOCKS.set(!has_locks);
        let mut most = 0;
        while !is_over.load(Relaxed) {
            let found = match Store::open(&shared.host("c")) {
                Ok(store) => store.list(&Filter::default()).unwrap(),
                Err(StoreError::Empty(_)) => continue,
                Err(error) => panic!("{error}"),
            };
            let mut ids: Vec<&str> = found.iter().map(|one| &*one.id).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), found.len(), "twice");
            assert!(found.len() >= most, "{} after {most}", found.len());
            most = found.len();
        }
    };
    std::thread::scope(|scope| {
        let reader = scope.spawn(reader);
        let writers = programs.iter().map(|(host, number)| {
            scope.spawn(move || {
                WITHOUT_LOCKS.set(!has_locks);
                keep(&shared.host(host), number * EACH..(number + 1) * EACH);
            })
        });
        let writers: Vec<_> = writers.collect();
        let written: Vec<_> = writers.into_iter().map(|one| one.join()).collect();
        is_over.store(true, Relaxed);
        reader.join().unwrap();
        written.into_iter().for_each(|one| one.unwrap());
    });
    let all: Vec<u64> = (0..programs.len() as u64 * EACH).collect();
    for host in ["a", "b", "c"] {
        let found = list(&shared.host(host));
        let starts: Vec<u64> = found.iter().map(|one| one.started_at_ms).collect();
        assert_eq!(starts, all, "host {host}");
        // Each study has its own figures, although row ids of runs repeat between files.
        let is_whole = |one: &StudySummary| one.parts.len() == 2 && one.parts == found[0].parts;
        assert!(found.iter().all(is_whole));
    }
}

#[test]
fn hosts_with_locks_neither_lose_nor_duplicate_rows() {
    two_hosts_write(&SharedDirectory::new("locks"), true);
}

#[test]
fn hosts_without_locks_neither_lose_nor_duplicate_rows() {
    two_hosts_write(&SharedDirectory::new("no-locks"), false);
}

#[test]
fn host_file_has_no_write_ahead_log() {
    let shared = SharedDirectory::new("mode");
    let mode = |place: &HistoryPath| -> String {
        let store = Store::open_or_make(place).unwrap().store;
        let pragma = |row: &rusqlite::Row<'_>| row.get(0);
        let mode = store
            .connection
            .pragma_query_value(None, "journal_mode", pragma);
        mode.unwrap()
    };
    assert_eq!(mode(&shared.host("a")), "delete");
    assert_eq!(mode(&shared.place()), "wal");
}

#[test]
fn result_imported_on_two_hosts_is_listed_once() {
    let shared = SharedDirectory::new("imported");
    keep(&shared.host("a"), [1, 2]);
    keep(&shared.host("b"), [2, 3]);
    assert_eq!(starts(&shared.host("a")), [1, 2, 3]);
}

#[test]
fn history_without_host_is_read_with_its_log() {
    let shared = SharedDirectory::new("before");
    let mut old = Store::open_or_make(&shared.place()).unwrap().store;
    old.import(&[(study(1), "f".to_owned())]).unwrap();
    // The store is still open, so its result is in the log.
    keep(&shared.host("a"), [2]);
    assert_eq!(starts(&shared.host("a")), [1, 2]);
    drop(old);
    assert_eq!(starts(&shared.host("b")), [1, 2]);
}

/// A killed host leaves a partly written transaction and its journal.
#[test]
fn reader_leaves_unfinished_transaction_of_killed_host() {
    let shared = SharedDirectory::new("killed");
    let (live, killed) = (shared.host("live"), shared.host("killed"));
    keep(&live, 1..=20);
    let connection = connect(&live.path, OpenFlags::empty()).unwrap();
    connection
        .execute_batch(
            "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; DELETE FROM figure; \
             DELETE FROM part;",
        )
        .unwrap();
    let journal = |place: &HistoryPath| with_suffix(&place.path, "-journal");
    fs::copy(&live.path, &killed.path).unwrap();
    fs::copy(journal(&live), journal(&killed)).unwrap();
    connection.execute_batch("ROLLBACK").unwrap();
    drop(connection);
    fs::remove_file(&live.path).unwrap();
    let bytes = || {
        (
            fs::read(&killed.path).unwrap(),
            fs::read(journal(&killed)).unwrap(),
        )
    };
    let before = bytes();
    let found = list(&shared.host("reader"));
    assert_eq!(found.len(), 20);
    assert!(found.iter().all(|one| !one.parts.is_empty()));
    assert!(bytes() == before, "a reader has changed them");
}

#[test]
fn damaged_host_file_does_not_hide_others() {
    let shared = SharedDirectory::new("damaged");
    keep(&shared.host("a"), [1]);
    keep(&shared.host("b"), [2]);
    let path = shared.host("a").path;
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096..].fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(starts(&shared.host("b")), [2]);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    fs::write(shared.0.join("history.other.db"), "something else").unwrap();
    assert_eq!(starts(&shared.host("b")), [2]);
}

#[test]
fn host_removes_only_its_own_results() {
    let shared = SharedDirectory::new("removed");
    keep(&shared.host("a"), [1]);
    keep(&shared.host("b"), [2, 3]);
    let mut store = Store::open(&shared.host("b")).unwrap();
    let ids: Vec<String> = list(&shared.host("b"))
        .into_iter()
        .map(|one| one.id)
        .collect();
    match store.remove(&ids).unwrap_err() {
        StoreError::OtherHost { id, path } => {
            assert_eq!((&id, path), (&ids[0], shared.host("a").path));
        }
        other => panic!("{other}"),
    }
    assert_eq!(starts(&shared.host("b")), [1, 2, 3]);
    store.remove(&ids[1..2]).unwrap();
    assert_eq!(starts(&shared.host("a")), [1, 3]);
}

#[test]
fn shared_history_without_files_is_empty() {
    let shared = SharedDirectory::new("nothing");
    assert!(matches!(
        Store::open(&shared.host("a")),
        Err(StoreError::Empty(_))
    ));
    let gone = shared.place();
    let gone = HistoryPath {
        path: shared.0.join("no/history.db"),
        ..gone
    }
    .written_by("a");
    assert!(matches!(Store::open(&gone), Err(StoreError::Empty(_))));
}
