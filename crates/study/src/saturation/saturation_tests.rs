//! Compares the knee search with an exhaustive grid on random simulated devices.
//!
//! The devices are networks of queues. Family and seed repeat a device.

#[path = "../../tests/studies/common/reseeded_session.rs"]
mod reseeded_session;

use super::{CurveLog, Ended, KneeQuery, Saturation, SearchRules, doubling, resume_search};
use crate::driver::StudyDriver;
use crate::event::StudyObserver;
use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::*;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_sim::drawn::DeviceFamily;
use reseeded_session::open_reseeded_session;
use std::sync::atomic::{AtomicUsize, Ordering};

const SECOND_NS: u64 = 1_000_000_000;
/// Measured time of a cell of the exhaustive grid.
const CELL_NS: u64 = 60 * SECOND_NS;
/// Largest relative difference between the two maxima.
const CLOSE: f64 = 0.02;

#[derive(Debug, Clone, Copy)]
struct JobPattern {
    rw: ReadWrite,
    block_bytes: u64,
}

const RANDOM_READ: JobPattern = JobPattern {
    rw: ReadWrite {
        mode: ReadWriteMode::Read,
        random: true,
    },
    block_bytes: 4096,
};
const RANDOM_WRITE: JobPattern = JobPattern {
    rw: ReadWrite {
        mode: ReadWriteMode::Write,
        random: true,
    },
    block_bytes: 4096,
};
const RANDOM_READ_LARGE: JobPattern = JobPattern {
    block_bytes: 64 << 10,
    ..RANDOM_READ
};
const SEQUENTIAL_READ: JobPattern = JobPattern {
    rw: ReadWrite {
        mode: ReadWriteMode::Read,
        random: false,
    },
    block_bytes: 256 << 10,
};

fn job(device: &str, pattern: JobPattern) -> Job {
    let mut job = Job::new("cell");
    job.files.size = Some(BytesOrPercent::Bytes(1 << 40));
    job.workload.rw = pattern.rw;
    job.workload.block_size = PerDirection::from_value(BlockSize::Fixed(pattern.block_bytes));
    job.workload.percentage_random =
        PerDirection::from_value(if pattern.rw.random { 100 } else { 0 });
    job.io.engine = Engine::Sim;
    job.io.sim = Some(device.to_owned());
    job.io.direct = true;
    job.schedule.time_based = true;
    job
}

/// The rate of each depth in an exhaustive grid, a minute each.
fn exhaustive(job: &Job, depths: &[u32], jobs: u32) -> Vec<f64> {
    let mut session = open_reseeded_session();
    // The grid sees other noise than the search.
    session.runs = 5000 + u64::from(jobs) * 100;
    let mut cell = |depth: &u32| {
        let mut job = job.clone();
        job.io.iodepth = *depth;
        job.numjobs = jobs;
        job.schedule.runtime_ns = CELL_NS;
        job.schedule.ramp_time_ns = 3 * SECOND_NS;
        rate_of(&mut session, job)
    };
    depths.iter().map(&mut cell).collect()
}

/// I/Os per second of all workers of a job.
fn rate_of(session: &mut dyn Session, job: Job) -> f64 {
    let plan = Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    };
    let result = session.run(&plan, &mut ()).unwrap();
    let rate = |worker: &iosonde_result::run::WorkerResult| {
        let ios: u64 = worker.directions.iter().map(|(_, d)| d.total_ios).sum();
        ios as f64 * 1e9 / worker.runtime_ns as f64
    };
    result.workers.iter().map(rate).sum()
}

fn find_knee(
    session: &mut dyn Session,
    observer: &mut dyn StudyObserver,
    query: &KneeQuery<'_>,
) -> Result<Saturation, RunError> {
    let mut driver = StudyDriver::new(session, observer);
    resume_search(&mut driver, query, &mut CurveLog::default())
}

fn search(job: &Job, depths: &[u32], jobs: &[u32], rules: SearchRules) -> (Saturation, u64) {
    let mut session = open_reseeded_session();
    let query = KneeQuery {
        job,
        depths,
        jobs,
        rules,
        most_cell_ns: None,
        continues_region: false,
    };
    let found = find_knee(&mut session, &mut (), &query).unwrap();
    (found, session.spent_ns)
}

