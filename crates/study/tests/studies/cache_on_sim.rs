//! Sweeps over the working set find caches of known size and latency of simulated devices.

use iosonde_engine::runner::LocalRunner;
use iosonde_job::diagnostic::Diagnostics;
use iosonde_job::env::FakeEnv;
use iosonde_job::plan::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use iosonde_study::probe::StudyTargetKind;
use iosonde_study::sweep::{
    Base, CacheAnswer, SweepCell, SweepGrid, SweepOptions, SweepResult, SweepTarget, parse_axes,
    sweep,
};

const SECOND_NS: u64 = 1_000_000_000;
const MIB: f64 = 1048576.0;

/// Blocks of 64 KiB fill a cache with few I/Os.
fn swept(device: &str, axes: &[(&str, &str)], warmup_s: u64) -> SweepResult {
    let mut session = LocalRunner::default().open();
    swept_in(&mut session, device, axes, warmup_s)
}

fn swept_in(
    session: &mut dyn Session,
    device: &str,
    axes: &[(&str, &str)],
    warmup_s: u64,
) -> SweepResult {
    let targets = [SweepTarget {
        name: format!("sim:{device}"),
        path: "sim".into(),
        kind: StudyTargetKind::Simulated {
            options: device.to_owned(),
        },
        bytes: 1 << 30,
    }];
    let usual = [("bs", "64k"), ("size", "4m..256m"), ("iodepth", "1")];
    let named = |name: &str| axes.iter().any(|(other, _)| *other == name);
    let added = usual.iter().filter(|(name, _)| !named(name));
    let pairs: Vec<(String, String)> = axes
        .iter()
        .chain(added)
        .map(|(name, values)| ((*name).to_owned(), (*values).to_owned()))
        .collect();
    let mut diagnostics = Diagnostics::default();
    let axes = parse_axes(&pairs, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{diagnostics}");
    let grid = SweepGrid::new(&Base::Plain, &targets, &axes, &FakeEnv::new()).unwrap();
    let options = SweepOptions {
        exhaustive: false,
        runtime_ns: 3 * SECOND_NS,
        budget_ns: None,
        seed: 1,
        most_warmup_ns: Some(warmup_s * SECOND_NS),
    };
    sweep(session, &targets, &grid, &options, Vec::new(), &mut ()).unwrap()
}

/// A device of 1 ms behind a cache of 100 us.
fn device(cache_mib: u64) -> String {
    format!(
        "seed=3,read_us=1ms,read_dist=lognormal:0.2,cache={cache_mib}m,\
         cache_block=64k,cache_us=100,cache_direct=1"
    )
}

/// Size in MiB, hit and miss latency in microseconds, each with its interval.
fn found(answer: &CacheAnswer) -> [(f64, f64, f64); 3] {
    let CacheAnswer::Found {
        size_bytes,
        hit_ns,
        miss_ns,
        ..
    } = answer
    else {
        panic!("{answer:?}");
    };
    let all = [(size_bytes, MIB), (hit_ns, 1e3), (miss_ns, 1e3)];
    all.map(|(value, unit)| {
        let (low, high) = (value.low.unwrap_or(0.0), value.high.unwrap_or(f64::MAX));
        (value.mean / unit, low / unit, high / unit)
    })
}

fn is_near(value: f64, truth: f64, share: f64) -> bool {
    (value / truth - 1.0).abs() <= share
}

#[test]
fn caches_of_all_sizes_and_skews_are_found() {
    for (cache_mib, skew) in [
        (10, "random"),
        (24, "random"),
        (100, "random"),
        (24, "zipf:0.9"),
        (24, "pareto:0.3"),
        (24, "normal:15"),
        (24, "zoned:80/20:20/80"),
    ] {
        let result = swept(&device(cache_mib), &[("random_distribution", skew)], 60);
        assert_eq!(result.caches.len(), 1);
        let [size, hit, miss] = found(&result.caches[0].answer);
        let found_text = format!("{cache_mib} MiB, {skew}: {size:?} {hit:?} {miss:?}");
        assert!(is_near(size.0, cache_mib as f64, 0.08), "{found_text}");
        assert!(
            is_near(hit.0, 100.0, 0.08) && is_near(miss.0, 1000.0, 0.08),
            "{found_text}"
        );
        assert!(
            size.1 <= cache_mib as f64 * 1.03 && size.2 >= cache_mib as f64 * 0.97,
            "{found_text}"
        );
        // Every cell is warm before its measured time, and some took time to warm up.
        for curve in &result.curves {
            let warmup = curve.cells[0].warmup.unwrap();
            assert!(warmup.complete, "{curve:?}");
        }
        assert!(
            result
                .curves
                .iter()
                .any(|curve| curve.cells[0].warmup.unwrap().length_ns > 0)
        );
    }
}

/// A working set that fits has the latency of hits, without any misses of the warm-up.
#[test]
fn warm_up_is_excluded_from_latency() {
    let result = swept(&device(64), &[("size", "4m,8m,16m,32m,256m")], 60);
    for (curve, fits) in result.curves.iter().zip([true, true, true, true, false]) {
        let cell = &curve.cells[0];
        let mean_us = cell.mean_latency_ns.unwrap() / 1e3;
        assert_eq!(
            mean_us < 104.0,
            fits,
            "{}: {mean_us} us",
            curve.values.join(" ")
        );
        let warmup_s = cell.warmup.unwrap().length_ns as f64 / 1e9;
        // The warm-up takes at least one miss for each block.
        let blocks = [64.0, 128.0, 256.0, 512.0, 0.0][usize::from(!fits) * 4];
        assert!(warmup_s >= blocks / 1000.0 * 0.9, "{warmup_s} s");
    }
}

#[test]
fn sequential_reads_bound_cache_size() {
    let result = swept(&device(24), &[("rw", "read"), ("size", "4m..128m")], 60);
    let [size, hit, miss] = found(&result.caches[0].answer);
    assert!(
        size.1 >= 15.9 && size.2 <= 32.1 && size.1 <= 24.0 && size.2 >= 24.0,
        "{size:?}"
    );
    assert!(
        is_near(hit.0, 100.0, 0.05) && is_near(miss.0, 1000.0, 0.05),
        "{hit:?} {miss:?}"
    );
}

#[test]
fn flat_latency_reports_no_cache() {
    let flat = |device: &str, sizes: &str| {
        let result = swept(device, &[("size", sizes)], 60);
        matches!(result.caches[0].answer, CacheAnswer::Flat { .. })
    };
    assert!(flat(
        "seed=3,read_us=1ms,read_dist=lognormal:0.2",
        "4m..64m"
    ));
    assert!(flat(&device(200), "4m..64m"), "all of it fits");
    // A cache far larger or smaller than all working sets is bounded, not guessed.
    let result = swept(&device(24), &[("size", "32m..256m")], 60);
    let CacheAnswer::Found { size_bytes, .. } = &result.caches[0].answer else {
        panic!("{:?}", result.caches);
    };
    assert!(
        size_bytes.low.is_none_or(|low| low <= 24.0 * MIB),
        "{size_bytes:?}"
    );
    assert!(
        size_bytes.high.is_none_or(|high| high >= 24.0 * MIB),
        "{size_bytes:?}"
    );
}

#[test]
fn cold_cells_leave_cache_unknown() {
    // One pass over 256 MiB takes 4 s.
    let result = swept(&device(24), &[("size", "64m,128m,256m,512m,1g")], 1);
    let warm = |index: usize| result.curves[index].cells[0].warmup.unwrap().complete;
    assert!(!warm(4) && !warm(3), "{:?}", result.curves);
    assert!(
        matches!(result.caches[0].answer, CacheAnswer::Unknown { .. }),
        "{:?}",
        result.caches
    );
    let result = swept(&device(24), &[("rw", "randwrite"), ("size", "4m..32m")], 60);
    assert!(matches!(
        result.caches[0].answer,
        CacheAnswer::Unknown { .. }
    ));
}

/// Doubles all intervals, so that half of the time shows in no latency.
struct Stretched<S>(S);

impl<S: Session> Session for Stretched<S> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let mut result = self.0.run(plan, observer)?;
        result.intervals.change_each(|_, interval| {
            interval.start_ns *= 2;
            interval.length_ns *= 2;
        });
        for worker in &mut result.workers {
            worker.runtime_ns *= 2;
        }
        Ok(result)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

#[test]
fn warm_cell_whose_rate_breaks_littles_law_has_a_wide_interval() {
    let axes = [("size", "8m,64m"), ("iodepth", "4")];
    let errors = |result: SweepResult| -> Vec<f64> {
        let cells = result.curves.iter().flat_map(|curve| &curve.cells);
        let of_cell = |cell: &SweepCell| {
            assert!(cell.warmup.is_some());
            cell.iops.unwrap().relative_error().unwrap()
        };
        cells.map(of_cell).collect()
    };
    let agreed = errors(swept(&device(16), &axes, 60));
    assert!(agreed.iter().all(|error| *error < 0.05), "{agreed:?}");
    let mut session = Stretched(LocalRunner::default().open());
    let disagreed = errors(swept_in(&mut session, &device(16), &axes, 60));
    assert_eq!(disagreed.len(), 2);
    assert!(disagreed.iter().all(|error| *error > 0.4), "{disagreed:?}");
}
