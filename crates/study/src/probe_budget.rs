//! [`ProbeBudget`]: the time limits of a probe's phases and searches, and its usual working set.

use crate::probe_phase::ProbePhase;
use crate::time_range::TimeRange;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SECOND_NS: u64 = 1_000_000_000;
/// The shortest knee search, as a share of its longest time.
pub(crate) const SEARCH_LEAST: f64 = 0.2;
/// No phase ends with fewer intervals.
pub(crate) const LEAST_SAMPLES: usize = 30;

/// The starts of all runs and the drain of their last I/Os take up to this part of their time: a
/// twentieth.
const DRAIN_PART: u64 = 20;

/// The time limits of phases and searches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeBudget {
    /// Layout ends after this time, even if incomplete.
    pub layout_ns: u64,
    /// Measured time of each phase at most.
    pub runtime_ns: u64,
    /// Ramp before the measured time.
    pub ramp_ns: u64,
    /// Time limit of a random pattern's knee search; 0 disables searches. A sequential pattern,
    /// with fewer depths, gets a quarter of it.
    #[serde(default)]
    pub knee_ns: u64,
    /// Largest working set, unless a size is requested.
    pub size_bytes: u64,
    /// A phase ends early when its rate is steady and half its confidence interval is at most this
    /// share of the mean. 0 disables early stopping.
    #[serde(default)]
    pub width: f64,
}

impl ProbeBudget {
    /// At most 90 seconds in all, less with early stopping.
    pub const NORMAL: ProbeBudget = ProbeBudget {
        layout_ns: 12 * SECOND_NS,
        runtime_ns: 6 * SECOND_NS,
        ramp_ns: SECOND_NS,
        knee_ns: 10 * SECOND_NS,
        size_bytes: 4 << 30,
        width: 0.01,
    };

    /// At most 20 seconds in all, for a first impression.
    pub const QUICK: ProbeBudget = ProbeBudget {
        layout_ns: 4 * SECOND_NS,
        runtime_ns: 3 * SECOND_NS / 2,
        ramp_ns: SECOND_NS / 2,
        knee_ns: 0,
        size_bytes: 1 << 30,
        width: 0.05,
    };

    /// Length of intervals: 100 ms, longer where a phase would have more than 200, at most 1 s.
    pub fn interval_ns(&self) -> u64 {
        const SHORTEST_NS: u64 = SECOND_NS / 10;
        let tenths = (self.runtime_ns / 200).div_ceil(SHORTEST_NS);
        tenths.clamp(1, 10) * SHORTEST_NS
    }

    /// Changes the measured time of each phase, and scales searches by the same factor.
    pub fn with_runtime(self, runtime_ns: u64) -> ProbeBudget {
        let share = runtime_ns as f64 / self.runtime_ns as f64;
        let knee_ns = (self.knee_ns as f64 * share) as u64;
        ProbeBudget {
            runtime_ns,
            // A shorter search finds nothing.
            knee_ns: knee_ns.max(self.knee_ns.min(3 * SECOND_NS)),
            ..self
        }
    }

    /// The longest time of one phase, without its knee search.
    pub fn phase_ns(&self, phase: ProbePhase) -> u64 {
        match phase {
            ProbePhase::Layout => self.layout_ns,
            _ => self.ramp_ns + self.runtime_ns,
        }
    }

    /// The longest time of a phase's knee search; 0 without one.
    pub(crate) fn search_ns(&self, phase: ProbePhase) -> u64 {
        match phase.is_random() {
            _ if !phase.has_knee() => 0,
            true => self.knee_ns,
            false => self.knee_ns / 4,
        }
    }

    /// Shortens the next step by the time by which earlier steps overran, since devices drained
    /// slowly. At least half of its time stays.
    pub(crate) fn made_up(self, late_ns: u64) -> ProbeBudget {
        let shorter = |ns: u64| ns.saturating_sub(late_ns).max(ns / 2);
        ProbeBudget {
            runtime_ns: shorter(self.runtime_ns),
            knee_ns: shorter(self.knee_ns),
            ..self
        }
    }

