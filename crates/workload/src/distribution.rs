//! Draws with replacement: zipf, pareto, normal and zoned, as in fio's `random_distribution`.
//!
//! A value of zipf, pareto or normal becomes a block by fio's rule: it is multiplied by a constant
//! and shifted, modulo the number of blocks. The rule scatters hot blocks over the range, even if a
//! centre is given. If the number of blocks is a power of two, each value has its own block.
//! Otherwise some values share a block and other blocks are never drawn: up to about a third
//! of the blocks if their number has a large odd factor.

use super::rng::Rng;
use iosonde_job::plan;
use iosonde_job::plan::Direction;

/// The reason why a distribution cannot be drawn from.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DistributionError {
    /// A parameter is outside the range for which the distribution exists.
    #[error("random_distribution={name}: {value} is out of range, it must be {allowed}")]
    Parameter {
        /// zipf, pareto or normal.
        name: &'static str,
        /// The parameter given.
        value: f64,
        /// The allowed range, as text.
        allowed: &'static str,
    },
    /// A zone reaches past the end of the file.
    #[error(
        "random_distribution=zoned_abs: zones of {zones_bytes} bytes \
         exceed the {available_bytes} bytes of the file"
    )]
    ZonesExceedFile {
        /// Sum of the zones in bytes.
        zones_bytes: u64,
        /// Length of the file in bytes.
        available_bytes: u64,
    },
    /// A zone with accesses holds no block.
    #[error("random_distribution: zone {index} is smaller than one block of {block_bytes} bytes")]
    EmptyZone {
        /// Index of the zone, from 0.
        index: usize,
        /// The block size in bytes.
        block_bytes: u64,
    },
}

/// Draws block numbers in `0..blocks`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BlockDistribution {
    /// All blocks are equally likely.
    Uniform(u64),
    /// A few blocks are drawn often, by Zipf's law.
    Zipf(Zipf, BlockScatter),
    /// A few blocks are drawn often, by Pareto's law.
    Pareto(Pareto, BlockScatter),
    /// A bell curve around one block.
    Normal(Normal, BlockScatter),
    /// Uniform within zones. Each zone has its share of the accesses.
    Zoned(Zones),
}

impl BlockDistribution {
    /// The distribution for `direction` over `blocks` positions of `block_bytes` each. `blocks`
    /// must be at least 1.
    ///
    /// # Errors
    /// Fails if a parameter is out of range or a zone does not fit.
    pub(crate) fn new(
        distribution: &plan::Distribution,
        direction: Direction,
        blocks: u64,
        block_bytes: u64,
        rng: &mut Rng,
    ) -> Result<Self, DistributionError> {
        let unit = |value: f64| blocks as f64 * value;
        Ok(match distribution {
            plan::Distribution::Random => BlockDistribution::Uniform(blocks),
            plan::Distribution::Zipf { theta, center } => BlockDistribution::Zipf(
                Zipf::new(blocks, *theta)?,
                BlockScatter::scattered(blocks, center.map(|center| unit(center) as u64), rng),
            ),
            plan::Distribution::Pareto { h, center } => BlockDistribution::Pareto(
                Pareto::new(blocks, *h)?,
                BlockScatter::scattered(blocks, center.map(|center| unit(center) as u64), rng),
            ),
            plan::Distribution::Normal {
                deviation_percent,
                center,
            } => {
                // As in fio, a centre below the middle is a shift of 32 bits that wraps around.
                let shift = center.map_or(0, |center| unit(center - 0.5) as i64 as u32);
                BlockDistribution::Normal(
                    Normal::new(blocks, *deviation_percent)?,
                    BlockScatter::scattered(blocks, Some(u64::from(shift)), rng),
                )
            }
            plan::Distribution::Zoned(zones) if zones[direction].is_empty() => {
                BlockDistribution::Uniform(blocks)
            }
            plan::Distribution::Zoned(zones) => {
                BlockDistribution::Zoned(Zones::by_percent(&zones[direction], blocks, block_bytes)?)
            }
            plan::Distribution::ZonedAbs(zones) if zones[direction].is_empty() => {
                BlockDistribution::Uniform(blocks)
            }
            plan::Distribution::ZonedAbs(zones) => {
                BlockDistribution::Zoned(Zones::by_bytes(&zones[direction], blocks, block_bytes)?)
            }
        })
    }

    /// The same distribution with values in their order, not scattered.
    pub(crate) fn in_order(mut self) -> Self {
        match &mut self {
            BlockDistribution::Zipf(_, placement)
            | BlockDistribution::Pareto(_, placement)
            | BlockDistribution::Normal(_, placement) => placement.multiplier = 1,
            BlockDistribution::Uniform(_) | BlockDistribution::Zoned(_) => {}
        }
        self
    }

