//! Statistical decision on whether an objective is kept at each offered rate.
//!
//! Slow I/Os are counted, with an error that accounts for clumping. Latency is assumed to grow with
//! load: a rate has at most the mean share of slow I/Os of itself and higher rates, and at least
//! that of itself and lower rates. Neighbouring rates may thus decide together.

use super::objective::Objective;
use super::step::LoadStep;
use crate::figures::load_measurement::{DirectionLoad, ENOUGH, LoadLatency};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use statrs::function::gamma::gamma_ur;

/// Confidence required to call an objective kept at a rate. A search tests about ten rates, each
/// again after every run, so its whole interval is right less often.
const SURELY_KEPT: f64 = 0.99;
/// Confidence required to call an objective broken. Many slow I/Os show their clumping.
const SURELY_BROKEN: f64 = 0.975;

/// Decision on an objective at one rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Judgement {
    /// Kept with confidence in each direction, at the offered rate.
    Kept,
    /// The measurements do not decide.
    Undecided,
    /// Broken with confidence, or the offered rate was not reached.
    Broken,
}

/// An offered rate and its decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tried {
    pub(super) rate: f64,
    /// Number of runs.
    pub(super) runs: u32,
    pub(super) judgement: Judgement,
    /// Whether the objective seems kept, with or without confidence.
    pub(super) seems_kept: bool,
}

/// Decides on an objective at each rate. Interrupted steps are ignored.
pub(super) fn judged(objective: &Objective, steps: &[LoadStep]) -> Vec<Tried> {
    let whole = steps.iter().filter(|step| !step.point.interrupted);
    let mut steps: Vec<&LoadStep> = whole.collect();
    steps.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
    let sides: [fn(&LoadStep) -> &Option<DirectionLoad>; 2] =
        [|step| &step.point.read, |step| &step.point.write];
    let mut tried: Vec<Tried> = steps.iter().map(|step| by_rate_alone(step)).collect();
    for side in sides {
        let latencies: Option<Vec<&LoadLatency>> = steps
            .iter()
            .map(|step| side(step).as_ref().map(|side| &side.latency))
            .collect();
        if let Some(latencies) = latencies {
            let of_side = judge_direction(objective, &steps, &latencies);
            for (tried, (judgement, seems_kept)) in tried.iter_mut().zip(of_side) {
                tried.judgement = tried.judgement.max(judgement);
                tried.seems_kept &= seems_kept;
            }
        }
    }
    tried
}

/// Returns the decision without latencies: a rate that was not reached breaks any objective.
fn by_rate_alone(step: &LoadStep) -> Tried {
    let kept_up = step.point.kept_up;
    Tried {
        rate: step.rate(),
        runs: step.point.runs,
        judgement: match kept_up {
            true => Judgement::Kept,
            false => Judgement::Broken,
        },
        seems_kept: kept_up,
    }
}

/// Decides on each step by one direction, and returns whether the objective seems kept.
fn judge_direction(
    objective: &Objective,
    steps: &[&LoadStep],
    latencies: &[&LoadLatency],
) -> Vec<(Judgement, bool)> {
    let both = steps.iter().zip(latencies);
    if objective.allowed_share() == 0.0 {
        return both
            .map(|(step, latency)| by_longest(objective, step, latency))
            .collect();
    }
    let evidence: Vec<SlowIoEvidence> = both
        .map(|(step, latency)| SlowIoEvidence::from_step(objective, step, latency))
        .collect();
    let each = (0..evidence.len()).map(|index| {
        let (below, from) = evidence.split_at(index);
        let alone = from[0];
        let with_above = from[1..].iter();
        let with_below = below.iter().rev();
        let judgement = match () {
            () if alone.with_any(with_below, SlowIoEvidence::is_surely_above) => Judgement::Broken,
            () if alone.with_any(with_above, SlowIoEvidence::is_surely_below) => Judgement::Kept,
            () => Judgement::Undecided,
        };
        (judgement, alone.slow <= alone.allowed)
    });
    each.collect()
}

/// Decides on an objective of the maximum. A single slow I/O exceeds it, but may be a stall that
/// does not recur. Slow I/Os in two runs, or ten of them, therefore decide.
fn by_longest(objective: &Objective, step: &LoadStep, latency: &LoadLatency) -> (Judgement, bool) {
    let limit_ns = objective.latency_ns as f64;
    let slow = latency.slower(limit_ns);
    let is_broken = slow as f64 >= ENOUGH || step.runs_slower(limit_ns) > 1;
    let judgement = match (latency.count, slow) {
        (0, _) => Judgement::Undecided,
        (_, 0) => Judgement::Kept,
        _ if is_broken => Judgement::Broken,
        _ => Judgement::Undecided,
    };
    (judgement, slow == 0)
}

