//! Coverage and width of the intervals of a run, and the differences that `compare` finds.
//!
//! The figures of the simulated device are known in closed form: four servers with exponential
//! service, four I/Os in flight, no waiting. `IOSONDE_TEST_FULL=yes` tries 600 runs and 40 pairs of
//! each difference, otherwise 40 and 8. `IOSONDE_TRIALS` sets the number of runs.

use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::{
    BytesOrPercent, Engine, Job, PerDirection, Plan, ReadWrite, ReadWriteMode,
};
use iosonde_result::compare::{
    ComparisonVerdict, Figure, Measure, MeasuredResult, Subject, compare, parts,
};
use iosonde_result::histogram;
use iosonde_result::session::Session;
use std::thread;

const SERVERS: u32 = 4;
const SERVICE_US: f64 = 100.0;
const RUNTIME_NS: u64 = 12_000_000_000;
const NORMAL_97_5: f64 = 1.96;

fn is_full() -> bool {
    std::env::var("IOSONDE_TEST_FULL").as_deref() == Ok("yes")
}

/// A run of the device with a mean service time of `service_us`.
fn measured(service_us: f64, seed: u64) -> MeasuredResult {
    let mut job = Job::new("randread");
    job.io.engine = Engine::Sim;
    job.io.sim = Some(format!(
        "read_us={service_us},read_dist=exp,write_us=1,parallel={SERVERS},seed={seed}"
    ));
    job.io.direct = true;
    job.io.iodepth = SERVERS;
    job.files.size = Some(BytesOrPercent::Bytes(1 << 30));
    job.workload.rw = ReadWrite {
        mode: ReadWriteMode::Read,
        random: true,
    };
    job.workload.percentage_random = PerDirection::from_value(100);
    job.workload.randseed = Some(seed);
    job.schedule.time_based = true;
    job.schedule.runtime_ns = RUNTIME_NS;
    let plan = Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    };
    let result = LocalRunner::default().open().run(&plan, &mut ()).unwrap();
    MeasuredResult {
        name: "run".into(),
        machine: None,
        parts: parts(&result),
    }
}

/// Runs with all seeds of a range, on all processors.
fn all_measured(service_us: f64, seeds: std::ops::Range<u64>) -> Vec<MeasuredResult> {
    let threads = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let share = (seeds.end - seeds.start).div_ceil(threads).max(1);
    thread::scope(|scope| {
        let starts = (seeds.start..seeds.end).step_by(share as usize);
        let workers: Vec<_> = starts
            .map(|first| {
                let end = (first + share).min(seeds.end);
                let runs = move || {
                    (first..end)
                        .map(|seed| measured(service_us, seed))
                        .collect()
                };
                scope.spawn::<_, Vec<MeasuredResult>>(runs)
            })
            .collect();
        let all = workers.into_iter().map(|worker| worker.join().unwrap());
        all.flatten().collect()
    })
}

fn figure(run: &MeasuredResult, measure: Measure) -> Figure {
    *run.parts[0].figure(Subject::Read, measure).unwrap()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// The latency in nanoseconds that a share of exponential latencies does not exceed.
fn quantile_ns(share: f64) -> f64 {
    -(1.0 - share).ln() * SERVICE_US * 1e3
}

#[test]
fn intervals_cover_known_figures_without_excess_width() {
    let asked = std::env::var("IOSONDE_TRIALS").ok();
    let usual = if is_full() { 600 } else { 40 };
    let runs = asked.map_or(usual, |text| {
        text.parse().expect("IOSONDE_TRIALS is a number")
    });
    let runs = all_measured(SERVICE_US, 1..runs + 1);
    let truths = [
        (Measure::Iops, f64::from(SERVERS) * 1e6 / SERVICE_US),
        (Measure::LatMean, SERVICE_US * 1e3),
        (Measure::LatP50, quantile_ns(0.5)),
        (Measure::LatP99, quantile_ns(0.99)),
        (Measure::LatP999, quantile_ns(0.999)),
    ];
    let mut wrong = Vec::new();
    for (measure, truth) in truths {
        let figures: Vec<Figure> = runs.iter().map(|run| figure(run, measure)).collect();
        let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
        let bounds = figures.iter().map(|figure| figure.bounds.unwrap());
        let covered = bounds
            .clone()
            .filter(|bounds| (bounds.low..=bounds.high).contains(&truth))
            .count();
        let mut widths: Vec<f64> = bounds
            .map(|bounds| (bounds.high - bounds.low) / 2.0)
            .collect();
        widths.sort_by(f64::total_cmp);
        let error = NORMAL_97_5 * deviation(&values);
        let width = widths[widths.len() / 2] / error;
        let share = covered as f64 / runs.len() as f64;
        println!(
            "{measure:?}: truth {truth:.0}, mean {:.0}, covered {share:.3}, width {width:.2}",
            mean(&values)
        );
        let stray = 3.0 * (0.05 * 0.95 / runs.len() as f64).sqrt();
        // A histogram gives percentiles in whole buckets, so a narrow interval covers too often.
        let bucket = match measure {
            Measure::Iops | Measure::LatMean => 0.0,
            _ => histogram::width(histogram::index_of(truth as u64)) as f64 / error,
        };
        if share < 0.93 - stray || bucket < 0.5 && share > 0.97 + stray {
            wrong.push(format!("{measure:?}: {covered} of {} covered", runs.len()));
        }
        // The relative error of a standard deviation of n runs is one over the root of 2 n.
        let stray = 3.0 / (2.0 * runs.len() as f64).sqrt();
        if width > 1.25 * (1.0 + stray) + bucket {
            wrong.push(format!("{measure:?}: width {width:.2}, bucket {bucket:.2}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn small_differences_are_found_as_by_known_variance() {
    let pairs = if is_full() { 40 } else { 8 };
    let first = all_measured(SERVICE_US, 1001..1001 + pairs);
    let logs = |runs: &[MeasuredResult]| -> Vec<f64> {
        let rates = runs.iter().map(|run| figure(run, Measure::Iops).value.ln());
        rates.collect()
    };
    for (difference, seed) in [(0.01, 2001), (0.006, 3001)] {
        let second = all_measured(SERVICE_US * (1.0 + difference), seed..seed + pairs);
        let (a, b) = (logs(&first), logs(&second));
        let error = deviation(&a).hypot(deviation(&b));
        let known = a
            .iter()
            .zip(&b)
            .filter(|(a, b)| *a - *b > NORMAL_97_5 * error);
        let known = known.count();
        let found = first.iter().zip(&second).filter(|(a, b)| {
            let compared = compare(std::slice::from_ref(*a), std::slice::from_ref(*b));
            let mut rates = compared
                .rows
                .iter()
                .filter(|row| row.measure == Measure::Iops);
            rates.next().unwrap().verdict == ComparisonVerdict::Slower
        });
        let found = found.count();
        println!("{difference}: {found} found, {known} of {pairs} by known variance");
        assert!(known > 0, "{difference} is too small for this test");
        assert!(
            found as f64 >= 0.8 * known as f64,
            "{difference}: {found} found, {known} by known variance"
        );
    }
}
