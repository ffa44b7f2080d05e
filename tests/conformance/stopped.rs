//! A process that is stopped during a run, by a signal or by freezing its control group: the result
//! reports it. fio's figures include that time; those of studies do not.

use std::thread;
use std::time::Duration;

use iosonde_e2e::program::{Invocation, Running, iosonde};
use iosonde_e2e::scratch::lay_out;
use iosonde_e2e::throttle::Throttle;
use iosonde_e2e::{Program, Scratch, ensure, one_good_try, require};
use rustix::process::Signal;
use serde_json::Value;

/// Duration of the stop.
const STOP: Duration = Duration::from_secs(3);
/// Time between start and stop.
const AFTER: Duration = Duration::from_secs(2);
/// The words of the finding in a study.
const FINDING_TEXT: &str = "this process did not run for";

/// Sends SIGSTOP, and SIGCONT after [`STOP`].
fn stop(running: &Running) {
    running.signal(Signal::STOP);
    thread::sleep(STOP);
    running.signal(Signal::CONT);
}

fn longest_ns(result: &Value) -> f64 {
    let longest = &result["jobs"][0]["read"]["lat_ns"]["max"];
    longest.as_f64().expect("a longest latency")
}

/// Evidence of the verdict that the process was stopped.
fn verdict(result: &Value) -> Option<String> {
    let verdicts = result["iosonde"]["verdicts"].as_array()?;
    let stopped = verdicts
        .iter()
        .find(|verdict| verdict["kind"] == "stopped")?;
    stopped["evidence"].as_str().map(str::to_owned)
}

/// Stops fio and the subject during a job of this pace.
fn check_fio_figures(pace: &str) {
    for program in Program::both() {
        let scratch = Scratch::shared();
        lay_out(&scratch.work().join("data"), 1 << 20);
        one_good_try(|| {
            let line = format!(
                "--name=job --filename=data --size=1m --rw=randread --time_based --runtime=6 \
                 {pace} --output-format=json"
            );
            let running = program.line(&scratch, &line).start();
            thread::sleep(AFTER);
            stop(&running);
            let run = running.wait();
            assert!(run.status.success(), "{program:?}: {run}");
            assert_eq!(run.stderr, "", "{program:?}: {run}");
            let result: Value = serde_json::from_str(&run.stdout).expect("JSON");
            // An I/O in flight, or one that a thread was about to submit, includes the stop.
            if program.is_fio() {
                return Ok(());
            }
            let finding = verdict(&result).unwrap_or_default();
            ensure(finding.contains("the figures include that time"), || {
                run.to_string()
            })?;
            let runtime = result["jobs"][0]["read"]["runtime"].as_u64();
            ensure(
                runtime.is_some_and(|ms| (5_900..7_500).contains(&ms)),
                || format!("the stop is part of the time: {run}"),
            )?;
            let stop_ns = STOP.as_nanos() as f64;
            let in_flight = !pace.contains("thinktime");
            ensure(!in_flight || longest_ns(&result) > 0.9 * stop_ns, || {
                format!("one was in flight: {run}")
            })
        });
    }
}

#[test]
fn fio_figures_of_pausing_job_include_stop() {
    check_fio_figures("--thinktime=100");
}

/// The job always waits in the kernel.
#[test]
fn fio_figures_of_busy_job_include_stop() {
    check_fio_figures("--ioengine=libaio --direct=1 --iodepth=4");
}

#[test]
fn running_process_has_no_stop_verdict() {
    let scratch = Scratch::shared();
    lay_out(&scratch.work().join("data"), 1 << 20);
    let line = "--name=job --filename=data --size=1m --rw=randread --time_based --runtime=3";
    // A machine that stops for a moment stops the process as well.
    one_good_try(|| {
        let result = Program::subject().line(&scratch, line).json();
        verdict(&result).map_or(Ok(()), Err)
    });
}

#[test]
fn frozen_control_group_counts_as_stop() {
    require!(Root, Freezer);
    let scratch = Scratch::shared();
    lay_out(&scratch.work().join("data"), 1 << 20);
    let group = Throttle::to_freeze();
    let line = "--name=job --filename=data --size=1m --rw=randread --time_based --runtime=6 \
                --thinktime=100";
    one_good_try(|| {
        let running = Program::subject()
            .line(&scratch, line)
            .throttled(&group)
            .start();
        thread::sleep(AFTER);
        group.freeze(true);
        thread::sleep(STOP);
        group.freeze(false);
        let run = running.wait();
        ensure(run.stdout.contains(FINDING_TEXT), || run.to_string())
    });
}

/// A command of iosonde that stores results whatever the environment of the tests says.
fn ours(scratch: &Scratch, line: &str) -> Invocation {
    Invocation::new(scratch, vec![iosonde().into()])
        .and(line)
        .env("IOSONDE_NO_SAVE", "0")
}

/// A suite of one job of six seconds.
const SUITE: &str = r#"
[[workload]]
name = "slow"
job = """
[slow]
rw=randread
size=1m
bs=4k
runtime=6
time_based=1
PACE
"""
"#;

/// Stops a suite whose job has this pace.
fn check_study_figures(pace: &str) {
    let scratch = Scratch::shared();
    let suite = scratch.out().join("suite.toml");
    std::fs::write(&suite, SUITE.replace("PACE", pace)).expect("a suite");
    let line = format!("run {} . --format json", suite.display());
    one_good_try(|| {
        let running = ours(&scratch, &line).start();
        // The inspection of the machine takes the first second.
        thread::sleep(AFTER + AFTER);
        stop(&running);
        let run = running.wait();
        assert!(run.status.success(), "{run}");
        let result: Value = serde_json::from_str(&run.stdout).expect("JSON");
        let step = &result["suites"][0]["steps"][0];
        let finding = step["findings"].to_string();
        ensure(finding.contains(FINDING_TEXT), || run.to_string())?;
        assert!(finding.contains("the figures exclude that time"), "{run}");
        // Both figures come from one run, which the stop would make 50 % longer.
        let elapsed_ns = step["elapsed_ns"].as_f64().expect("a time");
        ensure(elapsed_ns < 8e9, || format!("the stop is in it: {run}"))?;
        let exported = ours(&scratch, "export latest --format fio-json").ok();
        let exported: Value = serde_json::from_str(&exported.stdout).expect("JSON");
        ensure(longest_ns(&exported) < 0.9 * STOP.as_nanos() as f64, || {
            format!("an I/O in flight has the stop as its latency: {exported}")
        })
    });
}

#[test]
fn study_figures_of_pausing_job_exclude_stop() {
    check_study_figures("thinktime=100");
}

#[test]
fn study_figures_of_busy_job_exclude_stop() {
    check_study_figures("ioengine=libaio\ndirect=1\niodepth=4");
}
