//! Ctrl-C in each phase: the program ends soon, prints its results, and keeps existing files.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use iosonde_e2e::process_state::handles_signal;
use iosonde_e2e::scratch::lay_out;
use iosonde_e2e::{Program, Run, Scratch, ensure, one_good_try, ours};
use rustix::process::Signal;

/// Time limit for the exit, far below the runtime of ten minutes. The last I/O may wait for a
/// shared disk.
const SOON: Duration = Duration::from_secs(120);

/// Interrupts a job after a delay, which begins when the program handles the signal.
fn interrupted(scratch: &Scratch, program: Program, line: &str, after: Duration) -> Run {
    let mut running = program.line(scratch, line).start();
    running.must_reach("a handler of the signal", |running| {
        handles_signal(running.pid(), Signal::INT)
    });
    thread::sleep(after);
    running.signal(Signal::INT);
    let sent = Instant::now();
    let run = running.wait();
    assert!(
        sent.elapsed() < SOON,
        "{program:?} ended {:?} after Ctrl-C: {run}",
        sent.elapsed()
    );
    assert!(
        run.status.signal().is_none(),
        "{program:?} died of a signal: {run}"
    );
    run
}

/// Waits until a file exists: a program needs time to start.
fn until_there_is_a_file(scratch: &Scratch) {
    let begun = Instant::now();
    while scratch.files().is_empty() && begun.elapsed() < SOON {
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn interrupted_run_prints_results() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        lay_out(&scratch.work().join("data"), 1 << 20);
        let line = "--name=job --filename=data --size=1m --rw=randread --time_based --runtime=600 \
                    --thinktime=100 --output-format=json --output=result.json";
        one_good_try(|| {
            let run = interrupted(&scratch, program, line, Duration::from_secs(2));
            assert!(
                !run.status.success(),
                "{program:?} must say by its status that it was interrupted: {run}"
            );
            // A program without CPU time may be interrupted before its job begins.
            let text = fs::read_to_string(scratch.work().join("result.json")).unwrap_or_default();
            let start = text.find('{').ok_or_else(|| format!("no result: {run}"))?;
            let json: serde_json::Value =
                serde_json::from_str(&text[start..]).expect("one whole document");
            assert!(
                scratch.files().contains(&"data".to_owned()),
                "a file that was found must stay"
            );
            // A slow start of the program leaves little of the two seconds.
            let read = &json["jobs"][0]["read"];
            let ios = read["total_ios"].as_u64();
            ensure(ios > Some(100), || format!("{program:?}: {text}"))?;
            let runtime = read["runtime"].as_u64().expect("a runtime");
            ensure((500..10_000).contains(&runtime), || {
                format!("{program:?} says it ran for {runtime} ms")
            })
        });
    }
}

#[test]
fn sigterm_ends_run_with_results() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        lay_out(&scratch.work().join("job.0.0"), 1 << 20);
        let line = "--name=job --size=1m --rw=read --time_based --runtime=600";
        // A run without any I/O yet prints no results.
        one_good_try(|| {
            let running = program.line(&scratch, line).start();
            thread::sleep(Duration::from_secs(1));
            running.signal(Signal::TERM);
            let run = running.within(SOON).wait();
            assert!(!run.status.success(), "{program:?}: {run}");
            let is_reported = run.stdout.contains("READ: bw=");
            ensure(is_reported, || format!("{program:?}: {run}"))
        });
    }
}

#[test]
fn layout_can_be_interrupted() {
    ours!();
    let scratch = Scratch::shared();
    let line = "--name=job --size=20g --rw=randread --fallocate=none";
    let running = Program::subject().line(&scratch, line).start();
    until_there_is_a_file(&scratch);
    running.signal(Signal::INT);
    let run = running.within(SOON).wait();
    assert!(run.status.signal().is_none(), "{run}");
    assert!(!run.status.success(), "{run}");
    assert_eq!(
        scratch.files(),
        Vec::<String>::new(),
        "a file that is half laid out is of no use: {run}"
    );
}

#[test]
fn ramp_and_startdelay_can_be_interrupted() {
    for line in [
        "--name=job --size=1m --rw=read --ramp_time=600 --time_based --runtime=600",
        "--name=job --size=1m --rw=read --startdelay=600",
        "--name=a --size=1m --rw=read --time_based --runtime=600 --name=b --stonewall --size=1m \
         --rw=read --time_based --runtime=600",
        "--name=job --size=1m --rw=read --rate_iops=1 --time_based --runtime=600",
        "--name=job --size=1m --rw=read --thinktime=500s --time_based --runtime=600",
    ] {
        let scratch = Scratch::shared();
        let run = interrupted(&scratch, Program::subject(), line, Duration::from_secs(1));
        assert!(!run.status.success(), "{line}: {run}");
        let files = scratch.files();
        let whole = |name: &String| {
            let file = fs::metadata(scratch.work().join(name));
            file.is_ok_and(|file| file.len() == 1 << 20)
        };
        assert!(files.iter().all(whole), "{line}: {files:?}: {run}");
    }
}

#[test]
fn interrupted_job_keeps_its_file() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        let line = "--name=job --rw=write --size=1m --time_based --runtime=600 --thinktime=1000";
        let running = program.line(&scratch, line).start();
        until_there_is_a_file(&scratch);
        running.signal(Signal::INT);
        let run = running.within(SOON).wait();
        assert!(!run.status.success(), "{program:?}: {run}");
        assert_eq!(scratch.files(), ["job.0.0"], "{program:?}: {run}");
    }
}

/// `fio ... | head`: when the reader ends, the next write kills the program by SIGPIPE, silently.
#[test]
fn closed_output_pipe_ends_program() {
    for program in Program::both() {
        for options in ["--runtime=1", "--runtime=600 --status-interval=500ms"] {
            let scratch = Scratch::shared();
            lay_out(&scratch.work().join("data"), 1 << 20);
            let line = format!(
                "--name=job --filename=data --size=1m --rw=randread --time_based --thinktime=1000 \
                 {options}"
            );
            let words = program.command();
            let mut child = Command::new(&words[0])
                .args(&words[1..])
                .args(line.split_whitespace())
                .current_dir(scratch.work())
                .env("HOME", scratch.state())
                .env("XDG_DATA_HOME", scratch.state())
                .env("XDG_STATE_HOME", scratch.state())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the program starts");
            drop(child.stdout.take());
            let ended = child.wait_with_output().expect("the program ends");
            let signal = Some(Signal::PIPE.as_raw());
            assert_eq!(
                ended.status.signal(),
                signal,
                "{program:?} {options}: {ended:?}"
            );
            assert!(ended.stderr.is_empty(), "{program:?} {options}: {ended:?}");
        }
    }
}
