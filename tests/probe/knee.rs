//! Saturation search on targets with known limits: a throttle and a server with a fixed delay.

use std::time::Duration;

use iosonde_e2e::device::{self, Zram};
use iosonde_e2e::fuse::{Behaviour, FuseFile};
use iosonde_e2e::program::Run;
use iosonde_e2e::throttle::{Caps, Throttle};
use iosonde_e2e::{Scratch, ensure, one_good_try, require};
use serde_json::Value;

/// The JSON document of a probe.
fn read(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"))
}

/// The saturation search of a phase.
fn saturation(document: &Value, phase: &str) -> Value {
    let knees = document["probes"][0]["knees"].as_array().expect("knees");
    let found = knees.iter().find(|knee| knee["phase"] == phase);
    found.expect("the phase was searched")["saturation"].clone()
}

#[test]
#[ignore = "long"]
fn knee_of_throttled_device_is_shallow() {
    require!(Root, Zram, Throttle);
    let scratch = Scratch::alone();
    let disk = Zram::new(64 << 20);
    let caps = Caps {
        read_iops: Some(2000),
        write_iops: Some(1000),
        ..Caps::default()
    };
    let throttle = Throttle::new(&device::number(&disk.path()), caps);
    let path = disk.path().display().to_string();
    let line = format!("probe --runtime=3 --format=json --allow-overwrite={path} {path}");
    // Each check must pass in some try: different tries may disturb different checks.
    let mut held = [[false; 2]; 2];
    one_good_try(|| {
        let run = super::run(&scratch, &line).throttled(&throttle).urgent();
        let document = read(&run.ok());
        let patterns = [("random_read", 2000.0), ("random_write", 1000.0)];
        let figures = patterns.map(|(phase, cap)| {
            let found = saturation(&document, phase);
            let mean = found["maximum"]["mean"].as_f64().expect("a rate");
            let depth = found["knee"]["iodepth"].as_u64().expect("a depth");
            (cap, mean, depth, found["jobs"].as_u64().expect("jobs"))
        });
        for ((cap, mean, depth, jobs), [rate, knee]) in figures.into_iter().zip(&mut held) {
            *rate |= f64::abs(mean - cap) <= 0.02 * cap;
            // Depth 1 suffices. The throttle releases I/Os in bursts of 100 ms, so that a slightly
            // higher depth may appear better within a short cell.
            *knee |= depth <= 16 && jobs == 1;
        }
        ensure(held == [[true; 2]; 2], || {
            format!(
                "what is allowed, what was found, at which depth, by how many jobs: {figures:?}"
            )
        })
    });
    let table = super::run(&scratch, &format!("probe --quick --details {path}"))
        .throttled(&throttle)
        .urgent()
        .ok();
    assert!(table.stdout.contains("a throttle"), "{table}");
    assert!(table.stdout.contains("not searched"), "{table}");
}

#[test]
fn knee_depth_covers_server_delay() {
    require!(Root, Nbdfuse);
    let scratch = Scratch::alone();
    let delay = Duration::from_millis(4);
    let file = FuseFile::serve(
        &scratch,
        "slow",
        64 << 20,
        &Behaviour::plain().delayed(delay),
    );
    let line = format!("probe --runtime=3 --format=json {}", file.path().display());
    one_good_try(|| {
        let document = read(&super::run(&scratch, &line).ok());
        let found = saturation(&document, "random_read");
        for cell in found["cells"].as_array().expect("cells") {
            let in_flight = cell["jobs"].as_f64().unwrap() * cell["iodepth"].as_f64().unwrap();
            let rate = cell["iops"]["mean"].as_f64().unwrap();
            // Little's law: the delay bounds the rate at each depth, whatever other load exists.
            assert!(
                rate <= 1.02 * in_flight / delay.as_secs_f64(),
                "{rate} a second with {in_flight} in flight: {cell}"
            );
        }
        let most = found["maximum"]["mean"].as_f64().unwrap();
        let jobs = found["jobs"].as_f64().unwrap();
        let in_flight = jobs * found["knee"]["iodepth"].as_f64().unwrap();
        let needed = 0.95 * most * delay.as_secs_f64();
        ensure(in_flight >= needed, || {
            format!("{most} a second need {needed} in flight, not {in_flight}")
        })
    });
}
