//! [`SerialStage`]: a stage that the cluster works on for few volumes at the same time.
//!
//! If a provisioner works on k volumes at the same time, and one takes t, then n volumes end at
//! intervals of t / k. Thus k is t over the mean interval between the ends.

use super::stage_summary::percentile_of;
use iosonde_result::volume_lifecycle::{LifecycleStage, StageOutcome, VolumeRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fewest volumes at once for which a statement is made.
const VOLUMES_MIN: usize = 4;
/// A stage is serial if its median is longer than for fewer volumes by at least this factor.
const LONGER_MIN: f64 = 2.0;
/// A stage is serial if fewer than this share of the volumes are worked on at the same time.
const PARALLEL_SHARE_MAX: f64 = 0.5;

/// A stage that volumes of one round wait for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SerialStage {
    /// The stage.
    pub stage: LifecycleStage,
    /// Volumes whose stage ends per second.
    pub volumes_per_s: f64,
    /// Number of volumes that the cluster works on at the same time. At least 1.
    pub parallel: f64,
    /// Median duration in nanoseconds with the fewest volumes at once.
    pub alone_ns: f64,
}

/// Returns whether a stage of a group is serial. `alone_ns` is the median of the same stage with
/// the fewest volumes at once.
pub(super) fn find_serial_stage(
    stage: LifecycleStage,
    volumes: &[&VolumeRecord],
    alone_ns: f64,
) -> Option<SerialStage> {
    let mut rounds: Vec<u32> = volumes.iter().map(|volume| volume.round).collect();
    rounds.dedup();
    let of_round = |round: &u32| rate_of_round(stage, volumes, *round, alone_ns);
    let rates: Option<Vec<f64>> = rounds.iter().map(of_round).collect();
    let rates = rates.filter(|rates| !rates.is_empty())?;
    let volumes_per_s = rates.iter().sum::<f64>() / rates.len() as f64;
    Some(SerialStage {
        stage,
        volumes_per_s,
        parallel: (volumes_per_s * alone_ns / 1e9).max(1.0),
        alone_ns,
    })
}

/// Returns the ends per second of a round, if the stage is serial in it.
fn rate_of_round(
    stage: LifecycleStage,
    volumes: &[&VolumeRecord],
    round: u32,
    alone_ns: f64,
) -> Option<f64> {
    let of_round = volumes.iter().filter(|volume| volume.round == round);
    let mut took: Vec<f64> = Vec::new();
    let mut ends: Vec<f64> = Vec::new();
    for volume in of_round {
        if let Some(StageOutcome::Measured { begun_ns, took_ns }) = volume.outcome(stage) {
            took.push(*took_ns as f64);
            ends.push((begun_ns + took_ns) as f64);
        }
    }
    if took.len() < VOLUMES_MIN || alone_ns <= 0.0 {
        return None;
    }
    took.sort_by(f64::total_cmp);
    ends.sort_by(f64::total_cmp);
    let span_ns = ends.last()? - ends.first()?;
    let interval_ns = span_ns / (ends.len() - 1) as f64;
    let is_longer = percentile_of(&took, 0.5) >= LONGER_MIN * alone_ns;
    let parallel = alone_ns / interval_ns;
    let is_serial = is_longer && parallel < PARALLEL_SHARE_MAX * took.len() as f64;
    is_serial.then_some(1e9 / interval_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::volume_lifecycle::StageRecord;

    const MS: u64 = 1_000_000;

    /// Volumes of one round by begin and duration, in milliseconds.
    fn round(volumes: impl Iterator<Item = (u64, u64)>) -> Vec<VolumeRecord> {
        let volume = |(begun_ms, took_ms)| VolumeRecord {
            class: "sc://fast".to_owned(),
            at_once: 10,
            round: 1,
            stages: vec![StageRecord {
                stage: LifecycleStage::Provision,
                outcome: StageOutcome::Measured {
                    begun_ns: begun_ms * MS,
                    took_ns: took_ms * MS,
                },
            }],
        };
        volumes.map(volume).collect()
    }

    fn found(volumes: &[VolumeRecord]) -> Option<SerialStage> {
        let volumes: Vec<&VolumeRecord> = volumes.iter().collect();
        find_serial_stage(LifecycleStage::Provision, &volumes, 500e6)
    }

    #[test]
    fn volumes_made_one_after_the_other_are_serial() {
        let serial = found(&round((1..=10).map(|number| (0, number * 500)))).unwrap();
        assert_eq!(serial.parallel, 1.0);
        assert!((serial.volumes_per_s - 2.0).abs() < 1e-9);
    }

    #[test]
    fn workers_of_a_provisioner_are_counted() {
        // Two end every 500 ms.
        let ends = (0..20).map(|number: u64| (0, (number / 2 + 1) * 500));
        let serial = found(&round(ends)).unwrap();
        assert!((1.8..2.3).contains(&serial.parallel), "{serial:?}");
    }

    #[test]
    fn volumes_made_together_are_not_serial() {
        assert_eq!(found(&round((0..10).map(|number| (0, 500 + number)))), None);
    }

    #[test]
    fn stage_that_begins_late_but_takes_its_usual_time_is_not_serial() {
        let staggered = (0..10).map(|number| (number * 500, 500));
        assert_eq!(found(&round(staggered)), None);
    }

    #[test]
    fn serial_stage_is_unknown_with_few_volumes() {
        assert_eq!(found(&round((1..=3).map(|number| (0, number * 500)))), None);
    }
}
