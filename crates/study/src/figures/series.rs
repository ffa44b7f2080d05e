//! [`RateSamples`]: rates sampled in all runs of one cell, and the error of their mean.

use iosonde_result::series_statistics::rate_with_confidence;
use serde::{Deserialize, Serialize};

/// Length of a sample in seconds.
pub(crate) const SAMPLE_S: f64 = 0.1;
/// Confidence of the intervals.
const LEVEL: f64 = 0.95;

/// Fewest I/Os of a burst. Any rate is a multiple of smaller counts.
const LEAST_LUMP: f64 = 4.0;
/// Fewest samples that can show bursts.
const FEWEST_COUNTS: usize = 2;

/// Samples of equal length, in chronological order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RateSamples {
    rates: Vec<f64>,
    /// Runs that have ended.
    runs: u32,
    /// Index of the first sample of the current run.
    #[serde(default)]
    run_start: usize,
}

impl RateSamples {
    /// Adds a sample of the current run.
    pub(crate) fn push(&mut self, rate: f64) {
        self.rates.push(rate);
    }

    /// Returns the number of samples.
    pub(crate) fn len(&self) -> usize {
        self.rates.len()
    }

    /// Ends the current run: the next sample belongs to another.
    pub(crate) fn next_run(&mut self) {
        self.runs += 1;
        self.run_start = self.rates.len();
    }

    /// Returns the number of runs that have ended.
    pub(crate) fn runs(&self) -> u32 {
        self.runs
    }

    /// Relative half-width of the 95 % interval of the current run's mean. `None` if the run has
    /// too few samples.
    pub(crate) fn run_error(&self) -> Option<f64> {
        let run = RateSamples {
            rates: self.rates.get(self.run_start..)?.to_vec(),
            ..RateSamples::default()
        };
        run.mean_error()
    }

    /// Relative half-width of the mean's 95 % interval, also from few samples. `None` if there are
    /// fewer than two.
    pub(crate) fn mean_error(&self) -> Option<f64> {
        let few = || self.error_of_few().map(|few| few.max(self.edges()));
        self.relative_error().or_else(few)
    }

    /// Relative half-width of the mean's 95 % interval, at least [`RateSamples::edges`].
    pub(crate) fn relative_error(&self) -> Option<f64> {
        let estimate = rate_with_confidence(&self.rates, self.ios() as u64, LEVEL)
            .filter(|each| each.mean > 0.0)?;
        Some((estimate.half_width / estimate.mean).max(self.edges()))
    }

    /// Relative error of the mean from the edges of the runs: at each, one I/O or one burst of I/Os
    /// may be miscounted.
    pub(crate) fn edges(&self) -> f64 {
        f64::from(self.runs.max(1)) * self.lump() / self.ios().max(1.0)
    }

    /// Returns the number of I/Os counted.
    fn ios(&self) -> f64 {
        self.rates.iter().sum::<f64>() * SAMPLE_S
    }

    /// Returns the number of I/Os that complete as one burst, 1 without bursts. A throttle releases
    /// the I/Os due about ten times a second, so each sample contains whole bursts, usually one.
    /// Only samples of zero or two bursts distinguish bursts from an even rate.
    fn lump(&self) -> f64 {
        let counts = self.rates.iter().map(|rate| (rate * SAMPLE_S).round());
        let counts: Vec<f64> = counts.filter(|count| *count > 0.0).collect();
        let least = counts.iter().copied().fold(f64::INFINITY, f64::min);
        if counts.len() < FEWEST_COUNTS || least < LEAST_LUMP {
            return 1.0;
        }
        // A throttle with 10.5 I/Os due releases 10 and 11 in turn.
        let is_whole = |count: &f64| {
            let lumps = (count / least).round();
            (count - lumps * least).abs() <= lumps
        };
        let most = counts.iter().copied().fold(0.0, f64::max);
        let is_seen = most >= 1.5 * least || counts.len() < self.rates.len();
        if is_seen && counts.iter().all(is_whole) {
            least
        } else {
            1.0
        }
    }

    /// Relative difference between the mean of the samples and a rate. 0 without samples.
    pub(crate) fn differs_from(&self, rate: f64) -> f64 {
        if self.rates.is_empty() || rate <= 0.0 {
            return 0.0;
        }
        let mean = self.rates.iter().sum::<f64>() / self.rates.len() as f64;
        (mean / rate - 1.0).abs()
    }

    /// Relative half-width from two to four samples, which are too few to show autocorrelation and
    /// count as independent (Student's t for one to three degrees of freedom).
    fn error_of_few(&self) -> Option<f64> {
        let factor = match self.rates.len() {
            2 => 12.71,
            3 => 4.30,
            4 => 3.18,
            _ => return None,
        };
        Some(factor * self.spread()? / (self.rates.len() as f64).sqrt())
    }

    /// Standard deviation of the samples, relative to their mean.
    pub(crate) fn spread(&self) -> Option<f64> {
        let n = self.rates.len() as f64;
        let mean = self.rates.iter().sum::<f64>() / n;
        if self.rates.len() < 2 || mean <= 0.0 {
            return None;
        }
        let squares: f64 = self.rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        Some((squares / (n - 1.0)).sqrt() / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_changes_widen_the_interval() {
        let mut slow = RateSamples::default();
        let mut fast = RateSamples::default();
        for index in 0..200 {
            // Equal values, which alternate in one series and last for two seconds in the other.
            slow.push(if index / 20 % 2 == 0 { 99.0 } else { 101.0 });
            fast.push(if index % 2 == 0 { 99.0 } else { 101.0 });
        }
        let (slow, fast) = (
            slow.relative_error().unwrap(),
            fast.relative_error().unwrap(),
        );
        assert!(slow > 3.0 * fast, "{slow} {fast}");
    }

    #[test]
    fn edges_of_bursty_ios_are_one_burst() {
        let edges = |counts: &[f64]| {
            let mut samples = RateSamples::default();
            counts
                .iter()
                .for_each(|count| samples.push(count / SAMPLE_S));
            samples.next_run();
            samples.edges()
        };
        let lump = |share: f64| move |edges: f64| (edges - share).abs() < 1e-9;
        assert!(lump(10.0 / 90.0)(edges(&[
            10.0, 10.0, 10.0, 0.0, 10.0, 20.0, 10.0, 10.0, 10.0
        ])));
        // Bursts at a constant rate cannot be recognised.
        assert!(lump(0.01)(edges(&[10.0; 10])));
        assert!(lump(10.0 / 126.0)(edges(&[
            10.0, 11.0, 20.0, 11.0, 10.0, 11.0, 10.0, 11.0, 21.0, 11.0
        ])));
        // Single I/Os, or hardly any.
        assert!(lump(0.01)(edges(&[
            9.0, 12.0, 7.0, 11.0, 10.0, 8.0, 13.0, 10.0, 9.0, 11.0
        ])));
        assert!(lump(0.1)(edges(&[1.0; 10])));
        assert!(lump(1.0 / 3960.0)(edges(&[1000.0, 980.0, 991.0, 989.0])));
    }

    #[test]
    fn error_of_few_samples_follows_their_spread() {
        let mut samples = RateSamples::default();
        assert_eq!(samples.error_of_few(), None);
        samples.push(100.0);
        samples.push(100.0);
        assert_eq!(samples.error_of_few(), Some(0.0));
        samples.push(103.0);
        assert!(
            samples
                .error_of_few()
                .is_some_and(|error| (0.03..0.06).contains(&error))
        );
        assert_eq!(samples.relative_error(), None);
    }
}
