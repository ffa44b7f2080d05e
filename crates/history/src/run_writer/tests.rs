//! Tests of runs that are written while they are running.

use super::super::connect::{SHORT_BUSY_TIMEOUT, SHORT_TIMEOUT_PATH};
use super::super::tests::TestHistory;
use super::super::{HistoryWriter, RunDocument};
use iosonde_engine::runner::LocalRunner;
use iosonde_job::env::FakeEnv;
use iosonde_job::plan::Plan;
use iosonde_result::interval::{Interval, Intervals};
use iosonde_result::observer::{INTERVAL_NS_MAX, Observer};
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_result::spill_list::BlockFile;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Timeout of the thread that writes minutes.
const STORED_TIMEOUT: Duration = Duration::from_secs(20);

/// A run of two and a half minutes on a simulated device.
fn plan() -> Plan {
    plan_of("150")
}

fn plan_of(runtime: &str) -> Plan {
    let words = format!(
        "--name=a --ioengine=sim --size=1g --rw=randread --rate_iops=20 --time_based \
         --runtime={runtime}"
    );
    let words: Vec<_> = words.split(' ').map(Into::into).collect();
    iosonde_job::parse(&words, &FakeEnv::new()).unwrap().plan
}

/// Runs on simulated devices, and changes the result.
struct Altered<F>(F);

impl<F: FnMut(RunResult) -> Result<RunResult, RunError>> Session for Altered<F> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let result = LocalRunner::default().open().run(plan, observer)?;
        (self.0)(result)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

fn measured(
    writer: &mut HistoryWriter,
    alter: impl FnMut(RunResult) -> Result<RunResult, RunError>,
) -> Result<RunResult, RunError> {
    writer.begin("fio", "sim");
    let mut result = writer.run(&mut Altered(alter), &plan(), &mut ())?;
    writer.label_run(&mut result);
    writer.store_run(&result);
    writer.finish(None).unwrap();
    Ok(result)
}

/// Returns the only run of the latest study.
fn kept(scratch: &TestHistory) -> RunResult {
    let mut loaded = scratch.store().load("latest").unwrap();
    let run = loaded.study.runs.remove(0);
    assert!(loaded.study.runs.is_empty());
    let RunDocument::Run(result) = run.document else {
        panic!("no run of iosonde");
    };
    *result
}

