//! Popularity of blocks, and the hit ratio of a cache of a given size.
//!
//! Che's approximation of LRU caches (H. Che, Y. Tung and Z. Wang, *Hierarchical Web Caching
//! Systems: Modeling, Design and Experimental Results*, IEEE Journal on Selected Areas in
//! Communications 20, 2002): a block is cached if it is among the last T draws, which touch as many
//! blocks as fit. It is exact for uniform draws. C. Fricker, P. Robert and J. Roberts, *A versatile
//! and accurate approximation for LRU cache performance*, ITC 2012, explain its accuracy.

//!
//! Values of zipf, pareto and normal are scattered over the blocks ([`SCATTER_MULTIPLIER`]). Values
//! share blocks unless their number is a power of two. The model takes sharing as random.

use iosonde_job::plan::{Direction, Distribution, PerDirection, PercentZone, SCATTER_MULTIPLIER};

/// Number of first ranks with a group each. Later ranks share groups.
const SINGLE_RANKS: u64 = 200;
/// Ratio of the last rank of a group to its first.
const GROUP_GROWTH: f64 = 1.05;
/// Slices of the normal distribution.
const SLICES: u64 = 400;
/// Number of times T for which the hit ratio is tabulated.
const STEPS: usize = 240;
/// Standard deviation of fio's normal distribution before widening, as a share of the range.
const BELL_DEVIATION: f64 = 1.0 / 12.0;
/// Largest width of the uniform draw that widens it, as a share of the range.
const BELL_SPREAD_MAX: f64 = 0.5;
/// Integration steps over the uniform draw.
const SPREAD_STEPS: u32 = 50;
/// Most blocks (64 GiB of 4 KiB) for which shared blocks are counted. Beyond, none is assumed.
const COUNTED_BLOCKS: u64 = 1 << 24;

/// Blocks with equal probability of being drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
struct EquiprobableBlocks {
    blocks: f64,
    /// Share of all draws.
    share: f64,
}

/// Hit ratio over cache size, for one distribution and working set.
#[derive(Debug, Clone)]
pub(super) struct HitCurve {
    /// Blocks in the cache and hit ratio, both ascending.
    points: Vec<(f64, f64)>,
}

impl HitCurve {
    /// Curve for a number of blocks. `None` if the model does not cover the distribution.
    pub(super) fn from_distribution(
        distribution: &Distribution,
        blocks: u64,
        block_bytes: u64,
    ) -> Option<HitCurve> {
        let groups = groups(distribution, blocks.max(1), block_bytes)?;
        let all: f64 = groups.iter().map(|group| group.share).sum();
        let (rarest, commonest) = groups.iter().fold((f64::MAX, 0f64), |(low, high), group| {
            let each = group.share / group.blocks / all;
            (low.min(each), high.max(each))
        });
        // From a T with hardly any repeated draw to a T that touches all blocks.
        let (first, last) = (0.001 / commonest, 30.0 / rarest.max(1e-12));
        let ratio = (last / first).powf(1.0 / (STEPS - 1) as f64);
        let mut points = vec![(0.0, 0.0)];
        let sharing = sharing(distribution, blocks.max(1));
        points.extend((0..STEPS).map(|step| {
            let time = first * ratio.powi(step as i32);
            let within =
                |group: &EquiprobableBlocks| -(-group.share / all / group.blocks * time).exp_m1();
            let values: f64 = groups
                .iter()
                .map(|group| group.blocks * within(group))
                .sum();
            let (held, missed) = sharing.drawn_shares(values / blocks.max(1) as f64);
            let hits = groups
                .iter()
                .map(|group| group.share / all * (1.0 - (1.0 - within(group)) * missed));
            (blocks as f64 * held, hits.sum())
        }));
        Some(HitCurve { points })
    }

    /// Returns the hit ratio of a cache of `blocks` blocks.
    pub(super) fn at(&self, blocks: f64) -> f64 {
        let above = self.points.partition_point(|(held, _)| *held < blocks);
        match (
            self.points.get(above.wrapping_sub(1)),
            self.points.get(above),
        ) {
            (Some(low), Some(high)) => {
                let share = (blocks - low.0) / (high.0 - low.0).max(f64::MIN_POSITIVE);
                low.1 + (high.1 - low.1) * share
            }
            (None, _) => 0.0,
            (_, None) => 1.0,
        }
    }
}

/// Sharing of blocks between values: the shares of blocks with zero, one, two, ... values.
#[derive(Debug, Clone, PartialEq)]
struct Sharing(Vec<f64>);

impl Sharing {
    /// For values drawn with probability `drawn` each, returns the share of blocks that were drawn,
    /// and the probability that no other value of the same block was drawn.
    fn drawn_shares(&self, drawn: f64) -> (f64, f64) {
        let mut power = 1.0;
        let (mut never, mut missed) = (0.0, 0.0);
        for (share, values) in self.0.iter().zip(0u32..) {
            never += share * power;
            if let Some(next) = self.0.get(values as usize + 1) {
                missed += f64::from(values + 1) * next * power;
            }
            power *= 1.0 - drawn;
        }
        (1.0 - never, missed)
    }
}

