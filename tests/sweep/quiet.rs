//! A sweep of a device with other I/O: it waits for a limited time and reports the wait, or that it
//! did not wait.

use std::time::{Duration, Instant};

use super::{json, run};
use iosonde_e2e::device::Loop;
use iosonde_e2e::fuse::{Behaviour, FuseFile};
use iosonde_e2e::program::{NO_IDLE_WAIT, Program, Running};
use iosonde_e2e::{Scratch, ensure, one_good_try, require};
use rustix::process::Signal;

const DISK_BYTES: u64 = 64 << 20;
/// Delay of each I/O of the disk. One I/O after the other keeps the disk busy, but not the CPUs.
const DISK_DELAY: Duration = Duration::from_millis(2);

/// A slow disk without other users, and the file below it. Locals drop in reverse: the disk first.
fn disk(scratch: &Scratch) -> (FuseFile, Loop) {
    let behaviour = Behaviour::plain().delayed(DISK_DELAY);
    let file = FuseFile::serve(scratch, "served", DISK_BYTES, &behaviour);
    let disk = Loop::new(file.path());
    (file, disk)
}

/// Reads from the disk for at most this many seconds, until dropped.
fn neighbour(scratch: &Scratch, disk: &Loop, seconds: u32) -> Running {
    let line = format!(
        "--name=neighbour --filename={} --readonly --rw=randread --bs=64k --direct=1 --thread \
         --ioengine=psync --time_based --runtime={seconds} --eta=never",
        disk.path().display()
    );
    // As a thread: a child process would outlive a killed fio and hold the device.
    let running = Program::Fio.line(scratch, &line).start();
    // Its thread has started and needs no layout: from now on it performs I/O.
    std::thread::sleep(Duration::from_millis(1000));
    running
}

/// The notes of a sweep that waits for an idle device, and its total time.
fn swept(scratch: &Scratch, disk: &Loop, depths: &str) -> (Vec<String>, Duration) {
    swept_with(scratch, disk, depths, "0")
}

/// As [`swept`], with this value of [`NO_IDLE_WAIT`].
fn swept_with(
    scratch: &Scratch,
    disk: &Loop,
    depths: &str,
    no_idle_wait: &str,
) -> (Vec<String>, Duration) {
    let line = format!(
        "sweep {} --rw randread --bs 4k --iodepth {depths} --runtime 1 --exhaustive --format json",
        disk.path().display()
    );
    let began = Instant::now();
    let run = run(scratch, &line).env(NO_IDLE_WAIT, no_idle_wait).ok();
    let took = began.elapsed();
    let document = json(&run.stdout);
    let sweep = &document["sweep"];
    assert_eq!(sweep["curves"][0]["state"], "complete", "{run}");
    let notes = sweep["notes"].as_array().expect("notes").iter();
    let notes = notes.filter_map(|note| note.as_str().map(str::to_owned));
    (notes.collect(), took)
}

/// The seconds that a sweep reports as waiting.
fn waited_s(notes: &[String]) -> Option<f64> {
    let note = notes
        .iter()
        .find(|note| note.contains("for the device to become idle"))?;
    let (number, unit) = note.strip_prefix("waited ")?.split_once(' ')?;
    assert!(unit.starts_with("s "), "{note}");
    number.parse().ok()
}

#[test]
fn cell_waits_until_device_is_idle() {
    require!(Root, Nbdfuse);
    let scratch = Scratch::calm();
    let (_file, disk) = disk(&scratch);
    one_good_try(|| {
        let (notes, _) = swept(&scratch, &disk, "1");
        // A program that scans devices may read this one.
        ensure(waited_s(&notes).is_none(), || {
            format!("a wait without a neighbour: {notes:?}")
        })?;
        let neighbour = neighbour(&scratch, &disk, 5);
        let (notes, took) = swept(&scratch, &disk, "1,2");
        let _ = neighbour.wait();
        // The 5 s begin before the sweep, and a neighbour without CPU time has no I/O.
        let waited = waited_s(&notes).ok_or_else(|| format!("no wait is reported: {notes:?}"))?;
        // At most 10 s before each of the two cells.
        assert!(waited > 0.0 && waited < 30.0, "{waited} s: {notes:?}");
        assert!(
            took.as_secs_f64() >= waited + 1.0,
            "{took:?} for two cells of 1 s after {waited} s"
        );
        let is_timed_out = notes.iter().any(|note| note.contains("other programs"));
        ensure(!is_timed_out, || format!("they left in time: {notes:?}"))
    });
}

#[test]
fn wait_for_busy_device_times_out() {
    require!(Root, Nbdfuse);
    let scratch = Scratch::calm();
    let (_file, disk) = disk(&scratch);
    one_good_try(|| {
        let neighbour = neighbour(&scratch, &disk, 120);
        let (notes, took) = swept(&scratch, &disk, "1");
        neighbour.signal(Signal::INT);
        let _ = neighbour.wait();
        // A neighbour without CPU time has no I/O for a moment.
        let waited = waited_s(&notes).ok_or_else(|| format!("no wait is reported: {notes:?}"))?;
        ensure(waited >= 9.5, || format!("{waited} s: {notes:?}"))?;
        // Well below 120 s. The excess over 10 s depends on other load.
        assert!(waited <= 30.0, "{waited} s: {notes:?}");
        assert!(took < Duration::from_secs(60), "{took:?}");
        let timeout_note = "1 run started while other programs used the device";
        let is_reported = notes.iter().any(|note| note == timeout_note);
        ensure(is_reported, || format!("{notes:?}"))
    });
}

#[test]
fn skipped_wait_for_busy_device_is_noted() {
    require!(Root, Nbdfuse);
    let scratch = Scratch::shared();
    let (_file, disk) = disk(&scratch);
    let skip_note =
        format!("1 run started without a wait while the device was busy: {NO_IDLE_WAIT} is set");
    // A neighbour without CPU time has no I/O for a moment.
    one_good_try(|| {
        let neighbour = neighbour(&scratch, &disk, 120);
        let (notes, _) = swept_with(&scratch, &disk, "1", "1");
        neighbour.signal(Signal::INT);
        let _ = neighbour.wait();
        assert_eq!(waited_s(&notes), None, "{notes:?}");
        ensure(notes.contains(&skip_note), || format!("{notes:?}"))
    });
}
