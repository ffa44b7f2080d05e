//! Service times: the time that the device works on one I/O.

use iosonde_workload::rng::Rng;

/// The shape of a distribution of times around its mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ServiceTimeShape {
    /// Constant: the mean.
    Fixed,
    /// Exponential.
    Exponential,
    /// Uniform from `1 - spread` to `1 + spread` of the mean; `spread` is from 0 to 1.
    Uniform {
        /// Half the width, as a share of the mean.
        spread: f64,
    },
    /// Lognormal.
    Lognormal {
        /// Standard deviation divided by the mean.
        variation: f64,
    },
    /// A given time, and another time for a share of outliers.
    Bimodal {
        /// Share of outliers, from 0 to 1.
        share: f64,
        /// Time of an outlier in nanoseconds.
        outlier_ns: f64,
    },
}

/// A distribution of times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServiceTime {
    /// The mean in nanoseconds; for [`ServiceTimeShape::Bimodal`], the time without outliers.
    pub time_ns: f64,
    /// The shape around the mean.
    pub shape: ServiceTimeShape,
}

impl ServiceTime {
    /// A constant time.
    pub const fn fixed(time_ns: f64) -> ServiceTime {
        ServiceTime {
            time_ns,
            shape: ServiceTimeShape::Fixed,
        }
    }

    /// The mean in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        match self.shape {
            ServiceTimeShape::Bimodal { share, outlier_ns } => {
                (1.0 - share) * self.time_ns + share * outlier_ns
            }
            _ => self.time_ns,
        }
    }

    /// Whether all draws are equal.
    pub(crate) fn is_fixed(&self) -> bool {
        self.shape == ServiceTimeShape::Fixed
    }

    /// Draws one time in nanoseconds.
    #[inline]
    pub(crate) fn draw_ns(&self, rng: &mut Rng) -> f64 {
        match self.shape {
            ServiceTimeShape::Fixed => self.time_ns,
            ServiceTimeShape::Exponential => -self.time_ns * libm::log1p(-rng.unit()),
            ServiceTimeShape::Uniform { spread } => {
                self.time_ns * (1.0 + spread * (2.0 * rng.unit() - 1.0))
            }
            ServiceTimeShape::Lognormal { variation } => {
                let variance = libm::log1p(variation * variation);
                let exponent = libm::sqrt(variance) * standard_normal(rng) - variance / 2.0;
                self.time_ns * libm::exp(exponent)
            }
            ServiceTimeShape::Bimodal { share, outlier_ns } => {
                if rng.unit() < share {
                    outlier_ns
                } else {
                    self.time_ns
                }
            }
        }
    }
}

/// A normal deviate with mean 0 and variance 1, by the Box-Muller method. The second deviate of the
/// pair is dropped, so that each draw takes a fixed count of random numbers.
pub(super) fn standard_normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log1p(-rng.unit()));
    radius * libm::cos(std::f64::consts::TAU * rng.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(service: ServiceTime) -> (f64, f64) {
        let mut rng = Rng::new(11);
        let count = 200_000;
        let draws: Vec<f64> = (0..count).map(|_| service.draw_ns(&mut rng)).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(count);
        let square = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
        (mean, libm::sqrt(square / f64::from(count - 1)))
    }

    #[test]
    fn draws_have_the_mean_and_deviation_of_their_distribution() {
        let third = 1.0 / libm::sqrt(3.0);
        for (shape, deviation) in [
            (ServiceTimeShape::Fixed, 0.0),
            (ServiceTimeShape::Exponential, 100.0),
            (ServiceTimeShape::Uniform { spread: 0.6 }, 60.0 * third),
            (ServiceTimeShape::Lognormal { variation: 0.5 }, 50.0),
            // sqrt(p (1 - p)) times the distance of the modes.
            (
                ServiceTimeShape::Bimodal {
                    share: 0.1,
                    outlier_ns: 600.0,
                },
                150.0,
            ),
        ] {
            let service = ServiceTime {
                time_ns: 100.0,
                shape,
            };
            let (mean, found) = moments(service);
            // The limit is five standard errors of the mean. The error of the deviation is larger
            // for long tails.
            let error = 5.0 * deviation / libm::sqrt(200_000.0) + 1e-9;
            assert!(
                (mean - service.mean_ns()).abs() < error,
                "{shape:?}: mean {mean}"
            );
            assert!(
                (found - deviation).abs() <= 0.02 * deviation,
                "{shape:?}: deviation {found}"
            );
        }
    }
}
