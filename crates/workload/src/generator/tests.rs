use super::*;
use crate::FileRegion;
use iosonde_job::plan::{
    BlockSize, Distribution, FileServiceKind, PerDirection, PercentZone, RandomMap, SequencerKind,
    StridedZones, SyncFileRange, Workload,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};

mod agreement;
mod mixed_sizes;
mod mixes;
mod several_files;
mod starting_over;

pub(crate) fn workload() -> Workload {
    Job::new("j").workload
}

fn job(rw: &str) -> Job {
    let mut job = Job::new("j");
    let all = [
        ReadWriteMode::Read,
        ReadWriteMode::Write,
        ReadWriteMode::Trim,
        ReadWriteMode::ReadWrite,
        ReadWriteMode::TrimWrite,
    ];
    job.workload.rw = all
        .into_iter()
        .flat_map(|mode| [false, true].map(|random| iosonde_job::plan::ReadWrite { mode, random }))
        .find(|known| known.name() == rw)
        .unwrap();
    job.workload.percentage_random = PerDirection::from_value(100);
    job.workload.block_size = PerDirection::from_value(BlockSize::Fixed(4096));
    job
}

const KIB: u64 = 1024;

fn run(job: &Job, layout: &FileLayout) -> Vec<Io> {
    Generator::new(job, layout, Seeds::from_u64(1))
        .unwrap()
        .take(100_000)
        .collect()
}

fn run_file(job: &Job, kib: u64) -> Vec<Io> {
    run(job, &FileLayout::whole_file(kib * KIB))
}

/// Offsets in KiB.
fn at(ios: &[Io]) -> Vec<u64> {
    ios.iter().map(|io| io.offset / KIB).collect()
}

fn distinct(ios: &[Io]) -> usize {
    ios.iter()
        .map(|io| (io.file, io.offset))
        .collect::<HashSet<_>>()
        .len()
}

fn four_files(kib: u64) -> FileLayout {
    FileLayout::new(vec![
        FileRegion {
            start_bytes: 0,
            size_bytes: kib * KIB,
            file_bytes: kib * KIB,
        };
        4
    ])
}

// If the job determines the sequence, the expected sequences below are those of fio 3.33 with
// --write_iolog. Otherwise the tests check the properties of fio's sequences.

#[test]
fn sequential_stops_before_a_block_that_does_not_fit() {
    assert_eq!(at(&run_file(&job("read"), 10)), [0, 4]);
    let region = FileRegion {
        start_bytes: 40 * KIB,
        size_bytes: 10 * KIB,
        file_bytes: 100 * KIB,
    };
    // The last block crosses the end of the region but not the end of the file.
    assert_eq!(
        at(&run(&job("read"), &FileLayout::new(vec![region]))),
        [40, 44, 48]
    );
}

#[test]
fn random_visits_whole_blocks_once() {
    let ios = run_file(&job("randread"), 22);
    assert_eq!(ios.len(), 5);
    assert_eq!(distinct(&ios), 5);
    assert!(ios.iter().all(|io| io.op == Op::Read && io.len == 4096));
}

#[test]
fn loops_repeat_the_pass_with_randrepeat() {
    let mut job = job("randread");
    job.schedule.loops = 3;
    let ios = run_file(&job, 80);
    assert_eq!(ios.len(), 60);
    assert_eq!(ios[..20], ios[20..40]);
    assert_eq!(ios[..20], ios[40..]);
}

#[test]
fn loops_without_randrepeat_differ() {
    let mut job = job("randread");
    job.schedule.loops = 2;
    job.workload.randrepeat = false;
    let seeds = Seeds::new(&job.workload, 0, 77);
    let layout = FileLayout::whole_file(80 * KIB);
    let ios: Vec<Io> = Generator::new(&job, &layout, seeds).unwrap().collect();
    assert_ne!(ios[..20], ios[20..]);
    assert_eq!(distinct(&ios[..20]), 20);
    assert_eq!(distinct(&ios[20..]), 20);
}

#[test]
fn io_size_and_loops_give_fios_counts() {
    let count = |rw: &str, io_kib: u64, loops: u32| {
        let mut job = job(rw);
        job.schedule.loops = loops;
        let mut layout = FileLayout::whole_file(20 * KIB);
        layout.io_bytes = Some(io_kib * KIB);
        run(&job, &layout).len()
    };
    assert_eq!(count("randread", 48, 1), 12);
    assert_eq!(count("read", 48, 1), 12);
    assert_eq!(count("randread", 10, 1), 3);
    assert_eq!(count("read", 12, 2), 6);
    assert_eq!(count("read", 32, 2), 10);
    assert_eq!(count("rw", 48, 1), 12);
}

