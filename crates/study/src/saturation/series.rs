//! Samples of a rate from several runs of one cell, and how sure their mean is.

use iosonde_result::series::rate_with_confidence;
use serde::{Deserialize, Serialize};

/// Length of a sample in seconds.
pub(super) const SAMPLE_S: f64 = 0.1;
/// Confidence of the intervals.
const LEVEL: f64 = 0.95;

/// Fewer I/Os at once are no lump: any rate rounds to so few.
const LEAST_LUMP: f64 = 4.0;
/// Fewer samples do not show whether I/Os come in lumps.
const FEWEST_COUNTS: usize = 2;

/// Samples of equal length, in the order they were taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Samples {
    rates: Vec<f64>,
    /// Runs that have ended.
    runs: u32,
}

impl Samples {
    /// Takes in one more, of the same run as the last.
    pub(super) fn push(&mut self, rate: f64) {
        self.rates.push(rate);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.rates.len()
    }

    /// The next sample belongs to another run.
    pub(super) fn next_run(&mut self) {
        self.runs += 1;
    }

    /// Half the width of the mean's 95 % interval as a share of the mean; never less than [`Samples::edges`].
    pub(super) fn relative_error(&self) -> Option<f64> {
        let estimate = rate_with_confidence(&self.rates, self.ios() as u64, LEVEL)
            .filter(|each| each.mean > 0.0)?;
        Some((estimate.half_width / estimate.mean).max(self.edges()))
    }

    /// How far the mean may be off, as a share of it, because each run begins and ends somewhere: an I/O more or less is
    /// counted there, or a lump of them where they come in lumps.
    pub(super) fn edges(&self) -> f64 {
        f64::from(self.runs.max(1)) * self.lump() / self.ios().max(1.0)
    }

    /// I/Os that were counted.
    fn ios(&self) -> f64 {
        self.rates.iter().sum::<f64>() * SAMPLE_S
    }

    /// I/Os that come at once. A throttle lets through as many as it owes, ten times a second or so: then every sample holds a
    /// whole number of lumps, mostly one, and two or none where an edge falls between. Only where that has happened is it
    /// told from I/Os that come one by one, evenly.
    fn lump(&self) -> f64 {
        let counts = self.rates.iter().map(|rate| (rate * SAMPLE_S).round());
        let counts: Vec<f64> = counts.filter(|count| *count > 0.0).collect();
        let least = counts.iter().copied().fold(f64::INFINITY, f64::min);
        if counts.len() < FEWEST_COUNTS || least < LEAST_LUMP {
            return 1.0;
        }
        // A throttle that owes 10.5 lets through 10 and 11 in turn.
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

    /// How far the mean of the samples lies from a rate, as a share of that; 0 where there are none.
    pub(super) fn differs_from(&self, rate: f64) -> f64 {
        if self.rates.is_empty() || rate <= 0.0 {
            return 0.0;
        }
        let mean = self.rates.iter().sum::<f64>() / self.rates.len() as f64;
        (mean / rate - 1.0).abs()
    }

    /// The same of two to four samples, as if they were independent (Student's factors for one to three degrees of freedom):
    /// too few to see how they depend on each other.
    pub(super) fn error_of_few(&self) -> Option<f64> {
        let factor = match self.rates.len() {
            2 => 12.71,
            3 => 4.30,
            4 => 3.18,
            _ => return None,
        };
        Some(factor * self.spread()? / (self.rates.len() as f64).sqrt())
    }

    /// Standard deviation from sample to sample, as a share of the mean.
    pub(super) fn spread(&self) -> Option<f64> {
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
        let mut slow = Samples::default();
        let mut fast = Samples::default();
        for index in 0..200 {
            // The same values: in the one they alternate, in the other they last for two seconds.
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
    fn what_comes_in_lumps_is_known_to_a_lump() {
        let edges = |counts: &[f64]| {
            let mut samples = Samples::default();
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
        // Whether so even a rate comes in lumps cannot be seen.
        assert!(lump(0.01)(edges(&[10.0; 10])));
        assert!(lump(10.0 / 126.0)(edges(&[
            10.0, 11.0, 20.0, 11.0, 10.0, 11.0, 10.0, 11.0, 21.0, 11.0
        ])));
        // One by one, or hardly any.
        assert!(lump(0.01)(edges(&[
            9.0, 12.0, 7.0, 11.0, 10.0, 8.0, 13.0, 10.0, 9.0, 11.0
        ])));
        assert!(lump(0.1)(edges(&[1.0; 10])));
        assert!(lump(1.0 / 3960.0)(edges(&[1000.0, 980.0, 991.0, 989.0])));
    }

    #[test]
    fn few_samples_are_judged_by_their_spread() {
        let mut samples = Samples::default();
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
