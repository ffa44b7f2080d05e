//! Draws with replacement: zipf, pareto, normal and zoned, as in fio's `random_distribution`.
//!
//! Ranks of zipf and pareto (0 is hottest) are turned into blocks either by a permutation, so that the hot blocks are
//! scattered, or, when a centre is given, by counting up from it around the range. fio scatters by a hash, which maps
//! some ranks to the same block and leaves blocks out; the permutation keeps the probabilities exact.

use super::permutation::Permutation;
use super::rng::Rng;
use iosonde_job::plan;
use iosonde_job::plan::Direction;

/// Why a distribution cannot be drawn from.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DistributionError {
    /// A parameter outside of the range where the distribution exists.
    #[error("random_distribution={name}: {value} is out of range, it must be {allowed}")]
    Parameter {
        /// zipf, pareto or normal.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What would be right.
        allowed: &'static str,
    },
    /// A zone reaches behind the end of the file.
    #[error(
        "random_distribution=zoned_abs: zones of {zones_bytes} bytes exceed the {available_bytes} bytes of the file"
    )]
    ZonesExceedFile {
        /// Sum of the zones.
        zones_bytes: u64,
        /// What there is.
        available_bytes: u64,
    },
    /// A zone that is to be accessed holds no block.
    #[error("random_distribution: zone {index} is smaller than one block of {block_bytes} bytes")]
    EmptyZone {
        /// Counted from 0.
        index: usize,
        /// The block size.
        block_bytes: u64,
    },
}

/// Draws block numbers in `0..blocks`.
#[derive(Debug, Clone, PartialEq)]
pub enum Blocks {
    /// Each block equally likely.
    Uniform(u64),
    /// Few blocks are drawn often.
    Zipf(Zipf, Placement),
    /// As above, by another law.
    Pareto(Pareto, Placement),
    /// A bell around one place.
    Normal(Normal, Placement),
    /// Uniform within zones that have shares of the accesses.
    Zoned(Zones),
}

impl Blocks {
    /// The draw for `direction` over `blocks` positions of `block_bytes` each. `blocks` must be at least 1.
    ///
    /// # Errors
    /// Parameters for which the distribution does not exist, and zones that do not fit.
    pub fn new(
        distribution: &plan::Distribution,
        direction: Direction,
        blocks: u64,
        block_bytes: u64,
        rng: &mut Rng,
    ) -> Result<Self, DistributionError> {
        Ok(match distribution {
            plan::Distribution::Random => Blocks::Uniform(blocks),
            plan::Distribution::Zipf { theta, center } => Blocks::Zipf(
                Zipf::new(blocks, *theta)?,
                Placement::new(blocks, *center, rng),
            ),
            plan::Distribution::Pareto { h, center } => Blocks::Pareto(
                Pareto::new(blocks, *h)?,
                Placement::new(blocks, *center, rng),
            ),
            plan::Distribution::Normal {
                deviation_percent,
                center,
            } => Blocks::Normal(
                Normal::new(blocks, *deviation_percent)?,
                // The bell's middle is at half of the range already.
                Placement::new(blocks, center.map(|c| (c + 0.5) % 1.0), rng),
            ),
            plan::Distribution::Zoned(zones) if zones[direction].is_empty() => {
                Blocks::Uniform(blocks)
            }
            plan::Distribution::Zoned(zones) => {
                Blocks::Zoned(Zones::by_percent(&zones[direction], blocks, block_bytes)?)
            }
            plan::Distribution::ZonedAbs(zones) if zones[direction].is_empty() => {
                Blocks::Uniform(blocks)
            }
            plan::Distribution::ZonedAbs(zones) => {
                Blocks::Zoned(Zones::by_bytes(&zones[direction], blocks, block_bytes)?)
            }
        })
    }

    /// The next block.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Blocks::Uniform(blocks) => rng.below(*blocks),
            Blocks::Zipf(zipf, placement) => placement.place(zipf.draw(rng)),
            Blocks::Pareto(pareto, placement) => placement.place(pareto.draw(rng)),
            Blocks::Normal(normal, placement) => placement.place(normal.draw(rng)),
            Blocks::Zoned(zones) => zones.draw(rng),
        }
    }
}

