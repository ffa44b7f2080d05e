//! `iosonde probe` on a directory, a file, a device and a full disk, and Ctrl-C in each phase.

mod equal_runs;
mod history;
mod knee;
mod live;
mod loops;
mod probe_faults;

use std::fs;
use std::thread;
use std::time::Duration;

use iosonde_e2e::device::{Loop, tool};
use iosonde_e2e::mount::Mount;
use iosonde_e2e::program::{Invocation, Running, iosonde};
use iosonde_e2e::scratch::lay_out;
use iosonde_e2e::{Scratch, ensure, one_good_try, require};
use rustix::process::Signal;

/// A run of iosonde in the scratch directory.
fn run(scratch: &Scratch, line: &str) -> Invocation {
    Invocation::new(scratch, vec![iosonde().into()]).and(line)
}

#[test]
fn directory_is_measured_and_unchanged() {
    let scratch = Scratch::shared();
    scratch.write("mine.txt", "not yours");
    let run = run(&scratch, "probe --quick --size=32m --runtime=1 --details").ok();
    for words in [
        "random read",
        "random write",
        "sequential read",
        "sequential write",
        "fdatasync",
        "p99",
        "file system",
    ] {
        assert!(
            run.stdout.contains(words),
            "does not print {words:?}: {run}"
        );
    }
    assert!(
        run.stderr.contains("write"),
        "does not say beforehand what it will write: {run}"
    );
    assert_eq!(scratch.files(), ["mine.txt"]);
}

#[test]
fn json_is_only_output_on_stdout() {
    let scratch = Scratch::shared();
    for format in ["json", "fio-json"] {
        let run = run(
            &scratch,
            &format!("probe --quick --size=32m --runtime=500ms --format={format}"),
        )
        .ok();
        let document: serde_json::Value =
            serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"));
        assert!(document.is_object(), "{run}");
    }
}

#[test]
fn targets_are_printed_side_by_side() {
    let scratch = Scratch::shared();
    for name in ["one", "two"] {
        fs::create_dir(scratch.work().join(name)).expect("a directory");
    }
    let run = run(&scratch, "probe --quick --size=32m --runtime=500ms one two").ok();
    assert!(
        run.stdout.contains("one") && run.stdout.contains("two"),
        "{run}"
    );
    assert_eq!(scratch.files(), Vec::<String>::new());
}

/// Number of figures that a probe has printed: one for each phase after the layout.
fn figures_printed(running: &Running) -> usize {
    let printed = running.stderr_text();
    let begins_as_a_figure = |line: &&str| line.starts_with("4k ") || line.starts_with("1M ");
    printed.lines().filter(begins_as_a_figure).count()
}

/// Interrupts a probe some time after this many figures. `Err` if it had already ended.
fn interrupted_probe(
    scratch: &Scratch,
    size: &str,
    figures: usize,
    after: Duration,
) -> Result<(), String> {
    let line = format!("probe --quick --size={size} --runtime=500ms");
    let mut running = run(scratch, &line).start();
    let when = format!("interrupted {after:?} after {figures} figures");
    // A phase without completed I/O, because other tests used the CPUs, prints no figure.
    if !running.until(|running| figures_printed(running) >= figures) {
        return Err(format!("{when}: {}", running.wait()));
    }
    thread::sleep(after);
    running.signal(Signal::INT);
    let run = running.wait();
    assert_eq!(scratch.files(), ["mine.txt"], "{when}: {run}");
    // A signal before the handler is installed kills the process, which has not written yet.
    ensure(!run.status.success(), || format!("{when}: {run}"))
}

/// A quick probe starts with the layout. On a disk that writes 256 MiB in less than 0.6 s, the last
/// interrupt comes in the first phase.
#[test]
fn ctrl_c_in_layout_leaves_nothing() {
    let scratch = Scratch::shared();
    scratch.write("mine.txt", "not yours");
    for after in [30, 200, 600].map(Duration::from_millis) {
        one_good_try(|| interrupted_probe(&scratch, "256m", 0, after));
    }
}

/// After the layout, a quick probe has seven phases, each of half a second after a ramp of half a
/// second.
#[test]
fn ctrl_c_in_each_phase_leaves_nothing() {
    let scratch = Scratch::shared();
    scratch.write("mine.txt", "not yours");
    for figures in 1..7 {
        one_good_try(|| interrupted_probe(&scratch, "32m", figures, Duration::from_millis(300)));
    }
}

#[test]
fn full_disk_error_has_both_sizes() {
    require!(Root);
    let scratch = Scratch::shared();
    let mount = Mount::tmpfs(scratch.work().join("small"), 8 << 20);
    let run = run(&scratch, "probe --quick --size=64m small").run();
    run.refused_with(&["small", "64 MiB", "8 MiB"]);
    assert_eq!(
        fs::read_dir(mount.dir()).expect("a directory").count(),
        0,
        "{run}"
    );
}

#[test]
fn existing_file_is_only_read() {
    let scratch = Scratch::shared();
    let path = scratch.work().join("data");
    lay_out(&path, 64 << 20);
    let before = fs::read(&path).expect("a file");
    let run = run(&scratch, "probe --quick --runtime=1 data").ok();
    assert!(run.stdout.contains("random read"), "{run}");
    assert!(
        fs::read(&path).expect("a file") == before,
        "the file has changed: {run}"
    );
    assert_eq!(scratch.files(), ["data"]);
}

#[test]
fn device_with_file_system_is_only_read() {
    require!(Root);
    let scratch = Scratch::shared();
    let device = Loop::with_file(&scratch.out().join("image"), 64 << 20);
    tool(&["mkfs.ext4", "-q", "-F", &device.path().to_string_lossy()]);
    let before = fs::read(device.path()).expect("a device");
    let run = run(
        &scratch,
        &format!("probe --quick --runtime=1 {}", device.path().display()),
    )
    .ok();
    assert!(run.stdout.contains("random read"), "{run}");
    assert!(
        fs::read(device.path()).expect("a device") == before,
        "the device has changed: {run}"
    );
}

#[test]
fn misspelt_command_gets_hint() {
    let scratch = Scratch::shared();
    run(&scratch, "prob").run().refused_with(&["prob", "probe"]);
    run(&scratch, "probe --sise=1g")
        .run()
        .refused_with(&["--sise", "--size"]);
    run(&scratch, "probe /proc/absent")
        .run()
        .refused_with(&["/proc/absent"]);
}
