//! How sure a rate is, and when it is sure enough to end its phase.
//!
//! Looking again and again until an interval happens to be narrow makes it too narrow too often. Three things are set
//! against that: no look before [`LEAST_SAMPLES`], looks that lie ever further apart, so that there are few of them, and a
//! stricter level for stopping ([`STOPPING_LEVEL`]) than for what is reported. `coverage.rs` counts over many seeds of
//! simulated devices how often the truth lies within the interval, with the rule in force.

use iosonde_result::series::{SteadyStateTest, mean_behind_noise, mean_with_confidence};

/// Confidence level of what is reported.
pub(super) const LEVEL: f64 = 0.95;
/// Confidence level at which a phase may end early.
const STOPPING_LEVEL: f64 = 0.99;
/// No phase ends with fewer intervals.
pub(super) const LEAST_SAMPLES: usize = 30;
/// From one look to the next the series grows by this factor.
const GROWTH: f64 = 1.3;
/// Intervals are also looked at in groups of this many: noise that is slower than an interval hides behind noise that is
/// as fast as one, and shows in the groups.
const GROUP: usize = 4;
/// Groups are used from this many on.
const FEWEST_GROUPS: usize = 12;
/// Rounds of SNIA's measurement window. The phase is cut into as many: what varies faster is noise, not drift.
const ROUNDS: usize = 5;

/// Half the width of the confidence interval of the mean of these rates; `None` for too few of them.
///
/// The wider of what the intervals say by [`mean_behind_noise`], and groups of [`GROUP`] by [`mean_with_confidence`].
pub(super) fn half_width(rates: &[f64], level: f64) -> Option<f64> {
    let fine = mean_behind_noise(rates, level)?.half_width;
    if rates.len() / GROUP < FEWEST_GROUPS {
        return Some(fine);
    }
    let groups: Vec<f64> = rates.rchunks_exact(GROUP).map(mean).collect();
    let coarse = mean_with_confidence(&groups, level)?.half_width;
    Some(fine.max(coarse))
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// Whether a rate held still, by SNIA's test over the rounds of a phase; `None` when there are too few intervals to tell.
pub(super) fn held_still(rates: &[f64]) -> Option<bool> {
    if rates.len() < ROUNDS {
        return None;
    }
    let bound = |round: usize| round * rates.len() / ROUNDS;
    let rounds: Vec<f64> = (0..ROUNDS)
        .map(|round| mean(&rates[bound(round)..bound(round + 1)]))
        .collect();
    SteadyStateTest::of(&rounds).map(|test| test.is_steady())
}

/// Decides when a phase has seen enough.
#[derive(Debug)]
pub(super) struct Stopping {
    /// Half width that is narrow enough, as a share of the mean; 0 never is.
    width: f64,
    rates: Vec<f64>,
    next_look: usize,
}

impl Stopping {
    /// Nothing has been seen yet.
    pub(super) fn at(width: f64) -> Stopping {
        Stopping {
            width,
            rates: Vec::new(),
            next_look: LEAST_SAMPLES,
        }
    }

    /// One more rate. Whether it was the last one needed.
    pub(super) fn is_sure_with(&mut self, rate: f64) -> bool {
        self.rates.push(rate);
        if self.rates.len() < self.next_look || self.width <= 0.0 {
            return false;
        }
        self.next_look = (self.next_look as f64 * GROWTH).ceil() as usize;
        let mean = mean(&self.rates);
        let narrow = half_width(&self.rates, STOPPING_LEVEL)
            .is_some_and(|half| mean > 0.0 && half <= self.width * mean);
        narrow && held_still(&self.rates) == Some(true)
    }

    /// What is known so far: half the width of the interval as a share of the mean.
    pub(super) fn relative_error(&self) -> Option<f64> {
        let mean = mean(&self.rates);
        half_width(&self.rates, LEVEL)
            .filter(|_| mean > 0.0)
            .map(|half| half / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_not_a_steady_state() {
        assert_eq!(held_still(&[100.0; 8]), Some(true));
        let falling: Vec<f64> = (0..10).map(|i| 100.0 - 2.0 * f64::from(i)).collect();
        assert_eq!(held_still(&falling), Some(false));
        assert_eq!(held_still(&[100.0, 70.0, 100.0, 100.0, 100.0]), Some(false));
        assert_eq!(held_still(&[100.0; 4]), None);
    }

    /// After how many of these rates a phase ends.
    fn ends_after(width: f64, rates: impl Iterator<Item = f64>) -> Option<usize> {
        let mut stopping = Stopping::at(width);
        let sure = rates.map(|rate| stopping.is_sure_with(rate));
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
    fn a_narrow_interval_of_a_drifting_rate_is_not_sure() {
        let drifting = (0..200).map(|i| 100.0 + f64::from(i));
        assert_eq!(ends_after(0.5, drifting), None);
        assert_eq!(ends_after(0.01, std::iter::repeat_n(0.0, 200)), None);
    }

    #[test]
    fn slow_noise_behind_fast_noise_widens_the_interval() {
        let fast = |i: u32| f64::from(i * 7 % 11) - 5.0;
        let slow = |i: u32| if i % 20 < 10 { 2.0 } else { -2.0 };
        let rates: Vec<f64> = (0..80).map(|i| 100.0 + fast(i) + slow(i)).collect();
        let fine = mean_with_confidence(&rates, LEVEL).unwrap().half_width;
        assert!(half_width(&rates, LEVEL).unwrap() > 1.3 * fine);
    }
}