#[test]
fn io_size_without_random_map_does_not_repeat() {
    let mut job = job("randwrite");
    job.workload.random_map = RandomMap::None;
    let mut layout = FileLayout::whole_file(2000 * KIB);
    layout.io_bytes = Some(4000 * KIB);
    let ios = run(&job, &layout);
    assert_eq!(ios.len(), 1000);
    assert_ne!(ios[..500], ios[500..]);
}

#[test]
fn negative_skip_reads_backwards() {
    let mut job = job("read");
    job.workload.sequencer.skip_bytes = -8192;
    assert_eq!(
        at(&run_file(&job, 40)),
        [0, 32, 28, 24, 20, 16, 12, 8, 4, 0]
    );
    job.workload.sequencer.skip_bytes = -12 * 1024;
    assert_eq!(
        at(&run_file(&job, 40)),
        [0, 28, 20, 12, 4, 28, 20, 12, 4, 28]
    );
}

#[test]
fn endless_pass_covers_all_loops() {
    let mut backwards = job("read");
    backwards.workload.sequencer.skip_bytes = -8192;
    backwards.schedule.loops = 2;
    let ios = run_file(&backwards, 40);
    let cycle = [
        0, 32, 28, 24, 20, 16, 12, 8, 4, 0, 32, 28, 24, 20, 16, 12, 8, 4, 0, 32,
    ];
    assert_eq!(at(&ios), cycle);
    let mut unmapped = job("randread");
    unmapped.workload.random_map = RandomMap::None;
    unmapped.schedule.loops = 2;
    let ios = run_file(&unmapped, 4000);
    assert_eq!(ios.len(), 2000);
    assert_ne!(ios[..1000], ios[1000..]);
}

#[test]
fn positive_skip_leaves_holes() {
    let mut job = job("write");
    job.workload.sequencer.skip_bytes = 4096;
    // The region is the whole file, so the sequence continues at its start.
    assert_eq!(
        at(&run_file(&job, 40)),
        [0, 8, 16, 24, 32, 0, 8, 16, 24, 32]
    );
    // The file continues after the region, so the pass is done.
    let region = FileRegion {
        start_bytes: 40 * KIB,
        size_bytes: 40 * KIB,
        file_bytes: 80 * KIB,
    };
    let layout = FileLayout::new(vec![region]);
    assert_eq!(at(&run(&job, &layout)), [40, 48, 56, 64, 72]);
    job.workload.sequencer.skip_bytes = 8192;
    assert_eq!(at(&run_file(&job, 40)), [0, 12, 24, 36]);
}

#[test]
fn sequencer_continues_or_repeats_offsets() {
    let mut job = job("randread");
    job.workload.sequencer.every = 4;
    for (kind, step) in [
        (SequencerKind::Sequential, 4096),
        (SequencerKind::Identical, 0),
    ] {
        job.workload.sequencer.kind = kind;
        let ios = run_file(&job, 4000);
        assert_eq!(ios.len(), 1000);
        let steps = |four: &[Io]| {
            four.windows(2)
                .all(|two| two[1].offset == two[0].offset + step)
        };
        // At the end of the file a sequential run continues at a random offset.
        let whole = ios.chunks(4).filter(|four| steps(four)).count();
        assert!(whole >= 245, "{whole} of 250");
        assert!(
            ios.chunks(4)
                .map(|four| four[0].offset)
                .collect::<HashSet<_>>()
                .len()
                >= 248
        );
    }
}

#[test]
fn trimwrite_writes_what_it_trimmed() {
    for rw in ["trimwrite", "randtrimwrite"] {
        let ios = run_file(&job(rw), 40);
        assert_eq!(ios.len(), 20);
        for pair in ios.chunks(2) {
            assert_eq!((pair[0].op, pair[1].op), (Op::Trim, Op::Write));
            assert_eq!((pair[0].offset, pair[0].len), (pair[1].offset, pair[1].len));
        }
        assert_eq!(distinct(&ios), 10);
    }
}

#[test]
fn syncs_follow_every_nth_write() {
    let ops = |ios: &[Io]| ios.iter().map(|io| io.op).collect::<Vec<_>>();
    let (w, s) = (Op::Write, Op::Fsync);
    let mut job = job("write");
    job.workload.fsync_every = 4;
    assert_eq!(
        ops(&run_file(&job, 40)),
        [w, w, w, w, s, w, w, w, w, s, w, w]
    );
    job.workload.fsync_every = 0;
    job.workload.sync_file_range = Some(SyncFileRange {
        wait_before: false,
        write: true,
        wait_after: false,
        every: 4,
    });
    let ios = run_file(&job, 40);
    assert_eq!(
        (ios[4].op, ios[4].offset, ios[4].len),
        (Op::SyncFileRange, 0, 16384)
    );
    assert_eq!(
        (ios[9].op, ios[9].offset, ios[9].len),
        (Op::SyncFileRange, 16384, 16384)
    );
}

