//! Compares adaptive sweeps with exhaustive ones on drawn simulated devices.

use crate::common::reseeded_session::open_reseeded_session;
use crate::common::sweep_fixture::{SECOND_NS, grid, options, run, target};
use iosonde_sim::drawn::DeviceFamily;
use iosonde_study::sweep::{CellBasis, CurveResult, SweepOptions, sweep};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Largest relative difference between the maxima.
const CLOSE: f64 = 0.02;
/// Rate of slowed-down devices in the short test: more I/Os take long to count.
const SLOW_IOPS: f64 = 1000.0;
/// Rate where 1000 IOPS leave large blocks too few I/Os for 2 % in a minute.
const FAST_IOPS: f64 = 20_000.0;

/// A device of a family, slowed down to `most_iops` so that counting its I/Os takes little time.
fn slowed(family: DeviceFamily, seed: u64, most_iops: f64) -> String {
    let fast = run(
        &family.draw(seed, 1.0),
        &[("rw", "read,randread"), ("iodepth", "256")],
        &SweepOptions {
            exhaustive: true,
            runtime_ns: SECOND_NS / 10,
            ..options(1)
        },
    );
    let rates = fast.curves.iter().filter_map(|curve| curve.cells[0].iops);
    let most = rates.map(|iops| iops.mean).fold(1.0, f64::max);
    family.draw(seed, (most / most_iops).max(1.0))
}

/// A drawn device, and the grid to measure on it.
struct SearchTask<'a> {
    family: DeviceFamily,
    seed: u64,
    most_iops: f64,
    axes: &'a [(&'a str, &'a str)],
}

/// The differences of an adaptive sweep from the exhaustive one.
fn differences(task: &SearchTask<'_>) -> Vec<String> {
    let SearchTask {
        family, seed, axes, ..
    } = *task;
    let device = slowed(family, seed, task.most_iops);
    let targets = [target(&device)];
    let grid = grid(&targets, axes);
    let adaptive = options(60);
    let exhaustive = SweepOptions {
        exhaustive: true,
        ..adaptive.clone()
    };
    let mut session = open_reseeded_session();
    let found = sweep(
        &mut session,
        &targets,
        &grid,
        &adaptive,
        Vec::new(),
        &mut (),
    )
    .unwrap();
    let mut session = open_reseeded_session();
    // The exhaustive sweep sees other noise.
    session.runs = 5000;
    let truth = sweep(
        &mut session,
        &targets,
        &grid,
        &exhaustive,
        Vec::new(),
        &mut (),
    )
    .unwrap();
    let mut wrong = Vec::new();
    for (found, truth) in found.curves.iter().zip(&truth.curves) {
        if let Some(problem) = difference(found, truth, &grid.depths) {
            wrong.push(format!(
                "{} {seed} {:?}: {problem}: {device}",
                family.preset(),
                found.values
            ));
        }
    }
    let measured_ns: u64 = truth
        .curves
        .iter()
        .flat_map(|c| &c.cells)
        .map(|c| c.measured_ns)
        .sum();
    if found.spent_ns > measured_ns / 10 {
        wrong.push(format!(
            "{} took {} s",
            family.preset(),
            found.spent_ns / SECOND_NS
        ));
    }
    if std::env::var_os("IOSONDE_SHOW").is_some() {
        eprintln!(
            "{} {seed}: {} s of {} s",
            family.preset(),
            found.spent_ns / SECOND_NS,
            measured_ns / SECOND_NS
        );
    }
    wrong
}

fn difference(found: &CurveResult, truth: &CurveResult, depths: &[u32]) -> Option<String> {
    let rates: Vec<f64> = truth
        .cells
        .iter()
        .map(|cell| cell.iops.unwrap().mean)
        .collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    let saturation = found.saturation.as_ref()?;
    let off = saturation.maximum.mean / most - 1.0;
    let reached = most * (1.0 - saturation.rules.tolerance);
    let knee = rates.iter().position(|rate| *rate >= reached)?;
    let near = depths[knee.saturating_sub(1)]..=depths[(knee + 1).min(depths.len() - 1)];
    let mut wrong = Vec::new();
    // The error of the best cell is allowed: a repeated measurement would not be closer.
    let best = truth.cells.iter().filter_map(|cell| cell.iops);
    let best = best.max_by(|a, b| a.mean.total_cmp(&b.mean)).unwrap();
    let close = best.relative_error().unwrap_or(0.0).max(CLOSE);
    if off.abs() > close {
        wrong.push(format!("maximum of {most:.1} off by {:.2} %", off * 100.0));
    }
    if !near.contains(&saturation.knee.iodepth) {
        wrong.push(format!(
            "knee {} for {}",
            saturation.knee.iodepth, depths[knee]
        ));
    }
    // Predicted rates lie within their errors.
    for (cell, truth) in found.cells.iter().zip(&rates) {
        let Some(value) = cell.iops.filter(|_| cell.basis == CellBasis::Predicted) else {
            continue;
        };
        let most_off = value.error.unwrap_or(0.0) + 0.05 * truth;
        if (value.mean - truth).abs() > most_off {
            wrong.push(format!(
                "depth {} predicted {:.1} +- {:?}, is {truth:.1}",
                cell.iodepth, value.mean, value.error
            ));
        }
    }
    (!wrong.is_empty()).then(|| wrong.join(", "))
}

/// Part of the grid on four families, three of them slow; `./test --full`: all of it on all ten.
#[test]
fn sweep_agrees_with_exhaustive_grid_in_a_tenth_of_its_time() {
    let full = std::env::var("IOSONDE_TEST_FULL").is_ok_and(|full| full == "yes");
    let depths = ("iodepth", "1..512");
    let whole = [
        ("rw", "read,write,randread,randwrite"),
        ("bs", "4k,16k,64k,256k"),
        depths,
    ];
    let part = [("rw", "write,randread"), ("bs", "4k,64k"), depths];
    // The rate over the first objects is not the rate over all of them.
    let objects = [("rw", "write"), ("bs", "4k,16k"), depths];
    let task = |family, most_iops, axes| SearchTask {
        family,
        seed: 3,
        most_iops,
        axes,
    };
    let tasks: Vec<SearchTask<'_>> = match full {
        true => DeviceFamily::ALL
            .map(|family| task(family, FAST_IOPS, &whole[..]))
            .into(),
        false => vec![
            task(DeviceFamily::Ceph, FAST_IOPS, &objects),
            task(DeviceFamily::SataSsd, SLOW_IOPS, &part),
            task(DeviceFamily::NetworkIopsCap, SLOW_IOPS, &part),
            task(DeviceFamily::Nfs, SLOW_IOPS, &part),
        ],
    };
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = differences(task);
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
