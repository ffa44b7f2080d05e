use super::*;
use crate::store::open::WITHOUT_LOCKS;
use crate::store::{Filter, Imported, KeptStudy, Summary, read_documents};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A directory that two hosts share, removed at the end.
struct Shared(PathBuf);

impl Shared {
    fn new(name: &str) -> Shared {
        let path =
            std::env::temp_dir().join(format!("iosonde-hosts-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Shared(path)
    }

    /// The history without a host.
    fn place(&self) -> Place {
        Place {
            path: self.0.join("history.db"),
            is_named: true,
            shared: None,
        }
    }

    fn host(&self, name: &str) -> Place {
        self.place().written_by(name)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn study(started_at_ms: u64) -> KeptStudy {
    let text = include_str!("../../../../result/tests/fio-json/two-jobs.json");
    let mut study = read_documents(text).unwrap().remove(0);
    study.started_at_ms = started_at_ms;
    study.runs[0].started_at_ms = started_at_ms;
    study
}

fn keep(place: &Place, starts: impl IntoIterator<Item = u64>) {
    let mut store = Store::open_or_make(place).unwrap().store;
    for start in starts {
        let imported = store.import(&[(study(start), "f".to_owned())]).unwrap();
        assert!(matches!(imported[..], [Imported::New(_)]));
    }
}

fn list(place: &Place) -> Vec<Summary> {
    Store::open(place)
        .unwrap()
        .list(&Filter::default())
        .unwrap()
}

fn starts(place: &Place) -> Vec<u64> {
    list(place).iter().map(|one| one.started_at_ms).collect()
}

/// Two hosts keep results at the same time, while a third one reads. Each result has its own time.
fn two_hosts_write(shared: &Shared, has_locks: bool) {
    const EACH: u64 = 15;
    // Where locks hold within a host, two programs of it write.
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
        // Each with its figures, although runs of both files have the same numbers.
        let is_whole = |one: &Summary| one.parts.len() == 2 && one.parts == found[0].parts;
        assert!(found.iter().all(is_whole));
    }
}

#[test]
fn two_hosts_with_locks_lose_no_row_and_have_none_twice() {
    two_hosts_write(&Shared::new("locks"), true);
}

#[test]
fn two_hosts_without_locks_lose_no_row_and_have_none_twice() {
    two_hosts_write(&Shared::new("no-locks"), false);
}

#[test]
fn file_of_a_host_has_no_write_ahead_log() {
    let shared = Shared::new("mode");
    let mode = |place: &Place| -> String {
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
fn result_imported_on_two_hosts_is_there_once() {
    let shared = Shared::new("imported");
    keep(&shared.host("a"), [1, 2]);
    keep(&shared.host("b"), [2, 3]);
    assert_eq!(starts(&shared.host("a")), [1, 2, 3]);
}

#[test]
fn history_of_before_is_read_with_its_log() {
    let shared = Shared::new("before");
    let mut old = Store::open_or_make(&shared.place()).unwrap().store;
    old.import(&[(study(1), "f".to_owned())]).unwrap();
    // Still open: what was kept is in the log.
    keep(&shared.host("a"), [2]);
    assert_eq!(starts(&shared.host("a")), [1, 2]);
    drop(old);
    assert_eq!(starts(&shared.host("b")), [1, 2]);
}

/// What a killed host leaves: a transaction that has begun to change the file, and its journal.
#[test]
fn unfinished_transaction_of_a_killed_host_is_left_to_it() {
    let shared = Shared::new("killed");
    let (live, killed) = (shared.host("live"), shared.host("killed"));
    keep(&live, 1..=20);
    let connection = connect(&live.path, OpenFlags::empty()).unwrap();
    connection
        .execute_batch("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; DELETE FROM figure; DELETE FROM part;")
        .unwrap();
    let journal = |place: &Place| with_suffix(&place.path, "-journal");
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
fn damaged_file_of_one_host_hides_no_other() {
    let shared = Shared::new("damaged");
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
fn only_its_own_results_are_removed_by_a_host() {
    let shared = Shared::new("removed");
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
fn nothing_is_there_before_a_host_has_kept_something() {
    let shared = Shared::new("nothing");
    assert!(matches!(
        Store::open(&shared.host("a")),
        Err(StoreError::Empty(_))
    ));
    let gone = shared.place();
    let gone = Place {
        path: shared.0.join("no/history.db"),
        ..gone
    }
    .written_by("a");
    assert!(matches!(Store::open(&gone), Err(StoreError::Empty(_))));
}

#[test]
fn names_of_files_and_hosts() {
    let file = |path: &str| file_of_host(Path::new(path), "n1-3fa9c1");
    assert_eq!(file("/h/history.db"), Path::new("/h/history.n1-3fa9c1.db"));
    assert_eq!(file("lab"), Path::new("lab.n1-3fa9c1.db"));
    assert_eq!(host_name("n1.lab/x", ""), "n1-lab-x");
    assert_ne!(host_name("n1", "a"), host_name("n1", "b"));
    assert!(host_name("n1", "a").starts_with("n1-"));
}

#[test]
fn shared_file_systems_are_known_by_their_numbers() {
    for shared in [0x6969, 0x6573_5546, 0xff53_4d42, 0xffff_ffff_ff53_4d42] {
        assert!(is_shared(shared), "{shared:x}");
    }
    // ext4, XFS, tmpfs, overlayfs.
    for local in [0xef53, 0x5846_5342, 0x0102_1994, 0x794c_7630] {
        assert!(!is_shared(local), "{local:x}");
    }
    assert!(!is_on_shared_file_system(Path::new(
        "/proc/no/such/history.db"
    )));
}
