//! The live view on a terminal.

use std::ffi::OsString;
use std::process::ExitStatus;
use std::thread;
use std::time::Duration;

use iosonde_e2e::program::{Invocation, iosonde};
use iosonde_e2e::terminal::Terminal;
use iosonde_e2e::{Scratch, ensure, one_good_try};

use super::run;

const PROBE: &str = "probe --no-save --quick --size=32m --runtime=1";
const STEPS: [&str; 4] = [
    "writing the working",
    "random read",
    "fdatasync",
    "sequential write",
];

/// Whether one screen shows all steps and the current figures.
fn is_complete(screen: &str) -> bool {
    let shows = |words: &str| screen.contains(words);
    STEPS.iter().all(|step| shows(step))
        && [" left, Ctrl-C", "now ", "IOPS", "iB/s", "p50"]
            .iter()
            .all(|each| shows(each))
        && (shows("±") || shows("+-"))
}

/// Checks that no line of the live view remains and the terminal is restored.
fn is_clean(terminal: &Terminal) {
    let screen = terminal.screen();
    assert!(terminal.has_cursor(), "the cursor is hidden: {screen}");
    for remains in ["now ", "> ", "depth   "] {
        let left = terminal.rows().iter().any(|row| row.starts_with(remains));
        assert!(!left, "{remains:?} is left: {screen}");
    }
    let is_first_line = |line: &str| line.contains(" left, Ctrl-C stops early");
    assert!(!screen.lines().any(is_first_line), "it is left: {screen}");
}

/// Checks the status of a command that got Ctrl-C. `Err`: it had ended by itself before.
fn check_interrupted(status: ExitStatus, terminal: &Terminal) -> Result<(), String> {
    ensure(!status.success(), || format!("{terminal:?}"))?;
    assert_eq!(status.code(), Some(130), "{terminal:?}");
    Ok(())
}

#[test]
fn live_view_fits_screen_and_is_removed() {
    let scratch = Scratch::shared();
    let check = |rows, columns| -> Result<(), String> {
        let mut terminal = run(&scratch, PROBE).on_terminal(rows, columns);
        // A test without CPU time sees no such screen before the end.
        let mut seen = String::new();
        let drawn = terminal.until(|screen| {
            seen = screen.to_owned();
            is_complete(screen)
        });
        ensure(drawn, || format!("{columns} columns: {terminal:?}"))?;
        // Updates overwrite the previous lines: each step appears once.
        let times = seen.matches("1M sequential write, depth 8").count();
        assert_eq!(times, 1, "{columns} columns: {seen}");
        let status = terminal.wait();
        assert!(status.success(), "{columns} columns: {terminal:?}");
        is_clean(&terminal);
        assert!(terminal.screen().contains("verdict  "), "{terminal:?}");
        assert_eq!(scratch.files(), Vec::<String>::new());
        Ok(())
    };
    for (rows, columns) in [(24, 80), (24, 60)] {
        one_good_try(|| check(rows, columns));
    }
}

/// A view with more lines than the terminal would leave its first ones behind.
#[test]
fn live_view_fits_low_and_wide_terminals() {
    let scratch = Scratch::shared();
    let check = |rows, columns| -> Result<(), String> {
        let mut terminal = run(&scratch, PROBE).on_terminal(rows, columns);
        let measures = terminal.until(|screen| {
            let count_rows = |start: &str| {
                let rows = screen.lines().filter(|row| row.starts_with(start));
                rows.count()
            };
            let is_whole = count_rows("> ") > 0 && count_rows("now ") == 1;
            is_whole && screen.contains("Ctrl-C stops")
        });
        ensure(measures, || format!("{columns} columns: {terminal:?}"))?;
        assert!(terminal.wait().success(), "{terminal:?}");
        is_clean(&terminal);
        Ok(())
    };
    for (rows, columns) in [(10, 40), (40, 120)] {
        one_good_try(|| check(rows, columns));
    }
}

#[test]
fn load_shows_a_latency_curve_that_grows() {
    let scratch = Scratch::shared();
    let line = "load . --no-save --size 32m --rates 200,400,800 --runtime 3";
    one_good_try(|| {
        let mut terminal = run(&scratch, line).on_terminal(40, 80);
        let grows = terminal.until(|screen| {
            let runs = screen.contains("left, Ctrl-C") && screen.contains("now ");
            runs && screen.contains("offered IOPS") && screen.contains("latency over offered rate")
        });
        ensure(grows, || format!("{terminal:?}"))?;
        assert!(terminal.wait().success(), "{terminal:?}");
        is_clean(&terminal);
        Ok(())
    });
}

