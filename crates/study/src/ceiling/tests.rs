use super::*;
use crate::promise_check::PromiseOutcome;
use iosonde_limits::Limits;

const READ: Direction = Direction::Read;
const WRITE: Direction = Direction::Write;

/// A measurement at a depth. Its latency follows from the rate by Little's law.
fn seen(
    direction: Direction,
    random: bool,
    block_kib: u64,
    in_flight: u32,
    iops: f64,
) -> CeilingMeasurement {
    CeilingMeasurement {
        direction,
        random,
        block_bytes: block_kib << 10,
        in_flight,
        iops,
        plateau_iops: iops,
        maximum_in_flight: None,
        spread: Some(0.005),
        latency_ns: f64::from(in_flight) / iops * 1e9,
        throttled: false,
    }
}

/// The known maximum of a pattern. `in_flight` has the I/Os in flight of its measurement.
fn maximum(iops: f64, in_flight: Option<u32>) -> Option<KnownMaximum> {
    Some(KnownMaximum { iops, in_flight })
}

fn random(direction: Direction, block_kib: u64, in_flight: u32, iops: f64) -> CeilingMeasurement {
    seen(direction, true, block_kib, in_flight, iops)
}

fn only(all: &[CeilingMeasurement], held: &[PromiseCheck]) -> Ceiling {
    let found = ceilings(all, held);
    let [one] = &found[..] else {
        panic!("{found:#?}");
    };
    one.clone()
}

/// A volume with a limit of 3000 read IOPS, at depths 1 to 64.
fn volume() -> Vec<CeilingMeasurement> {
    let at = |depth: u32, iops| random(READ, 4, depth, iops);
    vec![at(1, 1400.0), at(2, 2800.0), at(8, 3001.0), at(64, 2996.0)]
}

#[test]
fn same_iops_at_larger_blocks_mean_throttle() {
    let mut all = volume();
    all.push(random(READ, 16, 64, 2990.0));
    let found = only(&all, &[]);
    assert_eq!(found.holder, CeilingCause::Throttle);
    assert_eq!(found.counted, LimitUnit::Iops);
    assert!((found.per_s - 2998.5).abs() < 1.0);
    insta::assert_snapshot!(
        found.evidence,
        @"a throttle of IOPS, not the device; 3.00k IOPS with 8 and with 64 I/Os \
          in flight, at 8.01 times the latency of 8; blocks of 16 KiB reach the same 2.99k IOPS"
    );
}

/// A probe named the maximum as the rate of two depths, although the shallower one was slower.
#[test]
fn plateau_names_measured_rate_of_each_depth() {
    let at = |depth: u32, iops| random(READ, 4, depth, iops);
    let all = [at(1, 1400.0), at(8, 2950.0), at(64, 3002.0)];
    let all = all.map(|each| with_known_maximum(each, maximum(3002.0, Some(64))));
    let found = only(&all, &[]);
    assert_eq!(found.per_s, 3002.0, "the limit is the known maximum");
    let rates = "; 2.95k IOPS with 8 and 3.00k IOPS with 64 I/Os in flight, at ";
    assert!(found.evidence.contains(rates), "{}", found.evidence);
    assert_eq!(all[0].plateau_iops, 1400.0, "another rate stays");
    assert_eq!(with_known_maximum(all[1], None), all[1]);
}

/// A probe named 402 IOPS as the maximum, and 406 as the rate of one of its depths.
#[test]
fn rate_above_known_maximum_is_not_named() {
    let at = |depth: u32, iops| random(READ, 4, depth, iops);
    let evidence = |in_flight: Option<u32>| {
        let all = [at(1, 140.0), at(32, 406.0), at(64, 402.0), at(128, 399.0)];
        let known = maximum(402.0, in_flight);
        let all = all.map(|each| with_known_maximum(each, known));
        only(&all, &[]).evidence
    };
    let mean = evidence(None);
    let latency = "at 4.07 times the latency of 32";
    let range = format!("; about 402 IOPS with 32 to 128 I/Os in flight, {latency}");
    assert!(mean.contains(&range), "{mean}");
    // A maximum that one depth gave has this depth.
    let measured = evidence(Some(64));
    let rates = "; 402 IOPS with 64 I/Os in flight, about the same with 32 to 128, ";
    assert!(
        measured.contains(&format!("{rates}{latency}")),
        "{measured}"
    );
    // A depth of the range needs no second mention.
    for end in [32, 128] {
        let measured = evidence(Some(end));
        assert!(measured.contains(&range), "{measured}");
    }
}

