//! All ways to take I/Os from a generator give the same sequence.

use super::*;

fn any_job() -> impl Strategy<Value = Job> {
    let rw = prop::sample::select(vec![
        "randread",
        "randwrite",
        "randrw",
        "randtrim",
        "read",
        "write",
        "rw",
        "randtrimwrite",
    ]);
    let zone = |access_percent, size_percent| PercentZone {
        access_percent,
        size_percent,
    };
    let distribution = prop::sample::select(vec![
        Distribution::Random,
        Distribution::Random,
        Distribution::Zipf {
            theta: 1.2,
            center: None,
        },
        Distribution::Zoned(PerDirection::from_value(vec![zone(80, 20), zone(20, 80)])),
    ]);
    let block_size = prop::sample::select(vec![
        BlockSize::Fixed(4096),
        BlockSize::Fixed(4096),
        BlockSize::Range {
            min: 4096,
            max: 16384,
        },
    ]);
    let rest = (
        any::<bool>(),
        any::<bool>(),
        1u32..4,
        0u32..4,
        prop::option::of(1u64..300),
        0u8..=100,
        1u32..4,
    );
    (rw, distribution, block_size, rest).prop_map(|(rw, distribution, block_size, rest)| {
        let (map, time_based, loops, fsync, ios, mix, every) = rest;
        let mut job = job(rw);
        job.workload.distribution = distribution;
        job.workload.block_size = PerDirection::from_value(block_size);
        job.workload.random_map = if map {
            RandomMap::Exact
        } else {
            RandomMap::None
        };
        job.workload.fsync_every = fsync / 2;
        job.workload.number_ios = ios;
        job.workload.rwmix_read_percent = mix;
        job.workload.sequencer.every = if every == 3 { 3 } else { 1 };
        job.schedule.time_based = time_based;
        job.schedule.loops = loops;
        job
    })
}

proptest! {
    /// Batches, the fast path and the general path give the same sequence, within the region.
    #[test]
    fn fill_and_next_give_the_same_sequence(
        job in any_job(), kib in 40u64..600, behind in 0u64..9000,
        io_kib in prop::option::of(1u64..2000), batch in 1usize..70, seed: u64
    ) {
        let region = FileRegion {
            start_bytes: 8192,
            size_bytes: kib * KIB,
            file_bytes: 8192 + kib * KIB + behind,
        };
        let mut layout = FileLayout::new(vec![region]);
        layout.io_bytes = io_kib.map(|kib| kib * KIB);
        let mut batches = Generator::new(&job, &layout, Seeds::from_u64(seed)).unwrap();
        let mut general = batches.clone();
        general.simple = None;
        let expected: Vec<Io> = general.by_ref().take(1000).collect();
        let mut filled = vec![Io::EMPTY; 0];
        let mut buf = vec![Io::EMPTY; batch];
        while filled.len() < 1000 {
            // Takes a few single I/Os between batches.
            filled.extend((0..batch % 3).map_while(|_| batches.next_io()));
            let n = batches.fill(&mut buf);
            filled.extend_from_slice(&buf[..n]);
            if n < batch {
                break;
            }
        }
        filled.truncate(1000);
        prop_assert_eq!(&filled, &expected);
        for io in expected.iter().filter(|io| io.op.direction().is_some()) {
            prop_assert!(io.offset >= 8192 && io.offset + u64::from(io.len) <= region.file_bytes);
        }
    }
}
