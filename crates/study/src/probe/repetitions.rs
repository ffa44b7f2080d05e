//! Several runs of the same probe: the mean rate of each workload over them, and the outliers.

use super::probe_result::ProbeResult;
use crate::figures::phase_figure::PhaseFigure;
use crate::probe_phase::ProbePhase;
use iosonde_result::compare::{
    ComparedSide, Figure, IoPattern, Measure, MeasuredResult, PartRole, ResultPart, Subject,
    figure_of,
};
use iosonde_result::run::{Verdict, VerdictKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fewest runs of a workload among which outliers are named.
const OUTLIER_RUNS_MIN: usize = 4;
/// Standard deviations between the median and an outlier, at least.
const OUTLIER_DEVIATIONS: f64 = 3.0;
/// Standard deviation of a normal distribution whose median absolute deviation (MAD) is 1.
const SCALED_MAD: f64 = 1.4826;

/// The runs of `iosonde probe --repeat` on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRepetitions {
    /// The target as the user wrote it.
    pub target: String,
    /// Number of runs that were asked for.
    pub planned: usize,
    /// Id of each run in the history, in order; `None` if it is not stored.
    pub ids: Vec<Option<String>>,
    /// Each workload that a run completed.
    pub workloads: Vec<RepeatedWorkload>,
}

/// The rates of one workload in all runs of a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedWorkload {
    /// The phase.
    pub phase: ProbePhase,
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// I/Os in flight (iodepth).
    pub iodepth: u32,
    /// Rate of each run that completed the workload.
    pub rates: Vec<RunRate>,
    /// Geometric mean of the rates, in I/Os per second.
    pub mean: f64,
    /// The 95 % interval of the mean between runs, by Student's t over their logarithms; `None` for
    /// a single run.
    pub interval: Option<(f64, f64)>,
    /// Runs outside of the median +- 3 scaled median absolute deviations (MAD) that also differ
    /// from the median by more than half their own interval; empty below 4 runs.
    pub outliers: Vec<OutlierRun>,
}

/// Rate of a workload in one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRate {
    /// Number of the run, from 1.
    pub run: usize,
    /// I/Os per second.
    pub iops: f64,
    /// Half the 95 % interval inside the run; `None` if unknown.
    pub error: Option<f64>,
}

/// A run whose rate is far from that of the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutlierRun {
    /// Number of the run, from 1.
    pub run: usize,
    /// Its id in the history; `None` if it is not stored.
    pub id: Option<String>,
    /// Its rate as a share of the median of all runs.
    pub of_median: f64,
    /// A verdict on the run that at most half of the other runs share; `None` if there is none.
    pub cause: Option<Verdict>,
}

/// The JSON Schema (2020-12) of [`ProbeRepetitions`]. `docs/schema/probe-repetitions.json` is its
/// copy.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(ProbeRepetitions).to_value()
}

