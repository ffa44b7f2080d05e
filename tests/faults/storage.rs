//! Faults of the target.

use std::fs;
use std::path::Path;
use std::time::Duration;

use iosonde_e2e::Run;
use iosonde_e2e::device::Loop;
use iosonde_e2e::fuse::{Behaviour, FuseFile};
use iosonde_e2e::mount::Mount;
use iosonde_e2e::scratch::lay_out;
use rustix::process::Signal;

use crate::fault_fixture::{FaultFixture, Outcome, hit_in_time, is_explained};
use crate::table::{Cell, Fault, Subcommand};

const FILE_BYTES: u64 = 16 << 20;

/// Returns `None` if the fault is of another kind.
pub(crate) fn hit(cell: Cell, number: u32) -> Option<Outcome> {
    Some(match cell.fault {
        Fault::NoSpace => no_space(cell, number),
        Fault::IoErrors => io_errors(cell),
        Fault::TargetVanishes => hit_in_time(|| vanishes(cell)),
        Fault::TargetReplaced => hit_in_time(|| replaced(cell)),
        _ => return None,
    })
}

/// The option of consent for a command that writes to an existing file or device.
fn consent(cell: Cell, target: &str) -> String {
    match cell.subcommand {
        Subcommand::Pts => format!("--allow-overwrite {target}"),
        _ => String::new(),
    }
}

/// The file system is too small from the start, or is filled during layout.
fn no_space(cell: Cell, number: u32) -> Outcome {
    let fixture = FaultFixture::new();
    let mount = Mount::tmpfs(fixture.scratch.work().join("small"), 20 << 20);
    let fill = |bytes: usize| {
        let _ = fs::write(mount.dir().join("filler"), vec![1; bytes]);
    };
    let is_small = number.is_multiple_of(2);
    if is_small {
        fill(12 << 20);
    }
    let mut running = fixture.command(cell, "small", "").start();
    if !is_small {
        let _ = running.until(|_| fs::read_dir(mount.dir()).is_ok_and(|found| found.count() > 0));
        fill(20 << 20);
    }
    let run = running.wait();
    fixture.is_unchanged()?;
    fixture.is_history_whole()?;
    fixture.is_nothing_left(&["small/filler"])?;
    // Files that were laid out before the file system was full can be used.
    let statuses: &[i32] = if is_small { &[4] } else { &[0, 1, 3, 4] };
    is_explained(&run, statuses, &["are available", "space", "ENOSPC"])
}

fn io_errors(cell: Cell) -> Outcome {
    let fixture = FaultFixture::new();
    let behaviour = Behaviour::plain().broken("EIO", "30%");
    let file = FuseFile::serve(&fixture.scratch, "broken", FILE_BYTES, &behaviour);
    let run = fixture
        .command(cell, "broken", &consent(cell, "broken"))
        .run();
    fixture.is_unchanged()?;
    fixture.is_history_whole()?;
    fixture.is_nothing_left(&["broken"])?;
    drop(file);
    if run.stderr.contains("fell behind") {
        return Err(format!("takes an error for a slow target: {run}"));
    }
    is_explained(
        &run,
        &[1, 3],
        &["EIO", "Input/output error", "input/output error"],
    )
}

/// Returns `None` if the command ended before the target vanished.
fn vanishes(cell: Cell) -> Option<Outcome> {
    let fixture = FaultFixture::new();
    let mut file = FuseFile::serve(&fixture.scratch, "gone", FILE_BYTES, &Behaviour::plain());
    let start = || fixture.command(cell, "gone", &consent(cell, "gone"));
    let running = fixture.until_random_point(start, cell, 4);
    file.die();
    let run = running.wait();
    drop(file);
    if run.status.success() {
        return None;
    }
    let is_clean = || {
        fixture.is_unchanged()?;
        fixture.is_history_whole()?;
        fixture.is_nothing_left(&["gone"])
    };
    Some(is_clean().and_then(|()| is_explained(&run, &[1, 3], &["gone"])))
}

/// Another disk takes the device name for which consent was given. Returns `None` if the command
/// ended before.
fn replaced(cell: Cell) -> Option<Outcome> {
    let fixture = FaultFixture::new();
    let [one, other] = ["one", "other"].map(|name| {
        let path = fixture.scratch.out().join(name);
        lay_out(&path, FILE_BYTES as usize);
        path
    });
    let device = Loop::new(&one);
    let path = device.path().display().to_string();
    let consent = format!("--allow-overwrite {path}");
    let start = || fixture.command(cell, &path, &consent);
    // Without a result, `--resume` starts anew with the consent of that command line.
    let running = if cell.subcommand.is_resumed() {
        let mut running = start().start();
        running.must_reach("a result in its journal", |_| fixture.has_result());
        running
    } else {
        fixture.until_random_point(start, cell, 4)
    };
    running.signal(Signal::INT);
    let stopped = running.wait();
    if stopped.status.success() {
        return None;
    }
    device.replace(&other);
    Some(is_other_disk_kept(&fixture, cell, &path, &stopped, &other))
}

/// Checks that a command which was stopped is not resumed on another disk and does not write to it.
fn is_other_disk_kept(
    fixture: &FaultFixture,
    cell: Cell,
    path: &str,
    stopped: &Run,
    other: &Path,
) -> Outcome {
    let before = fs::read(other).expect("the other disk");
    fixture.is_unchanged()?;
    fixture.is_nothing_left(&[])?;
    is_explained(stopped, &[130], &["interrupted"])?;
    if cell.subcommand.is_resumed() {
        let resume = format!("--allow-overwrite {path} --resume");
        let resumed = fixture.command(cell, path, &resume).run();
        is_explained(&resumed, &[2, 3], &["detached", "no stopped"])?;
    }
    // No command writes to this disk without consent for it.
    let again = fixture
        .command(cell, path, "")
        .within(Duration::from_secs(120))
        .run();
    match fs::read(other).is_ok_and(|now| now == before) {
        true => Ok(()),
        false => Err(format!("the other disk was written: {again}")),
    }
}
