//! Changes of the device's speed over time.

use super::service_time::standard_normal;
use super::spec::Speed;
use iosonde_workload::rng::Rng;

/// Minimum of the speed factor. With a speed of 0 an I/O would never complete.
const SLOWEST: f64 = 0.01;

/// Noise, which is constant within a period, and drift, which changes continuously.
#[derive(Debug, Clone)]
pub(super) struct SpeedCurve {
    rules: Speed,
    rng: Rng,
    /// Deviation from 1 in each period so far.
    periods: Vec<f64>,
    steady: bool,
}

impl SpeedCurve {
    pub(super) fn new(rules: Speed, rng: Rng) -> SpeedCurve {
        let steady = rules.noise == 0.0 && rules.drift_per_minute == 0.0;
        SpeedCurve {
            rules,
            rng,
            periods: Vec::new(),
            steady,
        }
    }

    /// The speed factor at `time_ns`.
    #[inline]
    pub(super) fn at(&mut self, time_ns: f64) -> f64 {
        if self.steady {
            return 1.0;
        }
        self.changing(time_ns)
    }

    fn changing(&mut self, time_ns: f64) -> f64 {
        let mut factor = 1.0 + self.rules.drift_per_minute * time_ns / 60e9;
        if self.rules.noise > 0.0 {
            let period = (time_ns / self.rules.noise_period_ns as f64) as usize;
            factor *= 1.0 + self.deviation(period);
        }
        factor.max(SLOWEST)
    }

    /// The deviation of a period: a first-order autoregressive process in its stationary state.
    fn deviation(&mut self, period: usize) -> f64 {
        let Speed {
            noise, noise_rho, ..
        } = self.rules;
        while self.periods.len() <= period {
            let fresh = standard_normal(&mut self.rng) * noise;
            let next = match self.periods.last() {
                None => fresh,
                Some(last) => noise_rho * last + libm::sqrt(1.0 - noise_rho * noise_rho) * fresh,
            };
            self.periods.push(next);
        }
        self.periods[period]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_has_its_deviation_and_autocorrelation() {
        let rules = Speed {
            noise: 0.03,
            noise_rho: 0.5,
            ..Speed::STEADY
        };
        let mut curve = SpeedCurve::new(rules, Rng::new(3));
        let count = 100_000;
        let deviations: Vec<f64> = (0..count)
            .map(|second| curve.at(second as f64 * 1e9 + 5.0) - 1.0)
            .collect();
        let mean = deviations.iter().sum::<f64>() / count as f64;
        let variance = deviations.iter().map(|x| x * x).sum::<f64>() / count as f64;
        let lagged = deviations
            .windows(2)
            .map(|pair| pair[0] * pair[1])
            .sum::<f64>();
        let rho = lagged / (count - 1) as f64 / variance;
        // The mean of an AR(1) series has the standard error sigma sqrt((1 + rho) / (1 - rho) / n).
        assert!(
            mean.abs() < 5.0 * 0.03 * libm::sqrt(3.0 / count as f64),
            "{mean}"
        );
        assert!((libm::sqrt(variance) - 0.03).abs() < 0.0006, "{variance}");
        assert!((rho - 0.5).abs() < 0.015, "{rho}");
    }

    #[test]
    fn drift_grows_with_time_and_never_stops_the_device() {
        let rules = Speed {
            drift_per_minute: -0.1,
            ..Speed::STEADY
        };
        let mut curve = SpeedCurve::new(rules, Rng::new(1));
        assert_eq!(curve.at(0.0), 1.0);
        assert_eq!(curve.at(120e9), 0.8);
        assert_eq!(curve.at(6_000e9), SLOWEST);
    }

    #[test]
    fn noise_at_an_earlier_time_is_repeatable() {
        let rules = Speed {
            noise: 0.1,
            noise_rho: 0.9,
            ..Speed::STEADY
        };
        let mut curve = SpeedCurve::new(rules, Rng::new(9));
        let early = curve.at(2e9);
        curve.at(50e9);
        assert_eq!(curve.at(2.5e9), early);
    }
}