#[test]
fn live_view_follows_window_size() {
    let scratch = Scratch::shared();
    one_good_try(|| {
        let mut terminal = run(&scratch, PROBE).on_terminal(24, 60);
        let is_narrow = |screen: &str| screen.contains("now ") && !screen.contains('[');
        ensure(terminal.until(is_narrow), || format!("{terminal:?}"))?;
        terminal.resize(30, 100);
        let wider = terminal.until(|screen| is_complete(screen) && screen.contains('['));
        ensure(wider, || format!("{terminal:?}"))?;
        terminal.resize(30, 40);
        ensure(terminal.until(is_narrow), || format!("{terminal:?}"))?;
        assert!(terminal.wait().success(), "{terminal:?}");
        is_clean(&terminal);
        Ok(())
    });
}

#[test]
fn ctrl_z_and_fg_repeat_phase() {
    let scratch = Scratch::shared();
    // Only a shell with job control can resume a stopped program.
    let words = ["bash", "--norc", "--noprofile", "-i"].map(OsString::from);
    one_good_try(|| {
        let mut terminal = Invocation::new(&scratch, words.clone().into()).on_terminal(40, 100);
        let program = iosonde().display();
        terminal.types(&format!(
            "{program} probe --no-save --quick --details --size=32m --runtime=2\n"
        ));
        // The row has a rate once the run of its phase reports one.
        let has_ended = |screen: &str| screen.contains("This is ");
        terminal.until(|screen| {
            let mut rows = screen.lines();
            rows.any(|row| row.starts_with("> 1M sequential read") && row.contains("iB/s"))
                || has_ended(screen)
        });
        terminal.types("\x1a");
        terminal.until(|screen| screen.contains("Stopped") || has_ended(screen));
        let is_stopped = terminal.screen().contains("Stopped");
        ensure(is_stopped, || format!("{terminal:?}"))?;
        thread::sleep(Duration::from_secs(3));
        terminal.types("fg\n");
        let has_ended = terminal.until(has_ended);
        ensure(has_ended, || format!("{terminal:?}"))?;
        terminal.types("exit\n");
        terminal.wait();
        is_clean(&terminal);
        let sent = terminal.sent();
        ensure(sent.contains("the process was stopped for"), || {
            sent.clone()
        })?;
        ensure(sent.contains("measured again"), || sent.clone())?;
        assert!(!sent.contains("nothing was measured"), "{sent}");
        Ok(())
    });
}

#[test]
fn targets_share_one_view_that_follows_window_size() {
    let scratch = Scratch::shared();
    for name in ["one", "two"] {
        std::fs::create_dir(scratch.work().join(name)).expect("a directory");
    }
    let has_row = |screen: &str, title: &str| {
        let mut rows = screen.lines();
        rows.any(|row| {
            row.strip_prefix("> ")
                .unwrap_or(row)
                .trim_start()
                .starts_with(title)
        })
    };
    let shows_both = |screen: &str| {
        screen.contains("2 targets in turns") && has_row(screen, "A /") && has_row(screen, "B /")
    };
    let is_narrow = |screen: &str| {
        let mut running = screen.lines().filter(|row| row.starts_with("> "));
        running.any(|row| row.contains("IOPS") || row.contains("iB/s"))
    };
    one_good_try(|| {
        let mut terminal = run(&scratch, &format!("{PROBE} one two")).on_terminal(40, 80);
        ensure(terminal.until(shows_both), || format!("{terminal:?}"))?;
        terminal.resize(40, 40);
        ensure(terminal.until(is_narrow), || format!("{terminal:?}"))?;
        assert!(terminal.wait().success(), "{terminal:?}");
        is_clean(&terminal);
        assert_eq!(scratch.files(), Vec::<String>::new());
        Ok(())
    });
}

#[test]
fn simulated_targets_leave_the_terminal_clean() {
    let scratch = Scratch::shared();
    for columns in [40, 80, 120] {
        let line = "probe --no-save --quick sim:hdd sim:sata-ssd";
        let mut terminal = run(&scratch, line).on_terminal(60, columns);
        assert!(terminal.wait().success(), "{terminal:?}");
        is_clean(&terminal);
        let sent = terminal.sent();
        assert!(sent.contains("B sim:sata-ssd"), "{sent}");
        // The device of the second target is surely faster.
        assert!(
            sent.contains("B sim:sata-ssd leads") || columns == 40,
            "{sent}"
        );
    }
}

