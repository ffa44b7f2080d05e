use super::*;
use crate::limits::{Limits, Outcome};

const READ: Direction = Direction::Read;
const WRITE: Direction = Direction::Write;

/// What is measured at a depth: by Little's law, latency is what the rate leaves.
fn seen(direction: Direction, random: bool, block_kib: u64, in_flight: u32, iops: f64) -> Seen {
    Seen {
        direction,
        random,
        block_bytes: block_kib << 10,
        in_flight,
        iops,
        spread: Some(0.005),
        latency_ns: f64::from(in_flight) / iops * 1e9,
        throttled: false,
    }
}

fn random(direction: Direction, block_kib: u64, in_flight: u32, iops: f64) -> Seen {
    seen(direction, true, block_kib, in_flight, iops)
}

fn only(all: &[Seen], held: &[Held]) -> Ceiling {
    let found = ceilings(all, held);
    let [one] = &found[..] else {
        panic!("{found:#?}");
    };
    one.clone()
}

/// A volume held at 3000 IOPS, reads only, at depths 2 to 64.
fn volume() -> Vec<Seen> {
    let at = |depth: u32, iops| random(READ, 4, depth, iops);
    vec![at(1, 1400.0), at(2, 2800.0), at(8, 3001.0), at(64, 2996.0)]
}

#[test]
fn the_same_iops_for_larger_blocks_are_a_throttle() {
    let mut all = volume();
    all.push(random(READ, 16, 64, 2990.0));
    let found = only(&all, &[]);
    assert_eq!(found.holder, Holder::Throttle);
    assert_eq!(found.counted, Counted::Iops);
    assert!((found.per_s - 2998.5).abs() < 1.0);
    insta::assert_snapshot!(found.evidence, @"3.00k IOPS with 8 and with 64 in flight, which wait 8.01 times as long; blocks of 16 KiB reach the same 2.99k IOPS; a throttle of IOPS, not the device");
}

#[test]
fn what_falls_as_blocks_grow_is_the_device() {
    let mut all = volume();
    all.push(random(READ, 16, 64, 1900.0));
    let found = only(&all, &[]);
    assert_eq!(found.holder, Holder::Device);
    insta::assert_snapshot!(found.evidence, @"3.00k IOPS with 8 and with 64 in flight, which wait 8.01 times as long; blocks of 16 KiB reach 1.90k IOPS and 29.7 MiB/s: the larger a block, the longer it takes; the device itself");
}

#[test]
fn a_flat_top_alone_tells_nothing() {
    let found = only(&volume(), &[]);
    assert_eq!(found.holder, Holder::Unclear);
    insta::assert_snapshot!(found.evidence, @"3.00k IOPS with 8 and with 64 in flight, which wait 8.01 times as long; a throttle or the device itself");
}

#[test]
fn a_throttle_that_was_seen_is_believed() {
    let mut all = volume();
    all[3].throttled = true;
    for each in &mut all {
        each.spread = Some(0.08);
    }
    assert_eq!(only(&all, &[]).holder, Holder::Throttle);
}

#[test]
fn reads_and_writes_at_one_height_are_a_throttle() {
    let mut all = volume();
    all.extend([8, 64].map(|depth| random(WRITE, 4, depth, 2999.0)));
    let found = ceilings(&all, &[]);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|each| each.holder == Holder::Throttle));
    assert!(found[0].evidence.contains("writes reach the same"));
    // Writes that are slower are another matter.
    let mut all = volume();
    all.extend([8, 64].map(|depth| random(WRITE, 4, depth, 2500.0)));
    let found = ceilings(&all, &[]);
    assert!(found.iter().all(|each| each.holder == Holder::Unclear));
}

#[test]
fn a_rate_that_wavers_is_no_throttle() {
    let mut all = volume();
    all.push(random(READ, 16, 64, 2990.0));
    for each in &mut all {
        each.spread = Some(0.08);
    }
    assert_eq!(only(&all, &[]).holder, Holder::Unclear);
}