fn sharing(distribution: &Distribution, blocks: u64) -> Sharing {
    let is_scattered = matches!(
        distribution,
        Distribution::Zipf { .. } | Distribution::Pareto { .. } | Distribution::Normal { .. }
    );
    if !is_scattered || blocks.is_power_of_two() || blocks > COUNTED_BLOCKS {
        return Sharing(vec![0.0, 1.0]);
    }
    let mut values = vec![0u8; blocks as usize];
    for value in 0..blocks {
        let count = &mut values[(value.wrapping_mul(SCATTER_MULTIPLIER) % blocks) as usize];
        *count = count.saturating_add(1);
    }
    let most = values.iter().copied().max().unwrap_or(0);
    let mut shares = vec![0.0; usize::from(most) + 1];
    for count in values {
        shares[usize::from(count)] += 1.0 / blocks as f64;
    }
    Sharing(shares)
}

fn groups(
    distribution: &Distribution,
    blocks: u64,
    block_bytes: u64,
) -> Option<Vec<EquiprobableBlocks>> {
    let n = blocks as f64;
    Some(match distribution {
        Distribution::Random => vec![EquiprobableBlocks {
            blocks: n,
            share: 1.0,
        }],
        Distribution::Zipf { theta, .. } => ranked(blocks, |from, to| zipf_mass(*theta, from, to)),
        Distribution::Pareto { h, .. } => {
            // fio's definition: rank = n u^power.
            let power = h.ln() / (1.0 - h).ln();
            let until = |rank: f64| (rank / n).powf(1.0 / power);
            ranked(blocks, |from, to| until(to) - until(from))
        }
        Distribution::Normal {
            deviation_percent, ..
        } => normal_blocks(n, *deviation_percent),
        Distribution::Zoned(zones) => percent_zones(zones, n)?,
        Distribution::ZonedAbs(zones) => {
            let zones = &zones[Direction::Read];
            let fixed: u64 = zones.iter().map(|zone| zone.size_bytes).sum();
            let rest = (blocks * block_bytes).saturating_sub(fixed);
            let bytes = |size: u64| if size == 0 { rest } else { size };
            let groups = zones
                .iter()
                .filter(|zone| zone.access_percent > 0)
                .map(|zone| EquiprobableBlocks {
                    blocks: (bytes(zone.size_bytes) / block_bytes.max(1)) as f64,
                    share: f64::from(zone.access_percent),
                });
            whole(groups.collect(), n)?
        }
    })
}

fn percent_zones(
    zones: &PerDirection<Vec<PercentZone>>,
    n: f64,
) -> Option<Vec<EquiprobableBlocks>> {
    let used = zones[Direction::Read]
        .iter()
        .filter(|zone| zone.access_percent > 0);
    let groups = used.map(|zone| EquiprobableBlocks {
        blocks: n * f64::from(zone.size_percent) / 100.0,
        share: f64::from(zone.access_percent),
    });
    whole(groups.collect(), n)
}

/// Without zones, one group covers all blocks. `None` if a zone is smaller than a block.
fn whole(groups: Vec<EquiprobableBlocks>, n: f64) -> Option<Vec<EquiprobableBlocks>> {
    match groups.len() {
        0 => Some(vec![EquiprobableBlocks {
            blocks: n,
            share: 1.0,
        }]),
        _ => groups
            .iter()
            .all(|group| group.blocks >= 1.0)
            .then_some(groups),
    }
}

/// Groups ranks, the most popular first. `mass` is the share of draws between two ranks, from 0.
fn ranked(blocks: u64, mass: impl Fn(f64, f64) -> f64) -> Vec<EquiprobableBlocks> {
    let mut groups = Vec::new();
    let mut from = 0u64;
    while from < blocks {
        let to = if from < SINGLE_RANKS {
            from + 1
        } else {
            ((from as f64 * GROUP_GROWTH) as u64).max(from + 1)
        };
        let to = to.min(blocks);
        groups.push(EquiprobableBlocks {
            blocks: (to - from) as f64,
            share: mass(from as f64, to as f64),
        });
        from = to;
    }
    groups
}

/// Zipf's mass of the ranks from..to, from 0: exact for one rank, else an integral.
fn zipf_mass(theta: f64, from: f64, to: f64) -> f64 {
    if to - from <= 1.0 {
        return (from + 1.0).powf(-theta);
    }
    let integral = |x: f64| match (1.0 - theta).abs() < 1e-9 {
        true => x.ln(),
        false => x.powf(1.0 - theta) / (1.0 - theta),
    };
    integral(to + 0.5) - integral(from + 0.5)
}