#[test]
fn sweep_shows_a_heat_table_that_fills() {
    let scratch = Scratch::shared();
    let line = "sweep . --no-save --size 32m --rw randread --bs 4k,64k --iodepth 1,4 \
                --exhaustive --runtime 2";
    one_good_try(|| {
        let mut terminal = run(&scratch, line).on_terminal(40, 80);
        let fills = terminal.until(|screen| {
            let has_header = screen.contains("depth   1   4");
            has_header && screen.contains("left, Ctrl-C") && screen.contains("now ")
        });
        ensure(fills, || format!("{terminal:?}"))?;
        assert!(terminal.wait().success(), "{terminal:?}");
        is_clean(&terminal);
        Ok(())
    });
}

#[test]
fn ctrl_c_restores_terminal_of_several_targets() {
    let scratch = Scratch::shared();
    for name in ["one", "two"] {
        std::fs::create_dir(scratch.work().join(name)).expect("a directory");
    }
    let measures = |screen: &str| screen.contains("2 targets in turns") && screen.contains("IOPS");
    one_good_try(|| {
        let mut terminal = run(&scratch, &format!("{PROBE} one two")).on_terminal(40, 80);
        ensure(terminal.until(measures), || format!("{terminal:?}"))?;
        terminal.types("\x03");
        let status = terminal.wait();
        is_clean(&terminal);
        assert_eq!(scratch.files(), Vec::<String>::new());
        check_interrupted(status, &terminal)
    });
}

#[test]
fn ctrl_z_clears_the_view_and_fg_brings_it_back() {
    let scratch = Scratch::shared();
    let words = ["bash", "--norc", "--noprofile", "-i"].map(OsString::from);
    let is_drawn = |screen: &str| screen.contains(" left, Ctrl-C stops early");
    let has_ended = |screen: &str| screen.contains("verdict  ") && !is_drawn(screen);
    one_good_try(|| {
        let mut terminal = Invocation::new(&scratch, words.clone().into()).on_terminal(40, 100);
        let program = iosonde().display();
        terminal.types(&format!(
            "{program} probe --no-save --quick --size=32m --runtime=2\n"
        ));
        // A test without CPU time may miss the view, and type after the end of the probe.
        terminal.until(|screen| is_drawn(screen) || has_ended(screen));
        terminal.types("\x1a");
        let is_stopped = |screen: &str| screen.contains("Stopped") && !is_drawn(screen);
        terminal.until(|screen| is_stopped(screen) || has_ended(screen));
        ensure(is_stopped(&terminal.screen()), || format!("{terminal:?}"))?;
        assert!(terminal.has_cursor(), "{terminal:?}");
        terminal.types("fg\n");
        let is_drawn_again = terminal.until(|screen| is_drawn(screen) || has_ended(screen));
        assert!(is_drawn_again, "{terminal:?}");
        ensure(is_drawn(&terminal.screen()), || format!("{terminal:?}"))?;
        assert!(terminal.until(has_ended), "{terminal:?}");
        terminal.types("exit\n");
        terminal.wait();
        is_clean(&terminal);
        Ok(())
    });
}

#[test]
fn ctrl_c_restores_terminal() {
    let scratch = Scratch::shared();
    one_good_try(|| {
        let mut terminal = run(&scratch, PROBE).on_terminal(24, 80);
        let measures = terminal.until(|screen| screen.contains("> 1M sequential read"));
        ensure(measures, || format!("{terminal:?}"))?;
        terminal.types("\x03");
        let status = terminal.wait();
        is_clean(&terminal);
        assert_eq!(scratch.files(), Vec::<String>::new());
        check_interrupted(status, &terminal)?;
        assert!(terminal.screen().contains("interrupted"), "{terminal:?}");
        Ok(())
    });
}

#[test]
fn live_view_respects_no_color_and_dumb_terminal() {
    let scratch = Scratch::shared();
    let quiet = |terminal: &mut Terminal| {
        assert!(terminal.wait().success(), "{terminal:?}");
        terminal.sent()
    };
    let plain = quiet(
        &mut run(&scratch, PROBE)
            .env("NO_COLOR", "1")
            .on_terminal(24, 80),
    );
    assert!(plain.contains("now ") && plain.contains("\x1b["), "{plain}");
    let colours = plain.split("\x1b[").skip(1).filter(|rest| {
        let end = rest.find(|c: char| c.is_ascii_alphabetic());
        end.is_some_and(|end| rest[end..].starts_with('m') && &rest[..end] != "0")
    });
    assert_eq!(colours.count(), 0, "{plain}");
    let dumb = quiet(&mut run(&scratch, PROBE).env("TERM", "dumb").on_terminal(24, 80));
    assert!(
        !dumb.contains('\x1b') && dumb.contains("7 phases"),
        "{dumb}"
    );
}
