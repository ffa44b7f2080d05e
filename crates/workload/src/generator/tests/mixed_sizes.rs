//! The random map of blocks of mixed sizes.

use super::*;

fn split(parts: &[(u64, u8)]) -> BlockSize {
    BlockSize::Split(parts.to_vec())
}

fn seeded(job: &Job, seed: u64, bytes: u64) -> Vec<Io> {
    let layout = FileLayout::whole_file(bytes);
    Generator::new(job, &layout, Seeds::from_u64(seed))
        .unwrap()
        .collect()
}

/// Number of uses of each block of 4 KiB.
fn uses(ios: &[Io], blocks: u64) -> Vec<u32> {
    let mut uses = vec![0; blocks as usize];
    for io in ios {
        assert_eq!((io.offset % 4096, io.len % 4096), (0, 0));
        let first = (io.offset / 4096) as usize;
        for block in &mut uses[first..first + (io.len / 4096) as usize] {
            *block += 1;
        }
    }
    uses
}

#[test]
fn split_sizes_use_each_block_once() {
    for (rw, per_pass) in [
        ("randread", 1),
        ("randwrite", 1),
        ("randrw", 1),
        ("trimwrite", 2),
    ] {
        let mut job = job(if rw == "trimwrite" {
            "randtrimwrite"
        } else {
            rw
        });
        job.workload.block_size = PerDirection::from_value(split(&[(4096, 30), (12_288, 70)]));
        // The last block is incomplete.
        let ios = seeded(&job, 1, 1001 * 4096 + 1000);
        assert!(uses(&ios, 1001).iter().all(|n| *n == per_pass), "{rw}");
    }
}

#[test]
fn reads_and_writes_of_other_sizes_share_the_map() {
    let mut job = job("randrw");
    job.workload.block_size.write = split(&[(4096, 30), (16_384, 70)]);
    job.workload.block_size.read = split(&[(4096, 50), (65_536, 50)]);
    let ios = seeded(&job, 1, 8 << 20);
    assert!(uses(&ios, 2048).iter().all(|n| *n == 1));
    let reads = ios.iter().filter(|io| io.op == Op::Read).count();
    assert!(reads > 200 && ios.len() - reads > 200);
}

/// fio 3.33 with 16 seeds issues 367 to 465 I/Os, 400 on average. Without cutting I/Os short it
/// would be 235.
#[test]
fn ios_are_cut_short_as_often_as_by_fio() {
    let mut job = job("randread");
    job.workload.block_size = PerDirection::from_value(split(&[(4096, 50), (65_536, 50)]));
    let ios: usize = (0..50).map(|seed| seeded(&job, seed, 8 << 20).len()).sum();
    assert!((385..=420).contains(&(ios / 50)), "{}", ios / 50);
}

/// fio 3.33: about 6.1 % of the I/Os of `bsrange=4k-64k --bs_unaligned --norandommap` have 64 KiB.
#[test]
fn unaligned_range_is_cut_off_at_its_end() {
    let mut job = job("randread");
    let range = BlockSize::Range {
        min: 4096,
        max: 65_536,
    };
    job.workload.block_size = PerDirection::from_value(range);
    job.workload.bs_unaligned = true;
    job.workload.random_map = RandomMap::None;
    let ios = seeded(&job, 1, 1 << 30);
    let largest = ios.iter().filter(|io| io.len == 65_536).count();
    let share = largest as f64 / ios.len() as f64;
    assert!((share - 1.0 / 16.0).abs() < 0.01, "{share}");
}

#[test]
fn lfsr_starts_each_block_once() {
    let mut job = job("randread");
    job.workload.block_size = PerDirection::from_value(split(&[(4096, 90), (8192, 10)]));
    job.workload.random_generator = iosonde_job::plan::RandomGenerator::Lfsr;
    let ios = seeded(&job, 1, 4 << 20);
    assert_eq!(distinct(&ios), ios.len());
    assert!(uses(&ios, 1024).contains(&2));
}

#[test]
fn map_that_is_too_large_is_an_error_unless_it_is_soft() {
    let mut job = job("randread");
    job.workload.block_size = PerDirection::from_value(split(&[(512, 50), (4096, 50)]));
    let layout = FileLayout::whole_file(1 << 50);
    let refused = Generator::new(&job, &layout, Seeds::from_u64(1));
    assert_eq!(
        refused.unwrap_err(),
        WorkloadError::MapSize { blocks: 1 << 41 }
    );
    job.workload.random_map = RandomMap::Soft;
    let mut generator = Generator::new(&job, &layout, Seeds::from_u64(1)).unwrap();
    assert!(generator.next_io().is_some());
}