/// 414.2 is more than 3 % above 402, and 402 is less than 3 % below 414.2.
#[test]
fn maximum_of_one_depth_is_no_mean_of_the_ends() {
    let at = |depth: u32, iops| random(READ, 4, depth, iops);
    let all = [at(1, 140.0), at(32, 414.2), at(64, 402.0), at(128, 406.0)];
    let all = all.map(|each| with_known_maximum(each, maximum(402.0, Some(64))));
    let ends = [all[1], all[3]].map(|each| each.plateau_iops);
    assert_eq!(ends, [414.2, 402.0]);
    let found = only(&all, &[]);
    let rates = "; 402 IOPS with 64 I/Os in flight, about the same with 32 to 128, at ";
    assert!(found.evidence.contains(rates), "{}", found.evidence);
    assert_eq!(found.per_s, 402.0);
}

#[test]
fn iops_falling_with_block_size_mean_device() {
    let mut all = volume();
    all.push(random(READ, 16, 64, 1900.0));
    let found = only(&all, &[]);
    assert_eq!(found.holder, CeilingCause::Device);
    insta::assert_snapshot!(found.evidence, @"the device itself; 3.00k IOPS with \
                                              8 and with 64 I/Os in flight, at 8.01 times the \
                                              latency of 8; blocks of 16 KiB reach 1.90k IOPS and \
                                              29.7 MiB/s: latency grows with the block size");
}

/// A volume with limits of IOPS and of bandwidth was called the device itself.
#[test]
fn larger_blocks_at_sequential_bandwidth_decide_nothing() {
    let mut all = volume();
    all.push(random(READ, 16, 64, 1900.0));
    all.push(seen(READ, false, 1024, 8, 29.5));
    let found = only(&all, &[]);
    assert_eq!(found.holder, CeilingCause::Unclear);
    let sizes = "; blocks of 16 KiB reach 1.90k IOPS and 29.7 MiB/s, as sequential reads do: \
                 bandwidth limits them";
    assert!(found.evidence.ends_with(sizes), "{}", found.evidence);
    let start = "a throttle or the device itself; ";
    assert!(found.evidence.starts_with(start), "{}", found.evidence);
    // Equal reads and writes do not exclude an SSD behind a link.
    let mut both = all.clone();
    both.extend(all.iter().map(|each| CeilingMeasurement {
        direction: WRITE,
        ..*each
    }));
    let holders: Vec<_> = ceilings(&both, &[])
        .iter()
        .map(|each| each.holder)
        .collect();
    assert_eq!(holders, [CeilingCause::Unclear; 2]);
    // Sequential writes say nothing about reads.
    all[5] = seen(WRITE, false, 1024, 8, 29.5);
    assert_eq!(only(&all, &[]).holder, CeilingCause::Device);
    all[5] = seen(READ, false, 1024, 8, 60.0);
    assert_eq!(only(&all, &[]).holder, CeilingCause::Device);
}

#[test]
fn plateau_alone_is_unclear() {
    let found = only(&volume(), &[]);
    assert_eq!(found.holder, CeilingCause::Unclear);
    insta::assert_snapshot!(found.evidence, @"a throttle or the device itself; \
                                              3.00k IOPS with 8 and with 64 I/Os in flight, at \
                                              8.01 times the latency of 8");
}

#[test]
fn observed_throttling_means_throttle_despite_noise() {
    let mut all = volume();
    all[3].throttled = true;
    for each in &mut all {
        each.spread = Some(0.08);
    }
    assert_eq!(only(&all, &[]).holder, CeilingCause::Throttle);
}

#[test]
fn equal_read_and_write_plateaus_mean_throttle() {
    let mut all = volume();
    all.extend([8, 64].map(|depth| random(WRITE, 4, depth, 2999.0)));
    let found = ceilings(&all, &[]);
    assert_eq!(found.len(), 2);
    assert!(
        found
            .iter()
            .all(|each| each.holder == CeilingCause::Throttle)
    );
    assert!(found[0].evidence.contains("writes reach the same"));
    // Different rates of reads and writes decide nothing.
    let mut all = volume();
    all.extend([8, 64].map(|depth| random(WRITE, 4, depth, 2500.0)));
    let found = ceilings(&all, &[]);
    assert!(
        found
            .iter()
            .all(|each| each.holder == CeilingCause::Unclear)
    );
}

