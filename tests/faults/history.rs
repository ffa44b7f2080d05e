//! Faults of the history: the measurement and its figures do not suffer from them.

use std::fs;
use std::path::{Path, PathBuf};

use iosonde_e2e::Run;
use iosonde_e2e::mount::Mount;
use iosonde_e2e::program::Invocation;
use rusqlite::Connection;

use crate::ground::{Ground, Outcome, is_explained};
use crate::table::{Cell, Fault};

const GARBAGE: &[u8] = b"this was a database, and somebody may want to look at it; ";

/// `None` for a fault of another kind.
pub(crate) fn hit(cell: Cell, number: u32) -> Option<Outcome> {
    Some(match cell.fault {
        Fault::HistoryCorrupt => corrupt(cell, number),
        Fault::HistoryFull => full(cell),
        Fault::HistoryReadOnly => read_only(cell),
        Fault::HistoryLocked => locked(cell),
        _ => return None,
    })
}

/// The command succeeds, prints its figures, and says one of these words about the history.
fn is_printed(ground: &Ground, run: &Run, words: &[&str]) -> Outcome {
    ground.is_unchanged()?;
    ground.is_nothing_left(&[])?;
    is_explained(run, &[0], &[])?;
    let units = ["IOPS", "iB/s", " us"];
    let has_figures = units.iter().any(|unit| run.stdout.contains(unit));
    let says_so = words.is_empty() || words.iter().any(|word| run.text().contains(word));
    match has_figures && says_so {
        true => Ok(()),
        false => Err(format!(
            "prints no figures, or does not tell {words:?}: {run}"
        )),
    }
}

/// Garbage in place of the history, from the start or from the middle of the run on.
fn corrupt(cell: Cell, number: u32) -> Outcome {
    let ground = Ground::new();
    let path = ground.history();
    let spoil = || {
        for ending in ["-wal", "-shm"] {
            let _ = fs::remove_file(path.with_extension(format!("db{ending}")));
        }
        fs::write(&path, GARBAGE.repeat(1000)).expect("a history to spoil");
    };
    let start = || ground.command(cell, "target", "");
    let run = if number.is_multiple_of(2) {
        spoil();
        start().run()
    } else {
        let running = ground.until_random_point(start, cell, 4);
        spoil();
        running.wait()
    };
    let is_from_the_start = number.is_multiple_of(2);
    let words: &[&str] = if is_from_the_start { &["is now"] } else { &[] };
    is_printed(&ground, &run, words)?;
    if !is_from_the_start {
        return is_there_again(&ground, start);
    }
    // Nothing is thrown away: what was in its place lies there, or beside.
    let beside = fs::read_dir(path.parent().unwrap_or(Path::new("."))).expect("a directory");
    let has_garbage = |path: PathBuf| fs::read(path).is_ok_and(|bytes| bytes.starts_with(GARBAGE));
    match beside.flatten().any(|entry| has_garbage(entry.path())) {
        true => Ok(()),
        false => Err(format!("the damaged history is gone: {run}")),
    }
}

/// What is spoiled under an open database is written over, or refused until the next command that keeps a result puts it aside.
fn is_there_again(ground: &Ground, command: impl Fn() -> Invocation) -> Outcome {
    let list = ground.iosonde("list").run();
    is_explained(&list, &[0, 5], &["is damaged"])?;
    if list.status.success() {
        return Ok(());
    }
    is_printed(ground, &command().run(), &["is now"])?;
    is_explained(&ground.iosonde("list").run(), &[0], &[])
}

/// Puts the history, with the result of somebody, on a file system of its own.
fn moved(ground: &Ground) -> Mount {
    let directory = ground.scratch.state().join("iosonde");
    let kept = ground.scratch.out().join("kept");
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
    let ground = Ground::new();
    let mount = moved(&ground);
    // All that there is, to the last byte.
    let filler = mount.dir().join("filler");
    let _ = fs::write(&filler, vec![1; 2 << 20]);
    let run = ground.command(cell, "target", "").run();
    is_printed(&ground, &run, &["not kept"])?;
    fs::remove_file(filler).expect("the filler");
    ground.is_history_whole()
}

fn read_only(cell: Cell) -> Outcome {
    let ground = Ground::new();
    let mount = moved(&ground);
    mount.make_read_only();
    let run = ground.command(cell, "target", "").run();
    is_printed(&ground, &run, &["not kept"])?;
    ground.is_history_whole()
}

/// Another program writes to the history for as long as the command runs.
fn locked(cell: Cell) -> Outcome {
    let ground = Ground::new();
    let other = Connection::open(ground.history()).expect("the history");
    other.execute_batch("BEGIN EXCLUSIVE").expect("the lock");
    let run = ground.command(cell, "target", "").run();
    is_printed(&ground, &run, &["not kept"])?;
    other.execute_batch("ROLLBACK").expect("the lock");
    ground.is_history_whole()
}