impl ProbeRepetitions {
    /// Reduces the runs of one target. `ids` has their ids in the history, in the same order.
    ///
    /// Figures of a phase that was cut short count for nothing.
    ///
    /// # Panics
    ///
    /// If there are not as many ids as runs, or no run.
    #[must_use]
    pub fn from_runs(
        runs: &[ProbeResult],
        ids: &[Option<String>],
        planned: usize,
    ) -> ProbeRepetitions {
        assert_eq!(runs.len(), ids.len(), "each run has its id, or none");
        let mut kinds: Vec<(ProbePhase, u32)> = Vec::new();
        for figure in runs.iter().flat_map(complete_figures) {
            let kind = (figure.phase, figure.iodepth);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let workload = |kind: &(ProbePhase, u32)| RepeatedWorkload::from_runs(runs, ids, *kind);
        ProbeRepetitions {
            target: runs[0].target.clone(),
            planned,
            ids: ids.to_vec(),
            workloads: kinds.iter().filter_map(workload).collect(),
        }
    }
}

/// Figures of the phases that ran to their end.
fn complete_figures(result: &ProbeResult) -> impl Iterator<Item = &PhaseFigure> {
    let last = result.runs.last().map(|run| run.phase);
    let cut = last.filter(|_| result.interrupted);
    let figures = result.figures.iter();
    figures.filter(move |figure| figure.failure.is_none() && Some(figure.phase) != cut)
}

impl RepeatedWorkload {
    /// `None` if no run has the workload.
    fn from_runs(
        runs: &[ProbeResult],
        ids: &[Option<String>],
        (phase, iodepth): (ProbePhase, u32),
    ) -> Option<RepeatedWorkload> {
        let is_it = |figure: &&PhaseFigure| figure.phase == phase && figure.iodepth == iodepth;
        let mut rates = Vec::new();
        let mut block_bytes = phase.block_bytes();
        for (run, result) in (1..).zip(runs) {
            let Some(figure) = complete_figures(result).find(is_it) else {
                continue;
            };
            block_bytes = figure.block_bytes;
            rates.push(RunRate {
                run,
                iops: figure.iops.mean,
                error: figure.iops.if_telling().error,
            });
        }
        let pooled = mean_between_runs(&rates)?;
        let middle = median(rates.iter().map(|rate| rate.iops))?;
        let outliers = outliers(&rates).into_iter().map(|rate| OutlierRun {
            run: rate.run,
            id: ids[rate.run - 1].clone(),
            of_median: rate.iops / middle,
            cause: cause(runs, &rates, rate.run, phase),
        });
        Some(RepeatedWorkload {
            phase,
            block_bytes,
            iodepth,
            mean: pooled.value,
            interval: pooled.bounds.map(|bounds| (bounds.low, bounds.high)),
            outliers: outliers.collect(),
            rates,
        })
    }

    /// The lowest rate. `None` if there is no run.
    #[must_use]
    pub fn lowest(&self) -> Option<&RunRate> {
        let rates = self.rates.iter();
        rates.min_by(|a, b| a.iops.total_cmp(&b.iops))
    }

    /// The highest rate. `None` if there is no run.
    #[must_use]
    pub fn highest(&self) -> Option<&RunRate> {
        let rates = self.rates.iter();
        rates.max_by(|a, b| a.iops.total_cmp(&b.iops))
    }

    /// Half the interval of the mean, which need not be symmetric: the longer half.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        let (low, high) = self.interval?;
        Some((self.mean - low).max(high - self.mean))
    }
}

/// The mean of the rates, as `iosonde compare` has it for the same runs. `None` without a rate.
fn mean_between_runs(rates: &[RunRate]) -> Option<ComparedSide> {
    // Placeholders: all runs have the same figure.
    let (part, subject, measure) = ("figure", Subject::Read, Measure::Iops);
    let one = |rate: &RunRate| MeasuredResult {
        name: rate.run.to_string(),
        machine: None,
        parts: vec![ResultPart {
            name: part.to_owned(),
            pattern: IoPattern::default(),
            figures: vec![Figure {
                subject,
                measure,
                value: rate.iops,
                bounds: None,
                settled: None,
            }],
            role: PartRole::Alone,
        }],
    };
    let results: Vec<MeasuredResult> = rates.iter().map(one).collect();
    figure_of(&results, part, subject, measure)
}

/// The outliers among the runs of a workload: median +- 3 scaled MAD, and a distance to the median
/// of more than half the interval inside the run. A run without a known interval is no outlier.
fn outliers(rates: &[RunRate]) -> Vec<RunRate> {
    if rates.len() < OUTLIER_RUNS_MIN {
        return Vec::new();
    }
    let Some(middle) = median(rates.iter().map(|rate| rate.iops)) else {
        return Vec::new();
    };
    let distance = |rate: &RunRate| (rate.iops - middle).abs();
    let spread = median(rates.iter().map(distance)).unwrap_or(0.0) * SCALED_MAD;
    let is_outlier = |rate: &&RunRate| {
        let distance = distance(rate);
        let beyond_own = rate.error.is_some_and(|error| distance > error);
        beyond_own && distance > OUTLIER_DEVIATIONS * spread
    };
    rates.iter().filter(is_outlier).copied().collect()
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let high = sorted.get(sorted.len() / 2)?;
    let low = sorted.get((sorted.len() - 1) / 2)?;
    Some((low + high) / 2.0)
}