/// Slow I/Os at one rate, or at several neighbouring rates.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SlowIoEvidence {
    /// Number of slow I/Os.
    slow: f64,
    /// Number of slow I/Os that the objective allows.
    allowed: f64,
    /// Variance of the number of slow I/Os, by the allowed or the observed share: the larger.
    variance: f64,
    /// Variance if all I/Os were independent.
    independent: f64,
    /// Degrees of freedom of the variance: batches less one.
    freedom: f64,
}

impl SlowIoEvidence {
    fn from_step(objective: &Objective, step: &LoadStep, latency: &LoadLatency) -> SlowIoEvidence {
        let limit_ns = objective.latency_ns as f64;
        let (slow, all) = (latency.slower(limit_ns) as f64, latency.count as f64);
        let seen = (slow / all.max(1.0)).min(0.5);
        let share = objective.allowed_share().max(seen);
        let independent = all * share * (1.0 - share);
        SlowIoEvidence {
            slow,
            allowed: all * objective.allowed_share(),
            variance: step.clumping(limit_ns) * independent,
            independent,
            freedom: step.batches().count() as f64 - 1.0,
        }
    }

    fn and(self, other: &SlowIoEvidence) -> SlowIoEvidence {
        SlowIoEvidence {
            slow: self.slow + other.slow,
            allowed: self.allowed + other.allowed,
            variance: self.variance + other.variance,
            independent: self.independent + other.independent,
            freedom: self.freedom + other.freedom,
        }
    }

    /// Returns whether a test holds for this rate, alone or with its nearest neighbours.
    fn with_any<'a>(
        self,
        neighbours: impl Iterator<Item = &'a SlowIoEvidence>,
        is_so: fn(&SlowIoEvidence) -> bool,
    ) -> bool {
        let mut sum = self;
        is_so(&sum)
            || neighbours.into_iter().any(|next| {
                sum = sum.and(next);
                is_so(&sum)
            })
    }

    /// Returns the clumping factor: variance over the variance of independent I/Os.
    fn clumping(&self) -> f64 {
        (self.variance / self.independent.max(f64::MIN_POSITIVE)).max(1.0)
    }

    /// Returns whether so few slow I/Os are improbable at the allowed share (Poisson clumps).
    fn is_surely_below(&self) -> bool {
        let clumping = self.clumping();
        let expected = self.allowed / clumping;
        let chance = match expected > 0.0 {
            true => gamma_ur(self.slow / clumping + 1.0, expected),
            false => 1.0,
        };
        self.slow < self.allowed && normal_errors(chance) >= enough(SURELY_KEPT, self.freedom)
    }

    /// Returns whether more I/Os are slow than allowed, beyond what chance explains.
    fn is_surely_above(&self) -> bool {
        let errors = (self.slow - self.allowed) / self.variance.sqrt().max(f64::MIN_POSITIVE);
        // Square roots of small counts are less skewed (F. J. Anscombe, Biometrika 35, 1948).
        let clumping = self.clumping();
        let root = |count: f64| (count / clumping + 0.375).sqrt();
        let of_roots = 2.0 * (root(self.slow) - root(self.allowed));
        errors.min(of_roots) >= enough(SURELY_BROKEN, self.freedom)
    }
}

/// Returns the standard errors that a normal deviate exceeds with this probability.
fn normal_errors(chance: f64) -> f64 {
    Normal::standard().inverse_cdf((1.0 - chance).clamp(0.0, 1.0 - f64::EPSILON))
}

/// Returns the standard errors required for a confidence, a quantile of Student's t.
fn enough(sure: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom.max(1.0))
        .map_or(f64::INFINITY, |student| student.inverse_cdf(sure))
}

#[cfg(test)]
mod tests {
    use super::super::step::LoadRun;
    use super::*;
    use crate::figures::load_measurement::{LoadMeasurement, Offered};
    use iosonde_result::histogram::Histogram;

