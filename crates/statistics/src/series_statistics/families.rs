//! Stationary processes with a known mean, for tests of confidence intervals.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) type Random = Xoshiro256PlusPlus;

/// The mean of all families.
pub(crate) const TRUTH: f64 = 100.0;
pub(crate) fn uniform(random: &mut Random) -> f64 {
    random.random::<f64>()
}

/// Returns a standard normal random number (Box and Muller).
pub(crate) fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - uniform(random)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(random)).cos()
}

/// A stationary process with mean [`TRUTH`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum ProcessFamily {
    /// Independent samples.
    White,
    /// First-order autoregressive noise with this correlation.
    Correlated(f64),
    /// First-order autoregressive noise plus white noise: correlation, and its share.
    Hidden(f64, f64),
    /// Slow for 15 % of the time, in bursts of this mean length in samples.
    Bursts(f64),
    /// Two levels, each held for this many samples on average.
    Levels(f64),
    /// Independent samples with a heavy tail.
    HeavyTail,
}

impl ProcessFamily {
    /// Integrated autocorrelation time, in samples.
    pub(crate) fn time(self) -> f64 {
        let of = |phi: f64| (1.0 + phi) / (1.0 - phi);
        let shared = |share: f64, phi: f64| 1.0 + share * (of(phi) - 1.0);
        match self {
            ProcessFamily::White | ProcessFamily::HeavyTail => 1.0,
            ProcessFamily::Correlated(phi) => of(phi),
            ProcessFamily::Hidden(phi, share) => shared(share, phi),
            ProcessFamily::Bursts(length) => {
                let slow = 0.15 * 0.85 * 1600.0;
                shared(slow / (slow + 25.0), 1.0 - (1.0 + 0.15 / 0.85) / length)
            }
            ProcessFamily::Levels(length) => shared(100.0 / 125.0, 1.0 - 2.0 / length),
        }
    }

    pub(crate) fn draw(self, samples: usize, random: &mut Random) -> Vec<f64> {
        let all = 0..samples;
        match self {
            ProcessFamily::White => all.map(|_| TRUTH + 5.0 * normal(random)).collect(),
            ProcessFamily::Correlated(phi) => ProcessFamily::Hidden(phi, 1.0).draw(samples, random),
            ProcessFamily::Hidden(phi, share) => {
                let mut slow = normal(random);
                let sample = |_| {
                    let fast = normal(random);
                    let sample = share.sqrt() * slow + (1.0 - share).sqrt() * fast;
                    slow = phi * slow + (1.0 - phi * phi).sqrt() * normal(random);
                    TRUTH + 5.0 * sample
                };
                all.map(sample).collect()
            }
            ProcessFamily::Bursts(length) => {
                let mut is_slow = uniform(random) < 0.15;
                let sample = |_| {
                    let level = if is_slow { TRUTH - 34.0 } else { TRUTH + 6.0 };
                    let stays = if is_slow {
                        1.0 - 1.0 / length
                    } else {
                        0.15 / 0.85 / length
                    };
                    is_slow = uniform(random) < stays;
                    level + 5.0 * normal(random)
                };
                all.map(sample).collect()
            }
            ProcessFamily::Levels(length) => {
                let mut level = if uniform(random) < 0.5 { 10.0 } else { -10.0 };
                let sample = |_| {
                    let sample = TRUTH + level + 5.0 * normal(random);
                    if uniform(random) < 1.0 / length {
                        level = -level;
                    }
                    sample
                };
                all.map(sample).collect()
            }
            ProcessFamily::HeavyTail => {
                let mean = (0.32f64).exp();
                all.map(|_| TRUTH + 5.0 * ((0.8 * normal(random)).exp() - mean))
                    .collect()
            }
        }
    }
}

/// Families that all kinds of interval are tested with.
pub(crate) const FAMILIES: [ProcessFamily; 10] = [
    ProcessFamily::White,
    ProcessFamily::Correlated(0.3),
    ProcessFamily::Correlated(0.5),
    ProcessFamily::Correlated(0.7),
    ProcessFamily::Correlated(0.9),
    ProcessFamily::Hidden(0.8, 0.3),
    ProcessFamily::Bursts(3.0),
    ProcessFamily::Levels(5.0),
    ProcessFamily::Levels(20.0),
    ProcessFamily::HeavyTail,
];

/// Number of draws per cell: 2,000 with `./test --full`, else fewer.
pub(crate) fn draws() -> usize {
    match std::env::var("IOSONDE_TEST_FULL").as_deref() {
        Ok("yes") => 2000,
        _ => 150,
    }
}

/// Permitted deviation by chance: three standard deviations for few draws.
pub(crate) fn chance_deviation(draws: usize) -> f64 {
    match draws {
        2000 => 0.005,
        few => 3.0 * (0.05 * 0.95 / few as f64).sqrt(),
    }
}