/// Where the ranks of a skewed distribution lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// Scattered over the range.
    Scattered(Permutation),
    /// Rank 0 here, the others behind it, around the end.
    From {
        /// First block.
        start: u64,
        /// Number of blocks.
        blocks: u64,
    },
}

impl Placement {
    fn new(blocks: u64, center: Option<f64>, rng: &mut Rng) -> Self {
        match center {
            None => Placement::Scattered(Permutation::new(blocks, rng)),
            Some(center) => Placement::From {
                start: ((center.clamp(0.0, 1.0) * blocks as f64) as u64) % blocks,
                blocks,
            },
        }
    }

    #[inline]
    fn place(&self, rank: u64) -> u64 {
        match self {
            Placement::Scattered(permutation) => permutation.at(rank),
            Placement::From { start, blocks } => {
                let until_end = blocks - start;
                if rank < until_end {
                    start + rank
                } else {
                    rank - until_end
                }
            }
        }
    }
}

/// Zipf: rank k (from 0) has probability proportional to (k + 1)^-theta.
///
/// Drawn exactly, by rejection from the integral of the density (W. Hörmann and G. Derflinger, "Rejection-inversion
/// to generate variates from monotone discrete distributions", 1996). Unlike fio's method it needs no sum over all
/// blocks, and theta may be 1 or more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zipf {
    n: f64,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    accept: f64,
}

impl Zipf {
    /// Zipf over `n` ranks.
    ///
    /// # Errors
    /// `theta` must be finite and above 0.
    pub fn new(n: u64, theta: f64) -> Result<Self, DistributionError> {
        if !(theta.is_finite() && theta > 0.0) {
            return Err(DistributionError::Parameter {
                name: "zipf",
                value: theta,
                allowed: "above 0",
            });
        }
        let mut zipf = Zipf {
            n: n as f64,
            theta,
            integral_first: 0.0,
            integral_last: 0.0,
            accept: 0.0,
        };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.n + 0.5);
        zipf.accept = 2.0 - zipf.integral_inverse(zipf.integral(2.5) - zipf.density(2.0));
        Ok(zipf)
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.integral_last + rng.unit() * (self.integral_first - self.integral_last);
            let x = self.integral_inverse(u);
            let k = libm::floor(x + 0.5).clamp(1.0, self.n);
            if k - x <= self.accept || u >= self.integral(k + 0.5) - self.density(k) {
                return k as u64 - 1;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// (x^(1 - theta) - 1) / (1 - theta), and its limit ln x at theta = 1.
    fn integral(&self, x: f64) -> f64 {
        let log_x = libm::log(x);
        let t = (1.0 - self.theta) * log_x;
        let ratio = if t.abs() > 1e-8 {
            libm::expm1(t) / t
        } else {
            1.0 + t / 2.0
        };
        ratio * log_x
    }

    fn integral_inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.theta)).max(-1.0);
        let ratio = if t.abs() > 1e-8 {
            libm::log1p(t) / t
        } else {
            1.0 - t / 2.0
        };
        libm::exp(ratio * y)
    }
}

/// Pareto as fio defines it: a share `h` of the blocks gets a share `1 - h` of the accesses, at every scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pareto {
    n: u64,
    power: f64,
}

impl Pareto {
    /// Pareto over `n` ranks.
    ///
    /// # Errors
    /// `h` must lie between 0 and 1, both exclusive.
    pub fn new(n: u64, h: f64) -> Result<Self, DistributionError> {
        if !(h > 0.0 && h < 1.0) {
            return Err(DistributionError::Parameter {
                name: "pareto",
                value: h,
                allowed: "above 0 and below 1",
            });
        }
        Ok(Pareto {
            n,
            power: libm::log(h) / libm::log(1.0 - h),
        })
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let rank = self.n as f64 * libm::pow(rng.unit(), self.power);
        (rank as u64).min(self.n - 1)
    }
}

/// A bell in the middle of the range, cut off at its ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normal {
    n: f64,
    deviation: f64,
}