    /// A run of I/Os of 1 ms, in ten batches, with `slow` I/Os of 10 ms in each of them.
    fn run(rate: f64, fast: u64, slow: [u64; 10]) -> LoadRun {
        let batch = |slow: u64| {
            let mut latency = Histogram::default();
            latency.record_n(1_000_000, fast / 10);
            latency.record_n(10_000_000, slow);
            latency
        };
        let batches = slow.map(batch);
        let mut histogram = Histogram::default();
        batches.iter().for_each(|batch| histogram.merge(batch));
        let all_slow = slow.iter().sum::<u64>();
        let latency = LoadLatency {
            count: histogram.total(),
            mean_ns: 0.0,
            max_ns: if all_slow > 0 { 1e7 } else { 1e6 },
            histogram,
        };
        let point = LoadMeasurement {
            offered: Offered {
                reads_per_s: rate,
                writes_per_s: 0.0,
            },
            read: Some(DirectionLoad {
                offered_per_s: rate,
                achieved_per_s: rate,
                latency,
            }),
            write: None,
            runs: 1,
            kept_up: true,
            interrupted: false,
            verdicts: Vec::new(),
            kinds: Vec::new(),
            failure: None,
            percentile_intervals_ns: Vec::new(),
        };
        LoadRun {
            point,
            seconds: 4.0,
            batches: batches.into(),
        }
    }

    fn judgements(objective: &str, runs: Vec<LoadRun>) -> Vec<Judgement> {
        let mut steps = Vec::new();
        for run in runs {
            LoadStep::add(&mut steps, run);
        }
        let judged = judged(&objective.parse().unwrap(), &steps);
        judged.iter().map(|tried| tried.judgement).collect()
    }

    fn judgement(objective: &str, runs: Vec<LoadRun>) -> Judgement {
        let all = judgements(objective, runs);
        assert_eq!(all.len(), 1);
        all[0]
    }

    use Judgement::{Broken, Kept, Undecided};

    #[test]
    fn small_sample_leaves_rate_undecided_unless_clear() {
        let judge = |fast, slow| judgement("p99=2ms", vec![run(100.0, fast, slow)]);
        assert_eq!(judge(0, [0; 10]), Undecided);
        assert_eq!(judge(20, [0; 10]), Undecided);
        assert_eq!(judge(1000, [0; 10]), Kept);
        assert_eq!(judge(1000, [1; 10]), Undecided);
        assert_eq!(judge(100, [2, 3, 2, 3, 2, 3, 2, 3, 2, 3]), Broken);
        assert_eq!(judge(10_000, [3, 4, 3, 4, 3, 4, 3, 4, 3, 4]), Kept);
    }

    #[test]
    fn slow_ios_of_one_stall_leave_rate_undecided() {
        let stall = [0, 0, 0, 300, 0, 0, 0, 0, 0, 0];
        assert_eq!(judgement("p99=2ms", vec![run(1e3, 4000, stall)]), Undecided);
        let spread = [30; 10];
        assert_eq!(judgement("p99=2ms", vec![run(1e3, 4000, spread)]), Broken);
    }

    #[test]
    fn runs_at_one_rate_decide_together() {
        let once = || run(100.0, 300, [0; 10]);
        assert_eq!(judgement("p99=2ms", vec![once()]), Undecided);
        assert_eq!(judgement("p99=2ms", vec![once(), once(), once()]), Kept);
    }

    #[test]
    fn runs_at_neighbouring_rates_decide_together() {
        let all = |fast: u64, slow: [u64; 10]| {
            let rates = [100.0, 101.0, 102.0];
            let runs = rates.map(|rate| run(rate, fast, slow));
            judgements("p99=2ms", runs.into())
        };
        assert_eq!(all(250, [0; 10]), [Kept, Undecided, Undecided]);
        let some = [1, 0, 1, 1, 0, 1, 0, 1, 0, 1];
        assert_eq!(all(300, some), [Undecided, Undecided, Broken]);
    }

    #[test]
    fn max_objective_is_broken_by_two_runs_or_ten_ios() {
        let (none, one) = ([0; 10], [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        let judge = |runs: &[[u64; 10]]| {
            let runs = runs.iter().map(|slow| run(100.0, 300, *slow));
            judgement("max=2ms", runs.collect())
        };
        assert_eq!(judge(&[none]), Kept);
        assert_eq!(judge(&[one]), Undecided);
        assert_eq!(judge(&[one, none]), Undecided);
        assert_eq!(judge(&[one, none, one]), Broken);
        assert_eq!(judge(&[[1; 10]]), Broken);
    }

    #[test]
    fn interrupted_run_is_not_judged() {
        let mut cut = run(100.0, 1000, [0; 10]);
        cut.point.interrupted = true;
        assert_eq!(judgements("p99=2ms", vec![cut]), []);
    }

    #[test]
    fn rate_not_reached_breaks_objective() {
        let mut late = run(100.0, 1000, [0; 10]);
        late.point.kept_up = false;
        assert_eq!(judgement("p99=2ms", vec![late]), Broken);
    }
}
