//! What the history has of runs that last for minutes.

use super::super::open::PATIENCE;
use super::super::tests::Scratch;
use super::super::{Document, Keeper};
use iosonde_engine::runner::LocalRunner;
use iosonde_job::env::FakeEnv;
use iosonde_job::plan::Plan;
use iosonde_result::interval::{Interval, Intervals};
use iosonde_result::observer::{INTERVAL_NS_MAX, Observer};
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use iosonde_result::spill_list::BlockFile;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// Two and a half minutes on a simulated device.
fn plan() -> Plan {
    plan_of("150")
}

fn plan_of(runtime: &str) -> Plan {
    let words = format!(
        "--name=a --ioengine=sim --size=1g --rw=randread --rate_iops=20 --time_based --runtime={runtime}"
    );
    let words: Vec<_> = words.split(' ').map(Into::into).collect();
    iosonde_job::parse(&words, &FakeEnv::new()).unwrap().plan
}

/// Runs on simulated devices, and changes what comes of it.
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
    keeper: &mut Keeper,
    alter: impl FnMut(RunResult) -> Result<RunResult, RunError>,
) -> Result<RunResult, RunError> {
    keeper.begin("fio", "sim");
    let mut result = keeper.run(&mut Altered(alter), &plan(), &mut ())?;
    keeper.label_run(&mut result);
    keeper.keep(&result);
    keeper.finish(None).unwrap();
    Ok(result)
}

/// The one run of the latest study.
fn kept(scratch: &Scratch) -> RunResult {
    let mut loaded = scratch.store().load("latest").unwrap();
    let run = loaded.study.runs.remove(0);
    assert!(loaded.study.runs.is_empty());
    let Document::Run(result) = run.document else {
        panic!("no run of ours");
    };
    *result
}

fn count(scratch: &Scratch, table: &str) -> i64 {
    let connection = Connection::open(&scratch.place.path).unwrap();
    let count = format!("SELECT count(*) FROM {table}");
    connection.query_row(&count, [], |row| row.get(0)).unwrap()
}

#[test]
fn run_of_minutes_comes_back_as_it_was() {
    let scratch = Scratch::new("minutes");
    let mut keeper = scratch.keeper(&[("disk", "new")]);
    let result = measured(&mut keeper, Ok).unwrap();
    assert_eq!(result.intervals.len(), 300);
    assert_eq!(kept(&scratch), result);
    assert_eq!(
        (
            count(&scratch, "interval_block"),
            count(&scratch, "open_run")
        ),
        (3, 0)
    );
    let summary = scratch.all().remove(0);
    assert!(summary.finished_at_ms.is_some() && summary.reached_ns.is_none());
    assert_eq!(summary.labels["disk"], "new");
    scratch.store().remove(&[summary.id]).unwrap();
    assert_eq!(count(&scratch, "interval_block"), 0);
}

#[test]
fn result_counts_where_it_has_other_intervals_than_were_seen() {
    let scratch = Scratch::new("minutes-other");
    let mut keeper = scratch.keeper(&[]);
    for first_changed in [0, 150, 299] {
        let result = measured(&mut keeper, |mut result| {
            result.intervals.change_each(|index, interval| {
                interval.directions.read.ios += u64::from(index >= first_changed);
            });
            Ok(result)
        });
        assert_eq!(kept(&scratch), result.unwrap());
    }
    let shorter = measured(&mut keeper, |mut result| {
        result.intervals.truncate(61);
        Ok(result)
    });
    assert_eq!(kept(&scratch), shorter.unwrap());
}

#[test]
fn run_without_a_result_leaves_its_intervals() {
    let scratch = Scratch::new("minutes-lost");
    let mut keeper = scratch.keeper(&[]);
    let lost = measured(&mut keeper, |_| Err(RunError::NothingDone));
    assert_eq!(lost, Err(RunError::NothingDone));
    // A study without a result removes what measured nothing.
    keeper.discard();
    let kept = kept(&scratch);
    assert_eq!(
        (kept.intervals.len(), kept.elapsed_ns),
        (300, 150_000_000_000)
    );
    assert!(kept.workers[0].directions.read.total_ios > 2000);
    let summary = scratch.all().remove(0);
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
    assert!(
        !keeper
            .notes()
            .concat()
            .contains("nothing had been measured")
    );
}