/// The differences of a search from the grid; `None` without any.
fn judge(found: &Saturation, spent_ns: u64, depths: &[u32], grid: &[f64]) -> Option<String> {
    let most = grid.iter().copied().fold(0.0, f64::max);
    let reached = most * (1.0 - found.rules.tolerance);
    let index = grid.iter().position(|rate| *rate >= reached)?;
    let low = depths[index.saturating_sub(1)];
    let high = depths[(index + 1).min(depths.len() - 1)];
    let mut wrong = Vec::new();
    let off = found.maximum.mean / most - 1.0;
    if off.abs() > CLOSE {
        wrong.push(format!("maximum off by {:.2} %", off * 100.0));
    }
    if !(low..=high).contains(&found.knee.iodepth) {
        wrong.push(format!("knee {} for {}", found.knee.iodepth, depths[index]));
    }
    if spent_ns > depths.len() as u64 * CELL_NS / 10 {
        wrong.push(format!("took {} s", spent_ns / SECOND_NS));
    }
    (!wrong.is_empty()).then(|| wrong.join(", "))
}

/// A device of a family, slowed down to `most_iops` so that counting its I/Os takes little time.
fn drawn(family: DeviceFamily, seed: u64, pattern: JobPattern, most_iops: f64) -> String {
    let mut deep = job(&family.draw(seed, 1.0), pattern);
    deep.io.iodepth = 256;
    deep.schedule.runtime_ns = SECOND_NS / 10;
    deep.schedule.ramp_time_ns = SECOND_NS / 100;
    let rate = rate_of(&mut open_reseeded_session(), deep);
    family.draw(seed, (rate / most_iops).max(1.0))
}

fn try_one(family: DeviceFamily, seed: u64, most_iops: f64) -> Option<String> {
    let patterns = [
        RANDOM_READ,
        RANDOM_WRITE,
        RANDOM_READ_LARGE,
        SEQUENTIAL_READ,
    ];
    let pattern = patterns[seed as usize % patterns.len()];
    let device = drawn(family, seed, pattern, most_iops);
    let job = job(&device, pattern);
    let depths = doubling(512);
    let grid = exhaustive(&job, &depths, 1);
    let (found, spent_ns) = search(&job, &depths, &[1], SearchRules::THOROUGH);
    let wrong = judge(&found, spent_ns, &depths, &grid);
    if std::env::var_os("IOSONDE_SHOW").is_some() {
        let most = grid.iter().copied().fold(0.0, f64::max);
        eprintln!(
            "{:10} {seed:3} {:7.1} of {most:7.1} ({:+.2} %) knee {:3} {:3} cells {:2} \
             spent {:2} s {:?} residual {:.3} {}",
            family.preset(),
            found.maximum.mean,
            (found.maximum.mean / most - 1.0) * 100.0,
            found.knee.iodepth,
            found.latency_only.map_or(0, |p| p.iodepth),
            found.cells.len(),
            spent_ns / SECOND_NS,
            found.ended,
            found.curve.map_or(0.0, |curve| curve.residual),
            wrong.clone().unwrap_or_default(),
        );
        if wrong.is_some() {
            eprintln!("    {device}");
            eprintln!("    grid {grid:.1?}");
            for cell in &found.cells {
                eprintln!(
                    "    {} {:.1} +- {:?} {} ms",
                    cell.iodepth,
                    cell.iops.mean,
                    cell.iops.error,
                    cell.measured_ns / 1_000_000
                );
            }
        }
    }
    wrong.map(|wrong| format!("{} {seed}: {wrong}: {device}", family.preset()))
}

