//! Faults during a probe: SIGKILL, and a device that disappears.

use std::fs;

use iosonde_e2e::device::Loop;
use iosonde_e2e::{Scratch, ensure, one_good_try, require};
use rustix::process::Signal;

use super::run;

#[test]
fn leftovers_of_killed_probe_are_removed_by_next() {
    let scratch = Scratch::shared();
    scratch.write("mine.txt", "not yours");
    let mut killed = run(&scratch, "probe --quick --size=32m --runtime=1").start();
    let is_there = |scratch: &Scratch| scratch.files().len() > 1;
    assert!(
        killed.until(|_| is_there(&scratch)),
        "{}",
        killed.stdout_text()
    );
    killed.signal(Signal::KILL);
    assert!(!killed.wait().status.success());
    let left = scratch.files();
    assert!(left[0].starts_with(".iosonde-probe-"), "{left:?}");
    let next = run(&scratch, "probe --quick --size=16m --runtime=500ms").ok();
    let words: String = next.stderr.split_whitespace().collect();
    // Line breaks can fall anywhere.
    let listed = format!("{},aleftoverofakilledprobe", left[0]);
    assert!(words.contains(&listed), "{next}");
    assert_eq!(scratch.files(), ["mine.txt"]);
}

#[test]
fn lost_device_is_error_with_partial_result() {
    require!(Root);
    let scratch = Scratch::shared();
    let image = scratch.out().join("image");
    one_good_try(|| {
        let device = Loop::with_file(&image, 64 << 20);
        let line = format!(
            "probe --no-save --quick --details --precision=0 --runtime=1 {}",
            device.path().display()
        );
        let mut running = run(&scratch, &line).start();
        // During the three phases, after the first figure. A busy machine may cut the file later.
        let has_figure = running.until(|running| running.stderr_text().contains("IOPS"));
        let file = fs::File::options().write(true).open(&image);
        file.and_then(|file| file.set_len(0))
            .expect("a file that can be cut");
        let run = running.wait();
        ensure(has_figure && !run.status.success(), || run.to_string())?;
        assert_eq!(run.status.code(), Some(1), "{run}");
        run.refused_with(&["EIO", &device.path().display().to_string(), "kernel log"]);
        assert!(run.stdout.contains("p99.9"), "{run}");
        let words: String = run.stdout.split_whitespace().collect();
        assert!(
            words.contains("1Msequentialread,depth8:endedbyanerror"),
            "{run}"
        );
        Ok(())
    });
}
