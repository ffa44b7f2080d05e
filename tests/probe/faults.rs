//! What happens to a probe from outside: it is killed, its device goes away.

use std::fs;

use iosonde_e2e::device::Loop;
use iosonde_e2e::{Scratch, require};
use rustix::process::Signal;

use super::run;

#[test]
fn what_a_killed_probe_leaves_is_named_and_removed_by_the_next() {
    let scratch = Scratch::shared();
    scratch.write("mine.txt", "not yours");
    let mut killed = run(&scratch, "probe --quick --size=32m --runtime=1").start();
    let is_there = |scratch: &Scratch| scratch.files().len() > 1;
    assert!(killed.until(|_| is_there(&scratch)), "{}", killed.printed());
    killed.signal(Signal::KILL);
    assert!(!killed.wait().status.success());
    let left = scratch.files();
    assert!(left[0].starts_with(".iosonde-probe-"), "{left:?}");
    let next = run(&scratch, "probe --quick --size=16m --runtime=1").ok();
    let words: String = next.stderr.split_whitespace().collect();
    // Lines are wrapped anywhere.
    let told = format!("{},whichakilledprobehadleft", left[0]);
    assert!(words.contains(&told), "{next}");
    assert_eq!(scratch.files(), ["mine.txt"]);
}

#[test]
fn a_device_that_goes_away_is_an_error_and_what_was_known_is_printed() {
    require!(Root);
    let scratch = Scratch::shared();
    let image = scratch.out().join("image");
    let device = Loop::with_file(&image, 64 << 20);
    let line = format!(
        "probe --no-save --quick --precision=0 --runtime=1 {}",
        device.path().display()
    );
    let mut running = run(&scratch, &line).start();
    // In the middle of the three phases: one has its figure.
    let known = running.until(|running| running.told().contains("IOPS"));
    assert!(known, "{}", running.told());
    let file = fs::File::options().write(true).open(&image);
    file.and_then(|file| file.set_len(0))
        .expect("a file that can be cut");
    let run = running.wait();
    assert_eq!(run.status.code(), Some(1), "{run}");
    run.refused_with(&["EIO", &device.path().display().to_string(), "kernel log"]);
    assert!(run.stdout.contains("p99.9"), "{run}");
    let words: String = run.stdout.split_whitespace().collect();
    assert!(
        words.contains("1Msequentialread,depth8:endedbyanerror"),
        "{run}"
    );
}
