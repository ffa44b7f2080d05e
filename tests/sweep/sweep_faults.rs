//! Faults during a sweep: a target that dies, and a history without space.

use std::fs;

use super::{holds_something, is_complete, json, run};
use iosonde_e2e::fuse::{Behaviour, FuseFile};
use iosonde_e2e::mount::Mount;
use iosonde_e2e::scratch::lay_out;
use iosonde_e2e::{Scratch, ensure, one_good_try, require};

const DATA_BYTES: u64 = 32 << 20;

#[test]
fn sweep_resumes_after_death_of_target() {
    require!(Root, Nbdfuse);
    one_good_try(|| {
        let scratch = Scratch::shared();
        let mut file = FuseFile::serve(&scratch, "data", DATA_BYTES, &Behaviour::plain());
        let line = "sweep data --bs 4k,64k --iodepth 1,2,4,8 --exhaustive --runtime 1";
        let mut running = run(&scratch, line).start();
        let journals = scratch.out().join("sweeps");
        let has_measured = running.until(|_| holds_something(&journals));
        file.die();
        let died = running.wait();
        // A busy machine may end the server after the sweep.
        ensure(has_measured && !died.status.success(), || died.to_string())?;
        // Which call fails first, and thus the cause, is random.
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
        assert!(resumed.stderr.contains("from an earlier run"), "{resumed}");
        assert!(is_complete(&resumed.stdout), "{resumed}");
        Ok(())
    });
}

/// The file system fills during the sweep.
#[test]
fn full_history_during_sweep_keeps_result() {
    require!(Root);
    one_good_try(|| {
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
        // A busy machine may fill the file system after the sweep.
        ensure(full.stderr.contains("not stored"), || full.to_string())?;
        Ok(())
    });
}

/// Without space for history and journal the sweep measures and prints its result, and notes that
/// it was not stored.
#[test]
fn full_history_before_sweep_keeps_result() {
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
    assert!(before.stderr.contains("stored in the history"), "{before}");
    // Fills the file system to the last byte.
    let _ = fs::write(mount.dir().join("filler"), vec![1; 1 << 20]);
    let full = kept(line).ok();
    assert_eq!(
        json(&full.stdout)["sweep"]["curves"][0]["state"],
        "complete"
    );
    for words in ["not stored", "cannot be resumed"] {
        assert!(
            full.stderr.contains(words),
            "does not print {words:?}: {full}"
        );
    }
    let list = json(&kept("list --format json").ok().stdout);
    let results = list["results"].as_array().map(Vec::len);
    assert_eq!(results, Some(1), "what was kept before stays: {list}");
}