    /// Draws the next block.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            BlockDistribution::Uniform(blocks) => rng.below(*blocks),
            BlockDistribution::Zipf(zipf, placement) => placement.place(zipf.draw(rng)),
            BlockDistribution::Pareto(pareto, placement) => placement.place(pareto.draw(rng)),
            BlockDistribution::Normal(normal, placement) => placement.place(normal.draw(rng)),
            BlockDistribution::Zoned(zones) => zones.draw(rng),
        }
    }
}

/// The map from the values of a skewed distribution to blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockScatter {
    blocks: u64,
    /// Multiplier of the values, modulo 2^64; 1 keeps their order.
    multiplier: u64,
    shift: u64,
}

impl BlockScatter {
    /// Scatters values over the range. Without `shift` the shift is drawn from `rng`.
    fn scattered(blocks: u64, shift: Option<u64>, rng: &mut Rng) -> Self {
        BlockScatter {
            blocks,
            multiplier: plan::SCATTER_MULTIPLIER,
            shift: shift.unwrap_or_else(|| rng.next_u64() >> 32),
        }
    }

    #[inline]
    fn place(&self, value: u64) -> u64 {
        value.wrapping_mul(self.multiplier).wrapping_add(self.shift) % self.blocks
    }
}

/// Zipf: rank k (from 0) has probability proportional to (k + 1)^-theta.
///
/// The draw is exact, by rejection from the integral of the density (W. Hörmann and G. Derflinger,
/// "Rejection-inversion to generate variates from monotone discrete distributions", 1996). Unlike
/// fio's method it needs no sum over all blocks, and theta may be 1 or more.
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

/// Pareto as in fio: at every scale, a share `h` of the blocks gets `1 - h` of the accesses.
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

/// fio's bell curve around the middle: the mean of twelve uniform draws, plus one around 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normal {
    n: u64,
    /// Width of the draw around 0, in blocks.
    spread: u64,
}

/// Uniform draws per mean. Twelve give a standard deviation of a twelfth of the range.
const NORMAL_DRAWS: u64 = 12;

impl Normal {
    /// A bell over `n` blocks. As in fio, `deviation_percent` is not the standard deviation: it
    /// adds a uniform draw to a bell with a standard deviation of 8.3 % of the range. The draw is
    /// `deviation_percent` of the range wide, at most half of it. With 20 the total standard
    /// deviation is 10.1 %.
    ///
    /// # Errors
    /// Fails unless the deviation is from 0 to 100.
    pub fn new(n: u64, deviation_percent: f64) -> Result<Self, DistributionError> {
        if !(0.0..=100.0).contains(&deviation_percent) {
            return Err(DistributionError::Parameter {
                name: "normal",
                value: deviation_percent,
                allowed: "from 0 to 100",
            });
        }
        let spread = libm::ceil(n as f64 * deviation_percent / 100.0) as u64;
        Ok(Normal {
            n,
            spread: spread.min(n / 2),
        })
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let sum: u128 = (0..NORMAL_DRAWS)
            .map(|_| u128::from(rng.below(self.n + 1)))
            .sum();
        let middle = sum.div_ceil(u128::from(NORMAL_DRAWS)) as u64;
        if self.spread == 0 {
            return middle;
        }
        let mut offset = rng.below(self.spread) as i64 - (self.spread / 2) as i64;
        // As in fio, an offset that leaves the range is halved until it fits, at the latest at 0.
        while offset != 0
            && middle
                .checked_add_signed(offset)
                .is_none_or(|value| value >= self.n)
        {
            offset /= 2;
        }
        middle.saturating_add_signed(offset)
    }
}

/// One zone: blocks `start..start + blocks`. It is chosen by a drawn percentage below
/// `access_until` that no earlier zone covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Zone {
    access_until: u64,
    start: u64,
    blocks: u64,
}

/// Zones in order, each with its share of the accesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Zones {
    zones: Box<[Zone]>,
    access_sum: u64,
}

impl Zones {
    /// `zoned`: sizes in per cent of the range.
    ///
    /// # Errors
    /// Fails if a zone has accesses but no block.
    pub(crate) fn by_percent(
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
    /// Fails if the zones exceed the range, or if a zone has accesses but no block.
    pub(crate) fn by_bytes(
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
        assert_eq!(
            zones.last().map(|zone| zone.access_until),
            Some(access_sum),
            "each drawn percentage belongs to a zone"
        );
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
mod tests;