#[test]
fn unsteady_plateau_is_unclear() {
    let mut all = volume();
    all.push(random(READ, 16, 64, 2990.0));
    for each in &mut all {
        each.spread = Some(0.08);
    }
    assert_eq!(only(&all, &[]).holder, CeilingCause::Unclear);
}

#[test]
fn plateau_of_seek_bound_hdd_is_unclear() {
    let at = |kib, depth, iops| random(READ, kib, depth, iops);
    let all = [at(4, 8, 172.0), at(4, 64, 174.0), at(16, 64, 171.0)];
    assert_eq!(only(&all, &[]).holder, CeilingCause::Unclear);
}

#[test]
fn rising_rate_has_no_ceiling() {
    let all = [8, 32, 128].map(|depth| random(READ, 4, depth, f64::from(depth) * 1e4));
    assert_eq!(ceilings(&all, &[]), []);
    // A plateau over neighbouring depths only is too short.
    let all = [32, 64].map(|depth| random(READ, 4, depth, 1e4));
    assert_eq!(ceilings(&all, &[]), []);
}

#[test]
fn same_bandwidth_at_all_block_sizes_means_byte_limit() {
    let at = |direction, kib, depth, iops| random(direction, kib, depth, iops);
    let reads = [
        at(READ, 256, 4, 500.0),
        at(READ, 256, 16, 501.0),
        at(READ, 1024, 16, 125.0),
    ];
    let found = only(&reads, &[]);
    assert_eq!(
        (found.counted, found.holder),
        (LimitUnit::Bytes, CeilingCause::Unclear)
    );
    assert_eq!(found.per_s.round(), 131_203_072.0);
    assert!(
        found
            .evidence
            .starts_with("a throttle, the link, or the device itself; ")
    );
    let mut both = reads.to_vec();
    both.extend([4, 16].map(|depth| at(WRITE, 256, depth, 500.0)));
    both.push(at(WRITE, 1024, 16, 125.0));
    let found = ceilings(&both, &[]);
    assert!(
        found
            .iter()
            .all(|each| each.holder == CeilingCause::Throttle)
    );
    insta::assert_snapshot!(found[0].evidence, @"a throttle of bandwidth, not \
                                                 the device; 125 MiB/s with 4 and with 16 I/Os in \
                                                 flight, at 3.99 times the latency of 4; blocks of \
                                                 1 MiB reach the same 125 MiB/s; writes reach the \
                                                 same");
    // Sequential I/O of an HDD looks the same.
    for each in &mut both {
        each.random = false;
    }
    let found = ceilings(&both, &[]);
    assert!(
        found
            .iter()
            .all(|each| each.holder == CeilingCause::Unclear)
    );
}

/// A volume with a limit of IOPS for small blocks, and one of bandwidth for large blocks.
#[test]
fn iops_limit_and_byte_limit_are_both_throttles() {
    let sizes = [(4, 3000.0), (16, 3000.0), (64, 2000.0), (256, 500.0)];
    let all: Vec<CeilingMeasurement> = [READ, WRITE]
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
        found
            .iter()
            .all(|each| each.holder == CeilingCause::Throttle),
        "{found:#?}"
    );
    let counted: Vec<LimitUnit> = found.iter().take(4).map(|each| each.counted).collect();
    assert_eq!(
        counted,
        [
            LimitUnit::Iops,
            LimitUnit::Iops,
            LimitUnit::Bytes,
            LimitUnit::Bytes
        ]
    );
}

#[test]
fn plateau_at_promised_rate_means_throttle() {
    let promise = Limits::published()
        .evaluate(&"aws-gp3:100GiB".parse().unwrap())
        .unwrap();
    let held = PromiseCheck {
        promise,
        rows: Vec::new(),
        outcome: PromiseOutcome::Unclear,
        conditions: Vec::new(),
    };
    let found = only(&volume(), std::slice::from_ref(&held));
    assert_eq!(found.holder, CeilingCause::Throttle);
    insta::assert_snapshot!(found.evidence, @"a throttle of IOPS, not the \
                                              device; 3.00k IOPS with 8 and with 64 I/Os in \
                                              flight, at 8.01 times the latency of 8; AWS EBS \
                                              General Purpose SSD gp3 promises 3,000: within \
                                              0.0 %");
    let slower: Vec<CeilingMeasurement> = volume()
        .into_iter()
        .map(|each| CeilingMeasurement {
            plateau_iops: each.iops * 0.95,
            ..each
        })
        .collect();
    assert_eq!(only(&slower, &[held]).holder, CeilingCause::Unclear);
}
