//! [`TrialRounds`]: runs trials at the same time, and those again that lacked room beside others.

use crate::failure::CommandError;
use iosonde_cluster::survey::Trial;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Outcome of the trial of a class.
#[derive(Debug)]
pub(super) struct TrialOutcome {
    pub(super) result: Result<Trial, CommandError>,
    /// Roles for missing rights.
    pub(super) roles: BTreeSet<String>,
    /// Shortage that an attempt met, and that other trials may have caused.
    pub(super) shortage: Option<TrialShortage>,
    /// Whether the trial created objects.
    pub(super) has_taken_room: bool,
}

/// Shortage that trials at the same time may cause each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrialShortage {
    /// A quota refuses the pods or the claim.
    Quota,
    /// No node has room for the pods.
    Nodes,
    /// The pods do not run within the timeout.
    Time,
}

/// Rules of the trials.
pub(super) struct TrialRounds<'a> {
    /// Most trials at the same time.
    pub(super) at_once_max: usize,
    /// Whether the user stops. No trial begins then.
    pub(super) is_stopped: &'a (dyn Fn() -> bool + Sync),
    /// Waits until a quota does not count removed objects any more.
    pub(super) await_quota: &'a dyn Fn(),
}

impl TrialRounds<'_> {
    /// Runs `count` trials, and returns their outcomes in order. `None`: the trial did not begin
    /// because of a stop. Trials at the same time may take each other's room and time: a trial that
    /// lacked some runs again, alone.
    pub(super) fn run(
        &self,
        count: usize,
        trial: &(dyn Fn(usize) -> TrialOutcome + Sync),
    ) -> Vec<Option<TrialOutcome>> {
        let mut outcomes = run_at_once((count, self.at_once_max), self.is_stopped, trial);
        let repeated = match self.at_once_max {
            1 => Vec::new(),
            _ => without_room(&outcomes),
        };
        let lacks_quota = |outcome: &TrialOutcome| {
            outcome.shortage == Some(TrialShortage::Quota) && !(self.is_stopped)()
        };
        let mut is_first = true;
        for index in repeated {
            if is_first && outcomes[index].as_ref().is_some_and(lacks_quota) {
                (self.await_quota)();
            }
            if (self.is_stopped)() {
                break;
            }
            let mut outcome = trial(index);
            // The quota may still count the objects of the repeated trial before.
            if !is_first && lacks_quota(&outcome) {
                (self.await_quota)();
                if !(self.is_stopped)() {
                    outcome = trial(index);
                }
            }
            outcomes[index] = Some(outcome);
            is_first = false;
        }
        outcomes
    }
}

