//! Tests that faults of a simulated device are reported.

use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::*;
use iosonde_result::run::RunResult;
use iosonde_result::session::Session;
use iosonde_sim::presets::PRESETS;

fn job(device: &str, mode: ReadWriteMode) -> Job {
    let mut job = Job::new("sim");
    job.io.engine = Engine::Sim;
    job.io.sim = Some(device.to_owned());
    job.io.iodepth = 8;
    job.io.direct = true;
    job.files.size = Some(BytesOrPercent::Bytes(4 << 20));
    job.workload.rw = ReadWrite { mode, random: true };
    job.workload.percentage_random = PerDirection::from_value(100);
    job
}

fn run(job: Job) -> RunResult {
    let plan = Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    };
    LocalRunner::default().open().run(&plan, &mut ()).unwrap()
}

fn verified(device: &str) -> RunResult {
    let mut job = job(device, ReadWriteMode::Write);
    job.verify = Some(Verify {
        fatal: true,
        ..Verify::new(VerifyMethod::Crc32c)
    });
    run(job)
}

#[test]
fn presets_run_without_errors() {
    for preset in PRESETS {
        for mode in [ReadWriteMode::Read, ReadWriteMode::Write] {
            let result = run(job(preset.name, mode));
            let worker = &result.workers[0];
            assert!(
                worker.error.is_none(),
                "{}: {:?}",
                preset.name,
                worker.error
            );
            let ios = worker.directions.read.total_ios + worker.directions.write.total_ios;
            assert_eq!(ios, 1024, "{}", preset.name);
        }
    }
}

#[test]
fn verification_finds_only_flipped_bits_and_lost_writes() {
    assert!(verified("store=1,parallel=4").workers[0].error.is_none());
    for fault in ["flip=77", "lose=77"] {
        let result = verified(fault);
        let failure = result.workers[0].error.as_ref();
        let failure = failure.unwrap_or_else(|| panic!("{fault} was not found"));
        assert_eq!(failure.errno, 84, "{fault}: {failure:?}");
    }
}

#[test]
fn verification_survives_short_transfers() {
    let result = verified("store=1,short=0.3,parallel=4");
    assert!(
        result.workers[0].error.is_none(),
        "{:?}",
        result.workers[0].error
    );
}

#[test]
fn injected_error_ends_the_job_and_is_named() {
    let result = run(job("error_at=100:ENODATA", ReadWriteMode::Read));
    let failure = result.workers[0].error.as_ref().unwrap();
    assert_eq!(failure.errno, 61);
    assert!(failure.message.contains("ENODATA"), "{}", failure.message);
    assert!(failure.message.contains("medium"), "{}", failure.message);
}

#[test]
fn errors_that_are_survived_are_counted() {
    let mut job = job("read_error=0.5", ReadWriteMode::Read);
    job.errors.continue_read = true;
    let result = run(job);
    let worker = &result.workers[0];
    assert!(worker.error.is_none(), "{:?}", worker.error);
    assert_eq!(worker.first_error, 5);
    // Five standard deviations of a binomial distribution with n = 1024, p = 1/2.
    assert!(
        worker.total_errors.abs_diff(512) < 80,
        "{}",
        worker.total_errors
    );
}
