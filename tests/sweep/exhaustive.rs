//! Searches beside the whole grid: what is found from few cells is what the longest way finds. With `./test --full` its cells last a
//! minute each and go to depth 512, which takes half an hour; `cargo test -p iosonde-e2e --test sweep -- --ignored` has few and short
//! ones.

use std::thread;
use std::time::Duration;

use iosonde_e2e::device::{self, Zram};
use iosonde_e2e::program::Invocation;
use iosonde_e2e::throttle::{Caps, Throttle};
use iosonde_e2e::{Scratch, ensure, is_full, one_good_try, require};
use serde_json::Value;

use super::{MIB, json, run};

/// How far from it the maximum of a throttled device may be.
const NEAR: f64 = 0.02;
/// The share of the grid's measured time that a search may take.
const SHARE: f64 = 0.1;

/// Depths and seconds of a cell.
fn grid() -> (&'static str, u64) {
    match is_full() {
        true => ("1..512", 60),
        false => ("1,4,16", 20),
    }
}

/// A rate with its 95 % interval, and the measured time behind it.
#[derive(Debug, Clone, Copy)]
struct Found {
    iops: f64,
    error: f64,
    seconds: f64,
}

impl Found {
    fn read(rate: &Value, spent_ns: &Value) -> Found {
        Found {
            iops: rate["mean"].as_f64().expect("a rate"),
            error: rate["error"].as_f64().unwrap_or(f64::INFINITY),
            seconds: spent_ns.as_f64().expect("a time") / 1e9,
        }
    }

    /// The largest of all cells, all of which were measured for their whole time.
    fn of_grid(document: &Value) -> Found {
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
            .map(|cell| Found::read(&cell["iops"], &cell["measured_ns"]));
        let largest = rates
            .max_by(|a, b| a.iops.total_cmp(&b.iops))
            .expect("a cell");
        Found { seconds, ..largest }
    }

    fn of_search(saturation: &Value) -> Found {
        Found::read(&saturation["maximum"], &saturation["spent_ns"])
    }

    fn is_near(self, grid: Found) -> bool {
        (self.iops / grid.iops - 1.0).abs() <= NEAR
    }

    fn overlaps(self, grid: Found) -> bool {
        let are_known = self.error.is_finite() && grid.error.is_finite();
        are_known && (self.iops - grid.iops).abs() <= self.error + grid.error
    }

    fn is_cheap(self, grid: Found) -> bool {
        self.seconds <= SHARE * grid.seconds
    }
}

fn swept(scratch: &Scratch, target: &str, rw: &str, more: &str) -> Invocation {
    let (depths, runtime) = grid();
    let line = format!(
        "sweep {target} --rw {rw} --bs 4k --iodepth {depths} --runtime {runtime} --format json --no-save"
    );
    run(scratch, &format!("{line} {more}")).within(Duration::from_secs(1200))
}

fn of_curve(document: &Value) -> Found {
    Found::of_search(&document["sweep"]["curves"][0]["saturation"])
}

#[test]
#[ignore = "long"]
fn on_a_throttled_device_a_search_finds_what_the_grid_finds() {
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
    // Two devices that have nothing to do with each other.
    let grids = thread::scope(|scope| {
        let running = [0, 1].map(|index| {
            let grid = line(index, "--exhaustive");
            scope.spawn(|| Found::of_grid(&json(&grid.ok().stdout)))
        });
        running.map(|grid| grid.join().expect("a grid"))
    });
    for (index, grid) in grids.into_iter().enumerate() {
        one_good_try(|| {
            let found = of_curve(&json(&line(index, "").ok().stdout));
            ensure(found.is_near(grid) && found.is_cheap(grid), || {
                format!("sweep: {found:?}, the grid {grid:?}")
            })
        });
        // A probe takes a minute and a half; `probe::knee` has a short one.
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
            let found = Found::of_search(&knee["saturation"]);
            ensure(found.is_near(grid), || {
                format!("probe: {found:?}, the grid {grid:?}")
            })
        });
    }
}

#[test]
#[ignore = "long"]
fn on_this_machines_disk_the_intervals_of_both_overlap() {
    let scratch = Scratch::alone();
    one_good_try(|| {
        let more = "--size 256m";
        let search = of_curve(&json(&swept(&scratch, ".", "randread", more).ok().stdout));
        let grid = format!("{more} --exhaustive");
        let grid = Found::of_grid(&json(&swept(&scratch, ".", "randread", &grid).ok().stdout));
        ensure(search.overlaps(grid) && search.is_cheap(grid), || {
            format!("{search:?}, the grid {grid:?}")
        })
    });
}
