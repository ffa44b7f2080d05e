//! A sweep beside somebody else who uses the device: it waits, for a while, and says so.

use std::time::{Duration, Instant};

use super::{json, run};
use iosonde_e2e::device::Loop;
use iosonde_e2e::mount::Mount;
use iosonde_e2e::program::{Program, Running};
use iosonde_e2e::{Scratch, ensure, one_good_try, require};
use rustix::process::Signal;

const DISK_BYTES: usize = 64 << 20;

/// A disk that nobody else uses, behind the memory that it is in: what is made last goes first.
fn disk(scratch: &Scratch) -> (Mount, Loop) {
    let memory = Mount::tmpfs(scratch.work().join("memory"), 2 * DISK_BYTES as u64);
    let disk = Loop::in_memory(&memory, DISK_BYTES);
    (memory, disk)
}

/// Reads from the disk all the time, for so long at most, until it is dropped.
fn neighbour(scratch: &Scratch, disk: &Loop, seconds: u32) -> Running {
    let line = format!(
        "--name=neighbour --filename={} --readonly --rw=randread --bs=64k --direct=1 --ioengine=psync \
         --time_based --runtime={seconds} --eta=never",
        disk.path().display()
    );
    let running = Program::Fio.line(scratch, &line).start();
    // It has forked and lays nothing out: what it does from now on is I/O.
    std::thread::sleep(Duration::from_millis(1000));
    running
}

/// What a sweep of some cells notes, how long it was about to wait, and the whole time.
fn swept(scratch: &Scratch, disk: &Loop, depths: &str) -> (Vec<String>, Duration) {
    let line = format!(
        "sweep {} --rw randread --bs 4k --iodepth {depths} --runtime 1 --exhaustive --format json",
        disk.path().display()
    );
    let began = Instant::now();
    let run = run(scratch, &line).ok();
    let took = began.elapsed();
    let document = json(&run.stdout);
    let sweep = &document["sweep"];
    assert_eq!(sweep["curves"][0]["state"], "complete", "{run}");
    let notes = sweep["notes"].as_array().expect("notes").iter();
    let notes = notes.filter_map(|note| note.as_str().map(str::to_owned));
    (notes.collect(), took)
}

/// The seconds that a sweep says that it waited.
fn waited_s(notes: &[String]) -> Option<f64> {
    let note = notes
        .iter()
        .find(|note| note.contains("for the device to become idle"))?;
    let (number, unit) = note.strip_prefix("waited ")?.split_once(' ')?;
    assert!(unit.starts_with("s "), "{note}");
    number.parse().ok()
}

#[test]
fn a_cell_waits_until_others_leave_the_device() {
    require!(Root);
    let scratch = Scratch::alone();
    let (_memory, disk) = disk(&scratch);
    let (notes, _) = swept(&scratch, &disk, "1,2");
    assert_eq!(waited_s(&notes), None, "nobody else is there: {notes:?}");
    one_good_try(|| {
        let neighbour = neighbour(&scratch, &disk, 6);
        let (notes, took) = swept(&scratch, &disk, "1,2");
        let _ = neighbour.wait();
        // A neighbour that does not run is none, and how much of its 6 s are left is a matter of how fast programs start here.
        let waited = waited_s(&notes).ok_or_else(|| format!("no wait is told: {notes:?}"))?;
        // 10 s before each of the two cells at most.
        assert!(waited > 0.0 && waited < 30.0, "{waited} s: {notes:?}");
        assert!(
            took.as_secs_f64() >= waited + 1.0,
            "{took:?} for two cells of 1 s after {waited} s"
        );
        let is_in_vain = notes.iter().any(|note| note.contains("in use by others"));
        ensure(!is_in_vain, || format!("they left in time: {notes:?}"))
    });
}

#[test]
fn a_wait_in_vain_ends_and_is_told() {
    require!(Root);
    let scratch = Scratch::alone();
    let (_memory, disk) = disk(&scratch);
    one_good_try(|| {
        let neighbour = neighbour(&scratch, &disk, 120);
        let (notes, took) = swept(&scratch, &disk, "1");
        neighbour.signal(Signal::INT);
        let _ = neighbour.wait();
        // A neighbour whose processor is taken away for a moment is none.
        let waited = waited_s(&notes).ok_or_else(|| format!("no wait is told: {notes:?}"))?;
        ensure(waited >= 9.5, || format!("{waited} s: {notes:?}"))?;
        // Not all the 120 s. How much longer than 10 s is a matter of what else runs here.
        assert!(waited <= 30.0, "{waited} s: {notes:?}");
        assert!(took < Duration::from_secs(60), "{took:?}");
        let in_vain = "1 cell began while the device was in use by others";
        let is_told = notes.iter().any(|note| note == in_vain);
        ensure(is_told, || format!("{notes:?}"))
    });
}
