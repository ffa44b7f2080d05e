//! Compares the maxima of a probe's short searches with an exhaustive grid on random devices.

use crate::common::reseeded_session::open_reseeded_session;
use iosonde_job::plan::*;
use iosonde_result::run::WorkerResult;
use iosonde_result::session::Session;
use iosonde_sim::drawn::DeviceFamily;
use iosonde_study::probe::{Knee, ProbeBudget, ProbeOptions, ProbePhase, probe};
use iosonde_study::test_targets::simulated_target;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const SECOND_NS: u64 = 1_000_000_000;
/// Largest relative error of a maximum that is reported as sure.
const CLOSE: f64 = 0.02;

/// IOPS of 4 KiB random reads.
fn rate_at(
    session: &mut dyn Session,
    device: &str,
    (jobs, iodepth): (u32, u32),
    runtime_ns: u64,
) -> f64 {
    let mut job = Job::new("cell");
    job.files.size = Some(BytesOrPercent::Bytes(4 << 30));
    job.workload.rw = ReadWrite {
        mode: ReadWriteMode::Read,
        random: true,
    };
    job.workload.block_size = PerDirection::from_value(BlockSize::Fixed(4096));
    job.workload.percentage_random = PerDirection::from_value(100);
    job.io.engine = Engine::Sim;
    job.io.sim = Some(device.to_owned());
    job.io.direct = true;
    job.io.iodepth = iodepth;
    job.numjobs = jobs;
    job.schedule.time_based = true;
    job.schedule.runtime_ns = runtime_ns;
    job.schedule.ramp_time_ns = runtime_ns / 20;
    let plan = Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    };
    let result = session.run(&plan, &mut ()).unwrap();
    let rate = |worker: &WorkerResult| {
        let ios: u64 = worker.directions.iter().map(|(_, d)| d.total_ios).sum();
        ios as f64 * 1e9 / worker.runtime_ns as f64
    };
    result.workers.iter().map(rate).sum()
}

fn probed(device: &str) -> Option<Knee> {
    let target = simulated_target(device);
    let options = ProbeOptions {
        budget: ProbeBudget::NORMAL,
        size_bytes: Some(4 << 30),
        direct: true,
        seed: 1,
    };
    let result = probe(&mut open_reseeded_session(), &target, &options, &mut ()).unwrap();
    let mut knees = result.knees.into_iter();
    knees.find(|knee| knee.phase == ProbePhase::RandomRead)
}

/// Whether the probe is sure of the maximum of a device, or the error of that maximum.
fn try_one(family: DeviceFamily, seed: u64) -> Result<bool, String> {
    let deep = rate_at(
        &mut open_reseeded_session(),
        &family.draw(seed, 1.0),
        (1, 256),
        SECOND_NS / 10,
    );
    let device = family.draw(seed, (deep / 5000.0).max(1.0));
    let name = format!("{} {seed}", family.preset());
    let Some(knee) = probed(&device) else {
        return Err(format!("{name}: no maximum"));
    };
    let found = &knee.saturation;
    let mut session = open_reseeded_session();
    session.runs = 5000;
    let depths: Vec<u32> = (0..=8).map(|power| 1 << power).collect();
    let grid = depths
        .iter()
        .map(|depth| rate_at(&mut session, &device, (found.jobs, *depth), 60 * SECOND_NS));
    let most = grid.fold(0.0, f64::max);
    let off = found.maximum.mean / most - 1.0;
    let error = found.maximum.relative_error();
    let is_sure = error.is_some_and(|error| error <= found.rules.precision);
    if std::env::var_os("IOSONDE_SHOW").is_some() {
        eprintln!(
            "{name:14} {:8.1} of {most:8.1} ({:+.2} %) +- {:.2} % sure {is_sure} \
             knee {} jobs {} spent {} s",
            found.maximum.mean,
            off * 100.0,
            error.unwrap_or(9.99) * 100.0,
            found.knee.iodepth,
            found.jobs,
            found.spent_ns / SECOND_NS,
        );
    }
    match is_sure && off.abs() > CLOSE {
        true => Err(format!("{name}: off by {:.2} %: {device}", off * 100.0)),
        false => Ok(is_sure),
    }
}

#[test]
fn sure_maxima_agree_with_grid() {
    let full = std::env::var("IOSONDE_TEST_FULL").is_ok_and(|full| full == "yes");
    let seeds = if full { 0..4 } else { 0..1 };
    let all = seeds.flat_map(|seed| DeviceFamily::ALL.map(|family| (family, seed)));
    let all: Vec<(DeviceFamily, u64)> = all.collect();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some((family, seed)) = all.get(next.fetch_add(1, Relaxed)) {
                    let one = try_one(*family, *seed);
                    found.lock().unwrap().push(one);
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    let wrong: Vec<&String> = found.iter().filter_map(|one| one.as_ref().err()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let sure = found.iter().filter(|one| **one == Ok(true)).count();
    assert!(2 * sure > all.len(), "{sure} of {} are sure", all.len());
}
