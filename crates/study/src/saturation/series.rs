//! Samples of a rate from several runs of one cell, and how sure their mean is.

use iosonde_result::series::mean_with_confidence;
use serde::{Deserialize, Serialize};

/// Length of a sample in seconds.
pub(super) const SAMPLE_S: f64 = 0.1;
/// Samples that are summed up to see what changes more slowly than from sample to sample.
const BLOCK: usize = 10;
/// Fewer blocks say less about slow changes than they cost in certainty.
const FEWEST_BLOCKS: usize = 8;

/// Samples of equal length, in the order they were taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Samples {
    rates: Vec<f64>,
    blocks: Vec<f64>,
    /// Where the block begins that is not full.
    open: usize,
    /// Runs that have ended.
    runs: u32,
}

impl Samples {
    /// Takes in one more, of the same run as the last.
    pub(super) fn push(&mut self, rate: f64) {
        self.rates.push(rate);
        if self.rates.len() - self.open == BLOCK {
            let block = &self.rates[self.open..];
            self.blocks.push(block.iter().sum::<f64>() / BLOCK as f64);
            self.open = self.rates.len();
        }
    }

    /// The next sample belongs to another run.
    pub(super) fn next_run(&mut self) {
        self.open = self.rates.len();
        self.runs += 1;
    }

    /// Half the width of the mean's 95 % interval as a share of the mean. The rate may change from sample to sample, and
    /// more slowly: of the intervals of single samples and of blocks the wider one holds.
    pub(super) fn relative_error(&self) -> Option<f64> {
        let relative = |series: &[f64]| {
            mean_with_confidence(series, 0.95)
                .filter(|estimate| estimate.mean > 0.0)
                .map(|estimate| estimate.half_width / estimate.mean)
        };
        // Where a run begins and ends, an I/O more or less is counted, however regular they come.
        let counted = self.rates.iter().sum::<f64>() * SAMPLE_S;
        let edges = f64::from(self.runs.max(1)) / counted.max(1.0);
        let fine = relative(&self.rates)?.max(edges);
        if self.blocks.len() < FEWEST_BLOCKS {
            return Some(fine);
        }
        Some(relative(&self.blocks).map_or(fine, |coarse| coarse.max(fine)))
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

    #[test]
    fn blocks_do_not_span_runs() {
        let mut samples = Samples::default();
        for _ in 0..15 {
            samples.push(1.0);
        }
        samples.next_run();
        for _ in 0..9 {
            samples.push(2.0);
        }
        assert_eq!(samples.blocks, [1.0]);
        samples.push(2.0);
        assert_eq!(samples.blocks, [1.0, 2.0]);
    }
}