/// A client that takes up a run knows its plan from the statistics alone.
#[test]
fn run_elsewhere_is_written_while_it_is_attended() {
    let scratch = Scratch::new("minutes-elsewhere");
    let mut keeper = scratch.keeper(&[]);
    let attend = |observer: &mut dyn Observer| LocalRunner::default().open().run(&plan(), observer);
    keeper.begin("fio", "elsewhere");
    let lost = keeper.attend(&mut (), |observer| {
        attend(observer)?;
        Err(RunError::NothingDone)
    });
    assert_eq!(lost, Err(RunError::NothingDone));
    let found = scratch.store().load("latest").unwrap();
    assert_eq!(found.study.runs[0].name, "a");
    let left = kept(&scratch);
    assert_eq!((left.intervals.len(), left.plan), (300, plan()));
    keeper.begin("fio", "elsewhere");
    let result = keeper.attend(&mut (), attend).unwrap();
    keeper.keep(&result);
    keeper.finish(None).unwrap();
    assert_eq!(kept(&scratch), result);
    assert_eq!(count(&scratch, "open_run"), 1);
}

/// What cannot be written while a run goes on is kept at its end.
#[test]
fn run_is_kept_at_its_end_where_its_minutes_could_not_be_written() {
    let scratch = Scratch::new("minutes-refused");
    let mut keeper = scratch.keeper(&[]);
    let refusal = Connection::open(&scratch.place.path).unwrap();
    let trigger = "CREATE TRIGGER refuse BEFORE INSERT ON interval_block WHEN new.number > 0 \
                   BEGIN SELECT raise(FAIL, 'refused'); END";
    refusal.execute_batch(trigger).unwrap();
    let result = measured(&mut keeper, |result| {
        refusal.execute_batch("DROP TRIGGER refuse").unwrap();
        Ok(result)
    });
    assert_eq!(kept(&scratch), result.unwrap());
    assert_eq!(keeper.notes(), [""; 0]);
    assert_eq!(scratch.all().len(), 1);
}

#[test]
fn minutes_of_a_run_that_failed_are_no_result_of_a_finished_study() {
    let scratch = Scratch::new("minutes-failed");
    let mut keeper = scratch.keeper(&[]);
    keeper.begin("suite", "sim");
    let mut fails = Altered(|_| Err(RunError::NothingDone));
    keeper.run(&mut fails, &plan(), &mut ()).unwrap_err();
    let mut result = keeper
        .run(&mut Altered(Ok), &plan_of("61"), &mut ())
        .unwrap();
    keeper.label_run(&mut result);
    keeper.keep(&result);
    assert_eq!(scratch.all().remove(0).parts.len(), 2);
    keeper.finish(None).unwrap();
    assert_eq!(scratch.all().remove(0).parts.len(), 1);
}

/// Its length and its minutes are in different tables.
#[test]
fn run_that_is_read_while_it_is_written_is_in_one_state() {
    let scratch = Scratch::new("minutes-read");
    let mut keeper = scratch.keeper(&[]);
    let writer = std::thread::spawn(move || {
        keeper.begin("fio", "sim");
        let mut session = Altered(|_| Err(RunError::NothingDone));
        let _ = keeper.run(&mut session, &plan_of("30m"), &mut ());
    });
    let mut states = BTreeSet::new();
    while !writer.is_finished() {
        let Ok(loaded) = scratch.store().load("latest") else {
            continue;
        };
        let Document::Run(run) = &loaded.study.runs[0].document else {
            panic!("no run of ours");
        };
        let end_ns = run
            .intervals
            .iter()
            .last()
            .map(|last| last.start_ns + last.length_ns);
        assert_eq!(loaded.summary.reached_ns, end_ns);
        states.insert(end_ns);
    }
    writer.join().unwrap();
    assert!(states.len() > 3, "{states:?}");
}

