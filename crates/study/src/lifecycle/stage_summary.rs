//! Duration of a stage over the volumes of a group: mean, percentiles and their intervals.
//!
//! Volumes that are made at the same time wait for each other, so they are no independent samples.
//! Their intervals come from the spread of rounds. Volumes that are made one after the other are
//! samples themselves: the interval of a percentile is that of order statistics.

use iosonde_result::volume_lifecycle::{LifecycleStage, StageAbsence, StageOutcome, VolumeRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

/// Probability below and above a two-sided 95 % interval.
const TAIL: f64 = 0.025;
/// Fewest volumes for a 99th percentile.
const P99_VOLUMES_MIN: usize = 100;

/// A duration with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageFigure {
    /// Value in nanoseconds.
    pub value_ns: f64,
    /// Ends of the interval in nanoseconds. `None` if there are too few volumes or rounds.
    pub interval_ns: Option<(f64, f64)>,
}

/// Durations of a stage of a group of volumes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageSummary {
    /// The stage.
    pub stage: LifecycleStage,
    /// Number of volumes whose stage was measured.
    pub measured: usize,
    /// Number of volumes whose stage has failed.
    pub failed: usize,
    /// Why no volume has this stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absence: Option<StageAbsence>,
    /// Number of independent samples: volumes, or rounds of several volumes.
    pub samples: usize,
    /// Mean.
    pub mean: Option<StageFigure>,
    /// Median.
    pub p50: Option<StageFigure>,
    /// 90th percentile.
    pub p90: Option<StageFigure>,
    /// 99th percentile, if there are enough volumes.
    pub p99: Option<StageFigure>,
    /// Longest duration in nanoseconds.
    pub max_ns: Option<u64>,
}

impl StageSummary {
    /// Summarises a stage of the volumes of one class and number at once.
    pub(super) fn from_volumes(stage: LifecycleStage, volumes: &[&VolumeRecord]) -> StageSummary {
        let outcomes = || volumes.iter().filter_map(|volume| volume.outcome(stage));
        let absence = outcomes().find_map(|outcome| match outcome {
            StageOutcome::Absent(absence) => Some(*absence),
            _ => None,
        });
        let is_failed = |outcome: &&StageOutcome| matches!(outcome, StageOutcome::Failed { .. });
        let failed = outcomes().filter(is_failed).count();
        let rounds = durations_of_rounds(stage, volumes);
        let all = sorted(rounds.iter().flatten().copied().collect());
        let several_at_once = volumes.iter().any(|volume| volume.at_once > 1);
        let figure = |statistic: &dyn Fn(&[f64]) -> f64, percentile: Option<f64>| {
            let value_ns = statistic(&all);
            let interval_ns = match (several_at_once, percentile) {
                (true, _) => {
                    let of_rounds: Vec<f64> = rounds.iter().map(|each| statistic(each)).collect();
                    interval_of_mean(value_ns, &of_rounds)
                }
                (false, Some(share)) => interval_of_percentile(&all, share),
                (false, None) => interval_of_mean(value_ns, &all),
            };
            StageFigure {
                value_ns,
                interval_ns,
            }
        };
        let percentile =
            |share: f64| figure(&|values: &[f64]| percentile_of(values, share), Some(share));
        let is_measured = !all.is_empty();
        StageSummary {
            stage,
            measured: all.len(),
            failed,
            absence: absence.filter(|_| !is_measured),
            samples: if several_at_once {
                rounds.len()
            } else {
                all.len()
            },
            mean: is_measured.then(|| figure(&mean_of, None)),
            p50: is_measured.then(|| percentile(0.5)),
            p90: is_measured.then(|| percentile(0.9)),
            p99: (all.len() >= P99_VOLUMES_MIN).then(|| percentile(0.99)),
            max_ns: all.last().map(|longest| *longest as u64),
        }
    }
}