/// Standard deviation, as a share of the range, when none is given: that of fio's sum of twelve uniform draws.
const DEFAULT_NORMAL_DEVIATION: f64 = 1.0 / 12.0;

impl Normal {
    /// A bell over `n` blocks whose standard deviation is this per cent of the range; 0 takes fio's 1/12.
    ///
    /// # Errors
    /// The deviation must be from 0 to 100.
    pub fn new(n: u64, deviation_percent: f64) -> Result<Self, DistributionError> {
        if !(0.0..=100.0).contains(&deviation_percent) {
            return Err(DistributionError::Parameter {
                name: "normal",
                value: deviation_percent,
                allowed: "from 0 to 100",
            });
        }
        let share = match deviation_percent {
            0.0 => DEFAULT_NORMAL_DEVIATION,
            percent => percent / 100.0,
        };
        Ok(Normal {
            n: n as f64,
            deviation: share * n as f64,
        })
    }

    /// Marsaglia's polar method; draws outside of the range are drawn again. Even at 100 % more than a third fall
    /// inside.
    fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let (a, b) = (2.0 * rng.unit() - 1.0, 2.0 * rng.unit() - 1.0);
            let s = a * a + b * b;
            if s >= 1.0 || s == 0.0 {
                continue;
            }
            let x = self.n / 2.0 + self.deviation * a * libm::sqrt(-2.0 * libm::log(s) / s);
            if x >= 0.0 && x < self.n {
                return x as u64;
            }
        }
    }
}

/// One zone: blocks `start..start + blocks`, drawn when the percentage falls below `access_until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Zone {
    access_until: u64,
    start: u64,
    blocks: u64,
}

/// Zones in order; the shares of the accesses add up to 100.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zones {
    zones: Box<[Zone]>,
    access_sum: u64,
}

impl Zones {
    /// `zoned`: sizes in per cent of the range.
    ///
    /// # Errors
    /// A zone with accesses but without a block.
    pub fn by_percent(
        zones: &[plan::PercentZone],
        blocks: u64,
        block_bytes: u64,
    ) -> Result<Self, DistributionError> {
        let mut until_percent = 0u64;
        let at = |percent: u64| (u128::from(blocks) * u128::from(percent.min(100)) / 100) as u64;
        let bounds = zones.iter().map(|zone| {
            let start = at(until_percent);
            until_percent += u64::from(zone.size_percent);
            (zone.access_percent, start, at(until_percent))
        });
        Self::from_bounds(bounds.collect::<Vec<_>>(), block_bytes)
    }

    /// `zoned_abs`: sizes in bytes; 0 is the rest of the range.
    ///
    /// # Errors
    /// Zones that exceed the range, and a zone with accesses but without a block.
    pub fn by_bytes(
        zones: &[plan::ByteZone],
        blocks: u64,
        block_bytes: u64,
    ) -> Result<Self, DistributionError> {
        let available_bytes = blocks * block_bytes;
        let mut until = 0u64;
        let bounds = zones.iter().map(|zone| {
            let start = until / block_bytes;
            until = match zone.size_bytes {
                0 => available_bytes.max(until),
                bytes => until.saturating_add(bytes),
            };
            (zone.access_percent, start, until / block_bytes)
        });
        let bounds = bounds.collect::<Vec<_>>();
        if until > available_bytes {
            return Err(DistributionError::ZonesExceedFile {
                zones_bytes: until,
                available_bytes,
            });
        }
        Self::from_bounds(bounds, block_bytes)
    }

