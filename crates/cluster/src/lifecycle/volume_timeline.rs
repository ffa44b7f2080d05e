//! [`VolumeTimeline`]: when the client has sent a request or seen a change of one volume, and the
//! durations of its stages.

use iosonde_result::volume_lifecycle::{LifecycleStage, StageAbsence, StageOutcome, StageRecord};
use std::collections::BTreeMap;

/// Index of the first write in the list of stages.
const FIRST_WRITE_INDEX: usize = 4;

const _: () = assert!(matches!(
    LifecycleStage::ALL[FIRST_WRITE_INDEX],
    LifecycleStage::FirstWrite
));

/// A request of the client, or a change that a watch has reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum VolumeMoment {
    ClaimRequested,
    /// The scheduler has chosen a node for a volume that is not made yet.
    NodeSelected,
    VolumeSeen,
    ClaimBound,
    PodRequested,
    PodScheduled,
    AttachmentSeen,
    Attached,
    /// The sandbox of the pod is ready, which the kubelet makes after it has mounted all volumes.
    Mounted,
    Written,
    ExpandRequested,
    Expanded,
    PodDeletionRequested,
    PodGone,
    Detached,
    ClaimDeletionRequested,
    ClaimGone,
    VolumeGone,
}

/// Properties of the class, and of what this user may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StageRules {
    /// Whether volumes are made once a pod needs them.
    pub(super) binds_late: bool,
    /// Whether the class allows expansion. `None`: this user may not read classes.
    pub(super) expands: Option<bool>,
    /// Whether this user may watch persistentvolumes.
    pub(super) sees_volumes: bool,
    /// Whether this user may watch volumeattachments.
    pub(super) sees_attachments: bool,
}

/// Times of one volume, in nanoseconds since the begin of its round.
#[derive(Debug, Clone, Default)]
pub(super) struct VolumeTimeline {
    moments: BTreeMap<VolumeMoment, u64>,
    /// Duration of the first write by the clock of the pod.
    write_ns: Option<u64>,
    failure: Option<(LifecycleStage, String)>,
}

impl VolumeTimeline {
    /// Records a moment. The first time counts. Returns whether the moment is new.
    pub(super) fn record(&mut self, moment: VolumeMoment, at_ns: u64) -> bool {
        let is_new = !self.has(moment);
        self.moments.entry(moment).or_insert(at_ns);
        is_new
    }

    /// Records the first write, with its duration. Returns whether it is new.
    pub(super) fn record_write(&mut self, took_ns: u64, at_ns: u64) -> bool {
        self.write_ns.get_or_insert(took_ns);
        self.record(VolumeMoment::Written, at_ns)
    }

    /// Returns whether the moment has come.
    pub(super) fn has(&self, moment: VolumeMoment) -> bool {
        self.moments.contains_key(&moment)
    }

    /// Returns the time of a moment.
    pub(super) fn at_ns(&self, moment: VolumeMoment) -> Option<u64> {
        self.moments.get(&moment).copied()
    }

    /// Records that a stage has failed. The first failure counts.
    pub(super) fn fail(&mut self, stage: LifecycleStage, cause: String) {
        self.failure.get_or_insert((stage, cause));
    }

    /// Returns whether a stage has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Returns the first stage before the first write that has not ended.
    pub(super) fn first_open_stage(&self, rules: &StageRules) -> LifecycleStage {
        // Drivers without attachments go on with the mount.
        let is_attaching = self.has(VolumeMoment::AttachmentSeen);
        let is_skipped = |stage: LifecycleStage| {
            stage == LifecycleStage::Attach && self.has(VolumeMoment::PodScheduled) && !is_attaching
        };
        let is_ended = |stage: LifecycleStage| match self.outcome(stage, rules) {
            StageOutcome::Measured { .. } | StageOutcome::Absent(_) => true,
            StageOutcome::Failed { .. } | StageOutcome::NotReached => is_skipped(stage),
        };
        let mut starting = LifecycleStage::ALL.into_iter().take(FIRST_WRITE_INDEX);
        let open = starting.find(|stage| !is_ended(*stage));
        open.unwrap_or(LifecycleStage::FirstWrite)
    }