/// Returns the measured durations of each round in ascending order, without empty rounds.
fn durations_of_rounds(stage: LifecycleStage, volumes: &[&VolumeRecord]) -> Vec<Vec<f64>> {
    let mut rounds: Vec<(u32, Vec<f64>)> = Vec::new();
    for volume in volumes {
        let Some(StageOutcome::Measured { took_ns, .. }) = volume.outcome(stage) else {
            continue;
        };
        let took_ns = *took_ns as f64;
        match rounds.iter_mut().find(|(round, _)| *round == volume.round) {
            Some((_, durations)) => durations.push(took_ns),
            None => rounds.push((volume.round, vec![took_ns])),
        }
    }
    let durations = rounds.into_iter().map(|(_, durations)| sorted(durations));
    durations.collect()
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn mean_of(values: &[f64]) -> f64 {
    debug_assert!(!values.is_empty());
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the smallest value that at least this share of the sorted values does not exceed.
pub(super) fn percentile_of(sorted: &[f64], share: f64) -> f64 {
    debug_assert!(!sorted.is_empty() && (0.0..=1.0).contains(&share));
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// Returns the interval of a mean by Student's t, around `value`.
pub(crate) fn interval_of_mean(value: f64, samples: &[f64]) -> Option<(f64, f64)> {
    let count = samples.len();
    if count < 2 {
        return None;
    }
    let mean = mean_of(samples);
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    let freedom = (count - 1) as f64;
    let error = (squares / freedom / count as f64).sqrt();
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let half_width = student.inverse_cdf(1.0 - TAIL) * error;
    Some(((value - half_width).max(0.0), value + half_width))
}

/// Returns the interval of a percentile of independent samples. `None` if no sample is an end.
fn interval_of_percentile(sorted: &[f64], share: f64) -> Option<(f64, f64)> {
    let count = sorted.len();
    let below = Binomial::new(share, count as u64).ok()?;
    // The number of samples below the percentile has this distribution.
    let is_low = |rank: &usize| below.cdf(*rank as u64 - 1) <= TAIL;
    let is_high = |rank: &usize| below.cdf(*rank as u64 - 1) >= 1.0 - TAIL;
    let low = (1..=count).rev().find(is_low)?;
    let high = (1..=count).find(is_high)?;
    Some((sorted[low - 1], sorted[high - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::volume_lifecycle::StageRecord;

    fn volume(at_once: u32, round: u32, outcome: StageOutcome) -> VolumeRecord {
        VolumeRecord {
            class: "sc://fast".to_owned(),
            at_once,
            round,
            stages: vec![StageRecord {
                stage: LifecycleStage::Provision,
                outcome,
            }],
        }
    }

    fn took(at_once: u32, round: u32, took_ns: u64) -> VolumeRecord {
        let begun_ns = 0;
        volume(at_once, round, StageOutcome::Measured { begun_ns, took_ns })
    }

    fn summary(volumes: &[VolumeRecord]) -> StageSummary {
        let volumes: Vec<&VolumeRecord> = volumes.iter().collect();
        StageSummary::from_volumes(LifecycleStage::Provision, &volumes)
    }

    #[test]
    fn percentile_of_single_volumes_has_the_interval_of_order_statistics() {
        let volumes: Vec<_> = (1..=10)
            .map(|number| took(1, number, u64::from(number)))
            .collect();
        let summary = summary(&volumes);
        assert_eq!((summary.measured, summary.samples), (10, 10));
        let median = summary.p50.unwrap();
        // Ranks 2 and 9 of 10 hold the median in 97.9 % of cases, 3 and 8 in 89.1 %.
        assert_eq!(median.value_ns, 5.0);
        assert_eq!(median.interval_ns, Some((2.0, 9.0)));
        assert_eq!(
            summary.p90.unwrap().interval_ns,
            None,
            "the upper end is not sampled"
        );
        assert_eq!(summary.p99, None);
        assert_eq!(summary.max_ns, Some(10));
    }

    #[test]
    fn interval_of_several_at_once_comes_from_rounds() {
        let round = |number| (1..=4).map(move |each| took(4, number, each * 100));
        let one: Vec<_> = round(1).collect();
        assert_eq!(summary(&one).mean.unwrap().interval_ns, None, "one round");
        let several: Vec<_> = (1..=3).flat_map(round).collect();
        let summary = summary(&several);
        assert_eq!(summary.samples, 3);
        assert_eq!(summary.mean.unwrap().interval_ns, Some((250.0, 250.0)));
    }

    #[test]
    fn failed_and_absent_stages_are_counted_apart() {
        let cause = "no space".to_owned();
        let failed = [took(1, 1, 5), volume(1, 2, StageOutcome::Failed { cause })];
        let counted = summary(&failed);
        assert_eq!((counted.measured, counted.failed), (1, 1));
        let absent = StageOutcome::Absent(StageAbsence::NoExpansion);
        let absent = summary(&[volume(1, 1, absent)]);
        assert_eq!(absent.absence, Some(StageAbsence::NoExpansion));
        assert_eq!(absent.mean, None);
    }
}