/// Calls `trial` with the numbers below `count`, at most `most` at the same time. Returns the
/// outcomes in the order of the numbers.
fn run_at_once<T: Send>(
    (count, most): (usize, usize),
    is_stopped: &(dyn Fn() -> bool + Sync),
    trial: &(dyn Fn(usize) -> T + Sync),
) -> Vec<Option<T>> {
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    let run_some = || {
        while !is_stopped() {
            let index = next.fetch_add(1, Relaxed);
            if index >= count {
                return;
            }
            let outcome = trial(index);
            outcomes.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..most.min(count) {
            scope.spawn(run_some);
        }
    });
    outcomes
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Returns the numbers of the trials that lacked room or time which others may have taken.
fn without_room(outcomes: &[Option<TrialOutcome>]) -> Vec<usize> {
    let takes_room = |other: &TrialOutcome, lacked: TrialShortage| {
        let has_pods = match lacked {
            TrialShortage::Quota => true,
            // Pods without a node take no room there.
            TrialShortage::Nodes => {
                let has_nodes = matches!(other.shortage, None | Some(TrialShortage::Time));
                other.result.is_ok() || has_nodes
            }
            TrialShortage::Time => other.result.is_ok(),
        };
        other.has_taken_room && has_pods
    };
    let lacks_room = |index: &usize| {
        let outcome = outcomes[*index].as_ref();
        let Some(lacked) = outcome.and_then(|outcome| outcome.shortage) else {
            return false;
        };
        let mut others = outcomes.iter().enumerate();
        others.any(|(number, other)| {
            let other = other.as_ref().filter(|_| number != *index);
            other.is_some_and(|other| takes_room(other, lacked))
        })
    };
    (0..outcomes.len()).filter(lacks_room).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::run_error::RunError;
    use std::cell::Cell;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn trials_overlap_and_keep_the_order_of_their_numbers() {
        // Each trial waits for another one, so that one after the other would never end.
        let (meeting, handover) = (Barrier::new(4), Barrier::new(2));
        let ended = Mutex::new(Vec::new());
        let trial = |index: usize| {
            meeting.wait();
            match index {
                0 => {
                    handover.wait();
                    ended.lock().unwrap().push(index);
                }
                1 => {
                    ended.lock().unwrap().push(index);
                    handover.wait();
                }
                _ => {}
            }
            index
        };
        let outcomes = run_at_once((4, 4), &|| false, &trial);
        assert_eq!(ended.into_inner().unwrap(), [1, 0], "the first ends later");
        assert_eq!(outcomes, [Some(0), Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn trials_at_the_same_time_are_bounded() {
        let (active, meeting) = (AtomicUsize::new(0), Barrier::new(4));
        let trial = |_: usize| {
            let at_once = active.fetch_add(1, Relaxed) + 1;
            meeting.wait();
            active.fetch_sub(1, Relaxed);
            // No trial begins before all four have left.
            meeting.wait();
            at_once
        };
        let outcomes = run_at_once((8, 4), &|| false, &trial);
        assert!(outcomes.iter().flatten().all(|at_once| *at_once <= 4));
        assert_eq!(outcomes.iter().flatten().count(), 8);
    }

    #[test]
    fn stop_lets_no_trial_begin() {
        let is_stopped = AtomicBool::new(false);
        let trial = |index: usize| {
            is_stopped.store(true, Relaxed);
            index
        };
        let outcomes = run_at_once((3, 1), &|| is_stopped.load(Relaxed), &trial);
        assert_eq!(outcomes, [Some(0), None, None]);
    }

    /// An outcome of a trial that works unless it meets a shortage.
    fn outcome(shortage: Option<TrialShortage>, has_taken_room: bool) -> TrialOutcome {
        TrialOutcome {
            result: match shortage {
                None => Ok(Trial::Works {
                    elapsed_ms: 5,
                    free_bytes: None,
                    shared: None,
                    sharing_not_tried: None,
                }),
                Some(_) => Err(CommandError::Run(RunError::Interrupted)),
            },
            roles: BTreeSet::new(),
            shortage,
            has_taken_room,
        }
    }

    #[test]
    fn trial_that_lacked_room_beside_others_runs_again_alone() {
        const QUOTA: Option<TrialShortage> = Some(TrialShortage::Quota);
        const NODES: Option<TrialShortage> = Some(TrialShortage::Nodes);
        const TIME: Option<TrialShortage> = Some(TrialShortage::Time);
        for (first, at_once_max, repeated, awaited) in [
            // The second one has the quota that the first one lacks.
            (vec![(QUOTA, false), (None, true)], 2, vec![0], 1),
            (vec![(None, true), (NODES, true)], 2, vec![1], 0),
            (vec![(TIME, true), (None, true)], 2, vec![0], 0),
            // One pod each instead of two.
            (vec![(QUOTA, true), (QUOTA, true)], 2, vec![0, 1], 1),
            // Nothing was created, all pods have no node, or all are late.
            (vec![(QUOTA, false), (QUOTA, false)], 2, vec![], 0),
            (vec![(NODES, true), (NODES, true)], 2, vec![], 0),
            (vec![(TIME, true), (TIME, true)], 2, vec![], 0),
            (vec![(QUOTA, true)], 2, vec![], 0),
            (vec![(QUOTA, false), (None, true)], 1, vec![], 0),
        ] {
            let calls = Mutex::new(vec![0; first.len()]);
            let trial = |index: usize| {
                let mut calls = calls.lock().unwrap();
                calls[index] += 1;
                match calls[index] {
                    1 => outcome(first[index].0, first[index].1),
                    _ => outcome(None, true),
                }
            };
            let waits = Cell::new(0);
            let rounds = TrialRounds {
                at_once_max,
                is_stopped: &|| false,
                await_quota: &|| waits.set(waits.get() + 1),
            };
            let outcomes = rounds.run(first.len(), &trial);
            let calls = calls.lock().unwrap().clone();
            let twice: Vec<usize> = (0..calls.len()).filter(|it| calls[*it] == 2).collect();
            assert_eq!((&twice, waits.get()), (&repeated, awaited), "{first:?}");
            let works = |index: &usize| outcomes[*index].as_ref().unwrap().result.is_ok();
            assert!(twice.iter().all(works));
        }
    }

    #[test]
    fn repeated_trial_waits_for_the_quota_of_the_one_before() {
        let calls = Mutex::new([0, 0]);
        let trial = |index: usize| {
            let mut calls = calls.lock().unwrap();
            calls[index] += 1;
            // The second trial is refused once more beside the first one's objects.
            match calls[index] <= index + 1 {
                true => outcome(Some(TrialShortage::Quota), true),
                false => outcome(None, true),
            }
        };
        let waits = Cell::new(0);
        let rounds = TrialRounds {
            at_once_max: 2,
            is_stopped: &|| false,
            await_quota: &|| waits.set(waits.get() + 1),
        };
        let outcomes = rounds.run(2, &trial);
        let mut ended = outcomes.iter().flatten();
        assert!(ended.all(|outcome| outcome.result.is_ok()));
        assert_eq!((*calls.lock().unwrap(), waits.get()), ([2, 3], 2));
    }
}