#[test]
fn a_disk_that_turns_takes_as_long_for_small_blocks_of_any_size() {
    let at = |kib, depth, iops| random(READ, kib, depth, iops);
    let all = [at(4, 8, 172.0), at(4, 64, 174.0), at(16, 64, 171.0)];
    assert_eq!(only(&all, &[]).holder, Holder::Unclear);
}

#[test]
fn a_rate_that_still_rises_has_no_ceiling() {
    let all = [8, 32, 128].map(|depth| random(READ, 4, depth, f64::from(depth) * 1e4));
    assert_eq!(ceilings(&all, &[]), []);
    // Nor has one that was looked at at neighbouring depths only.
    let all = [32, 64].map(|depth| random(READ, 4, depth, 1e4));
    assert_eq!(ceilings(&all, &[]), []);
}

#[test]
fn the_same_bandwidth_for_all_sizes_is_a_bound_on_bytes() {
    let at = |direction, kib, depth, iops| random(direction, kib, depth, iops);
    let reads = [
        at(READ, 256, 4, 500.0),
        at(READ, 256, 16, 501.0),
        at(READ, 1024, 16, 125.0),
    ];
    let found = only(&reads, &[]);
    assert_eq!(
        (found.counted, found.holder),
        (Counted::Bytes, Holder::Unclear)
    );
    assert_eq!(found.per_s.round(), 131_203_072.0);
    assert!(
        found
            .evidence
            .ends_with("a throttle, the link, or the device itself")
    );
    let mut both = reads.to_vec();
    both.extend([4, 16].map(|depth| at(WRITE, 256, depth, 500.0)));
    both.push(at(WRITE, 1024, 16, 125.0));
    let found = ceilings(&both, &[]);
    assert!(found.iter().all(|each| each.holder == Holder::Throttle));
    insta::assert_snapshot!(found[0].evidence, @"125 MiB/s with 4 and with 16 in flight, which wait 3.99 times as long; blocks of 1 MiB reach the same 125 MiB/s; writes reach the same; a throttle of bandwidth, not the device");
    // In sequence a disk that turns does the same.
    for each in &mut both {
        each.random = false;
    }
    let found = ceilings(&both, &[]);
    assert!(found.iter().all(|each| each.holder == Holder::Unclear));
}

/// Small blocks meet the bound on I/Os, large ones that on bytes: neither is the device.
#[test]
fn where_one_bound_ends_another_begins() {
    let sizes = [(4, 3000.0), (16, 3000.0), (64, 2000.0), (256, 500.0)];
    let all: Vec<Seen> = [READ, WRITE]
        .into_iter()
        .flat_map(|direction| {
            sizes.into_iter().flat_map(move |(kib, iops)| {
                [16, 64].map(|depth| random(direction, kib, depth, iops))
            })
        })
        .collect();
    let found = ceilings(&all, &[]);
    assert_eq!(found.len(), 8);
    assert!(
        found.iter().all(|each| each.holder == Holder::Throttle),
        "{found:#?}"
    );
    let counted: Vec<Counted> = found.iter().take(4).map(|each| each.counted).collect();
    assert_eq!(
        counted,
        [Counted::Iops, Counted::Iops, Counted::Bytes, Counted::Bytes]
    );
}

#[test]
fn a_promised_figure_tells_whose_bound_it_is() {
    let promise = Limits::published()
        .evaluate(&"aws-gp3:100GiB".parse().unwrap())
        .unwrap();
    let held = Held {
        promise,
        rows: Vec::new(),
        outcome: Outcome::Unclear,
        conditions: Vec::new(),
    };
    let found = only(&volume(), std::slice::from_ref(&held));
    assert_eq!(found.holder, Holder::Throttle);
    insta::assert_snapshot!(found.evidence, @"3.00k IOPS with 8 and with 64 in flight, which wait 8.01 times as long; AWS EBS General Purpose SSD gp3 promises 3,000: within 0.0 %; a throttle of IOPS, not the device");
    let slower: Vec<Seen> = volume()
        .into_iter()
        .map(|each| Seen {
            iops: each.iops * 0.95,
            ..each
        })
        .collect();
    assert_eq!(only(&slower, &[held]).holder, Holder::Unclear);
}
