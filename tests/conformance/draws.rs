//! Random offsets and sizes beside fio: how many I/Os, of which sizes, over which blocks.

use std::collections::BTreeMap;
use std::fs;

use iosonde_e2e::{Program, Scratch};

/// One I/O of a recorded trace.
#[derive(Debug, Clone, Copy)]
struct Recorded {
    offset: u64,
    length_bytes: u64,
}

/// The I/Os of a job without a device.
fn drawn(program: Program, seed: u64, options: &str) -> Vec<Recorded> {
    let scratch = Scratch::shared();
    let line = format!("--name=j --ioengine=null --randseed={seed} --write_iolog=trace {options}");
    let _ = program.line(&scratch, &line).ok();
    let trace = fs::read_to_string(scratch.work().join("trace")).expect("a trace");
    let ios: Vec<Recorded> = trace
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [.., offset, length] = words[..] else {
                return None;
            };
            Some(Recorded {
                offset: offset.parse().ok()?,
                length_bytes: length.parse().ok()?,
            })
        })
        .collect();
    assert!(!ios.is_empty(), "{program:?} {options}");
    ios
}

/// Bytes, in units of `unit_bytes`, by how often they are used.
fn coverage(ios: &[Recorded], unit_bytes: u64) -> BTreeMap<u32, u64> {
    let mut uses: BTreeMap<u64, u32> = BTreeMap::new();
    for io in ios {
        for unit in io.offset / unit_bytes..(io.offset + io.length_bytes) / unit_bytes {
            *uses.entry(unit).or_default() += 1;
        }
    }
    let mut by_uses = BTreeMap::new();
    for count in uses.into_values() {
        *by_uses.entry(count).or_default() += unit_bytes;
    }
    by_uses
}

/// Runs that a mean is taken of.
const SEEDS: u64 = 4;

/// Mean over [`SEEDS`] of the I/Os, and of those of the largest size.
fn mean_counts(program: Program, options: &str) -> (f64, f64) {
    let mut counts = (0.0, 0.0);
    for seed in 1..=SEEDS {
        let ios = drawn(program, seed, options);
        let largest = ios.iter().map(|io| io.length_bytes).max();
        let of_largest = ios.iter().filter(|io| Some(io.length_bytes) == largest);
        counts.0 += ios.len() as f64 / SEEDS as f64;
        counts.1 += of_largest.count() as f64 / SEEDS as f64;
    }
    counts
}

/// Counts within 15 %, and what the largest size has by chance besides.
fn same_counts(options: &str) {
    let [fio, ours] = Program::both().map(|program| mean_counts(program, options));
    let chance = 3.0 * (2.0 * fio.1 / SEEDS as f64).sqrt();
    assert!(
        (ours.0 - fio.0).abs() <= 0.15 * fio.0 && (ours.1 - fio.1).abs() <= 0.15 * fio.1 + chance,
        "{options}: I/Os, and of the largest size: fio {fio:?}, ours {ours:?}"
    );
}

#[test]
fn mixed_sizes_are_cut_short_as_often_as_by_fio() {
    for options in [
        "--rw=randread --size=16m --bssplit=4k/50:64k/50",
        "--rw=randwrite --size=16m --bssplit=4k/10:12k/90",
        "--rw=randread --size=16000000 --bsrange=3000-20000",
        "--rw=randread --size=16m --bsrange=4k-64k --bs_unaligned",
        "--rw=randrw --size=16m --bssplit=4k/50:64k/50,4k/30:16k/70",
        "--rw=randread --size=16m --bssplit=4k/50:64k/50 --norandommap",
        "--rw=randread --size=16m --bssplit=4k/50:64k/50 --random_generator=lfsr",
    ] {
        same_counts(options);
    }
}

#[test]
fn mixed_sizes_use_each_block_once_as_in_fio() {
    for options in [
        "--rw=randread --size=8m --bssplit=4k/50:64k/50",
        "--rw=randrw --size=8m --bssplit=4k/50:64k/50,4k/30:16k/70",
        "--rw=randrw --size=8m --bsrange=4k-16k,4k-32k",
        "--rw=randwrite --size=4m --bssplit=4k/50:64k/50 --loops=2",
        "--rw=randtrimwrite --size=4m --bssplit=4k/50:64k/50",
    ] {
        let [fio, ours] =
            Program::both().map(|program| coverage(&drawn(program, 1, options), 4096));
        assert_eq!(ours, fio, "{options}");
    }
}

/// fio counts each direction's blocks in units of its own smallest one, so that a pass ends early.
#[test]
fn directions_of_other_smallest_blocks_end_early_as_in_fio() {
    for program in Program::both() {
        let moved = (1..=4).map(|seed| {
            let ios = drawn(program, seed, "--rw=randrw --size=8m --bs=4k,64k");
            ios.iter().map(|io| io.length_bytes).sum::<u64>()
        });
        assert!(moved.clone().all(|bytes| bytes <= 8 << 20), "{program:?}");
        assert!(moved.clone().any(|bytes| bytes < 7 << 20), "{program:?}");
    }
}
