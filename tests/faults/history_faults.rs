//! Faults of the history, which must not affect the measurement and its figures.

use std::fs;
use std::path::{Path, PathBuf};

use iosonde_e2e::Run;
use iosonde_e2e::mount::Mount;
use iosonde_e2e::program::Invocation;
use rusqlite::Connection;

use crate::fault_fixture::{FaultFixture, Outcome, is_explained};
use crate::table::{Cell, Fault};

const GARBAGE: &[u8] = b"this was a database, and a user may want to read it; ";

/// Returns `None` if the fault is of another kind.
pub(crate) fn hit(cell: Cell, number: u32) -> Option<Outcome> {
    Some(match cell.fault {
        Fault::HistoryCorrupt => corrupt(cell, number),
        Fault::HistoryFull => full(cell),
        Fault::HistoryReadOnly => read_only(cell),
        Fault::HistoryLocked => locked(cell),
        _ => return None,
    })
}

/// Checks that the command succeeds, prints figures and one of these words about the history.
fn is_printed(fixture: &FaultFixture, run: &Run, words: &[&str]) -> Outcome {
    fixture.is_unchanged()?;
    fixture.is_nothing_left(&[])?;
    is_explained(run, &[0], &[])?;
    let units = ["IOPS", "iB/s", " us", " ms"];
    let has_figures = units.iter().any(|unit| run.stdout.contains(unit));
    let says_so = words.is_empty() || words.iter().any(|word| run.text().contains(word));
    match has_figures && says_so {
        true => Ok(()),
        false => Err(format!(
            "prints no figures, or does not print {words:?}: {run}"
        )),
    }
}

/// Overwrites the history with garbage, before the run or during it.
fn corrupt(cell: Cell, number: u32) -> Outcome {
    let fixture = FaultFixture::new();
    let path = fixture.history();
    let spoil = || {
        for ending in ["-wal", "-shm"] {
            let _ = fs::remove_file(path.with_extension(format!("db{ending}")));
        }
        fs::write(&path, GARBAGE.repeat(1000)).expect("a history to spoil");
    };
    let start = || fixture.command(cell, "target", "");
    let run = if number.is_multiple_of(2) {
        spoil();
        start().run()
    } else {
        let running = fixture.until_random_point(start, cell, 4);
        spoil();
        running.wait()
    };
    let is_from_the_start = number.is_multiple_of(2);
    let words: &[&str] = if is_from_the_start { &["is now"] } else { &[] };
    is_printed(&fixture, &run, words)?;
    if !is_from_the_start {
        return is_there_again(&fixture, start);
    }
    // The damaged file is kept, in place or beside the new history.
    let beside = fs::read_dir(path.parent().unwrap_or(Path::new("."))).expect("a directory");
    let has_garbage = |path: PathBuf| fs::read(path).is_ok_and(|bytes| bytes.starts_with(GARBAGE));
    match beside.flatten().any(|entry| has_garbage(entry.path())) {
        true => Ok(()),
        false => Err(format!("the damaged history is gone: {run}")),
    }
}

/// A history damaged while open is overwritten, or refused until the next stored result.
fn is_there_again(fixture: &FaultFixture, command: impl Fn() -> Invocation) -> Outcome {
    let list = fixture.iosonde("list").run();
    is_explained(&list, &[0, 5], &["is damaged"])?;
    if list.status.success() {
        return Ok(());
    }
    is_printed(fixture, &command().run(), &["is now"])?;
    is_explained(&fixture.iosonde("list").run(), &[0], &[])
}

/// Moves the history with its foreign result to a file system of its own.
fn moved(fixture: &FaultFixture) -> Mount {
    let directory = fixture.scratch.state().join("iosonde");
    let kept = fixture.scratch.out().join("kept");
    fs::rename(&directory, &kept).expect("a history to move");
    let mount = Mount::tmpfs(directory, 2 << 20);
    for entry in fs::read_dir(&kept).expect("a directory").flatten() {
        if entry.path().is_file() {
            fs::copy(entry.path(), mount.dir().join(entry.file_name())).expect("a history to move");
        }
    }
    mount
}

fn full(cell: Cell) -> Outcome {
    let fixture = FaultFixture::new();
    let mount = moved(&fixture);
    // Fills the file system to the last byte.
    let filler = mount.dir().join("filler");
    let _ = fs::write(&filler, vec![1; 2 << 20]);
    let run = fixture.command(cell, "target", "").run();
    is_printed(&fixture, &run, &["not stored"])?;
    fs::remove_file(filler).expect("the filler");
    fixture.is_history_whole()
}

fn read_only(cell: Cell) -> Outcome {
    let fixture = FaultFixture::new();
    let mount = moved(&fixture);
    mount.make_read_only();
    let run = fixture.command(cell, "target", "").run();
    is_printed(&fixture, &run, &["not stored"])?;
    fixture.is_history_whole()
}

/// Another program holds an exclusive lock on the history during the run.
fn locked(cell: Cell) -> Outcome {
    let fixture = FaultFixture::new();
    let other = Connection::open(fixture.history()).expect("the history");
    other.execute_batch("BEGIN EXCLUSIVE").expect("the lock");
    let run = fixture.command(cell, "target", "").run();
    is_printed(&fixture, &run, &["not stored"])?;
    other.execute_batch("ROLLBACK").expect("the lock");
    fixture.is_history_whole()
}