    fn from_bounds(
        bounds: Vec<(u8, u64, u64)>,
        block_bytes: u64,
    ) -> Result<Self, DistributionError> {
        let mut access_sum = 0;
        let mut zones = Vec::with_capacity(bounds.len());
        for (index, (access, start, end)) in bounds.into_iter().enumerate() {
            if access == 0 {
                continue;
            }
            if end <= start {
                return Err(DistributionError::EmptyZone { index, block_bytes });
            }
            access_sum += u64::from(access);
            zones.push(Zone {
                access_until: access_sum,
                start,
                blocks: end - start,
            });
        }
        if zones.is_empty() {
            return Err(DistributionError::EmptyZone {
                index: 0,
                block_bytes,
            });
        }
        Ok(Zones {
            zones: zones.into(),
            access_sum,
        })
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let percent = rng.below(self.access_sum);
        let index = self
            .zones
            .partition_point(|zone| zone.access_until <= percent);
        let zone = self.zones[index];
        zone.start + rng.below(zone.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rng::Rng;
    use iosonde_job::plan::{ByteZone, PercentZone};
    use proptest::prelude::*;

    const DRAWS: usize = 200_000;

    /// Chi-square of `DRAWS` draws against exact probabilities, in standard deviations from its mean. Cells expected
    /// to hold fewer than 10 draws are joined with their neighbours.
    fn misfit(mut draw: impl FnMut() -> u64, probabilities: &[f64]) -> f64 {
        let mut seen = vec![0u64; probabilities.len()];
        for _ in 0..DRAWS {
            seen[draw() as usize] += 1;
        }
        let (mut chi, mut cells, mut expected, mut observed) = (0.0, 0.0, 0.0, 0.0);
        for (p, n) in probabilities.iter().zip(seen) {
            expected += p * DRAWS as f64;
            observed += n as f64;
            if expected >= 10.0 {
                chi += (observed - expected).powi(2) / expected;
                cells += 1.0;
                (expected, observed) = (0.0, 0.0);
            }
        }
        let freedom: f64 = cells - 1.0;
        (chi - freedom) / (2.0 * freedom).sqrt()
    }

    fn normalised(weights: impl Iterator<Item = f64>) -> Vec<f64> {
        let weights: Vec<f64> = weights.collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|w| w / sum).collect()
    }

    #[test]
    fn zipf_has_its_exact_probabilities() {
        for (n, theta) in [
            (2, 0.5),
            (10, 1.0),
            (100, 0.99),
            (100, 1.2),
            (1000, 2.5),
            (50, 0.01),
        ] {
            let zipf = Zipf::new(n, theta).unwrap();
            let mut rng = Rng::new(n);
            let exact = normalised((1..=n).map(|k| (k as f64).powf(-theta)));
            let misfit = misfit(|| zipf.draw(&mut rng), &exact);
            assert!(
                misfit.abs() < 5.0,
                "n {n}, theta {theta}: {misfit} standard deviations"
            );
        }
    }

    #[test]
    fn pareto_has_its_exact_probabilities() {
        for (n, h) in [(10u64, 0.2), (100, 0.3), (1000, 0.9), (1, 0.5)] {
            let pareto = Pareto::new(n, h).unwrap();
            let mut rng = Rng::new(n);
            let inverse = (1.0 - h).ln() / h.ln();
            let below = |k: u64| (k as f64 / n as f64).powf(inverse);
            let exact: Vec<f64> = (0..n).map(|k| below(k + 1) - below(k)).collect();
            if n == 1 {
                assert_eq!(pareto.draw(&mut rng), 0);
                continue;
            }
            let misfit = misfit(|| pareto.draw(&mut rng), &exact);
            assert!(
                misfit.abs() < 5.0,
                "n {n}, h {h}: {misfit} standard deviations"
            );
        }
    }

    #[test]
    fn pareto_gives_the_few_the_most() {
        let pareto = Pareto::new(1000, 0.2).unwrap();
        let mut rng = Rng::new(1);
        let hot = (0..DRAWS).filter(|_| pareto.draw(&mut rng) < 200).count();
        assert!((hot as f64 / DRAWS as f64 - 0.8).abs() < 0.005);
    }

    #[test]
    fn normal_has_its_mean_and_deviation() {
        for (percent, expected) in [(5.0, 500.0), (0.0, 10_000.0 / 12.0)] {
            let normal = Normal::new(10_000, percent).unwrap();
            let mut rng = Rng::new(2);
            let drawn: Vec<f64> = (0..DRAWS).map(|_| normal.draw(&mut rng) as f64).collect();
            let mean = drawn.iter().sum::<f64>() / DRAWS as f64;
            let deviation =
                (drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / DRAWS as f64).sqrt();
            assert!((mean - 5000.0).abs() < 10.0, "{mean}");
            assert!((deviation / expected - 1.0).abs() < 0.01, "{deviation}");
        }
    }

    #[test]
    fn zones_get_their_shares() {
        let zone = |access_percent, size_percent| PercentZone {
            access_percent,
            size_percent,
        };
        let zones = Zones::by_percent(
            &[zone(60, 10), zone(30, 20), zone(8, 30), zone(2, 40)],
            1000,
            4096,
        )
        .unwrap();
        let mut rng = Rng::new(3);
        let exact: Vec<f64> = (0..1000)
            .map(|block| match block {
                0..100 => 0.6 / 100.0,
                100..300 => 0.3 / 200.0,
                300..600 => 0.08 / 300.0,
                _ => 0.02 / 400.0,
            })
            .collect();
        assert!(misfit(|| zones.draw(&mut rng), &exact).abs() < 5.0);
    }

    #[test]
    fn absolute_zones_take_bytes_and_the_rest() {
        let zone = |access_percent, size_bytes| ByteZone {
            access_percent,
            size_bytes,
        };
        let zones =
            Zones::by_bytes(&[zone(50, 40_960), zone(0, 40_960), zone(50, 0)], 100, 4096).unwrap();
        let mut rng = Rng::new(3);
        let exact: Vec<f64> = (0..100)
            .map(|block| match block {
                0..10 => 0.05,
                10..20 => 0.0,
                _ => 0.5 / 80.0,
            })
            .collect();
        assert!(misfit(|| zones.draw(&mut rng), &exact).abs() < 5.0);
        assert!(matches!(
            Zones::by_bytes(&[zone(100, 500_000)], 100, 4096),
            Err(DistributionError::ZonesExceedFile { .. })
        ));
        assert!(matches!(
            Zones::by_bytes(&[zone(100, 100)], 100, 4096),
            Err(DistributionError::EmptyZone { .. })
        ));
    }

    #[test]
    fn a_centre_places_the_hottest_block() {
        let zipf = plan::Distribution::Zipf {
            theta: 1.2,
            center: Some(0.5),
        };
        let normal = plan::Distribution::Normal {
            deviation_percent: 1.0,
            center: Some(0.25),
        };
        for (distribution, hottest) in [(zipf, 500u64), (normal, 250)] {
            let mut rng = Rng::new(4);
            let blocks = Blocks::new(&distribution, Direction::Read, 1000, 4096, &mut rng).unwrap();
            let mut seen = vec![0; 1000];
            for _ in 0..DRAWS {
                seen[blocks.draw(&mut rng) as usize] += 1;
            }
            let top = (0..1000u64).max_by_key(|&b| seen[b as usize]).unwrap();
            assert!(top.abs_diff(hottest) <= 3, "{top}");
        }
    }

    #[test]
    fn parameters_out_of_range_are_errors() {
        assert!(Zipf::new(10, 0.0).is_err());
        assert!(Zipf::new(10, f64::NAN).is_err());
        assert!(Pareto::new(10, 1.0).is_err());
        assert!(Normal::new(10, 101.0).is_err());
    }

    proptest! {
        #[test]
        fn draws_stay_inside(
            blocks in 1u64..=u64::MAX >> 12,
            theta in 0.01f64..5.0,
            h in 0.01f64..0.99,
            deviation in 0.0f64..100.0,
            center in proptest::option::of(0.0f64..=1.0),
            seed: u64,
        ) {
            let distributions = [
                plan::Distribution::Zipf { theta, center },
                plan::Distribution::Pareto { h, center },
                plan::Distribution::Normal { deviation_percent: deviation, center },
            ];
            let mut rng = Rng::new(seed);
            for distribution in distributions {
                let draw = Blocks::new(&distribution, Direction::Read, blocks, 4096, &mut rng).unwrap();
                for _ in 0..100 {
                    prop_assert!(draw.draw(&mut rng) < blocks);
                }
            }
        }
    }
}
