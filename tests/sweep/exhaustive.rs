//! The search against the exhaustive grid: few cells must find what the whole grid finds. With
//! `./test --full` cells last a minute and reach depth 512, in half an hour; with `cargo test -p
//! iosonde-e2e --test sweep -- --ignored` they are few and short.

use std::thread;
use std::time::Duration;

use iosonde_e2e::device::{self, Zram};
use iosonde_e2e::program::Invocation;
use iosonde_e2e::throttle::{Caps, Throttle};
use iosonde_e2e::{Scratch, ensure, is_full, one_good_try, require};
use serde_json::Value;

use super::{MIB, json, run};

/// Maximum relative error of a throttled device's maximum.
const NEAR: f64 = 0.02;
/// Maximum share of the grid's measured time that a search may take.
const SHARE: f64 = 0.1;

/// Depths, and seconds per cell.
fn grid() -> (&'static str, u64) {
    match is_full() {
        true => ("1..512", 60),
        false => ("1,4,16", 20),
    }
}

/// A rate with its 95 % interval and its measured time.
#[derive(Debug, Clone, Copy)]
struct MeasuredRate {
    iops: f64,
    error: f64,
    seconds: f64,
}

impl MeasuredRate {
    fn read(rate: &Value, spent_ns: &Value) -> MeasuredRate {
        MeasuredRate {
            iops: rate["mean"].as_f64().expect("a rate"),
            error: rate["error"].as_f64().unwrap_or(f64::INFINITY),
            seconds: spent_ns.as_f64().expect("a time") / 1e9,
        }
    }

    /// The maximum over all cells, each measured for its full time.
    fn read_grid(document: &Value) -> MeasuredRate {
        let curve = &document["sweep"]["curves"][0];
        assert_eq!(curve["state"], "complete", "{curve}");
        let cells = curve["cells"].as_array().expect("cells");
        let seconds: f64 = cells
            .iter()
            .map(|cell| cell["measured_ns"].as_f64().expect("a time") / 1e9)
            .sum();
        let (_, wanted) = grid();
        assert!(
            seconds >= 0.99 * (cells.len() as u64 * wanted) as f64,
            "{seconds} s of {} cells",
            cells.len()
        );
        let rates = cells
            .iter()
            .map(|cell| MeasuredRate::read(&cell["iops"], &cell["measured_ns"]));
        let largest = rates
            .max_by(|a, b| a.iops.total_cmp(&b.iops))
            .expect("a cell");
        MeasuredRate { seconds, ..largest }
    }

    fn read_search(saturation: &Value) -> MeasuredRate {
        MeasuredRate::read(&saturation["maximum"], &saturation["spent_ns"])
    }

    fn is_near(self, grid: MeasuredRate) -> bool {
        (self.iops / grid.iops - 1.0).abs() <= NEAR
    }

    fn overlaps(self, grid: MeasuredRate) -> bool {
        let are_known = self.error.is_finite() && grid.error.is_finite();
        are_known && (self.iops - grid.iops).abs() <= self.error + grid.error
    }

    fn is_cheap(self, grid: MeasuredRate) -> bool {
        self.seconds <= SHARE * grid.seconds
    }
}

fn swept(scratch: &Scratch, target: &str, rw: &str, more: &str) -> Invocation {
    let (depths, runtime) = grid();
    let line = format!(
        "sweep {target} --rw {rw} --bs 4k --iodepth {depths} --runtime {runtime} --format json \
         --no-save"
    );
    run(scratch, &format!("{line} {more}")).within(Duration::from_secs(1200))
}

fn read_curve(document: &Value) -> MeasuredRate {
    MeasuredRate::read_search(&document["sweep"]["curves"][0]["saturation"])
}

#[test]
#[ignore = "long"]
fn search_finds_grid_maximum_of_throttled_device() {
    require!(Root, Zram, Throttle);
    let scratch = Scratch::alone();
    let patterns = [("randread", "random_read"), ("randwrite", "random_write")];
    let devices = patterns.map(|_| Zram::new(64 * MIB));
    let caps = Caps {
        read_iops: Some(2000),
        write_iops: Some(1000),
        ..Caps::default()
    };
    let throttles = devices
        .each_ref()
        .map(|disk| Throttle::new(&device::number(&disk.path()), caps));
    let line = |index: usize, more: &str| {
        let path = devices[index].path().display().to_string();
        let more = format!("--allow-overwrite={path} {more}");
        swept(&scratch, &path, patterns[index].0, &more)
            .throttled(&throttles[index])
            .urgent()
    };
    // Two independent devices.
    let grids = thread::scope(|scope| {
        let running = [0, 1].map(|index| {
            let grid = line(index, "--exhaustive");
            scope.spawn(|| MeasuredRate::read_grid(&json(&grid.ok().stdout)))
        });
        running.map(|grid| grid.join().expect("a grid"))
    });
    for (index, grid) in grids.into_iter().enumerate() {
        one_good_try(|| {
            let found = read_curve(&json(&line(index, "").ok().stdout));
            ensure(found.is_near(grid) && found.is_cheap(grid), || {
                format!("sweep: {found:?}, the grid {grid:?}")
            })
        });
        // A probe takes 90 s; `tests/probe/knee.rs` has a short one.
        if !is_full() {
            continue;
        }
        let path = devices[index].path().display().to_string();
        let probe = format!("probe --format=json --no-save --allow-overwrite={path} {path}");
        one_good_try(|| {
            let probe = run(&scratch, &probe).within(Duration::from_secs(300));
            let document = json(&probe.throttled(&throttles[index]).urgent().ok().stdout);
            let knees = document["probes"][0]["knees"].as_array().expect("knees");
            let of_phase = |knee: &&Value| knee["phase"] == patterns[index].1;
            let knee = knees.iter().find(of_phase).expect("the phase was searched");
            let found = MeasuredRate::read_search(&knee["saturation"]);
            ensure(found.is_near(grid), || {
                format!("probe: {found:?}, the grid {grid:?}")
            })
        });
    }
}

#[test]
#[ignore = "long"]
fn search_and_grid_intervals_overlap_on_local_disk() {
    let scratch = Scratch::alone();
    one_good_try(|| {
        let more = "--size 256m";
        let search = read_curve(&json(&swept(&scratch, ".", "randread", more).ok().stdout));
        let grid = format!("{more} --exhaustive");
        let grid =
            MeasuredRate::read_grid(&json(&swept(&scratch, ".", "randread", &grid).ok().stdout));
        ensure(search.overlaps(grid) && search.is_cheap(grid), || {
            format!("{search:?}, the grid {grid:?}")
        })
    });
}