    /// Returns the outcomes of all stages, in their order.
    pub(super) fn stages(&self, rules: &StageRules) -> Vec<StageRecord> {
        let record = |stage: LifecycleStage| StageRecord {
            stage,
            outcome: self.outcome(stage, rules),
        };
        LifecycleStage::ALL.into_iter().map(record).collect()
    }

    fn outcome(&self, stage: LifecycleStage, rules: &StageRules) -> StageOutcome {
        match &self.failure {
            Some((failed, cause)) if *failed == stage => {
                let cause = cause.clone();
                return StageOutcome::Failed { cause };
            }
            Some((failed, _)) if *failed < stage => return StageOutcome::NotReached,
            _ => {}
        }
        if let Some(absence) = self.absence(stage, rules) {
            return StageOutcome::Absent(absence);
        }
        match self.bounds_ns(stage, rules) {
            Some((begun_ns, ended_ns)) => StageOutcome::Measured {
                begun_ns,
                // Watches of several kinds are separate: an event may arrive before its cause.
                took_ns: ended_ns.saturating_sub(begun_ns),
            },
            None => StageOutcome::NotReached,
        }
    }

    /// Returns why the stage has no time, if it has none for any volume of the class.
    fn absence(&self, stage: LifecycleStage, rules: &StageRules) -> Option<StageAbsence> {
        match stage {
            LifecycleStage::Bind if !rules.sees_volumes => Some(StageAbsence::VolumesNotReadable),
            LifecycleStage::Attach if !rules.sees_attachments => {
                Some(StageAbsence::AttachmentsNotReadable)
            }
            LifecycleStage::Attach
                if self.has(VolumeMoment::Mounted) && !self.has(VolumeMoment::Attached) =>
            {
                Some(StageAbsence::NoAttachments)
            }
            LifecycleStage::Expand => match rules.expands {
                Some(true) => None,
                Some(false) => Some(StageAbsence::NoExpansion),
                None => Some(StageAbsence::ClassNotReadable),
            },
            _ => None,
        }
    }