    /// Whether a knee search follows the phase.
    pub fn searches(&self, phase: ProbePhase) -> bool {
        self.search_ns(phase) > 0
    }

    /// Time of one phase: layout ends with its data, others after `LEAST_SAMPLES` or later.
    pub fn phase_time(&self, phase: ProbePhase) -> TimeRange {
        let samples_ns = LEAST_SAMPLES as u64 * self.interval_ns();
        let is_early = self.width > 0.0;
        TimeRange {
            least_ns: match phase {
                ProbePhase::Layout => 0,
                _ if is_early => self.ramp_ns + samples_ns.min(self.runtime_ns),
                _ => self.ramp_ns + self.runtime_ns,
            },
            most_ns: self.phase_ns(phase),
        }
    }

    /// Shortest and longest time of a phase's knee search.
    pub fn search_time(&self, phase: ProbePhase) -> TimeRange {
        let most_ns = self.search_ns(phase);
        TimeRange {
            least_ns: (SEARCH_LEAST * most_ns as f64) as u64,
            most_ns,
        }
    }

    /// Shortest and longest time of these phases with their searches, and of the drains between
    /// them.
    pub fn total_time(&self, phases: &[ProbePhase]) -> TimeRange {
        let each = |phase: &ProbePhase| self.phase_time(*phase) + self.search_time(*phase);
        let all = phases.iter().map(each);
        let sum = all.fold(TimeRange::default(), |sum, each| sum + each);
        TimeRange {
            most_ns: sum.most_ns + sum.most_ns / DRAIN_PART,
            ..sum
        }
    }

    /// The longest time of these phases with their searches.
    pub fn total_ns(&self, phases: &[ProbePhase]) -> u64 {
        let each = |phase: &ProbePhase| self.phase_ns(*phase) + self.search_ns(*phase);
        phases.iter().map(each).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    #[test]
    fn total_time_stays_below_promised_time() {
        let normal = ProbeBudget::NORMAL.total_ns(ProbePhase::VARIANTS);
        assert!(normal <= 86 * SECOND_NS, "leaves some of 90 s for the rest");
        assert!(ProbeBudget::QUICK.total_ns(ProbePhase::VARIANTS) <= 19 * SECOND_NS);
        // A simulated disk took 1 min 27 s, with the drains of its slow I/Os.
        let announced = ProbeBudget::NORMAL.total_time(ProbePhase::VARIANTS);
        assert_eq!(announced.words(), "33 s to 1 min 30 s");
    }

    #[test]
    fn search_time_scales_with_runtime() {
        let budget_for = |seconds: u64| ProbeBudget::NORMAL.with_runtime(seconds * SECOND_NS);
        assert_eq!(budget_for(6), ProbeBudget::NORMAL);
        assert_eq!(budget_for(30).knee_ns, 50 * SECOND_NS);
        assert_eq!(budget_for(1).knee_ns, 3 * SECOND_NS);
        assert_eq!(ProbeBudget::QUICK.with_runtime(SECOND_NS).knee_ns, 0);
    }

    #[test]
    fn lost_time_shortens_budget_by_half_at_most() {
        let budget = ProbeBudget::NORMAL.made_up(SECOND_NS);
        assert_eq!(budget.runtime_ns, 5 * SECOND_NS);
        assert_eq!(budget.knee_ns, 9 * SECOND_NS);
        assert_eq!(
            ProbeBudget::NORMAL.made_up(60 * SECOND_NS).runtime_ns,
            3 * SECOND_NS
        );
    }

    #[test]
    fn interval_length_grows_above_200_intervals() {
        let budget_for = |seconds: u64| ProbeBudget {
            runtime_ns: seconds * SECOND_NS,
            ..ProbeBudget::NORMAL
        };
        assert_eq!(ProbeBudget::QUICK.interval_ns(), SECOND_NS / 10);
        assert_eq!(budget_for(8).interval_ns(), SECOND_NS / 10);
        assert_eq!(budget_for(60).interval_ns(), SECOND_NS * 3 / 10);
        assert_eq!(budget_for(3600).interval_ns(), SECOND_NS);
    }
}
