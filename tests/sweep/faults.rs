//! What goes wrong in the middle of a sweep: its target dies, its history has no room.

use std::fs;

use super::{holds_something, is_complete, json, run};
use iosonde_e2e::fuse::{Behaviour, FuseFile};
use iosonde_e2e::mount::Mount;
use iosonde_e2e::scratch::lay_out;
use iosonde_e2e::{Scratch, require};

const DATA_BYTES: u64 = 32 << 20;

#[test]
fn a_target_that_dies_leaves_what_was_measured_and_the_sweep_goes_on_when_it_is_back() {
    require!(Root, Nbdfuse);
    let scratch = Scratch::shared();
    let mut file = FuseFile::serve(&scratch, "data", DATA_BYTES, &Behaviour::plain());
    let line = "sweep data --bs 4k,64k --iodepth 1,2,4,8 --exhaustive --runtime 1";
    let mut running = run(&scratch, line).start();
    let journals = scratch.out().join("sweeps");
    let has_measured = running.until(|_| holds_something(&journals));
    file.die();
    let died = running.wait();
    assert!(has_measured, "{died}");
    // Which call fails first is chance, and so is the cause that it gives.
    assert!(!died.status.success(), "{died}");
    assert!(died.stderr.contains("data"), "{died}");
    assert!(died.stderr.contains("--resume"), "{died}");
    assert!(
        died.stdout.contains("of 8 cells measured"),
        "prints what is known: {died}"
    );
    assert!(holds_something(&journals), "{died}");
    drop(file);
    let _back = FuseFile::serve(&scratch, "data", DATA_BYTES, &Behaviour::plain());
    let resumed = run(&scratch, &format!("{line} --resume --format json")).ok();
    assert!(resumed.stderr.contains("known from before"), "{resumed}");
    assert!(is_complete(&resumed.stdout), "{resumed}");
}

/// The same where it fills while the sweep runs.
#[test]
fn a_history_that_fills_in_the_middle_costs_a_sweep_nothing_but_itself() {
    require!(Root);
    let scratch = Scratch::shared();
    lay_out(&scratch.work().join("data"), DATA_BYTES as usize);
    let mount = Mount::tmpfs(scratch.work().join("kept"), 4 << 20);
    let line = "sweep data --bs 4k,64k --iodepth 1,2,4 --exhaustive --runtime 1 --format json";
    let mut running = run(&scratch, line)
        .env("IOSONDE_STORE", mount.dir().join("h.db"))
        .env("IOSONDE_NO_SAVE", "0")
        .start();
    let journals = mount.dir().join("sweeps");
    let has_measured = running.until(|_| holds_something(&journals));
    let _ = fs::write(mount.dir().join("filler"), vec![1; 4 << 20]);
    let full = running.wait();
    assert!(has_measured && full.status.success(), "{full}");
    let curves = json(&full.stdout)["sweep"]["curves"]
        .as_array()
        .map(Vec::len);
    assert!(curves == Some(2) && is_complete(&full.stdout), "{full}");
    assert!(full.stderr.contains("not kept"), "{full}");
}

/// A sweep is worth more than its history: without room for either history or journal it is measured and printed, and what
/// it could not keep is told.
#[test]
fn a_history_without_room_costs_a_sweep_nothing_but_itself() {
    require!(Root);
    let scratch = Scratch::shared();
    let mount = Mount::tmpfs(scratch.work().join("kept"), 1 << 20);
    let kept = |line: &str| {
        run(&scratch, line)
            .env("IOSONDE_STORE", mount.dir().join("h.db"))
            .env("IOSONDE_NO_SAVE", "0")
    };
    let line = "sweep sim:read_us=500,parallel=4 --bs 4k --iodepth 1,4 --runtime 2 --format json";
    let before = kept(line).ok();
    assert!(before.stderr.contains("kept in the history"), "{before}");
    // All that there is, to the last byte.
    let _ = fs::write(mount.dir().join("filler"), vec![1; 1 << 20]);
    let full = kept(line).ok();
    assert_eq!(
        json(&full.stdout)["sweep"]["curves"][0]["state"],
        "complete"
    );
    for words in ["not kept", "cannot be resumed"] {
        assert!(
            full.stderr.contains(words),
            "does not tell {words:?}: {full}"
        );
    }
    let list = json(&kept("list --format json").ok().stdout);
    let results = list["results"].as_array().map(Vec::len);
    assert_eq!(results, Some(1), "what was kept before stays: {list}");
}
