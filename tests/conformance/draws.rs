//! Random offsets and sizes beside fio: number of I/Os, their sizes and the blocks they cover.

use std::collections::BTreeMap;
use std::fs;

use iosonde_e2e::{Program, Scratch};

/// One I/O of a recorded trace.
#[derive(Debug, Clone, Copy)]
struct RecordedIo {
    offset: u64,
    length_bytes: u64,
}

/// The I/Os of a job with the null engine, from its trace.
fn drawn(program: Program, seed: u64, options: &str) -> Vec<RecordedIo> {
    let scratch = Scratch::shared();
    let line = format!("--name=j --ioengine=null --randseed={seed} --write_iolog=trace {options}");
    let _ = program.line(&scratch, &line).ok();
    let trace = fs::read_to_string(scratch.work().join("trace")).expect("a trace");
    let ios: Vec<RecordedIo> = trace
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [.., offset, length] = words[..] else {
                return None;
            };
            Some(RecordedIo {
                offset: offset.parse().ok()?,
                length_bytes: length.parse().ok()?,
            })
        })
        .collect();
    assert!(!ios.is_empty(), "{program:?} {options}");
    ios
}

/// Number of units of `unit_bytes`, by how often each is used.
fn coverage(ios: &[RecordedIo], unit_bytes: u64) -> BTreeMap<u32, u64> {
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

/// Number of runs per mean.
const SEEDS: u64 = 4;

/// Means over [`SEEDS`] runs: number of I/Os, and of I/Os of the largest size.
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

/// Checks counts within 15 %, plus random variation of the largest size.
fn same_counts(options: &str) {
    let [fio, ours] = Program::both().map(|program| mean_counts(program, options));
    let chance = 3.0 * (2.0 * fio.1 / SEEDS as f64).sqrt();
    assert!(
        (ours.0 - fio.0).abs() <= 0.15 * fio.0 && (ours.1 - fio.1).abs() <= 0.15 * fio.1 + chance,
        "{options}: I/Os, and of the largest size: fio {fio:?}, ours {ours:?}"
    );
}

#[test]
fn mixed_sizes_are_truncated_as_often_as_in_fio() {
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

/// fio counts blocks of each direction in units of its smallest size, so a pass ends early.
#[test]
fn directions_with_unequal_block_sizes_end_early() {
    for program in Program::both() {
        let moved = (1..=4).map(|seed| {
            let ios = drawn(program, seed, "--rw=randrw --size=8m --bs=4k,64k");
            ios.iter().map(|io| io.length_bytes).sum::<u64>()
        });
        assert!(moved.clone().all(|bytes| bytes <= 8 << 20), "{program:?}");
        assert!(moved.clone().any(|bytes| bytes < 7 << 20), "{program:?}");
    }
}

/// Distribution of I/Os over blocks of 4 KiB.
#[derive(Debug)]
struct BlockShares {
    distinct: f64,
    mean: f64,
    deviation: f64,
    /// Shares of the I/Os on the hottest block, on 1 % and on 10 % of the blocks.
    hottest: [f64; 3],
    /// The most used block.
    top: u64,
}

fn spread(ios: &[RecordedIo], blocks: u64) -> BlockShares {
    let mut uses: BTreeMap<u64, u32> = BTreeMap::new();
    for io in ios {
        *uses.entry(io.offset / 4096).or_default() += 1;
    }
    let all = ios.len() as f64;
    let mean_of = |value: &dyn Fn(f64) -> f64| {
        let places = ios
            .iter()
            .map(|io| io.offset as f64 / (blocks * 4096) as f64);
        places.map(value).sum::<f64>() / all
    };
    let mean = mean_of(&|x| x);
    let mut order: Vec<(u32, u64)> = uses.iter().map(|(block, n)| (*n, *block)).collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    let share = |count: u64| {
        let hot = order
            .iter()
            .take(count as usize)
            .map(|(n, _)| f64::from(*n));
        hot.sum::<f64>() / all
    };
    BlockShares {
        distinct: uses.len() as f64 / blocks as f64,
        mean,
        deviation: (mean_of(&|x| x * x) - mean * mean).sqrt(),
        hottest: [share(1), share(blocks / 100), share(blocks / 10)],
        top: order[0].1,
    }
}

/// Compares as many I/Os as there are blocks.
fn same_spread(distribution: &str, blocks: u64, is_placed: bool) {
    let options = format!(
        "--rw=randread --size={} --random_distribution={distribution}",
        blocks * 4096
    );
    let [fio, ours] = Program::both().map(|program| spread(&drawn(program, 1, &options), blocks));
    let near = |a: f64, b: f64| (a - b).abs() <= 0.01 + 0.05 * b.abs();
    let context = format!("{distribution} over {blocks}: fio {fio:?}, ours {ours:?}");
    assert!(
        (ours.distinct / fio.distinct - 1.0).abs() < 0.1,
        "{context}"
    );
    for (ours, fio) in ours.hottest.iter().zip(fio.hottest) {
        assert!(near(*ours, fio), "{context}");
    }
    // Without a given centre the hottest block is random, and the mean with it.
    if is_placed {
        assert!((ours.mean - fio.mean).abs() < 0.02, "{context}");
        assert!(near(ours.deviation, fio.deviation), "{context}");
    }
}

#[test]
fn normal_distribution_equals_fio() {
    for distribution in ["normal:0", "normal:20", "normal:60", "normal:20:0.2"] {
        same_spread(distribution, 20_480, true);
    }
    same_spread("normal:20", 16_384, true);
}

#[test]
fn zipf_and_pareto_distributions_equal_fio() {
    for distribution in ["zipf:1.2:0.2", "zipf:0.5:0.5", "pareto:0.2:0.5"] {
        same_spread(distribution, 20_480, true);
        let options = format!("--rw=randread --size=80m --random_distribution={distribution}");
        let [fio, ours] = Program::both().map(|program| drawn(program, 1, &options));
        if !distribution.starts_with("zipf:0.5") {
            assert_eq!(
                spread(&ours, 20_480).top,
                spread(&fio, 20_480).top,
                "{distribution}"
            );
        }
    }
    for distribution in ["zipf:1.2", "pareto:0.2"] {
        same_spread(distribution, 20_480, false);
        // A prime number of blocks: some are never used.
        same_spread(distribution, 10_007, false);
    }
}

#[test]
fn zoned_distribution_equals_fio() {
    for distribution in [
        "zoned:60/10:30/20:8/30:2/40",
        "zoned:50/5:50/95",
        "zoned_abs:60/8m:30/16m:10/56m",
    ] {
        same_spread(distribution, 20_480, true);
    }
}