/// Whether a kind of verdict can tell one run of the same probe from the others. The usual
/// bottlenecks cannot.
fn is_disturbance(kind: VerdictKind) -> bool {
    !matches!(
        kind,
        VerdictKind::Device
            | VerdictKind::QueueDepth
            | VerdictKind::Network
            | VerdictKind::Osds
            | VerdictKind::JobLimit
            | VerdictKind::Unclear
    )
}

/// A verdict on the phase in run `run` that at most half of the other runs share. That it was not
/// steady is named only if nothing else is known.
fn cause(
    runs: &[ProbeResult],
    rates: &[RunRate],
    run: usize,
    phase: ProbePhase,
) -> Option<Verdict> {
    let verdicts = |run: usize| {
        let phases = runs[run - 1].runs.iter();
        let phases = phases.filter(move |each| each.phase == phase);
        phases.flat_map(|each| &each.result.verdicts)
    };
    let others: Vec<usize> = rates.iter().map(|rate| rate.run).collect();
    let others: Vec<usize> = others.into_iter().filter(|other| *other != run).collect();
    let is_rare = |kind: VerdictKind| {
        let has = |other: &&usize| verdicts(**other).any(|verdict| verdict.kind == kind);
        others.iter().filter(has).count() * 2 <= others.len()
    };
    let mut found: Vec<&Verdict> = verdicts(run)
        .filter(|verdict| is_disturbance(verdict.kind) && is_rare(verdict.kind))
        .collect();
    found.sort_by_key(|verdict| verdict.kind == VerdictKind::Unsteady);
    found.first().map(|verdict| (*verdict).clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_session::{FakeDevice, FakeSession};
    use crate::probe::probe;
    use crate::probe_budget::ProbeBudget;
    use crate::test_targets::{directory_target, probe_options};

    fn rates(values: &[f64], error: Option<f64>) -> Vec<RunRate> {
        let rate = |(run, iops): (usize, &f64)| RunRate {
            run,
            iops: *iops,
            error,
        };
        (1..).zip(values).map(rate).collect()
    }

    fn numbers(values: &[f64], error: Option<f64>) -> Vec<usize> {
        let found = outliers(&rates(values, error));
        found.iter().map(|rate| rate.run).collect()
    }

    #[test]
    fn far_run_is_outlier_among_four_or_more() {
        assert_eq!(numbers(&[100.0, 101.0, 60.0, 99.0], Some(1.0)), [3]);
        assert_eq!(numbers(&[100.0, 101.0, 60.0], Some(1.0)), [0; 0]);
        let both_sides = [100.0, 140.0, 101.0, 60.0, 99.0, 100.0, 100.5];
        assert_eq!(numbers(&both_sides, Some(1.0)), [2, 4]);
    }

    #[test]
    fn equal_runs_have_no_outlier() {
        assert_eq!(numbers(&[100.0; 5], Some(0.0)), [0; 0]);
        // The MAD is 0, so the distance and the interval inside the run decide.
        assert_eq!(numbers(&[100.0, 100.0, 100.0, 100.0, 90.0], Some(1.0)), [5]);
        assert_eq!(
            numbers(&[100.0, 100.0, 100.0, 100.0, 99.5], Some(1.0)),
            [0; 0]
        );
    }

    #[test]
    fn run_within_its_own_interval_is_no_outlier() {
        let far = [100.0, 101.0, 60.0, 99.0];
        assert_eq!(numbers(&far, Some(45.0)), [0; 0]);
        assert_eq!(numbers(&far, None), [0; 0]);
        // Evenly spread runs are within 3 scaled MAD.
        assert_eq!(numbers(&[90.0, 100.0, 110.0, 120.0], Some(1.0)), [0; 0]);
    }

    #[test]
    fn mean_between_runs_is_students_interval_of_logarithms() {
        let pooled = mean_between_runs(&rates(&[90.0, 100.0, 110.0], None)).unwrap();
        let mean = (90.0 * 100.0 * 110.0f64).powf(1.0 / 3.0);
        assert!((pooled.value / mean - 1.0).abs() < 1e-12);
        let bounds = pooled.bounds.unwrap();
        // Standard deviation 0.1003 of the logarithms; Student's t is 4.303 with two degrees.
        let half = (bounds.high / bounds.low).ln() / 2.0;
        assert!(
            (half - 4.303 * 0.1005 / 3.0f64.sqrt()).abs() < 2e-3,
            "{half}"
        );
        let single = mean_between_runs(&rates(&[90.0], None)).unwrap();
        assert_eq!((single.value, single.bounds), (90.0, None));
        assert!(mean_between_runs(&[]).is_none());
    }

    /// Five runs of one device, of which the third is slower.
    fn runs_with_slow_third() -> Vec<ProbeResult> {
        let run = |number: usize| {
            let whole = FakeDevice::nvme();
            let speed = if number == 3 { 0.5 } else { 1.0 };
            let device = FakeDevice {
                random_read_iops: whole.random_read_iops * speed,
                ..whole
            };
            let target = directory_target("/data");
            let options = probe_options(ProbeBudget::QUICK, None);
            probe(&mut FakeSession::new(device), &target, &options, &mut ()).unwrap()
        };
        (1..=5).map(run).collect()
    }

    fn random_read(found: &ProbeRepetitions) -> &RepeatedWorkload {
        let mut workloads = found.workloads.iter();
        let is_it = |each: &&RepeatedWorkload| each.phase == ProbePhase::RandomRead;
        workloads.find(is_it).unwrap()
    }

    fn verdict(kind: VerdictKind) -> Verdict {
        Verdict {
            kind,
            evidence: "evidence".to_owned(),
            cause: None,
        }
    }

    fn set_verdicts(result: &mut ProbeResult, kinds: &[VerdictKind]) {
        let is_it = |run: &&mut crate::probe::PhaseRun| run.phase == ProbePhase::RandomRead;
        let run = result.runs.iter_mut().find(is_it).unwrap();
        run.result.verdicts = kinds.iter().map(|kind| verdict(*kind)).collect();
    }

    #[test]
    fn outlier_has_id_and_cause_that_others_lack() {
        let mut runs = runs_with_slow_third();
        for run in &mut runs {
            set_verdicts(run, &[VerdictKind::Device, VerdictKind::Fallback]);
        }
        let kinds = [
            VerdictKind::Device,
            VerdictKind::Fallback,
            VerdictKind::Unsteady,
            VerdictKind::Interference,
        ];
        set_verdicts(&mut runs[2], &kinds);
        let ids: Vec<Option<String>> = (1..=5).map(|run| Some(format!("id{run}"))).collect();
        let found = ProbeRepetitions::from_runs(&runs, &ids, 5);
        let workload = random_read(&found);
        assert_eq!(workload.rates.len(), 5);
        assert_eq!(workload.lowest().unwrap().run, 3);
        let [outlier] = &workload.outliers[..] else {
            panic!("{:?}", workload.outliers);
        };
        assert_eq!((outlier.run, outlier.id.as_deref()), (3, Some("id3")));
        assert!((0.4..0.6).contains(&outlier.of_median), "{outlier:?}");
        let kind = outlier.cause.as_ref().map(|cause| cause.kind);
        assert_eq!(kind, Some(VerdictKind::Interference));
    }

    #[test]
    fn figure_of_interrupted_phase_is_left_out() {
        let mut runs = runs_with_slow_third();
        runs.truncate(2);
        let last = runs[1].figures.last().unwrap().phase;
        runs[1].interrupted = true;
        while runs[1].runs.last().is_some_and(|run| run.phase != last) {
            runs[1].runs.pop();
        }
        let found = ProbeRepetitions::from_runs(&runs, &[None, None], 5);
        let counts = |phase: ProbePhase| {
            let mut workloads = found.workloads.iter();
            let workload = workloads.find(|each| each.phase == phase);
            workload.map(|each| each.rates.len())
        };
        assert_eq!(counts(last), Some(1));
        assert_eq!(counts(ProbePhase::RandomRead), Some(2));
    }

    #[test]
    fn repetitions_validate_against_schema() {
        let runs = runs_with_slow_third();
        let found = ProbeRepetitions::from_runs(&runs, &[None, None, None, None, None], 5);
        let document = serde_json::to_value(&found).unwrap();
        let validator = jsonschema::validator_for(&schema()).unwrap();
        assert!(validator.is_valid(&document));
        assert!(!validator.is_valid(&serde_json::json!({"target": "x"})));
    }
}