/// Tries all devices on all processors. Returns the errors.
fn try_all(seeds: std::ops::Range<u64>, most_iops: f64) -> Vec<String> {
    let tasks: Vec<(DeviceFamily, u64)> = seeds
        .flat_map(|seed| DeviceFamily::ALL.map(|family| (family, seed)))
        .collect();
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let wrong = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((family, seed)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(problem) = try_one(*family, *seed, most_iops) {
                        wrong.lock().unwrap().push(problem);
                    }
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

/// A few slow devices that a debug build counts in seconds; `./test --full` tries hundreds.
#[test]
fn search_agrees_with_grid_in_a_tenth_of_its_time() {
    let full = std::env::var("IOSONDE_TEST_FULL").is_ok_and(|full| full == "yes");
    let wrong = if full {
        try_all(0..40, 1000.0)
    } else {
        try_all(0..2, 1000.0)
    };
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// On this device, 0.6 s of samples agreed to 0.7 % by chance and became the maximum.
#[test]
fn samples_that_agree_by_chance_are_not_the_maximum() {
    let nfs = DeviceFamily::ALL
        .into_iter()
        .find(|it| it.preset() == "nfs");
    assert_eq!(try_one(nfs.expect("a family"), 16, 1000.0), None);
}

#[test]
fn search_finds_number_of_jobs_for_maximum() {
    // One process reaches 500 IOPS, the server 2000.
    let device = "seed=1,read_us=4000,read_dist=exp,parallel=8,worker_us=2000,delay_us=300";
    let job = job(device, RANDOM_READ);
    let depths = doubling(128);
    let (found, spent_ns) = search(&job, &depths, &[1, 2, 4, 8, 16], SearchRules::THOROUGH);
    assert_eq!(found.jobs, 4, "{found:?}");
    assert!(
        (found.maximum.mean / 2000.0 - 1.0).abs() < CLOSE,
        "{found:?}"
    );
    assert!(found.knee.iodepth <= 8, "{found:?}");
    assert!(spent_ns <= SearchRules::THOROUGH.budget_ns);
}

#[test]
fn rate_that_still_rises_is_reported() {
    let device = "seed=1,read_us=20000,read_dist=lognormal:0.2,parallel=1000";
    let (found, _) = search(
        &job(device, RANDOM_READ),
        &doubling(16),
        &[1],
        SearchRules::THOROUGH,
    );
    assert_eq!(found.latency_only, None);
    assert_eq!(found.knee.iodepth, 16);
    let sentence = found.sentence(false, true, "+-");
    assert!(
        sentence.starts_with("still rises at depth 16, with"),
        "{sentence}"
    );
}

#[test]
fn quiet_device_search_ends_early() {
    let device = "seed=1,read_us=1000,read_dist=fixed,parallel=4,cap_iops=2500";
    let (found, spent_ns) = search(&job(device, RANDOM_READ), &doubling(512), &[1], QUICK);
    assert_eq!(found.ended, Ended::Sure, "{found:?}");
    assert!(
        (found.maximum.mean / 2500.0 - 1.0).abs() < 0.01,
        "{found:?}"
    );
    assert_eq!(found.knee.iodepth, 3);
    assert!(spent_ns < 6 * SECOND_NS, "{spent_ns}");
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Saturation>(&json).unwrap(), found);
}

const QUICK: SearchRules = SearchRules {
    budget_ns: 6 * SECOND_NS,
    look_ns: 3 * SECOND_NS / 10,
    least_ns: SECOND_NS,
    precision: 0.01,
    ..SearchRules::THOROUGH
};

/// Checks that the search finds a maximum within its time limit.
#[test]
fn short_search_ends_in_time_with_a_maximum() {
    for family in DeviceFamily::ALL {
        let job = job(&drawn(family, 7, RANDOM_READ, 500.0), RANDOM_READ);
        let (found, spent_ns) = search(&job, &doubling(64), &[1], QUICK);
        assert!(found.maximum.mean > 0.0 && found.maximum.error.is_some());
        assert!(
            spent_ns <= QUICK.budget_ns + SECOND_NS / 2,
            "{family:?} {spent_ns}"
        );
    }
}

/// Fails all I/O from the third run on.
struct FailingSession<S>(S, u32);

impl<S: Session> Session for FailingSession<S> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let mut plan = plan.clone();
        self.1 += 1;
        if self.1 >= 3 {
            for job in &mut plan.jobs {
                let device = job.io.sim.take().unwrap_or_default();
                job.io.sim = Some(format!("{device},read_error=1"));
            }
        }
        self.0.run(&plan, observer)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

#[test]
fn io_error_ends_search_and_keeps_cells() {
    let job = job("seed=1,read_us=1000,parallel=64", RANDOM_READ);
    let query = KneeQuery {
        job: &job,
        depths: &doubling(512),
        jobs: &[1],
        rules: QUICK,
        most_cell_ns: None,
        continues_region: false,
    };
    let mut session = FailingSession(LocalRunner::default().open(), 0);
    let found = find_knee(&mut session, &mut (), &query).unwrap();
    assert_eq!(found.ended, Ended::Failed);
    assert_eq!(found.failure.map(|failure| failure.errno), Some(5));
    assert_eq!(found.cells.len(), 2);
    let mut session = FailingSession(LocalRunner::default().open(), 5);
    assert!(find_knee(&mut session, &mut (), &query).is_err());
}

/// Interrupts after a number of checks.
struct Interrupts(std::cell::Cell<u32>);

impl StudyObserver for Interrupts {
    fn is_interrupted(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }
}

#[test]
fn interrupted_search_keeps_measured_cells() {
    let job = job("seed=1,read_us=1000,parallel=64", RANDOM_READ);
    let query = KneeQuery {
        job: &job,
        depths: &doubling(512),
        jobs: &[1],
        rules: QUICK,
        most_cell_ns: None,
        continues_region: false,
    };
    let find = |checks: u32| {
        let (mut session, mut interrupts) = (open_reseeded_session(), Interrupts(checks.into()));
        find_knee(&mut session, &mut interrupts, &query)
    };
    let found = find(20);
    assert!(found.is_ok_and(|found| found.ended == Ended::Interrupted && !found.cells.is_empty()));
    let nothing = find(1);
    assert!(matches!(nothing, Err(RunError::Interrupted)));
}
