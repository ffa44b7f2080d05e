//! Mixes of directions, sizes and randomness.

use super::*;

#[test]
fn mixed_sizes_cover_each_byte_once() {
    for block_size in [
        BlockSize::Split(vec![(4096, 50), (32768, 50)]),
        BlockSize::Range {
            min: 4096,
            max: 16384,
        },
    ] {
        let mut job = job("randrw");
        job.workload.block_size = PerDirection::from_value(block_size);
        let mut ios = run_file(&job, 10_000);
        assert!(ios.iter().any(|io| io.op == Op::Read) && ios.iter().any(|io| io.op == Op::Write));
        ios.sort_by_key(|io| io.offset);
        let mut end = 0;
        for io in ios {
            assert_eq!(io.offset, end);
            end += u64::from(io.len);
        }
        assert_eq!(end, 10_000 * KIB);
    }
}

#[test]
fn mix_has_the_rwmix_share_of_reads() {
    let mut job = job("randrw");
    job.workload.rwmix_read_percent = 70;
    let ios = run_file(&job, 400_000);
    let reads = ios.iter().filter(|io| io.op == Op::Read).count() as f64 / ios.len() as f64;
    assert!((reads - 0.7).abs() < 0.01, "{reads}");
}

#[test]
fn rwmix_leaves_the_offsets_unchanged() {
    let mut job = job("randrw");
    let some = run_file(&job, 400);
    job.workload.rwmix_read_percent = 90;
    assert_eq!(at(&some), at(&run_file(&job, 400)));
}

#[test]
fn sequential_reads_and_writes_have_positions_of_their_own() {
    let ios = run_file(&job("rw"), 400);
    for op in [Op::Read, Op::Write] {
        let offsets: Vec<u64> = ios
            .iter()
            .filter(|io| io.op == op)
            .map(|io| io.offset)
            .collect();
        assert!(
            offsets
                .iter()
                .zip(0..)
                .all(|(offset, i)| *offset == i * 4096)
        );
    }
    assert_eq!(ios.len(), 100);
}

#[test]
fn percentage_random_mixes_in_sequential_runs() {
    let mut job = job("randread");
    job.workload.percentage_random = PerDirection::from_value(30);
    let ios = run_file(&job, 200_000);
    let runs = ios
        .windows(2)
        .filter(|two| two[1].offset == two[0].offset + 4096)
        .count();
    assert!(
        (runs as f64 / ios.len() as f64 - 0.7).abs() < 0.02,
        "{runs}"
    );
}

#[test]
fn bs_is_seq_rand_selects_sizes_by_order() {
    let mut job = job("randread");
    job.workload.bs_is_seq_rand = true;
    job.workload.random_map = RandomMap::None;
    job.workload.percentage_random = PerDirection::from_value(50);
    job.workload.block_size.write = BlockSize::Fixed(8192);
    let ios = run_file(&job, 10_000);
    for two in ios.windows(2) {
        let follows = two[1].offset == two[0].offset + u64::from(two[0].len);
        assert!(two[1].len == 8192 || follows);
    }
    assert!(ios.iter().any(|io| io.len == 4096) && ios.iter().any(|io| io.len == 8192));
}

#[test]
fn next_io_of_returns_the_requested_direction() {
    let layout = FileLayout::whole_file(400 * KIB);
    let mut generator = Generator::new(&job("randrw"), &layout, Seeds::from_u64(1)).unwrap();
    for _ in 0..20 {
        assert_eq!(
            generator.next_io_of(Direction::Write).unwrap().op,
            Op::Write
        );
    }
}