#[test]
fn sync_in_a_mix_follows_only_nth_writes() {
    let mut job = job("randrw");
    job.workload.fdatasync_every = 2;
    let ios = run_file(&job, 4000);
    let mut writes = 0;
    for two in ios.windows(2) {
        writes += u32::from(two[0].op == Op::Write);
        let due = two[0].op == Op::Write && writes.is_multiple_of(2);
        assert_eq!(two[1].op == Op::Fdatasync, due);
    }
}

#[test]
fn coarse_block_align_reuses_offsets() {
    let mut job = job("randread");
    job.workload.block_align = PerDirection::from_value(16384);
    let ios = run_file(&job, 80);
    assert_eq!(ios.len(), 20);
    assert!(ios.iter().all(|io| io.offset.is_multiple_of(16384)));
    assert_eq!(distinct(&ios), 5);
}

#[test]
fn fine_block_align_stays_in_the_file() {
    let mut job = job("randread");
    job.workload.block_align = PerDirection::from_value(512);
    let ios = run_file(&job, 40);
    assert_eq!(ios.len(), 10);
    assert!(ios.iter().all(|io| io.offset + 4096 <= 40 * KIB));
}

#[test]
fn strided_zones_limit_and_repeat_offsets() {
    let zones = |size, range, skip| {
        Some(StridedZones {
            zone_size_bytes: size * KIB,
            zone_range_bytes: range * KIB,
            zone_skip_bytes: skip * KIB,
        })
    };
    let mut job_ = job("read");
    job_.workload.zones = zones(8, 16, 24);
    let ios = run_file(&job_, 200);
    assert_eq!(
        at(&ios[..12]),
        [0, 4, 40, 44, 80, 84, 120, 124, 160, 164, 0, 4]
    );
    assert_eq!(ios.len(), 50);
    job_.workload.zones = zones(24, 16, 24);
    assert_eq!(at(&run_file(&job_, 200)[..8]), [0, 4, 8, 12, 0, 4, 40, 44]);
    let mut job_ = job("randread");
    job_.workload.zones = zones(16, 16, 24);
    let ios = run_file(&job_, 200);
    assert_eq!(ios.len(), 50);
    for (zone, four) in ios.chunks(4).take(12).enumerate() {
        let base = (zone as u64 % 5) * 40;
        let mut offsets = at(four);
        offsets.sort_unstable();
        assert_eq!(offsets, [base, base + 4, base + 8, base + 12]);
    }
}

#[test]
fn number_ios_counts_for_each_loop() {
    let mut job = job("randread");
    job.workload.number_ios = Some(5);
    job.schedule.loops = 2;
    assert_eq!(run_file(&job, 200).len(), 10);
    job.schedule.loops = 1;
    job.workload.number_ios = Some(12);
    assert_eq!(run_file(&job, 20).len(), 5);
}

#[test]
fn time_based_never_ends() {
    for rw in ["randread", "read", "randwrite", "randrw", "randtrimwrite"] {
        for layout in [FileLayout::whole_file(18 * KIB), four_files(16)] {
            let mut job = job(rw);
            job.schedule.time_based = true;
            job.workload.number_ios = Some(10);
            assert_eq!(run(&job, &layout).len(), 100_000, "{rw}");
        }
    }
}

#[test]
fn time_based_random_passes_have_new_orders() {
    let mut job = job("randread");
    job.schedule.time_based = true;
    let ios = run_file(&job, 80);
    assert_ne!(ios[..20], ios[20..40]);
    assert_eq!(distinct(&ios[20..40]), 20);
}

#[test]
fn file_smaller_than_a_block_gives_no_io() {
    for rw in ["read", "randread", "randwrite"] {
        for time_based in [false, true] {
            let mut job = job(rw);
            job.schedule.time_based = time_based;
            assert_eq!(run_file(&job, 3), [], "{rw}");
        }
    }
}

#[test]
fn invalid_layout_and_block_size_are_errors() {
    let seeds = Seeds::from_u64(1);
    let none = Generator::new(&job("read"), &FileLayout::new(vec![]), seeds);
    assert_eq!(none.unwrap_err(), WorkloadError::NoFiles);
    let mut zero = job("read");
    zero.workload.block_size = PerDirection::from_value(BlockSize::Fixed(0));
    let zero = Generator::new(&zero, &FileLayout::whole_file(10), seeds);
    assert_eq!(zero.unwrap_err(), WorkloadError::BlockSize { bytes: 0 });
}