/// The next run gets the number of one that was removed.
#[test]
fn run_that_took_the_row_of_a_removed_one_is_left_alone() {
    let scratch = Scratch::new("minutes-row");
    let mut keeper = scratch.keeper(&[]);
    keeper.begin("fio", "sim");
    let mut other = None;
    let replace = |result| {
        let begun = scratch.store().find("latest").unwrap();
        scratch.store().remove(&[begun]).unwrap();
        other = Some(measured(&mut scratch.keeper(&[]), Ok).unwrap());
        Ok(result)
    };
    let mut result = keeper.run(&mut Altered(replace), &plan(), &mut ()).unwrap();
    result.elapsed_ns += 1;
    keeper.keep(&result);
    assert!(keeper.notes().concat().contains("not kept in the history"));
    assert_eq!(Some(kept(&scratch)), other);
}

#[test]
fn study_removed_during_its_run_is_told() {
    let scratch = Scratch::new("minutes-removed");
    let mut keeper = scratch.keeper(&[]);
    keeper.begin("fio", "sim");
    let remove = |result| {
        let begun = scratch.store().find("latest").unwrap();
        scratch.store().remove(&[begun]).unwrap();
        Ok(result)
    };
    let result = keeper.run(&mut Altered(remove), &plan(), &mut ());
    keeper.keep(&result.unwrap());
    assert!(keeper.notes().concat().contains("not kept in the history"));
    assert_eq!(scratch.all(), []);
}

/// A file whose device fails when it is read.
#[derive(Debug)]
struct Unreadable;

impl BlockFile for Unreadable {
    fn append(&self, _block: &[u8]) -> io::Result<u64> {
        Ok(0)
    }

    fn read(&self, _offset: u64, _bytes: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::Other.into())
    }
}

#[test]
fn minutes_stay_where_the_result_has_lost_its_intervals() {
    const LENGTH: usize = 6000;
    let scratch = Scratch::new("minutes-unreadable");
    let mut keeper = scratch.keeper(&[]);
    let result = measured(&mut keeper, |mut result| {
        let mut busy = result.intervals.last().unwrap().into_owned();
        (0..700).for_each(|value| busy.latency.record(value * value * 1000));
        result.intervals = Intervals::spilling_to(Arc::new(Unreadable));
        result.intervals.extend(vec![busy; LENGTH]);
        Ok(result)
    });
    let result = result.unwrap();
    assert!(result.intervals.iter().count() < LENGTH);
    let kept = kept(&scratch);
    // The incomplete minute is in the result alone.
    assert_eq!(kept.intervals.len(), 240);
    assert_eq!(kept.workers, result.workers);
    assert_eq!(count(&scratch, "open_run"), 0);
    let notes = keeper.notes().concat();
    assert!(notes.contains("cannot be read back"), "{notes}");
}

/// Runs for two minutes, in the first of which another program has locked the history.
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
        // The first try has failed by then: SQLite adds up what it meant to sleep, and takes somewhat longer.
        std::thread::sleep(PATIENCE * 3 / 2);
        self.0.execute_batch("ROLLBACK").unwrap();
        minute(1);
        Err(RunError::NothingDone)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

#[test]
fn minute_that_found_the_history_locked_is_written_with_the_next() {
    let scratch = Scratch::new("minutes-locked");
    let mut keeper = scratch.keeper(&[]);
    let other = Connection::open(&scratch.place.path).unwrap();
    keeper.begin("fio", "sim");
    let lost = keeper.run(&mut BesideALock(&other), &plan(), &mut ());
    assert_eq!(lost, Err(RunError::NothingDone));
    assert_eq!(keeper.notes(), [""; 0]);
    let kept = kept(&scratch);
    let starts = kept.intervals.iter().map(|interval| interval.start_ns);
    assert!(starts.eq((0..120).map(|second| second * INTERVAL_NS_MAX)));
}
