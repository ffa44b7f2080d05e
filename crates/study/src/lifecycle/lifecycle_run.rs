//! The rounds of a life cycle study, in an order that alternates between classes.

use super::lifecycle_result::{FORMAT, LifecycleResult, group_volumes};
use crate::CutShort;
use iosonde_result::run_error::RunError;
use iosonde_result::volume_lifecycle::{
    LifecycleClass, LifecycleRound, LifecycleRoundResult, VolumeRecord,
};

/// Default number of volumes that are made one after the other.
const VOLUMES_DEFAULT: u32 = 10;
/// Default number of rounds of several volumes: the fewest with a useful interval.
const ROUNDS_MIN: u32 = 3;

/// Options of a life cycle study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifecycleOptions {
    /// Numbers of volumes at the same time.
    pub counts: Vec<u32>,
    /// Rounds of each class and count. `None`: enough for ten volumes, but at least three.
    pub rounds: Option<u32>,
    /// Size of each claim in bytes.
    pub claim_bytes: u64,
}

impl LifecycleOptions {
    /// Returns the number of rounds with `at_once` volumes at the same time.
    fn rounds_of(&self, at_once: u32) -> u32 {
        let usual = VOLUMES_DEFAULT.div_ceil(at_once.max(1)).max(ROUNDS_MIN);
        self.rounds.unwrap_or(usual)
    }

    /// Returns the number of volumes of all rounds of this number of classes.
    pub fn volume_count(&self, classes: usize) -> u64 {
        let rounds = self.plan_rounds(classes).into_iter();
        rounds.map(|round| u64::from(round.at_once)).sum()
    }

    /// Returns the rounds in their order. The first class changes with each turn.
    fn plan_rounds(&self, classes: usize) -> Vec<LifecycleRound> {
        let mut rounds = Vec::new();
        for at_once in &self.counts {
            for number in 1..=self.rounds_of(*at_once) {
                let first = number as usize - 1;
                rounds.extend((0..classes).map(|index| LifecycleRound {
                    class: (first + index) % classes,
                    at_once: *at_once,
                    number,
                }));
            }
        }
        rounds
    }
}

/// Measures all rounds. `measure` measures one. A class is left out after a round in which all its
/// volumes have failed.
///
/// # Errors
/// If the first round has an error. A later error is part of the result.
pub fn run_lifecycle(
    classes: Vec<LifecycleClass>,
    options: &LifecycleOptions,
    measure: &mut dyn FnMut(&LifecycleRound) -> Result<LifecycleRoundResult, RunError>,
) -> Result<LifecycleResult, RunError> {
    let mut volumes: Vec<VolumeRecord> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    let mut left_out: Vec<usize> = Vec::new();
    let mut interrupted = false;
    let mut error = None;
    for round in options.plan_rounds(classes.len()) {
        if left_out.contains(&round.class) {
            continue;
        }
        let measured = match measure(&round) {
            Ok(measured) => measured,
            Err(failure) if volumes.is_empty() => return Err(failure),
            Err(failure) => {
                error = Some(CutShort::from(failure));
                break;
            }
        };
        interrupted = measured.is_interrupted;
        for note in measured.notes {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let all_failed = measured.volumes.iter().all(|one| one.failure().is_some());
        volumes.extend(measured.volumes);
        if interrupted {
            break;
        }
        if all_failed {
            left_out.push(round.class);
            notes.push(format!(
                "{}: all volumes of a round have failed, so its further rounds were left out",
                classes[round.class].name
            ));
        }
    }
    Ok(LifecycleResult {
        format: FORMAT,
        groups: group_volumes(&volumes),
        classes,
        claim_bytes: options.claim_bytes,
        volumes,
        notes,
        interrupted,
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::volume_lifecycle::{LifecycleStage, StageOutcome, StageRecord};

    fn class(name: &str) -> LifecycleClass {
        LifecycleClass {
            name: name.to_owned(),
            provisioner: None,
            binds_late: false,
            expands: None,
        }
    }

    fn options(counts: &[u32], rounds: Option<u32>) -> LifecycleOptions {
        LifecycleOptions {
            counts: counts.to_vec(),
            rounds,
            claim_bytes: 1 << 30,
        }
    }

    fn round_result(
        name: &str,
        round: &LifecycleRound,
        outcome: &StageOutcome,
    ) -> LifecycleRoundResult {
        let volume = VolumeRecord {
            class: name.to_owned(),
            at_once: round.at_once,
            round: round.number,
            stages: vec![StageRecord {
                stage: LifecycleStage::Provision,
                outcome: outcome.clone(),
            }],
        };
        LifecycleRoundResult {
            volumes: vec![volume; round.at_once as usize],
            ..LifecycleRoundResult::default()
        }
    }

    #[test]
    fn rounds_of_classes_alternate() {
        let rounds = options(&[1, 5], Some(2)).plan_rounds(2);
        let order: Vec<_> = rounds
            .iter()
            .map(|round| (round.at_once, round.class))
            .collect();
        let expected = [
            (1, 0),
            (1, 1),
            (1, 1),
            (1, 0),
            (5, 0),
            (5, 1),
            (5, 1),
            (5, 0),
        ];
        assert_eq!(order, expected);
    }

    #[test]
    fn default_rounds_give_ten_volumes_or_three_rounds() {
        let usual = options(&[], None);
        assert_eq!(
            [1, 4, 10, 100].map(|count| usual.rounds_of(count)),
            [10, 3, 3, 3]
        );
    }

    #[test]
    fn class_whose_volumes_all_fail_is_left_out() {
        let names = ["sc://good", "sc://bad"];
        let took = StageOutcome::Measured {
            begun_ns: 0,
            took_ns: 5,
        };
        let cause = "no space".to_owned();
        let failed = StageOutcome::Failed { cause };
        let mut rounds = Vec::new();
        let mut measure = |round: &LifecycleRound| {
            rounds.push(round.class);
            let outcome = if round.class == 0 { &took } else { &failed };
            Ok(round_result(names[round.class], round, outcome))
        };
        let classes = names.map(class).to_vec();
        let result = run_lifecycle(classes, &options(&[2], Some(3)), &mut measure).unwrap();
        assert_eq!(rounds, [0, 1, 0, 0]);
        assert_eq!(result.failed_volumes(), 2);
        let failure = result.failure().unwrap();
        assert_eq!(
            failure,
            "2 of 8 volumes failed, the first at provision: no space"
        );
        assert!(
            result.notes[0].starts_with("sc://bad: "),
            "{:?}",
            result.notes
        );
    }

    #[test]
    fn later_error_is_part_of_the_result() {
        let took = StageOutcome::Measured {
            begun_ns: 0,
            took_ns: 5,
        };
        let mut measure = |round: &LifecycleRound| match round.number {
            1 => Ok(round_result("sc://a", round, &took)),
            _ => Err(RunError::Interrupted),
        };
        let options = options(&[1], Some(3));
        let result = run_lifecycle(vec![class("sc://a")], &options, &mut measure).unwrap();
        assert_eq!((result.volumes.len(), result.error.is_some()), (1, true));
        let mut fails = |_: &LifecycleRound| Err(RunError::Interrupted);
        assert!(run_lifecycle(vec![class("sc://a")], &options, &mut fails).is_err());
    }
}
