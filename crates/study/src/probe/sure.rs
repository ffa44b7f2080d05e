//! How sure a rate is, and when it is sure enough to end its phase.
//!
//! Looking again and again until an interval happens to be narrow makes it too narrow too often. Three things are set
//! against that: no look before [`LEAST_SAMPLES`], looks that lie ever further apart, so that there are few of them, and a
//! stricter level for stopping ([`STOPPING_LEVEL`]) than for what is reported. `coverage.rs` counts over many seeds of
//! simulated devices how often the truth lies within the interval, with the rule in force.

use iosonde_result::series::{Evidence, held_still, rate_with_confidence};

/// Confidence level of what is reported.
pub(super) const LEVEL: f64 = 0.95;
/// Confidence level at which a phase may end early.
const STOPPING_LEVEL: f64 = 0.99;
/// No phase ends with fewer intervals.
pub(super) const LEAST_SAMPLES: usize = 30;
/// No phase ends with fewer effective samples: a series that looks steady by chance is ended by it too often.
const EFFECTIVE_SAMPLES_MIN: f64 = 12.0;
/// From one look to the next the series grows by this factor.
const GROWTH: f64 = 1.3;

/// Decides when a phase has seen enough.
#[derive(Debug)]
pub(super) struct Stopping {
    /// Half width that is narrow enough, as a share of the mean; 0 never is.
    width: f64,
    rates: Vec<f64>,
    ios: u64,
    next_look: usize,
}

impl Stopping {
    /// Nothing has been seen yet.
    pub(super) fn at(width: f64) -> Stopping {
        Stopping {
            width,
            rates: Vec::new(),
            ios: 0,
            next_look: LEAST_SAMPLES,
        }
    }

    /// The rate of one more interval, and the I/Os that ended in it. Whether it was the last one needed.
    pub(super) fn is_sure_with(&mut self, rate: f64, ios: u64) -> bool {
        self.rates.push(rate);
        self.ios += ios;
        if self.rates.len() < self.next_look || self.width <= 0.0 {
            return false;
        }
        self.next_look = (self.next_look as f64 * GROWTH).ceil() as usize;
        let estimate = rate_with_confidence(&self.rates, self.ios, STOPPING_LEVEL);
        let is_narrow = estimate.is_some_and(|estimate| {
            estimate.evidence == Evidence::Series
                && estimate.effective_samples >= EFFECTIVE_SAMPLES_MIN
                && estimate.mean > 0.0
                && estimate.half_width <= self.width * estimate.mean
        });
        is_narrow && held_still(&self.rates) == Some(true)
    }

    /// What is known so far: half the width of the interval as a share of the mean.
    pub(super) fn relative_error(&self) -> Option<f64> {
        rate_with_confidence(&self.rates, self.ios, LEVEL)
            .filter(|estimate| estimate.mean > 0.0)
            .map(|estimate| estimate.half_width / estimate.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I/Os in each interval.
    const IOS: u64 = 1000;

    /// After how many of these rates a phase ends.
    fn ends_after(width: f64, rates: impl Iterator<Item = f64>) -> Option<usize> {
        let mut stopping = Stopping::at(width);
        let sure = rates.map(|rate| stopping.is_sure_with(rate, IOS));
        sure.zip(1..).find(|(sure, _)| *sure).map(|(_, seen)| seen)
    }

    #[test]
    fn a_quiet_rate_ends_at_once_and_a_noisy_one_later() {
        let swing =
            |by: f64| (0..600).map(move |i: u32| 100.0 + by * f64::from(i * 7 % 11) - 5.0 * by);
        assert_eq!(ends_after(0.01, swing(0.1)), Some(LEAST_SAMPLES));
        let later = ends_after(0.01, swing(1.5)).unwrap();
        assert!(later > LEAST_SAMPLES, "{later}");
        assert_eq!(ends_after(0.0, swing(0.1)), None);
    }

    #[test]
    fn a_rate_of_few_ios_is_known_to_one_of_them_at_best() {
        let mut stopping = Stopping::at(0.01);
        let ends = (1..200).find(|_| stopping.is_sure_with(20.0, 2));
        assert_eq!(ends.map(|seen| seen * 2 >= 100), Some(true));
        assert!(stopping.relative_error().unwrap() <= 0.01);
    }

    #[test]
    fn a_narrow_interval_of_a_drifting_rate_is_not_sure() {
        let drifting = (0..200).map(|i| 100.0 + f64::from(i));
        assert_eq!(ends_after(0.5, drifting), None);
        assert_eq!(ends_after(0.01, std::iter::repeat_n(0.0, 200)), None);
    }
}
