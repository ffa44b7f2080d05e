//! Latency targets, batches and minimum rates on a file with a delay of 10 ms, where the correct
//! outcome is known under any load.

use std::time::Duration;

use iosonde_e2e::fuse::{Behaviour, FuseFile};
use iosonde_e2e::program::Run;
use iosonde_e2e::tree::number;
use iosonde_e2e::{Program, Scratch, ensure, one_good_try, require};
use serde_json::Value;

const JOB: &str =
    "--name=job --filename=slow --direct=1 --bs=4k --size=16m --rw=randread --output-format=json";
const TIMED_OUT: f64 = 110.0;
const EIO: f64 = 5.0;

/// Runs a job with these options with both programs and checks each result.
fn on_a_slow_file(options: &str, check: impl Fn(&Value, &Run) -> Result<(), String>) {
    require!(Root, Nbdfuse);
    let scratch = Scratch::shared();
    let slow = Behaviour::plain().delayed(Duration::from_millis(10));
    let _file = FuseFile::serve(&scratch, "slow", 16 << 20, &slow);
    for program in Program::both() {
        one_good_try(|| {
            let run = program.line(&scratch, &format!("{JOB} {options}")).run();
            let start = run
                .stdout
                .find('{')
                .unwrap_or_else(|| panic!("no JSON: {run}"));
            let document: Value = serde_json::from_str(&run.stdout[start..]).expect("one document");
            check(&document["jobs"][0], &run)
                .map_err(|wrong| format!("{program:?}: {wrong}\n{run}"))
        });
    }
}

/// Error, depth found, and whether the job ran to the end of `runtime_ms`.
fn ended(job: &Value, runtime_ms: f64) -> (f64, f64, bool) {
    let time = number(job, "/job_runtime");
    let read_number = |member: &str| number(job, member);
    (
        read_number("/error"),
        read_number("/latency_depth"),
        time >= 0.9 * runtime_ms,
    )
}

macro_rules! searches {
    ($(
        $name:ident $options:literal $runtime_ms:literal:
            $error:expr, $depth:literal, $whole:literal;
    )+) => {
        $(#[test] fn $name() {
            let options = format!(
                "--ioengine=libaio --iodepth=4 --latency_window=200ms --time_based \
                 --runtime={}ms {}",
                $runtime_ms, $options
            );
            on_a_slow_file(&options, |job, run| {
                assert_eq!(run.status.success(), $error == 0.0, "{run}");
                let found = ended(job, $runtime_ms.into());
                ensure(found == ($error, $depth, $whole), || {
                    format!("{found:?} (error, depth, whole time)")
                })
            });
        })+
    };
}

searches! {
    latency_target_above_all_keeps_full_depth "--latency_target=60s" 60_000: 0.0, 4.0, false;
    latency_target_of_percentile_keeps_full_depth
        "--latency_target=60s --latency_percentile=50" 60_000: 0.0, 4.0, false;
    latency_target_below_all_is_error "--latency_target=5ms" 60_000: TIMED_OUT, 1.0, false;
    missed_latency_percentile_searches_to_end
        "--latency_target=5ms --latency_percentile=90" 1_500: 0.0, 1.0, true;
    latency_run_continues_after_search "--latency_target=60s --latency_run=1" 3_000: 0.0, 4.0, true;
}

#[test]
fn exceeded_max_latency_ends_job() {
    on_a_slow_file("--max_latency=5ms", |job, run| {
        assert!(!run.status.success(), "{run}");
        let error = number(job, "/error");
        ensure(error == TIMED_OUT, || format!("error {error}"))
    });
}

/// The message names the option, so that a log shows which limit was missed.
fn is_too_slow(options: &str, option: &str) {
    let options = format!("--time_based --runtime=60 {options}");
    on_a_slow_file(&options, |job, run| {
        assert!(!run.status.success(), "{run}");
        assert!(run.text().contains(option), "{run}");
        let error = number(job, "/error");
        ensure(error == EIO, || format!("error {error}"))
    });
}

#[test]
fn low_byte_rate_is_an_error() {
    is_too_slow("--rate_min=10m", "rate_min=10485760");
}

#[test]
fn low_io_rate_is_an_error() {
    is_too_slow(
        "--rate_iops=2000 --rate_iops_min=1000",
        "rate_iops_min=1000",
    );
}

#[test]
fn kept_minimum_rate_is_no_error() {
    let options = "--rate_iops_min=1 --time_based --runtime=3";
    on_a_slow_file(options, |job, run| {
        let is_well = run.status.success() && number(job, "/error") == 0.0;
        ensure(is_well, || "it failed".to_owned())
    });
}

/// Reads 160 blocks at depth 8 in batches.
fn batches(options: &str, check: impl Fn(&Value) -> Result<(), String>) {
    let options = format!("--ioengine=libaio --iodepth=8 --number_ios=160 {options}");
    on_a_slow_file(&options, |job, _| check(job));
}

#[test]
fn batches_have_requested_size() {
    batches("--iodepth_batch=8 --iodepth_batch_complete_min=8", |job| {
        let share = |kind: &str| number(job, &format!("/iodepth_{kind}/8"));
        let (submit, complete) = (share("submit"), share("complete"));
        ensure((submit, complete) == (100.0, 100.0), || {
            format!("{submit} % of the submissions, {complete} % of the reapings are of 8")
        })
    });
}

#[test]
fn reaped_batch_has_requested_maximum() {
    batches(
        "--iodepth_batch_complete_min=2 --iodepth_batch_complete_max=2",
        |job| {
            let small = number(job, "/iodepth_complete/4");
            ensure(small >= 95.0, || {
                format!("{small} % of the reapings are of 4 or fewer")
            })
        },
    );
}