    /// Returns the begin and the end of a stage, if it has ended.
    fn bounds_ns(&self, stage: LifecycleStage, rules: &StageRules) -> Option<(u64, u64)> {
        use VolumeMoment as Moment;
        let at = |moment| self.at_ns(moment);
        match stage {
            LifecycleStage::Provision => {
                let begun = match rules.binds_late {
                    true => at(Moment::NodeSelected).or(at(Moment::ClaimRequested)),
                    false => at(Moment::ClaimRequested),
                };
                let ended = match rules.sees_volumes {
                    true => at(Moment::VolumeSeen),
                    false => at(Moment::ClaimBound),
                };
                begun.zip(ended)
            }
            LifecycleStage::Bind => at(Moment::VolumeSeen).zip(at(Moment::ClaimBound)),
            LifecycleStage::Attach => at(Moment::PodScheduled).zip(at(Moment::Attached)),
            LifecycleStage::Mount => {
                let begun = at(Moment::Attached).max(at(Moment::PodScheduled));
                begun.zip(at(Moment::Mounted))
            }
            LifecycleStage::FirstWrite => {
                let (took_ns, ended_ns) = self.write_ns.zip(at(Moment::Written))?;
                let begun_ns = ended_ns.saturating_sub(took_ns);
                Some((begun_ns, begun_ns + took_ns))
            }
            LifecycleStage::Expand => at(Moment::ExpandRequested).zip(at(Moment::Expanded)),
            LifecycleStage::Detach => {
                let ended = match self.has(Moment::Attached) {
                    true => at(Moment::Detached),
                    false => at(Moment::PodGone),
                };
                at(Moment::PodDeletionRequested).zip(ended)
            }
            LifecycleStage::Delete => {
                let ended = match self.has(Moment::VolumeSeen) {
                    true => at(Moment::VolumeGone),
                    false => at(Moment::ClaimGone),
                };
                at(Moment::ClaimDeletionRequested).zip(ended)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const RULES: StageRules = StageRules {
        binds_late: false,
        expands: Some(true),
        sees_volumes: true,
        sees_attachments: true,
    };

    fn timeline(moments: &[(VolumeMoment, u64)]) -> VolumeTimeline {
        let mut timeline = VolumeTimeline::default();
        for (moment, at_ms) in moments {
            timeline.record(*moment, at_ms * MS);
        }
        timeline
    }

    fn took_ms(
        timeline: &VolumeTimeline,
        stage: LifecycleStage,
        rules: &StageRules,
    ) -> Option<u64> {
        match timeline.outcome(stage, rules) {
            StageOutcome::Measured { took_ns, .. } => Some(took_ns / MS),
            _ => None,
        }
    }

    #[test]
    fn stage_times_of_immediate_class_are_between_their_events() {
        let mut times = timeline(&[
            (VolumeMoment::ClaimRequested, 10),
            (VolumeMoment::VolumeSeen, 510),
            (VolumeMoment::ClaimBound, 530),
            (VolumeMoment::PodRequested, 540),
            (VolumeMoment::PodScheduled, 560),
            (VolumeMoment::Attached, 1560),
            (VolumeMoment::Mounted, 1960),
            (VolumeMoment::ExpandRequested, 3000),
            (VolumeMoment::Expanded, 5000),
            (VolumeMoment::PodDeletionRequested, 5100),
            (VolumeMoment::PodGone, 5600),
            (VolumeMoment::Detached, 6100),
            (VolumeMoment::ClaimDeletionRequested, 6200),
            (VolumeMoment::ClaimGone, 6210),
            (VolumeMoment::VolumeGone, 6700),
        ]);
        times.record_write(7 * MS, 2500 * MS);
        let all = LifecycleStage::ALL.map(|stage| took_ms(&times, stage, &RULES).unwrap());
        assert_eq!(all, [500, 20, 1000, 400, 7, 2000, 1000, 500]);
    }

    #[test]
    fn provision_of_late_binding_class_begins_with_the_choice_of_a_node() {
        let times = timeline(&[
            (VolumeMoment::ClaimRequested, 10),
            (VolumeMoment::PodRequested, 20),
            (VolumeMoment::NodeSelected, 100),
            (VolumeMoment::VolumeSeen, 400),
        ]);
        let late = StageRules {
            binds_late: true,
            ..RULES
        };
        assert_eq!(took_ms(&times, LifecycleStage::Provision, &late), Some(300));
        assert_eq!(
            took_ms(&times, LifecycleStage::Provision, &RULES),
            Some(390)
        );
    }

    #[test]
    fn stages_that_the_class_lacks_are_absent() {
        let times = timeline(&[
            (VolumeMoment::PodScheduled, 100),
            (VolumeMoment::Mounted, 300),
            (VolumeMoment::PodDeletionRequested, 400),
            (VolumeMoment::PodGone, 900),
        ]);
        let rules = StageRules {
            expands: Some(false),
            ..RULES
        };
        let absent = |stage| times.outcome(stage, &rules);
        let expected = StageOutcome::Absent(StageAbsence::NoAttachments);
        assert_eq!(absent(LifecycleStage::Attach), expected);
        let expected = StageOutcome::Absent(StageAbsence::NoExpansion);
        assert_eq!(absent(LifecycleStage::Expand), expected);
        assert_eq!(took_ms(&times, LifecycleStage::Mount, &rules), Some(200));
        assert_eq!(took_ms(&times, LifecycleStage::Detach, &rules), Some(500));
        assert_eq!(absent(LifecycleStage::Delete), StageOutcome::NotReached);
    }

    #[test]
    fn first_failure_is_kept_and_later_stages_are_not_reached() {
        let mut times = timeline(&[(VolumeMoment::ClaimRequested, 0)]);
        assert_eq!(times.first_open_stage(&RULES), LifecycleStage::Provision);
        times.fail(LifecycleStage::Provision, "no space".to_owned());
        times.fail(LifecycleStage::Delete, "late".to_owned());
        let outcomes = times.stages(&RULES);
        let cause = "no space".to_owned();
        assert_eq!(outcomes[0].outcome, StageOutcome::Failed { cause });
        assert!(
            outcomes[1..]
                .iter()
                .all(|record| record.outcome == StageOutcome::NotReached)
        );
    }

    #[test]
    fn repeated_event_does_not_move_a_moment() {
        let mut times = timeline(&[(VolumeMoment::ClaimBound, 5)]);
        assert!(!times.record(VolumeMoment::ClaimBound, 9 * MS));
        assert_eq!(times.at_ns(VolumeMoment::ClaimBound), Some(5 * MS));
    }
}