/// Removes the study of the current run from the history, once its first minute is stored.
fn remove_begun_study(scratch: &TestHistory) {
    let begun = Instant::now();
    let id = loop {
        match scratch.store().find("latest") {
            Ok(id) => break id,
            Err(error) => assert!(begun.elapsed() < STORED_TIMEOUT, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    scratch.store().remove(&[id]).unwrap();
}

fn count(scratch: &TestHistory, table: &str) -> i64 {
    let connection = Connection::open(&scratch.place.path).unwrap();
    let count = format!("SELECT count(*) FROM {table}");
    connection.query_row(&count, [], |row| row.get(0)).unwrap()
}

#[test]
fn run_written_by_minutes_equals_result() {
    let scratch = TestHistory::new("minutes");
    let mut writer = scratch.writer(&[("disk", "new")]);
    let result = measured(&mut writer, Ok).unwrap();
    assert_eq!(result.intervals.len(), 300);
    assert_eq!(kept(&scratch), result);
    assert_eq!(
        (
            count(&scratch, "interval_block"),
            count(&scratch, "open_run")
        ),
        (3, 0)
    );
    let summary = scratch.list_studies().remove(0);
    assert!(summary.finished_at_ms.is_some() && summary.reached_ns.is_none());
    assert_eq!(summary.labels["disk"], "new");
    scratch.store().remove(&[summary.id]).unwrap();
    assert_eq!(count(&scratch, "interval_block"), 0);
}

#[test]
fn result_replaces_differing_written_intervals() {
    let scratch = TestHistory::new("minutes-other");
    let mut writer = scratch.writer(&[]);
    for first_changed in [0, 150, 299] {
        let result = measured(&mut writer, |mut result| {
            result.intervals.change_each(|index, interval| {
                interval.directions.read.ios += u64::from(index >= first_changed);
            });
            Ok(result)
        });
        assert_eq!(kept(&scratch), result.unwrap());
    }
    let shorter = measured(&mut writer, |mut result| {
        result.intervals.truncate(61);
        Ok(result)
    });
    assert_eq!(kept(&scratch), shorter.unwrap());
}

#[test]
fn failed_run_keeps_written_intervals() {
    let scratch = TestHistory::new("minutes-lost");
    let mut writer = scratch.writer(&[]);
    let lost = measured(&mut writer, |_| Err(RunError::NoCompletions));
    assert_eq!(lost, Err(RunError::NoCompletions));
    // `discard` keeps a study whose run was cut off.
    writer.discard();
    let kept = kept(&scratch);
    assert_eq!(
        (kept.intervals.len(), kept.elapsed_ns),
        (300, 150_000_000_000)
    );
    assert!(kept.workers[0].directions.read.total_ios > 2000);
    let summary = scratch.list_studies().remove(0);
    assert_eq!(
        (summary.finished_at_ms, summary.reached_ns),
        (None, Some(150_000_000_000))
    );
    assert!(
        summary.results()[0]
            .figures
            .iter()
            .any(|figure| figure.value > 19.0)
    );
    assert!(!writer.notes().concat().contains("nothing was measured"));
}

/// An attached client learns the plan from the statistics alone.
#[test]
fn attached_run_is_written_by_minutes() {
    let scratch = TestHistory::new("minutes-elsewhere");
    let mut writer = scratch.writer(&[]);
    let follow = |observer: &mut dyn Observer| LocalRunner::default().open().run(&plan(), observer);
    writer.begin("fio", "elsewhere");
    let lost = writer.follow_existing_run(&mut (), |observer| {
        follow(observer)?;
        Err(RunError::NoCompletions)
    });
    assert_eq!(lost, Err(RunError::NoCompletions));
    let found = scratch.store().load("latest").unwrap();
    assert_eq!(found.study.runs[0].name, "a");
    let left = kept(&scratch);
    assert_eq!((left.intervals.len(), left.plan), (300, plan()));
    writer.begin("fio", "elsewhere");
    let result = writer.follow_existing_run(&mut (), follow).unwrap();
    writer.store_run(&result);
    writer.finish(None).unwrap();
    assert_eq!(kept(&scratch), result);
    assert_eq!(count(&scratch, "open_run"), 1);
}

/// A failed write while the run is running does not prevent storing its result.
#[test]
fn failed_minute_writes_are_repaired_at_run_end() {
    let scratch = TestHistory::new("minutes-refused");
    let mut writer = scratch.writer(&[]);
    let refusal = Connection::open(&scratch.place.path).unwrap();
    let trigger = "CREATE TRIGGER refuse BEFORE INSERT ON interval_block WHEN new.number > 0 \
                   BEGIN SELECT raise(FAIL, 'refused'); END";
    refusal.execute_batch(trigger).unwrap();
    let result = measured(&mut writer, |result| {
        refusal.execute_batch("DROP TRIGGER refuse").unwrap();
        Ok(result)
    });
    assert_eq!(kept(&scratch), result.unwrap());
    assert_eq!(writer.notes(), [""; 0]);
    assert_eq!(scratch.list_studies().len(), 1);
}

#[test]
fn finished_study_ignores_parts_of_failed_run() {
    let scratch = TestHistory::new("minutes-failed");
    let mut writer = scratch.writer(&[]);
    writer.begin("suite", "sim");
    let mut fails = Altered(|_| Err(RunError::NoCompletions));
    writer.run(&mut fails, &plan(), &mut ()).unwrap_err();
    let mut result = writer
        .run(&mut Altered(Ok), &plan_of("61"), &mut ())
        .unwrap();
    writer.label_run(&mut result);
    writer.store_run(&result);
    assert_eq!(scratch.list_studies().remove(0).parts.len(), 2);
    writer.finish(None).unwrap();
    assert_eq!(scratch.list_studies().remove(0).parts.len(), 1);
}

/// Run length and intervals are in different tables.
#[test]
fn concurrent_read_sees_consistent_run() {
    let scratch = TestHistory::new("minutes-read");
    let mut writer = scratch.writer(&[]);
    let thread = std::thread::spawn(move || {
        writer.begin("fio", "sim");
        let mut session = Altered(|_| Err(RunError::NoCompletions));
        let _ = writer.run(&mut session, &plan_of("30m"), &mut ());
    });
    let mut states = BTreeSet::new();
    while !thread.is_finished() {
        let Ok(loaded) = scratch.store().load("latest") else {
            continue;
        };
        let RunDocument::Run(run) = &loaded.study.runs[0].document else {
            panic!("no run of iosonde");
        };
        let end_ns = run
            .intervals
            .iter()
            .last()
            .map(|last| last.start_ns + last.length_ns);
        assert_eq!(loaded.summary.reached_ns, end_ns);
        states.insert(end_ns);
    }
    thread.join().unwrap();
    assert!(states.len() > 3, "{states:?}");
}

/// The new run reuses the row id of the removed one.
#[test]
fn reused_row_id_is_not_overwritten() {
    let scratch = TestHistory::new("minutes-row");
    let mut writer = scratch.writer(&[]);
    writer.begin("fio", "sim");
    let mut other = None;
    let replace = |result| {
        remove_begun_study(&scratch);
        other = Some(measured(&mut scratch.writer(&[]), Ok).unwrap());
        Ok(result)
    };
    let mut result = writer.run(&mut Altered(replace), &plan(), &mut ()).unwrap();
    result.elapsed_ns += 1;
    writer.store_run(&result);
    assert!(
        writer
            .notes()
            .concat()
            .contains("not stored in the history")
    );
    assert_eq!(Some(kept(&scratch)), other);
}

#[test]
fn study_removed_during_run_adds_note() {
    let scratch = TestHistory::new("minutes-removed");
    let mut writer = scratch.writer(&[]);
    writer.begin("fio", "sim");
    let remove = |result| {
        remove_begun_study(&scratch);
        Ok(result)
    };
    let result = writer.run(&mut Altered(remove), &plan(), &mut ());
    writer.store_run(&result.unwrap());
    assert!(
        writer
            .notes()
            .concat()
            .contains("not stored in the history")
    );
    assert_eq!(scratch.list_studies(), []);
}

/// A file whose reads fail.
#[derive(Debug)]
struct UnreadableFile;

impl BlockFile for UnreadableFile {
    fn append(&self, _block: &[u8]) -> io::Result<u64> {
        Ok(0)
    }

    fn read(&self, _offset: u64, _bytes: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::Other.into())
    }
}

#[test]
fn written_minutes_survive_unreadable_result_intervals() {
    const LENGTH: usize = 6000;
    let scratch = TestHistory::new("minutes-unreadable");
    let mut writer = scratch.writer(&[]);
    let result = measured(&mut writer, |mut result| {
        let mut busy = result.intervals.last().unwrap().into_owned();
        (0..700).for_each(|value| busy.latency.record(value * value * 1000));
        result.intervals = Intervals::spilling_to(Arc::new(UnreadableFile));
        result.intervals.extend(vec![busy; LENGTH]);
        Ok(result)
    });
    let result = result.unwrap();
    assert!(result.intervals.iter().count() < LENGTH);
    let kept = kept(&scratch);
    // Only the result held the incomplete minute.
    assert_eq!(kept.intervals.len(), 240);
    assert_eq!(kept.workers, result.workers);
    assert_eq!(count(&scratch, "open_run"), 0);
    let notes = writer.notes().concat();
    assert!(notes.contains("lacks some intervals"), "{notes}");
}

/// Runs for two minutes. Another program locks the history during the first.
struct BesideALock<'a>(&'a Connection);

impl Session for BesideALock<'_> {
    fn run(&mut self, _plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let mut minute = |number: u64| {
            for second in 60 * number..60 * (number + 1) {
                observer.interval(&Interval {
                    start_ns: second * INTERVAL_NS_MAX,
                    length_ns: INTERVAL_NS_MAX,
                    ..Interval::default()
                });
            }
        };
        self.0.execute_batch("BEGIN IMMEDIATE").unwrap();
        minute(0);
        // The first write has timed out by then: SQLite adds up its sleeps, and takes longer.
        std::thread::sleep(SHORT_BUSY_TIMEOUT * 4);
        self.0.execute_batch("ROLLBACK").unwrap();
        minute(1);
        Err(RunError::NoCompletions)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

#[test]
fn minute_is_retried_after_history_lock() {
    let scratch = TestHistory::new("minutes-locked");
    SHORT_TIMEOUT_PATH.set(scratch.place.path.clone()).unwrap();
    let mut writer = scratch.writer(&[]);
    let other = Connection::open(&scratch.place.path).unwrap();
    writer.begin("fio", "sim");
    let lost = writer.run(&mut BesideALock(&other), &plan(), &mut ());
    assert_eq!(lost, Err(RunError::NoCompletions));
    assert_eq!(writer.notes(), [""; 0]);
    let kept = kept(&scratch);
    let starts = kept.intervals.iter().map(|interval| interval.start_ns);
    assert!(starts.eq((0..120).map(|second| second * INTERVAL_NS_MAX)));
}
