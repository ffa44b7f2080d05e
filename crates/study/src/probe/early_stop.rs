//! Early stopping: ends a phase when the confidence interval of its rate is narrow enough.
//!
//! Repeated checks stop too often at an interval that is narrow by chance. Three rules prevent
//! that: no check before [`LEAST_SAMPLES`], checks at growing distances, and a stricter level for
//! stopping ([`STOPPING_LEVEL`]) than for reporting. `coverage.rs` counts how often the interval
//! contains the true rate of simulated devices with these rules.

use crate::probe_budget::{LEAST_SAMPLES, ProbeBudget};
use crate::probe_phase::ProbePhase;
use crate::stop_rule::StopRule;
use iosonde_job::plan::Plan;
use iosonde_result::interval::Interval;
use iosonde_result::observer::Control;
use iosonde_result::series_statistics::{SeriesEvidence, is_rate_steady, rate_with_confidence};

/// Confidence level of the reported interval.
pub(super) const LEVEL: f64 = 0.95;
/// Confidence level at which a phase may end early.
const STOPPING_LEVEL: f64 = 0.99;

/// No phase ends with fewer effective samples: with fewer, too many series look steady by chance.
const EFFECTIVE_SAMPLES_MIN: f64 = 12.0;
/// The number of intervals grows by this factor from one check to the next.
const GROWTH: f64 = 1.3;

/// Ends the run of one phase when its rate is sure.
#[derive(Debug)]
pub(super) struct EarlyStop {
    phase: ProbePhase,
    interval_ns: u64,
    rate: SureRate,
}

impl EarlyStop {
    /// Returns the rule of a run without intervals yet.
    pub(super) fn new(phase: ProbePhase, budget: &ProbeBudget) -> EarlyStop {
        EarlyStop {
            phase,
            interval_ns: budget.interval_ns(),
            // Layout has a fixed amount of work, so it never stops early.
            rate: SureRate::at(match phase {
                ProbePhase::Layout => 0.0,
                _ => budget.width,
            }),
        }
    }
}

impl StopRule for EarlyStop {
    fn interval_ns(&self, _plan: &Plan) -> u64 {
        self.interval_ns
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        if interval.ramp || self.phase == ProbePhase::Layout {
            return Control::Continue;
        }
        let moved = interval.directions[self.phase.direction()];
        let rate = moved.ios as f64 * 1e9 / interval.length_ns.max(1) as f64;
        match self.rate.is_sure_with(rate, moved.ios) {
            true => Control::Stop,
            false => Control::Continue,
        }
    }

    fn relative_error(&self) -> Option<f64> {
        self.rate.relative_error()
    }
}

/// Decides when the rate of a phase is sure.
#[derive(Debug)]
struct SureRate {
    /// Half width that is narrow enough, as a share of the mean; 0 disables early stopping.
    width: f64,
    rates: Vec<f64>,
    ios: u64,
    next_look: usize,
}

impl SureRate {
    /// No intervals yet.
    fn at(width: f64) -> SureRate {
        SureRate {
            width,
            rates: Vec::new(),
            ios: 0,
            next_look: LEAST_SAMPLES,
        }
    }

    /// Adds the rate and the I/Os of one interval. Returns whether the phase may end.
    fn is_sure_with(&mut self, rate: f64, ios: u64) -> bool {
        self.rates.push(rate);
        self.ios += ios;
        if self.rates.len() < self.next_look || self.width <= 0.0 {
            return false;
        }
        self.next_look = (self.next_look as f64 * GROWTH).ceil() as usize;
        let estimate = rate_with_confidence(&self.rates, self.ios, STOPPING_LEVEL);
        let is_narrow = estimate.is_some_and(|estimate| {
            estimate.evidence == SeriesEvidence::Autocorrelation
                && estimate.effective_samples >= EFFECTIVE_SAMPLES_MIN
                && estimate.mean > 0.0
                && estimate.half_width <= self.width * estimate.mean
        });
        is_narrow && is_rate_steady(&self.rates) == Some(true)
    }

    /// Half the width of the interval so far, as a share of the mean.
    fn relative_error(&self) -> Option<f64> {
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

    /// The number of intervals after which a phase ends.
    fn ends_after(width: f64, rates: impl Iterator<Item = f64>) -> Option<usize> {
        let mut stopping = SureRate::at(width);
        let sure = rates.map(|rate| stopping.is_sure_with(rate, IOS));
        sure.zip(1..).find(|(sure, _)| *sure).map(|(_, seen)| seen)
    }

    #[test]
    fn noisy_rate_stops_later_than_quiet_rate() {
        let swing =
            |by: f64| (0..600).map(move |i: u32| 100.0 + by * f64::from(i * 7 % 11) - 5.0 * by);
        assert_eq!(ends_after(0.01, swing(0.1)), Some(LEAST_SAMPLES));
        let later = ends_after(0.01, swing(1.5)).unwrap();
        assert!(later > LEAST_SAMPLES, "{later}");
        assert_eq!(ends_after(0.0, swing(0.1)), None);
    }

    #[test]
    fn rate_of_few_ios_needs_enough_ios_for_width() {
        let mut stopping = SureRate::at(0.01);
        let ends = (1..200).find(|_| stopping.is_sure_with(20.0, 2));
        assert_eq!(ends.map(|seen| seen * 2 >= 100), Some(true));
        assert!(stopping.relative_error().unwrap() <= 0.01);
    }

    #[test]
    fn drifting_rate_with_narrow_interval_is_not_sure() {
        let drifting = (0..200).map(|i| 100.0 + f64::from(i));
        assert_eq!(ends_after(0.5, drifting), None);
        assert_eq!(ends_after(0.01, std::iter::repeat_n(0.0, 200)), None);
    }
}