/// fio's normal distribution: centred, a twelfth of the range wide, widened by a uniform draw.
fn normal_blocks(n: f64, deviation_percent: f64) -> Vec<EquiprobableBlocks> {
    let spread = (deviation_percent / 100.0).min(BELL_SPREAD_MAX);
    let slices = (0..SLICES).map(|slice| {
        let x = (slice as f64 + 0.5) / SLICES as f64 - 0.5;
        let density = (0..SPREAD_STEPS).map(|step| {
            let shift = spread * ((f64::from(step) + 0.5) / f64::from(SPREAD_STEPS) - 0.5);
            (-((x - shift) / BELL_DEVIATION).powi(2) / 2.0).exp()
        });
        EquiprobableBlocks {
            blocks: n / SLICES as f64,
            share: density.sum::<f64>().max(1e-9),
        }
    });
    slices.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn zipf(theta: f64) -> Distribution {
        Distribution::Zipf {
            theta,
            center: None,
        }
    }

    #[test]
    fn uniform_draws_hit_share_that_fits() {
        let curve = HitCurve::from_distribution(&Distribution::Random, 10_000, 4096).unwrap();
        for (held, hits) in [
            (0.0, 0.0),
            (1000.0, 0.1),
            (5000.0, 0.5),
            (9000.0, 0.9),
            (20_000.0, 1.0),
        ] {
            assert!(
                (curve.at(held) - hits).abs() < 0.005,
                "{held}: {}",
                curve.at(held)
            );
        }
    }

    #[test]
    fn hot_zones_fill_cache_first() {
        let zone = |access_percent, size_percent| PercentZone {
            access_percent,
            size_percent,
        };
        let zones = Distribution::Zoned(PerDirection::from_value(vec![zone(90, 10), zone(10, 90)]));
        let curve = HitCurve::from_distribution(&zones, 100_000, 4096).unwrap();
        let hot = curve.at(20_000.0);
        assert!(hot > 0.85 && hot < 0.95, "{hot}");
    }

    /// Hit ratio of a simulated LRU cache after 20,000 draws of values with these weights.
    fn simulated(weights: &[f64], block_of: impl Fn(usize) -> usize, held: usize) -> f64 {
        let total: f64 = weights.iter().sum();
        let mut state = 7u64;
        let mut list: Vec<usize> = Vec::new();
        let (mut hits, mut counted) = (0, 0);
        for draw in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let mut left = (state >> 11) as f64 / (1u64 << 53) as f64 * total;
            let value = weights.iter().position(|weight| {
                left -= weight;
                left < 0.0
            });
            let block = block_of(value.unwrap_or(0));
            let found = list.iter().position(|other| *other == block);
            if draw >= 5_000 {
                counted += 1;
                hits += u32::from(found.is_some());
            }
            if let Some(at) = found {
                list.remove(at);
            }
            list.insert(0, block);
            list.truncate(held);
        }
        f64::from(hits) / f64::from(counted)
    }

    /// Each of 512 blocks has one value. Of 501 blocks, a fifth has none.
    #[test]
    fn hit_ratio_matches_simulated_lru_cache() {
        for (theta, blocks) in [(0.9, 512u64), (0.9, 501), (0.3, 501)] {
            let weights: Vec<f64> = (1..=blocks)
                .map(|rank| (rank as f64).powf(-theta))
                .collect();
            let block_of =
                |value: usize| ((value as u64).wrapping_mul(SCATTER_MULTIPLIER) % blocks) as usize;
            for held in [25usize, 100, 250] {
                let simulated = simulated(&weights, block_of, held);
                let curve = HitCurve::from_distribution(&zipf(theta), blocks, 4096).unwrap();
                let model = curve.at(held as f64);
                assert!(
                    (model - simulated).abs() < 0.02,
                    "{theta} {blocks} {held}: {model} {simulated}"
                );
            }
        }
    }

    /// Widened by 20 %, fio's normal distribution has a deviation of 10.1 % of the range.
    #[test]
    fn normal_deviation_matches_fio() {
        for (percent, deviation) in [(0.0, 0.0833), (20.0, 0.1014), (100.0, 0.1667)] {
            let slices = normal_blocks(1000.0, percent);
            let all: f64 = slices.iter().map(|slice| slice.share).sum();
            let variance = slices.iter().zip(0u32..).map(|(slice, index)| {
                let x = (f64::from(index) + 0.5) / slices.len() as f64 - 0.5;
                slice.share / all * x * x
            });
            let width = variance.sum::<f64>().sqrt();
            assert!((width - deviation).abs() < 0.002, "{percent}: {width}");
        }
    }

    proptest! {
        #[test]
        fn hit_ratio_rises_with_cache_size(
            theta in 0.2f64..2.0,
            blocks in 1u64..30_000,
            a in 0.0f64..1.0,
            b in 0.0f64..1.0,
        ) {
            let curve = HitCurve::from_distribution(&zipf(theta), blocks, 4096).unwrap();
            let (low, high) = (a.min(b) * blocks as f64, a.max(b) * blocks as f64);
            prop_assert!(curve.at(low) <= curve.at(high) + 1e-9);
            prop_assert!((0.0..=1.0 + 1e-9).contains(&curve.at(high)));
        }
    }
}
