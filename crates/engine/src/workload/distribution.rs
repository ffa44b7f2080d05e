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
#[path = "distribution_tests.rs"]
mod tests;
