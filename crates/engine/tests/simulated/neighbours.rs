//! Jobs beside a neighbour.

use super::{Job, RunResult, job, run};
use iosonde_job::plan::{BytesOrPercent, ExitWhat};

/// A device that serves one read at a time, so that each reader adds its 100 us.
const DEVICE: &str = "read_us=100,parallel=1,read_dist=fixed";

fn neighbour() -> Job {
    let mut neighbour = job(DEVICE, 1);
    neighbour.name = "neighbour".to_owned();
    neighbour.groupid = 9;
    neighbour.files.size = Some(BytesOrPercent::Bytes(1 << 20));
    neighbour.schedule.neighbour = true;
    neighbour.schedule.runtime_ns = 1_000_000 * 1_000_000_000;
    neighbour
}

fn latency_us(result: &RunResult) -> f64 {
    result.workers[0].directions.read.clat.moments.mean / 1e3
}

#[test]
fn neighbour_slows_the_job_and_is_in_none_of_its_figures() {
    let alone = run(vec![job(DEVICE, 1)]);
    let beside = run(vec![job(DEVICE, 1), neighbour()]);
    let ratio = latency_us(&beside) / latency_us(&alone);
    assert!((ratio - 2.0).abs() < 0.02, "{ratio}");
    assert!(alone.neighbours.is_empty());
    assert_eq!((beside.workers.len(), beside.neighbours.len()), (1, 1));
    let own = beside.workers[0].directions.read.total_ios;
    let in_intervals = beside.intervals.iter();
    let in_intervals: u64 = in_intervals.map(|each| each.directions.read.ios).sum();
    assert!(in_intervals <= own, "{in_intervals} of {own}");
    assert!(
        in_intervals as f64 > 0.9 * own as f64,
        "{in_intervals} of {own}"
    );
}

#[test]
fn exitall_of_a_stonewall_leaves_the_neighbour() {
    let mut first = job(DEVICE, 1);
    first.schedule.exitall = Some(ExitWhat::Stonewall);
    let mut second = job(DEVICE, 1);
    second.name = "second".to_owned();
    second.schedule.stonewall = true;
    let result = run(vec![first, second, neighbour()]);
    let seconds = result.neighbours[0].runtime_ns as f64 / 1e9;
    assert!((seconds - 20.0).abs() < 0.1, "{seconds}");
}

#[test]
fn neighbour_lasts_from_the_first_ramp_to_the_last_group() {
    let mut first = job(DEVICE, 1);
    first.schedule.ramp_time_ns = 1_000_000_000;
    let mut second = job(DEVICE, 1);
    second.name = "second".to_owned();
    second.schedule.stonewall = true;
    let result = run(vec![first, second, neighbour()]);
    assert_eq!(result.workers.len(), 2);
    assert!(result.workers.iter().all(|worker| worker.error.is_none()));
    let seconds = result.neighbours[0].runtime_ns as f64 / 1e9;
    assert!((seconds - 21.0).abs() < 0.1, "{seconds}");
}
